"""Quotas of tenants: what is refused, and how that is told."""
import http.client
import json
import os
import signal
import time

import pytest

from client import wait_for
from test_tenants import Ctl, bearer


class Tenant:
    """A tenant of a server, with a client of its own."""

    def __init__(self, server, ctl, name):
        self.server = server
        self.ctl = ctl
        self.name = name
        ctl("tenant", "add", name)
        self.token = ctl.token(name)
        self.client = server.client(token=self.token)

    def set(self, **quotas):
        self.ctl("tenant", "set", self.name,
                 *(f"quota.{k}={v}" for k, v in quotas.items()))

    def used(self):
        return self.ctl.json("usage", self.name)


@pytest.fixture(scope="module")
def host(build, engine):
    from server import Server
    s = Server(build)
    yield s, Ctl(s)
    s.destroy(engine)


def test_one_sandbox_too_many(host, engine):
    a, b = Tenant(*host, "sand-a"), Tenant(*host, "sand-b")
    a.set(sandboxes=1, sandbox_memory_mb=128, sandbox_pids=64)
    run = a.client.run("one", "true")
    _, body = engine.request(
        "GET", f"/containers/{run['sandbox_container_id']}/json")
    limits = json.loads(body)["HostConfig"]
    assert (limits["Memory"], limits["PidsLimit"]) == (128 << 20, 64)
    told = a.client.fail("run_sandbox", identifier="two",
                         commands=[{"shell": "true"}])
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
    a.client.call("delete_sandbox", identifier="one")
    assert a.client.run("two", "true")["state"] == "completed"
    a.client.call("delete_sandbox", identifier="two")
    b.client.call("delete_sandbox", identifier="two")


def test_runs_wait_and_then_are_refused(host):
    a = Tenant(*host, "runs-a")
    a.set(runs_running=1, runs_queued=1)
    first = a.client.start("box", "sleep 1000")["run_id"]
    wait_for(lambda: a.client.status(first)["state"] == "running", 60,
             "the first run")
    second = a.client.start("box", "true")["run_id"]
    assert a.client.status(second)["waits_for"] == "quota runs_running"
    told = a.client.fail("run_sandbox", identifier="box",
                         commands=[{"shell": "true"}])
    assert told.startswith("quota_exceeded: quota runs_queued: "
                           "the limit is 1, used are 1: ")
    used = a.used()
    assert (used["runs_running"], used["runs_queued"]) == (1, 1)
    a.set(runs_running=2)
    wait_for(lambda: a.client.status(second)["state"] == "completed", 60,
             "the second run")
    a.client.call("delete_sandbox", identifier="box")


def test_requests_and_streams(host):
    a, b = Tenant(*host, "often-a"), Tenant(*host, "often-b")
    server = host[0]
    run = a.client.start("box", "sleep 1000")["run_id"]
    a.set(streams=1)
    stream = http.client.HTTPConnection("127.0.0.1", server.port, timeout=60)
    path = f"/mcp/events?run_id={run}"
    stream.request("GET", path, headers=bearer(a.token))
    answer = stream.getresponse()
    assert answer.status == 200 and answer.readline()
    status, headers, body = server.get(path, bearer(a.token))
    error = json.loads(body)["error"]
    assert status == 429 and int(headers["Retry-After"]) >= 1
    assert error["code"] == "quota_exceeded" and error["request_id"]
    assert (error["quota"], error["limit"], error["used"]) == ("streams", 1, 1)
    stream.close()
    wait_for(lambda: a.used()["streams"] == 0, 30, "the stream's end")
    a.client.call("delete_sandbox", identifier="box")
    # Slower than the test: the bucket stays empty.
    a.set(requests_per_second=1, request_burst=1)
    refused = None
    for _ in range(100):
        refused = server.get("/api/v1/whoami", bearer(a.token))
        if refused[0] == 429:
            break
    status, headers, body = refused
    error = json.loads(body)["error"]
    assert status == 429 and int(headers["Retry-After"]) >= 1
    assert (error["code"], error["quota"]) == (
        "quota_exceeded", "requests_per_second")
    answers = (a.client.post("{}") for _ in range(50))
    _, _, body = next(n for n in answers if n[0] == 429)
    error = json.loads(body)["error"]
    assert error["data"]["code"] == "quota_exceeded"
    assert error["data"]["quota"] == "requests_per_second"
    assert server.get("/api/v1/whoami", bearer(b.token))[0] == 200


