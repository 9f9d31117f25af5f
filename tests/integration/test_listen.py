"""Streams for what belongs to no request: of sessions, and of 2026-07-28."""
import contextlib
import http.client
import json

import pytest

import raw
from client import wait_for
from tenants import Tenant

STREAM = "Accept: text/event-stream"


class Listener:
    def __init__(self, server, line, *fields, body=b""):
        self.sock = server.send(line, *fields, body=body)
        self.answer = http.client.HTTPResponse(self.sock)
        self.answer.begin()
        self.status = self.answer.status

    def message(self):
        """The next one; None: the stream has ended."""
        while line := self.answer.readline().decode():
            if line.startswith("data: "):
                return json.loads(line.removeprefix("data: "))
        return None

    def close(self):
        self.answer.close()
        self.sock.close()


@pytest.fixture
def opened(server):
    with contextlib.ExitStack() as stack:
        yield lambda *a, **k: stack.enter_context(
            contextlib.closing(Listener(server, *a, **k)))


def listen(opened, wish, *fields, **more):
    params = {"notifications": wish}
    message = raw.modern_message("subscriptions/listen", params, 7, **more)
    return opened("POST /mcp", raw.JSON, raw.BOTH,
                  *raw.modern_lines("subscriptions/listen"), *fields,
                  body=raw.as_bytes(message))


def test_a_session_has_a_stream_until_it_ends(server, opened):
    lines = raw.session(server)
    s = opened("GET /mcp", STREAM, *lines)
    assert s.status == 200
    assert s.answer.headers["Content-Type"].startswith("text/event-stream")
    assert raw.post(server, raw.request("ping"), *lines).result == {}
    assert raw.ask(server, "DELETE /mcp", *lines).status == 204
    assert s.message() is None
    assert raw.ask(server, "GET /mcp", STREAM, *lines).status == 404


def test_the_oldest_of_too_many_streams_ends(server, opened):
    lines = raw.session(server)
    streams = [opened("GET /mcp", STREAM, *lines) for _ in range(5)]
    assert streams[0].message() is None
    assert raw.ask(server, "DELETE /mcp", *lines).status == 204
    assert [s.message() for s in streams[1:]] == [None] * 4


def test_a_log_level_is_taken(server):
    lines = raw.session(server)
    good = raw.request("logging/setLevel", {"level": "warning"})
    bad = raw.request("logging/setLevel", {"level": "loud"})
    assert raw.post(server, good, *lines).result == {}
    assert raw.post(server, bad, *lines).code == -32602
    assert raw.modern(server, "logging/setLevel",
                      {"level": "info"}).status == 404


@pytest.mark.own
def test_a_subscription_is_acknowledged_and_ends_with_the_server(
        server, opened):
    s = listen(opened, {"toolsListChanged": True,
                        "resourcesListChanged": True})
    first = s.message()
    assert first["method"] == "notifications/subscriptions/acknowledged"
    assert first["params"]["_meta"] == {raw.IO + "subscriptionId": 7}
    assert "resourcesListChanged" not in first["params"]["notifications"]
    assert server.stop() == 0
    last = s.message()
    assert last["id"] == 7 and last["result"]["resultType"] == "complete"
    assert last["result"]["_meta"][raw.IO + "subscriptionId"] == 7
    assert s.message() is None


@pytest.mark.own
def test_streams_count_for_their_tenant(server, opened):
    quota = 3
    server.ctl("tenant", "set", "default", f"quota.streams={quota}")
    for _ in range(quota):
        assert opened("GET /mcp", STREAM, *raw.session(server)).status == 200
    lines = raw.session(server)
    for line, fields in (("GET /mcp", lines), ("GET /sse", []),
                         ("GET /mcp", [])):
        refused = raw.ask(server, line, STREAM, *fields)
        assert refused.status == 429, line
        assert "quota" in refused.json["error"]["message"]
    refused = listen(opened, {})
    assert refused.status == 429


@pytest.mark.own
def test_places_are_given_back(server, opened):
    server.ctl("tenant", "set", "default", "quota.streams=1")
    for line, fields in (("GET /mcp", raw.session(server)),
                         ("GET /sse", []), ("GET /mcp", [])):
        s = wait_for(
            lambda line=line, fields=fields:
            (t := opened(line, STREAM, *fields)).status == 200 and t,
            10, "a place")
        s.close()


@pytest.mark.own
def test_streams_end_with_the_token_that_opened_them(server, opened):
    acme = Tenant(server, "acme")
    key = raw.bearer(acme.token)
    streams = [
        opened("GET /mcp", STREAM, *raw.session(server, token=acme.token)),
        opened("GET /sse", STREAM, *key), listen(opened, {}, *key)]
    assert [s.status for s in streams] == [200] * 3
    wait_for(lambda: acme.used()["streams"] == 3, 10, "three streams")
    server.ctl("token", "revoke", acme.token.split("_")[1])
    for s in streams:
        with contextlib.suppress(OSError, http.client.HTTPException):
            s.answer.read()  # ends; the socket's time limit says otherwise
    assert acme.used()["streams"] == 0
