"""mcp-sandboxd stdio: MCP over stdin and stdout, for clients that start a
command."""
import contextlib
import http.client
import json
import os
import re
import signal
import socket
import threading
import time
import types

import pytest

from bridges import LIMIT_S, REVISION, Bridge, Scripted, initialize, \
    notification, request, run_shell, text_of
from certificates import Authority
from client import wait_for
from screens import Ctl

MODERN = {"_meta": {"io.modelcontextprotocol/protocolVersion": "2026-07-28",
                    "io.modelcontextprotocol/clientCapabilities": {}}}
UNREACHABLE, BROKEN, REFUSED = -31001, -31002, -31003


@pytest.fixture
def make_bridge(build):
    made = []

    def make(*args, **kwargs):
        made.append(Bridge(build, *args, **kwargs))
        return made[-1]

    yield make
    for b in made:
        b.close()
    bad = [n for b in made for n in b.harm()]
    assert not bad, bad


@pytest.fixture
def bridge(make_bridge, server):
    """To the real server, initialized."""
    b = make_bridge(MCP_SANDBOXD_URL=f"http://127.0.0.1:{server.port}/mcp")
    b.initialize()
    return b


@pytest.fixture
def make_scripted(make_bridge):
    """(server, bridge), initialized unless it is said otherwise."""
    made = []

    def make(initialized=True, **says):
        env = {k: says.pop(k) for k in list(says) if k.startswith("MCP_")}
        made.append(Scripted(**{k.replace("_", "/"): v
                                for k, v in says.items()}))
        b = make_bridge(MCP_SANDBOXD_URL=made[-1].url, **env)
        if initialized:
            b.initialize()
            made[-1].wait("notifications/initialized")
        return made[-1], b

    yield make
    for s in made:
        s.close()


def refuses(address):
    """Nobody listens there: a port, or a path."""
    kind = socket.AF_UNIX if isinstance(address, str) else socket.AF_INET
    with socket.socket(kind) as s:
        return s.connect_ex(address if isinstance(address, str) else
                            ("127.0.0.1", address)) != 0


# ---- the real server

def test_a_client_works_and_ends(bridge, sandbox):
    assert "hello" in bridge.run(sandbox, "echo hello")
    names = [t["name"] for t in bridge.ask("tools/list")["result"]["tools"]]
    assert "run_sandbox" in names
    bridge.send(request("a b", "ping"))
    assert bridge.wait("a b")["result"] == {}
    assert bridge.end() == 0


def test_progress_comes_before_the_answer(bridge, sandbox):
    ask = run_shell(1, sandbox, "echo one; sleep 1.5; echo two")
    ask["params"]["_meta"] = {"progressToken": "p"}
    bridge.send(ask)
    assert "two" in text_of(bridge.wait(1))
    kinds = [m.get("method") for m in bridge.messages]
    assert "notifications/progress" in kinds
    assert kinds.index("notifications/progress") < \
        bridge.messages.index(bridge.find(1))


def test_a_cancelled_call_ends_its_run_and_is_not_answered(
        bridge, client, sandbox):
    bridge.send(run_shell(1, sandbox, "echo begun; sleep 600"))

    def runs():
        return client.call("list_runs", identifier=sandbox)["runs"]

    run, = wait_for(runs, LIMIT_S, "the run")
    client.wait_output(run["run_id"])
    bridge.send(notification("notifications/cancelled", requestId=1))
    assert client.wait_end(run["run_id"])["state"] == "canceled"
    assert bridge.ask("ping")["result"] == {}
    assert bridge.end() == 0
    assert bridge.find(1) is None


@pytest.mark.own()
def test_a_restart_of_the_server_is_not_noticed(bridge, server, sandbox):
    assert "one" in bridge.run(sandbox, "echo one | tee there")
    server.restart(signal.SIGKILL)
    assert "one" in bridge.run(sandbox, "cat there")
    server.stop(signal.SIGKILL)
    # Its front goes a moment later, with what it has accepted.
    wait_for(lambda: refuses(server.port), LIMIT_S, "nobody at the port")
    bridge.send(run_shell(1, sandbox, "cat there"))
    server.start()
    assert "one" in text_of(bridge.wait(1))


