"""What the MCP endpoint answers to each kind of request, byte by byte: nothing
between these tests and the server reads or mends a header or a body."""
import contextlib
import http.client
import json
import re
import socket
import struct
import time

import pytest

from client import parse_events, wait_for
from tenants import Tenant

JSON = "Content-Type: application/json"
BOTH = "Accept: application/json, text/event-stream"
ERA = "io.modelcontextprotocol/"
META = {ERA + "protocolVersion": "2026-07-28", ERA + "clientCapabilities": {}}
LEGACY = ("2024-11-05", "2025-03-26", "2025-06-18", "2025-11-25")
PING = {"jsonrpc": "2.0", "id": 1, "method": "ping"}


class Answer:
    """One HTTP answer, read from a socket."""

    def __init__(self, sock):
        answer = http.client.HTTPResponse(sock)
        answer.begin()
        self.status, self.headers = answer.status, answer.headers
        self.body = answer.read()
        self.is_stream = self.headers.get("Content-Type", "").startswith(
            "text/event-stream")

    def messages(self):
        """Of a stream, a batch, or the one."""
        if self.is_stream:
            return [json.loads(e["data"])
                    for e in parse_events(self.body.decode()) if "data" in e]
        said = json.loads(self.body)
        return said if isinstance(said, list) else [said]

    def message(self):
        one, = self.messages()
        return one

    def result(self):
        assert self.status == 200, self.body
        return self.message()["result"]

    def refuses(self, status, code, ident=None):
        """The error, with this id or without any."""
        said = self.message()
        assert (self.status, said["error"]["code"]) == (status, code), said
        assert said.get("id") == ident
        if ident is None:
            assert "id" not in said
        return said["error"]


class Raw:
    """Whoever sends to a server what it says."""

    def __init__(self, server, token=None):
        self.server = server
        self.fields = () if token is None else \
            (f"Authorization: Bearer {token}",)

    def open(self, line, *fields, body=b""):
        body = body if isinstance(body, bytes) else json.dumps(body).encode()
        return self.server.send(line, *self.fields, *fields, body=body)

    def ask(self, line, *fields, body=b""):
        with contextlib.closing(self.open(line, *fields, body=body)) as sock:
            return Answer(sock)

    def post(self, body, *fields, head=(JSON, BOTH)):
        return self.ask("POST /mcp", *head, *fields, body=body)

    def initialize(self, revision, *fields):
        return self.post(initialize(revision), *fields)

    def session(self, revision="2025-11-25"):
        """The header lines of a session of that revision."""
        answer = self.initialize(revision)
        assert answer.result()["protocolVersion"] == revision
        fields = [f"Mcp-Session-Id: {answer.headers['Mcp-Session-Id']}"]
        if revision >= "2025-06-18":
            fields.append(f"MCP-Protocol-Version: {revision}")
        return fields

    def modern(self, method, *fields, name=None, head=(JSON, BOTH), **params):
        return self.ask("POST /mcp", *head, *lines(method, name), *fields,
                        body=request(method, **params))


def initialize(revision):
    return {"jsonrpc": "2.0", "id": 1, "method": "initialize", "params": {
        "protocolVersion": revision, "capabilities": {},
        "clientInfo": {"name": "t", "version": "1"}}}


def lines(method, name=None):
    """The headers of a request of 2026-07-28."""
    out = ["MCP-Protocol-Version: 2026-07-28", f"Mcp-Method: {method}"]
    return out + ([f"Mcp-Name: {name}"] if name is not None else [])


def request(method, meta=META, **params):
    return {"jsonrpc": "2.0", "id": 7, "method": method,
            "params": {"_meta": meta, **params}}


def tool(name, **arguments):
    return {"name": name, "arguments": arguments}


@pytest.fixture
def raw(server):
    return Raw(server)


# ---- revisions

