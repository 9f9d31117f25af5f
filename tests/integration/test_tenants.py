"""Tenants and tokens: who may call, and when that ends."""
import concurrent.futures
import contextlib
import http.client
import json
import os
import subprocess

import pytest

from client import wait_for
from tenants import Tenant, bearer, make_token

pytestmark = pytest.mark.own


def test_from_the_first_token_on_nobody_comes_without(make_server, tokens):
    good = tokens.tenant("acme")
    late = tokens.token("acme", "user", "expires=1000000000")
    metrics = tokens.token("-", "metrics")
    server = make_server(env={"TENANTS_FILE": tokens.write()})
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
    server.wait_log("every request wants a token")
    secret = good.rsplit("_", 1)[1]
    assert secret not in "\n".join(server.log)
    with open(server.database, "rb") as f:
        assert secret.encode() not in f.read()


# The ids of others: test_tenancy.py.
def test_two_tenants_may_use_the_same_identifier(make_server, tokens):
    one, two = tokens.tenant("one"), tokens.tenant("two")
    server = make_server(env={"TENANTS_FILE": tokens.write()})
    a, b = server.client(token=one), server.client(token=two)
    assert a.run("box", "echo one > f")["state"] == "completed"
    assert b.run("box", "cat f")["state"] == "failed"


def test_a_server_can_want_tokens_before_there_are_any(make_server):
    """What the server's image does: any address, from the first start on."""
    server = make_server(env={"REQUIRE_TOKEN": "true", "BIND": "0.0.0.0"})
    assert "sandboxctl token add default" in "\n".join(server.log)
    assert server.get("/mcp")[0] == server.get("/metrics")[0] == 401
    assert server.get("/healthz")[0] == 200
    good = server.ctl.token("default")
    client = server.client(token=good)
    assert client.run("a", "echo hi")["state"] == "completed"
    assert server.get("/mcp")[0] == 401


# Without a tenant it does not start: test_check_config.py.
def test_another_address_is_served_where_there_is_a_tenant(make_server, tokens):
    good = tokens.tenant("acme")
    server = make_server(env={"BIND": "0.0.0.0",
                              "TENANTS_FILE": tokens.write()})
    assert server.get("/")[0] == 401
    assert server.get("/", bearer(good))[0] == 200


def test_a_day_of_a_tenant(server, ctl):
    mode = os.stat(os.path.join(server.data, "admin.sock")).st_mode
    assert mode & 0o777 == 0o600
    assert ctl.json("whoami")["role"] == "admin"
    assert server.get("/")[0] == 200
    # No administration without a token, also while the server is open.
    assert server.get("/api/v1/tenants")[0] == 403
    ctl("tenant", "add", "acme", "quota.sandboxes=3")
    assert server.get("/")[0] == 401
    ctl.refuses("tenant", "add", "acme")
    ctl.refuses("tenant", "add", status=2)
    ctl.refuses("tenant", "add", "../x", status=2)
    ctl.refuses("what", status=2)
    shown = ctl.json("tenant", "show", "acme")
    assert shown["quotas"]["sandboxes"] == 3
    assert shown["quotas_set"] == ["sandboxes"]
    ctl.refuses("tenant", "set", "acme", "quota.x=1")
    ctl.refuses("tenant", "set", "acme", "quota.weight=0")
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
    own = client.get("/api/v1/usage")
    assert own == used
    me = client.get("/api/v1/whoami")
    assert me["tenant"] == "acme" and me["token_id"] == listed[0]["id"]
    for path in ("/api/v1/tenants", "/api/v1/tenants/acme",
                 "/api/v1/tenants/acme/tokens", "/api/v1/tokens"):
        client.get(path, 403)
    assert "acme" in ctl("tenant", "list") and "acme" in ctl("usage")
    ctl("tenant", "disable", "acme")
    assert server.get("/", bearer(token))[0] == 403
    ctl("tenant", "enable", "acme")
    assert server.get("/", bearer(token))[0] == 200
    ctl("tenant", "delete", "acme")
    assert server.get("/", bearer(token))[0] == 401
    assert server.get("/")[0] == 401
    ctl.refuses("tenant", "show", "acme")
    for table in ("run", "sandbox", "token", "quota"):
        assert server.sql(f"SELECT count(*) FROM {table}") == [(0,)]
    ctl("tenant", "add", "acme")


