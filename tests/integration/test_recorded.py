"""What the row of a run says: who asked, by what, and what it came to."""
import re
import signal

import pytest

from client import wait_for
from tenants import Tenant

MEGABYTE = 1 << 20
# Holds so many megabytes for a while, with a processor busy.
GROWN = ("python3 -c 'x = b\"x\" * (%d << 20); "
         "import time\nwhile time.process_time() < %s: pass'")


def test_a_row_says_what_a_run_came_to(server, client, sandbox):
    run = client.start(
        sandbox, "printf 12345; printf 123 >&2; echo x > /artifacts/a",
        {"shell": GROWN % (48, 0.2), "allow_failure": True},
        {"shell": "exit 3", "allow_failure": True})["run_id"]
    client.wait_end(run)
    row = server.run_row(run)
    assert row["stdout_bytes"] == 5
    assert row["stderr_bytes"] == 3
    assert row["exit_code"] == 3
    assert (row["artifacts"], row["artifact_bytes"]) == (1, 2)
    assert row["cpu_us"] >= 200000
    assert row["memory_peak_bytes"] >= 48 * MEGABYTE
    assert row["created_ms"] <= row["sent_ms"] <= row["ended_ms"]
    assert row["rerun_of"] is None
    assert row["language"] == ""


def test_a_row_says_who_asked(server, client, sandbox):
    client.initialize()
    message = {"jsonrpc": "2.0", "id": 77, "method": "tools/call",
               "params": {"name": "run_sandbox", "arguments": {
                   "identifier": sandbox, "commands": [{"shell": "true"}],
                   "options": {"await_completion": False}}}}
    _, headers, data = client.post(message)
    run = re.search(rb'"run_id": ?"([0-9a-f-]{36})"', data)[1].decode()
    client.wait_end(run)
    row = server.run_row(run)
    assert row["principal"] == ""  # nobody: this server asks for no token
    assert row["client"] == "test/1"
    assert row["address"] == "127.0.0.1"
    assert row["request_id"] == headers["X-Request-Id"]
    assert re.fullmatch("[0-9a-f]{32}", row["session"])
    assert row["session"] not in client.session


@pytest.mark.own
def test_a_token_is_named_and_so_is_a_language(server):
    a = Tenant(server, "a")
    a.client.call("initialize_sandbox", identifier="box")
    run = a.client.call("execute_code", identifier="box", language="py",
                        code="print(1)")["run_id"]
    row = server.run_row(run)
    assert row["principal"] == a.token.split("_")[1]
    assert row["language"] == "python"


def test_what_a_client_says_it_is_is_bounded(server, sandbox):
    client = server.client()
    client.rpc("initialize", {
        "protocolVersion": client.revision, "capabilities": {},
        "clientInfo": {"name": "né\n" + "x" * 500, "version": "9"}})
    run = client.start(sandbox, "true")["run_id"]
    client.wait_end(run)
    said = server.run_row(run)["client"]
    assert said.startswith("né?x")
    assert len(said.encode()) <= 128
    client.delete(sandbox)


@pytest.mark.own
def test_what_was_used_is_known_when_all_died_meanwhile(server, client):
    run = client.start("a", GROWN % (40, 0.1), "sleep 5", "exit 4")["run_id"]
    wait_for(lambda: client.status(run)["commands"][0].get("end_reason"),
             60, "the first command's end")
    server.restart(signal.SIGKILL)  # and with it all that it had started
    client.wait_end(run, 90)
    row = server.run_row(run)
    assert row["memory_peak_bytes"] >= 40 * MEGABYTE
    assert row["cpu_us"] >= 100000
    assert row["exit_code"] == 4
    assert row["client"] == "test/1"
    assert row["sent_ms"] > 0
