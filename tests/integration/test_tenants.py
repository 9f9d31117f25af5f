"""Tenants and tokens: who may call, and when that ends."""
import hashlib
import os
import secrets
import string
import tempfile

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
