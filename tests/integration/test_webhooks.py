"""Webhooks, by the real courier, against receivers of the test's own."""
import contextlib
import http.client
import json
import os
import re
import signal
import subprocess

import pytest

from certificates import Authority
from client import wait_for
from receiver import Receiver, is_signed

ON = {"WEBHOOKS": "true", "WEBHOOK_ALLOW": "127.0.0.1",
      "WEBHOOK_ALLOW_HTTP": "true", "RUN_AS_COURIER": ""}


@pytest.fixture
def receiver():
    made = []

    def make(**kwargs):
        made.append(Receiver(**kwargs))
        return made[-1]

    yield make
    for r in made:
        r.close()


def rest(client, method, path, body=None, headers=None):
    status, _, data = client.request(
        method, "/api/v1/webhooks" + path,
        None if body is None else json.dumps(body), headers)
    return status, json.loads(data) if data else None


def add(client, url, **settings):
    status, made = rest(client, "POST", "", {"url": url, **settings})
    assert status == 201, made
    return made


def listed(client, hook):
    return next(h for h in rest(client, "GET", "")[1]["webhooks"]
                if h["id"] == hook["id"])


def deliveries(client, hook):
    return listed(client, hook)["deliveries"]


def events(client, kind):
    """What each event of that kind tells, once there is one."""
    def look():
        status, _, data = client.request(
            "GET", f"/api/v1/events?follow=false&limit=128&kind={kind}")
        assert status == 200, data
        return [e["data"] for e in json.loads(data)["events"]]
    return wait_for(look, 60, kind)


def metric(client, name):
    status, _, data = client.request("GET", "/metrics")
    assert status == 200
    return next(float(line.split()[-1]) for line in data.decode().splitlines()
                if line.startswith(name + " "))


def numbers(got):
    """Which of the runs' commands they are about."""
    return [g.body["data"]["identifier"] for g in got]


def wait_taken(receiver, n):
    return wait_for(lambda: len(receiver.taken()) >= n and receiver.taken(),
                    60, f"{n} deliveries")


def ctl(server, *words, status=0):
    done = subprocess.run(
        [os.path.join(server.build, "sandboxctl"), "--data-dir", server.data,
         *words], capture_output=True, text=True, timeout=60, check=False)
    assert done.returncode == status, (words, done.stdout, done.stderr)
    return done.stderr if status else done.stdout


def test_a_runs_end_is_told_and_signed(make_server, receiver):
    server, r = make_server(env=ON), receiver()
    client = server.client()
    hook = add(client, r.url)
    assert hook["events"] == ["run.ended", "sandbox.removed", "sandbox.lost"]
    assert hook["secret"].startswith("whsec_")
    final = client.run("box", "true")
    got = wait_taken(r, 1)[0]
    assert got.path == "/hook"
    assert got.headers["content-type"] == "application/json"
    assert is_signed(hook["secret"], got.headers, got.raw)
    assert not is_signed(hook["secret"], got.headers, got.raw + b" ")
    assert got.body["type"] == "run.ended"
    assert got.body["data"]["run_id"] == final["run_id"]
    assert got.body["data"]["data"]["end_reason"] == "exit"
    client.call("delete_sandbox", identifier="box")
    assert wait_taken(r, 2)[1].body["type"] == "sandbox.removed"
    wait_for(lambda: deliveries(client, hook)["taken"] == 2, 60, "the count")
    one = rest(client, "GET", "/" + hook["id"])[1]
    assert "secret" not in one and one["url"] == r.url
    assert hook["secret"] not in "\n".join(server.log)
    with open(server.database, "rb") as f:
        assert hook["secret"][6:].encode() not in f.read()


def test_https_is_verified_by_the_authorities_that_are_set(
        make_server, receiver, tmp_path):
    tmp_path.chmod(0o755)
    ours = Authority(str(tmp_path / "ours"))
    theirs = Authority(str(tmp_path / "theirs"), "another authority")
    for a in (ours, theirs):
        os.chmod(a.dir, 0o755)
        os.chmod(a.certificate, 0o644)
    good, bad = (receiver(tls=a.issue("server")) for a in (ours, theirs))
    server = make_server(env={**ON, "COURIER_CA_FILE": ours.certificate,
                              "WEBHOOK_ALLOW_HTTP": "false"})
    client = server.client()
    hook, wrong = add(client, good.url), add(client, bad.url)
    client.run("box", "true")
    wait_taken(good, 1)
    failed = wait_for(lambda: deliveries(client, wrong)["last_error"], 60,
                      "a failure")
    assert "certificate" in failed and bad.got == []
    assert deliveries(client, hook)["last_error"] is None
    status, said = rest(client, "POST", "", {"url": "http://a.example/"})
    assert status == 400 and "https" in json.dumps(said)


