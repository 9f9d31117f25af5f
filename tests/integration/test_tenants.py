"""Tenants and tokens: who may call, and when that ends."""
import contextlib
import hashlib
import http.client
import json
import os
import secrets
import sqlite3
import string
import subprocess
import tempfile
import threading

import pytest

from client import wait_for

LETTERS = string.ascii_letters + string.digits


def make_token():
    """(token, id, digest) as sandboxctl token make does."""
    ident = "".join(secrets.choice(LETTERS) for _ in range(12))
    secret = "".join(secrets.choice(LETTERS) for _ in range(43))
    digest = hashlib.sha256(secret.encode()).hexdigest()
    return f"mcps_{ident}_{secret}", ident, digest


class Tokens:
    """A TENANTS_FILE, and the tokens of its lines."""

    def __init__(self, path):
        self.path = path
        self.lines = []

    def tenant(self, name, *words):
        self.lines.append(" ".join(["tenant", name, *words]))

    def token(self, tenant, role, *words):
        token, ident, digest = make_token()
        self.lines.append(
            " ".join(["token", tenant, ident, role, digest, *words]))
        return token

    def write(self):
        with open(self.path, "w", encoding="ascii") as f:
            f.write("\n".join(self.lines) + "\n")
        os.chmod(self.path, 0o644)
        return self.path


@pytest.fixture
def tokens():
    """Where the front's user gets to."""
    with tempfile.TemporaryDirectory(prefix="mcp-tenants-") as top:
        os.chmod(top, 0o755)
        yield Tokens(os.path.join(top, "tenants"))


def bearer(token):
    return {"Authorization": f"Bearer {token}"}


def test_from_the_first_token_on_nobody_comes_without(make_server, tokens):
    tokens.tenant("acme")
    good = tokens.token("acme", "user")
    late = tokens.token("acme", "user", "expires=1000000000")
    metrics = tokens.token("-", "metrics")
    server = make_server(env={"TENANTS_FILE": tokens.write()}, wait=False)
    server.port = wait_for(server.find_port, 30, "the port")
    wait_for(server.is_ready, 60, "readiness")
    assert server.get("/healthz")[0] == 200
    for path in ("/", "/mcp", "/metrics", "/nothing", "/mcp/events",
                 "/mcp/runs/00000000-0000-4000-8000-000000000000",
                 "/artifacts/a/latest/b"):
        for token in (None, "", "x", good[:-1], good + "a", late,
                      "mcps_" + "a" * 12 + "_" + "a" * 43):
            status, headers, body = server.get(
                path, {} if token is None else bearer(token))
            assert status == 401, (path, token, body)
            assert headers["WWW-Authenticate"].startswith("Bearer")
            assert ("invalid_token" in headers["WWW-Authenticate"]) == \
                (token is not None)
            assert b'"request_id"' in body and b'"message"' in body
    assert server.get("/.well-known/oauth-protected-resource")[0] == 404
    assert server.get("/", bearer(good))[0] == 200
    assert server.get("/nothing", bearer(good))[0] == 404
    assert server.get("/metrics", bearer(good))[0] == 403
    assert server.get("/metrics", bearer(metrics))[0] == 200
    assert server.get("/mcp", bearer(metrics))[0] == 403
    client = server.client(token=good)
    assert client.run("a", "echo hi")["state"] == "completed"
    assert any("every request wants a token" in n for n in server.log)
    secret = good.rsplit("_", 1)[1]
    assert secret not in "\n".join(server.log)
    with open(server.database, "rb") as f:
        assert secret.encode() not in f.read()


def test_two_tenants_may_use_the_same_identifier(make_server, tokens):
    tokens.tenant("one")
    tokens.tenant("two")
    one, two = tokens.token("one", "user"), tokens.token("two", "user")
    server = make_server(env={"TENANTS_FILE": tokens.write()})
    a, b = server.client(token=one), server.client(token=two)
    first = a.start("box", "echo one > f; sleep 1000")["run_id"]
    wait_for(lambda: a.status(first)["state"] == "running", 60, "the run")
    assert b.run("box", "cat f")["state"] == "failed"
    # A foreign run is an unknown one.
    never = "00000000-0000-4000-8000-000000000000"
    assert b.request("GET", f"/mcp/runs/{first}")[0] == 404
    told = [b.fail("get_run", run_id=r).replace(r, "ID")
            for r in (first, never)]
    assert told[0] == told[1]
    for r in (first, never):
        assert b.request("POST", f"/mcp/runs/{r}/cancel")[0] == 404
        assert b.request("DELETE", f"/mcp/runs/{r}")[0] == 404
    assert a.status(first)["state"] == "running"
    # A session is its own token's.
    b.session = a.session
    status, _, _ = b.post({"jsonrpc": "2.0", "id": 1, "method": "ping"})
    assert status == 404


