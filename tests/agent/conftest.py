import os

import pytest

from host import Sandbox


@pytest.fixture(name="agent", scope="session")
def agent_fixture():
    """The real binary."""
    path = os.environ.get("SANDBOX_AGENT", "")
    assert os.access(path, os.X_OK), (
        "set SANDBOX_AGENT to the agent's binary")
    assert os.geteuid() == 0, "these tests need root"
    return path


@pytest.fixture(name="sandbox")
def sandbox_fixture(agent):
    sandbox = Sandbox(agent)
    yield sandbox
    alive = sandbox.is_agent_running()
    sandbox.close()
    assert alive, "the agent died"


@pytest.fixture(name="host")
def host_fixture(sandbox):
    return sandbox.host
