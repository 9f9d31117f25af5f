"""Runs that are asked for in many ways, of a server whose runs are known."""
import csv
import hashlib
import io
import json
import socket
import urllib.parse

import pytest

from client import wait_for
from server import serving

SUMS = ("stdout_bytes", "stderr_bytes", "artifact_count", "artifact_bytes")


class Ground:
    """A server with some runs, by their names."""

    def __init__(self, server):
        self.server = server
        self.client = server.client()
        self.runs = {}
        c = self.client
        self.add("plain", c.run("one", "echo plain words"))
        self.add("exit3", c.run("one", "echo needle-in-output; exit 3"))
        self.add("slow", c.run("two", "sleep 1.2; seq 1 500"))
        self.add("timeout",
                 c.run("two", {"shell": "sleep 100000", "timeout_ms": 100}))
        self.add("files", c.run(
            "two", "mkdir /artifacts/d; printf abc > /artifacts/d/x.txt"))
        c.call("initialize_sandbox", identifier="code")
        self.add("code", c.call("execute_code", identifier="code",
                                code="print('=1+1')"))
        self.add("bash", c.call("execute_code", identifier="code",
                                code="echo hi", language="bash"))
        self.ended = list(self.runs)
        self.add("running", c.start("three", "sleep 100000",
                                    lock_sandbox=True))
        c.wait_state(self.runs["running"])
        self.add("queued", c.start("three", "true", lock_sandbox=True))
        self.names = {run: name for name, run in self.runs.items()}

    def add(self, name, answer):
        self.runs[name] = answer["run_id"]

    def ask(self, path, want=200, **query):
        text = urllib.parse.urlencode(query)
        status, _, data = self.client.request(
            "GET", f"/api/v1/{path}{'?' if text else ''}{text}")
        assert status == want, (status, data)
        return data

    def get(self, path, want=200, **query):
        return json.loads(self.ask(path, want, **query))

    def pages(self, path, **query):
        """The lists of all pages."""
        more = {}
        while more is not None:
            page = self.get(path, **query, **more)
            yield page[path]
            cursor = page["next_cursor"]
            more = {"cursor": cursor} if cursor is not None else None

    def listed(self, **query):
        return [self.names[r["run_id"]]
                for r in self.get("runs", **query)["runs"]]


@pytest.fixture(scope="module")
def ground(build, engine):
    with serving(build, engine, stall_ms=0) as server:
        yield Ground(server)


def newest(*names):
    return list(names)[::-1]


EVERYTHING = ("plain", "exit3", "slow", "timeout", "files", "code", "bash",
              "running", "queued")


def test_all_runs_are_listed_newest_first(ground):
    answer = ground.get("runs", count="true")
    assert [ground.names[r["run_id"]] for r in answer["runs"]] == \
        newest(*EVERYTHING)
    assert answer["next_cursor"] is None
    assert answer["total"] == 9 and answer["total_is_at_least"] is False
    assert ground.get("runs")["total"] is None


def test_a_total_of_a_sandbox_counts_by_its_name_and_id(ground):
    box = ground.get("sandboxes", identifier="three")["sandboxes"][0]
    for name in (box["name"], box["sandbox_id"]):
        assert ground.get("runs", state="queued", sandbox=name,
                          count="true")["total"] == 1


def test_a_line_has_what_the_record_has(ground):
    for line in ground.get("runs")["runs"]:
        record = ground.get(f"runs/{line['run_id']}")
        assert {k: record[k] for k in line} == line


@pytest.mark.parametrize("query, names", [
    ({"identifier": "one"}, ("plain", "exit3")),
    ({"tool": "execute_code"}, ("code", "bash")),
    ({"language": "bash"}, ("bash",)),
    ({"state": "completed"}, ("plain", "slow", "files", "code", "bash")),
    ({"state": "failed"}, ("exit3", "timeout")),
    ({"state": "running"}, ("running",)),
    ({"state": "queued"}, ("queued",)),
    ({"state": "queued", "identifier": "three"}, ("queued",)),
    ({"state": "queued", "identifier": "two"}, ()),
    ({"state": "running", "tool": "execute_code"}, ()),
    ({"state": "running", "principal": "nobody"}, ()),
    ({"state": "running", "since": "-1h"}, ("running",)),
    ({"state": "running", "until": "-1h"}, ()),
    ({"state": "running", "q": "sleep"}, ()),
    ({"state": "running", "exit_code": 0}, ()),
    ({"state": "canceled"}, ()),
    ({"end_reason": "timeout"}, ("timeout",)),
    ({"exit_code": 3}, ("exit3",)),
    ({"min_duration_ms": 1100, "state": "completed"}, ("slow",)),
    ({"max_duration_ms": 1100, "identifier": "two", "state": "completed"},
     ("files",)),
    ({"q": "needle"}, ("exit3",)),
    ({"q": '"plain words"'}, ("plain",)),
    ({"q": "need*"}, ("exit3",)),
    ({"artifact": "x.txt"}, ("files",)),
    ({"artifact": "d/x.txt"}, ("files",)),
    ({"artifact": hashlib.sha256(b"abc").hexdigest()}, ("files",)),
    ({"artifact": "y.txt"}, ()),
    ({"principal": "nobody"}, ()),
    ({"since": "-1h"}, EVERYTHING),
    ({"until": "-1h"}, ()),
    ({"until": "0"}, ()),
    ({"since": "2020-01-01T00:00:00Z", "until": "2020-01-02T00:00:00Z"}, ()),
])
def test_each_filter_lets_its_runs_pass(ground, query, names):
    whole = ground.get("runs", count="true", **query)
    assert [ground.names[r["run_id"]] for r in whole["runs"]] == newest(*names)
    assert (whole["total"], whole["total_is_at_least"]) == (len(names), False)
    page = ground.client.call("list_runs", limit=100, count=True, **query)
    assert page["total"] == len(names) == len(page["runs"])
    for line, run in zip(page["runs"], whole["runs"]):
        assert {k: run[k] for k in line} == line
    lines = ground.ask("export", sort="-created", **query).decode()
    assert [ground.names[json.loads(n)["run_id"]]
            for n in lines.splitlines()] == newest(*names)