def test_who_asks_too_often_hears_so_late(host):
    """Each on its own connection, and also when the client has left."""
    a, b = Tenant(*host, "late-a"), Tenant(*host, "late-b")
    server = host[0]
    a.set(requests_per_second=1, request_burst=1)
    conns = [http.client.HTTPConnection("127.0.0.1", server.port, timeout=60)
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
    assert server.get("/api/v1/whoami", bearer(b.token))[0] == 200
    refused = 0
    for conn in conns[20:]:
        answer = conn.getresponse()
        answer.read()
        if answer.status == 429:
            assert time.monotonic() - begin >= 0.1
            refused += 1
        conn.close()
    assert refused >= 10
    assert server.get("/api/v1/whoami", bearer(b.token))[0] == 200


def test_a_call_that_streams_is_a_stream(host):
    a = Tenant(*host, "calls-a")
    server = host[0]
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
    waits = [http.client.HTTPConnection("127.0.0.1", server.port, timeout=60)
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
    a.client.call("delete_sandbox", identifier="box")


def test_metrics_by_tenant_have_a_bound(host):
    a = Tenant(*host, "meter-a")
    server, ctl = host
    a.set(sandboxes=1)
    assert a.client.run("box", "echo 123")["state"] == "completed"
    a.client.fail("run_sandbox", identifier="two",
                  commands=[{"shell": "true"}])
    metrics = bearer(ctl.token("-", "--role", "metrics"))
    text = server.get("/metrics", metrics)[2].decode()
    for line in ('sandboxes{tenant="meter-a"} 1',
                 'runs_total{tenant="meter-a",status="completed"} 1',
                 'runs_queued{tenant="meter-a"} 0',
                 'output_bytes_total{tenant="meter-a"} 4',
                 'refusals_total{tenant="meter-a",quota="sandboxes"} 1'):
        assert f"\nsandboxd_tenant_{line}\n" in text, line
    assert 'tenant="other"' not in text
    assert server.get("/metrics", bearer(a.token))[0] == 403
    a.client.call("delete_sandbox", identifier="box")
    # One of that name, and more than have samples of their own.
    admin = server.client(token=ctl.token("-", "--role", "admin"))
    for name in ["other", *(f"many-{i}" for i in range(205))]:
        assert admin.request("POST", "/api/v1/tenants",
                             json.dumps({"name": name}))[0] == 201
    lines = server.get("/metrics", metrics)[2].decode().splitlines()
    of = [n for n in lines if n.startswith("sandboxd_tenant_sandboxes{")]
    assert len(of) == 201 and len(set(of)) == 201
    assert of[-1].startswith('sandboxd_tenant_sandboxes{tenant="other"} ')
    names = {n.split(" ")[0] for n in lines if not n.startswith("#")}
    assert len(names) == sum(not n.startswith("#") for n in lines)
    # Days of so many have a bound, too.
    assert admin.request("GET", "/api/v1/usage?days=400")[0] == 400
    used = json.loads(admin.request("GET", "/api/v1/usage?days=1")[2])
    assert len(used["tenants"]) > 205


def kill_front(server):
    old = server.pids("front")
    for pid in old:
        os.kill(pid, signal.SIGKILL)
    wait_for(lambda: server.pids("front") not in ([], old), 60, "a new front")
    wait_for(server.is_ready, 60, "the front")


def test_the_seconds_of_a_day_count_beyond_a_killed_front(host):
    server, ctl = host
    a, b = Tenant(*host, "day-a"), Tenant(*host, "day-b")
    run = a.client.start("box", "sleep 1000")["run_id"]
    wait_for(lambda: a.used()["run_seconds_today"] >= 1, 60, "a second")
    kill_front(server)
    a.client = server.client(token=a.token)
    # What goes on is counted from its beginning, not from the restart.
    wait_for(lambda: a.used()["run_seconds_today"] >= 2, 60, "it counts on")
    a.client.request("POST", f"/mcp/runs/{run}/cancel")
    a.client.wait_end(run)
    a.set(run_seconds_per_day=1)
    told = a.client.fail("run_sandbox", identifier="box",
                         commands=[{"shell": "true"}])
    assert told.startswith("quota_exceeded: quota run_seconds_per_day: ")
    kill_front(server)
    a.client = server.client(token=a.token)
    b.client = server.client(token=b.token)
    told = a.client.fail("run_sandbox", identifier="box",
                         commands=[{"shell": "true"}])
    assert told.startswith("quota_exceeded: quota run_seconds_per_day: ")
    assert b.client.run("box", "echo 123")["state"] == "completed"
    b.client.call("delete_sandbox", identifier="box")
    days = json.loads(server.get("/api/v1/usage?days=7",
                                 bearer(b.token))[2])["days"]
    sums = {k: sum(d[k] for d in days) for k in days[0] if k != "day"}
    assert 0 <= sums.pop("run_seconds") < 60
    assert sums == {"runs": 1, "output_bytes": 4, "artifact_bytes": 0,
                    "sandboxes": 1, "refusals": 0}
    text = ctl("usage", "day-a", "days=1")
    assert text.startswith("DAY ") and len(text.splitlines()) == 2
    # Milliseconds, and no more digits than that.
    assert len(text.splitlines()[1].split()[2].partition(".")[2]) <= 3, text
    for bad in ("days=401", "days=", "days=-1", "days=x"):
        assert server.get(f"/api/v1/usage?{bad}",
                          bearer(a.token))[0] == 400
    a.set(run_seconds_per_day=0)
    a.client.call("delete_sandbox", identifier="box")
