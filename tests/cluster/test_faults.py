"""Bad days: each is one as a client sees it, and ends when it is taken
back."""
import http.client
import json
import ssl

import pytest

from .bodies import container, pod
from .peer import Watch, executing, wait_for

RULES = [{"apiGroups": [""], "resources": ["pods"], "verbs": ["get"]}]


@pytest.fixture
def held(cluster):
    cluster.faults.hold_pods()


# ---- the server

def test_a_server_that_is_away_refuses_and_comes_back_at_its_port(
        cluster, pods, held):
    pods.made("survivor")
    with Watch(cluster, fieldSelector="metadata.name=survivor") as watch:
        watch.event()
        cluster.faults.go_away()
        assert not watch.answer.fp.read().strip()
    with pytest.raises(ConnectionRefusedError):
        cluster.ask("GET", "/version")
    cluster.faults.come_back()
    assert pods.get("survivor")["metadata"]["name"] == "survivor"


def test_a_server_that_hangs_takes_connections_and_goes_on(
        cluster, pods, held):
    connection = cluster.connection()
    connection.connect()
    cluster.faults.go_away(how="hang")
    connection.request("GET", "/version")
    connection.sock.settimeout(0.2)
    with pytest.raises(TimeoutError):
        connection.getresponse()
    cluster.faults.come_back()
    connection.close()
    assert cluster.ask("GET", "/version")[0] == 200


@pytest.mark.parametrize("code, arguments, reason, after", [
    (429, {"retry_after": 3}, "TooManyRequests", "3"),
    (429, {}, "TooManyRequests", None),
    (500, {}, None, None), (503, {}, "ServiceUnavailable", None),
    (504, {}, "Timeout", None)])
def test_refusals_are_counted_and_chosen(
        cluster, pods, held, code, arguments, reason, after):
    cluster.faults.refuse(code=code, times=2, method="GET",
                          path="/pods/refused", **arguments)
    assert pods.ask("GET")[0] == 200
    for _ in range(2):
        status, headers, _ = cluster.exchange("GET", pods.path + "/refused")
        assert status == code
        assert headers["Retry-After"] == after
    assert pods.ask("GET", "/refused")[0] == 404


def test_a_gateway_speaks_html_and_a_busy_server_text(cluster):
    cluster.faults.refuse(code=502)
    assert cluster.ask("GET", "/version")[1].startswith("<html>")
    cluster.faults.refuse(code=429, text=True, retry_after=1)
    assert cluster.ask("GET", "/version") == (
        429, "Too many requests, please try again later.")


def test_a_lost_answer_is_of_something_that_was_done(cluster, pods, held):
    cluster.faults.lose_answers(method="POST", path="/pods")
    with pytest.raises((http.client.HTTPException, OSError)):
        pods.create("lost")
    assert pods.get("lost")["metadata"]["name"] == "lost"


def test_a_clock_is_wrong_for_dates_and_objects(cluster, pods, held):
    before = pods.made("before")["metadata"]["creationTimestamp"]
    cluster.faults.set_clock(offset_s=3600)
    after = pods.made("after")["metadata"]["creationTimestamp"]
    hours = [int(t[11:13]) for t in (before, after)]
    assert (hours[1] - hours[0]) % 24 == 1 or after[14:] < before[14:]
    assert cluster.exchange("GET", "/version")[1]["Date"]


# ---- who may what

def test_a_bad_token_a_missing_one_and_one_that_expired(cluster, pods):
    assert pods.ask("GET", token="wrong") == (401, {
        "kind": "Status", "apiVersion": "v1", "metadata": {},
        "status": "Failure", "message": "Unauthorized",
        "reason": "Unauthorized", "code": 401})
    connection = cluster.connection()
    connection.request("GET", "/api/v1/namespaces/sbx/pods/x")
    answer = connection.getresponse()
    assert b'User \\"system:anonymous\\" cannot get' in answer.read()
    connection.close()
    old = cluster.account_token()
    cluster.faults.expire_tokens()
    assert pods.ask("GET", token=old)[0] == 401
    cluster.faults.renew_token()
    assert cluster.account_token() != old
    assert pods.ask("GET")[0] == 200


