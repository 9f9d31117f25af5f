"""What MCP demands of each answer, byte by byte, on bare sockets.

docs/protocol-tests.md lists each rule with its test."""
import json
import re
import socket

import pytest

import raw
from client import wait_for
from raw import (LEGACIES, LEGACY, MODERN, ask, events, modern, modern_lines,
                 modern_message, post, read, request, session, wrapped)

LISTING = {"name": "list_sandboxes", "arguments": {}}
NEVER = "00000000-0000-4000-8000-000000000000"
EVIL = "Origin: http://evil.example"


@pytest.fixture
def two(make_server, tokens):
    """(server, token, token) of two tenants."""
    one, other = tokens.tenant("one"), tokens.tenant("other")
    server = make_server(env={"TENANTS_FILE": tokens.write()})
    return server, one, other


def own(server):
    """The Origin of a page of this server's."""
    return f"Origin: http://127.0.0.1:{server.port}"


def without_id(body):
    """An answer without what differs from request to request."""
    return re.sub(rb'"(request_id|instance)":\s*"[^"]*"', rb'"\1":""', body)


# ---- bytes of event streams

def stream_of(server, lines, command="echo out; sleep 0.5; echo more"):
    """All bytes of the stream of a run that tells its progress."""
    message = request("tools/call", {
        "name": "run_sandbox", "_meta": {"progressToken": "p"},
        "arguments": {"identifier": "raw-stream",
                      "commands": [{"shell": command}],
                      "options": {"await_completion": True}}})
    return post(server, message, *lines)


@pytest.mark.parametrize("revision", LEGACIES[1:])
def test_a_stream_has_the_headers_and_bytes_of_server_sent_events(
        server, revision):
    answer = stream_of(server, session(server, revision))
    assert answer.status == 200
    kind = answer.headers["Content-Type"]
    assert kind.partition(";")[0] == "text/event-stream"
    assert answer.headers["Cache-Control"] == "no-cache, no-transform"
    assert answer.headers["X-Accel-Buffering"] == "no"
    assert answer.headers["Transfer-Encoding"] == "chunked"
    assert "Content-Length" not in answer.headers
    assert "Content-Encoding" not in answer.headers
    assert b"\r" not in answer.body and answer.body.endswith(b"\n\n")
    for event in events(answer.body):
        assert set(event) <= {"", "event", "id", "data", "retry"}, event
        assert event.get("event", "message") == "message"
        # Older clients take the empty data of a priming event for JSON.
        if revision < LEGACY:
            assert "id" not in event or event.get("data")
        assert event.get("data", "") == "" or json.loads(event["data"])
    progress = [m["params"]["progress"] for m in answer.messages[:-1]
                if m["method"] == "notifications/progress"]
    assert progress == sorted(set(progress))
    assert answer.last["id"] == 1 and "result" in answer.last


def test_no_stream_of_the_newest_revision_has_ids_or_requests(server):
    answer = post(server, modern_message("tools/call", {
        "name": "run_sandbox", "arguments": {
            "identifier": "raw-stream",
            "commands": [{"shell": "echo out; sleep 2"}],
            "options": {"await_completion": True}}}) | {
                "id": "text"}, *modern_lines("tools/call", {
                    "name": "run_sandbox"}))
    found = events(answer.body) if answer.headers["Content-Type"].startswith(
        "text/event-stream") else []
    assert not any("id" in e or "retry" in e for e in found)
    assert all(m["method"].startswith("notifications/")
               for m in answer.messages[:-1])
    assert answer.last["id"] == "text"
    assert answer.result["resultType"] == "complete"


# ---- header lines

ONCE = ("Mcp-Session-Id", "MCP-Protocol-Version", "Mcp-Method", "Mcp-Name",
        "Last-Event-ID", "Origin", "Authorization", "Content-Type")


@pytest.mark.parametrize("name", ONCE)
def test_a_header_that_says_two_things_is_refused(server, name):
    """A proxy may have looked at the one, and this server at the other."""
    value = "x" if name != "Origin" else own(server).partition(": ")[2]
    lines = [f"{name}: {value}", f"{name.lower()}: {value}"]
    answer = ask(server, "POST /mcp", *lines, body=raw.as_bytes(
        request("ping")))
    assert answer.status == 400, answer


def test_two_hosts_or_lengths_are_refused(server):
    for line in ("Host: 127.0.0.1", "Content-Length: 4"):
        assert post(server, request("ping"), line).status == 400


