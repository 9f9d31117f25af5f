"""The audit: who did what, in a chain that shows what was changed."""
import json
import os
import shutil
import sqlite3
import subprocess
import time

import pytest

from client import wait_for
from tenants import bearer


pytestmark = pytest.mark.own


def rows_of(ctl, *words):
    """Oldest first."""
    return ctl.json("audit", "list", "limit=500", *words)["audit"][::-1]


def wait_row(ctl, what):
    return wait_for(lambda: any(r["what"] == what for r in rows_of(ctl)), 30,
                    what)


def test_what_is_done_is_in_the_audit_and_a_change_is_found(server, ctl):
    ctl("tenant", "add", "acme", "quota.sandboxes=3")
    token = ctl.token("acme")
    ident = token.split("_")[1]
    client = server.client(token=token)
    assert client.run("box", "echo hunter2")["state"] == "completed"
    client.delete("box")
    for _ in range(50):
        assert server.get("/", bearer("x"))[0] in (401, 429)
    # Neither is waited for by whoever caused it: on disk soon.
    for what in ("sandbox.end", "auth.failure"):
        wait_row(ctl, what)
    rows = rows_of(ctl)
    by_what = {r["what"]: r for r in rows}
    assert [r["seq"] for r in rows] == list(range(1, len(rows) + 1))
    assert by_what["tenant.add"]["actor"] == "socket"
    assert by_what["tenant.quota"]["detail"] == "3"
    assert by_what["token.add"]["subject"] == ident
    for what in ("sandbox.start", "run.start", "sandbox.delete"):
        row = by_what[what]
        assert (row["actor"], row["tenant"]) == (ident, "acme"), row
        assert row["origin"] == "127.0.0.1" and row["request_id"]
        assert len(row["digest"]) == 64
    # A flood is a few rows, and no secret is in any.
    assert 1 <= sum(r["what"] == "auth.failure" for r in rows) <= 4
    assert token not in json.dumps(rows) and "hunter2" not in json.dumps(rows)
    assert len(rows_of(ctl, "what=run.start")) == 1
    assert not rows_of(ctl, "tenant=other")
    assert not rows_of(ctl, f"since={int(time.time()) + 1000}")
    assert server.get("/api/v1/audit", bearer(token))[0] == 403
    # Over HTTP, with an administrator's token.
    admin = ctl.token("-", "--role", "admin")
    status, _, body = server.get("/api/v1/audit?limit=2", bearer(admin))
    assert status == 200 and len(json.loads(body)["audit"]) == 2
    for bad in ("limit=x", "cursor=", "since=-1"):
        assert server.get(f"/api/v1/audit?{bad}", bearer(admin))[0] == 400
    # The chain, and a row of it changed.
    verified = ctl.json("audit", "verify")
    head = verified["head"]
    ctl("audit", "verify", str(head["seq"]), head["hash"])
    assert "row" in ctl.refuses("audit", "verify", str(head["seq"]), "0" * 64)
    ctl.refuses("audit", "verify", "1", status=2)
    ctl.refuses("audit", "list", "who=me", status=2)
    ctl("audit", "verify", "--head", head["hash"])
    ctl.refuses("audit", "verify", "--head", "x", status=2)
    ctl.refuses("audit", "verify", "--head", "1" * 64)
    # The same of a server that is stopped, and of one that was killed.
    offline = ("audit", "verify", "--offline")
    server.stop()
    files = sorted(os.listdir(os.path.dirname(server.database)))
    ctl.refuses("audit", "verify")
    stopped = ctl.json(*offline)
    assert stopped["head"]["seq"] >= head["seq"]
    ctl(*offline, "--head", head["hash"])
    assert "no row has" in ctl.refuses(*offline, "--head", "1" * 64)
    ctl.refuses(*offline, "1", "0" * 64, status=2)
    assert files == sorted(os.listdir(os.path.dirname(server.database)))
    server.start()
    ctl(*offline, "--head", stopped["head"]["hash"])
    server.change("UPDATE audit SET actor = 'nobody' WHERE seq = 3")
    assert "row 3:" in ctl.refuses(*offline)
    assert "row 3:" in ctl.refuses("audit", "verify")
    server.change("DELETE FROM audit WHERE seq = 2")
    assert "row 2: the row is missing" in ctl.refuses("audit", "verify")


