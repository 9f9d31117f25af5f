"""What clients do when they have their answer, or stop to wait for it; and
what becomes of the run.

OpenCode sends notifications/cancelled after every call that was answered.
Claude Code and Gemini CLI, stopped by SIGINT, only hang up.  Neither may end
a run that goes on: what ends it is a cancel of a call that is not answered,
or control_run.
"""
import contextlib
import json
import re
import socket
import struct

import pytest

from client import wait_for

LEGACY = ("2024-11-05", "2025-03-26", "2025-06-18", "2025-11-25")
BOTH = "application/json, text/event-stream"
UNTIL_GO = "until [ -e /tmp/go ]; do sleep 0.02; done; echo went"


@pytest.fixture(params=LEGACY)
def caller(request, server):
    """A client in each revision that has sessions."""
    c = server.client(revision=request.param)
    c.initialize()
    yield c
    c.close()


def cancel_request(client, request):
    status, _, body = client.post({
        "jsonrpc": "2.0", "method": "notifications/cancelled",
        "params": {"requestId": request, "reason": "AbortError"}})
    assert (status, body) == (202, b"")


def text_of(client, tool, **arguments):
    """What is left of an answer in the oldest revisions."""
    return client.tool(tool, **arguments)["content"][0]["text"]


def begin(client, sandbox, shell=UNTIL_GO, **options):
    """The id of a run whose call was answered."""
    text = text_of(client, "run_sandbox", identifier=sandbox,
                   commands=[{"shell": shell}], options=options)
    return re.search(r"[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}", text)[0]


def check_goes_on(client, sandbox, run):
    """It is running still, and ends by itself."""
    assert client.status(run)["state"] == "running"
    client.run(sandbox, "touch /tmp/go")
    view = client.wait_end(run)
    assert (view["state"], view["end_reason"]) == ("completed", "exit")
    assert view["commands"][0]["stdout"] == "went\n"


def call_message(request, sandbox, wait_ms, **meta):
    return {"jsonrpc": "2.0", "id": request, "method": "tools/call",
            "params": {"name": "run_sandbox", "_meta": meta, "arguments": {
                "identifier": sandbox, "commands": [{"shell": UNTIL_GO}],
                "options": {"await_completion": True,
                            "await_timeout_ms": wait_ms}}}}


@contextlib.contextmanager
def open_call(server, caller, watcher, sandbox, accept=BOTH, wait_ms=60_000,
              **meta):
    """A connection on which a call waits whose run is running, and the run."""
    body = json.dumps(call_message(77, sandbox, wait_ms, **meta)).encode()
    with server.send(
            "POST /mcp", "Content-Type: application/json", f"Accept: {accept}",
            f"Mcp-Session-Id: {caller.session}",
            f"MCP-Protocol-Version: {caller.revision}", body=body) as sock:
        run = wait_for(lambda: watcher.call(
            "list_runs", identifier=sandbox, state="running")["runs"], 60,
            "the run")[0]["run_id"]
        yield sock, run


@pytest.mark.parametrize("options", [
    {"await_completion": True, "await_timeout_ms": 100},
    {"await_completion": False}])
def test_a_cancel_of_an_answered_call_ends_nothing(
        caller, client, sandbox, options):
    request = caller.next_id
    run = begin(caller, sandbox, **options)
    caller.wait_state(run)
    cancel_request(caller, request)
    request = caller.next_id
    assert "running" in text_of(caller, "get_run", run_id=run, wait_ms=100)
    cancel_request(caller, request)
    check_goes_on(client, sandbox, run)


def test_a_cancel_after_each_call_ends_nothing(caller, client, sandbox):
    """As OpenCode works: the run, a look at it, another run beside it."""
    run = begin(caller, sandbox, await_completion=False)
    caller.wait_state(run)
    for _ in range(3):
        request = caller.next_id
        begin(caller, sandbox, "echo beside")
        cancel_request(caller, request)
        cancel_request(caller, request)
    check_goes_on(client, sandbox, run)


def test_a_cancel_of_a_call_that_waits_ends_its_run(
        server, caller, client, sandbox):
    with open_call(server, caller, client, sandbox) as (_, run):
        cancel_request(caller, 77)
        client.wait_state(run, "canceled")


def test_a_cancel_in_another_session_ends_nothing(
        server, caller, client, sandbox):
    client.initialize()  # a session besides that of the call
    with open_call(server, caller, client, sandbox) as (_, run):
        cancel_request(client, 77)
        check_goes_on(client, sandbox, run)


# A plain answer finds out that nobody is there when it is written.
@pytest.mark.parametrize("caller", [LEGACY[0], LEGACY[-1]], indirect=True)
@pytest.mark.parametrize("how", ["closes", "resets"])
@pytest.mark.parametrize("accept, wait_ms", [
    ("application/json", 1_000), (BOTH, 60_000)])
def test_a_client_that_hangs_up_ends_nothing(
        server, caller, client, sandbox, accept, wait_ms, how):
    client.run(sandbox, "true")  # so that wait_ms is that of a warm sandbox
    with open_call(server, caller, client, sandbox, accept, wait_ms,
                   progressToken=1) as (sock, run):
        open_now = server.metric("sandboxd_connections")
        if how == "resets":
            sock.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER,
                            struct.pack("ii", 1, 0))
        sock.close()
        wait_for(lambda: server.metric("sandboxd_connections") < open_now, 60,
                 "the server to see that the client is gone")
        check_goes_on(client, sandbox, run)