def test_a_sandbox_is_named_by_its_name_or_its_id(ground):
    box = ground.get(f"runs/{ground.runs['slow']}")["sandbox_name"]
    assert ground.listed(sandbox=box) == newest("slow", "timeout", "files")


def test_since_and_until_are_moments(ground):
    at = ground.get(f"runs/{ground.runs['slow']}")["created_at"]
    later = ("slow", "timeout", "files", "code", "bash", "running", "queued")
    assert ground.listed(since=at) == newest(*later)
    assert ground.listed(until=at) == newest("plain", "exit3")
    east = at.replace("Z", "+00:00")
    assert ground.listed(since=east) == newest(*later)


@pytest.mark.parametrize("sort, key", [
    ("duration", lambda r: r["duration_ms"]),
    ("bytes", lambda r: r["stdout_bytes"] + r["stderr_bytes"] +
     r["artifact_bytes"]),
])
def test_lists_are_sorted_by_what_ended_runs_came_to(ground, sort, key):
    up = ground.get("runs", sort=sort)["runs"]
    down = ground.get("runs", sort=f"-{sort}")["runs"]
    assert {ground.names[r["run_id"]] for r in up} == set(ground.ended)
    assert [key(r) for r in up] == sorted(key(r) for r in up)
    assert [key(r) for r in down] == sorted((key(r) for r in up),
                                            reverse=True)
    assert ground.listed(sort="created") == list(EVERYTHING)


@pytest.mark.parametrize("sort", ["created", "-created", "bytes",
                                  "-duration"])
def test_pages_have_each_run_once(ground, sort):
    pages = list(ground.pages("runs", sort=sort, limit=2))
    assert all(len(page) <= 2 for page in pages)
    assert [ground.names[r["run_id"]] for page in pages
            for r in page] == ground.listed(sort=sort)
    error = ground.get("runs", 400, cursor="x")["error"]["message"]
    assert error.startswith("cursor")


@pytest.mark.parametrize("path, query, why", [
    ("runs", {"stat": "failed"}, 'there is no parameter "stat" here; there '
     "are: tenant, identifier, sandbox, principal, tool, state, end_reason, "
     "exit_code, language, since, until, min_duration_ms, max_duration_ms, "
     "q, artifact, sort, limit, cursor, count"),
    ("runs", {"max_duration_ms": 0},
     "max_duration_ms: want a number from 1 to 2147483647"),
    ("runs", {"limit": 501}, "limit: want a number from 1 to 500"),
    ("runs", {"state": "ended"},
     "state: want one of queued, running, completed, failed, canceled"),
    ("stats", {"group_by": "hour"}, "group_by: want one of day, identifier, "
     "end_reason, tool, principal, state"),
    ("export", {"format": "xml"}, "format: want one of jsonl, csv"),
    ("runs", {"tenant": "nobody"}, "no such tenant"),
])
def test_what_is_wrong_is_named(ground, path, query, why):
    want = 404 if "tenant" in query else 400
    assert ground.get(path, want, **query)["error"]["message"] == why


@pytest.mark.parametrize("by, keys", [
    ("identifier", {"one": 2, "two": 3, "code": 2}),
    ("end_reason", {"exit": 6, "timeout": 1}),
    ("tool", {"run_sandbox": 5, "execute_code": 2}),
    ("state", {"completed": 5, "failed": 2}),
    ("principal", {"": 7}),
])
def test_statistics_are_of_ended_runs(ground, by, keys):
    answer = ground.get("stats", group_by=by)
    assert answer["group_by"] == by and answer["cut_at"] is None
    assert {g["key"]: g["runs"] for g in answer["groups"]} == keys
    assert answer["more_groups"] == answer["more_runs"] == 0


