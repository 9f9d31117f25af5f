"""How long history is kept, and that what goes is gone."""
import contextlib
import os
import pathlib
import uuid

import pytest

from client import wait_for
from tenants import Tenant, bearer

pytestmark = pytest.mark.own

DAY_MS = 86400000
# Files of its own: the same bytes are there as long as one refers to them.
PRINTS = ("head -c 30000 /dev/zero | tr '\\0' x; "
          "cat /proc/sys/kernel/random/uuid >/artifacts/a.txt")


def finished(client, identifier, *commands):
    run = client.start(identifier, *commands)["run_id"]
    client.wait_end(run)
    return run


def make_older(server, run, days):
    """As if it had ended so many days ago: of a server that is stopped."""
    columns = ("created_ms", "sent_ms", "started_ms", "ended_ms")
    sets = ", ".join(f"{c} = {c} - {days * DAY_MS}" for c in columns)
    server.change(f"UPDATE run SET {sets} WHERE uuid = x'{uuid.UUID(run).hex}'")


def artifact(tenant, run):
    return tenant.client.request("GET", f"/artifacts/box/{run}/a.txt")[0]


def known(tenant, run):
    return tenant.client.request("GET", f"/mcp/runs/{run}")[0] == 200


def test_runs_and_files_go_by_their_age(server, ctl):
    a, b = Tenant(server, "a"), Tenant(server, "b")
    runs = [finished(a.client, "box", PRINTS) for _ in range(3)]
    other = finished(b.client, "box", PRINTS)
    server.stop()
    make_older(server, runs[0], 10)
    make_older(server, runs[1], 5)
    make_older(server, other, 10)
    server.start()
    assert all(known(a, run) for run in runs)
    a.set(history_days=7, files_days=3)
    wait_for(lambda: not known(a, runs[0]), 60, "the oldest to go")
    wait_for(lambda: artifact(a, runs[1]) != 200, 60, "files to go")
    assert known(a, runs[1])
    assert artifact(a, runs[2]) == 200
    assert artifact(b, other) == 200
    # For one who keeps everything nothing changes.
    a.set(history_days=0, files_days=0)
    assert known(a, runs[1]) and known(a, runs[2])
    # Of the first neither log nor blob is left, of the second nothing but
    # the row.
    spool = os.path.join(server.front_dir, "spool")
    wait_for(lambda: not any(run in name for run in runs[:2]
                             for _, _, names in os.walk(spool)
                             for name in names), 60, "the logs to go")
    # And it is seen so, without a run that ends.
    metrics = bearer(ctl.token("-", "--role", "metrics"))
    wait_for(lambda: b'sandboxd_history_files{kind="logs"} 2\n'
             in server.get("/metrics", metrics)[2], 60, "the count of logs")


@pytest.mark.parametrize("value", ["-1", "36501", "x"])
def test_days_that_are_none_are_refused(ctl, value):
    ctl("tenant", "add", "a")
    done = ctl.run("tenant", "set", "a", f"quota.history_days={value}")
    assert done.returncode != 0 and "history_days" in done.stderr


MIB = 1 << 20


def says_much(client, count):
    """Runs whose output is in their rows."""
    for _ in range(count):
        finished(client, "box", "head -c 16000 /dev/zero | tr '\\0' x")


def totals(server):
    """(tenant, what its rows are said to take, what they take)"""
    return server.sql(
        "SELECT name, row_bytes, (SELECT coalesce(sum(bytes), 0) FROM run"
        " JOIN run_size ON run_size.run = run.id"
        " WHERE tenant = t.id AND state NOT IN ('queued', 'running'))"
        " FROM tenant t ORDER BY name")