def test_a_thousand_requests_at_once(bridge):
    bridge.send(*(request(n, "ping") for n in range(1000, 2000)))
    wait_for(lambda: bridge.find(1999), LIMIT_S, "the last answer")
    assert bridge.end() == 0
    answered = sorted(m["id"] for m in bridge.messages
                      if m.get("id", 0) >= 1000)
    assert answered == list(range(1000, 2000))


def test_a_batch_of_2025_03_26(make_bridge, server):
    b = make_bridge(MCP_SANDBOXD_URL=f"http://127.0.0.1:{server.port}/mcp")
    b.initialize("2025-03-26")
    b.send([request(1, "ping"), request("b", "ping"), notification("x")])

    def answered():
        """As a batch of their own, or one by one."""
        return {m["id"] for n in list(b.messages)
                for m in (n if isinstance(n, list) else [n])} >= {1, "b"}

    wait_for(answered, LIMIT_S, "both answers")
    assert b.end() == 0


def test_notifications_pass_calls_that_take_their_time(make_scripted):
    server, b = make_scripted(tools_call=lambda v: v.is_gone())
    b.send(*(request(n, "tools/call", name="x") for n in range(1, 101)))
    server.wait("tools/call", 64)
    b.send(*(notification("notifications/x", n=n) for n in range(500)))
    server.wait("notifications/x", 500)
    assert len(server.of("tools/call")) == 64


def test_2026_07_28_needs_no_session(make_bridge, server):
    b = make_bridge(MCP_SANDBOXD_URL=f"http://127.0.0.1:{server.port}/mcp")
    b.send(request(1, "server/discover", **MODERN))
    answer = b.wait(1)  # a result, or the error of who knows no such revision
    assert "result" in answer or answer["error"]["code"] != REFUSED


# ---- lines

def pings(*numbers):
    return [json.dumps(request(n, "ping")).encode() for n in numbers]


def test_lines_end_in_any_way(bridge):
    one, two, three = pings(1, 2, 3)
    bridge.write(one + b"\r\n\r\n\n \t\n" + two + b"\n" + three)
    assert bridge.end() == 0
    assert {m["id"] for m in bridge.messages} == {0, 1, 2, 3}


@pytest.mark.parametrize("line", [
    b"nonsense", b'{"jsonrpc":"2.0","id":1,"meth', b'{"a":"\xff\xfe"}',
    b" ".join(pings(1, 2)), b"[" * 100000],
    ids=["no JSON", "cut", "no UTF-8", "two objects", "deep"])
def test_what_is_no_message_is_answered_and_the_next_is_read(bridge, line):
    bridge.write(line + b"\n" + pings(7)[0] + b"\n")
    assert bridge.wait(7)["result"] == {}
    error, = [m for m in bridge.messages if "error" in m]
    assert error["error"]["code"] == -32700 and "id" not in error


def test_an_input_that_ends_in_a_message_ends_the_bridge(bridge):
    bridge.write(b'{"jsonrpc":"2.0","id":1,"meth')
    assert bridge.end() == 0
    assert bridge.messages[-1]["error"]["code"] == -32700


@pytest.mark.parametrize("message, number", [
    ({"method": "tools/call", "params": {"x": "y" * 20_000_000},
      "jsonrpc": "2.0", "id": "late"}, "late"),
    ({"id": 5, "method": "tools/call", "params": ["y" * 20_000_000]}, 5),
    ({"method": "notifications/x", "params": {"x": "y" * 20_000_000}}, None),
], ids=["id at the end", "id at the start", "no id"])
def test_20_mb_are_refused_and_the_next_is_read(bridge, message, number):
    bridge.send(message, request(7, "ping"))
    assert bridge.wait(7)["result"] == {}
    error, = [m for m in bridge.messages if "error" in m]
    assert error.get("id") == number
    assert error["error"]["code"] == -32600
    assert "MAX_BODY_BYTES" in error["error"]["message"]


