"""Secrets by reference: they reach the command, and nothing else has them."""
import hashlib
import json
import os
import secrets
import signal
import sqlite3
import subprocess

from client import wait_for

SUM = 'printf %s "$S" | sha256sum | cut -c1-64'


def digest(value):
    return hashlib.sha256(value.encode()).hexdigest() + "\n"


def ctl(server, *words, value=None, status=0):
    done = subprocess.run(
        [os.path.join(server.build, "sandboxctl"), "--data-dir", server.data,
         *words], capture_output=True, text=True, input=value or "",
        timeout=60, check=False)
    assert done.returncode == status, (words, done.stdout, done.stderr)
    return done.stderr if status else done.stdout


def needs(name, shell=SUM):
    return {"shell": shell, "env": {"S": f"secret://{name}"}}


def out_of(final):
    return final["commands"][0]["stdout"]


def rest(client, method, path, body=None):
    status, _, data = client.request(method, path, body)
    return status, json.loads(data)


def files_with(top, value):
    """Under which names the value is on disk; those of gone files, too."""
    found = []
    for folder, _, names in os.walk(top):
        for name in names:
            path = os.path.join(folder, name)
            if os.path.islink(path) or not os.path.isfile(path):
                continue
            with open(path, "rb") as f:
                if value.encode() in f.read():
                    found.append(path)
    return found


def texts_of(server, client, engine, runs):
    """All that can be asked for, of all that was told."""
    yield "\n".join(server.log)
    yield server.get("/metrics")[2].decode()
    yield ctl(server, "--json", "audit", "list", "limit=500")
    yield ctl(server, "--json", "secret", "list")
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
    assert out_of(final) == "looked\n"


def test_a_secret_reaches_its_command_and_nothing_else(make_server, engine):
    server = make_server(env={"LOG_LEVEL": "debug"})
    client = server.client()
    value = secrets.token_hex(24)
    ctl(server, "secret", "set", "db", value=value + "\n")
    done = client.run("box", needs("db"), SUM,
                      default_env={"S": "secret://db", "PLAIN": "x"})
    assert [c["stdout"] for c in done["commands"]] == [digest(value)] * 2
    assert done["commands"][0]["env"] == {
        "S": "secret://db", "PLAIN": "***"}
    held = client.start(
        "box", needs("db", "until test -e go; do sleep 0.05; done; " + SUM),
        lock_sandbox=True)["run_id"]
    queued = client.start("box", needs("db"), lock_sandbox=True)["run_id"]
    wait_for(lambda: client.status(held)["state"] == "running", 60, "its turn")
    runs = [done["run_id"], held, queued]
    plain = "in the clear " + secrets.token_hex(8)
    runs.append(client.start("box", {"shell": "sleep 1000",
                                     "env": {"S": plain}})["run_id"])
    wait_for(lambda: files_with(server.front_dir, plain), 30,
             "the search to find what is there")
    check_nowhere(server, client, engine, runs, value)
    for role in ("worker", "front"):
        old = server.pids(role)
        for pid in old:
            os.kill(pid, signal.SIGKILL)
        wait_for(lambda o=old, r=role: len(server.pids(r)) == len(o) and
                 not set(o) & set(server.pids(r)), 30, "another " + role)
        wait_for(server.is_ready, 30, "readiness")
    client.close()
    check_nowhere(server, client, engine, runs, value)
    client.run("box", "touch go")
    for run in runs[1:3]:
        final = client.wait_end(run)
        assert final["state"] == "completed", final
        assert out_of(final) == digest(value)
    check_nowhere(server, client, engine, runs, value)
    # A large run is kept on disk, and goes another way to the worker.
    final = client.run("box", needs("db", SUM + " # " + "x" * 50000))
    assert out_of(final) == digest(value)
    check_nowhere(server, client, engine, runs, value)


def test_what_a_run_is_told_of_a_secret_that_is_not_there(make_server):
    server = make_server()
    client = server.client()
    told = client.fail("run_sandbox", identifier="box", commands=[needs("no")])
    assert told.startswith("secret_not_found: there is no secret no: ")
    assert client.call("list_sandboxes")["sandboxes"] == []
    told = client.fail("run_sandbox", identifier="box",
                       commands=[needs("a/b")])
    assert "S: secret://NAME: a secret's name is" in told
    assert client.call("list_runs")["runs"] == []
    # Deleted while the run waits: told by the run itself.
    assert rest(client, "PUT", "/api/v1/secrets/t", b"once")[0] == 201
    held = client.start("box", "sleep 1000", lock_sandbox=True)["run_id"]
    queued = client.start("box", "echo first", needs("t"), "echo never",
                          lock_sandbox=True)["run_id"]
    wait_for(lambda: client.status(held)["state"] == "running", 60, "its turn")
    assert rest(client, "DELETE", "/api/v1/secrets/t")[0] == 200
    assert rest(client, "DELETE", "/api/v1/secrets/t")[0] == 404
    client.call("control_run", run_id=held, action="cancel")
    final = client.wait_end(queued)
    assert (final["state"], final["end_reason"]) == ("failed", "start_failed")
    assert "secret_not_found: there is no secret t: " in final["error"]
    assert [c["status"] for c in final["commands"]] == [
        "completed", "failed", "queued"], final


