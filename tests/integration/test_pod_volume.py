"""KUBERNETES_VOLUME_CLASS: /workspace is on a claim that outlives a Pod that
was lost, and goes with its sandbox."""
import pytest

from client import stdout, wait_for
from clusters import PREFIX, pod_cluster
from tenants import Tenant
from test_instance import purge

NOTE = "made again: /workspace has the files of before"


@pytest.fixture(scope="module")
def whole_cluster(engine, build):
    with pod_cluster(engine, build) as c:
        yield c


@pytest.fixture
def cluster(whole_cluster):
    yield whole_cluster
    whole_cluster.faults.reset()


@pytest.fixture
def make_kept(make_server, cluster):
    """A server whose sandboxes have volumes."""
    def make(wait=True, **env):
        return make_server(wait=wait, env=cluster.settings(**{
            "WORKERS": "1", "KUBERNETES_VOLUME_CLASS": "standard"} | env))
    return make


@pytest.fixture
def kept(make_kept):
    return make_kept()


def claim(cluster, server):
    """The only one."""
    found, = cluster.claims(server).values()
    return found


def lose(cluster, server):
    name, _ = cluster.pod(server)
    cluster.faults.delete_pod(pod=name)
    wait_for(lambda: name not in cluster.pods(server), 30, "the Pod's end")


def no_claims(cluster, server):
    wait_for(lambda: cluster.claims(server) == {}, 60, "no claim")


# ---- a Pod that is lost leaves its files

def test_files_outlive_an_eviction_and_the_answer_says_so(kept, cluster):
    client = kept.client()
    first = client.start("a", "echo kept >file", await_completion=True)
    assert "sandbox_note" not in first
    before = claim(cluster, kept)["metadata"]
    cluster.faults.evict(pod=cluster.pod(kept)[0])
    kept.wait_log("is lost")
    said = client.text("run_sandbox", identifier="a", commands=[
        {"shell": "cat file"}], options={"await_completion": True})
    assert NOTE in said and "kept" in said
    again = client.start("a", "true", await_completion=True)
    assert "sandbox_note" not in again  # it was said
    assert claim(cluster, kept)["metadata"]["uid"] == before["uid"]


def test_files_outlive_a_pod_that_is_deleted_by_hand(kept, cluster):
    client = kept.client()
    client.run("a", "echo kept >file")
    lose(cluster, kept)
    said = client.call("initialize_sandbox", identifier="a")
    assert NOTE in said["sandbox_note"] and not said["existing"]
    code = client.call("execute_code", identifier="a",
                       code="print(open('file').read())")
    assert "kept" in code["output"] and "sandbox_note" not in code


def test_a_run_that_is_cut_off_is_lost_and_its_files_are_not(kept, cluster):
    client = kept.client()
    run = client.start("a", "echo kept >file; echo on; sleep 600")["run_id"]
    client.wait_output(run)
    cluster.faults.delete_pod(pod=cluster.pod(kept)[0])
    assert client.wait_end(run)["end_reason"] == "sandbox_lost"
    assert client.out("a", "cat file") == "kept\n"


def test_the_volume_is_the_sandboxs_users(kept, cluster):
    client = kept.client()
    assert client.out("a", "touch x && id -un && pwd") == \
        "sandbox\n/workspace\n"
    found = claim(cluster, kept)
    assert found["spec"]["storageClassName"] == "standard"
    assert found["metadata"]["annotations"][f"{PREFIX}/identifier"] == "a"


# ---- a sandbox that is removed takes them along

def test_a_deleted_sandbox_leaves_no_claim_and_a_new_one_is_empty(
        kept, cluster):
    client = kept.client()
    client.run("a", "echo old >file")
    old = claim(cluster, kept)["metadata"]["uid"]
    client.delete("a")
    said = client.start("a", "ls -A", await_completion=True)
    assert stdout(said["final"]) == ""
    assert "sandbox_note" not in said
    assert claim(cluster, kept)["metadata"]["uid"] != old
    client.delete("a")
    no_claims(cluster, kept)


def test_a_restarted_sandbox_is_empty(kept, cluster):
    client = kept.client()
    client.run("a", "echo old >file")
    client.call("restart_sandbox", identifier="a")
    assert client.out("a", "ls -A") == ""
    assert len(cluster.claims(kept)) == 1


@pytest.mark.parametrize("tool", [
    "delete_sandbox", "stop_sandbox", "restart_sandbox"])
def test_what_a_lost_sandbox_left_goes_when_it_is_not_wanted(
        kept, cluster, tool):
    client = kept.client()
    client.run("a", "echo old >file")
    cluster.faults.delete_pod(pod=cluster.pod(kept)[0])
    kept.wait_log("is lost")
    client.call(tool, identifier="a")
    said = client.start("a", "ls -A", await_completion=True)
    assert stdout(said["final"]) == "" and "sandbox_note" not in said


def test_a_sandbox_that_never_was_is_deleted_well(kept):
    assert kept.client().call("delete_sandbox", identifier="a")["deleted"]


def test_a_restart_waits_for_its_own_turn_alone(kept, cluster):
    """Of a tenant that has one turn at a time the removal goes first."""
    client = Tenant(kept, "one").client
    client.run("a", "echo old >file")
    client.call("restart_sandbox", identifier="a")
    assert client.out("a", "ls -A") == ""