def test_what_the_server_finds_too_large_is_answered(bridge):
    bridge.send(request(1, "ping", x="y" * 10_000_000), request(2, "ping"))
    assert "error" in bridge.wait(1)
    assert bridge.wait(2)["result"] == {}


# ---- a client that does not read

def test_a_client_that_does_not_read_stops_the_bridge(make_bridge):
    large = {"x": "y" * 16384}
    server = Scripted(**{"tools/list": lambda v: v.result(large)})
    b = make_bridge(MCP_SANDBOXD_URL=server.url, reads=False)
    wanted = 6000  # more than may wait
    writer = threading.Thread(target=b.send, daemon=True, args=[
        request(n, "tools/list", x="z" * 4096) for n in range(wanted)])
    writer.start()
    server.wait("tools/list", 64)
    counts = []

    def has_settled():
        counts.append(len(server.visits))
        return len(counts) > 50 and counts[-50] == counts[-1]

    wait_for(has_settled, LIMIT_S, "the bridge to stop")
    assert counts[-1] < 300 and writer.is_alive()
    b.start(b.read)
    writer.join(LIMIT_S)
    assert b.end() == 0
    assert sorted(m["id"] for m in b.messages) == list(range(wanted))
    server.close()


def test_a_client_that_reads_slowly_has_all_after_its_last_word(make_bridge):
    """However long it takes, as long as it reads."""
    large = {"x": "y" * 65536}
    server = Scripted(**{"tools/list": lambda v: v.result(large)})
    b = make_bridge(MCP_SANDBOXD_URL=server.url, reads=False)
    wanted = 96
    b.send(*[request(n, "tools/list") for n in range(wanted)])
    b.proc.stdin.close()

    def read_slowly():
        for n, line in enumerate(b.proc.stdout):
            b.messages.append(json.loads(line))
            time.sleep(0.08 if n < 80 else 0)

    b.start(read_slowly)
    assert b.ended() == 0
    assert sorted(m["id"] for m in b.messages) == list(range(wanted))
    server.close()


# ---- sessions

def test_session_and_revision_go_with_each_message(make_scripted):
    server, b = make_scripted()
    b.ask("tools/list")
    for what in ("notifications/initialized", "tools/list", "GET"):
        headers = server.wait(what)[0].headers
        assert headers["mcp-session-id"] == "session-1"
        assert headers["mcp-protocol-version"] == REVISION
    assert "mcp-session-id" not in server.of("initialize")[0].headers
    assert b.end() == 0
    assert server.of("DELETE")[0].headers["mcp-session-id"] == "session-1"


def test_what_follows_initialize_waits_for_its_answer(make_scripted):
    server, b = make_scripted(initialized=False)
    b.send(initialize(), notification("notifications/initialized"),
           request(1, "tools/list"))
    b.wait(1)
    assert [v.what for v in server.visits if v.method == "POST"] == \
        ["initialize", "notifications/initialized", "tools/list"]
    assert server.of("tools/list")[0].headers["mcp-session-id"]


def lose_session(v):
    if v.headers["mcp-session-id"] == "session-1":
        v.answer(404, {"jsonrpc": "2.0", "error": {
            "code": -32001, "message": "Session not found"}})
    else:
        v.result({"session": v.headers["mcp-session-id"]})


def test_a_forgotten_session_is_made_anew(make_scripted):
    server, b = make_scripted(tools_list=lose_session)
    b.send(*(request(n, "tools/list") for n in (1, 2, 3)))
    for n in (1, 2, 3):
        assert b.wait(n)["result"] == {"session": "session-2"}
    assert len(server.of("initialize")) == 2
    assert len(server.of("notifications/initialized")) == 2
    assert b.end() == 0
    assert len([m for m in b.messages if m["id"] == 0]) == 1


