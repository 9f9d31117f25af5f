"""Fixtures: the real engine and a real worker, driven by driver.py.

Environment: MCP_SANDBOXD_BUILD (directory of the worker and of the agent),
DOCKER_HOST (unix://...).
"""
import os
import sys

import pytest

sys.path.insert(0, os.path.dirname(__file__))

import driver  # noqa: E402

# Of this process: several may use one engine, and each takes its own away.
IMAGE = f"mcp-sandboxd/worker-test-{os.getpid()}"
FOREIGN = f"mcp-sandboxd/foreign-test-{os.getpid()}"


@pytest.fixture(scope="session")
def build():
    path = os.environ.get("MCP_SANDBOXD_BUILD", "")
    for program in ("mcp-sandboxd-worker", "sandbox-agent"):
        assert os.access(os.path.join(path, program), os.X_OK), (
            f"set MCP_SANDBOXD_BUILD to the directory that has {program}")
    return path


@pytest.fixture(scope="session")
def engine():
    host = os.environ.get("DOCKER_HOST", "")
    assert host.startswith("unix://"), "set DOCKER_HOST to unix:///path"
    e = driver.Engine(host.removeprefix("unix://"))
    e.import_image(IMAGE)
    e.import_image(FOREIGN, places=False)
    yield e
    # No container is left that would keep one without its name.
    for tag in e.image_tags():
        if f"-{os.getpid()}:" in tag:
            status, data = e.request("DELETE", f"/images/{tag}")
            assert status == 200, data


@pytest.fixture
def make_worker(build, engine):
    made = []

    def make(**config):
        w = driver.Worker(build, engine, IMAGE + ":latest", **config)
        made.append(w)
        return w

    yield make
    bad = [line for w in made for line in w.log().splitlines()
           if "Sanitizer" in line or "runtime error" in line]
    for w in made:
        w.destroy()
    assert not bad, "\n".join(bad)


@pytest.fixture
def worker(make_worker):
    return make_worker().start()


@pytest.fixture
def relay(engine, tmp_path):
    r = driver.Relay(engine, str(tmp_path))
    yield r
    r.close()
