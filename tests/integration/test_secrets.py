"""Secrets by reference: they reach the command, and nothing else has them."""
import hashlib
import json
import os
import pathlib
import secrets

import pytest

from client import stdout, wait_for
from tenants import Tenant

pytestmark = pytest.mark.own

SUM = 'printf %s "$S" | sha256sum | cut -c1-64'


def digest(value):
    return hashlib.sha256(value.encode()).hexdigest() + "\n"


def needs(name, shell=SUM):
    return {"shell": shell, "env": {"S": f"secret://{name}"}}


def files_with(top, value):
    """Where the value is on disk."""
    return [p for p in pathlib.Path(top).rglob("*") if p.is_file() and
            not p.is_symlink() and value.encode() in p.read_bytes()]


def texts_of(server, client, engine, runs):
    """All that can be asked for, of all that was told."""
    yield "\n".join(server.log)
    yield server.get("/metrics")[2].decode()
    yield server.ctl("--json", "audit", "list", "limit=500")
    yield server.ctl("--json", "secret", "list")
    yield json.dumps(client.call("list_runs", limit=100))
    for run in runs:
        yield json.dumps(client.status(run))
        yield json.dumps(client.call("get_run", run_id=run))
    for c in engine.containers(server.instance):
        yield json.dumps(c)
        yield engine.request(
            "GET", f"/containers/{c['Id']}/json")[1].decode()


def check_nowhere(server, client, engine, runs, value):
    assert files_with(server.dir, value) == []
    for text in texts_of(server, client, engine, runs):
        assert value not in text
    # In its sandbox only processes that were given it have it.
    final = client.run("box", needs(
        "db", 'grep -rlF -- "$S" /tmp /run /var /home /root /etc /workspace '
        '/artifacts /dev/shm /mnt /opt /srv 2>/dev/null; echo looked'),
        as_user="root")
    assert stdout(final) == "looked\n"


@pytest.mark.own(LOG_LEVEL="debug")
def test_a_secret_reaches_its_command_and_nothing_else(server, client, engine):
    value = secrets.token_hex(24)
    server.ctl("secret", "set", "db", value=value + "\n")
    done = client.run("box", needs("db"), SUM,
                      default_env={"S": "secret://db", "PLAIN": "x"})
    assert [c["stdout"] for c in done["commands"]] == [digest(value)] * 2
    assert done["commands"][0]["env"] == {
        "S": "secret://db", "PLAIN": "***"}
    held = client.start(
        "box", needs("db", "until test -e go; do sleep 0.05; done; " + SUM),
        lock_sandbox=True)["run_id"]
    queued = client.start("box", needs("db"), lock_sandbox=True)["run_id"]
    client.wait_state(held)
    runs = [done["run_id"], held, queued]
    plain = "in the clear " + secrets.token_hex(8)
    runs.append(client.start("box", {"shell": "sleep 1000",
                                     "env": {"S": plain}})["run_id"])
    wait_for(lambda: files_with(server.front_dir, plain), 30,
             "the search to find what is there")
    check_nowhere(server, client, engine, runs, value)
    for role in ("worker", "front"):
        server.kill(role)
    check_nowhere(server, client, engine, runs, value)
    client.run("box", "touch go")
    for run in runs[1:3]:
        final = client.wait_end(run)
        assert final["state"] == "completed", final
        assert stdout(final) == digest(value)
    check_nowhere(server, client, engine, runs, value)
    # A large run is kept on disk, and goes another way to the worker.
    final = client.run("box", needs("db", SUM + " # " + "x" * 50000))
    assert stdout(final) == digest(value)
    check_nowhere(server, client, engine, runs, value)


def test_what_a_run_is_told_of_a_secret_that_is_not_there(client):
    told = client.refused("box", needs("no"))
    assert told.startswith("secret_not_found: there is no secret no: ")
    assert client.call("list_sandboxes")["sandboxes"] == []
    told = client.refused("box", needs("a/b"))
    assert "S: secret://NAME: a secret's name is" in told
    assert client.call("list_runs")["runs"] == []
    # Deleted while the run waits: told by the run itself.
    client.ask("PUT", "/api/v1/secrets/t", b"once", want=201)
    held = client.start("box", "sleep 1000", lock_sandbox=True)["run_id"]
    queued = client.start("box", "echo first", needs("t"), "echo never",
                          lock_sandbox=True)["run_id"]
    client.wait_state(held)
    client.ask("DELETE", "/api/v1/secrets/t")
    client.ask("DELETE", "/api/v1/secrets/t", want=404)
    client.cancel(held)
    final = client.wait_end(queued)
    assert (final["state"], final["end_reason"]) == ("failed", "start_failed")
    assert "secret_not_found: there is no secret t: " in final["error"]
    assert [c["status"] for c in final["commands"]] == [
        "completed", "failed", "queued"], final