def test_a_session_that_stays_unknown_is_an_error(make_scripted):
    server, b = make_scripted(tools_list=lambda v: v.answer(404))
    answer = b.ask("tools/list")
    assert answer["error"]["code"] == UNREACHABLE
    assert "initialize again" in answer["error"]["message"]
    assert len(server.of("tools/list")) == 2
    assert b.ask("ping")["result"] == {}


def test_the_servers_own_stream_is_passed_on_and_answered(make_scripted):
    streams = []

    def on_get(v):
        streams.append(v)
        v.stream()
        v.event(request("from there", "roots/list"), id="g-1")
        if len(streams) > 1:
            v.event(notification("notifications/message", level="info"))
            assert v.is_gone()

    server, b = make_scripted(GET=on_get)
    server.wait("GET", 2)  # it comes back when the first has ended
    assert server.of("GET")[1].headers["last-event-id"] == "g-1"
    wait_for(lambda: "notifications/message" in [
        m.get("method") for m in b.messages], LIMIT_S, "the notification")
    b.send({"jsonrpc": "2.0", "id": "from there", "result": {"roots": []}})
    assert server.wait("response")[0].message["result"] == {"roots": []}
    assert b.end() == 0


def test_batches_go_and_come_as_they_are(make_scripted):
    answers = [{"jsonrpc": "2.0", "id": n, "result": {}} for n in ("b", 1)]
    server, b = make_scripted(batch=lambda v: v.answer(200, answers))
    batch = [request(1, "ping"), notification("x"), request("b", "ping")]
    b.send(batch)
    wait_for(lambda: answers in b.messages, LIMIT_S, "the batch")
    assert server.of("batch")[0].message == batch


def test_json_of_several_lines_becomes_one(make_scripted):
    pretty = json.dumps({"jsonrpc": "2.0", "id": 1, "result": {"a": "b\nc"}},
                        indent=1).replace("\n", "\r\n").encode()
    _, b = make_scripted(ping=lambda v: v.answer(200, pretty))
    b.send(request(1, "ping"))
    assert b.wait(1)["result"] == {"a": "b\nc"}


# ---- 2026-07-28

def test_a_modern_request_names_itself_in_headers(make_scripted):
    server, b = make_scripted(initialized=False)
    b.send(request(1, "tools/call", name="café\r\nX: y", **MODERN),
           request(2, "resources/read", uri="sandbox://a", **MODERN))
    b.wait(1)
    b.wait(2)
    odd, = server.of("tools/call")
    assert odd.headers["mcp-protocol-version"] == "2026-07-28"
    assert odd.headers["mcp-method"] == "tools/call"
    assert odd.headers["mcp-name"] == "=?base64?Y2Fmw6kNClg6IHk=?="
    assert "x" not in odd.headers and "mcp-session-id" not in odd.headers
    plain, = server.of("resources/read")
    assert plain.headers["mcp-name"] == "sandbox://a"
    assert b.end() == 0
    assert server.of("DELETE") == []


def test_a_modern_cancel_closes_the_stream(make_scripted):
    gone = threading.Event()

    def on_call(v):
        v.stream()
        v.event(notification("notifications/progress", progressToken=1))
        if v.is_gone():
            gone.set()

    server, b = make_scripted(initialized=False, tools_call=on_call)
    b.send(request(1, "tools/call", name="slow", **MODERN))
    wait_for(lambda: b.messages, LIMIT_S, "progress")
    b.send(notification("notifications/cancelled", requestId=1))
    assert gone.wait(LIMIT_S)
    b.send(request(2, "ping", **MODERN))
    assert b.wait(2)["result"] == {}
    assert b.end() == 0
    assert b.find(1) is None
    assert server.of("notifications/cancelled") == []


# ---- connections that break

def answer_to(v, number, result=None):
    v.event({"jsonrpc": "2.0", "id": number, "result": result or {"n": 1}},
            id="last")


