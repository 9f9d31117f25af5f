"""The worker's client of a cluster: what it asks, when it asks again, and what
it says when things go wrong."""
import json
import os
import subprocess

import pytest

BUILD = os.path.abspath(os.environ.get("MCP_SANDBOXD_BUILD", "build"))
CLIENT = f"{BUILD}/tests/unit/worker/helpers/cluster_client"
PODS = "/api/v1/namespaces/sbx/pods"


class Client:
    """cluster_client, and what it says."""

    def __init__(self, kubeconfig, **environment):
        self.process = subprocess.Popen(
            [CLIENT, kubeconfig], stdin=subprocess.PIPE, text=True,
            stdout=subprocess.PIPE, env=os.environ | environment)

    def tell(self, line):
        self.process.stdin.write(line + "\n")
        self.process.stdin.flush()

    def said(self):
        line = self.process.stdout.readline()
        assert line, "cluster_client has ended"
        return json.loads(line)

    def ask(self, method, path, body="", ms=5000):
        self.tell(f"ask {ms} {method} {path} {body}".rstrip())
        return self.said()

    def until(self, **want):
        """All that it says up to what has this."""
        heard = []
        while not heard or not want.items() <= heard[-1].items():
            heard.append(self.said())
        return heard

    def follow(self, selector="app=sbx"):
        self.tell(f"follow {selector}")
        return self.until(listed=True)

    def close(self):
        self.process.stdin.close()
        status = self.process.wait(20)
        self.process.stdout.close()
        assert status == 0


@pytest.fixture
def client(cluster):
    one = Client(cluster.kubeconfig)
    yield one
    one.close()


def body_of(name, **fields):
    return json.dumps({"apiVersion": "v1", "kind": "Pod",
                       "metadata": {"name": name, "labels": {"app": "sbx"}},
                       "spec": {"containers": [
                           {"name": "main", "image": "i", **fields}]}})


# ---- questions and answers

def test_what_a_cluster_is_can_be_asked(client):
    said = client.ask("GET", "/version")
    assert said["rc"] == "" and said["status"] == 200
    assert said["body"]["major"] == "1"


def test_answers_are_told_apart(cluster, client, pods):
    missing = client.ask("GET", f"{PODS}/nope")
    assert (missing["rc"], missing["reason"]) == ("not_found", "NotFound")
    assert 'pods "nope" not found' in missing["why"]
    pods.made("one")
    twice = client.ask("POST", PODS, body_of("one"))
    assert (twice["rc"], twice["reason"]) == ("conflict", "AlreadyExists")
    unknown = client.ask("GET", "/apis/nonesuch/v1/things")
    assert unknown["rc"] == "backend" and "too old for it" in unknown["why"]
    elsewhere = client.ask("GET", "/api/v1/namespaces/kube-system/pods")
    assert elsewhere["rc"] == "backend"
    assert "a right is missing" in elsewhere["why"]
    assert 'cannot list resource "pods"' in elsewhere["why"]


def test_what_the_cluster_does_not_want_is_its_policy(client):
    said = client.ask("POST", PODS, json.dumps(
        {"apiVersion": "v1", "kind": "Pod", "metadata": {"name": "x"},
         "spec": {"runtimeClassName": "none", "containers": [
             {"name": "main", "image": "i"}]}}))
    assert said["rc"] == "policy", said
    assert "RuntimeClass" in said["why"]


def test_a_token_that_is_too_old_is_read_again(cluster, client):
    assert client.ask("GET", PODS)["status"] == 200
    cluster.faults.expire_tokens()
    said = client.ask("GET", PODS)
    assert said["status"] == 401 and "renew the kubeconfig" in said["why"]
    cluster.faults.renew_token()
    assert client.ask("GET", PODS)["status"] == 200


@pytest.mark.parametrize("code", [429, 503, 504])
def test_what_was_not_done_is_asked_again(cluster, client, code):
    cluster.faults.refuse(code=code, times=2, method="GET")
    assert client.ask("GET", PODS)["status"] == 200


def test_a_write_is_asked_again_only_when_it_was_not_done(cluster, client):
    cluster.faults.refuse(code=429, method="POST", text=True)
    assert client.ask("POST", PODS, body_of("a"))["status"] == 201
    cluster.faults.refuse(code=504, method="POST")
    assert client.ask("POST", PODS, body_of("b"))["rc"] == "lost"
    cluster.faults.refuse(code=503, method="POST")
    assert client.ask("POST", PODS, body_of("b"))["rc"] == "backend"
    assert client.ask("GET", f"{PODS}/b")["status"] == 404


def test_a_wait_that_would_be_too_long_is_none(cluster, client):
    cluster.faults.refuse(code=429, method="GET", retry_after=60)
    said = client.ask("GET", PODS)
    assert (said["rc"], said["status"]) == ("backend", 429)


