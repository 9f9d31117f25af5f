"""GET /api/v1/events: what happens in a tenant, and to the server."""
import contextlib
import http.client
import os
import signal
import threading
import time

import pytest

from client import Stream, wait_for

PATIENCE = 90


class TenantStream(Stream):
    def __init__(self, server, query="after=0", token=None):
        super().__init__(server.port, f"/api/v1/events?{query}", token)

    def seqs(self):
        return [e["data"]["seq"] for e in self.events]


@contextlib.contextmanager
def stream(server, *args, **kwargs):
    s = TenantStream(server, *args, **kwargs)
    s.start()
    try:
        yield s
    finally:
        s.is_over = True


def page(client, query=""):
    return client.get(f"/api/v1/events?follow=false&{query}")


def all_events(client, query="", limit=128, after="0"):
    found = []
    while True:
        p = page(client, f"limit={limit}&after={after}&{query}")
        found += p["events"]
        after = p["next"]
        if not p["has_more"]:
            return found


def wait_for_kind(s, kind, times=1):
    wait_for(lambda: s.kinds().count(kind) >= times, PATIENCE,
             f"{times} times {kind}, in {s.kinds()}")


@pytest.mark.own
def test_a_sandbox_and_its_runs_are_told_in_order(server, client):
    with stream(server) as s:
        run = client.run("box", "echo a", "exit 3")
        client.call("restart_sandbox", identifier="box")
        client.delete("box")
        wait_for_kind(s, "sandbox.removed", 2)
        assert s.seqs() == list(range(1, len(s.events) + 1))
        kinds = s.kinds()
    for earlier, later in (("sandbox.created", "sandbox.ready"),
                           ("sandbox.ready", "run.ended"),
                           ("run.ended", "sandbox.removing"),
                           ("sandbox.removing", "sandbox.removed")):
        assert kinds.index(earlier) < kinds.index(later)
    told = {e["event"]: e["data"] for e in s.events}
    ended = told["run.ended"]
    assert ended["run_id"] == run["run_id"]
    assert ended["identifier"] == "box"
    assert ended["data"]["state"] == "failed"
    assert ended["data"]["exit_code"] == 3
    assert ended["data"]["stdout_bytes"] == 2
    reasons = [e["data"]["data"]["reason"] for e in s.events
               if e["event"] == "sandbox.removing"]
    assert reasons == ["replaced", "deleted"]
    generations = [e["data"]["data"]["generation"] for e in s.events
                   if e["event"] == "sandbox.created"]
    assert generations == [1, 2]


def test_who_comes_again_goes_on_behind_any_event(server, client, sandbox):
    for _ in range(3):
        client.run(sandbox, "true")
    whole = all_events(client, f"identifier={sandbox}")
    for at, event in enumerate(whole):
        for after in (event["id"], str(event["seq"])):
            rest = all_events(client, f"identifier={sandbox}", after=after)
            assert rest == whole[at + 1:]
        with stream(server, f"identifier={sandbox}&after={event['id']}") as s:
            wait_for(lambda at=at, s=s: len(s.events) >= len(whole) - at - 1,
                     PATIENCE, "the rest")
            assert [e["data"] for e in s.events] == whole[at + 1:]


def test_pages_and_filters(client, sandbox):
    first = client.run(sandbox, "true")["run_id"]
    client.run(sandbox, "true")
    mine = f"identifier={sandbox}"
    assert all_events(client, mine) == all_events(client, mine, limit=1)
    ended = all_events(client, f"{mine}&kind=run.ended")
    assert len(ended) == 2
    assert {e["kind"] for e in all_events(client, f"{mine}&kind=sandbox")} \
        == {"sandbox.created", "sandbox.ready"}
    assert [e["run_id"] for e in all_events(
        client, f"run={first}&kind=run.ended")] == [first]