@pytest.mark.parametrize("revision", LEGACY)
def test_each_revision_with_initialize_is_served(raw, revision):
    answer = raw.initialize(revision)
    result = answer.result()
    assert result["protocolVersion"] == revision
    assert re.fullmatch("[!-~]+", answer.headers["Mcp-Session-Id"])
    assert "resultType" not in result
    fields = raw.session(revision)
    told = raw.post({"jsonrpc": "2.0", "method": "notifications/initialized"},
                    *fields)
    assert (told.status, told.body) == (202, b"")
    assert raw.post(PING, *fields).result() == {}
    tools = raw.post({**PING, "method": "tools/list"}, *fields).result()
    members = {key for t in tools["tools"] for key in t}
    assert ("annotations" in members) == (revision >= "2025-03-26")
    assert ("title" in members) == (revision >= "2025-06-18")
    assert not members & {"execution", "icons"} or revision >= "2025-11-25"
    assert ("title" in result["serverInfo"]) == (revision >= "2025-06-18")


def test_an_unknown_revision_is_answered_with_the_newest(raw):
    for wanted in ("1999-01-01", "2026-07-28", ""):
        answer = raw.initialize(wanted)
        assert answer.result()["protocolVersion"] == "2025-11-25"
        assert "Mcp-Session-Id" in answer.headers
    for params in ({}, {"protocolVersion": 7}):
        answer = raw.post({**initialize(""), "params": params})
        answer.refuses(200, -32602, 1)
        assert "Mcp-Session-Id" not in answer.headers


def test_initialize_under_a_modern_header_is_a_mismatch(raw):
    answer = raw.initialize("2024-11-05", "MCP-Protocol-Version: 2026-07-28")
    answer.refuses(400, -32020, 1)
    assert "Mcp-Session-Id" not in answer.headers
    answer = raw.initialize("2025-11-25", "MCP-Protocol-Version: 2025-06-18")
    assert answer.status == 200


def test_the_version_header_of_a_session_is_checked(raw):
    session, _ = raw.session()
    for bad in ("1999-01-01", "2025-11-25 junk", "x"):
        error = raw.post(PING, session, f"MCP-Protocol-Version: {bad}") \
            .refuses(400, -32000, 1)
        assert error["data"] == {"supported": list(LEGACY), "requested": bad}
    assert raw.post(PING, session).status == 200
    for good in LEGACY:
        assert raw.post(
            PING, session, f"MCP-Protocol-Version: {good}").status == 200
    twice = raw.post(PING, session, "MCP-Protocol-Version: 2025-11-25",
                     "MCP-Protocol-Version: 2025-11-25")
    assert twice.status == 400


# ---- bodies

def test_broken_bodies_are_refused_on_a_connection_that_goes_on(raw):
    session = raw.session()
    bad = [(b'{"jsonrpc":', -32700), (b"\x7b\x22\xff\xfe\x22\x7d", -32700),
           (b'"text"', -32600), (b"[" * 100000, -32600)] + [
        (json.dumps({**PING, **wrong}).encode(), -32600)
        for wrong in ({"jsonrpc": "1.0"}, {"id": None}, {"id": 1.5},
                      {"id": True}, {"id": [1]})]
    with contextlib.closing(raw.open("GET /healthz")) as sock:
        assert Answer(sock).status == 200
        for body, code in bad:
            sock.sendall(raw.server.message(
                "POST /mcp", JSON, BOTH, *session, body=body))
            answer = Answer(sock)
            readable = b'"1.0"' in body
            answer.refuses(400, code, 1 if readable else None)
        sock.sendall(raw.server.message(
            "POST /mcp", JSON, BOTH, *session, "Content-Length: 0"))
        Answer(sock).refuses(400, -32700)
        sock.sendall(raw.server.message(
            "POST /mcp", JSON, BOTH, *session, body=json.dumps(PING).encode()))
        assert Answer(sock).result() == {}


def test_an_id_comes_back_digit_by_digit(raw):
    session = raw.session()
    for ident in ("9007199254740993", "-9223372036854775808", '"a\\u0001"'):
        body = f'{{"jsonrpc":"2.0","id":{ident},"method":"ping"}}'
        answer = raw.post(body.encode(), *session)
        assert f'"id":{ident},'.encode() in answer.body