def test_private_networks_are_not_reached_and_nothing_is_said_of_them(
        make_server, receiver):
    """A name that is nobody's, and one that leads to us, look the same."""
    r = receiver()
    server = make_server(env={**ON, "WEBHOOK_ALLOW": "192.0.2.1"})
    client = server.client()
    said = set()
    for host in ("127.0.0.1", "localhost", "[::1]", "[::ffff:127.0.0.1]",
                 "2130706433", "0x7f.1", "0.0.0.0", "10.255.255.1",
                 "169.254.169.254", "no-such-name.invalid"):
        hook = add(client, f"http://{host}:{r.port}/")
        status, answer = rest(client, "POST", f"/{hook['id']}/test")
        assert (status, answer["taken"], answer["status"]) == \
            (200, False, None), host
        said.add(answer["error"])
        assert rest(client, "DELETE", "/" + hook["id"])[0] == 200
    assert len(said) == 1 and r.got == []


def test_redirects_are_not_followed(make_server, receiver):
    other, r = receiver(), receiver()
    r.answer = lambda got: (307, {"Location": other.url})
    server = make_server(env=ON)
    client = server.client()
    hook = add(client, r.url)
    assert rest(client, "POST", f"/{hook['id']}/test")[1] == \
        {"taken": False, "status": 307, "error": None}
    assert len(r.got) == 1 and other.got == []


def test_who_does_not_answer_delays_nobody_else(make_server, receiver):
    hanging, well = receiver(), receiver()
    hanging.answer = lambda got: None
    server = make_server(env=ON)
    client = server.client()
    add(client, hanging.url)
    add(client, well.url)
    for i in range(5):
        client.run(f"box-{i}", "true")
    assert numbers(wait_taken(well, 5)) == [f"box-{i}" for i in range(5)]
    assert len(hanging.got) <= 2


def test_what_is_not_taken_is_tried_again_in_order(make_server, receiver):
    r = receiver()
    refused = []

    def answer(got):
        if refused.count(got.id) < 2:
            refused.append(got.id)
            return 503, {"Retry-After": "1"} if len(refused) == 1 else {}
        return 200, {}

    r.answer = answer
    server = make_server(env=ON)
    client = server.client()
    hook = add(client, r.url)
    for i in range(3):
        client.run(f"box-{i}", "true")
    taken = wait_taken(r, 3)
    assert numbers(taken) == ["box-0", "box-1", "box-2"]
    assert [g.id for g in r.got] == [i for g in taken for i in [g.id] * 3]
    # Each try has its own time, under one id.
    for got in r.got:
        assert is_signed(hook["secret"], got.headers, got.raw)
    wait_for(lambda: deliveries(client, hook)["attempts"] == 0, 60, "peace")


@pytest.mark.parametrize("role", ["front", "courier"])
def test_none_is_forgotten_when_a_process_is_killed(
        make_server, receiver, role):
    r = receiver()
    server = make_server(env=ON)
    client = server.client()
    hook = add(client, r.url)
    held = []

    def answer(got):
        held.append(got.id)
        return None if len(held) == 1 else (200, {})

    r.answer = answer
    runs = [client.run(f"box-{i}", "true")["run_id"] for i in range(4)]
    wait_for(lambda: r.got, 60, "the first")
    old = server.pids(role)
    os.kill(old[0], signal.SIGKILL)
    wait_for(lambda: server.pids(role) and server.pids(role) != old, 60,
             "another")
    taken = wait_taken(r, 4)
    # In order, each at least once, and a second time under the same id.
    ids = list(dict.fromkeys(g.id for g in taken))
    told = {g.id: g.body["data"]["run_id"] for g in taken}
    assert [told[i] for i in ids] == runs
    assert r.got[0].id == ids[0]
    client.close()
    wait_for(lambda: server.get("/readyz")[0] == 200, 60, "readiness")
    assert rest(server.client(), "GET", "/" + hook["id"])[0] == 200


