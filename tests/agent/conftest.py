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


@pytest.fixture(name="make_sandbox")
def make_sandbox_fixture(agent):
    """Sandboxes with settings, of which the test knows how they end."""
    made = []

    def make(**more):
        made.append(Sandbox(agent, **more))
        return made[-1]

    yield make
    for sandbox in made:
        sandbox.close()


@pytest.fixture(name="sandbox")
def sandbox_fixture(make_sandbox):
    sandbox = make_sandbox()
    yield sandbox
    assert sandbox.is_agent_running(), "the agent died"


@pytest.fixture(name="host")
def host_fixture(sandbox):
    return sandbox.host
