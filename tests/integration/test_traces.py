"""Who asked is found again: in the run's row, its log line, its programs."""
import json
import re

import pytest

from client import last_response, wait_for

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
    params["_meta"] = {"mcp-sandboxd/structured": True, **(meta or {})}
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


# ---- spans of runs, by the real courier, to receivers of the test's own

# What OpenTelemetry's protocol has of a span, in its JSON mapping.
SHAPE = {"traceId": r"[0-9a-f]{32}", "spanId": r"[0-9a-f]{16}",
         "parentSpanId": r"[0-9a-f]{16}", "startTimeUnixNano": r"[0-9]{19}",
         "endTimeUnixNano": r"[0-9]{19}"}
OTHERS = {"name": str, "kind": int, "attributes": list, "events": list,
          "status": dict}


def serve(make_server, receiver, **env):
    return make_server(env={
        "OTLP_ENDPOINT": f"http://127.0.0.1:{receiver.port}/",
        "RUN_AS_COURIER": "", **env})


def attributes(of):
    """Of a resource or a span; each value is of the type that it says."""
    out = {}
    for one in of["attributes"]:
        assert set(one) == {"key", "value"} and len(one["value"]) == 1
        (kind, value), = one["value"].items()
        assert kind in ("stringValue", "intValue") and isinstance(value, str)
        out[one["key"]] = int(value) if kind == "intValue" else value
    assert len(out) == len(of["attributes"])
    return out


def check_span(span):
    for key, value in span.items():
        if key in SHAPE:
            assert re.fullmatch(SHAPE[key], value), (key, value)
        else:
            assert isinstance(value, OTHERS[key]), (key, value)
    assert span["kind"] in (1, 2)
    assert int(span["startTimeUnixNano"]) <= int(span["endTimeUnixNano"])
    for event in span.get("events", []):
        assert set(event) == {"timeUnixNano", "name"}
        assert re.fullmatch("[0-9]{19}", event["timeUnixNano"])
    if "status" in span:
        assert span["status"]["code"] == 2 and span["status"]["message"]
    attributes(span)


def spans_of(got):
    """All spans of what was taken, after a look at their form."""
    out = []
    for g in got:
        (resource,) = g.body["resourceSpans"]
        about = attributes(resource["resource"])
        assert about["service.name"] == "mcp-sandboxd"
        (scope,) = resource["scopeSpans"]
        assert scope["scope"]["name"] == "mcp-sandboxd"
        for span in scope["spans"]:
            check_span(span)
            out.append(span)
    assert len({s["spanId"] for s in out}) == len(out)
    return out


def wait_spans(receiver, n):
    def enough():
        spans = spans_of(receiver.taken())
        return spans if len(spans) >= n else None
    return wait_for(enough, 60, f"{n} spans")


def counted(server, result):
    return server.metric(f'sandboxd_spans_total{{result="{result}"}}')


def test_a_run_and_its_commands_are_spans_of_the_callers_trace(
        make_server, receiver, open_place):
    headers = open_place / "headers"
    headers.write_text("X-Scope-OrgID: sandboxes\n")
    server = serve(make_server, receiver, OTLP_HEADERS_FILE=headers,
                   INSTANCE="spans-test")
    client = server.client()
    answer, request = call(client, headers={"traceparent": GOOD}, commands=[
        {"shell": "echo canary-out"}, {"shell": "exit 3"}])
    spans = wait_spans(receiver, 3)
    (run,) = [s for s in spans if s["kind"] == 2]
    assert run["traceId"] == TRACE and run["parentSpanId"] == SPAN
    assert run["name"] == "run_sandbox"
    about = attributes(run)
    assert about["sandboxd.run_id"] == answer["run_id"]
    assert about["sandboxd.request_id"] == request
    assert about["sandboxd.state"] == answer["state"] == "failed"
    assert about["sandboxd.exit_code"] == 3
    assert about["sandboxd.tenant"] == "default"
    assert [e["name"] for e in run["events"]] == ["sent", "started"]
    assert run["status"]["code"] == 2
    below = [s for s in spans if s["kind"] == 1]
    assert [attributes(s)["sandboxd.exit_code"] for s in below] == [0, 3]
    for s in below:
        assert s["traceId"] == TRACE and s["parentSpanId"] == run["spanId"]
        assert s["startTimeUnixNano"] >= run["startTimeUnixNano"]
        assert s["endTimeUnixNano"] <= run["endTimeUnixNano"]
    assert "status" not in below[0] and below[1]["status"]["code"] == 2
    got = receiver.taken()[0]
    assert got.path == "/v1/traces"
    assert got.headers["content-type"] == "application/json"
    assert got.headers["x-scope-orgid"] == "sandboxes"
    about = attributes(got.body["resourceSpans"][0]["resource"])
    assert about["service.instance.id"] == "spans-test"
    assert all(b"canary-out" not in g.raw for g in receiver.got)
    # Without a traceparent a trace of its own begins, of nobody.
    call(client, commands=[{"shell": "true"}])
    run = [s for s in wait_spans(receiver, 5) if s["kind"] == 2][-1]
    assert run["traceId"] != TRACE and "parentSpanId" not in run
    wait_for(lambda: counted(server, "taken") == 5, 60, "the count")


def test_what_is_not_taken_is_sent_again_or_dropped(make_server, receiver):
    answers = iter([(503, {"Retry-After": "1"}), (429, {}), (400, {})])
    receiver.answer = lambda got: next(answers, (200, {}))
    server = serve(make_server, receiver)
    client = server.client()
    client.run("box", "true")
    wait_for(lambda: counted(server, "dropped") == 2, 60, "a batch dropped")
    first, second, third = receiver.got[:3]
    assert first.raw == second.raw == third.raw
    server.wait_log("spans of runs are sent again: OTLP_ENDPOINT answered")
    client.run("box", "true")
    assert len(wait_spans(receiver, 2)) == 2
    wait_for(lambda: counted(server, "taken") == 2, 60, "the count")


def test_a_receiver_that_does_not_answer_costs_no_more_than_a_queue(
        make_server, receiver):
    """More spans than the queue holds; then it answers, and has the first."""
    runs, commands = 18, 63
    receiver.answer = lambda got: (503, {})
    server = serve(make_server, receiver)
    client = server.client()
    for i in range(runs):
        client.run("box", *[":"] * commands)
    dropped = wait_for(lambda: counted(server, "dropped"), 60, "drops")
    server.wait_log("spans of runs are ")
    receiver.answer = lambda got: (200, {})
    total = runs * (commands + 1)
    wait_for(lambda: counted(server, "taken") + counted(server, "dropped")
             == total, 180, "the queue to empty")
    assert counted(server, "dropped") == dropped < total - 500
    assert len(spans_of(receiver.taken())) == total - dropped
    assert all(len(g.raw) <= 60000 for g in receiver.got)
