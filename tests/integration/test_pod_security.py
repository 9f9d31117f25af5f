"""Pods at the level "restricted", in a namespace that wants it."""
import pytest

from client import stdout, wait_for
from clusters import pod_cluster

LEVEL = "pod-security.kubernetes.io/enforce"


@pytest.fixture(scope="module")
def cluster(engine, build):
    with pod_cluster(engine, build) as c:
        path = f"/api/v1/namespaces/{c.running.namespace}"
        namespace = c.running.ask("GET", path)[1]
        namespace["metadata"].setdefault("labels", {})[LEVEL] = "restricted"
        status, said = c.running.ask("PUT", path, namespace)
        assert status == 200, said
        yield c


@pytest.fixture
def restricted(make_server, cluster):
    return make_server(env=cluster.settings(
        WORKERS="1", KUBERNETES_SECURITY="restricted",
        KUBERNETES_ALLOW_UNENFORCED_NETWORK="false"))


def test_all_that_is_not_roots_works(restricted, cluster):
    client = restricted.client()
    view = client.run("a", "id -u; id -g; echo made >/artifacts/x; "
                      "grep CapEff /proc/self/status; pwd; echo $HOME")
    assert stdout(view).split() == [
        "1000", "1000", "CapEff:", "0" * 16, "/workspace", "/home/sandbox"]
    assert [a["path"] for a in view["artifacts"]] == ["x"]
    code = client.tool("execute_code", identifier="a", code="print(6*7)")
    assert "42" in str(code)
    client.delete("a")
    wait_for(lambda: cluster.pods(restricted) == {}, 30, "no Pod")


def test_root_is_refused_with_the_reason(restricted):
    view = restricted.client().run("a", "id", as_user="root")
    command, = view["commands"]
    assert command["end_reason"] == "start_failed"
    assert "there is no root in this sandbox" in command["error"]


def test_where_root_may_not_be_a_pod_that_has_it_is_refused(
        make_server, cluster):
    server = make_server(wait="port", env=cluster.settings(WORKERS="1"))
    assert "violates PodSecurity" in server.client().refused("a", "true")
