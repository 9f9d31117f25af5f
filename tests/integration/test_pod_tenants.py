"""A namespace for each tenant's Pods: KUBERNETES_SANDBOX_NAMESPACE with
"{tenant}" in it."""
import signal

import pytest

from client import stdout, wait_for
from clusters import pod_cluster
from tenants import Tenant

TENANTS = ("acme", "globex")
POLICY = "mcp-sandboxd-no-network"


def room(tenant):
    return f"sandboxes-{tenant}"


@pytest.fixture(scope="module")
def whole_cluster(engine, build):
    with pod_cluster(engine, build) as c:
        yield c


@pytest.fixture
def cluster(whole_cluster):
    """With a namespace for each of two tenants."""
    for tenant in TENANTS:
        whole_cluster.faults.open_namespace(name=room(tenant))
    yield whole_cluster
    whole_cluster.faults.reset()


@pytest.fixture
def make_roomy(make_server, cluster):
    def make(wait=True, **env):
        return make_server(wait=wait, env=cluster.settings(**{
            "KUBERNETES_SANDBOX_NAMESPACE": "sandboxes-{tenant}",
            "WORKERS": "1", "AGENT_PING_MS": "500", **env}))
    return make


@pytest.fixture
def roomy(make_roomy):
    return make_roomy()


@pytest.fixture
def tenants(roomy):
    return [Tenant(roomy, name) for name in TENANTS]


def clients(tenants):
    return [t.client for t in tenants]


def uids(server, cluster):
    return [cluster.pod(server, room(t))[1]["metadata"]["uid"]
            for t in TENANTS]


def detail(server):
    """What is said of the engine of the only worker."""
    return server.ctl.json("status")["engine"][0]["detail"] or ""


# ---- whose Pods are where

def test_each_tenants_pods_are_in_its_namespace(roomy, cluster, tenants):
    for client in clients(tenants):
        assert client.out("a", "echo on") == "on\n"
    assert cluster.pods(roomy) == {}
    for tenant in TENANTS:
        pod = cluster.pod(roomy, room(tenant))[1]
        assert pod["metadata"]["annotations"]["mcp-sandboxd/tenant"] == tenant


def test_a_deleted_sandbox_is_gone_from_its_namespace_alone(
        roomy, cluster, tenants):
    a, b = clients(tenants)
    a.run("a", "true")
    b.run("a", "echo kept >file")
    a.delete("a")
    assert cluster.pods(roomy, room("acme")) == {}
    assert b.out("a", "cat file") == "kept\n"


def test_a_pod_that_is_deleted_is_its_own_tenants_loss(
        roomy, cluster, tenants):
    runs = []
    for client in clients(tenants):
        runs.append(client.start(
            "a", "echo on; until [ -e go ]; do sleep 0.05; done")["run_id"])
        client.wait_output(runs[-1])
    name, _ = cluster.pod(roomy, room("acme"))
    cluster.faults.delete_pod(pod=f"{room('acme')}/{name}")
    a, b = clients(tenants)
    assert a.wait_end(runs[0])["end_reason"] == "sandbox_lost"
    b.run("a", "touch go")
    assert b.wait_end(runs[1])["state"] == "completed"


def test_a_tenants_files_are_in_its_namespace_and_outlive_its_pod(
        make_roomy, cluster):
    server = make_roomy(KUBERNETES_VOLUME_CLASS="standard")
    a, b = (Tenant(server, name).client for name in TENANTS)
    for client in (a, b):
        client.run("a", "echo kept >file")
    name, _ = cluster.pod(server, room("acme"))
    cluster.faults.evict(pod=f"{room('acme')}/{name}")
    server.wait_log("is lost")
    assert a.out("a", "cat file") == "kept\n"
    for client, tenant in zip((a, b), TENANTS):
        assert len(cluster.claims(server, room(tenant))) == 1
        client.delete("a")
        wait_for(lambda of=room(tenant): cluster.claims(server, of) == {}, 60,
                 "no claim")


# ---- what is missing in one

