"""A real server for all probes; the environment is ./bootstrap check's."""
import os
import sys
import tempfile

import pytest

HERE = os.path.dirname(os.path.abspath(__file__))
sys.path[:0] = [HERE, os.path.join(os.path.dirname(HERE), "integration")]

from server import Engine, Server  # noqa: E402
from tenants import Tokens  # noqa: E402


@pytest.fixture(scope="session")
def server():
    build = os.environ.get("MCP_SANDBOXD_BUILD")
    host = os.environ.get("DOCKER_HOST")
    assert build and host, "run ./bootstrap check"
    s = Server(build)
    yield s
    s.destroy(Engine(host))


@pytest.fixture(scope="session")
def tenants():
    """A server of two tenants, and a client of each."""
    with tempfile.TemporaryDirectory(prefix="mcp-walls-") as top:
        os.chmod(top, 0o755)
        tokens = Tokens(os.path.join(top, "tenants"))
        made = [tokens.tenant(n) for n in ("alpha", "beta")]
        s = Server(os.environ["MCP_SANDBOXD_BUILD"],
                   env={"TENANTS_FILE": tokens.write()})
    clients = [s.client(token=t) for t in made]
    yield s, clients
    for c in clients:
        c.close()
    s.destroy(Engine(os.environ["DOCKER_HOST"]))


@pytest.fixture
def client(server):
    c = server.client()
    yield c
    c.close()


@pytest.fixture(params=["sandbox", "root"])
def user(request):
    return request.param
