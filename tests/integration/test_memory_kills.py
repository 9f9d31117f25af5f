"""A child that is killed at the memory limit is told of, however the command
that had it ends."""
import json
import signal

import pytest

from client import parse_events
from server import serving

EAT = "python3 -c 'x = b\"x\" * (1 << 30)'"


@pytest.fixture(scope="module", name="small")
def small_fixture(build, engine):
    """A server whose sandboxes have little memory."""
    with serving(build, engine, env={"DEFAULT_MEMORY_MB": 64}) as s:
        yield s


@pytest.fixture
def client(small):
    return small.client()


def text_and_final(client, *commands, **options):
    result = client.tool(
        "run_sandbox", identifier="box",
        commands=[{"shell": c} for c in commands],
        options={"await_timeout_ms": 60000, **options})
    return (result["content"][0]["text"],
            result["structuredContent"]["final"])


def command_ends(server, run):
    """The events command_finished of a run that has ended."""
    _, _, data = server.get(f"/mcp/events?run_id={run}", timeout=30)
    return [json.loads(e["data"]) for e in parse_events(data.decode())
            if e.get("event") == "command_finished"]


def test_a_command_that_ends_well_says_what_was_killed(small, client):
    text, final = text_and_final(client, "echo first", f"{EAT}; {EAT}; true")
    assert final["state"] == "completed"
    first, second = final["commands"]
    assert "memory_kills" not in first
    assert (second["end_reason"], second["exit_code"]) == ("exit", 0)
    assert second["memory_kills"] == 2
    assert text.endswith(
        "\nthe sandbox's memory limit killed 2 processes meanwhile\n")
    run = final["run_id"]
    view = small.get_json(f"/mcp/runs/{run}")
    assert view["commands"][1]["memory_kills"] == 2
    view = small.get_json(f"/api/v1/runs/{run}")
    assert [c["memory_kills"] for c in view["commands"]] == [0, 2]
    assert [e.get("memory_kills") for e in command_ends(small, run)] == \
        [None, 2]


def test_code_that_ends_well_says_what_was_killed(client):
    client.call("initialize_sandbox", identifier="code")
    result = client.tool("execute_code", identifier="code", language="bash",
                         code=f"{EAT}; echo on")
    assert result["structuredContent"]["status"] == "success"
    assert result["structuredContent"]["memory_kills"] == 1
    assert result["content"][0]["text"].endswith(
        "\nthe sandbox's memory limit killed 1 process meanwhile\n")


def test_a_command_that_is_killed_itself_says_so_once(client):
    text, final = text_and_final(client, f"exec {EAT}")
    assert final["end_reason"] == "memory"
    assert final["commands"][0]["memory_kills"] == 1
    assert "meanwhile" not in text


def test_kills_are_known_when_the_server_died_meanwhile(small, client):
    run = client.start("later", f"{EAT}; echo on; sleep 5; true")["run_id"]
    small.restart(signal.SIGKILL)
    client.wait_end(run, 90)
    assert client.status(run)["commands"][0]["memory_kills"] == 1