def test_a_copy_of_the_database_is_verified_with_the_rows_in_its_wal(
        server, ctl, tmp_path):
    ctl("tenant", "add", "acme")
    server.change("PRAGMA wal_checkpoint(TRUNCATE)")
    before = ctl.json("audit", "verify")["head"]
    reader = sqlite3.connect(server.database, isolation_level=None)
    reader.execute("BEGIN")  # what follows stays in the WAL
    assert reader.execute("SELECT max(seq) FROM audit").fetchone() == (
        before["seq"],)
    ctl("tenant", "add", "other")
    head = ctl.json("audit", "verify")["head"]
    assert head != before
    front = tmp_path / "front"
    front.mkdir()
    for end in ("", "-wal"):  # not -shm
        shutil.copy(server.database + end, front)
    reader.close()
    server.stop()

    def verify():
        return ctl.json("--data-dir", str(tmp_path), "audit", "verify",
                        "--offline")["head"]
    files = {f.name: f.read_bytes() for f in front.iterdir()}
    assert verify() == head
    assert files == {f.name: f.read_bytes() for f in front.iterdir()}
    # The same where nothing can be written, and of the file alone.
    subprocess.run(["mount", "--bind", front, front], check=True)
    try:
        subprocess.run(["mount", "-o", "remount,ro,bind", front], check=True)
        assert verify() == head
    finally:
        subprocess.run(["umount", front], check=True)
    next(f for f in front.iterdir() if f.name.endswith("-wal")).unlink()
    assert verify() == before


def test_cancels_and_refusals_are_in_the_audit(server, ctl):
    ctl("tenant", "add", "acme", "quota.sandboxes=1")
    token = ctl.token("acme")
    client = server.client(token=token)
    runs = [client.start("box", "sleep 1000")["run_id"] for _ in range(2)]
    client.request("POST", f"/mcp/runs/{runs[0]}/cancel")
    client.cancel(runs[1])
    client.wait_end(runs[0])
    # Canceled again, nothing is done.
    client.request("POST", f"/mcp/runs/{runs[0]}/cancel")
    for _ in range(20):
        client.refused("two", "true")
        assert client.request("GET", "/api/v1/audit")[0] == 403
        assert server.get("/", {"Host": "evil.example"})[0] == 403
        assert server.get("/api/v1/whoami")[0] == 401
    client.delete("box")
    server.restart()  # what was counted is written
    rows = rows_of(ctl)
    assert [r["subject"] for r in rows if r["what"] == "run.cancel"] == runs
    for what, detail in (("auth.forbidden", "not for its role"),
                         ("auth.forbidden", "host_not_allowed"),
                         ("auth.failure", "no token")):
        of = [r for r in rows
              if (r["what"], r["detail"]) == (what, detail)]
        assert len(of) <= 4 and sum(r["times"] for r in of) == 20, of
        assert {r["tenant"] for r in of} == {
            "acme" if detail == "not for its role" else ""}
    of = [r for r in rows if r["what"] == "quota.refusal"]
    assert len(of) <= 2 and sum(r["times"] for r in of) == 20, of
    assert {(r["tenant"], r["subject"], r["origin"]) for r in of} == {
        ("acme", "sandboxes", "")}


def test_what_the_file_of_tenants_changes_is_in_the_audit(make_server, tokens):
    ident = tokens.tenant("acme", "quota.sandboxes=3").split("_")[1]
    server = make_server(env={"TENANTS_FILE": tokens.write()})

    def told():
        return [r for r in rows_of(server.ctl) if r["origin"] == "TENANTS_FILE"]
    first = [("tenant.add", ""), ("tenant.quota", "sandboxes"),
             ("token.add", ident)]
    wait_row(server.ctl, "token.add")
    assert [(r["what"], r["subject"]) for r in told()] == first
    server.stop()
    tokens.lines[0] = "tenant acme quota.sandboxes=4 disabled"
    tokens.write()
    server.start()
    wait_row(server.ctl, "tenant.disable")
    rows = told()
    assert [(r["what"], r["subject"]) for r in rows] == [
        *first, ("tenant.quota", "sandboxes"), ("tenant.disable", "")]
    assert rows[-2]["detail"] == "4"
