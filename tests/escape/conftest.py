"""A real server for all probes; the environment is ./bootstrap check's."""
import os
import sys

import pytest

HERE = os.path.dirname(os.path.abspath(__file__))
sys.path[:0] = [HERE, os.path.join(os.path.dirname(HERE), "integration")]

from server import Engine, Server  # noqa: E402


@pytest.fixture(scope="session")
def server():
    build = os.environ.get("MCP_SANDBOXD_BUILD")
    host = os.environ.get("DOCKER_HOST")
    assert build and host, "run ./bootstrap check"
    s = Server(build)
    yield s
    s.destroy(Engine(host))


@pytest.fixture
def client(server):
    c = server.client()
    yield c
    c.close()


@pytest.fixture(params=["sandbox", "root"])
def user(request):
    return request.param