def test_over_http_with_a_token_of_role_admin(server, ctl):
    admin = ctl.token("-", "--role", "admin")
    url = f"http://127.0.0.1:{server.port}"
    env = {"SANDBOXCTL_TOKEN": admin, "SANDBOXCTL_URL": url}
    ctl("tenant", "add", "acme", env=env)
    user = ctl("token", "add", "acme", env=env).strip()
    assert server.get("/", bearer(user))[0] == 200
    env["SANDBOXCTL_TOKEN"] = user
    told = ctl.refuses("tenant", "list", env=env)
    assert "role" in told and user not in told
    assert "tenant: acme\n" in ctl("usage", env=env)
    # An administrator is no user.
    assert server.client(token=admin).post("{}")[0] == 403


@pytest.mark.own(DRAIN_TIMEOUT_MS="100")
def test_a_revoked_token_ends_what_is_open(server, ctl):
    # Its end need not wait for the call of one that is gone.
    acme, other = Tenant(server, "acme"), ctl.token("acme")
    client, token, keeper = acme.client, acme.token, server.client(token=other)
    run = client.start("box", "echo on; sleep 1000")["run_id"]
    stream = http.client.HTTPConnection("127.0.0.1", server.port, timeout=60)
    stream.request("GET", f"/mcp/events?run_id={run}", headers=bearer(token))
    answer = stream.getresponse()
    assert answer.status == 200 and answer.readline()
    # A call that waits, on a connection of its own.
    waiting = server.client(token=token)
    with concurrent.futures.ThreadPoolExecutor(1) as pool:
        ended = pool.submit(waiting.run, "box", "sleep 1000")
        wait_for(lambda: len(keeper.call("list_runs")["runs"]) == 2, 60,
                 "the second run")
        ctl("token", "revoke", token.split("_")[1])
        with contextlib.suppress(OSError, http.client.HTTPException):
            answer.read()  # ends; the socket's own time limit says otherwise
        with pytest.raises((OSError, http.client.HTTPException, KeyError)):
            ended.result(60)
    assert server.get("/", bearer(token))[0] == 401
    # The tenant's runs go on.
    assert keeper.status(run)["state"] in ("queued", "running")
    # And it stays so after a restart of the front.
    assert ctl.json("token", "list", "acme")["tokens"][0]["state"] == "revoked"


def test_wrong_tokens_of_a_neighbour_do_not_shut_good_ones_out(
        make_server, tokens):
    good = tokens.tenant("acme")
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
    server.wait_log("no token")
    told = [n for n in server.log if "no such token" in n]
    assert len(told) == 1


def test_what_cannot_be_printed_is_said(build):
    with open("/dev/full", "w", encoding="ascii") as full:
        done = subprocess.run(
            [os.path.join(build, "sandboxctl"), "--help"], stdout=full,
            stderr=subprocess.PIPE, text=True, timeout=60, check=False)
    assert done.returncode == 1
    assert "could not be printed: No space left" in done.stderr


def test_a_line_for_the_file_is_made_without_a_server(program, make_server,
                                                      tokens):
    done = program("token", "make", "acme", "--name", "ci",
                   program="sandboxctl")
    token, line = done.stdout.splitlines()
    tokens.lines = ["tenant acme", line]
    other = make_server(env={"TENANTS_FILE": tokens.write()})
    assert other.get("/", bearer(token))[0] == 200


@pytest.mark.parametrize("words, says", [
    (("acme", "--role", "x"), "want user, admin or metrics"),
    (("-",), "belongs to a tenant")])
def test_a_line_that_would_end_the_start_is_not_made(program, words, says):
    done = program("token", "make", *words, program="sandboxctl")
    assert (done.returncode, done.stdout) == (2, "")
    assert says in done.stderr