def test_a_stream_that_broke_is_taken_up_again(make_scripted):
    went = []

    def on_call(v):
        v.stream()
        v.event(id="e-1", retry=300)
        v.event(notification("notifications/progress", progress=1), id="e-2")
        went.append(time.monotonic())
        v.cut()

    def on_get(v):
        if "last-event-id" not in v.headers:
            v.answer(405)
            return
        went.append(time.monotonic())
        v.stream()
        answer_to(v, 1)

    server, b = make_scripted(tools_call=on_call, GET=on_get)
    b.send(request(1, "tools/call", name="x"))
    assert b.wait(1)["result"] == {"n": 1}
    assert went[1] - went[0] >= 0.3  # retry
    again = server.of("GET")[-1]
    assert again.headers["last-event-id"] == "e-2"
    assert again.headers["mcp-session-id"] == "session-1"
    assert len(server.of("tools/call")) == 1


def test_it_is_taken_up_again_when_the_server_is_back(make_scripted):
    def on_call(v):
        v.stream()
        v.event(id="e-1")
        server.close()
        v.cut()

    def on_get(v):
        if "last-event-id" in v.headers:
            v.stream()
            answer_to(v, 1)
        else:
            v.answer(405)

    server, b = make_scripted(tools_call=on_call, GET=on_get)
    server.wait("GET")
    b.send(request(1, "tools/call", name="x"))
    server.wait("tools/call")
    # Refused a few times: nothing else can be seen of that.
    time.sleep(0.5)
    server.open()
    assert b.wait(1)["result"] == {"n": 1}


@pytest.mark.parametrize("status", [400, 404, 405])
def test_a_stream_that_cannot_be_taken_up_is_an_error(make_scripted, status):
    def on_call(v):
        v.stream()
        v.event(id="e-1")

    _, b = make_scripted(tools_call=on_call, GET=lambda v: v.answer(
        status if "last-event-id" in v.headers else 405))
    error = b.ask("tools/call", name="x")["error"]
    assert error["code"] == BROKEN and "list_runs" in error["message"]


@pytest.mark.parametrize("begun", [False, True])
def test_a_call_that_may_have_been_received_is_not_sent_again(
        make_scripted, begun):
    def on_call(v):
        if begun:
            v.stream()
            v.event(notification("notifications/progress", progress=1))
        v.cut()

    server, b = make_scripted(tools_call=on_call)
    error = b.ask("tools/call", name="x")["error"]
    assert error["code"] == BROKEN
    assert "list_runs" in error["message"]
    assert b.ask("ping")["result"] == {}
    assert len(server.of("tools/call")) == 1


def test_what_was_not_received_is_sent_again(make_scripted):
    seen = []

    def on_call(v):
        seen.append(v)
        if len(seen) < 3:
            v.answer(503, {"error": "unavailable", "message": "starting"})
        else:
            v.result({"n": 3})

    _, b = make_scripted(tools_call=on_call)
    assert b.ask("tools/call", name="x")["result"] == {"n": 3}


def test_an_initialize_is_sent_again_as_it_does_nothing(make_scripted):
    seen = []

    def on_initialize(v):
        seen.append(v)
        if len(seen) == 1:
            v.cut()
        else:
            v.result({"protocolVersion": REVISION})

    _, b = make_scripted(initialize=on_initialize)
    assert b.find(0)["result"] == {"protocolVersion": REVISION}
    assert len(seen) == 2


def test_it_waits_for_a_server_and_then_says_so(make_scripted):
    server, b = make_scripted(MCP_SANDBOXD_STDIO_PATIENCE_MS="1000")
    server.close()
    error = b.ask("tools/call", name="x")["error"]
    assert error["code"] == UNREACHABLE
    assert "nothing was sent" in error["message"]
    server.open()
    assert b.ask("ping")["result"] == {}


def test_a_cancel_of_what_waits_for_a_server_drops_it(make_scripted):
    server, b = make_scripted()
    server.close()
    b.send(request(1, "tools/call", name="x"),
           notification("notifications/cancelled", requestId=1),
           request(2, "ping"))
    server.open()
    assert b.wait(2)["result"] == {}
    assert b.end() == 0
    assert b.find(1) is None


