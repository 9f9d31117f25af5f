"""The audit: who did what, in a chain that shows what was changed."""
import json
import os
import shutil
import sqlite3
import subprocess
import tempfile
import time

from client import wait_for
from test_tenants import Tokens


class Audit:
    """sandboxctl audit at a server's admin socket."""

    def __init__(self, server):
        self.server = server

    def ctl(self, *words, status=0):
        done = subprocess.run(
            [os.path.join(self.server.build, "sandboxctl"), "--data-dir",
             self.server.data, *words], capture_output=True, text=True,
            stdin=subprocess.DEVNULL, timeout=60, check=False)
        assert done.returncode == status, (words, done.stdout, done.stderr)
        return done.stderr if status else done.stdout

    def rows(self, *words):
        """Oldest first."""
        text = self.ctl("--json", "audit", "list", "limit=500", *words)
        return json.loads(text)["audit"][::-1]

    def has(self, **members):
        return any(all(r[k] == v for k, v in members.items())
                   for r in self.rows())

    def sql(self, text):
        path = os.path.join(self.server.data, "front", "mcp-sandboxd.db")
        with sqlite3.connect(path, timeout=30) as db:
            db.execute(text)
        db.close()


def test_what_is_done_is_in_the_audit_and_a_change_is_found(make_server):
    server = make_server()
    audit = Audit(server)
    audit.ctl("tenant", "add", "acme", "quota.sandboxes=3")
    token = audit.ctl("token", "add", "acme").strip()
    ident = token.split("_")[1]
    client = server.client(token=token)
    assert client.run("box", "echo hunter2")["state"] == "completed"
    client.call("delete_sandbox", identifier="box")
    for _ in range(50):
        assert server.get("/", {"Authorization": "Bearer x"})[0] in (401, 429)
    # Neither is waited for by whoever caused it: on disk soon.
    for what in ("sandbox.end", "auth.failure"):
        wait_for(lambda w=what: audit.has(what=w), 30, what)
    rows = audit.rows()
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
    assert len(audit.rows("what=run.start")) == 1
    assert not audit.rows("tenant=other")
    assert not audit.rows(f"since={int(time.time()) + 1000}")
    assert server.get("/api/v1/audit",
                      {"Authorization": f"Bearer {token}"})[0] == 403
    # Over HTTP, with an administrator's token.
    admin = audit.ctl("token", "add", "-", "--role", "admin").strip()
    status, _, body = server.get("/api/v1/audit?limit=2",
                                 {"Authorization": f"Bearer {admin}"})
    assert status == 200 and len(json.loads(body)["audit"]) == 2
    for bad in ("limit=x", "cursor=", "since=-1"):
        assert server.get(f"/api/v1/audit?{bad}",
                          {"Authorization": f"Bearer {admin}"})[0] == 400
    # The chain, and a row of it changed.
    verified = json.loads(audit.ctl("--json", "audit", "verify"))
    head = verified["head"]
    audit.ctl("audit", "verify", str(head["seq"]), head["hash"])
    assert "row" in audit.ctl("audit", "verify", str(head["seq"]), "0" * 64,
                              status=1)
    audit.ctl("audit", "verify", "1", status=2)
    audit.ctl("audit", "list", "who=me", status=2)
    audit.ctl("audit", "verify", "--head", head["hash"])
    audit.ctl("audit", "verify", "--head", "x", status=2)
    audit.ctl("audit", "verify", "--head", "1" * 64, status=1)
    # The same of a server that is stopped, and of one that was killed.
    offline = ("audit", "verify", "--offline")
    server.stop()
    files = sorted(os.listdir(os.path.dirname(server.database)))
    audit.ctl("audit", "verify", status=1)
    stopped = json.loads(audit.ctl("--json", *offline))
    assert stopped["head"]["seq"] >= head["seq"]
    audit.ctl(*offline, "--head", head["hash"])
    assert "no row has" in audit.ctl(*offline, "--head", "1" * 64, status=1)
    audit.ctl(*offline, "1", "0" * 64, status=2)
    assert files == sorted(os.listdir(os.path.dirname(server.database)))
    server.start()
    audit.ctl(*offline, "--head", stopped["head"]["hash"])
    audit.sql("UPDATE audit SET actor = 'nobody' WHERE seq = 3")
    assert "row 3:" in audit.ctl(*offline, status=1)
    assert "row 3:" in audit.ctl("audit", "verify", status=1)
    audit.sql("DELETE FROM audit WHERE seq = 2")
    assert "row 2: the row is missing" in audit.ctl(
        "audit", "verify", status=1)