def test_the_account_has_its_rights_in_several_namespaces(cluster, image):
    def create(namespace, name):
        return cluster.ask(
            "POST", f"/api/v1/namespaces/{namespace}/pods",
            pod(name, container(image)), token=cluster.account_token())[0]

    assert create("other", "a") == 403
    cluster.faults.open_namespace(name="other")
    assert create("other", "a") == 201
    cluster.faults.delete_pod(pod="other/a")
    cluster.faults.take_right(resource="pods", namespace="other")
    assert create("other", "b") == 403
    assert create(cluster.namespace, "b") == 201
    cluster.faults.reset()
    assert cluster.ask("GET", "/api/v1/namespaces/other")[0] == 404


def test_rights_go_in_the_middle_of_life(cluster, pods):
    pods.running("righted")
    account = 'User "system:serviceaccount:sbx:runner" cannot '
    cluster.faults.take_right(resource="pods/exec", verbs=["create"])
    with executing(cluster, "righted", "true") as peer:
        assert peer.status == 403
        assert b'"message":"pods \\"righted\\" is forbidden: "' in peer.body
    cluster.faults.be_version(minor=34)
    with executing(cluster, "righted", "true") as peer:
        assert peer.status == 101
    cluster.faults.take_right(resource="pods/exec")
    with executing(cluster, "righted", "true") as peer:
        assert peer.status == 403
        assert f'{account}get resource "pods/exec"' in \
            json.loads(peer.body)["message"]
    cluster.faults.set_rules(rules=RULES)
    status, said = pods.create("rightless")
    assert (status, said["message"]) == (
        403, f'pods is forbidden: {account}create resource "pods" in API '
        'group "" in the namespace "sbx"')
    assert pods.ask("GET", "/righted")[0] == 200


# ---- Pods and the node

def test_an_evicted_pod_has_failed_and_stays(cluster, pods):
    pods.running("evicted")
    cluster.faults.evict(pod="evicted")
    status = pods.get("evicted")["status"]
    assert (status["phase"], status["reason"]) == ("Failed", "Evicted")
    end = status["containerStatuses"][0]["state"]["terminated"]
    assert (end["exitCode"], end["reason"]) == (137, "Error")
    assert "Evicted" in [e[1] for e in pods.events("evicted")]


def test_memory_may_take_a_pod_as_a_whole(cluster, pods):
    pods.running("whole")
    cluster.faults.kill_of_memory(pod="whole")
    end = pods.ended("whole")["containerStatuses"][0]["state"]["terminated"]
    assert (end["exitCode"], end["reason"]) == (137, "OOMKilled")


def test_a_pod_made_again_has_another_uid(cluster, pods):
    uid = pods.running("twin")["metadata"]["uid"]
    other = cluster.faults.remake(pod="twin")
    assert other != uid
    wait_for(lambda: pods.phase("twin") == "Running", "the second")
    assert pods.get("twin")["metadata"]["uid"] == other
    status, said = pods.ask("DELETE", "/twin", {"preconditions": {
        "uid": uid}})
    assert status == 409


def test_pods_are_held_back(cluster, pods, held):
    pods.made("held")
    wait_for(lambda: pods.state("held"), "a state")
    assert pods.state("held") == {"waiting": {"reason": "ContainerCreating"}}
    cluster.faults.release_pods()
    wait_for(lambda: pods.phase("held") == "Running", "its run")


def test_an_eviction_in_the_beginning_ends_it(cluster, pods, image):
    pods.made("early", initContainers=[container(image, name="first")])
    wait_for(lambda: [s for s in pods.get("early")["status"].get(
        "initContainerStatuses", ()) if "running" in s["state"]], "its start")
    cluster.faults.evict(pod="early")
    status = pods.ended("early")
    assert (status["phase"], status["reason"]) == ("Failed", "Evicted")
    assert status["initContainerStatuses"][0]["state"]["terminated"][
        "exitCode"] == 137
    assert status["containerStatuses"][0]["state"] == {
        "waiting": {"reason": "PodInitializing"}}