def test_media_types(raw):
    def status(*head):
        return raw.post(initialize("2025-11-25"), head=head).status

    assert status("Content-Type: text/plain", BOTH) == 415
    assert status(BOTH) == 415
    assert status("Content-Type: Application/JSON; charset=utf-8", BOTH) == 200
    assert status(JSON, "Accept: text/html") == 406
    for accept in (["Accept: */*"], ["Accept: application/json"], []):
        answer = raw.post(initialize("2025-11-25"), head=(JSON, *accept))
        assert answer.result() and not answer.is_stream
    answer = raw.post(initialize("2025-11-25"),
                      head=(JSON, "Accept: text/event-stream"))
    assert answer.is_stream and answer.result()
    assert answer.headers["Cache-Control"].startswith("no-")
    assert answer.headers["X-Accel-Buffering"] == "no"
    assert raw.modern("tools/list", head=(JSON,)).status == 200
    assert raw.modern(
        "tools/list", head=(JSON, "Accept: text/html")).status == 406


@pytest.mark.own(MAX_BODY_BYTES="65536")
def test_a_large_body_is_413(raw):
    body = json.dumps({**PING, "params": {"x": "y" * 70000}}).encode()
    assert raw.post(body).status == 413


# ---- methods of HTTP

def test_other_methods_say_which_are_allowed(raw):
    for line in ("PUT /mcp", "PATCH /mcp"):
        answer = raw.ask(line)
        assert answer.status == 405
        assert {"POST", "DELETE"} <= set(answer.headers["Allow"].split(", "))
    for line in ("GET /mcp", "DELETE /mcp"):
        answer = raw.ask(line, "MCP-Protocol-Version: 2026-07-28",
                         "Accept: text/event-stream")
        assert answer.status == 405
        assert "POST" in answer.headers["Allow"].split(", ")
        assert "id" not in answer.message()
    stray = raw.ask("GET /mcp", "Accept: application/json")
    assert stray.status == 405
    assert "POST" in stray.headers["Allow"].split(", ")


def test_a_page_may_send_each_header(raw):
    origin = f"http://127.0.0.1:{raw.server.port}"
    answer = raw.ask(
        "OPTIONS /mcp", f"Origin: {origin}",
        "Access-Control-Request-Method: POST",
        "Access-Control-Request-Headers: mcp-method")
    allowed = answer.headers["Access-Control-Allow-Headers"].lower()
    assert {"content-type", "accept", "authorization", "mcp-session-id",
            "mcp-protocol-version", "last-event-id", "mcp-method",
            "mcp-name"} <= set(allowed.split(", "))
    exposed = raw.post(PING, f"Origin: {origin}").headers[
        "Access-Control-Expose-Headers"]
    assert {"Mcp-Session-Id", "WWW-Authenticate"} <= set(exposed.split(", "))
    assert raw.post(PING, "Origin: http://evil.example").status == 403
    assert raw.post(PING, "Origin: null").status == 403


# ---- sessions

def test_a_session_is_needed_and_ends(raw):
    session = raw.session()
    raw.post(PING).refuses(400, -32000, 1)
    raw.initialize("2025-11-25", *session).refuses(400, -32600, 1)
    assert raw.ask("DELETE /mcp", *session).status == 204
    gone = {"code": -32001, "message": "Session not found"}
    assert raw.ask("DELETE /mcp", *session).refuses(404, -32001) == gone
    assert raw.post(PING, *session).refuses(404, -32001, 1) == gone
    for more in ((), ("Last-Event-ID: 1",)):
        raw.ask("GET /mcp", "Accept: text/event-stream", *session, *more) \
            .refuses(404, -32001)


