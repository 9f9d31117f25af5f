"""Exports of thousands of runs: whole, bounded, and left by their readers."""
import contextlib
import json
import os
import re
import shutil
import socket
import sqlite3
import uuid

import pytest

from client import wait_for
from server import memory_kib, serving
from tenants import Tenant

RUNS = 12000
WORDS = "x" * 5000  # of each run's error


def add_runs(server, like, n):
    """As if so many had run: of a server that is stopped.  Their ids."""
    with contextlib.closing(sqlite3.connect(server.database)) as db:
        names = [c[1] for c in db.execute("PRAGMA table_info(run)")]
        of = dict(zip(names, db.execute(
            "SELECT * FROM run WHERE uuid = ?",
            (uuid.UUID(like).bytes,)).fetchone()))
        ids = [uuid.uuid4() for _ in range(n)]
        marks = ", ".join("?" * len(names))
        db.executemany(
            f"INSERT INTO run ({', '.join(names)}) VALUES ({marks})",
            ([{**of, "id": of["id"] + i, "uuid": u.bytes, "error": WORDS,
               "created_ms": of["created_ms"] + i,
               "ended_ms": of["started_ms"] + i % 10}[c] for c in names]
             for i, u in enumerate(ids, 1)))
        db.commit()
    return [like] + [str(u) for u in ids]


def ask(server, path):
    status, _, data = server.get(f"/api/v1/{path}", timeout=90)
    return status, data


def is_indexed(server):
    status, data = ask(server, "runs?limit=1")
    return status == 200 and len(json.loads(data)["runs"]) == 1


@pytest.fixture(scope="module")
def full(build, engine):
    """A server with a history, and the ids of its runs, oldest first."""
    with serving(build, engine, stall_ms=0, env={"MAX_RUNS": 100000}) as server:
        first = server.client().run("box", "true")["run_id"]
        server.stop()
        ids = add_runs(server, first, RUNS)
        remove_index(server)
        server.start()
        wait_for(lambda: is_indexed(server), 120, "the index")
        yield server, ids


def remove_index(server):
    for name in os.listdir(server.front_dir):
        if name.startswith("history.db"):
            os.unlink(os.path.join(server.front_dir, name))


def begin(server, *fields):
    """A client with little room, and the first that it was sent."""
    slow = server.send("GET /api/v1/export", *fields, room=4096)
    got = slow.recv(12, socket.MSG_WAITALL)
    assert got == b"HTTP/1.1 200"
    return slow, got


def test_all_runs_are_exported_in_their_order(full):
    server, ids = full
    status, data = ask(server, "export")
    assert status == 200
    assert [json.loads(n)["run_id"] for n in data.splitlines()] == ids
    status, data = ask(server, "export?format=csv&sort=-created")
    rows = data.decode().split("\r\n")
    assert status == 200 and rows[-1] == "" and len(rows) == RUNS + 3
    assert [r.partition(",")[0] for r in rows[1:-1]] == ids[::-1]


def pages(server, query):
    """Ids of all pages."""
    found, cursor = [], ""
    while True:
        page = server.get_json(f"/api/v1/runs?limit=500&{query}{cursor}")
        found += [r["run_id"] for r in page["runs"]]
        if page["next_cursor"] is None:
            return found
        cursor = f"&cursor={page['next_cursor']}"


def test_a_page_of_long_texts_is_shorter_and_has_a_next(full):
    server, ids = full
    page = server.get_json("/api/v1/runs?limit=500&sort=created")
    n = len(page["runs"])
    assert page["next_cursor"] and 0 < n < 500
    assert [r["run_id"] for r in page["runs"]] == ids[:n]
    assert n * len(WORDS) < (1 << 20) + 2 * len(WORDS)


@pytest.mark.parametrize("least, most", [
    (1, 4), (5, 100000), (9, 100000), (9, 9), (1, 8)])
def test_durations_that_many_and_few_have(full, least, most):
    """Of those that many have, runs are met on the way through all."""
    server, ids = full
    lasted = {r: i % 10 for i, r in enumerate(ids)}
    lasted[ids[0]] = server.get_json(f"/api/v1/runs/{ids[0]}")["duration_ms"]
    want = [r for r in ids if least <= lasted[r] <= most]
    asked = f"min_duration_ms={least}&max_duration_ms={most}"
    assert pages(server, f"{asked}&sort=created") == want
    assert pages(server, asked) == want[::-1]
    found = server.get_json(f"/api/v1/runs?limit=1&count=true&{asked}")
    assert found["total"] == len(want) or (
        found["total_is_at_least"] and found["total"] < len(want))


def test_a_reader_that_waits_costs_no_memory_and_gets_all(full):
    server, ids = full
    assert ask(server, "runs?limit=500")[0] == 200
    front, = server.pids("front")
    before = memory_kib(front)
    slow, got = begin(server)
    with slow:
        for _ in range(150):  # what is not bounded would go on meanwhile
            assert ask(server, "runs?limit=1")[0] == 200
        # Sanitizers have terabytes of shadow, and keep what was freed.
        if memory_kib(front, "VmSize") < 1 << 30:
            assert memory_kib(front) - before < 16 << 10
        assert RUNS * len(WORDS) > 50 << 20
        parts = [got]
        slow.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 1 << 20)
        while not parts[-1].endswith(b"0\r\n\r\n"):
            parts.append(slow.recv(1 << 20))
            assert parts[-1] != b""
    # In chunks, whose sizes may stand in the middle of a line.
    whole = re.sub(rb"\r\n(?:[0-9a-f]+\r\n)?", b"", b"".join(parts)[
        b"".join(parts).index(b"\r\n\r\n") + 4:])
    found = re.findall(rb'"run_id": ?"([0-9a-f-]{36})"', whole)
    assert [i.decode() for i in found] == ids