def test_a_tenant_without_a_namespace_is_refused_with_its_name(
        roomy, cluster, tenants):
    other = Tenant(roomy, "initech")
    said = other.client.refused("a", "true")
    assert room("initech") in said and "a right is missing" in said
    assert tenants[0].client.out("a", "echo on") == "on\n"
    assert roomy.is_ready()
    assert room("initech") in detail(roomy)
    cluster.faults.open_namespace(name=room("initech"))
    wait_for(lambda: detail(roomy) == "", 30, "nothing that lacks")
    assert other.client.out("a", "echo on") == "on\n"


def test_a_name_that_gives_no_namespace_is_refused(roomy, tenants):
    said = Tenant(roomy, "Initech_1").client.refused("a", "true")
    assert '"sandboxes-Initech_1"' in said and "no name of at most 63" in said
    assert tenants[0].client.out("a", "echo on") == "on\n"


def test_a_right_that_is_taken_in_one_namespace_is_missing_there(
        roomy, cluster, tenants):
    cluster.faults.take_right(resource="pods/exec", namespace=room("acme"))
    said = tenants[0].client.refused("a", "true")
    assert f"namespace {room('acme')}: we may not" in said
    assert "create pods/exec" in said
    assert tenants[1].client.out("a", "echo on") == "on\n"
    assert roomy.is_ready()


def test_a_quota_that_is_full_is_its_own_tenants(roomy, cluster, tenants):
    a, b = clients(tenants)
    a.run("a", "true")
    cluster.limit_pods("1", namespace=room("acme"))
    said = a.refused("b", "true")
    assert said.startswith("quota_exceeded: ") and "exceeded quota: few" in said
    assert a.out("a", "echo on") == b.out("a", "echo on") == "on\n"


def test_a_ceiling_of_all_counts_in_all_namespaces(make_roomy, cluster):
    server = make_roomy(TOTAL_CEILING="sandboxes=1")
    a, b = (Tenant(server, name).client for name in TENANTS)
    a.run("a", "true")
    said = b.tool("initialize_sandbox", identifier="a")
    assert "this server has its ceiling of 1 sandboxes" in str(said)
    a.delete("a")
    assert b.out("a", "echo on") == "on\n"


# ---- restarts, and what is left

def test_a_restarted_server_takes_over_the_pods_of_all(
        roomy, cluster, tenants):
    for client in clients(tenants):
        client.run("a", "echo kept >file")
    before = uids(roomy, cluster)
    roomy.restart()
    for tenant in tenants:
        client = roomy.client(token=tenant.token)
        assert client.out("a", "cat file") == "kept\n"
    assert uids(roomy, cluster) == before


def test_a_killed_worker_costs_no_run_of_either(roomy, cluster, tenants):
    runs = []
    for client in clients(tenants):
        runs.append(client.start(
            "a", "echo one; until [ -e go ]; do sleep 0.05; done; echo two")[
                "run_id"])
        client.wait_output(runs[-1])
    before = uids(roomy, cluster)
    roomy.kill("worker")
    for client, run in zip(clients(tenants), runs):
        client.run("a", "touch go")
        assert stdout(client.wait_end(run)) == "one\ntwo\n"
    assert uids(roomy, cluster) == before


def test_what_the_database_forgot_goes_in_each_namespace(
        make_roomy, cluster):
    server = make_roomy(UNKNOWN_KEEP_SECONDS="0")
    for name in TENANTS:
        Tenant(server, name).client.run("a", "true")
    server.stop(signal.SIGKILL)
    server.change("DELETE FROM run", "DELETE FROM sandbox")
    server.start()
    for name in TENANTS:
        wait_for(lambda n=name: cluster.pods(server, room(n)) == {}, 60,
                 "no Pod")


