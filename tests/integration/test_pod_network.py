"""Sandboxes that are Pods have no network, and none is made where that is not
known."""
import pytest

from client import wait_for
from clusters import PREFIX, pod_cluster

POLICIES = "/apis/networking.k8s.io/v1/namespaces/{}/networkpolicies"
NAME = "mcp-sandboxd-no-network"


@pytest.fixture(scope="module")
def whole_cluster(engine, build):
    with pod_cluster(engine, build) as c:
        yield c


@pytest.fixture
def cluster(whole_cluster):
    yield whole_cluster
    whole_cluster.faults.reset()
    path = policies(whole_cluster)
    for item in whole_cluster.running.ask("GET", path)[1]["items"]:
        whole_cluster.running.ask(
            "DELETE", f"{path}/{item['metadata']['name']}")


@pytest.fixture
def make_closed(make_server, cluster):
    """A server that makes no sandbox before it knows."""
    def make(**env):
        return make_server(wait="port", env=cluster.settings(**{
            "WORKERS": "1", "KUBERNETES_ALLOW_UNENFORCED_NETWORK": "false",
            **env}))
    return make


def policies(cluster):
    return POLICIES.format(cluster.running.namespace)


def policy(cluster):
    """(status, object)"""
    return cluster.running.ask("GET", f"{policies(cluster)}/{NAME}")


def all_pods(cluster):
    return [p["metadata"]["name"] for p in cluster.ask("GET", "pods")["items"]]


def make_policy(cluster, **spec):
    status, said = cluster.running.ask("POST", policies(cluster), {
        "apiVersion": "networking.k8s.io/v1", "kind": "NetworkPolicy",
        "metadata": {"name": NAME}, "spec": {
            "podSelector": {"matchLabels": {f"{PREFIX}/network": "none"}},
            "policyTypes": ["Ingress", "Egress"], **spec}})
    assert status == 201, said


def test_the_policy_is_made_tried_and_holds(make_closed, cluster):
    server = make_closed()
    server.wait_log("cluster enforces NetworkPolicies: it was tried")
    wait_for(server.is_ready, 60, "readiness")
    wait_for(lambda: all_pods(cluster) == [], 30, "no Pod")
    assert policy(cluster)[1]["spec"] == {
        "podSelector": {"matchLabels": {f"{PREFIX}/network": "none"}},
        "policyTypes": ["Ingress", "Egress"]}
    client = server.client()
    client.run("a", "true")
    name, pod = cluster.pod(server)
    assert pod["metadata"]["labels"][f"{PREFIX}/network"] == "none"
    assert network_of(server) == "none"


def network_of(server):
    """As what holds a sandbox is told."""
    return server.client().get("/api/v1/sandboxes/a")["isolation"]["network"]


def test_a_policy_that_is_there_is_enough_to_check(make_closed, cluster):
    make_policy(cluster)
    server = make_closed(KUBERNETES_NETWORK_POLICY="check")
    wait_for(server.is_ready, 60, "readiness")


def test_a_policy_that_is_missing_is_told_and_found_later(
        make_closed, cluster):
    server = make_closed(KUBERNETES_NETWORK_POLICY="check")
    server.wait_log(f"there is no NetworkPolicy {NAME}")
    assert server.get("/readyz")[0] == 503
    assert f"no NetworkPolicy {NAME}" in server.client().refused("a", "true")
    assert policy(cluster)[0] == 404


@pytest.mark.parametrize("spec, word", [
    ({"egress": [{}]}, "lets something through (egress)"),
    ({"ingress": [{}]}, "lets something through (ingress)"),
    ({"policyTypes": ["Ingress"]}, "lets something through (egress)"),
    ({"podSelector": {"matchLabels": {"app": "other"}}}, "does not select")])
def test_a_policy_that_lets_something_through_is_told(
        make_closed, cluster, spec, word):
    make_policy(cluster, **spec)
    server = make_closed()
    server.wait_log(word)
    assert server.get("/readyz")[0] == 503


def test_a_cluster_that_does_not_enforce_gets_no_sandbox(
        make_closed, cluster):
    cluster.faults.enforce_policies(on=False)
    server = make_closed()
    server.wait_log("the cluster does not enforce NetworkPolicies")
    assert server.get("/readyz")[0] == 503
    assert "does not enforce NetworkPolicies" in \
        server.client().refused("a", "true")
    wait_for(lambda: all_pods(cluster) == [], 30, "no Pod")


def test_who_allows_it_has_sandboxes_all_the_same(make_closed, cluster):
    cluster.faults.enforce_policies(on=False)
    server = make_closed(KUBERNETES_ALLOW_UNENFORCED_NETWORK="true")
    wait_for(server.is_ready, 60, "readiness")
    server.client().run("a", "true")
    assert network_of(server) == "none, not proven"
    assert policy(cluster)[0] == 404


def test_where_none_can_be_tried_it_is_not_known(make_closed, cluster):
    server = make_closed(KUBERNETES_AGENT_IMAGE="localhost/none:1")
    server.wait_log("whether NetworkPolicies are enforced is not known",
                    "ErrImageNeverPull")
    assert server.get("/readyz")[0] == 503
    wait_for(lambda: all_pods(cluster) == [], 30, "no Pod")


def test_a_right_that_is_missing_for_it_is_named(make_closed, cluster):
    rules = cluster.rules()
    cluster.faults.take_right(resource="networkpolicies")
    try:
        server = make_closed()
        server.wait_log("NetworkPolicy " + NAME, "networkpolicies")
    finally:
        cluster.faults.set_rules(rules=rules)
    assert server.get("/readyz")[0] == 503


def test_two_workers_try_beside_each_other(make_closed, cluster):
    server = make_closed(WORKERS="2")
    wait_for(server.is_ready, 60, "readiness")
    wait_for(lambda: all_pods(cluster) == [], 30, "no Pod")