def test_a_reader_that_goes_away_leaves_its_place(full):
    server, _ = full
    slow = [begin(server)[0] for _ in range(2)]
    status, headers, data = server.get("/api/v1/export")
    assert status == 429 and b"limit reached: 2 exports" in data
    assert headers["Retry-After"] == "1"
    slow[0].close()
    wait_for(lambda: ask(server, "export?q=nothing")[0] == 200, 60,
             "a place")
    slow[1].close()
    assert is_indexed(server)


def ask_at_once(server, path, n):
    """So many connections, on each the request and no answer yet."""
    return [server.send(f"GET /api/v1/{path}", "Connection: close")
            for _ in range(n)]


def read_all(one):
    parts = []
    with one:
        while data := one.recv(1 << 20):
            parts.append(data)
    return b"".join(parts)


def test_few_questions_of_a_tenant_wait_and_who_leaves_makes_room(full):
    """Statistics of all runs take the lane a while."""
    server, _ = full
    answers = [read_all(one) for one in ask_at_once(server, "stats", 40)]
    refused = [a for a in answers if a.startswith(b"HTTP/1.1 429")]
    assert refused and all(b"Retry-After: 1" in a and b'"limit"' in a
                           for a in refused)
    good = [a for a in answers if a.startswith(b"HTTP/1.1 200")]
    assert len(good) >= 8 and len(good) + len(refused) == 40
    for one in ask_at_once(server, "stats?q=xxx*", 40):
        one.close()
    wait_for(lambda: ask(server, "stats")[0] == 200, 60, "a place")


def test_a_reader_whose_token_is_revoked_gets_no_more(full):
    """From here on the server wants tokens."""
    server, _ = full
    ctl = server.ctl
    token = ctl.token("default")
    slow = begin(server, f"Authorization: Bearer {token}")[0]
    ctl("token", "revoke", token.split("_")[1])
    got = 0
    with slow, contextlib.suppress(ConnectionError):
        while data := slow.recv(1 << 20):
            got += len(data)
    # What lay ready on the way, and no page more.
    assert got < RUNS * len(WORDS) / 2


# ---- an index that cannot be used

@pytest.mark.own
def test_questions_say_that_the_index_is_away(server, ctl):
    client = server.client()
    run = client.run("box", "true")["run_id"]
    server.stop()
    remove_index(server)
    place = os.path.join(server.front_dir, "history.db")
    os.mkdir(place)
    server.start()
    for path in ("runs", "stats", "export"):
        told = client.get(f"/api/v1/{path}", 503)
        assert told["detail"].startswith("history is not available: ")
        assert place not in str(told)
    assert "history is not available: " in client.fail("list_runs")
    status = ctl.json("status")
    index = status["history"]["index"]
    assert not index["available"] and "history.db" in index["why"]
    assert "index of the history: not available: " in ctl("status")
    assert metric(server, "up") == 0
    # Runs are made and shown all the same.
    second = client.run("box", "true")["run_id"]
    for known in (run, second):
        assert client.request("GET", f"/api/v1/runs/{known}")[0] == 200
    # What was there before is not counted.
    waiting = ctl.json("status")["history"]["index"]
    assert waiting["lag_rows"] >= 1
    assert metric(server, "lag_rows") >= 1
    wait_for(lambda: metric(server, "lag_seconds") > 0.01, 60, "time")
    assert f"{waiting['lag_rows']} rows wait, the first for " in ctl("status")
    shutil.rmtree(place)

    def listed():
        status, data = ask(server, "runs")
        return status == 200 and [r["run_id"] for r in json.loads(
            data)["runs"]] == [second, run]
    wait_for(listed, 60, "the index")
    wait_for(lambda: ctl.json("status")["history"]["index"] == {
        "available": True, "lag_rows": 0, "lag_s": 0, "made_anew": 0,
        "why": None}, 60, "an index that has all")
    assert [metric(server, n) for n in ("up", "lag_rows", "lag_seconds")] == \
        [1, 0, 0]


def metric(server, name):
    """Of the index, as /metrics tells it."""
    return server.metric(f"sandboxd_history_index_{name}")


# ---- who asked

@pytest.mark.own
def test_runs_are_found_by_who_asked(server, ctl):
    acme, third = Tenant(server, "acme"), Tenant(server, "other")
    tokens = [acme.token, ctl.token("acme")]
    first, second = (t.split("_")[1] for t in tokens)
    one, two = (server.client(token=t) for t in tokens)
    other = third.client
    runs = [c.run("box", "true")["run_id"] for c in (one, one, two)]
    other.run("box", "true")

    for asker in (one, two):
        for name, want in ((first, runs[1::-1]), (second, runs[2:])):
            page = asker.get(f"/api/v1/runs?principal={name}&count=true")
            assert [r["run_id"] for r in page["runs"]] == want
            assert {r["principal"] for r in page["runs"]} == {name}
            assert page["total"] == len(want)
            page = asker.call("list_runs", principal=name)
            assert [r["run_id"] for r in page["runs"]] == want
        groups = asker.get("/api/v1/stats?group_by=principal")["groups"]
        assert [(g["key"], g["runs"]) for g in groups] == [
            (first, 2), (second, 1)]
        _, _, data = asker.request(
            "GET", f"/api/v1/export?principal={second}")
        assert [json.loads(n)["run_id"] for n in data.splitlines()] == runs[2:]
    # To another tenant they are nobody.
    assert other.get(f"/api/v1/runs?principal={first}&count=true")["total"] == 0
    assert other.get(f"/api/v1/stats?principal={first}")["groups"] == []
    assert other.request("GET", f"/api/v1/export?principal={first}")[2] == b""