def test_rows_go_by_their_bytes(server, ctl):
    a, b = Tenant(server, "a"), Tenant(server, "b")
    first = finished(a.client, "box", "true")
    says_much(a.client, 130)
    says_much(b.client, 3)
    used = a.used()
    assert used["history_runs"] == 131
    assert 130 * 16000 < used["history_bytes"] < 131 * 18000
    others = b.used()["history_bytes"]
    assert 3 * 16000 < others < 3 * 18000
    # What is set holds at once, for this tenant alone.
    going = a.client.start("box", "read line; echo $line; sleep 600")["run_id"]
    a.set(history_mb=2)
    used = wait_for(lambda: (u := a.used())["history_bytes"] <= 2 * MIB and u,
                    60, "rows to go")
    assert not known(a, first) and known(a, going)
    assert 2 * MIB - 18000 < used["history_bytes"]
    # A front that is killed right after another bound was set goes on when
    # it is there again; nothing has to end for it.
    a.set(history_mb=1)
    server.kill("front")

    def is_below():
        return a.used()["history_bytes"] <= MIB
    wait_for(is_below, 90, "rows to go after a kill")
    assert all(said == are for _, said, are in totals(server))
    assert b.used()["history_runs"] == 3
    assert b.used()["history_bytes"] == others
    # With each run that ends the oldest goes, and the newest is there.
    run = finished(a.client, "box", "head -c 16000 /dev/zero | tr '\\0' x")
    assert known(a, run)
    wait_for(is_below, 60, "the oldest to go")
    assert known(a, run)
    ctl("tenant", "delete", "a")
    wait_for(lambda: dict((n, s) for n, s, _ in totals(server)).get("a", 0)
             == 0, 90, "all to go")
    wait_for(lambda: all(said == are == 0 for name, said, are
                         in totals(server) if name != "b"), 90,
             "nothing to be counted")
    assert b.used()["history_bytes"] == others


def holders(top, mark):
    """Files below top that have the mark in them, or in their name."""
    found = []
    for path in pathlib.Path(top).rglob("*"):
        with contextlib.suppress(FileNotFoundError):
            if mark in path.name or (path.is_file() and
                                     not path.is_symlink() and
                                     mark.encode() in path.read_bytes()):
                found.append(path)
    return found


def leave_traces(tenant, mark):
    """In every place that keeps what a tenant says."""
    client = tenant.client
    for i in range(30):
        # Rows that grow with their ends are moved in their pages.
        finished(client, "box",
                 {"shell": f"echo {mark}; echo {mark} >&2; true {'x' * i * 40}",
                  "env": {f"N_{mark}": mark}})
    finished(client, "box",
             f"for i in $(seq 2000); do echo {mark}; done; "
             f"echo {mark} >/artifacts/{mark}.txt; "
             f"echo more >/artifacts/{mark}.log")
    finished(client, "box", f"echo {mark}; exit 3")
    client.call("initialize_sandbox", identifier="code")
    client.call("execute_code", identifier="code", language="python",
                code=f"print('{mark}')")
    # At work, and waiting, when the tenant goes.
    client.start("box", f"echo {mark}; sleep 600")
    client.start("box", f"echo {mark}", lock_sandbox=True)


def test_of_a_tenant_that_is_deleted_nothing_is_left(server, ctl):
    a, b = Tenant(server, "a"), Tenant(server, "b")
    mark = "m" + uuid.uuid4().hex
    stays = "s" + uuid.uuid4().hex
    a.client.rpc("initialize", {
        "protocolVersion": a.client.revision, "capabilities": {},
        "clientInfo": {"name": mark, "version": "1"}})
    a.set(history_days=30)
    leave_traces(a, mark)
    finished(b.client, "box", f"echo {stays}")
    assert holders(server.data, mark)
    ctl("tenant", "delete", "a")
    wait_for(lambda: not holders(server.data, mark), 90,
             f"all to go of {server.data}")
    assert holders(server.data, stays)
    gone, = wait_for(
        lambda: server.sql("SELECT id FROM tenant WHERE gone_ms > 0"), 60,
        "its row to say that it went")[0]
    for table, in server.sql(
            "SELECT m.name FROM sqlite_schema m, pragma_table_info(m.name) c"
            " WHERE m.type = 'table' AND c.name = 'tenant'"
            " AND m.name <> 'audit'"):
        assert server.sql(f"SELECT count(*) FROM {table} WHERE tenant = ?",
                          gone) == [(0,)], table
    assert server.sql("SELECT name, runtime FROM tenant WHERE id = ?",
                      gone) == [(f".gone-{gone}", "")]
    # And nothing of it comes back, or is in what is stopped.
    server.stop()
    assert holders(server.data, mark) == []
