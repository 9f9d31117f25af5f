"""An answer whose connection was lost is taken up again by an event's id."""
import http.client
import json
import signal

import pytest

from tenants import Tenant

SLOW = "echo one; sleep {}; echo two; exit 3"


class Stream:
    """A request of a client on a connection of its own, event by event."""

    def __init__(self, client, method, message=None, last_event_id=None):
        self.conn = http.client.HTTPConnection("127.0.0.1", client.port,
                                               timeout=60)
        head = {"Accept": "text/event-stream",
                "Mcp-Session-Id": client.session,
                "MCP-Protocol-Version": client.revision}
        if client.token is not None:
            head["Authorization"] = f"Bearer {client.token}"
        if message is not None:
            head["Content-Type"] = "application/json"
            head["Accept"] = "application/json, text/event-stream"
        if last_event_id is not None:
            head["Last-Event-ID"] = last_event_id
        self.conn.request(method, "/mcp",
                          None if message is None else json.dumps(message),
                          head)
        self.answer = self.conn.getresponse()
        self.status = self.answer.status
        self.ids = []

    def event(self):
        """The next one's fields; None at the end of the stream."""
        fields = {}
        while line := self.answer.readline().decode():
            if line == "\n" and fields:
                if "id" in fields:
                    self.ids.append(fields["id"])
                return fields
            name, _, value = line.rstrip("\n").partition(": ")
            if name:
                fields[name] = value
        return None

    def messages(self):
        while (event := self.event()) is not None:
            if event["data"]:
                yield json.loads(event["data"])

    def response(self):
        """The last message; everything before it is no response."""
        *before, last = self.messages()
        assert all("method" in m for m in before), before
        return last

    def close(self):
        """Cut: the server sees the connection go."""
        self.conn.close()


def begin(client, tool, arguments, number, token=None):
    """The stream of a call, which has been primed."""
    params = {"name": tool, "arguments": arguments,
              "_meta": {"mcp-sandboxd/structured": True}}
    if token is not None:
        params["_meta"]["progressToken"] = token
    s = Stream(client, "POST", {
        "jsonrpc": "2.0", "id": number, "method": "tools/call",
        "params": params})
    assert s.answer.headers["Content-Type"].startswith("text/event-stream")
    first = s.event()
    assert first["data"] == "" and first["retry"] == "1000"
    assert 0 < len(first["id"]) <= 512
    return s


def run_args(name, seconds, **options):
    return {"identifier": name, "commands": [{"shell": SLOW.format(seconds)}],
            "options": {"await_completion": True, "await_timeout_ms": 60000,
                        **options}}


def take_up(client, last_event_id):
    s = Stream(client, "GET", last_event_id=last_event_id)
    assert s.status == 200, s.answer.read()
    return s


def check_run(message, number):
    assert message["id"] == number
    final = message["result"]["structuredContent"]["final"]
    assert final["commands"][0]["stdout"] == "one\ntwo\n"
    assert final["commands"][0]["exit_code"] == 3
    return message["result"]


@pytest.fixture
def session(client):
    client.initialize()
    return client


@pytest.mark.own
def test_kill_of_everything_in_the_middle_of_a_call(server, session):
    calls = {
        101: begin(session, "run_sandbox", run_args("a", 9), 101),
        102: begin(session, "run_sandbox", run_args("b", 9), 102, token="t"),
    }
    session.call("initialize_sandbox", identifier="c")
    calls[103] = begin(session, "execute_code", {
        "identifier": "c",
        "code": "import time; print(1); time.sleep(7); print(2)"}, 103)
    other = session.start("d", "sleep 7; echo done")["run_id"]
    calls[104] = begin(session, "get_run",
                       {"run_id": other, "wait_ms": 40000}, 104)
    ids = {n: s.ids[-1] for n, s in calls.items()}
    server.stop(signal.SIGKILL)
    for s in calls.values():
        s.close()
    server.start()
    again = {n: take_up(session, i) for n, i in ids.items()}
    first = again[101].event()
    assert first["data"] == ""
    check_run(again[101].response(), 101)
    messages = list(again[102].messages())
    assert messages[-1]["id"] == 102
    values = [m["params"]["progress"] for m in messages[:-1]]
    assert values == sorted(set(values))
    assert all(m["params"]["progressToken"] == "t" for m in messages[:-1])
    check_run(messages[-1], 102)
    code = again[103].response()
    assert code["id"] == 103
    assert code["result"]["structuredContent"]["output"] == "1\n2\n"
    got = again[104].response()["result"]["structuredContent"]
    assert got["state"] == "completed"
    assert got["commands"][0]["stdout"] == "done\n"


@pytest.mark.own
def test_what_has_ended_meanwhile_is_said_from_the_history(server, session):
    s = begin(session, "run_sandbox", run_args("a", 2), 7)
    whole = begin(session, "run_sandbox", run_args("b", 2), 8)
    expected = check_run(whole.response(), 8)
    lost = s.ids[-1]
    run = expected["structuredContent"]["run_id"]
    server.stop(signal.SIGKILL)
    s.close()
    server.start()
    session.wait_end(run)
    for _ in range(2):  # it may be asked for more than once
        answer = take_up(session, lost).response()
        check_run(answer, 7)
        assert sorted(answer["result"]) == sorted(expected)
        assert (sorted(answer["result"]["structuredContent"]["final"]) ==
                sorted(expected["structuredContent"]["final"]))