def test_all_workers_know_of_all_namespaces(make_roomy, cluster):
    """One sweeps, which may have made none of the sandboxes."""
    server = make_roomy(WORKERS="2", UNKNOWN_KEEP_SECONDS="0")
    made = [Tenant(server, name) for name in TENANTS]
    for i in range(2):
        for tenant in made:
            tenant.client.run(f"box-{i}", "true")
    server.stop(signal.SIGKILL)
    server.change("DELETE FROM run", "DELETE FROM sandbox")
    server.start()
    for name in TENANTS:
        wait_for(lambda n=name: cluster.pods(server, room(n)) == {}, 60,
                 "no Pod")


def test_a_pod_that_pretends_to_be_anothers_is_not_believed(
        roomy, cluster, tenants):
    """Who may make Pods in a tenant's namespace can write any label."""
    a, b = clients(tenants)
    a.run("a", "true")
    b.run("a", "echo kept >file")
    name, pod = cluster.pod(roomy, room("globex"))
    meta = pod["metadata"]
    cluster.ask("POST", "pods", namespace=room("acme"), body={
        "apiVersion": "v1", "kind": "Pod", "metadata": {
            "name": name, "labels": meta["labels"],
            "annotations": meta["annotations"]},
        "spec": {"containers": [{"name": "sandbox", "image": "none",
                                 "imagePullPolicy": "Never"}]}})
    cluster.faults.delete_pod(pod=f"{room('acme')}/{name}")
    assert b.out("a", "cat file") == "kept\n"


# ---- a cluster that is away

def test_a_cluster_that_is_away_is_so_for_all(roomy, cluster, tenants):
    for client in clients(tenants):
        client.run("a", "echo kept >file")
    cluster.faults.go_away()
    wait_for(lambda: roomy.get("/readyz")[0] == 503, 30, "no readiness")
    cluster.faults.come_back()
    wait_for(roomy.is_ready, 60, "readiness")
    for client in clients(tenants):
        assert client.out("a", "cat file") == "kept\n"


def test_a_cluster_is_looked_for_before_it_has_a_tenant(make_roomy, cluster):
    cluster.faults.go_away()
    server = make_roomy(wait="port")
    server.wait_log("cluster: ", str(cluster.running.port))
    assert server.get("/readyz")[0] == 503
    cluster.faults.come_back()
    wait_for(server.is_ready, 60, "readiness")


# ---- the network

@pytest.fixture
def closed(make_roomy):
    return make_roomy(KUBERNETES_ALLOW_UNENFORCED_NETWORK="false")


def test_each_namespaces_network_is_tried_by_itself(closed, cluster):
    cluster.faults.enforce_policies(on=False, namespace=room("acme"))
    a, b = (Tenant(closed, name).client for name in TENANTS)
    said = a.refused("a", "true")
    assert f"namespace {room('acme')}: the cluster does not enforce" in said
    assert b.out("a", "echo on") == "on\n"
    for name in TENANTS:
        assert policy_of(cluster, name) == 200
    assert policy_of(cluster, None) == 404
    assert "does not enforce" in detail(closed) and closed.is_ready()


def policy_of(cluster, tenant):
    space = room(tenant) if tenant else cluster.running.namespace
    return cluster.running.ask(
        "GET", f"/apis/networking.k8s.io/v1/namespaces/{space}/"
        f"networkpolicies/{POLICY}")[0]


# ---- without a server

def test_a_purge_says_where_to_look(roomy, cluster, program):
    roomy.stop()
    roomy.stop()
    done = program("purge", "--yes", **cluster.settings(
        KUBERNETES_SANDBOX_NAMESPACE="sandboxes-{tenant}",
        DATA_DIR=roomy.data))
    assert done.returncode == 1
    assert "kubectl delete pods -n NAMESPACE" in done.stderr


def test_the_settings_are_checked(cluster, program):
    done = program("--check-config", **cluster.settings(
        KUBERNETES_SANDBOX_NAMESPACE="sandboxes-{tenant}"))
    assert done.returncode == 0, done.stderr
    program.refuses("--check-config", words=(
        "KUBERNETES_SANDBOX_NAMESPACE",), **cluster.settings(
        KUBERNETES_SANDBOX_NAMESPACE="{tenant}"))