NAME = LISTING["name"]
NAMES = [(NAME, True), (f" \t{NAME}  ", True), (wrapped(NAME), True),
         (NAME.upper(), False), (wrapped("run_sandbox"), False),
         (wrapped(NAME).replace("base64", "BASE64"), False),
         (wrapped(NAME)[:-2], False), (wrapped(NAME).replace("=?", "", 1),
                                       False),
         ("=?base64?bGlzd?=", False), ("=?base64?!!!!?=", False),
         ("=?base64??=", False), ("=?base64?/w==?=", False), ("", False)]


@pytest.mark.parametrize("value,good", NAMES, ids=[v for v, _ in NAMES])
def test_a_name_in_a_header_may_be_base64_and_is_that_of_the_body(
        server, value, good):
    answer = post(server, modern_message("tools/call", LISTING),
                  f"MCP-Protocol-Version: {MODERN}", "Mcp-Method: tools/call",
                  f"Mcp-Name: {value}")
    if good:
        assert answer.result["resultType"] == "complete"
    else:
        assert (answer.status, answer.code) == (400, -32020)


# ---- Host and Origin, for pages

ROUTES = ("/mcp", "/sse", "/messages?sessionId=x", "/", "/healthz", "/readyz",
          "/metrics", "/api/v1/runs", "/artifacts/a/latest/b",
          f"/mcp/runs/{NEVER}", "/.well-known/oauth-protected-resource",
          "/nothing")
# Page, or a sandboxed frame; or who has our address under a name of its own.
STRANGERS = (EVIL, "Origin: null", "Origin: http://127.0.0.1.evil.example",
             "Origin: http://127.0.0.1:1")


@pytest.mark.parametrize("path", ROUTES)
@pytest.mark.parametrize("method", ["GET", "POST", "DELETE", "OPTIONS"])
def test_no_path_answers_a_page_of_others(server, path, method):
    for line in STRANGERS:
        answer = ask(server, f"{method} {path}", line)
        assert answer.status == 403, (line, answer)
        assert "Access-Control-Allow-Origin" not in answer.headers
    answer = read_with_host(server, f"{method} {path}", "evil.example")
    assert answer.status == 403


def read_with_host(server, line, host):
    with socket.create_connection(("127.0.0.1", server.port)) as sock:
        sock.sendall(f"{line} HTTP/1.1\r\nHost: {host}\r\n"
                     "Connection: close\r\n\r\n".encode())
        return read(sock)


@pytest.mark.parametrize("path", ["/mcp", "/sse", "/messages?sessionId=x"])
def test_a_page_of_ours_is_told_what_it_may_send_and_see(server, path):
    answer = ask(server, f"OPTIONS {path}", own(server),
                 "Access-Control-Request-Method: POST",
                 "Access-Control-Request-Headers: mcp-method")
    assert answer.status == 204
    assert f"Origin: {answer.headers['Access-Control-Allow-Origin']}" == \
        own(server)
    may = names_in(answer.headers["Access-Control-Allow-Headers"])
    assert may >= {"content-type", "accept", "authorization",
                   "mcp-session-id", "mcp-protocol-version", "last-event-id",
                   "mcp-method", "mcp-name"}
    answer = post(server, raw.initialize(), own(server))
    assert names_in(answer.headers["Access-Control-Expose-Headers"]) >= {
        "mcp-session-id", "www-authenticate"}
    assert answer.headers["Vary"] == "Origin"


def names_in(value):
    return {name.strip().lower() for name in value.split(",")}


# ---- who calls

@pytest.mark.own
def test_who_has_no_token_is_refused_alike_whatever_is_asked(two):
    """Before anything of the message is looked at: a client of any revision
    has the same answer, and learns nothing."""
    server, token, _ = two
    bodies = [raw.initialize(r) for r in LEGACIES] + [
        modern_message("server/discover"), [request("ping")] * 3, {"x": 1}]
    asked = [("POST /mcp", [raw.JSON, raw.BOTH], raw.as_bytes(b))
             for b in bodies]
    asked += [("POST /mcp", ["Content-Type: text/plain"], b"{"),
              ("POST /mcp", modern_lines("tools/list"), b"\xff"),
              ("GET /mcp", ["Accept: text/event-stream"], b""),
              ("DELETE /mcp", ["Mcp-Session-Id: x"], b""),
              ("GET /mcp", ["Last-Event-ID: x"], b""),
              ("GET /sse", ["Accept: text/event-stream"], b""),
              ("POST /messages?sessionId=x", [raw.JSON], b"{}")]
    for given in ([], raw.bearer("x"), raw.bearer(token + "x")):
        answers = {(a.status, a.headers["WWW-Authenticate"],
                    without_id(a.body))
                   for a in (ask(server, line, *fields, *given, body=body)
                             for line, fields, body in asked)}
        (status, challenge, body), = answers
        assert status == 401 and challenge.startswith('Bearer realm="')
        assert ("invalid_token" in challenge) == bool(given)
        assert "resource_metadata" not in challenge
        error = json.loads(body)
        assert "id" not in error and "result" not in error


