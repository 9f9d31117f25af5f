"""Fixtures: the real engine, the real image, the real server.

Environment (set by ./bootstrap check): MCP_SANDBOXD_BUILD (directory of the
programs), DOCKER_HOST, SANDBOX_IMAGE, NODE_CLIENTS;
SANDBOX_CARRIER: unix, or bridge, where tests with the mark unix are left out;
SANDBOX_BACKEND: docker, or kubernetes, where these, those with the mark docker
and all that ask the engine by themselves are left out, and the sandboxes are
Pods of tests/cluster;
TEST_KUBECONFIG, TEST_AGENT_IMAGE: then they are Pods of that cluster, in its
context's namespace, and their agent is that image's.

server, client and sandbox are of one server that all tests share.  A test that
harms it, or wants settings, has the mark own: @pytest.mark.own(KEY=value); then
they are of a server of its own.  A module's mark holds for its tests, whose
settings come on top.
"""
import inspect
import itertools
import os
import pathlib
import shutil
import sys
import tempfile

import pytest

sys.path.insert(0, os.path.dirname(__file__))

from clusters import pod_cluster, remote_cluster  # noqa: E402
from receiver import Receiver  # noqa: E402
from server import (  # noqa: E402
    BACKEND, CARRIER, Engine, Program, Server, harm, serving)
from tenants import Tokens  # noqa: E402

names = itertools.count(1)


def pytest_configure(config):
    config.addinivalue_line("markers", "own(**settings): a server of its own")
    config.addinivalue_line(
        "markers", "unix(why): of the carrier of that name alone")
    config.addinivalue_line(
        "markers", "docker(why): of the backend of that name alone")


def is_left_out(item):
    """Of another carrier or backend than the one that is tested."""
    if CARRIER != "unix" and item.get_closest_marker("unix"):
        return True
    return BACKEND != "docker" and bool(
        item.get_closest_marker("docker") or
        "engine" in inspect.signature(item.function).parameters)


def pytest_collection_modifyitems(config, items):
    """What is of another carrier is not a test of this one."""
    left = [i for i in items if is_left_out(i)]
    if left:
        items[:] = [i for i in items if i not in left]
        config.hook.pytest_deselected(items=left)


@pytest.fixture(scope="session")
def build():
    path = os.environ.get("MCP_SANDBOXD_BUILD")
    assert path, "MCP_SANDBOXD_BUILD is not set: run ./bootstrap check"
    return path


@pytest.fixture(scope="session")
def engine():
    host = os.environ.get("DOCKER_HOST")
    assert host, "DOCKER_HOST is not set: run ./bootstrap check"
    return Engine(host)


@pytest.fixture(scope="session", autouse=True)
def tested_cluster(request):
    """Where the sandboxes of all tests are Pods."""
    if BACKEND != "kubernetes":
        yield None
        return
    if "TEST_KUBECONFIG" in os.environ:
        one = remote_cluster(os.environ["TEST_KUBECONFIG"],
                             os.environ["TEST_AGENT_IMAGE"])
    else:
        one = pod_cluster(*map(request.getfixturevalue, ("engine", "build")))
    with one as c:
        os.environ.update(c.settings())
        Server.tidy = staticmethod(c.remove_pods)
        yield c


@pytest.fixture(scope="session")
def shared_server(build, engine):
    """One server for all tests that do not harm it."""
    with serving(build, engine) as s:
        yield s


@pytest.fixture
def make_server(build, engine):
    """Servers of one test's own: make_server(env=..., args=...)."""
    made = []

    def make(build=build, **kwargs):
        s = Server(build, **kwargs)
        made.append(s)
        return s

    yield make
    bad = [n for s in made for n in harm(s.log)]
    for s in made:
        s.hang_up()
        s.destroy(engine)
    assert not bad, bad


@pytest.fixture(scope="module")
def whole_cluster(engine, build):
    """Of a module that has it do what no other test could stand."""
    with pod_cluster(engine, build) as c:
        yield c


@pytest.fixture
def cluster(whole_cluster):
    yield whole_cluster
    whole_cluster.faults.reset()


@pytest.fixture
def make_podded(make_server, cluster):
    """A server whose one worker makes Pods; quick to see silence."""
    def make(wait=True, **env):
        return make_server(wait=wait, env=cluster.settings(
            WORKERS="1", AGENT_PING_MS="500", **env))
    return make


@pytest.fixture
def podded(make_podded):
    return make_podded()


@pytest.fixture
def server(request):
    marks = list(request.node.iter_markers("own"))  # the closest first
    if not marks:
        return request.getfixturevalue("shared_server")
    env = {k: v for m in reversed(marks) for k, v in m.kwargs.items()}
    return request.getfixturevalue("make_server")(env=env)


@pytest.fixture
def client(server):
    c = server.client()
    yield c
    c.close()


@pytest.fixture
def ctl(server):
    return server.ctl


@pytest.fixture
def sandbox(client):
    """A fresh identifier, deleted afterwards."""
    name = f"t{os.getpid()}-{next(names)}"
    yield name
    client.delete(name)


@pytest.fixture
def make_receiver():
    made = []

    def make(**kwargs):
        made.append(Receiver(**kwargs))
        return made[-1]

    yield make
    for r in made:
        r.close()


@pytest.fixture
def receiver(make_receiver):
    return make_receiver()


@pytest.fixture
def place():
    """A directory of root's alone, but not below others that are."""
    path = pathlib.Path(tempfile.mkdtemp(prefix="mcp-sandboxd-place-"))
    yield path
    shutil.rmtree(path)


@pytest.fixture
def open_place(place):
    """Where other users get to: tmp_path is in what pytest shuts."""
    place.chmod(0o755)
    return place


@pytest.fixture
def program(build, engine):
    p = Program(build)
    yield p
    shutil.rmtree(p.top)


@pytest.fixture
def tokens(open_place):
    """Where the front's user gets to."""
    return Tokens(open_place / "tenants")


@pytest.hookimpl(hookwrapper=True)
def pytest_runtest_makereport(item, call):
    """A failed test shows the server's last lines."""
    report = (yield).get_result()
    if report.when == "call" and report.failed:
        for value in getattr(item, "funcargs", {}).values():
            if isinstance(value, Server):
                report.sections.append(("server log", value.tail()))
