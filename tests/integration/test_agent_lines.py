"""What agents say of themselves, in the server's log."""
import json
import os
import re
import shutil
import sys
import time
import uuid

import pytest

from client import TOO_MUCH, wait_for
from server import write

sys.path.append(os.path.join(os.path.dirname(os.path.dirname(
    os.path.abspath(__file__))), "agent"))

import wire  # noqa: E402


pytestmark = pytest.mark.own(LOG_FORMAT="json", WORKERS=1)


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


def test_an_agent_that_comes_says_its_version(server, client):
    client.run("box", "true")
    line = wait_for_event(server, "agent is there")
    assert line["role"].startswith("worker")
    assert (line["level"], line["sandbox"], line["tenant"]) == \
        ("info", "box", "1")
    assert re.fullmatch(r"version \S+, link \d+", line["detail"])
    assert "run" not in line and "dropped" not in line


def test_a_killed_command_is_said_with_run_and_request(server, client):
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


def test_memory_that_was_too_much_is_a_warning(server, client):
    run = client.run("box", TOO_MUCH)["run_id"]
    line = wait_for_event(server, "agent saw kills for want of memory")
    assert (line["level"], line["run"]) == ("warn", run)
    assert line["request"] == asked(server, run)["request"]


def test_another_worker_still_knows_whose_the_lines_are(server, client):
    run = client.start("box", {"shell": "echo on; sleep 600",
                               "timeout_ms": 600000})["run_id"]
    client.wait_state(run)
    server.kill("worker")
    client.cancel(run)
    line = wait_for_event(server, "agent ended a command")
    whole = asked(server, run)
    assert (line["run"], line["request"], line["sandbox"]) == \
        (run, whole["request"], "box")
    # It came back; that is not worth a line.
    assert len(events(server, "agent is there")) == 1


@pytest.mark.own(LOG_FORMAT="json", LOG_LEVEL="debug")
def test_at_level_debug_each_command_has_two_lines(server, client):
    run = client.run("box", "true", "exit 3")["run_id"]
    request = asked(server, run)["request"]
    found = [(f["msg"], f["command"], f.get("exit_code"))
             for f in events(server)
             if f.get("run") == run and f["request"] == request and
             f["level"] == "debug"]
    assert found == [
        ("command started", "0", None), ("command ended", "0", "0"),
        ("command started", "1", None), ("command ended", "1", "3")]


# ---- an agent that is none of ours

FLOOD = 100000
# It greets, answers pings, and says far more than it may; where the carrier
# is the bridge, as the program that is started for a link.
FAKE_AGENT = """#!/usr/bin/env python3
import socket, struct, sys, threading, time
up, down = sys.stdout.buffer, sys.stdin.buffer
if sys.argv[1:] != ["bridge"]:
    s = socket.socket(socket.AF_UNIX)
    while s.connect_ex("/.mcp-sandbox/sock") != 0:
        time.sleep(0.005)
    up, down = s.makefile("wb"), s.makefile("rb")
lock = threading.Lock()
def send(data):
    with lock:
        up.write(data)
        up.flush()
send({hello!r})
def answer():
    while (head := down.read(8)):
        size, number, _ = struct.unpack("<IHH", head)
        body = down.read(size - 4)
        if number == {ping}:
            send(struct.pack("<IHH", 16, {pong}, 0) + body + bytes(4))
threading.Thread(target=answer, daemon=True).start()
for _ in range({rounds}):
    send({line!r} * 1000)
while True:
    time.sleep(1)
    send({last!r})
"""


def write_fake_agent(path):
    line = wire.pack_frame(
        "SAID", level=2, what=wire.SAID_WHATS.index("DISK_FULL"),
        run=uuid.uuid4(), text='x\n{"msg":"forged"}\x1b[2J')
    write(path, FAKE_AGENT.format(
        hello=wire.pack_frame("HELLO", version=wire.VERSION,
                              boot=uuid.uuid4()) +
        wire.pack_frame("HELLO_END"), ping=wire.FRAMES.number("PING"),
        pong=wire.FRAMES.number("PONG"), rounds=FLOOD // 1000, line=line,
        last=wire.pack_frame("SAID", level=2, text="over")), 0o755)


@pytest.fixture
def hostile_build(build, open_place):
    """Our programs, and an agent that is not."""
    for name in os.listdir(build):
        if name.startswith("mcp-sandboxd"):
            shutil.copy(os.path.join(build, name), open_place)
    write_fake_agent(os.path.join(open_place, "sandbox-agent"))
    return open_place


def test_a_flood_of_a_hostile_agent_is_bounded(hostile_build, make_server):
    began = time.monotonic()
    server = make_server(build=hostile_build,
                         env={"LOG_FORMAT": "json", "WORKERS": "1"})
    run = server.client().start("box", "true")["run_id"]
    worker = server.pids("worker")

    def over():
        return [f for f in events(server) if f["detail"] == "over"]
    last = wait_for(over, 120, "the end of the flood")[0]
    shown = [f for f in events(server, "agent saw a full disk")]
    # Twenty at once, and one each second.
    assert 20 <= len(shown) <= 21 + time.monotonic() - began
    told = sum(int(f.get("dropped", 0)) for f in events(server))
    # One of the last ones may be too many as well.
    assert FLOOD <= told + len(shown) <= FLOOD + 120
    assert int(last["dropped"]) > 0
    for f in shown:
        # The text alone is its own; a run that is not there is not named.
        assert f["detail"] == 'x\\x0a{"msg":"forged"}\\x1b[2J'
        assert f["level"] == "warn" and f["sandbox"] == "box"
        assert "run" not in f and "request" not in f
    assert all(json.loads(n)["msg"] != "forged" for n in server.log)
    assert server.pids("worker") == worker and server.is_ready()
    assert server.client().status(run)["state"] in ("queued", "running")