# ---- refusals

def test_a_refusal_of_http_is_an_answer(make_scripted):
    _, b = make_scripted(tools_list=lambda v: v.answer(
        401, {"error": "unauthorized", "message": "this server wants a token"}))
    error = b.ask("tools/list")["error"]
    assert error["code"] == REFUSED
    assert "HTTP 401: this server wants a token" in error["message"]
    assert "MCP_SANDBOXD_TOKEN" in error["message"]


@pytest.mark.parametrize("number", ["absent", None])
def test_an_error_without_an_id_gets_that_of_its_request(
        make_scripted, number):
    body = {"jsonrpc": "2.0", "error": {"code": -32600, "message": "no"}}
    if number is None:
        body["id"] = None
    _, b = make_scripted(tools_list=lambda v: v.answer(400, body))
    assert b.ask("tools/list")["error"] == body["error"]


@pytest.mark.parametrize("says", [
    lambda v: v.answer(200, b"<html>", kind="text/html"),
    lambda v: v.answer(200), lambda v: v.answer(204),
    lambda v: v.answer(302, Location="http://elsewhere.example/")],
    ids=["HTML", "nothing", "204", "redirect"])
def test_what_is_no_answer_is_an_error(make_scripted, says):
    _, b = make_scripted(tools_list=says)
    error = b.ask("tools/list")["error"]
    assert error["code"] == REFUSED and "HTTP " in error["message"]


def test_what_a_stream_has_that_is_no_json_is_left_out(make_scripted):
    def on_list(v):
        v.stream()
        v.send(b"data: hello\n\nevent: ping\ndata: 1\n\n: x\n\n")
        answer_to(v, v.message["id"])

    _, b = make_scripted(tools_list=on_list)
    assert b.ask("tools/list")["result"] == {"n": 1}
    assert any("no JSON" in n for n in b.log)


# ---- TLS

def test_https_is_judged_by_the_authorities_that_are_named(
        make_server, make_bridge, open_place):
    authority = Authority(str(open_place / "tls"))
    certificate, key = authority.issue("server")
    server = make_server(wait="port", env={
        "TLS_CERT_FILE": certificate, "TLS_KEY_FILE": key})
    url = f"https://127.0.0.1:{server.port}/mcp"
    b = make_bridge(MCP_SANDBOXD_URL=url,
                    MCP_SANDBOXD_CA_FILE=authority.certificate)
    assert b.initialize()["result"]
    assert b.end() == 0
    b = make_bridge(MCP_SANDBOXD_URL=url)
    b.send(initialize())
    error = b.wait(0)["error"]  # at once: another try is the same
    assert error["code"] == UNREACHABLE
    assert "certificate" in error["message"]
    assert "MCP_SANDBOXD_CA_FILE" in error["message"]
    assert b.end() == 0


# ---- tokens

SECRET = "mcp_secret_0123456789"


def test_a_token_is_sent_and_never_shown(make_scripted, tmp_path):
    path = tmp_path / "token"
    path.write_text(SECRET + "\n")
    for env in ({"MCP_SANDBOXD_TOKEN": SECRET},
                {"MCP_SANDBOXD_TOKEN_FILE": str(path)}):
        server, b = make_scripted(
            LOG_LEVEL="debug", tools_list=lambda v: v.answer(403), **env)
        b.ask("tools/list")
        assert b.end() == 0
        for v in server.visits:
            assert v.headers["authorization"] == f"Bearer {SECRET}"
        assert not any(SECRET in n for n in b.log)
        assert SECRET not in json.dumps(b.messages)


