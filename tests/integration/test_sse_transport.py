"""HTTP+SSE: the stream of a GET, and messages that are POSTed beside it."""
import contextlib
import http.client
import json
import time
import urllib.parse

import pytest

import raw
from client import wait_for
from tenants import Tenant

STREAM = "Accept: text/event-stream"


class Stream:
    """A GET whose events are read one by one."""

    def __init__(self, server, path="/sse", *fields, token=None):
        self.server, self.path, self.token = server, path, token
        self.sock = server.send(f"GET {path}", STREAM, *raw.bearer(token),
                                *fields)
        self.answer = http.client.HTTPResponse(self.sock)
        self.answer.begin()
        assert self.answer.status == 200
        assert self.answer.headers["Content-Type"].startswith(
            "text/event-stream")
        self.first = self.event()
        assert self.first["event"] == "endpoint"
        self.endpoint = urllib.parse.urljoin(path, self.first["data"])

    def event(self):
        """The next one that is no comment; None: the stream has ended."""
        fields = {}
        while line := self.answer.readline().decode():
            if line == "\n" and fields:
                return fields
            name, _, value = line.rstrip("\n").partition(": ")
            if name and value:
                fields[name] = value
        return None

    def message(self):
        event = self.event()
        assert event["event"] == "message" and "id" not in event
        return json.loads(event["data"])

    def post(self, message, *fields, token=None, kind=raw.JSON):
        return raw.ask(self.server, f"POST {self.endpoint}", kind,
                       *raw.bearer(token or self.token), *fields,
                       body=raw.as_bytes(message))

    def say(self, message):
        answer = self.post(message)
        assert (answer.status, answer.body) == (202, b"Accepted")

    def ask(self, message):
        """The answer, which is the next message."""
        self.say(message)
        found = self.message()
        assert found["id"] == message["id"]
        return found

    def begin(self, revision=raw.OLDEST):
        found = self.ask(raw.initialize(revision))["result"]
        assert found["protocolVersion"] == revision
        assert found["serverInfo"]["name"] == "mcp-sandboxd"
        assert "resultType" not in found
        self.say({"jsonrpc": "2.0", "method": "notifications/initialized"})

    def run(self, name, shell, ident=2):
        return raw.request("tools/call", {
            "name": "run_sandbox", "arguments": {
                "identifier": name, "commands": [{"shell": shell}]},
            "_meta": {"progressToken": ident,
                      "mcp-sandboxd/structured": True}}, ident)

    def close(self):
        self.answer.close()
        self.sock.close()


@pytest.fixture
def opened():
    """Streams, closed in the end: opened(server, ...)"""
    with contextlib.ExitStack() as stack:
        yield lambda *a, **k: stack.enter_context(
            contextlib.closing(Stream(*a, **k)))


@pytest.mark.parametrize("path", ["/sse", "/mcp"])
@pytest.mark.parametrize("revision", raw.LEGACIES)
def test_a_client_is_served(server, opened, path, revision):
    s = opened(server, path)
    assert not urllib.parse.urlsplit(s.first["data"]).netloc
    assert s.endpoint.startswith("/messages?sessionId=")
    s.begin(revision)
    names = [t["name"] for t in s.ask(
        raw.request("tools/list", ident="l"))["result"]["tools"]]
    assert "run_sandbox" in names
    assert s.ask(raw.request("nothing", ident=9))["error"]["code"] == -32601


@pytest.mark.own(MCP_PATH="/a/b/mcp")
def test_the_endpoint_is_right_below_a_longer_path(server, opened):
    for path in ("/sse", "/a/b/mcp", "/a/b/mcp/", "/a/b/mcp?x=y/z"):
        s = opened(server, path)
        assert s.endpoint.startswith("/messages?")
        s.begin()


def test_a_stray_get_is_refused_at_once(server):
    began = time.monotonic()
    for fields in (["Accept: application/json"], ["Accept: */*"], [],
                   [STREAM, "MCP-Protocol-Version: 2025-11-25"],
                   [STREAM, "MCP-Protocol-Version: 2026-07-28"],
                   [STREAM, "Last-Event-ID: 1"]):
        answer = raw.ask(server, "GET /mcp", *fields)
        assert answer.status == 405, fields
        assert "POST" in answer.headers["Allow"]
    assert time.monotonic() - began < 6 * 0.1 + 1
    assert raw.ask(server, "POST /sse", raw.JSON, body=b"{}").status == 405
    assert raw.ask(server, "GET /messages?sessionId=1").status == 405