def test_another_address_wants_a_tenant_first(make_server, tokens):
    server = make_server(env={"BIND": "0.0.0.0"}, wait=False)
    assert server.proc.wait(30) == 78
    assert "sandboxctl tenant add" in server.tail()
    tokens.tenant("acme")
    good = tokens.token("acme", "user")
    server = make_server(
        env={"BIND": "0.0.0.0", "TENANTS_FILE": tokens.write()})
    assert server.get("/")[0] == 401
    assert server.get("/", bearer(good))[0] == 200


def test_a_wrong_line_of_the_file_stops_the_start(make_server, tokens):
    tokens.tenant("acme", "quota.sandboxes=many")
    server = make_server(env={"TENANTS_FILE": tokens.write()}, wait=False)
    assert server.proc.wait(30) == 78
    assert "line 1" in server.tail() and "sandboxes" in server.tail()


class Ctl:
    """sandboxctl at a server's admin socket."""

    def __init__(self, server):
        self.server = server

    def run(self, *words, env=None):
        done = subprocess.run(
            [os.path.join(self.server.build, "sandboxctl"), "--data-dir",
             self.server.data, *words], capture_output=True, text=True,
            stdin=subprocess.DEVNULL, timeout=60, check=False,
            env={**os.environ, **(env or {})})
        return done

    def __call__(self, *words):
        done = self.run(*words)
        assert done.returncode == 0, (words, done.stdout, done.stderr)
        return done.stdout

    def json(self, *words):
        return json.loads(self("--json", *words))

    def token(self, *words):
        text = self("token", "add", *words)
        assert text.startswith("mcps_") and text.count("\n") == 1
        return text.strip()


def test_a_day_of_a_tenant(make_server):
    server = make_server()
    ctl = Ctl(server)
    mode = os.stat(os.path.join(server.data, "admin.sock")).st_mode
    assert mode & 0o777 == 0o600
    assert ctl.json("whoami")["role"] == "admin"
    assert server.get("/")[0] == 200
    # No administration without a token, also while the server is open.
    assert server.get("/api/v1/tenants")[0] == 403
    ctl("tenant", "add", "acme", "quota.sandboxes=3")
    assert server.get("/")[0] == 401
    assert ctl.run("tenant", "add", "acme").returncode == 1
    assert ctl.run("tenant", "add").returncode == 2
    assert ctl.run("tenant", "add", "../x").returncode == 2
    assert ctl.run("what").returncode == 2
    shown = ctl.json("tenant", "show", "acme")
    assert shown["quotas"]["sandboxes"] == 3
    assert shown["quotas_set"] == ["sandboxes"]
    assert ctl.run("tenant", "set", "acme", "quota.x=1").returncode == 1
    assert ctl.run("tenant", "set", "acme", "quota.weight=0").returncode == 1
    ctl("tenant", "set", "acme", "quota.weight=7", "quota.sandboxes=default")
    shown = ctl.json("tenant", "show", "acme")
    assert shown["quotas_set"] == ["weight"]
    token = ctl.token("acme", "--name", "of a test", "--expires", "1h")
    listed = ctl.json("token", "list", "acme")["tokens"]
    assert [t["name"] for t in listed] == ["of a test"]
    assert token not in json.dumps(listed)
    client = server.client(token=token)
    client.run("box", "echo hi")
    used = ctl.json("usage", "acme")
    assert used["sandboxes"] == 1 and used["tenant"] == "acme"
    own = json.loads(client.request("GET", "/api/v1/usage")[2])
    assert own == used
    me = json.loads(client.request("GET", "/api/v1/whoami")[2])
    assert me["tenant"] == "acme" and me["token_id"] == listed[0]["id"]
    for path in ("/api/v1/tenants", "/api/v1/tenants/acme",
                 "/api/v1/tenants/acme/tokens", "/api/v1/tokens"):
        assert client.request("GET", path)[0] == 403
    assert "acme" in ctl("tenant", "list") and "acme" in ctl("usage")
    ctl("tenant", "disable", "acme")
    assert server.get("/", bearer(token))[0] == 403
    ctl("tenant", "enable", "acme")
    assert server.get("/", bearer(token))[0] == 200
    ctl("tenant", "delete", "acme")
    assert server.get("/", bearer(token))[0] == 401
    assert server.get("/")[0] == 401
    assert ctl.run("tenant", "show", "acme").returncode == 1
    with contextlib.closing(sqlite3.connect(server.database)) as db:
        for table in ("run", "sandbox", "token", "quota"):
            assert db.execute(
                f"SELECT count(*) FROM {table}").fetchone() == (0,)
    ctl("tenant", "add", "acme")


