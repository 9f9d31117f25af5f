"""Who asked is found again: in the run's row, its log line, its programs."""
import json
import re

import pytest

from client import last_response

pytestmark = pytest.mark.own

TRACE = "4bf92f3577b34da6a3ce929d0e0e4736"
SPAN = "00f067aa0ba902b7"
GOOD = f"00-{TRACE}-{SPAN}-01"
OTHER = "00-aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa-bbbbbbbbbbbbbbbb-00"


def call(client, headers=None, meta=None, **arguments):
    """-> (the tool's structured answer, the answer's X-Request-Id)"""
    params = {"name": "run_sandbox", "arguments": {
        "identifier": "box", **arguments,
        "options": {"await_completion": True, "await_timeout_ms": 60000}}}
    if meta:
        params["_meta"] = meta
    if client.session is None:
        client.initialize()
    status, answered, data = client.post(
        {"jsonrpc": "2.0", "id": 7, "method": "tools/call",
         "params": params}, headers)
    assert status == 200, data
    result = (json.loads(data) if data.startswith(b"{")
              else last_response(data))["result"]
    assert not result.get("isError"), result
    return result["structuredContent"]["final"], answered.get("X-Request-Id")


def row(server, run):
    """-> trace, span, parent_span, request_id of a run"""
    found = server.run_row(run)
    return [found[c] for c in ("trace", "span", "parent_span", "request_id")]


def shown(client, **how):
    """-> run, what its program has in TRACEPARENT"""
    answer, _ = call(client, commands=[
        {"shell": 'echo "[${TRACEPARENT-none}]"'}], **how)
    text = answer["commands"][0]["stdout"]
    return answer["run_id"], re.fullmatch(r"\[(.*)\]\n", text)[1]


@pytest.mark.own(LOG_FORMAT="logfmt", LOG_RUNS="true", LOG_LEVEL="debug")
def test_a_trace_goes_into_row_line_and_program(server, client):
    run, seen = shown(client, headers={"traceparent": GOOD})
    trace, span, parent, request = row(server, run)
    assert (trace, parent) == (TRACE, SPAN)
    assert re.fullmatch("[0-9a-f]{16}", span) and span != SPAN
    assert seen == f"00-{TRACE}-{span}-01"
    line = server.wait_log(f'msg="run ended" run={run} ')[0]
    assert line.startswith("ts=") and " level=info role=front pid=" in line
    for field in (f"trace={TRACE}", f"span={span}", f"parent_span={SPAN}",
                  f"request={request}", 'msg="run ended"'):
        assert f" {field}" in line + " ", line
    line = server.wait_log(f'msg="run started" run={run}')[0]
    assert f" request={request}" in line and " role=worker/" in line
    # The message's own names the call; the connection's may be a proxy's.
    run, seen = shown(client, headers={"traceparent": GOOD},
                      meta={"traceparent": OTHER})
    assert row(server, run)[0] == "a" * 32 and seen.endswith("-00")


def test_without_a_good_one_a_trace_of_our_own_begins(server, client):
    seen = set()
    for bad in ({}, {"headers": {"traceparent": GOOD.upper()}},
                {"headers": {"traceparent": "x" * 4000}},
                {"meta": {"traceparent": 7}},
                {"meta": {"traceparent": GOOD + "-x"}}):
        run, variable = shown(client, **bad)
        trace, span, parent, _ = row(server, run)
        assert re.fullmatch("[0-9a-f]{32}", trace) and parent == ""
        assert variable == "none"
        seen.add(trace)
    assert len(seen) == 5 and TRACE not in seen
    # A bad one in the message leaves the header's.
    run, _ = shown(client, headers={"traceparent": GOOD},
                   meta={"traceparent": "bad"})
    assert row(server, run)[0] == TRACE
    # Nor are two headers one of them.
    conn = client.connect()
    conn.putrequest("POST", f"/api/v1/runs/{run}/rerun")
    for parent in (GOOD, OTHER):
        conn.putheader("traceparent", parent)
    conn.endheaders()
    again = json.loads(conn.getresponse().read())["run_id"]
    assert row(server, again)[0] not in (TRACE, "a" * 32, "")
    client.wait_end(again)


def test_a_clients_own_variable_stays(client):
    answer, _ = call(client, headers={"traceparent": GOOD}, commands=[
        {"shell": "echo $TRACEPARENT", "env": {"TRACEPARENT": "mine"}}])
    assert answer["commands"][0]["stdout"] == "mine\n"


def test_a_run_that_is_run_once_more_is_of_the_traces_of_who_asks(server,
                                                                  client):
    first, seen = shown(client, headers={"traceparent": GOOD})
    assert seen != "none"
    for parent, want in ((OTHER, ("a" * 32, "b" * 16)), (None, (None, ""))):
        again = client.ask("POST", f"/api/v1/runs/{first}/rerun", want=201, **(
            {"traceparent": parent} if parent else {}))["run_id"]
        trace, span, above, _ = row(server, again)
        assert (trace if parent else None, above) == want
        assert re.fullmatch("[0-9a-f]{32}", trace) and trace != TRACE
        client.wait_end(again)
        output = client.request(
            "GET", f"/api/v1/runs/{again}/output?stream=stdout")[2].decode()
        assert (f"[00-{trace}-{span}-00]" if parent else "[none]") in output