def test_a_run_with_progress_then_its_answer(server, opened, sandbox):
    s = opened(server)
    s.begin(raw.LEGACY)
    s.say(s.run(sandbox, "echo one; sleep 1.5; echo two"))
    messages = [s.message()]
    while "id" not in messages[-1]:
        messages.append(s.message())
    assert [m["method"] for m in messages[:-1]][0] == "notifications/progress"
    final = messages[-1]["result"]["structuredContent"]["final"]
    assert final["commands"][0]["stdout"] == "one\ntwo\n"


@pytest.mark.own
def test_a_foreign_or_dead_stream_is_not_found(server, opened):
    one, two = (Tenant(server, name) for name in ("one", "two"))
    assert raw.ask(server, "GET /sse", STREAM).status == 401
    s = opened(server, token=one.token)
    s.begin()
    ping = raw.request("ping", ident=3)
    assert raw.ask(server, f"POST {s.endpoint}", raw.JSON,
                   body=raw.as_bytes(ping)).status == 401
    foreign = s.post(ping, token=two.token)
    assert foreign.status == 404
    assert s.ask(raw.request("ping", ident=4))["id"] == 4
    s.close()
    wait_for(lambda: s.post(ping).status == 404, 10, "its end")
    dead, none = s.post(ping), raw.ask(
        server, "POST /messages", raw.JSON, *raw.bearer(one.token),
        body=raw.as_bytes(ping))
    assert {a.status for a in (dead, none)} == {404}
    assert foreign.body == dead.body == none.body


def test_a_bad_origin_is_refused(server, opened):
    evil = "Origin: http://evil.example"
    assert raw.ask(server, "GET /sse", STREAM, evil).status == 403
    s = opened(server)
    assert s.post(raw.initialize(raw.OLDEST), evil).status == 403
    assert raw.ask(server, "GET /mcp", STREAM, evil).status == 403
    s.begin()


def test_what_is_no_message_is_refused(server, opened):
    s = opened(server)
    assert s.post(b"{").status == 400
    assert s.post(b"[]").status == 400
    assert s.post(raw.initialize(), kind="Content-Type: text/plain").status \
        == 415
    before = s.ask(raw.request("tools/list", ident=1))
    assert before["error"]["code"] == -32600
    s.begin()
    assert s.ask(raw.initialize())["error"]["code"] == -32600


def test_the_end_of_the_stream_cancels_what_waits(
        server, client, opened, sandbox):
    s = opened(server)
    s.begin()
    apart = s.ask(raw.request("tools/call", {
        "name": "run_sandbox", "arguments": {
            "identifier": sandbox, "commands": [{"shell": "sleep 3"}],
            "options": {"await_completion": False}}}, 5))
    apart = apart["result"]["content"][0]["text"]
    s.say(s.run(sandbox, "sleep 60", 6))
    runs = wait_for(
        lambda: len(found := client.call(
            "list_runs", identifier=sandbox)["runs"]) == 2 and found,
        10, "both runs")
    waits = [r["run_id"] for r in runs if r["run_id"] not in apart]
    client.wait_state(waits[0])
    s.close()
    assert client.wait_end(waits[0])["state"] == "canceled"
    detached = [r["run_id"] for r in runs if r["run_id"] in apart]
    assert client.wait_end(detached[0])["state"] == "completed"


@pytest.mark.own
def test_a_client_that_never_reads_is_bounded(server):
    """Its POSTs are refused when so many answers wait for it."""
    with server.send("GET /sse", STREAM, room=4096) as sock:
        head = sock.recv(2000).decode()
        while "sessionId=" not in head or not head.endswith("\n\n\r\n"):
            head += sock.recv(2000).decode()
        ident = head.split("sessionId=")[1].split("\n")[0]

        def post(message):
            return raw.ask(server, f"POST /messages?sessionId={ident}",
                           raw.JSON, body=raw.as_bytes(message))
        assert post(raw.initialize()).status == 202
        for i in range(2000):
            answer = post(raw.request("tools/list", ident=i))
            if answer.status == 429:
                break
            assert answer.status == 202
        assert answer.status == 429
        assert "did not read" in answer.json["error"]["message"]
        assert server.get("/healthz")[0] == 200


@pytest.mark.own
def test_the_server_stops_beside_open_streams(server, opened):
    s = opened(server)
    s.begin()
    assert server.stop() == 0
    assert s.event() is None