def test_over_http_with_a_token_of_role_admin(make_server):
    server = make_server()
    ctl = Ctl(server)
    admin = ctl.token("-", "--role", "admin")
    url = f"http://127.0.0.1:{server.port}"
    env = {"SANDBOXCTL_TOKEN": admin, "SANDBOXCTL_URL": url}
    assert ctl.run("tenant", "add", "acme", env=env).returncode == 0
    done = ctl.run("token", "add", "acme", env=env)
    user = done.stdout.strip()
    assert server.get("/", bearer(user))[0] == 200
    env["SANDBOXCTL_TOKEN"] = user
    done = ctl.run("tenant", "list", env=env)
    assert done.returncode == 1 and "role" in done.stderr
    assert user not in done.stderr
    assert "tenant: acme\n" in ctl.run("usage", env=env).stdout
    # An administrator is no user.
    assert server.client(token=admin).post("{}")[0] == 403


def test_a_revoked_token_ends_what_is_open(make_server):
    # Its end need not wait for the call of one that is gone.
    server = make_server(env={"DRAIN_TIMEOUT_MS": "100"})
    ctl = Ctl(server)
    ctl("tenant", "add", "acme")
    token, other = ctl.token("acme"), ctl.token("acme")
    client, keeper = server.client(token=token), server.client(token=other)
    run = client.start("box", "echo on; sleep 1000")["run_id"]
    stream = http.client.HTTPConnection("127.0.0.1", server.port, timeout=60)
    stream.request("GET", f"/mcp/events?run_id={run}", headers=bearer(token))
    answer = stream.getresponse()
    assert answer.status == 200 and answer.readline()
    # A call that waits, on a connection of its own.
    waiting = server.client(token=token)
    ended = []

    def wait():
        try:
            waiting.run("box", "sleep 1000")
        except (OSError, http.client.HTTPException, KeyError) as e:
            ended.append(e)

    thread = threading.Thread(target=wait)
    thread.start()
    wait_for(lambda: len(keeper.call("list_runs")["runs"]) == 2, 60,
             "the second run")
    ident = token.split("_")[1]
    ctl("token", "revoke", ident)
    with contextlib.suppress(OSError, http.client.HTTPException):
        answer.read()  # ends; the socket's own time limit says otherwise
    thread.join(60)
    assert not thread.is_alive() and ended
    assert server.get("/", bearer(token))[0] == 401
    # The tenant's runs go on.
    assert keeper.status(run)["state"] in ("queued", "running")
    # And it stays so after a restart of the front.
    assert ctl.json("token", "list", "acme")["tokens"][0]["state"] == "revoked"


def test_wrong_tokens_of_a_neighbour_do_not_shut_good_ones_out(
        make_server, tokens):
    tokens.tenant("acme")
    good = tokens.token("acme", "user")
    server = make_server(env={
        "TENANTS_FILE": tokens.write(), "LIMIT_LOOPBACK": "true",
        "FAILED_LOGINS_PER_MINUTE_PER_ADDRESS": "2"})
    wrong = bearer(make_token()[0])
    # The bucket fills while this runs: a few more may be looked at.
    found = [server.get("/", wrong)[0] for _ in range(20)]
    assert found[0] == 401 and 429 in found
    status, headers, data = server.get("/", wrong)
    if status == 429:
        assert int(headers["Retry-After"]) >= 1
        assert json.loads(data)["error"]["code"] == "too_many_failed_logins"
    # From the same address, while that lasts.
    assert server.get("/", bearer(good))[0] == 200
    # Who sends none at all is told what to send, as ever.
    assert server.get("/")[0] == 401
    # The log has a bound: the first is told of at once, all others are one
    # line when their minute is over.
    wait_for(lambda: any("no token" in n for n in server.log), 30,
             "the last line of the log")
    told = [n for n in server.log if "no such token" in n]
    assert len(told) == 1


def test_what_cannot_be_printed_is_said(build):
    with open("/dev/full", "w", encoding="ascii") as full:
        done = subprocess.run(
            [os.path.join(build, "sandboxctl"), "--help"], stdout=full,
            stderr=subprocess.PIPE, text=True, timeout=60, check=False)
    assert done.returncode == 1
    assert "could not be printed: No space left" in done.stderr


def test_a_line_for_the_file_is_made_without_a_server(make_server, tokens):
    server = make_server()
    done = subprocess.run(
        [os.path.join(server.build, "sandboxctl"), "token", "make", "acme",
         "--name", "ci"], capture_output=True, text=True, timeout=30,
        check=True)
    token, line = done.stdout.splitlines()
    tokens.lines = ["tenant acme", line]
    other = make_server(env={"TENANTS_FILE": tokens.write()})
    assert other.get("/", bearer(token))[0] == 200


@pytest.mark.parametrize("words, says", [
    (("acme", "--role", "x"), "want user, admin or metrics"),
    (("-",), "belongs to a tenant")])
def test_a_line_that_would_end_the_start_is_not_made(build, words, says):
    done = subprocess.run(
        [os.path.join(build, "sandboxctl"), "token", "make", *words],
        capture_output=True, text=True, timeout=60, check=False)
    assert (done.returncode, done.stdout) == (2, "")
    assert says in done.stderr
