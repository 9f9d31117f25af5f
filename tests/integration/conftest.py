"""Fixtures: the real engine, the real image, the real server.

Environment (set by ./bootstrap check): MCP_SANDBOXD_BUILD (directory of the
programs), DOCKER_HOST, SANDBOX_IMAGE, NODE_CLIENTS.
"""
import itertools
import os
import sys

import pytest

sys.path.insert(0, os.path.dirname(__file__))

from server import Engine, Server, harm  # noqa: E402

names = itertools.count(1)


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


@pytest.fixture(scope="session")
def server(build, engine):
    """One server for all tests that do not harm it."""
    s = Server(build)
    yield s
    bad = harm(s.log)
    s.destroy(engine)
    assert not bad, bad


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
        s.destroy(engine)
    assert not bad, bad


@pytest.fixture
def client(server):
    c = server.client()
    yield c
    c.close()


@pytest.fixture
def sandbox(client):
    """A fresh identifier, deleted afterwards."""
    name = f"t{os.getpid()}-{next(names)}"
    yield name
    client.call("delete_sandbox", identifier=name)


@pytest.hookimpl(hookwrapper=True)
def pytest_runtest_makereport(item, call):
    """A failed test shows the server's last lines."""
    report = (yield).get_result()
    if report.when == "call" and report.failed:
        for value in getattr(item, "funcargs", {}).values():
            if isinstance(value, Server):
                report.sections.append(("server log", value.tail()))
