"""SANDBOX_BACKEND=kubernetes: sandboxes are Pods, on good days and on bad ones
of the cluster."""
import os
import signal
import time

import pytest

from client import stdout, wait_for
from clusters import lost, waiting_run


# ---- a sandbox is a Pod

def test_a_run_is_in_a_pod(podded, cluster):
    client = podded.client()
    view = client.run("Box_1", "echo hi; id -u; pwd")
    assert stdout(view) == "hi\n1000\n/workspace\n"
    name, pod = cluster.pod(podded)
    assert view["sandbox_container_id"] == name
    assert pod["metadata"]["annotations"][
        "mcp-sandboxd/identifier"] == "Box_1"
    assert pod["spec"]["automountServiceAccountToken"] is False
    assert pod["spec"]["containers"][0]["securityContext"][
        "allowPrivilegeEscalation"] is False


def test_root_is_the_pods_root(podded):
    client = podded.client()
    assert client.out("a", "id -u", as_user="root") == "0\n"


def test_a_read_only_root_leaves_the_workspace(make_podded, tokens):
    acme = tokens.tenant("acme", "rule.read_only_root=true")
    client = make_podded(TENANTS_FILE=tokens.write()).client(token=acme)
    view = client.run("a", "touch /bin/x 2>&1; echo made >/artifacts/x && "
                      "touch file && echo good")
    assert "Read-only file system" in stdout(view)
    assert stdout(view).endswith("good\n")
    assert [a["path"] for a in view["artifacts"]] == ["x"]


def test_the_server_says_what_it_stands_on(podded):
    said, = podded.ctl.json("status")["engine"]
    assert (said["name"], said["carrier"]) == ("Kubernetes", "bridge")
    assert said["version"].startswith("v1.")


def test_a_restarted_server_takes_its_pods_over(podded, cluster):
    client = podded.client()
    client.run("a", "echo kept >file")
    before = cluster.pod(podded)[1]["metadata"]["uid"]
    podded.restart()
    assert podded.client().out("a", "cat file") == "kept\n"
    assert cluster.pod(podded)[1]["metadata"]["uid"] == before


def test_a_run_goes_on_while_its_worker_is_killed(podded):
    client = podded.client()
    run = client.start("a", "echo one; read x </workspace/go; echo two")
    client.wait_output(run["run_id"])
    podded.kill("worker")
    client = podded.client()
    client.run("a", "mkfifo go 2>/dev/null; true")
    assert client.status(run["run_id"])["state"] in ("running", "completed")


def test_a_deleted_sandbox_is_no_pod_any_more(podded, cluster):
    client = podded.client()
    client.run("a", "true")
    client.delete("a")
    assert cluster.pods(podded) == {}


def test_a_sandbox_is_made_again_under_its_name(podded, cluster):
    client = podded.client()
    client.run("a", "echo old >file")
    client.delete("a")
    assert "No such file" in client.run("a", "cat file")[
        "commands"][0]["stderr"]
    assert len(cluster.pods(podded)) == 1


# ---- Pods that do not start

def test_a_pod_that_no_node_takes_says_so(make_podded, cluster):
    server = make_podded(KUBERNETES_PENDING_SECONDS="1")
    cluster.faults.set_room(memory="16Mi")
    said = server.client().refused("a", "true")
    assert "did not start within 1 s" in said
    assert "no node takes it" in said and "Insufficient memory" in said
    wait_for(lambda: cluster.pods(server) == {}, 30, "no Pod")
    cluster.faults.set_room(memory="256Gi")


def test_an_image_that_no_node_has_is_said_at_once(make_podded, cluster):
    server = make_podded(SANDBOX_IMAGE="localhost/mcp-sandboxd/none:1")
    said = server.client().refused("a", "true")
    assert "ErrImageNeverPull" in said
    wait_for(lambda: cluster.pods(server) == {}, 30, "no Pod")


def test_an_agent_image_that_no_node_has_is_named(make_podded):
    server = make_podded(KUBERNETES_AGENT_IMAGE="localhost/none:1")
    said = server.client().refused("a", "true")
    assert "the agent's container: ErrImageNeverPull" in said


def test_a_quota_is_told_in_the_clusters_words(podded, cluster):
    cluster.limit_pods("0")
    try:
        said = podded.client().refused("a", "true")
    finally:
        cluster.unlimit_pods()
    assert said.startswith("quota_exceeded: ") and "exceeded quota: few" in said
    assert podded.client().out("a", "echo on") == "on\n"


def test_what_a_range_forbids_is_a_quota_too(podded, cluster):
    cluster.ask("POST", "limitranges", body={
        "apiVersion": "v1", "kind": "LimitRange", "metadata": {"name": "small"},
        "spec": {"limits": [{"type": "Container", "max": {"memory": "1Mi"}}]}})
    try:
        said = podded.client().refused("a", "true")
    finally:
        cluster.ask("DELETE", "limitranges/small")
    assert said.startswith("quota_exceeded: ")
    assert "maximum memory usage per Container is 1Mi" in said


def test_a_sandbox_that_is_not_wanted_does_not_wait_for_its_node(
        podded, cluster):
    client = podded.client()
    cluster.faults.hold_pods()
    client.start("a", "true")
    wait_for(lambda: cluster.pods(podded), 30, "a Pod")
    began = time.monotonic()
    client.delete("a")
    assert time.monotonic() - began < 30  # KUBERNETES_PENDING_SECONDS is 120
    wait_for(lambda: cluster.pods(podded) == {}, 30, "no Pod")


# ---- Pods that end