def test_what_can_be_a_secret(server, client):
    large = "v" * 65536
    for body, status in ((large, 201), ("a", 200), (large + "v", 400),
                         ("", 400), ("a\0b", 400)):
        client.ask("PUT", "/api/v1/secrets/x", body.encode(), status)
    client.ask("PUT", "/api/v1/secrets/" + "n" * 65, b"v", 404)
    raw = bytes(range(1, 256)).replace(b"\n", b"")
    client.request("PUT", "/api/v1/secrets/raw", raw)
    final = client.run("box", needs("raw"))
    assert stdout(final) == hashlib.sha256(raw).hexdigest() + "\n"
    listed = client.get("/api/v1/secrets")["secrets"]
    assert [(s["name"], s["bytes"], s["state"]) for s in listed] == [
        ("raw", len(raw), "good"), ("x", 1, "good")]
    assert listed[0]["last_used_at"] and listed[1]["last_used_at"] is None
    server.ctl("secret", "delete", "raw")
    assert "no such secret" in server.ctl.refuses("secret", "delete", "raw")
    assert "is no name" in server.ctl.refuses("secret", "set", "a/b", status=2)
    table = server.ctl("secret", "list")
    assert "NAME" in table and "x" in table.split()
    rows = server.ctl.json("audit", "list")["audit"]
    acts = [(r["what"], r["subject"], r["digest"]) for r in rows
            if r["what"].startswith("secret.")]
    assert ("secret.set", "x", None) in acts
    assert ("secret.delete", "raw", None) in acts


def test_a_tenants_secret_is_nobody_elses(server):
    a, b = (Tenant(server, name).client for name in ("a", "b"))
    watcher = server.client(token=server.ctl.token("-", "--role", "metrics"))
    server.ctl("secret", "set", "key", "--tenant", "a", value="of a")
    assert a.out("box", needs("key")) == digest("of a")
    told = b.refused("box", needs("key"))
    assert told.startswith("secret_not_found: ")
    assert b.get("/api/v1/secrets") == {"secrets": []}
    b.ask("DELETE", "/api/v1/secrets/key", want=404)
    b.ask("PUT", "/api/v1/secrets/key", b"of b", want=201)
    assert b.out("box", needs("key")) == digest("of b")
    assert a.out("box", needs("key")) == digest("of a")
    b.get("/api/v1/tenants/a/secrets", 403)
    b.ask("PUT", "/api/v1/tenants/a/secrets/key", b"x", want=403)
    watcher.get("/api/v1/secrets", 403)
    # What is deleted with its tenant is not the next one's of the same name.
    server.ctl("tenant", "delete", "a")
    server.ctl("tenant", "add", "a")
    listed = server.ctl.json("secret", "list", "--tenant", "a")
    assert listed == {"secrets": []}


def write_keys(path, *keys):
    path = pathlib.Path(path)
    path.unlink(missing_ok=True)
    path.write_text("".join(k + "\n" for k in keys))
    path.chmod(0o400)


def test_nothing_is_lost_with_the_key(server):
    path = os.path.join(server.data, "secrets.key")
    client = server.client()
    with open(path, encoding="ascii") as f:
        old = f.read().strip()
    assert len(old) == 64 and os.stat(path).st_mode & 0o777 == 0o400
    server.ctl("secret", "set", "s", value="kept")
    assert files_with(server.front_dir, old) == []

    def again(*keys, mode=0o400):
        assert server.stop() == 0
        write_keys(path, *keys)
        os.chmod(path, mode)
        server.start()

    def state():
        return client.get("/api/v1/secrets")["secrets"][0]["state"]

    new = secrets.token_hex(32)
    again(new)
    assert state() == "unavailable"
    told = client.refused("box", needs("s"))
    assert told.startswith("secret_unavailable: secret s cannot be unsealed")
    for keys, mode in (((old,), 0o444), (("no key",), 0o400)):
        again(*keys, mode=mode)
        assert state() == "unavailable"
        answer = client.ask("PUT", "/api/v1/secrets/t", b"v", 503)
        assert answer["error"]["code"] == "secret_unavailable"
    again("# the new one", new, old)
    server.wait_log("1 secrets are sealed anew")
    assert client.out("box", needs("s")) == digest("kept")
    again(new)
    assert state() == "good"
    assert client.out("box", needs("s")) == digest("kept")


@pytest.mark.own(WEBHOOKS="true", RUN_AS_COURIER="")
def test_an_old_key_may_go_only_when_it_seals_nothing(server):
    """What a row has that was changed, and a webhook's, counts like others."""
    path = os.path.join(server.data, "secrets.key")
    with open(path, encoding="ascii") as f:
        keys = [f.read().strip()]
    server.ctl("secret", "set", "s", value="kept")
    client = server.client()
    client.ask("POST", "/api/v1/webhooks", {"url": "https://example.com/"}, 201)

    def rotate(sql):
        assert server.stop() == 0
        server.change(sql)
        keys.insert(0, secrets.token_hex(32))
        write_keys(path, *keys)
        del server.log[:]
        server.start()
        return wait_for(lambda: [n for n in server.log if "SECRETS_KEY_FILE"
                                 in n and "older keys" in n], 30, "its word")

    said = rotate("SELECT 1")
    assert len(said) == 1 and "2 secrets are sealed anew" in said[0], said
    for i, change in enumerate(("UPDATE secret SET name = 'other'",
                                "UPDATE webhook SET uuid = randomblob(16)")):
        said = rotate(change)
        assert len(said) == 1 and f"{i + 1} secrets are not sealed" in said[0]
        assert "keep the older keys" in said[0]
        assert not any("are sealed anew" in n for n in server.log)