def test_a_cut_connection_loses_nothing(session, sandbox):
    s = begin(session, "run_sandbox", run_args(sandbox, 4), "x")
    s.close()
    again = take_up(session, s.ids[-1])
    again.event()
    once_more = take_up(session, again.ids[-1])
    assert list(again.messages()) == []
    check_run(once_more.response(), "x")
    assert Stream(session, "GET", last_event_id=once_more.ids[-1]).status \
        == 405


def test_a_wait_that_is_over_is_answered_at_once(session, sandbox):
    s = begin(session, "run_sandbox",
              run_args(sandbox, 8, await_timeout_ms=3500), 5)
    s.close()
    answer = take_up(session, s.ids[-1]).response()
    assert answer["result"]["structuredContent"]["final"] is None
    run = answer["result"]["structuredContent"]["run_id"]
    late = take_up(session, s.ids[-1]).response()
    for result in (late["result"], answer["result"]):
        # What is measured of a run that goes on.
        assert result["structuredContent"].pop("so_far")["commands"] == 1
        text = result["content"][0].pop("text")
        assert text.startswith(f"run {run} has not ended yet; call get_run ")
        assert "\nstdout so far, 4 bytes:\none\n" in text
    assert late["result"] == answer["result"]
    assert session.wait_end(run)["commands"][0]["exit_code"] == 3


def test_streams_of_one_session_are_apart(session, sandbox):
    one = begin(session, "run_sandbox", run_args(f"{sandbox}1", 3), 1, "t1")
    two = begin(session, "run_sandbox", run_args(f"{sandbox}2", 3), 2, "t2")
    one.close()
    messages = list(take_up(session, one.ids[-1]).messages())
    assert all(m.get("id") == 1 or m["params"]["progressToken"] == "t1"
               for m in messages)
    check_run(messages[-1], 1)
    check_run(two.response(), 2)


def test_ids_of_others_are_refused(server, session, sandbox):
    s = begin(session, "run_sandbox", run_args(sandbox, 2), 1)
    other = server.client()
    other.initialize()
    refusals = [Stream(session, "GET", last_event_id="garbage"),
                Stream(session, "GET", last_event_id=s.ids[-1][:-4] + "AAAA"),
                Stream(other, "GET", last_event_id=s.ids[-1])]
    bodies = [(r.status, r.answer.read()) for r in refusals]
    assert {b[0] for b in bodies} == {400}
    assert len({b[1] for b in bodies}) == 1
    other.request("DELETE", "/mcp", headers={"Mcp-Session-Id": other.session})
    assert Stream(other, "GET", last_event_id=s.ids[-1]).status == 404
    check_run(s.response(), 1)
    assert Stream(session, "GET", last_event_id=s.ids[-1]).status == 405


@pytest.mark.own
def test_another_tenant_gets_nothing(server):
    clients = [Tenant(server, name).client for name in ("one", "two")]
    for c in clients:
        c.initialize()
    s = begin(clients[0], "run_sandbox", run_args("a", 2), 1)
    assert Stream(clients[1], "GET", last_event_id=s.ids[-1]).status == 400
    clients[1].session = clients[0].session
    assert Stream(clients[1], "GET", last_event_id=s.ids[-1]).status == 404
    check_run(s.response(), 1)


def test_older_revisions_are_sent_no_empty_event(server, sandbox):
    client = server.client(revision="2025-06-18")
    client.initialize()
    s = Stream(client, "POST", {
        "jsonrpc": "2.0", "id": 1, "method": "tools/call", "params": {
            "name": "run_sandbox", "arguments": run_args(sandbox, 3),
            "_meta": {"progressToken": 1,
                      "mcp-sandboxd/structured": True}}})
    first = s.event()
    assert json.loads(first["data"])["method"] == "notifications/progress"
    s.close()
    again = take_up(client, first["id"])
    messages = []
    while (event := again.event()) is not None:
        messages.append(json.loads(event["data"]))
    check_run(messages[-1], 1)


def test_a_cancel_ends_a_run_that_was_taken_up(session, sandbox):
    s = begin(session, "run_sandbox", run_args(sandbox, 60), "c")
    s.close()
    again = take_up(session, s.ids[-1])
    again.event()
    status, _, _ = session.post({
        "jsonrpc": "2.0", "method": "notifications/cancelled",
        "params": {"requestId": "c"}})
    assert status == 202
    assert list(again.messages()) == []
    run = session.call("list_runs", identifier=sandbox)["runs"][0]["run_id"]
    assert session.wait_end(run)["state"] == "canceled"


@pytest.mark.own
def test_code_that_has_ended_is_said_from_the_history(server, session):
    session.call("initialize_sandbox", identifier="c")
    code = "import time\nprint('a', flush=True)\ntime.sleep(2.5)\nprint('b')"
    s = begin(session, "execute_code",
              {"identifier": "c", "code": code}, "c")
    lost = s.ids[-1]
    expected = s.response()
    server.restart()
    assert take_up(session, lost).response() == expected
