"""Bad days of a cluster on which servers have sandboxes: every run whole
afterwards, or ended with its true reason."""
import copy
import signal
import uuid

import pytest

from client import stdout, wait_for
from clusters import PREFIX, lost, waiting_run

RUNS, BOXES = 20, 4
LEFTOVERS = 120  # more than a page of a list
HOUR_S = 3600


# ---- the API server

@pytest.mark.parametrize("how, word", [
    ("refuse", "cluster: "), ("hang", "did not answer")])
def test_runs_are_whole_after_the_api_was_away(podded, cluster, how, word):
    client = podded.client()
    runs = [client.start(
        f"box{i % BOXES}", f"echo {i}; until [ -e go ]; do sleep 0.1; done; "
        f"echo end {i}")["run_id"] for i in range(RUNS)]
    for run in runs:
        client.wait_output(run)
    cluster.faults.go_away(how=how)
    podded.wait_log(word)
    cluster.faults.come_back()
    wait_for(podded.is_ready, 60, "readiness")
    for i in range(BOXES):
        client.run(f"box{i}", "touch go")
    for i, run in enumerate(runs):
        assert stdout(client.wait_end(run)) == f"{i}\nend {i}\n"


def test_a_storm_of_410_costs_no_run(podded, cluster):
    client = podded.client()
    kept, gone = waiting_run(client, "kept"), waiting_run(client, "gone")
    cluster.faults.expire_watches(times=5)
    cluster.faults.split_lines(size=7)
    cluster.faults.cut_watches()
    name, = (n for n, p in cluster.pods(podded).items() if p["metadata"][
        "annotations"]["mcp-sandboxd/identifier"] == "gone")
    cluster.faults.delete_pod(pod=name)
    assert "was removed from outside" in lost(client, gone)
    assert client.status(kept)["state"] == "running"


def test_an_api_server_that_has_too_much_to_do_is_waited_for(podded, cluster):
    cluster.faults.refuse(code=429, times=3, method="POST", retry_after=0)
    cluster.faults.refuse(code=503, times=2, method="GET")
    assert podded.client().out("a", "echo on") == "on\n"


def test_a_right_that_goes_in_the_middle_of_life(podded, cluster):
    client = podded.client()
    rules = cluster.rules()
    run = client.start(
        "a", "echo one; until [ -e go ]; do sleep 0.1; done; echo two")[
            "run_id"]
    client.wait_output(run)
    cluster.faults.take_right(resource="pods/exec")
    cluster.faults.cut_streams()
    try:
        podded.wait_log("pods/exec")
    finally:
        cluster.faults.set_rules(rules=rules)
    client.run("a", "touch go")
    assert stdout(client.wait_end(run)) == "one\ntwo\n"


@pytest.mark.parametrize("minor", [28, 29, 34])
def test_an_older_cluster(make_podded, cluster, minor):
    cluster.faults.be_version(minor=minor)
    server = make_podded()
    said, = server.ctl.json("status")["engine"]
    assert said["version"].startswith(f"v1.{minor}.")
    assert server.client().out("a", "echo on") == "on\n"


@pytest.mark.parametrize("offset_s", [HOUR_S, -HOUR_S])
def test_a_cluster_whose_clock_is_another(make_podded, cluster, offset_s):
    cluster.faults.set_clock(offset_s=offset_s)
    server = make_podded()
    client = server.client()
    client.run("a", "echo kept >file")
    server.restart()
    assert server.client().out("a", "cat file") == "kept\n"


# ---- nodes

def test_a_node_that_is_not_ready_keeps_what_runs_and_gets_nothing(
        make_podded, cluster):
    server = make_podded(KUBERNETES_PENDING_SECONDS="10")
    client = server.client()
    client.run("a", "true")
    cluster.faults.trouble_node()
    assert client.out("a", "echo on") == "on\n"
    said = client.refused("b", "true")
    assert "no node takes it" in said, said


def test_a_node_that_is_gone_is_told(podded, cluster):
    client = podded.client()
    run = waiting_run(client)
    cluster.faults.lose_node()
    cluster.faults.remove_node()
    assert "removed from outside" in lost(client, run)
    cluster.faults.find_node()
    assert client.out("a", "echo on") == "on\n"


# ---- who else is there

def test_two_servers_with_one_instance_name(make_podded, cluster):
    one = make_podded()
    one.client().run("a", "echo one >file")
    two = make_podded(INSTANCE=one.instance)
    two.client().run("a", "echo two >file")
    for server in (one, two):
        server.restart()
    assert one.client().out("a", "cat file") == "one\n"
    assert two.client().out("a", "cat file") == "two\n"
    two.client().delete("a")
    assert len(cluster.pods(one)) == 1 and cluster.pods(two) == {}


def another(pod, name):
    """A box of the same server under another name."""
    one = copy.deepcopy({k: pod[k] for k in ("apiVersion", "kind", "spec")})
    one["spec"].pop("nodeName")
    meta = pod["metadata"]
    one["metadata"] = {
        "name": name, "annotations": meta["annotations"] | {
            f"{PREFIX}/name": name, f"{PREFIX}/created-at-unix-ms": "1"},
        "labels": meta["labels"] | {f"{PREFIX}/sandbox": str(uuid.uuid4())}}
    return one


def test_more_than_a_page_that_its_database_forgot(podded, cluster):
    podded.client().run("a", "true")
    podded.stop(signal.SIGKILL)
    pod = cluster.ask("GET", "pods", cluster.pod(podded)[0])
    cluster.faults.hold_pods()
    for i in range(LEFTOVERS):
        cluster.ask("POST", "pods", body=another(pod, f"left-{i}"))
    assert len(cluster.pods(podded)) == LEFTOVERS + 1
    podded.change("DELETE FROM run", "DELETE FROM sandbox")
    podded.start()
    # What runs is left to an operator.
    wait_for(lambda: list(cluster.pods(podded)) == [pod["metadata"]["name"]],
             120, "no Pod that never ran")
