"""What root's TENANTS_FILE says of a tenant holds against the front, too."""
import json
import os

import pytest

from client import wait_for
from tenants import Tenant


def isolation(client, path):
    return client.get(path)["isolation"]


def check_as_delivered(told):
    """As delivered, and the limits of the server's own settings."""
    assert told["seccomp"] == "server"
    assert told["no_new_privileges"] and not told["privileged"]
    assert told["capabilities_dropped"] == ["ALL"]
    assert "SYS_ADMIN" not in told["capabilities_added"]
    assert told["network"] == "none" and told["runtime"]
    limits = told["limits"]
    assert limits["memory_bytes"] > 0 and limits["cpus"] > 0
    assert limits["pids"] > 0 and limits["disk_bytes"] > 0
    assert limits["disk_by"] in ("engine", "agent")


def test_a_quota_does_not_go_beyond_a_ceiling(make_server, tokens):
    acme = tokens.tenant("acme", "ceiling.sandboxes=1",
                         "rule.read_only_root=true")
    free = tokens.tenant("free")
    root = tokens.token("-", "admin")
    server = make_server(env={"TENANTS_FILE": tokens.write()})
    a, admin = server.client(token=acme), server.client(token=root)
    text = a.run("one", "touch /bin/x 2>&1; touch /workspace/f && echo good")
    assert text["state"] == "completed", text
    assert "Read-only file system" in json.dumps(text)
    assert "good" in json.dumps(text)
    # It is a quota as well, and that one gives way.
    assert "quota sandboxes" in json.dumps(
        a.tool("initialize_sandbox", identifier="two"))
    server.ctl("tenant", "set", "acme", "quota.sandboxes=9")
    assert "tenant acme has its ceiling of 1 sandboxes" in json.dumps(
        a.tool("initialize_sandbox", identifier="three"))
    # It is what is said of the sandbox, too: by its engine, not by the rule.
    held = isolation(a, "/api/v1/sandboxes/one")
    assert held["read_only_root"] is True
    # Others are none of its business.
    b = server.client(token=free)
    assert "Read-only" not in json.dumps(
        b.run("one", "touch /bin/x 2>&1; touch /workspace/f"))
    b.call("initialize_sandbox", identifier="two")
    held = isolation(b, "/api/v1/sandboxes/two")
    assert held["read_only_root"] is False
    b.get("/api/v1/sandboxes/three", 404)
    # What is wrong with the host is not for tenants.
    assert "advisories" not in held
    told = isolation(admin, "/api/v1/tenants/free/sandboxes/two")
    assert set(told.pop("advisories")) == {"open", "unknown", "not_shown"}
    assert told == held
    b.get("/api/v1/tenants/free/sandboxes/two", 403)
    check_as_delivered(told)


@pytest.mark.parametrize("words, what", [
    (["ceiling.runs_queued=1"], "no ceiling runs_queued"),
    (["ceiling.sandboxes=x"], "quota sandboxes: want a number"),
    (["rule.colour=red"], "no rule colour"),
    (["rule.runtime=../x"], "no runtime name")])
def test_a_wrong_word_ends_the_start(program, tokens, words, what):
    tokens.tenant("acme", *words)
    program.refuses(TENANTS_FILE=tokens.write(), words=[what, "line 1"])


def test_a_file_that_others_may_write_is_not_believed(program, tokens):
    tokens.tenant("acme")
    path = tokens.write()
    path.chmod(0o666)
    program.refuses(TENANTS_FILE=path, words=["others may write it"])
    if os.geteuid() == 0:  # a group that is not root's
        os.chown(path, 0, 65534)
        path.chmod(0o664)
        program.refuses(TENANTS_FILE=path, words=["others may write it"])


def test_workers_alone_are_told(make_server, tokens):
    """What asks an issuer for its keys knows no ceilings, and lives."""
    token = tokens.tenant("acme", "ceiling.sandboxes=1")
    server = make_server(env={
        "TENANTS_FILE": tokens.write(), "RUN_AS_KEYS": "",
        "OAUTH_ISSUER": "http://127.0.0.1:1",
        "OAUTH_AUDIENCE": "https://mcp.example/"})
    server.wait_log(" keys[", "is ready")
    assert server.client(token=token).run("a", "true")["state"] == "completed"


def runtimes_of(engine):
    return json.loads(engine.request("GET", "/info")[1])["Runtimes"]


def test_a_runtime_that_the_engine_lacks_is_refused_before_a_row(
        make_server, tokens, engine):
    token = tokens.tenant("acme", "rule.runtime=no-such")
    server = make_server(env={"TENANTS_FILE": tokens.write()})
    told = json.dumps(server.client(token=token).tool(
        "initialize_sandbox", identifier="a"))
    assert "the engine has no runtime no-such; it has: " in told
    assert all(name in told for name in runtimes_of(engine))
    assert server.sql("SELECT count(*) FROM sandbox")[0][0] == 0
    assert [c for c in engine.containers(server.instance)
            if c["Labels"]["mcp.role"] == "sandbox"] == []


def test_a_rule_cannot_name_a_runtime_that_the_engine_lacks(
        make_server, engine):
    server = make_server(env={"SANDBOX_RUNTIMES_ALLOWED": "runc,no-such"})
    Tenant(server, "acme", "rule.read_only_root=true")
    told = server.ctl.refuses(
        "tenant", "set", "acme", "rule.runtime=no-such")
    assert "has no runtime no-such; it has: " in told
    assert all(name in told for name in runtimes_of(engine))
    assert server.ctl.json("tenant", "show", "acme")["rules"] == {
        "runtime": "", "read_only_root": True}


@pytest.mark.own(SANDBOX_RUNTIMES_ALLOWED="runc")
def test_a_rule_is_set_while_the_server_runs(server, ctl, engine):
    other = next(n for n in runtimes_of(engine) if n != "runc")
    client = Tenant(server, "acme", "rule.read_only_root=true").client
    assert "Read-only" in json.dumps(client.run("a", "touch /home/x 2>&1"))
    ctl("tenant", "set", "acme", "rule.read_only_root=default",
        "rule.runtime=runc")
    assert ctl.json("tenant", "show", "acme")["rules"] == {
        "runtime": "runc", "read_only_root": False}
    # It has been made; the next one is by the rules of now.
    assert "Read-only" in json.dumps(client.run("a", "touch /home/x 2>&1"))
    client.call("initialize_sandbox", identifier="b")
    assert isolation(client, "/api/v1/sandboxes/b")["runtime"] == "runc"
    ctl("tenant", "set", "acme", "rule.runtime=" + other)
    assert "SANDBOX_RUNTIMES_ALLOWED" in json.dumps(
        client.tool("initialize_sandbox", identifier="c"))
    server.restart()
    assert wait_for(lambda: isolation(client, "/api/v1/sandboxes/a"), 60,
                    "what the worker sees anew")["read_only_root"] is True
    assert ctl.json("tenant", "show", "acme")["rules"]["runtime"] == other
    ctl("tenant", "set", "acme", "rule.runtime=default")
    assert client.run("d", "true")["state"] == "completed"
    assert "no rule colour" in ctl.refuses("tenant", "set", "acme",
                                           "rule.colour=red")
    assert "tenant.rule" in ctl("audit", "list", "what=tenant.rule")
