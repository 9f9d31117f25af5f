"""One server for all pages, as their reader would have it.

Environment: as for tests/integration.
"""
import os
import subprocess
import sys

import pytest

HERE = os.path.dirname(os.path.abspath(__file__))
sys.path.insert(0, HERE)
sys.path.insert(0, os.path.join(os.path.dirname(HERE), "integration"))

from pages import SHOWN_AT, Elsewhere  # noqa: E402
from server import Engine, Server, users  # noqa: E402


@pytest.fixture(scope="session")
def build():
    path = os.environ.get("MCP_SANDBOXD_BUILD")
    assert path, "MCP_SANDBOXD_BUILD is not set: run ./bootstrap check"
    return path


@pytest.fixture(scope="session")
def server(build):
    s = Server(build)
    yield s
    s.destroy(Engine(os.environ["DOCKER_HOST"]))


@pytest.fixture(scope="session")
def base(server):
    return f"http://127.0.0.1:{server.port}"


@pytest.fixture
def shown(base, build, shell_env):
    """What stands on the pages for what; a page's own server goes with all
    that it has on the engine, however far the page came."""
    elsewhere = Elsewhere()
    yield [(SHOWN_AT, base), *elsewhere.shown()]
    data = os.path.join(elsewhere.top, "var/lib/mcp-sandboxd")
    if os.path.exists(data):
        subprocess.run(
            [os.path.join(build, "mcp-sandboxd"), "purge", "--yes",
             f"DATA_DIR={data}"], env=shell_env, check=True, timeout=60)
    elsewhere.close()


@pytest.fixture(scope="session")
def shell_env(build, tmp_path_factory):
    """A shell's environment in which the programs are installed."""
    bin_dir = tmp_path_factory.mktemp("bin")
    for program in ("mcp-sandboxd", "sandboxctl"):
        os.symlink(os.path.join(build, program), bin_dir / program)
    env = {"PATH": f"{bin_dir}:/usr/bin:/bin:/usr/sbin:/sbin",
           "HOME": str(tmp_path_factory.mktemp("home")), "LC_ALL": "C.UTF-8"}
    keep = ("DOCKER_HOST", "SANDBOX_IMAGE", "TMPDIR", "ASAN_OPTIONS",
            "UBSAN_OPTIONS")
    env.update({k: os.environ[k] for k in keep if k in os.environ})
    env.update(users(build))  # for servers of the page's own
    return env
