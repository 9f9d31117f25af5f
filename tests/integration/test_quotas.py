"""Quotas of tenants: what is refused, and how that is told."""
import http.client
import json
import time

import pytest

from client import wait_for
from server import serving
from tenants import Tenant, bearer


@pytest.fixture(scope="module")
def host(build, engine):
    with serving(build, engine) as server:
        yield server


def test_one_sandbox_too_many(host, engine):
    a, b = Tenant(host, "sand-a"), Tenant(host, "sand-b")
    a.set(sandboxes=1, sandbox_memory_mb=128, sandbox_pids=64)
    run = a.client.run("one", "true")
    limits = engine.inspect(run["sandbox_container_id"])["HostConfig"]
    assert (limits["Memory"], limits["PidsLimit"]) == (128 << 20, 64)
    told = a.client.refused("two", "true")
    assert told.startswith("quota_exceeded: quota sandboxes: "
                           "the limit is 1, used are 1: ")
    assert "delete_sandbox" in told
    told = a.client.tool("restart_sandbox", identifier="two")
    assert told["content"][0]["text"].startswith("quota_exceeded: ")
    assert "structuredContent" not in told
    assert told["_meta"] == {"mcp-sandboxd/refusal": {
        "code": "quota_exceeded", "quota": "sandboxes", "limit": 1, "used": 1,
        "retry_after": 10}}
    a.client.call("restart_sandbox", identifier="one")
    assert b.client.run("two", "true")["state"] == "completed"
    used = a.used()
    assert (used["sandboxes"], used["memory_bytes"]) == (1, 128 << 20)
    a.client.delete("one")
    assert a.client.run("two", "true")["state"] == "completed"
    a.client.delete("two")
    b.client.delete("two")


def test_runs_wait_and_then_are_refused(host):
    a = Tenant(host, "runs-a")
    a.set(runs_running=1, runs_queued=1)
    first = a.client.start("box", "sleep 1000")["run_id"]
    a.client.wait_state(first)
    second = a.client.start("box", "true")["run_id"]
    assert a.client.status(second)["waits_for"] == "quota runs_running"
    told = a.client.refused("box", "true")
    assert told.startswith("quota_exceeded: quota runs_queued: "
                           "the limit is 1, used are 1: ")
    used = a.used()
    assert (used["runs_running"], used["runs_queued"]) == (1, 1)
    a.set(runs_running=2)
    a.client.wait_state(second, "completed")
    a.client.delete("box")


def test_requests_and_streams(host):
    a, b = Tenant(host, "often-a"), Tenant(host, "often-b")
    run = a.client.start("box", "sleep 1000")["run_id"]
    a.set(streams=1)
    path = f"/mcp/events?run_id={run}"
    stream = host.send(f"GET {path}", f"Authorization: Bearer {a.token}")
    assert stream.recv(4096).startswith(b"HTTP/1.1 200")
    status, headers, body = host.get(path, bearer(a.token))
    error = json.loads(body)["error"]
    assert status == 429 and int(headers["Retry-After"]) >= 1
    assert error["code"] == "quota_exceeded" and error["request_id"]
    assert (error["quota"], error["limit"], error["used"]) == ("streams", 1, 1)
    stream.close()
    wait_for(lambda: a.used()["streams"] == 0, 30, "the stream's end")
    a.client.delete("box")
    # Slower than the test: the bucket stays empty.
    a.set(requests_per_second=1, request_burst=1)
    answers = (host.get("/api/v1/whoami", bearer(a.token)) for _ in range(100))
    status, headers, body = next(n for n in answers if n[0] == 429)
    error = json.loads(body)["error"]
    assert int(headers["Retry-After"]) >= 1
    assert (error["code"], error["quota"]) == (
        "quota_exceeded", "requests_per_second")
    answers = (a.client.post("{}") for _ in range(50))
    _, _, body = next(n for n in answers if n[0] == 429)
    error = json.loads(body)["error"]
    assert error["data"]["code"] == "quota_exceeded"
    assert error["data"]["quota"] == "requests_per_second"
    assert host.get("/api/v1/whoami", bearer(b.token))[0] == 200


def test_who_asks_too_often_hears_so_late(host):
    """Each on its own connection, and also when the client has left."""
    a, b = Tenant(host, "late-a"), Tenant(host, "late-b")
    a.set(requests_per_second=1, request_burst=1)
    conns = [http.client.HTTPConnection("127.0.0.1", host.port, timeout=60)
             for _ in range(40)]
    for conn in conns:
        conn.connect()
    begin = time.monotonic()
    for conn in conns:
        conn.request("POST", "/mcp", body=b"{}" + b" " * 100000,
                     headers={**bearer(a.token),
                              "Content-Type": "application/json"})
    for conn in conns[:20]:
        conn.close()
    assert host.get("/api/v1/whoami", bearer(b.token))[0] == 200
    refused = 0
    for conn in conns[20:]:
        answer = conn.getresponse()
        answer.read()
        if answer.status == 429:
            assert time.monotonic() - begin >= 0.1
            refused += 1
        conn.close()
    assert refused >= 10
    assert host.get("/api/v1/whoami", bearer(b.token))[0] == 200