def test_a_copy_of_the_database_is_verified_with_the_rows_in_its_wal(
        make_server, tmp_path):
    server = make_server()
    audit = Audit(server)
    audit.ctl("tenant", "add", "acme")
    audit.sql("PRAGMA wal_checkpoint(TRUNCATE)")
    before = json.loads(audit.ctl("--json", "audit", "verify"))["head"]
    reader = sqlite3.connect(server.database, isolation_level=None)
    reader.execute("BEGIN")  # what follows stays in the WAL
    assert reader.execute("SELECT max(seq) FROM audit").fetchone() == (
        before["seq"],)
    audit.ctl("tenant", "add", "other")
    head = json.loads(audit.ctl("--json", "audit", "verify"))["head"]
    assert head != before
    front = tmp_path / "front"
    front.mkdir()
    for end in ("", "-wal"):  # not -shm
        shutil.copy(server.database + end, front)
    reader.close()
    server.stop()
    words = [os.path.join(server.build, "sandboxctl"), "--data-dir",
             str(tmp_path), "--json", "audit", "verify", "--offline"]

    def verify():
        done = subprocess.run(words, capture_output=True, check=False,
                              timeout=60)
        assert done.returncode == 0, done.stderr
        return json.loads(done.stdout)["head"]
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


def test_cancels_and_refusals_are_in_the_audit(make_server):
    server = make_server()
    audit = Audit(server)
    audit.ctl("tenant", "add", "acme", "quota.sandboxes=1")
    token = audit.ctl("token", "add", "acme").strip()
    client = server.client(token=token)
    runs = [client.start("box", "sleep 1000")["run_id"] for _ in range(2)]
    client.request("POST", f"/mcp/runs/{runs[0]}/cancel")
    client.call("control_run", run_id=runs[1], action="cancel")
    client.wait_end(runs[0])
    # Canceled again, nothing is done.
    client.request("POST", f"/mcp/runs/{runs[0]}/cancel")
    for _ in range(20):
        client.fail("run_sandbox", identifier="two",
                    commands=[{"shell": "true"}])
        assert client.request("GET", "/api/v1/audit")[0] == 403
        assert server.get("/", {"Host": "evil.example"})[0] == 403
        assert server.get("/api/v1/whoami")[0] == 401
    client.call("delete_sandbox", identifier="box")
    server.stop()  # what was counted is written
    server.start()
    rows = audit.rows()
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


def test_what_the_file_of_tenants_changes_is_in_the_audit(make_server):
    with tempfile.TemporaryDirectory(prefix="mcp-tenants-") as top:
        os.chmod(top, 0o755)
        file_is_audited(make_server, Tokens(os.path.join(top, "tenants")))


def file_is_audited(make_server, tokens):
    tokens.tenant("acme", "quota.sandboxes=3")
    ident = tokens.token("acme", "user").split("_")[1]
    server = make_server(env={"TENANTS_FILE": tokens.write()})
    audit = Audit(server)
    told = [("tenant.add", ""), ("tenant.quota", "sandboxes"),
            ("token.add", ident)]
    wait_for(lambda: audit.has(what="token.add"), 30, "the first rows")
    rows = [r for r in audit.rows() if r["origin"] == "TENANTS_FILE"]
    assert [(r["what"], r["subject"]) for r in rows] == told
    server.stop()
    tokens.lines[0] = "tenant acme quota.sandboxes=4 disabled"
    tokens.write()
    server.start()
    wait_for(lambda: audit.has(what="tenant.disable"), 30, "the last row")
    rows = [r for r in audit.rows() if r["origin"] == "TENANTS_FILE"]
    assert [(r["what"], r["subject"]) for r in rows] == [
        *told, ("tenant.quota", "sandboxes"), ("tenant.disable", "")]
    assert rows[-2]["detail"] == "4"