def test_an_eviction_is_told_with_its_reason(podded, cluster):
    client = podded.client()
    run = waiting_run(client)
    cluster.faults.evict(pod=cluster.pod(podded)[0])
    assert "Evicted" in lost(client, run)
    wait_for(lambda: cluster.pods(podded) == {}, 30, "no Pod")
    assert client.out("a", "echo on") == "on\n"


def test_a_pod_that_is_deleted_by_hand_is_a_lost_sandbox(podded, cluster):
    client = podded.client()
    run = waiting_run(client)
    cluster.faults.delete_pod(pod=cluster.pod(podded)[0])
    assert "was removed from outside" in lost(client, run)
    assert client.out("a", "echo on") == "on\n"


def test_a_pod_that_another_made_under_our_name_is_left_alone(
        podded, cluster):
    client = podded.client()
    run = waiting_run(client)
    name, _ = cluster.pod(podded)
    uid = cluster.faults.remake(pod=name)
    assert "removed from outside" in lost(client, run)
    assert client.out("a", "echo on") == "on\n"
    assert cluster.ask("GET", "pods", name)["metadata"]["uid"] == uid


def test_memory_that_is_short_is_told(podded, cluster):
    client = podded.client()
    run = waiting_run(client)
    cluster.faults.kill_of_memory(pod=cluster.pod(podded)[0])
    assert "memory" in lost(client, run)


# ---- a cluster that is away

def test_runs_go_on_while_the_api_is_away(podded, cluster):
    client = podded.client()
    run = client.start(
        "a", "echo one; until [ -e go ]; do sleep 0.05; done; echo two")
    client.wait_output(run["run_id"])
    cluster.faults.go_away()
    podded.wait_log("cluster: ")
    assert podded.get("/readyz")[0] == 503
    cluster.faults.come_back()
    wait_for(podded.is_ready, 60, "readiness")
    client.run("a", "touch go")
    assert stdout(client.wait_end(run["run_id"])) == "one\ntwo\n"


def test_a_watch_that_is_cut_costs_nothing(podded, cluster):
    client = podded.client()
    run = waiting_run(client)
    cluster.faults.cut_watches()
    cluster.faults.compact()
    cluster.faults.delete_pod(pod=cluster.pod(podded)[0])
    assert "was removed from outside" in lost(client, run)


def test_an_answer_that_is_lost_leaves_no_pod(podded, cluster):
    cluster.faults.lose_answers(method="POST", path="/pods")
    client = podded.client()
    client.refused("a", "true")
    wait_for(lambda: cluster.pods(podded) == {}, 30, "no Pod")
    assert client.out("a", "echo on") == "on\n"


def test_a_token_that_was_renewed_is_taken(podded, cluster):
    client = podded.client()
    client.run("a", "true")
    cluster.faults.expire_tokens()
    cluster.faults.renew_token()
    os.chmod(cluster.running.token, 0o644)
    assert client.out("b", "echo on") == "on\n"


# ---- what is missing

def test_a_right_that_is_missing_is_named_until_it_is_there(
        make_podded, cluster):
    rules = cluster.rules()
    cluster.faults.take_right(resource="pods/exec")
    try:
        server = make_podded(wait="port")
        server.wait_log("we may not", "create pods/exec")
        assert server.get("/readyz")[0] == 503
    finally:
        cluster.faults.set_rules(rules=rules)
    wait_for(server.is_ready, 60, "readiness")


def test_a_cluster_that_is_not_there_is_named(make_podded, cluster):
    cluster.faults.go_away()
    server = make_podded(wait="port")
    server.wait_log("cluster: ", str(cluster.running.port))
    cluster.faults.come_back()
    wait_for(server.is_ready, 60, "readiness")


@pytest.mark.parametrize("key, value, word", [
    ("KUBERNETES_AGENT_IMAGE", "", "KUBERNETES_AGENT_IMAGE is empty"),
    ("KUBECONFIG", "/nonexistent", "/nonexistent"),
    ("SANDBOX_SECCOMP", "/etc/profile", "SANDBOX_SECCOMP"),
    ("CARRIER", "unix", "CARRIER=unix")])
def test_a_setting_that_cannot_be_is_refused(
        make_podded, key, value, word):
    server = make_podded(wait=False, **{key: value})
    server.refuses(word)


def test_the_doctor_looks_at_the_cluster(cluster, program):
    done = program("doctor", **cluster.settings())
    assert "Kubernetes v1." in done.stdout, done.stdout + done.stderr
    assert "by TLS; " in done.stdout
    assert "KUBERNETES_HOST_USERS" in done.stdout
    assert "sandboxes reach nobody" in done.stdout
    cluster.faults.enforce_policies(on=False)
    assert "does not enforce NetworkPolicies" in program(
        "doctor", **cluster.settings()).stdout
    wait_for(lambda: cluster.ask("GET", "pods")["items"] == [], 30, "no Pod")
    cluster.faults.go_away()
    assert "no API server at" in program("doctor", **cluster.settings()).stdout


def test_a_check_of_the_settings_asks_the_cluster(cluster, program):
    done = program("--check-config", **cluster.settings())
    assert done.returncode == 0, done.stderr
    program.refuses("--check-config", words=("KUBERNETES_AGENT_IMAGE",),
                    **cluster.settings(KUBERNETES_AGENT_IMAGE=""))


# ---- leftovers

def test_what_the_database_forgot_is_removed(podded, cluster):
    client = podded.client()
    client.run("a", "true")
    podded.stop(signal.SIGKILL)
    podded.change("DELETE FROM run", "DELETE FROM sandbox")
    podded.start()
    podded.wait_log("sandbox of this server that its database")