def test_statistics_sum_what_lists_show(ground):
    groups = ground.get("stats", group_by="identifier")["groups"]
    for g in groups:
        runs = [r for r in ground.get("runs", identifier=g["key"])["runs"]]
        assert g["output_bytes"] == sum(
            r["stdout_bytes"] + r["stderr_bytes"] for r in runs)
        assert g["artifact_bytes"] == sum(r["artifact_bytes"] for r in runs)
        times = [r["duration_ms"] for r in runs]
        assert min(times) * 63 / 64 - 1 <= g["p50_ms"] <= g["p95_ms"] <= \
            g["p99_ms"] <= max(times)
    days = ground.get("stats")["groups"]
    assert sum(d["runs"] for d in days) == 7
    assert ground.get("stats", tool="execute_code", group_by="tool")[
        "groups"][0]["runs"] == 2


def test_an_export_has_all_that_a_list_has(ground):
    lines = [json.loads(n) for n in ground.ask("export").splitlines()]
    assert lines == ground.get("runs", sort="created")["runs"]


def test_an_export_is_csv_that_others_read(ground):
    status, headers, data = ground.client.request(
        "GET", "/api/v1/export?format=csv")
    assert status == 200
    assert headers["Content-Type"].startswith("text/csv")
    assert headers["Content-Disposition"] == 'attachment; filename="runs.csv"'
    rows = list(csv.DictReader(io.StringIO(data.decode(), newline="")))
    lines = ground.get("runs", sort="created")["runs"]
    assert len(rows) == len(lines) == 9
    for row, line in zip(rows, lines):
        assert list(row) == list(line)
        assert row["run_id"] == line["run_id"]
        assert row["error"] == (line["error"] or "")
        assert [int(row[k]) for k in SUMS] == [line[k] for k in SUMS]
    assert data.count(b"\r\n") == 10


def test_a_reader_that_stops_holds_nobody_up(ground):
    with ground.server.send("GET /api/v1/export") as slow:
        assert slow.recv(12, socket.MSG_WAITALL) == b"HTTP/1.1 200"
        assert len(ground.listed()) == 9
    assert len(ground.ask("export").splitlines()) == 9


# Sandboxes.

def test_sandboxes_are_listed_also_when_they_ended(ground):
    c = ground.client
    for i in range(2):
        c.run("short", "true")
        c.delete("short")

    def gone():
        found = ground.get("sandboxes", state="ended")["sandboxes"]
        return found if len(found) == 2 else None
    ended = wait_for(gone, 60, "both ends")
    live = ground.get("sandboxes", state="live")["sandboxes"]
    assert [b["identifier"] for b in live] == newest(
        "one", "two", "code", "three")
    assert [(b["state"], b["ended_at"]) for b in live] == [("ready", None)] * 4
    assert [b["active_runs"] for b in live] == [2, 0, 0, 0]
    assert {b["identifier"] for b in ended} == {"short"}
    assert all(b["ended_at"] >= b["created_at"] for b in ended)
    assert ground.get("sandboxes", identifier="short")["sandboxes"] == ended
    box = live[1]
    assert ground.listed(sandbox=box["sandbox_id"]) == newest("code", "bash")
    assert ground.get("sandboxes", until=0)["sandboxes"] == []
    assert ground.get("sandboxes", until=box["created_at"])["sandboxes"] == \
        live[2:]


def test_sandboxes_come_in_pages(ground):
    whole = ground.get("sandboxes")["sandboxes"]
    got = [b for page in ground.pages("sandboxes", limit=2) for b in page]
    assert got == whole and len(whole) >= 4
    error = ground.get("sandboxes", 400, cursor=ground.runs["plain"])["error"]
    assert error["message"].startswith("cursor: it is not known")


# The same by tools.

@pytest.mark.parametrize("query", [{"sort": "-bytes"}, {"sort": "created"},
                                   {"state": "queued", "sort": "duration"}])
def test_a_tool_sorts_as_well(ground, query):
    page = ground.client.call("list_runs", limit=100, count=True, **query)
    want = ground.get("runs", count="true", **query)
    assert [r["run_id"] for r in page["runs"]] == [
        r["run_id"] for r in want["runs"]]
    assert page["total"] == want["total"]


def test_a_tool_names_what_is_wrong(ground):
    assert "since: want a time" in ground.client.fail(
        "list_runs", since="yesterday")
    assert "cursor" in ground.client.fail("list_runs", cursor="x")
    one = ground.client.call("list_sandboxes", identifier="two")["sandboxes"]
    assert [b["identifier"] for b in one] == ["two"]


def test_get_run_says_what_a_run_came_to(ground):
    got = ground.client.call("get_run", run_id=ground.runs["slow"])
    record = ground.get(f"runs/{ground.runs['slow']}")
    for key in ("queue_ms", "duration_ms", "exit_code", "stdout_bytes",
                "cpu_seconds", "memory_peak_bytes", "artifact_count"):
        assert got[key] == record[key]
    assert got["duration_ms"] >= 1200