def test_a_call_that_streams_is_a_stream(host):
    a = Tenant(host, "calls-a")
    run = a.client.start("box", "sleep 1000")["run_id"]
    a.set(streams=1)
    # It opens its stream when it has run for a second.
    call = {"jsonrpc": "2.0", "id": 1, "method": "tools/call", "params": {
        "name": "get_run", "arguments": {"run_id": run, "wait_ms": 45000},
        "_meta": {"progressToken": 1}}}
    head = {"Content-Type": "application/json", **bearer(a.token),
            "Accept": "application/json, text/event-stream",
            "Mcp-Session-Id": a.client.session,
            "MCP-Protocol-Version": a.client.revision}
    waits = [http.client.HTTPConnection("127.0.0.1", host.port, timeout=60)
             for _ in range(2)]
    waits[0].request("POST", "/mcp", json.dumps(call), head)
    first = waits[0].getresponse()
    assert first.headers["Content-Type"].startswith("text/event-stream"), \
        first.read()
    assert a.used()["streams"] == 1
    # Beyond the quota a client gets a plain answer if it takes one.
    waits[1].request("POST", "/mcp", json.dumps({**call, "id": 2}), head)
    only = {**head, "Accept": "text/event-stream"}
    status, headers, body = a.client.request(
        "POST", "/mcp", json.dumps({**call, "id": 3}), only)
    assert status == 429 and int(headers["Retry-After"]) >= 1
    assert "quota streams" in json.loads(body)["error"]["message"]
    a.client.request("POST", f"/mcp/runs/{run}/cancel")
    second = waits[1].getresponse()
    assert second.headers["Content-Type"].startswith("application/json")
    assert json.loads(second.read())["id"] == 2
    assert b"canceled" in first.read()
    wait_for(lambda: a.used()["streams"] == 0, 30, "the stream's end")
    for conn in waits:
        conn.close()
    a.client.delete("box")


def test_metrics_by_tenant_have_a_bound(host):
    a = Tenant(host, "meter-a")
    a.set(sandboxes=1)
    assert a.client.run("box", "echo 123")["state"] == "completed"
    a.client.refused("two", "true")
    metrics = bearer(host.ctl.token("-", "--role", "metrics"))
    text = host.get("/metrics", metrics)[2].decode()
    for line in ('sandboxes{tenant="meter-a"} 1',
                 'runs_total{tenant="meter-a",status="completed"} 1',
                 'runs_queued{tenant="meter-a"} 0',
                 'output_bytes_total{tenant="meter-a"} 4',
                 'refusals_total{tenant="meter-a",quota="sandboxes"} 1'):
        assert f"\nsandboxd_tenant_{line}\n" in text, line
    assert 'tenant="other"' not in text
    assert host.get("/metrics", bearer(a.token))[0] == 403
    a.client.delete("box")
    # One of that name, and more than have samples of their own.
    admin = host.client(token=host.ctl.token("-", "--role", "admin"))
    for name in ["other", *(f"many-{i}" for i in range(205))]:
        admin.ask("POST", "/api/v1/tenants", {"name": name}, 201)
    lines = host.get("/metrics", metrics)[2].decode().splitlines()
    of = [n for n in lines if n.startswith("sandboxd_tenant_sandboxes{")]
    assert len(of) == 201 and len(set(of)) == 201
    assert of[-1].startswith('sandboxd_tenant_sandboxes{tenant="other"} ')
    names = {n.split(" ")[0] for n in lines if not n.startswith("#")}
    assert len(names) == sum(not n.startswith("#") for n in lines)
    # Days of so many have a bound, too.
    assert admin.request("GET", "/api/v1/usage?days=400")[0] == 400
    used = admin.get("/api/v1/usage?days=1")
    assert len(used["tenants"]) > 205


def test_the_seconds_of_a_day_count_beyond_a_killed_front(host):
    a, b = Tenant(host, "day-a"), Tenant(host, "day-b")
    run = a.client.start("box", "sleep 1000")["run_id"]
    wait_for(lambda: a.used()["run_seconds_today"] >= 1, 60, "a second")
    host.kill("front")
    # What goes on is counted from its beginning, not from the restart.
    wait_for(lambda: a.used()["run_seconds_today"] >= 2, 60, "it counts on")
    a.client.request("POST", f"/mcp/runs/{run}/cancel")
    a.client.wait_end(run)
    a.set(run_seconds_per_day=1)
    told = a.client.refused("box", "true")
    assert told.startswith("quota_exceeded: quota run_seconds_per_day: ")
    host.kill("front")
    told = a.client.refused("box", "true")
    assert told.startswith("quota_exceeded: quota run_seconds_per_day: ")
    assert b.client.run("box", "echo 123")["state"] == "completed"
    b.client.delete("box")
    days = b.client.get("/api/v1/usage?days=7")["days"]
    sums = {k: sum(d[k] for d in days) for k in days[0] if k != "day"}
    assert 0 <= sums.pop("run_seconds") < 60
    assert sums == {"runs": 1, "output_bytes": 4, "artifact_bytes": 0,
                    "sandboxes": 1, "refusals": 0}
    text = host.ctl("usage", "day-a", "days=1")
    assert text.startswith("DAY ") and len(text.splitlines()) == 2
    # Milliseconds, and no more digits than that.
    assert len(text.splitlines()[1].split()[2].partition(".")[2]) <= 3, text
    for bad in ("days=401", "days=", "days=-1", "days=x"):
        a.client.get(f"/api/v1/usage?{bad}", 400)
    a.set(run_seconds_per_day=0)
    a.client.delete("box")