def test_what_cannot_be_asked_for_is_refused_by_name(server):
    for query, word in (("kind=run.eaten", "kind"), ("after=x", "after"),
                        ("since=1", "since"), ("limit=1", "limit"),
                        ("follow=false&limit=1000", "limit"),
                        ("run=7", "run"), ("identifier=a%20b", "identifier")):
        status, _, data = server.get(f"/api/v1/events?{query}")
        assert status == 400 and word in data.decode(), (query, data)
    assert "administrator" in str(
        server.get_json("/api/v1/events?tenant=default", 403))
    status, _, data = server.get("/api/v1/events", {"Last-Event-ID": "-1"})
    assert status == 400 and "Last-Event-ID" in data.decode()


@pytest.mark.own
def test_no_event_is_lost_or_doubled_when_the_front_is_killed(server, client):
    stop = threading.Event()
    done = []

    def work(n):
        mine = server.client()
        while not stop.is_set():
            try:
                done.append(mine.run(f"box{n}", "echo x")["run_id"])
            except (OSError, http.client.HTTPException, AssertionError,
                    ValueError):
                mine.close()
                time.sleep(0.02)

    workers = [threading.Thread(target=work, args=(n,)) for n in range(3)]
    with stream(server) as s:
        for w in workers:
            w.start()
        for kills in range(1, 4):
            before, connects = len(done), s.connects
            wait_for(lambda before=before: len(done) >= before + 10, PATIENCE,
                     "runs")
            for pid in server.pids("front"):
                os.kill(pid, signal.SIGKILL)
            wait_for(lambda connects=connects: s.connects > connects, PATIENCE,
                     f"the stream after kill {kills}")
        stop.set()
        for w in workers:
            w.join(PATIENCE)
        wait_for(server.is_ready, PATIENCE, "the server")
        wait_for(lambda: client.call("list_runs", state="running")["runs"] +
                 client.call("list_runs", state="queued")["runs"] == [],
                 PATIENCE, "the end of all runs")
        newest = page(client)["newest"]
        wait_for(lambda: len(s.events) >= newest, PATIENCE, "the rest")
        assert s.seqs() == list(range(1, len(s.events) + 1))
    ends, starts = ([e["data"]["run_id"] for e in s.events if e["event"] ==
                     kind] for kind in ("run.ended", "run.started"))
    assert len(ends) == len(set(ends))
    assert len(starts) == len(set(starts))
    assert set(done) <= set(ends)


@pytest.mark.own
def test_a_run_that_goes_on_over_a_kill_began_once(server, client):
    run = client.start("box",
                       "while [ ! -e /tmp/go ]; do sleep 0.1; done")["run_id"]
    with stream(server, f"after=0&run={run}") as s:
        wait_for_kind(s, "run.started")
        connects = s.connects
        server.kill("front")
        wait_for(lambda: s.connects > connects, PATIENCE, "the stream")
        client.run("box", "touch /tmp/go")
        wait_for_kind(s, "run.ended")
        assert s.kinds() == ["run.created", "run.started", "run.ended"]


def test_tenants_see_their_own_and_the_administrator_the_servers(
        make_server, tokens):
    acme = tokens.tenant("acme", "quota.streams=1")
    other = tokens.tenant("other")
    admin = tokens.token("-", "admin")
    server = make_server(env={"TENANTS_FILE": tokens.write()})
    a, b = server.client(token=acme), server.client(token=other)
    root = server.client(token=admin)
    with stream(server, token=other) as s:
        run = a.run("secretbox", "echo x")["run_id"]
        assert len(all_events(a)) >= 3
        b.run("mine", "true")
        wait_for_kind(s, "run.ended")
        assert {e["data"]["identifier"] for e in s.events} == {"mine"}
        # Its numbers say nothing of the others.
        assert s.seqs() == list(range(1, len(s.events) + 1))
    assert all_events(b, f"run={run}") == []
    assert all_events(b, "identifier=secretbox") == []
    kinds = [e["kind"] for e in all_events(root)]
    assert kinds[0] == "server.started"
    assert "worker.ready" in kinds and "engine.up" in kinds
    assert not any(k.startswith(("run.", "sandbox.")) for k in kinds)
    assert [e["run_id"] for e in all_events(
        root, "tenant=acme&kind=run.ended")] == [run]
    root.get("/api/v1/events?tenant=nobody", 404)
    with stream(server, token=acme) as s:
        wait_for(lambda: s.connects == 1, PATIENCE, "the stream")
        status, _, data = a.request("GET", "/api/v1/events")
        assert status == 429 and b"streams" in data
        wait_for_kind(s, "quota.refused")