@pytest.mark.own
def test_a_foreign_session_is_as_one_that_never_was(server):
    mine = Raw(server, Tenant(server, "one").token)
    theirs = Raw(server, Tenant(server, "two").token)
    session = mine.session()
    made_up = ["Mcp-Session-Id: " + "A" * 80, session[1]]

    def answers(fields):
        got = [theirs.post({**PING, "method": "tools/list"}, *fields),
               theirs.ask("GET /mcp", "Accept: text/event-stream", *fields),
               theirs.ask("DELETE /mcp", *fields)]
        return [(a.status, a.body) for a in got]

    assert answers(session) == answers(made_up)
    assert {status for status, _ in answers(session)} == {404}
    assert mine.post(PING, *session).status == 200


@pytest.mark.own
def test_a_session_outlives_the_server(server, raw):
    session = raw.session()
    server.stop()
    server.start()
    answer = raw.post({**PING, "method": "tools/list"}, *session)
    assert answer.result()["tools"]


# ---- batches

def test_a_batch_has_an_answer_for_each_request(raw):
    session = raw.session("2025-03-26")
    answer = raw.post([
        PING, {"jsonrpc": "2.0", "method": "notifications/cancelled",
               "params": {"requestId": 99}},
        {**PING, "id": "b", "method": "tools/list"}], *session)
    assert answer.status == 200
    found = {m["id"]: m["result"] for m in answer.messages()}
    assert set(found) == {1, "b"} and found["b"]["tools"]
    told = raw.post([{"jsonrpc": "2.0",
                      "method": "notifications/initialized"}], *session)
    assert (told.status, told.body) == (202, b"")


def test_a_long_batch_is_a_stream(raw, client, sandbox):
    client.run(sandbox, "true")
    run = tool("run_sandbox", identifier=sandbox,
               commands=[{"shell": "sleep 2; echo slow"}],
               options={"await_completion": True})
    call = {"jsonrpc": "2.0", "method": "tools/call", "params": run}
    answer = raw.post([{**call, "id": 1}, {**PING, "id": 2}],
                      *raw.session("2025-03-26"))
    assert answer.is_stream
    found = {m["id"]: m["result"] for m in answer.messages()}
    assert found[2] == {}
    assert "slow" in json.dumps(found[1])


@pytest.mark.parametrize("revision", LEGACY)
def test_batches_are_of_one_revision(raw, revision):
    session = raw.session(revision)
    raw.post([], *session).refuses(400, -32600)
    for bad in ([7], [PING, initialize(revision)],
                [request("tools/list")], [{**PING, "id": None}]):
        raw.post(bad, *session).refuses(400, -32600)
    said = raw.post([PING] * 101, *session).refuses(400, -32600)
    assert "at most 100" in said["message"]
    raw.post([PING] * 10000, *session).refuses(400, -32600)
    if revision != "2025-03-26":
        raw.post([PING], *session).refuses(400, -32600)
    else:
        assert len(raw.post([PING] * 100, *session).messages()) == 100


def test_a_batch_is_of_a_session(raw):
    raw.post([PING]).refuses(400, -32600)
    answer = raw.post([initialize("2025-03-26")])
    answer.refuses(400, -32600)
    assert "Mcp-Session-Id" not in answer.headers
    raw.post([request("tools/list")], *lines("tools/list")) \
        .refuses(400, -32600)


# ---- 2026-07-28

def test_discover_says_what_the_lists_have(raw):
    found = raw.modern("server/discover").result()
    assert found["supportedVersions"] == ["2026-07-28"]
    assert found["resultType"] == "complete"
    assert found["ttlMs"] >= 0 and found["cacheScope"] == "public"
    assert found["_meta"][ERA + "serverInfo"]["name"]
    assert found["instructions"]
    for method, capability in (("tools/list", "tools"),
                               ("prompts/list", "prompts"),
                               ("resources/list", "resources")):
        answer = raw.modern(method)
        if capability not in found["capabilities"]:
            answer.refuses(404, -32601, 7)
            continue
        result = answer.result()
        assert result["resultType"] == "complete"
        assert result["ttlMs"] >= 0
        assert result["cacheScope"] in ("public", "private")
        assert result["_meta"][ERA + "serverInfo"]


