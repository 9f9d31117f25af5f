"""What agents say of themselves, in the server's log."""
import json
import os
import re
import signal

import pytest

from client import wait_for


@pytest.fixture
def server(make_server):
    return make_server(env={"LOG_FORMAT": "json", "WORKERS": "1"})


def events(server, message=None):
    """Lines of agents as objects, in their order."""
    found = [json.loads(n) for n in server.log if '"said_by":"agent"' in n]
    return [f for f in found if message in (None, f["msg"])]


def wait_for_event(server, message, count=1):
    wait_for(lambda: len(events(server, message)) >= count, 60, message)
    return events(server, message)[-1]


def asked(server, run):
    """The request's id, as the run's own line has it."""
    def line():
        return [n for n in map(json.loads, server.log)
                if n["msg"] == "run ended" and n["run"] == run]
    return wait_for(line, 60, "the run's line")[0]


def test_an_agent_that_comes_says_its_version(server):
    client = server.client()
    client.run("box", "true")
    line = wait_for_event(server, "agent is there")
    assert line["role"].startswith("worker")
    assert (line["level"], line["sandbox"], line["tenant"]) == \
        ("info", "box", "1")
    assert re.fullmatch(r"version \S+, link \d+", line["detail"])
    assert "run" not in line and "dropped" not in line


def test_a_killed_command_is_said_with_run_and_request(server):
    client = server.client()
    client.run("box", "true", "exit 3")
    run = client.run("box", {"shell": "sleep 600", "timeout_ms": 50})["run_id"]
    line = wait_for_event(server, "agent ended a command")
    whole = asked(server, run)
    assert whole["request"]
    for field in ("run", "request", "sandbox", "tenant"):
        assert line[field] == whole[field], field
    assert line["level"] == "info"
    assert re.fullmatch(r"command 0 after \d+ ms: timeout", line["detail"])
    # Of those that ended by themselves nothing was said.
    assert len(events(server)) == 2


def test_memory_that_was_too_much_is_a_warning(server):
    client = server.client()
    run = client.run("box", {"argv": [
        "python3", "-c", "x = bytearray(3 << 30)\n"
        "for i in range(0, len(x), 4096): x[i] = 1"]})["run_id"]
    line = wait_for_event(server, "agent saw kills for want of memory")
    assert (line["level"], line["run"]) == ("warn", run)
    assert line["request"] == asked(server, run)["request"]


def test_another_worker_still_knows_whose_the_lines_are(server):
    client = server.client()
    run = client.start("box", {"shell": "echo on; sleep 600",
                               "timeout_ms": 600000})["run_id"]
    wait_for(lambda: client.status(run)["state"] == "running", 60, "it")
    old = server.pids("worker")
    os.kill(old[0], signal.SIGKILL)
    wait_for(lambda: server.pids("worker") not in ([], old), 60, "another")
    wait_for(server.is_ready, 60, "readiness")
    client = server.client()
    client.call("control_run", run_id=run, action="cancel")
    line = wait_for_event(server, "agent ended a command")
    whole = asked(server, run)
    assert (line["run"], line["request"], line["sandbox"]) == \
        (run, whole["request"], "box")
    # It came back; that is not worth a line.
    assert len(events(server, "agent is there")) == 1


def test_at_level_debug_each_command_has_two_lines(make_server):
    server = make_server(env={"LOG_FORMAT": "json", "LOG_LEVEL": "debug"})
    client = server.client()
    run = client.run("box", "true", "exit 3")["run_id"]
    request = asked(server, run)["request"]
    found = [(f["msg"], f["command"], f.get("exit_code"))
             for f in events(server)
             if f.get("run") == run and f["request"] == request and
             f["level"] == "debug"]
    assert found == [
        ("command started", "0", None), ("command ended", "0", "0"),
        ("command started", "1", None), ("command ended", "1", "3")]