def test_the_server_tells_how_it_was_started_and_what_died(
        make_server, tokens):
    admin = tokens.token("-", "admin")
    server = make_server(env={"TENANTS_FILE": tokens.write()})
    with stream(server, token=admin) as s:
        wait_for_kind(s, "engine.up", 2)
        os.kill(server.pids("worker")[0], signal.SIGKILL)
        wait_for_kind(s, "worker.lost")
        wait_for_kind(s, "engine.up", 3)
        for pid in server.pids("front"):
            os.kill(pid, signal.SIGKILL)
        wait_for_kind(s, "server.started", 2)
        server.restart()
        wait_for_kind(s, "server.started", 3)
        assert s.seqs() == list(range(1, len(s.events) + 1))
        assert s.kinds().count("server.stopping") == 1
        assert [e["data"]["data"]["clean"] for e in s.events
                if e["event"] == "server.started"] == [True, False, True]


def test_a_flood_is_bounded_and_who_is_late_is_told_what_is_missing(
        make_server, tokens):
    acme = tokens.tenant("acme", "quota.events=100")
    server = make_server(env={"TENANTS_FILE": tokens.write()})
    client = server.client(token=acme)
    client.run("box", "true")
    first = page(client, "limit=1")["events"][0]
    while page(client)["newest"] < 400:
        client.run("box", "true")
    p = page(client)
    assert p["newest"] - p["oldest"] < 100 + 64 + 1
    with stream(server, f"after={first['id']}", token=acme) as s:
        wait_for(lambda: len(s.events) > 100, PATIENCE, "what is left")
        gap = s.events[0]
        assert gap["event"] == "gap"
        assert gap["data"] == {"from": 2, "to": p["oldest"] - 1,
                               "reason": "trimmed"}
        assert s.events[1]["data"]["seq"] == p["oldest"]


def test_a_backup_that_was_put_back_is_told(server, client, sandbox):
    client.run(sandbox, "true")
    p = page(client)
    with stream(server, f"after={p['newest'] + 1000}") as s:
        wait_for(lambda: s.events, PATIENCE, "the gap")
        assert s.events[0]["data"]["reason"] == "restored"
    with stream(server, f"after={p['oldest']}.1") as s:
        wait_for(lambda: len(s.events) > 1, PATIENCE, "the gap")
        assert s.events[0]["data"]["reason"] == "restored"
        assert s.events[1]["data"]["seq"] == page(client)["oldest"]


def read_until(sock, word):
    data = b""
    while word not in data:
        more = sock.recv(65536)
        assert more, data
        data += more
    return data


@pytest.mark.own
def test_many_idle_streams_all_hear_of_the_next_event(server, client):
    client.run("box", "true")
    streams = [server.send("GET /api/v1/events?kind=run.ended")
               for _ in range(400)]
    # The place it begins at was told: it hears of what comes from now on.
    for s in streams:
        read_until(s, b"\nid: ")
    for _ in range(3):
        client.run("box", "true")
    for s in streams:
        data = b""
        while data.count(b"event: run.ended") < 3:
            data += read_until(s, b"\n\n")
        assert data.count(b"event: run.ended") == 3
        s.close()


@pytest.mark.own
def test_streams_that_are_not_read_cost_little(server, client):
    client.run("box", "true")
    lazy = [server.send("GET /api/v1/events?after=0") for _ in range(50)]
    for s in lazy:
        read_until(s, b"sandbox.created")
    for _ in range(300):
        client.run("box", "true")
    newest = page(client)["newest"]
    last = f'"seq":{newest},'.encode()
    for s in lazy[:5]:
        read_until(s, last)
    for s in lazy:
        s.close()