def test_a_request_needs_no_session_and_gets_none(raw):
    answer = raw.modern("tools/list", "Mcp-Session-Id: nonsense",
                        "Last-Event-ID: 12")
    assert answer.result()["tools"]
    assert "Mcp-Session-Id" not in answer.headers
    session = raw.session()[0]
    assert raw.modern("tools/list", session).result()["tools"]


def test_methods_of_the_revisions_before_are_not_found(raw):
    for method in ("initialize", "ping", "logging/setLevel",
                   "resources/subscribe", "resources/unsubscribe",
                   "tasks/list", "tasks/result", "no/such"):
        raw.modern(method).refuses(404, -32601, 7)


def test_the_envelope_is_checked(raw):
    head = (JSON, BOTH, *lines("tools/list"))

    def ask(meta):
        return raw.post(request("tools/list", meta=meta), head=head)

    claim, can = META.items()
    for meta in ({}, dict([can]), dict([claim]), {**META, can[0]: []},
                 {**META, ERA + "clientInfo": "x"},
                 {**META, ERA + "logLevel": "loud"}, {**META, claim[0]: 7}):
        ask(meta).refuses(400, -32602, 7)
    raw.post({**request("tools/list"), "params": {}}, head=head) \
        .refuses(400, -32602, 7)
    assert ask({**META, ERA + "clientInfo": {"name": "t", "version": "1"},
                ERA + "logLevel": "info"}).status == 200


def test_a_revision_that_is_not_served(raw):
    for wanted in ("2027-01-01", "2025-11-25", "v999"):
        error = raw.post(
            request("tools/list", meta={ERA + "protocolVersion": wanted}),
            f"MCP-Protocol-Version: {wanted}").refuses(400, -32022, 7)
        assert error["data"] == {"supported": ["2026-07-28"],
                                 "requested": wanted}


def test_headers_repeat_the_body(raw):
    body = request("tools/call", **tool("list_sandboxes"))
    version, method, name = lines("tools/call", "list_sandboxes")
    good = raw.post(body, version, method, name)
    assert good.result()["resultType"] == "complete"
    for fields in ([version, method], [version, name], [method, name],
                   ["MCP-Protocol-Version: 2025-11-25", method, name],
                   [version, "Mcp-Method: tools/list", name],
                   [version, "Mcp-Method: Tools/call", name],
                   [version, method, "Mcp-Name: run_sandbox"],
                   [version, method, "Mcp-Name: =?base64?bGlzd?="],
                   [version, method, "Mcp-Name: =?base64?!!!!?="]):
        raw.post(body, *fields).refuses(400, -32020, 7)
    for fields in ([version, method,
                    "Mcp-Name: =?base64?bGlzdF9zYW5kYm94ZXM=?="],
                   [version.lower(), method.upper().replace(
                       "TOOLS/CALL", "tools/call"), f"{name} \t"]):
        assert raw.post(body, *fields).status == 200
    # Which of the two would a proxy have read?
    assert raw.post(body, version, method, name, name).status == 400


def test_parameters_that_do_not_fit(raw):
    raw.modern("tools/call").refuses(200, -32602, 7)
    answer = raw.post(request("tools/call", name="nope"),
                      *lines("tools/call", "nope"))
    answer.refuses(200, -32602, 7)
    answer = raw.post(request("tools/call", **tool("run_sandbox", x=1)),
                      *lines("tools/call", "run_sandbox"))
    assert answer.result()["isError"] is True
    assert answer.result()["resultType"] == "complete"


def test_notifications_are_taken_and_responses_are_not(raw):
    told = raw.post({"jsonrpc": "2.0", "method": "notifications/cancelled",
                     "params": {"requestId": 1, "_meta": META}},
                    "MCP-Protocol-Version: 2026-07-28")
    assert (told.status, told.body) == (202, b"")
    raw.post({"jsonrpc": "2.0", "id": 1, "result": {}},
             "MCP-Protocol-Version: 2026-07-28").refuses(400, -32600)