def test_a_pod_that_is_late_ends_at_once(cluster, pods):
    cluster.faults.delay_pods(seconds=600)
    pods.made("late")
    wait_for(lambda: pods.state("late"), "a state")
    assert pods.state("late") == {"waiting": {"reason": "ContainerCreating"}}
    assert pods.ask("DELETE", "/late")[0] == 200
    wait_for(lambda: pods.ask("GET", "/late")[0] == 404, "its end")


def test_a_node_in_trouble_takes_no_more(cluster, pods):
    pods.running("old")
    cluster.faults.trouble_node()
    pods.made("new")
    wait_for(lambda: [e for e in pods.events("new") if "untolerated taint"
                      in e[2]], "the event")
    assert pods.phase("old") == "Running"
    ready = [c["status"] for c in pods.get("old")["status"]["conditions"]
             if c["type"] == "Ready"]
    assert ready == ["False"]
    with executing(cluster, "old", "true") as peer:
        assert peer.frames()[1] == (2, b'\x03{"metadata":{},'
                                    b'"status":"Success"}')
    cluster.faults.find_node()
    wait_for(lambda: pods.phase("new") == "Running", "its run")


def test_a_lost_node_says_nothing_more(cluster, pods):
    pods.running("lost-pod")
    with executing(cluster, "lost-pod", "cat", stdin=True) as peer:
        assert peer.frame() == (2, b"\x01")
        cluster.faults.lose_node()
        peer.say(0, b"hello\n")
        peer.socket.settimeout(0.2)
        with pytest.raises(TimeoutError):
            peer.frame()
        assert pods.phase("lost-pod") == "Running"
        with executing(cluster, "lost-pod", "true") as second:
            assert second.status == 500
            assert b"error dialing backend" in second.body
        cluster.faults.drain_lost_node()
        assert "deletionTimestamp" in pods.get("lost-pod")["metadata"]
        cluster.faults.remove_node()
    assert pods.ask("GET", "/lost-pod")[0] == 404
    pods.made("nowhere")
    wait_for(lambda: [e for e in pods.events("nowhere")
                      if e[2] == "no nodes available to schedule pods"],
             "the event")
    cluster.faults.find_node()
    wait_for(lambda: pods.phase("nowhere") == "Running", "its run")


def test_a_node_that_comes_back_tells_what_happened(cluster, pods, engine):
    pods.running("short")
    found = cluster.faults.container(pod="short")
    cluster.faults.lose_node()
    assert engine.request("POST", f"/containers/{found}/kill")[0] == 204
    assert engine.request("POST", f"/containers/{found}/wait")[0] == 200
    assert pods.phase("short") == "Running"
    cluster.faults.find_node()
    end = pods.ended("short")["containerStatuses"][0]["state"]["terminated"]
    assert end["exitCode"] == 137


def test_a_client_certificate_is_somebody(cluster):
    """Of the authority's, with no right: it is named all the same."""
    context = ssl.create_default_context(cafile=cluster.ca)
    context.load_cert_chain(*cluster.client_certificate("jane"))
    connection = http.client.HTTPSConnection("localhost", cluster.port,
                                             context=context)
    connection.request("GET", "/api/v1/nodes")
    answer = connection.getresponse()
    assert (answer.status, b'User \\"jane\\" cannot list' in answer.read()) \
        == (403, True)
    connection.close()


def test_the_room_of_the_node_can_be_small(cluster, pods):
    cluster.faults.set_room(pods="0")
    try:
        pods.made("roomless")
        wait_for(lambda: [e for e in pods.events("roomless")
                          if "1 Too many pods" in e[2]], "the event")
    finally:
        cluster.faults.set_room(pods="1000")


def test_a_sidecar_in_the_init_containers_is_not_served(pods, image):
    """It would be taken for one that never ends: better said."""
    status, said = pods.create("sidecar", initContainers=[container(
        image, name="side", restartPolicy="Always")])
    assert status == 422
    assert "spec.initContainers[0].restartPolicy" in said["message"]