def test_what_nobody_takes_is_lost_in_the_end(make_server, receiver):
    r = receiver()
    r.answer = lambda got: (500, {})
    server = make_server(env={**ON, "WEBHOOK_KEEP_SECONDS": "2"})
    client = server.client()
    hook = add(client, r.url)
    client.run("box-0", "true")
    wait_for(lambda: deliveries(client, hook)["lost"] == 1, 60, "the loss")
    state = deliveries(client, hook)
    assert state["last_error"] == "it answered with status 500"
    assert state["failing_since"] is not None
    (told,) = events(client, "webhook.lost")
    assert told == {"webhook": hook["id"], "lost": 1,
                    "error": "it answered with status 500"}
    r.answer = lambda got: (200, {})
    client.run("box-1", "true")
    assert numbers(wait_taken(r, 1)) == ["box-1"]
    value = metric(client, 'sandboxd_webhook_deliveries_total{result="lost"}')
    assert value == 1
    wait_for(lambda: deliveries(client, hook)["failing_since"] is None, 60,
             "peace")
    assert metric(client, "sandboxd_webhook_queue") == 0
    assert metric(
        client, 'sandboxd_webhook_deliveries_total{result="taken"}') == 1
    assert metric(
        client, 'sandboxd_webhook_deliveries_total{result="failed"}') > 0


def test_a_receiver_that_is_gone_disables_its_webhook(make_server, receiver):
    r = receiver()
    r.answer = lambda got: (410, {})
    server = make_server(env=ON)
    client = server.client()
    hook = add(client, r.url)
    client.run("box-0", "true")
    one = wait_for(lambda: not listed(client, hook)["enabled"] and
                   listed(client, hook), 60, "the end")
    assert one["disabled_because"] == "it answered with status 410"
    (told,) = events(client, "webhook.disabled")
    assert told == {"webhook": hook["id"], "error": one["disabled_because"]}
    client.run("box-1", "true")
    r.answer = lambda got: (200, {})
    status, one = rest(client, "PATCH", "/" + hook["id"], {"enabled": True})
    assert status == 200 and one["disabled_because"] is None
    client.run("box-2", "true")
    assert numbers(wait_taken(r, 1)) == ["box-2"]  # not what was meanwhile


def test_settings_are_checked_and_changed_on_condition(make_server, receiver):
    r = receiver()
    server = make_server(env=ON)
    client = server.client()
    for body, says in (({}, "url is missing"), ({"url": 7}, "want a text"),
                       ({"url": "ftp://a"}, "https://"),
                       ({"url": "https://u:p@a.example/"}, "names a user"),
                       ({"url": "https://a.example:25/"}, "port"),
                       ({"url": r.url, "events": []}, "list of kinds"),
                       ({"url": r.url, "events": ["run.sneezed"]},
                        "run.sneezed"),
                       ({"url": r.url, "events": ["server.started"]},
                        "server.started"),
                       ({"url": r.url, "evens": []}, "evens"),
                       ({"url": r.url, "enabled": "yes"}, "true or false")):
        status, said = rest(client, "POST", "", body)
        assert status == 400 and says in json.dumps(said), (body, said)
    made = [add(client, r.url, events=["run.started"]) for _ in range(10)]
    status, said = rest(client, "POST", "", {"url": r.url})
    assert status == 429 and "webhooks" in json.dumps(said)
    path = "/api/v1/webhooks/" + made[0]["id"]
    tag = client.request("GET", path)[1]["ETag"]
    change = json.dumps({"events": ["run.ended"], "new_secret": True})
    status, _, data = client.request("PATCH", path, change, {"If-Match": tag})
    other = json.loads(data)
    assert status == 200 and other["secret"] != made[0]["secret"]
    assert client.request("PATCH", path, change, {"If-Match": tag})[0] == 412
    for h in made[1:]:
        assert rest(client, "DELETE", "/" + h["id"])[0] == 200
    client.run("box", "true")
    got = wait_taken(r, 1)[0]
    assert is_signed(other["secret"], got.headers, got.raw)
    assert not is_signed(made[0]["secret"], got.headers, got.raw)
    assert rest(client, "DELETE", "/" + made[0]["id"])[0] == 200
    assert rest(client, "GET", "/" + made[0]["id"])[0] == 404