SLOW = {"commands": [{"shell": "echo begun; sleep 100000"}],
        "options": {"await_completion": True, "await_timeout_ms": 60000}}


@pytest.mark.parametrize("how", ["end", "reset"])
@pytest.mark.parametrize("accept", [BOTH, "Accept: application/json"])
def test_a_client_that_leaves_cancels(raw, client, sandbox, how, accept):
    client.run(sandbox, "true")
    sock = raw.open("POST /mcp", JSON, accept,
                    *lines("tools/call", "run_sandbox"), body=request(
                        "tools/call",
                        **tool("run_sandbox", identifier=sandbox, **SLOW)))

    def running():
        page = client.call("list_runs", identifier=sandbox, limit=1)
        run = page["runs"][0]
        return run["run_id"] if run["state"] == "running" else None

    run = wait_for(running, 30, "the run to begin")
    if accept == BOTH:
        assert b"text/event-stream" in sock.recv(4096)
    if how == "reset":
        sock.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER,
                        struct.pack("ii", 1, 0))
    began = time.monotonic()
    sock.close()
    view = client.wait_end(run, 30)
    assert view["state"] == "canceled", view
    assert time.monotonic() - began < 10  # a guard: 2 s on an idle machine
    assert client.out(sandbox, "pgrep -c sleep") == "0\n"


def test_a_legacy_client_that_leaves_cancels_nothing(raw, client, sandbox):
    client.run(sandbox, "true")
    run = tool("run_sandbox", identifier=sandbox,
               commands=[{"shell": "sleep 2; echo done"}],
               options={"await_completion": True})
    sock = raw.open("POST /mcp", JSON, BOTH, *raw.session(), body={
        "jsonrpc": "2.0", "id": 1, "method": "tools/call", "params": run})
    assert b"text/event-stream" in sock.recv(4096)
    sock.close()
    page = client.call("list_runs", identifier=sandbox, limit=1)
    view = client.wait_end(page["runs"][0]["run_id"])
    assert view["state"] == "completed", view


def test_two_clients_use_one_id_at_the_same_time(raw, sandbox):
    def start(text):
        return raw.open(
            "POST /mcp", JSON, BOTH, *lines("tools/call", "run_sandbox"),
            body=request("tools/call", **tool(
                "run_sandbox", identifier=sandbox,
                commands=[{"shell": f"sleep 1; echo {text}"}],
                options={"await_completion": True})))

    socks = [start("first"), start("second")]
    for sock, text in zip(socks, ("first", "second"), strict=True):
        with contextlib.closing(sock):
            assert text in json.dumps(Answer(sock).messages()[-1])


def test_the_client_is_named_in_records(raw, client, sandbox):
    answer = raw.post(
        request("tools/call", meta={**META, ERA + "clientInfo": {
            "name": "modern", "version": "3"}}, **tool(
                "run_sandbox", identifier=sandbox,
                commands=[{"shell": "true"}])),
        *lines("tools/call", "run_sandbox"))
    assert answer.messages()[-1]["result"]["isError"] is False
    page = client.call("list_runs", identifier=sandbox, limit=1)
    row = raw.server.run_row(page["runs"][0]["run_id"])
    assert row["client"] == "modern/3"


@pytest.mark.own(MCP_NEWEST_REVISION="2025-11-25")
def test_the_newest_revision_may_be_left_out(raw):
    for answer in (raw.modern("server/discover"), raw.modern("tools/list")):
        error = answer.refuses(400, -32000, 7)
        assert error["data"]["requested"] == "2026-07-28"
        assert error["data"]["supported"] == list(LEGACY)
    odd = {"io.modelcontextprotocol/protocolVersion": 5}
    for body in (request("tools/list", meta=odd), request("ping", meta={})):
        raw.post(body, "MCP-Protocol-Version: 2026-07-28").refuses(
            400, -32000, 7)
    raw.session("2025-11-25")
