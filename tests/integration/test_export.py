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
from screens import Ctl

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
    client = server.client()
    status, _, data = client.request("GET", f"/api/v1/{path}")
    client.close()
    return status, data


def is_indexed(server):
    status, data = ask(server, "runs?limit=1")
    return status == 200 and len(json.loads(data)["runs"]) == 1


@pytest.fixture(scope="module")
def full(build, engine):
    """A server with a history, and the ids of its runs, oldest first."""
    from server import Server, harm
    server = Server(build, env={"MAX_RUNS": "100000"})
    try:
        client = server.client()
        first = client.run("box", "true")["run_id"]
        client.close()
        server.stop()
        ids = add_runs(server, first, RUNS)
        remove_index(server)
        server.start()
        wait_for(lambda: is_indexed(server), 120, "the index")
        yield server, ids
        bad = harm(server.log, 0)
        assert not bad, bad
    finally:
        server.destroy(engine)


def remove_index(server):
    for name in os.listdir(server.front_dir):
        if name.startswith("history.db"):
            os.unlink(os.path.join(server.front_dir, name))


def memory_kb(server, what="VmRSS"):
    with open(f"/proc/{server.pids('front')[0]}/status",
              encoding="ascii") as f:
        return int(next(n for n in f if n.startswith(what)).split()[1])


def begin(server, token=None):
    """A client with little room, and the first that it was sent."""
    bearer = f"Authorization: Bearer {token}\r\n" if token else ""
    slow = socket.socket()
    slow.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 4096)
    slow.settimeout(60)
    slow.connect(("127.0.0.1", server.port))
    slow.sendall(b"GET /api/v1/export HTTP/1.1\r\n"
                 b"Host: 127.0.0.1:%d\r\n%s\r\n" % (
                     server.port, bearer.encode()))
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
        status, data = ask(server, f"runs?limit=500&{query}{cursor}")
        assert status == 200, data
        page = json.loads(data)
        found += [r["run_id"] for r in page["runs"]]
        if page["next_cursor"] is None:
            return found
        cursor = f"&cursor={page['next_cursor']}"


@pytest.mark.parametrize("least, most", [
    (1, 4), (5, 100000), (9, 100000), (9, 9), (1, 8)])
def test_durations_that_many_and_few_have(full, least, most):
    """Of those that many have, runs are met on the way through all."""
    server, ids = full
    lasted = {r: i % 10 for i, r in enumerate(ids)}
    status, data = ask(server, f"runs/{ids[0]}")
    assert status == 200
    lasted[ids[0]] = json.loads(data)["duration_ms"]
    want = [r for r in ids if least <= lasted[r] <= most]
    asked = f"min_duration_ms={least}&max_duration_ms={most}"
    assert pages(server, f"{asked}&sort=created") == want
    assert pages(server, asked) == want[::-1]
    status, data = ask(server, f"runs?limit=1&count=true&{asked}")
    found = json.loads(data)
    assert found["total"] == len(want) or (
        found["total_is_at_least"] and found["total"] < len(want))


def test_a_reader_that_waits_costs_no_memory_and_gets_all(full):
    server, ids = full
    assert ask(server, "runs?limit=500")[0] == 200
    before = memory_kb(server)
    slow, got = begin(server)
    with slow:
        for _ in range(150):  # what is not bounded would go on meanwhile
            assert ask(server, "runs?limit=1")[0] == 200
        # Sanitizers have terabytes of shadow, and keep what was freed.
        if memory_kb(server, "VmSize") < 1 << 30:
            assert memory_kb(server) - before < 16 << 10
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
    asked = []
    for _ in range(n):
        one = socket.create_connection(("127.0.0.1", server.port), 60)
        one.sendall(b"GET /api/v1/%s HTTP/1.1\r\nConnection: close\r\n"
                    b"Host: 127.0.0.1:%d\r\n\r\n" % (
                        path.encode(), server.port))
        asked.append(one)
    return asked


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
    ctl = Ctl(server)
    token = ctl("token", "add", "default").strip()
    slow = begin(server, token)[0]
    ctl("token", "revoke", token.split("_")[1])
    got = 0
    with slow, contextlib.suppress(ConnectionError):
        while data := slow.recv(1 << 20):
            got += len(data)
    # What lay ready on the way, and no page more.
    assert got < RUNS * len(WORDS) / 2


# ---- an index that cannot be used

def test_questions_say_that_the_index_is_away(make_server):
    server = make_server()
    ctl = Ctl(server)
    client = server.client()
    run = client.run("box", "true")["run_id"]
    server.stop()
    remove_index(server)
    place = os.path.join(server.front_dir, "history.db")
    os.mkdir(place)
    server.start()
    client = server.client()
    for path in ("runs", "stats", "export"):
        status, _, data = client.request("GET", f"/api/v1/{path}")
        assert status == 503, (path, data)
        assert json.loads(data)["detail"].startswith(
            "history is not available: ")
        assert place not in data.decode()
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
        status, _, data = client.request("GET", "/api/v1/runs")
        return status == 200 and \
            [r["run_id"] for r in json.loads(data)["runs"]] == [second, run]
    wait_for(listed, 60, "the index")
    wait_for(lambda: ctl.json("status")["history"]["index"] == {
        "available": True, "lag_rows": 0, "lag_s": 0, "made_anew": 0,
        "why": None}, 60, "an index that has all")
    assert [metric(server, n) for n in ("up", "lag_rows", "lag_seconds")] == \
        [1, 0, 0]


def metric(server, name):
    """Of the index, as /metrics tells it."""
    text = server.get("/metrics")[2].decode()
    return float(re.search(rf"^sandboxd_history_index_{name} (\S+)$", text,
                           re.MULTILINE)[1])


# ---- who asked

def test_runs_are_found_by_who_asked(make_server):
    server = make_server()
    ctl = Ctl(server)
    for name in ("acme", "other"):
        ctl("tenant", "add", name)
    tokens = [ctl.json("token", "add", name)
              for name in ("acme", "acme", "other")]
    one, two, other = [server.client(token=t["token"]) for t in tokens]
    first, second = tokens[0]["id"], tokens[1]["id"]
    runs = [c.run("box", "true")["run_id"] for c in (one, one, two)]
    other.run("box", "true")

    def get(client, path):
        status, _, data = client.request("GET", f"/api/v1/{path}")
        assert status == 200, data
        return json.loads(data)

    for asker in (one, two):
        for name, want in ((first, runs[1::-1]), (second, runs[2:])):
            page = get(asker, f"runs?principal={name}&count=true")
            assert [r["run_id"] for r in page["runs"]] == want
            assert {r["principal"] for r in page["runs"]} == {name}
            assert page["total"] == len(want)
            page = asker.call("list_runs", principal=name)
            assert [r["run_id"] for r in page["runs"]] == want
        groups = get(asker, "stats?group_by=principal")["groups"]
        assert [(g["key"], g["runs"]) for g in groups] == [
            (first, 2), (second, 1)]
        _, _, data = asker.request(
            "GET", f"/api/v1/export?principal={second}")
        assert [json.loads(n)["run_id"] for n in data.splitlines()] == runs[2:]
    # To another tenant they are nobody.
    assert get(other, f"runs?principal={first}&count=true")["total"] == 0
    assert get(other, f"stats?principal={first}")["groups"] == []
    assert other.request("GET", f"/api/v1/export?principal={first}")[2] == b""
    for client in (one, two, other):
        client.close()