@pytest.mark.parametrize("env, words", [
    ({"MCP_SANDBOXD_URL": "ftp://a/b"}, "MCP_SANDBOXD_URL"),
    ({"MCP_SANDBOXD_URL": f"http://u:{SECRET}@a/b"}, "MCP_SANDBOXD_URL"),
    ({"MCP_SANDBOXD_TOKEN": SECRET, "MCP_SANDBOXD_TOKEN_FILE": "/x"},
     "one of them"),
    ({"MCP_SANDBOXD_TOKEN": SECRET + " x"}, "visible"),
    ({"MCP_SANDBOXD_TOKEN_FILE": "/no/such/file"}, "MCP_SANDBOXD_TOKEN_FILE"),
    ({"MCP_SANDBOXD_CA_FILE": "/no/such/file"}, "MCP_SANDBOXD_CA_FILE"),
])
def test_a_wrong_setting_stops_it(make_bridge, env, words):
    b = make_bridge(**{"MCP_SANDBOXD_URL": "http://127.0.0.1:1/mcp", **env})
    assert b.ended() == 78
    assert any(words in n for n in b.log)
    assert not any(SECRET in n for n in b.log) and b.messages == []


def test_settings_may_stand_behind_the_command(make_bridge):
    server = Scripted()
    b = make_bridge(f"MCP_SANDBOXD_URL={server.url}")
    assert b.initialize()["result"]
    assert b.end() == 0
    server.close()


@pytest.mark.own(MCP_SANDBOXD_TOKEN=SECRET)
def test_a_server_keeps_the_token_from_its_children(server):
    assert len(server.children()) > 1
    for pid, _ in server.children():
        with open(f"/proc/{pid}/environ", "rb") as f:
            assert SECRET.encode() not in f.read()


# ---- ends

def test_a_call_in_flight_has_a_few_seconds(make_scripted):
    server, b = make_scripted(tools_call=lambda v: v.is_gone())
    b.send(request(1, "tools/call", name="x"))
    server.wait("tools/call")
    begun = time.monotonic()
    assert b.end() == 0
    assert 3 < time.monotonic() - begun < 30


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGINT])
def test_a_signal_ends_it(make_scripted, number):
    server, b = make_scripted(tools_call=lambda v: v.is_gone())
    b.send(request(1, "tools/call", name="x"))
    server.wait("tools/call")
    b.proc.send_signal(number)
    assert b.ended() == 0


def test_a_client_that_closed_its_end_ends_it(make_bridge, server):
    b = make_bridge(MCP_SANDBOXD_URL=f"http://127.0.0.1:{server.port}/mcp",
                    reads=False)
    b.proc.stdout.close()
    b.send(initialize())
    assert b.ended() == 0


# ---- a server of its own

@pytest.fixture
def make_private(make_bridge, open_place, engine):
    """Bridges without a URL, of one DATA_DIR."""
    data = open_place / "data"

    made = []

    def make(*args, **env):
        made.append(make_bridge(*args, DATA_DIR=str(data), INSTANCE=instance,
                                **env))
        return made[-1]

    instance = f"stdio-{os.getpid()}-{time.monotonic_ns()}"
    make.data = data
    yield make
    for b in made:
        b.close()
    wait_for(lambda: servers_of(data) == [], LIMIT_S, "the server's end")
    for c in engine.containers(instance):
        engine.request("DELETE", f"/containers/{c['Id']}?force=1&v=1")


def servers_of(data):
    """Processes of mcp-sandboxd that serve this DATA_DIR."""
    found = []
    for pid in filter(str.isdigit, os.listdir("/proc")):
        try:
            with open(f"/proc/{pid}/cmdline", "rb") as f:
                words = f.read().split(b"\0")
        except OSError:
            continue
        if f"DATA_DIR={data}".encode() in words and b"BIND=none" in words:
            found.append(int(pid))
    return found


def test_without_a_url_it_has_a_server_of_its_own(make_private):
    b = make_private()
    b.initialize()
    assert "hello" in b.run("own", "echo hello | tee kept")
    assert len(servers_of(make_private.data)) == 1
    assert os.stat(make_private.data / "admin.sock").st_mode & 0o777 == 0o600
    assert any("admin.sock alone" in n for n in b.log)
    assert not any("listening on http" in n for n in b.log)
    assert b.end() == 0
    assert servers_of(make_private.data) == []
    b = make_private()  # sandboxes stay, and are found again
    b.initialize()
    assert "hello" in b.run("own", "cat kept")
    assert b.end() == 0