def at_once(server, asks):
    """Statuses of requests (method, path, body, headers), each on a connection
    of its own and sent before any of them is read."""
    conns = []
    for method, path, body, headers in asks:
        conn = http.client.HTTPConnection("127.0.0.1", server.port, timeout=60)
        conn.connect()
        conn.putrequest(method, "/api/v1/webhooks" + path)
        data = json.dumps(body).encode()
        for name, value in {**headers, "Content-Length": len(data)}.items():
            conn.putheader(name, value)
        conn.endheaders()
        conns.append((conn, data))
    for conn, data in conns:
        conn.send(data)
    statuses = []
    for conn, _ in conns:
        with contextlib.closing(conn):
            statuses.append(conn.getresponse().status)
    return statuses


def test_of_many_that_are_made_at_once_no_more_than_the_quota_are(
        make_server, receiver):
    r = receiver()
    server = make_server(env=ON)
    client = server.client()
    statuses = at_once(server, [("POST", "", {"url": r.url}, {})] * 100)
    assert sorted(statuses) == [201] * 10 + [429] * 90
    assert len(rest(client, "GET", "")[1]["webhooks"]) == 10


def test_of_changes_on_one_condition_one_wins(make_server, receiver):
    r = receiver()
    server = make_server(env=ON)
    client = server.client()
    path = "/" + add(client, r.url)["id"]
    tag = client.request("GET", "/api/v1/webhooks" + path)[1]["ETag"]
    statuses = at_once(server, [
        ("PATCH", path, {"events": [kind]}, {"If-Match": tag})
        for kind in ("run.started", "run.ended", "sandbox.lost",
                     "sandbox.removed") * 3])
    assert sorted(statuses) == [200] + [412] * 11


def test_the_document_names_the_kinds_that_there_are(server):
    top = os.path.join(os.path.dirname(__file__), "..", "..")
    with open(os.path.join(top, "schema", "events.txt"),
              encoding="utf-8") as f:
        kinds = [line.split(" -- ")[0] for line in f
                 if re.match(r"(run|sandbox|quota|webhook)\.\w+ -- ", line)]
    _, _, data = server.client().request("GET", "/api/v1/openapi.json")
    schemas = json.loads(data)["components"]["schemas"]
    assert schemas["WebhookEvents"]["items"]["enum"] == kinds
    assert len(kinds) > 10


def test_secrets_are_sealed_anew_with_another_key(
        make_server, receiver, tmp_path):
    r = receiver()
    path = tmp_path / "keys"
    path.write_text("11" * 32 + "\n")
    path.chmod(0o600)
    server = make_server(env={**ON, "SECRETS_KEY_FILE": str(path)})
    client = server.client()
    hook = add(client, r.url)
    client.close()
    for keys in ("22" * 32 + "\n" + "11" * 32 + "\n", "22" * 32 + "\n"):
        assert server.stop() == 0
        path.write_text(keys)
        server.start()
    client = server.client()
    client.run("box", "true")
    got = wait_taken(r, 1)[0]
    assert is_signed(hook["secret"], got.headers, got.raw)


def test_a_server_without_them_says_so(server, client):
    status, said = rest(client, "GET", "")
    assert status == 404 and "WEBHOOKS=true" in json.dumps(said)
    assert server.pids("courier") == []


def tenant(server, name, *settings):
    ctl(server, "tenant", "add", name, *settings)
    made = json.loads(ctl(server, "--json", "token", "add", name))
    return server.client(token=made["token"])


def test_the_bound_of_a_host_is_each_tenants_own(make_server, receiver):
    hanging, well = receiver(), receiver()
    hanging.answer = lambda got: None
    server = make_server(env=ON)
    theirs, mine = tenant(server, "acme"), tenant(server, "beta")
    hooks = [add(theirs, hanging.url) for _ in range(5)]
    add(mine, well.url)  # of the same host
    theirs.run("box", "true")
    wait_for(lambda: len(hanging.got) == 4, 60, "as many as may be")
    mine.run("box", "true")
    wait_taken(well, 1)
    # That none of theirs has been given up yet is why it counts.
    assert [deliveries(theirs, h)["attempts"] for h in hooks] == [0] * 5