@pytest.mark.own
def test_a_token_counts_in_its_header_alone(two):
    server, token, _ = two
    for line, fields in (
            (f"POST /mcp?token={token}", []),
            (f"POST /mcp?access_token={token}", []),
            ("POST /mcp", [f"Cookie: token={token}"]),
            ("POST /mcp", [f"X-API-Key: {token}"]),
            ("POST /mcp", [f"Authorization: Basic {token}"]),
            ("POST /mcp", [f"Proxy-Authorization: Bearer {token}"])):
        assert ask(server, line, raw.JSON, raw.BOTH, *fields,
                   body=raw.as_bytes(raw.initialize())).status == 401
    answer = post(server, raw.initialize(), *raw.bearer("x"), token=token)
    assert answer.status == 400  # two of them


WELL_KNOWN = ("oauth-protected-resource", "oauth-protected-resource/mcp",
              "oauth-authorization-server", "oauth-authorization-server/mcp",
              "openid-configuration")


@pytest.mark.own
def test_tokens_of_ones_own_lead_no_client_into_a_login(two):
    server, token, _ = two
    for path in WELL_KNOWN:
        for given in ([], raw.bearer(token)):
            answer = ask(server, f"GET /.well-known/{path}", *given)
            assert answer.status == 404, path


HANDLES = (
    ("tools/call", {"name": "get_run", "arguments": {"run_id": "ID"}}),
    ("tools/call", {"name": "control_run", "arguments": {
        "run_id": "ID", "action": "cancel"}}),
    ("resources/read", {"uri": "sandbox://runs/ID/stdout"}),
    ("tasks/get", {"taskId": "ID"}), ("tasks/cancel", {"taskId": "ID"}),
    ("tasks/update", {"taskId": "ID", "inputResponses": {}}))


@pytest.mark.own
def test_a_handle_of_another_is_as_one_that_never_was(two):
    server, one, other = two
    run = server.client(token=one).start("box", "sleep 60")["run_id"]
    for method, params in HANDLES:
        answers = set()
        for ident in (run, NEVER):
            asked = json.loads(json.dumps(params).replace("ID", ident))
            answer = modern(
                server, method, asked, token=other,
                capabilities={"extensions": {raw.IO + "tasks": {}}})
            text = without_id(answer.body).replace(ident.encode(), b"ID")
            answers.add((answer.status, answer.code, text))
        (status, code, text), = answers
        assert status == 200, method
        assert code == -32602 or b'"isError":true' in text, (method, text)


# ---- the envelope of 2026-07-28

LISTS = ("tools/list", "prompts/list", "resources/list",
         "resources/templates/list")


@pytest.mark.parametrize("method", ["server/discover", *LISTS])
def test_what_may_be_cached_says_for_how_long_and_for_whom(server, method):
    result = modern(server, method).result
    assert isinstance(result["ttlMs"], int) and result["ttlMs"] >= 0
    assert result["cacheScope"] in ("public", "private")
    if method.startswith("resources"):
        assert result["cacheScope"] == "private"
    assert result["resultType"] == "complete"
    assert set(result["_meta"][raw.IO + "serverInfo"]) >= {"name", "version"}


def test_an_answer_of_a_tool_is_not_to_be_cached(server):
    result = modern(server, "tools/call", LISTING).result
    assert "ttlMs" not in result and "cacheScope" not in result
    assert result["_meta"][raw.IO + "serverInfo"]["name"] == "mcp-sandboxd"


@pytest.mark.parametrize("revision", LEGACIES[1:])
def test_older_clients_get_nothing_of_the_newest_envelope(server, revision):
    lines = session(server, revision)
    for method in ("tools/list", "prompts/list", "resources/list"):
        result = post(server, request(method), *lines).result
        assert not {"resultType", "ttlMs", "cacheScope"} & set(result)
    assert post(server, request("ping"), *lines).result == {}


@pytest.mark.parametrize("revision", LEGACIES[1:])
@pytest.mark.parametrize("method", ["server/discover", "no/such",
                                    "subscriptions/listen"])