def test_what_can_be_a_secret(make_server):
    server = make_server()
    client = server.client()
    large = "v" * 65536
    for body, status in ((large, 201), ("a", 200), (large + "v", 400),
                         ("", 400), ("a\0b", 400)):
        assert rest(client, "PUT", "/api/v1/secrets/x",
                    body.encode())[0] == status
    assert rest(client, "PUT", "/api/v1/secrets/" + "n" * 65, b"v")[0] == 404
    raw = bytes(range(1, 256)).replace(b"\n", b"")
    client.request("PUT", "/api/v1/secrets/raw", raw)
    final = client.run("box", needs("raw"))
    assert out_of(final) == hashlib.sha256(raw).hexdigest() + "\n"
    listed = rest(client, "GET", "/api/v1/secrets")[1]["secrets"]
    assert [(s["name"], s["bytes"], s["state"]) for s in listed] == [
        ("raw", len(raw), "good"), ("x", 1, "good")]
    assert listed[0]["last_used_at"] and listed[1]["last_used_at"] is None
    ctl(server, "secret", "delete", "raw")
    assert "no such secret" in ctl(server, "secret", "delete", "raw", status=1)
    assert "is no name" in ctl(server, "secret", "set", "a/b", status=2)
    table = ctl(server, "secret", "list")
    assert "NAME" in table and "x" in table.split()
    rows = json.loads(ctl(server, "--json", "audit", "list"))["audit"]
    acts = [(r["what"], r["subject"], r["digest"]) for r in rows
            if r["what"].startswith("secret.")]
    assert ("secret.set", "x", None) in acts
    assert ("secret.delete", "raw", None) in acts


def test_a_tenants_secret_is_nobody_elses(make_server):
    server = make_server()
    for name in ("a", "b"):
        ctl(server, "tenant", "add", name)
    a, b = (server.client(token=ctl(server, "token", "add", n).strip())
            for n in ("a", "b"))
    watcher = server.client(
        token=ctl(server, "token", "add", "-", "--role", "metrics").strip())
    ctl(server, "secret", "set", "key", "--tenant", "a", value="of a")
    assert out_of(a.run("box", needs("key"))) == digest("of a")
    told = b.fail("run_sandbox", identifier="box", commands=[needs("key")])
    assert told.startswith("secret_not_found: ")
    assert rest(b, "GET", "/api/v1/secrets")[1] == {"secrets": []}
    assert rest(b, "DELETE", "/api/v1/secrets/key")[0] == 404
    assert rest(b, "PUT", "/api/v1/secrets/key", b"of b")[0] == 201
    assert out_of(b.run("box", needs("key"))) == digest("of b")
    assert out_of(a.run("box", needs("key"))) == digest("of a")
    assert rest(b, "GET", "/api/v1/tenants/a/secrets")[0] == 403
    assert rest(b, "PUT", "/api/v1/tenants/a/secrets/key", b"x")[0] == 403
    assert rest(watcher, "GET", "/api/v1/secrets")[0] == 403
    # What is deleted with its tenant is not the next one's of the same name.
    ctl(server, "tenant", "delete", "a")
    ctl(server, "tenant", "add", "a")
    listed = json.loads(ctl(server, "--json", "secret", "list", "--tenant",
                            "a"))
    assert listed == {"secrets": []}


def write_keys(path, *keys):
    if os.path.exists(path):
        os.unlink(path)
    fd = os.open(path, os.O_WRONLY | os.O_CREAT, 0o400)
    os.write(fd, "".join(k + "\n" for k in keys).encode())
    os.close(fd)


def test_nothing_is_lost_with_the_key(make_server):
    server = make_server()
    path = os.path.join(server.data, "secrets.key")
    client = server.client()
    with open(path, encoding="ascii") as f:
        old = f.read().strip()
    assert len(old) == 64 and os.stat(path).st_mode & 0o777 == 0o400
    ctl(server, "secret", "set", "s", value="kept")
    assert files_with(server.front_dir, old) == []

    def again(*keys, mode=0o400):
        client.close()
        assert server.stop() == 0
        write_keys(path, *keys)
        os.chmod(path, mode)
        server.start()

    def state():
        return rest(client, "GET", "/api/v1/secrets")[1]["secrets"][0]["state"]

    new = secrets.token_hex(32)
    again(new)
    assert state() == "unavailable"
    told = client.fail("run_sandbox", identifier="box", commands=[needs("s")])
    assert told.startswith("secret_unavailable: secret s cannot be unsealed")
    for keys, mode in (((old,), 0o444), (("no key",), 0o400)):
        again(*keys, mode=mode)
        assert state() == "unavailable"
        status, answer = rest(client, "PUT", "/api/v1/secrets/t", b"v")
        assert status == 503
        assert answer["error"]["code"] == "secret_unavailable"
    again("# the new one", new, old)
    wait_for(lambda: any("1 secrets are sealed anew" in n
                         for n in server.log), 30, "it to be on disk")
    assert out_of(client.run("box", needs("s"))) == digest("kept")
    again(new)
    assert state() == "good"
    assert out_of(client.run("box", needs("s"))) == digest("kept")


def test_an_old_key_may_go_only_when_it_seals_nothing(make_server):
    """What a row has that was changed, and a webhook's, counts like others."""
    server = make_server(env={"WEBHOOKS": "true", "RUN_AS_COURIER": ""})
    path = os.path.join(server.data, "secrets.key")
    with open(path, encoding="ascii") as f:
        keys = [f.read().strip()]
    ctl(server, "secret", "set", "s", value="kept")
    client = server.client()
    status, hook = rest(client, "POST", "/api/v1/webhooks",
                        b'{"url": "https://example.com/"}')
    assert status == 201, hook
    client.close()

    def rotate(sql):
        assert server.stop() == 0
        db = sqlite3.connect(server.database)
        with db:
            db.execute(sql)
        db.close()
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