def test_a_test_has_a_place_as_any_other_request(make_server, receiver):
    hanging = receiver()
    hanging.answer = lambda got: None
    server = make_server(env=ON)
    client = server.client()
    hooks = [add(client, hanging.url) for _ in range(5)]
    client.run("box", "true")
    wait_for(lambda: len(hanging.got) == 4, 60, "as many as may be")
    status, said = rest(client, "POST", f"/{hooks[0]['id']}/test")
    assert status == 503 and "under way" in json.dumps(said)
    # What is deleted is under way still.
    for hook in hooks:
        assert rest(client, "DELETE", "/" + hook["id"])[0] == 200
    new = add(client, hanging.url)
    assert rest(client, "POST", f"/{new['id']}/test")[0] == 503
    other = add(client, hanging.url.replace("127.0.0.1", "127.0.0.2"))
    assert rest(client, "POST", f"/{other['id']}/test")[1]["status"] is None
    assert len(hanging.got) == 4


def test_what_is_cut_is_an_attempt(make_server, receiver):
    """Else what ends the courier is sent again at once, for ever."""
    r = receiver()
    r.answer = lambda got: None if len(r.got) == 1 else (204, {})
    server = make_server(env=ON)
    client = server.client()
    hook = add(client, r.url)
    client.run("box", "true")
    wait_for(lambda: r.got, 60, "the first")
    os.kill(server.pids("courier")[0], signal.SIGKILL)
    wait_taken(r, 1)
    wait_for(lambda: deliveries(client, hook)["taken"] == 1, 60, "the count")
    assert metric(
        client, 'sandboxd_webhook_deliveries_total{result="failed"}') == 1


def test_many_webhooks_do_not_keep_the_loop(make_server, receiver):
    """The fixture looks at the turns of the loop in the server's log."""
    well, hanging = receiver(), receiver()
    hanging.answer = lambda got: None
    server = make_server(env=ON)
    many = tenant(server, "acme", "quota.webhooks=1000")
    for i in range(900):
        add(many, hanging.url)
    mine = tenant(server, "beta")
    add(mine, well.url)
    many.run("box", "true")
    mine.run("box", "true")
    wait_taken(well, 1)
    assert len(hanging.got) <= 4


def test_they_are_their_tenants_own(make_server, receiver):
    a, b = receiver(), receiver()
    server = make_server(env=ON)
    mine, theirs = tenant(server, "acme"), tenant(server, "beta")
    hook = json.loads(ctl(server, "--json", "webhook", "add", a.url,
                          "--tenant", "acme"))
    add(theirs, b.url)
    for method, more, body in (("GET", "", None), ("DELETE", "", None),
                               ("PATCH", "", {"enabled": False}),
                               ("POST", "/test", None)):
        assert rest(theirs, method, f"/{hook['id']}{more}", body)[0] == 404
    mine.run("box-a", "true")
    theirs.run("box-b", "true")
    assert numbers(wait_taken(a, 1)) == ["box-a"]
    assert numbers(wait_taken(b, 1)) == ["box-b"]
    assert is_signed(hook["secret"], a.got[0].headers, a.got[0].raw)
    assert "box-a" not in b.got[0].raw.decode()
    words = ("--tenant", "acme")
    assert a.url in ctl(server, "webhook", "list", *words)
    assert "run.ended" in ctl(server, "webhook", "show", hook["id"], *words)
    ctl(server, "webhook", "test", hook["id"], *words)
    assert a.got[-1].body["type"] == "webhook.test"
    ctl(server, "webhook", "set", hook["id"], "enabled=false", *words)
    a.answer = lambda got: (500, {})
    assert "did not take it" in ctl(
        server, "webhook", "test", hook["id"], *words, status=1)
    ctl(server, "webhook", "delete", hook["id"], *words)
    assert a.url not in ctl(server, "webhook", "list", *words)
    acts = ctl(server, "audit", "list", "limit=50")
    for what in ("webhook.add", "webhook.set", "webhook.delete"):
        assert what in acts