def test_what_an_older_revision_has_not_is_an_error_of_json_rpc(
        server, revision, method):
    answer = post(server, request(method), *session(server, revision))
    assert (answer.status, answer.code) == (200, -32601)


def test_every_answer_but_a_stream_is_for_nobody_to_store(server):
    lines = session(server)
    for answer in (post(server, request("tools/list"), *lines),
                   post(server, request("no/such"), *lines),
                   post(server, b"{"), modern(server, "server/discover"),
                   modern(server, "tools/list"), ask(server, "GET /mcp"),
                   post(server, {"jsonrpc": "2.0", "method": "x"}, *lines),
                   ask(server, "DELETE /mcp", *lines)):
        assert answer.headers["Cache-Control"] == "no-store", answer


# ---- tools, by revision

MEMBERS = {"name", "description", "inputSchema"}
SINCE = {"2025-03-26": {"annotations"},
         "2025-06-18": {"title", "outputSchema", "_meta"},
         "2025-11-25": {"icons", "execution"}}


def tools_of(server, revision):
    """What a client of this revision is told of."""
    if revision == MODERN:
        return modern(server, "tools/list").result["tools"]
    if revision != raw.OLDEST:
        return post(server, request("tools/list"),
                    *session(server, revision)).result["tools"]
    with raw.Stream(server) as stream:
        answer = stream.ask(raw.initialize(revision, 1))
        assert answer["result"]["protocolVersion"] == revision
        return stream.ask(request("tools/list", ident=2))["result"]["tools"]


@pytest.mark.parametrize("revision", [*LEGACIES, MODERN])
def test_a_tool_has_the_members_that_its_revision_knows(server, revision):
    tools = tools_of(server, revision)
    known = MEMBERS.union(*(m for r, m in SINCE.items() if r <= revision))
    if revision == MODERN:
        known -= {"execution"}
    assert tools
    for tool in tools:
        assert MEMBERS <= set(tool) <= known, tool["name"]
        assert re.fullmatch("[A-Za-z0-9_.-]{1,40}", tool["name"])
        assert tool["inputSchema"]["type"] == "object"
        assert "$schema" not in tool["inputSchema"]
    again = modern(server, "tools/list").result["tools"]
    assert [t["name"] for t in again] == [t["name"] for t in tools]


@pytest.mark.parametrize("params,code", [
    ({"name": "no_such_tool"}, -32602), ({"arguments": {}}, -32602),
    ({"name": 1}, -32602), ({"name": NAME, "arguments": []}, -32602),
    ([], -32602), ("x", -32602)])
def test_what_is_no_call_of_a_tool_is_an_error_of_json_rpc(
        server, params, code):
    answer = post(server, request("tools/call", params), *session(server))
    assert (answer.status, answer.code) in ((200, code), (400, -32600))
    if isinstance(params, dict):
        assert answer.status == 200
        answer = post(server, modern_message("tools/call", params),
                      *modern_lines("tools/call", params))
        assert answer.code == code


def test_what_a_tool_cannot_do_is_a_result(server):
    lines = session(server)
    for name, arguments in (("get_run", {}), ("get_run", {"run_id": NEVER}),
                            ("run_sandbox", {"identifier": "../x"}),
                            (NAME, {"limit": "many"})):
        params = {"name": name, "arguments": arguments}
        for answer in (post(server, request("tools/call", params), *lines),
                       modern(server, "tools/call", params)):
            assert answer.result["isError"] is True, (name, answer)
            assert answer.result["content"][0]["text"]


# ---- pages

@pytest.mark.parametrize("method", LISTS)
def test_a_cursor_that_nobody_gave_is_refused(server, method):
    lines = session(server)
    for cursor in ("x", "../..", "0", "A" * 5000, 7, {}, None):
        params = {"cursor": cursor}
        answers = {post(server, request(method, params), *lines).code,
                   modern(server, method, params).code}
        assert answers == {-32602}, cursor


# ---- bad days

MANY = [request("ping", ident=i) for i in range(10000)]


def test_a_batch_of_ten_thousand_is_refused_at_once(server):
    lines = session(server, raw.FIRST_HTTP)
    answer = post(server, MANY, *lines)
    assert (answer.status, answer.code) == (400, -32600)
    assert len(answer.body) < 1000
    assert post(server, request("ping"), *lines).result == {}