def test_a_write_without_an_answer_may_have_been_done(cluster, client):
    cluster.faults.lose_answers(method="POST")
    said = client.ask("POST", PODS, body_of("a"))
    assert (said["rc"], said["status"]) == ("lost", 0)
    assert "broke off its answer" in said["why"]
    assert client.ask("GET", f"{PODS}/a")["status"] == 200


def test_a_proxys_page_is_told_as_words(cluster, client):
    cluster.faults.refuse(code=502, method="GET")
    said = client.ask("GET", PODS)
    assert said["rc"] == "backend" and "502 Bad Gateway" in said["why"]


def test_a_server_that_is_away_is_no_answer(cluster, client):
    cluster.faults.go_away(how="refuse")
    said = client.ask("GET", PODS)
    assert said["rc"] == "backend" and "no API server at" in said["why"]
    cluster.faults.come_back()
    assert client.ask("GET", PODS)["status"] == 200
    cluster.faults.go_away(how="hang")
    said = client.ask("GET", PODS, ms=100)
    assert said["rc"] == "backend" and "did not answer GET" in said["why"]


def test_a_kubeconfig_without_the_right_authority_is_refused(
        cluster, tmp_path):
    other = tmp_path / "ca"
    subprocess.run(
        ["openssl", "req", "-x509", "-newkey", "ec", "-pkeyopt",
         "ec_paramgen_curve:P-256", "-nodes", "-keyout", "/dev/null",
         "-subj", "/CN=other", "-out", other], check=True,
        stderr=subprocess.DEVNULL)
    with open(cluster.kubeconfig, encoding="utf-8") as f:
        config = json.load(f)
    config["clusters"][0]["cluster"]["certificate-authority"] = str(other)
    path = tmp_path / "config"
    path.write_text(json.dumps(config))
    client = Client(str(path))
    said = client.ask("GET", "/version")
    client.close()
    assert "certificate-authority does not vouch for" in said["why"]


def test_missing_rights_are_named(cluster, client):
    client.tell("rights")
    assert client.said() == {"missing": "update secrets", "hint": False}
    cluster.faults.take_right(resource="pods/exec", verbs=["create"])
    client.tell("rights")
    assert client.said()["missing"] == "create pods/exec, update secrets"


# ---- Pods that are followed

def test_pods_are_followed_from_their_beginning_to_their_end(client, pods):
    pods.made("before")
    assert client.follow()[0] == {"up": True, "detail": ""}
    pods.made("after")
    client.until(pod="after", phase="Running")
    pods.ask("DELETE", "/before?gracePeriodSeconds=0")
    client.until(gone="before")


def test_what_happened_while_the_server_was_away_is_told(
        cluster, client, pods):
    pods.made("old")
    client.follow()
    cluster.faults.go_away(how="refuse")
    down = client.until(up=False)[-1]
    assert "no API server at" in down["detail"]
    cluster.faults.come_back()
    heard = client.until(listed=True)
    assert {"up": True, "detail": ""} in heard


@pytest.mark.parametrize("trouble", ["cut_watches", "compact"])
def test_a_watch_that_breaks_loses_nothing(cluster, client, pods, trouble):
    pods.made("one")
    client.follow()
    getattr(cluster.faults, trouble)()
    cluster.faults.cut_watches()
    cluster.faults.delete_pod(pod="one")
    pods.made("two")
    heard = client.until(pod="two")
    if {"gone": "one"} not in heard:
        client.until(gone="one")


def test_a_version_that_is_too_old_is_no_outage(cluster, client, pods):
    cluster.faults.expire_watches(times=1)
    client.follow()
    client.until(listed=True)
    pods.made("one")
    heard = client.until(pod="one")
    assert not any("up" in said for said in heard)


def test_lines_may_come_in_pieces(cluster, client, pods):
    cluster.faults.split_lines(size=7)
    client.follow()
    pods.made("one")
    client.until(pod="one", phase="Running")


def test_another_pod_of_the_name_comes_after_the_ones_end(
        cluster, client, pods):
    pods.running("one")
    client.follow()
    cluster.faults.remake(pod="one")
    heard = client.until(pod="one", phase="Running")
    assert {"gone": "one"} in heard


def test_a_watch_that_is_not_permitted_is_told(cluster, client):
    cluster.faults.take_right(resource="pods", verbs=["watch"])
    client.follow()
    said = client.until(up=False)[-1]
    assert 'cannot watch resource "pods"' in said["detail"]
    heard = client.until(listed=True)
    assert not any(one.get("up") for one in heard)


def test_what_is_followed_can_be_left(client, pods):
    client.follow()
    client.tell("stop")
    client.tell("ask 5000 GET /version")
    client.until(rc="", status=200)
    pods.made("one")
    assert client.ask("GET", f"{PODS}/one")["status"] == 200