def test_an_expired_sandbox_leaves_no_claim(kept, cluster):
    kept.client().run("a", "echo old >file", ttl_seconds=1)
    no_claims(cluster, kept)


def test_two_tenants_with_one_identifier_have_two_claims(kept, cluster):
    tenants = [Tenant(kept, name) for name in ("one", "two")]
    for tenant in tenants:
        tenant.client.run("a", f"echo {tenant.name} >file")
    assert len(cluster.claims(kept)) == 2
    for name in list(cluster.pods(kept)):
        cluster.faults.delete_pod(pod=name)
    wait_for(lambda: cluster.pods(kept) == {}, 30, "no Pod")
    for tenant in tenants:
        assert tenant.client.out("a", "cat file") == f"{tenant.name}\n"


# ---- claims that nobody comes back for

def test_a_claim_that_is_unused_is_removed(make_kept, cluster):
    server = make_kept(KUBERNETES_VOLUME_KEEP_HOURS="0")
    server.client().run("a", "echo old >file")
    lose(cluster, server)
    no_claims(cluster, server)
    assert server.client().out("a", "ls -A") == ""


def test_one_that_is_used_again_is_not_noted_any_more(kept, cluster):
    note = f"{PREFIX}/unused-since-unix-ms"

    def noted():
        return claim(cluster, kept)["metadata"]["annotations"].get(note)

    client = kept.client()
    client.run("a", "echo kept >file")
    assert noted() is None
    lose(cluster, kept)
    wait_for(noted, 60, "the note")
    since = noted()
    kept.restart()
    assert noted() == since
    assert kept.client().out("a", "cat file") == "kept\n"
    assert noted() is None


def test_servers_leave_each_others_claims_alone(make_kept, cluster):
    one = make_kept()
    one.client().run("a", "echo kept >file")
    lose(cluster, one)
    other = make_kept(KUBERNETES_VOLUME_KEEP_HOURS="0")
    other.client().run("a", "true")
    lose(cluster, other)
    no_claims(cluster, other)
    assert one.client().out("a", "cat file") == "kept\n"


# ---- what stands in the way

def test_a_claim_that_is_not_ours_is_left_alone(kept, cluster):
    client = kept.client()
    client.run("a", "true")
    name = claim(cluster, kept)["metadata"]["name"]
    client.delete("a")
    no_claims(cluster, kept)
    cluster.make_claim(name)
    said = client.refused("a", "true")
    assert name in said and "none of this server's" in said
    cluster.ask("DELETE", "persistentvolumeclaims", name)
    assert client.out("a", "echo on") == "on\n"


def test_a_quota_of_claims_is_told_in_the_clusters_words(kept, cluster):
    cluster.ask("POST", "resourcequotas", body={
        "apiVersion": "v1", "kind": "ResourceQuota",
        "metadata": {"name": "few"},
        "spec": {"hard": {"persistentvolumeclaims": "0"}}})
    try:
        assert "exceeded quota" in kept.client().refused("a", "true")
    finally:
        cluster.ask("DELETE", "resourcequotas/few")
    assert kept.client().out("a", "echo on") == "on\n"


def test_what_is_refused_as_a_pod_leaves_no_claim(kept, cluster):
    cluster.ask("POST", "resourcequotas", body={
        "apiVersion": "v1", "kind": "ResourceQuota",
        "metadata": {"name": "few"}, "spec": {"hard": {"pods": "0"}}})
    try:
        assert "exceeded quota" in kept.client().refused("a", "true")
        no_claims(cluster, kept)
    finally:
        cluster.ask("DELETE", "resourcequotas/few")


def test_a_class_that_is_not_there_is_told_and_leaves_no_claim(
        make_kept, cluster):
    server = make_kept(KUBERNETES_VOLUME_CLASS="nonesuch",
                       KUBERNETES_PENDING_SECONDS="1")
    assert "unbound immediate PersistentVolumeClaims" in \
        server.client().refused("a", "true")
    no_claims(cluster, server)


def test_a_right_on_claims_that_is_missing_is_named(make_kept, cluster):
    rules = cluster.rules()
    cluster.faults.take_right(resource="persistentvolumeclaims",
                              verbs=["patch"])
    try:
        server = make_kept(wait="port")
        server.wait_log("we may not", "patch persistentvolumeclaims")
        assert server.get("/readyz")[0] == 503
    finally:
        cluster.faults.set_rules(rules=rules)
    wait_for(server.is_ready, 60, "readiness")


def test_a_worker_that_dies_between_claim_and_pod_leaves_nothing(
        kept, cluster):
    cluster.faults.refuse(code=429, times=1000, method="POST", path="/pods")
    client = kept.client()
    run = client.start("a", "echo on")["run_id"]
    wait_for(lambda: cluster.claims(kept), 30, "the claim")
    assert cluster.pods(kept) == {}
    kept.kill("worker")
    cluster.faults.reset()
    client = kept.client()
    assert client.wait_end(run)["state"] == "completed"
    assert len(cluster.claims(kept)) == 1
    client.delete("a")
    no_claims(cluster, kept)


def test_a_purge_removes_claims(kept, cluster):
    client = kept.client()
    client.run("a", "true")
    lose(cluster, kept)
    client.run("b", "true")
    kept.stop()
    status, said = purge(kept, "--yes")
    assert status == 0 and "1 sandboxes removed" in said
    no_claims(cluster, kept)