def test_a_batch_mixes_no_requests_with_responses_or_revisions(server):
    lines = session(server, raw.FIRST_HTTP)
    response = {"jsonrpc": "2.0", "id": 7, "result": {}}
    for body in ([modern_message("tools/list"), request("ping")],
                 [request("ping"), 7], [raw.initialize()],
                 [[request("ping")]]):
        answer = post(server, body, *lines)
        assert (answer.status, answer.code) == (400, -32600), body
    # The text has a batch of requests or one of responses; a mixed one is
    # refused, or its requests are answered, and the response is nobody's.
    answer = post(server, [request("ping"), response], *lines)
    assert answer.code == -32600 or \
        [m["id"] for m in answer.messages] == [1]


def test_a_response_to_what_was_never_asked_changes_nothing(server):
    lines = session(server)
    for ident in (1, "x", 2 ** 53):
        for body in ({"result": {}}, {"error": {"code": 1, "message": "x"}}):
            answer = post(server, {"jsonrpc": "2.0", "id": ident, **body},
                          *lines)
            assert (answer.status, answer.body) == (202, b"")
    answer = post(server, {"jsonrpc": "2.0", "id": 1, "result": {}})
    assert answer.status in (202, 400)  # nobody's, without a session


# A revision in the header, in the claim of the body, in initialize.
NONE = "1999-01-01"


@pytest.mark.parametrize("header,claim,code", [
    (NONE, MODERN, -32020), (MODERN, NONE, -32020),
    (LEGACY, MODERN, -32020), (MODERN, LEGACY, -32020),
    (LEGACY, LEGACY, -32022), (MODERN, None, -32602)])
def test_header_and_body_that_differ_are_refused(server, header, claim, code):
    params = {} if claim is None else {"_meta": raw.meta(claim)}
    answer = post(server, request("tools/list", params),
                  f"MCP-Protocol-Version: {header}", "Mcp-Method: tools/list")
    assert (answer.status, answer.code) == (400, code)
    assert answer.json["id"] == 1


def test_notifications_are_taken_and_not_answered(server):
    lines = session(server)
    for method in ("notifications/initialized", "notifications/cancelled",
                   "notifications/progress", "no/such", "ping"):
        note = {"jsonrpc": "2.0", "method": method,
                "params": {"requestId": 99}}
        answer = post(server, note, *lines)
        assert (answer.status, answer.body) == (202, b"")
        answer = post(server, {**note, "params": {"_meta": raw.meta()}},
                      *modern_lines(method))
        assert (answer.status, answer.body) == (202, b"")


def test_each_error_says_whose_it_is_or_nobodys(server):
    lines = session(server)
    bodies = [(b"{", None), (b"[]", None), (b"7", None),
              (request("no/such", ident="mine"), "mine"),
              (request("tools/call", {}, ident=8), 8),
              ({"jsonrpc": "1.0", "id": 9, "method": "ping"}, 9)]
    for body, ident in bodies:
        answer = post(server, body, *lines)
        assert answer.json.get("id") == ident, answer
        assert set(answer.json) <= {"jsonrpc", "id", "error"}
        assert isinstance(answer.json["error"]["code"], int)
        assert answer.json["error"]["message"]


# ---- streams that a session listens on

def listen(server, lines):
    """A stream that is open: its socket, and the head that came."""
    sock = server.send("GET /mcp", "Accept: text/event-stream", *lines)
    head = b""
    while b"\r\n\r\n" not in head:
        head += sock.recv(4096)
    return sock, head


def is_ended(sock):
    """The last chunk, or the end of the connection, is there."""
    sock.setblocking(False)
    try:
        data = sock.recv(4096)
        return data == b"" or data.endswith(b"0\r\n\r\n")
    except BlockingIOError:
        return False
    finally:
        sock.settimeout(30)


def test_a_session_may_listen_twice_and_not_without_end(server):
    """Some clients open another stream before the first is closed: the newest
    few are kept."""
    lines = session(server)
    socks = []
    for _ in range(20):
        sock, head = listen(server, lines)
        assert head.startswith(b"HTTP/1.1 200"), head
        assert b"Content-Type: text/event-stream" in head
        assert b"Cache-Control: no-cache, no-transform" in head
        socks.append(sock)
    wait_for(lambda: is_ended(socks[0]), 30, "the oldest stream to end")
    assert not is_ended(socks[-1]) and not is_ended(socks[-2])
    assert post(server, request("ping"), *lines).result == {}
    assert ask(server, "DELETE /mcp", *lines).status in (200, 202, 204)
    for sock in socks[-2:]:
        wait_for(lambda s=sock: is_ended(s), 30,
                 "a stream to end with its session")
    for sock in socks:
        sock.close()