def test_a_second_one_shares_it_and_takes_over(make_private):
    first, second = make_private(), None
    first.initialize()
    assert "1" in first.run("both", "echo 1 > n; cat n")
    second = make_private()
    second.initialize()
    assert "1" in second.run("both", "cat n")
    assert not any("starts a server" in n for n in second.log)
    assert first.end() == 0
    assert "1" in second.run("both", "cat n")
    assert any("starts a server" in n for n in second.log)
    assert len(servers_of(make_private.data)) == 1
    assert second.end() == 0


def test_a_server_does_not_outlive_a_killed_bridge(make_private):
    b = make_private()
    b.initialize()
    assert len(servers_of(make_private.data)) == 1
    b.proc.kill()
    b.proc.wait(LIMIT_S)
    wait_for(lambda: servers_of(make_private.data) == [], LIMIT_S,
             "the server's end")


def test_a_server_that_was_killed_is_started_again(make_private):
    b = make_private()
    b.initialize()
    assert "1" in b.run("killed", "echo 1 > n; cat n")
    pid, = servers_of(make_private.data)
    os.kill(pid, signal.SIGKILL)
    b.wait_log("has ended: signal 9")
    wait_for(lambda: refuses(str(make_private.data / "admin.sock")), LIMIT_S,
             "nobody at the socket")
    assert "1" in b.run("killed", "cat n")
    assert b.end() == 0


def test_a_server_that_cannot_start_is_told_to_the_client(make_private):
    make_private.data.mkdir()
    (make_private.data / "instance").write_text("damaged")
    b = make_private()
    b.send(initialize())
    error = b.wait(0)["error"]
    assert error["code"] == UNREACHABLE
    assert "--check-config" in error["message"]
    assert b.ended() == 78
    assert any("instance is damaged" in n for n in b.log)


@pytest.mark.skipif(os.geteuid() != 0, reason="gives a directory away")
def test_a_directory_of_another_user_is_not_asked(make_private):
    make_private.data.mkdir()
    os.chown(make_private.data, 65534, 65534)
    b = make_private()
    assert b.ended() == 78
    assert any("belongs to uid 65534" in n for n in b.log)


def test_its_server_can_be_reached_over_http_too(build, make_private):
    """With a token; what goes over stdio goes on without."""
    b = make_private(STDIO_HTTP="true", REQUIRE_TOKEN="true", PORT="0")
    b.initialize()
    assert "hi" in b.run("a", "echo hi > /artifacts/x; cat /artifacts/x")
    port = int(re.search(r":(\d+)$", b.wait_log("listening on http:")[0])[1])

    def fetch(**headers):
        conn = http.client.HTTPConnection("127.0.0.1", port, timeout=LIMIT_S)
        with contextlib.closing(conn):
            conn.request("GET", "/artifacts/a/latest/x", headers=headers)
            answer = conn.getresponse()
            return answer.status, answer.read()

    assert fetch()[0] == 401
    ctl = Ctl(types.SimpleNamespace(build=build, data=str(make_private.data)))
    token = ctl.token("default")
    assert fetch(Authorization=f"Bearer {token}") == (200, b"hi\n")
    assert "again" in b.run("a", "echo again")
    assert b.end() == 0
    with pytest.raises(OSError):
        fetch()


def test_with_tenants_the_admin_socket_is_for_administration(
        make_server, make_bridge):
    server = make_server(env={"BIND": "none"}, wait=None)
    server.start(wait=False)
    server.wait_log("supervisor", "ready")
    server.ctl("tenant", "add", "acme")
    server.ctl("token", "add", "acme")
    b = make_bridge(DATA_DIR=server.data)
    b.send(initialize())
    error = b.wait(0)["error"]
    assert error["code"] == REFUSED and "HTTP 403" in error["message"]
    assert b.end() == 0
