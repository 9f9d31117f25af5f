"""Webhooks, by the real courier, against receivers of the test's own."""
import contextlib
import json
import os
import re
import signal
import socket
import threading

import pytest

from certificates import Authority
from client import wait_for
from receiver import is_signed
from tenants import Tenant

ON = {"WEBHOOKS": "true", "WEBHOOK_ALLOW": "127.0.0.1",
      "WEBHOOK_ALLOW_HTTP": "true", "RUN_AS_COURIER": ""}


pytestmark = pytest.mark.own(**ON)


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
        found = client.get(f"/api/v1/events?follow=false&limit=128&kind={kind}")
        return [e["data"] for e in found["events"]]
    return wait_for(look, 60, kind)


def numbers(got):
    """Which of the runs' commands they are about."""
    return [g.body["data"]["identifier"] for g in got]


def wait_taken(receiver, n):
    return wait_for(lambda: len(receiver.taken()) >= n and receiver.taken(),
                    60, f"{n} deliveries")


def test_a_runs_end_is_told_and_signed(server, client, receiver):
    hook = add(client, receiver.url)
    assert hook["events"] == ["run.ended", "sandbox.removed", "sandbox.lost"]
    assert hook["secret"].startswith("whsec_")
    final = client.run("box", "true")
    got = wait_taken(receiver, 1)[0]
    assert got.path == "/hook"
    assert got.headers["content-type"] == "application/json"
    assert is_signed(hook["secret"], got.headers, got.raw)
    assert not is_signed(hook["secret"], got.headers, got.raw + b" ")
    assert got.body["type"] == "run.ended"
    assert got.body["data"]["run_id"] == final["run_id"]
    assert got.body["data"]["data"]["end_reason"] == "exit"
    client.delete("box")
    assert wait_taken(receiver, 2)[1].body["type"] == "sandbox.removed"
    wait_for(lambda: deliveries(client, hook)["taken"] == 2, 60, "the count")
    one = rest(client, "GET", "/" + hook["id"])[1]
    assert "secret" not in one and one["url"] == receiver.url
    assert hook["secret"] not in "\n".join(server.log)
    with open(server.database, "rb") as f:
        assert hook["secret"][6:].encode() not in f.read()


def test_https_is_verified_by_the_authorities_that_are_set(
        make_server, make_receiver, tmp_path):
    tmp_path.chmod(0o755)
    ours = Authority(str(tmp_path / "ours"))
    theirs = Authority(str(tmp_path / "theirs"), "another authority")
    for a in (ours, theirs):
        os.chmod(a.dir, 0o755)
        os.chmod(a.certificate, 0o644)
    good, bad = (make_receiver(tls=a.issue("server")) for a in (ours, theirs))
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


@pytest.mark.own(WEBHOOK_ALLOW="192.0.2.1")
def test_private_networks_are_not_reached_and_nothing_is_said_of_them(
        client, receiver):
    """A name that is nobody's, and one that leads to us, look the same."""
    said = set()
    for host in ("127.0.0.1", "localhost", "[::1]", "[::ffff:127.0.0.1]",
                 "2130706433", "0x7f.1", "0.0.0.0", "10.255.255.1",
                 "169.254.169.254", "no-such-name.invalid"):
        hook = add(client, f"http://{host}:{receiver.port}/")
        status, answer = rest(client, "POST", f"/{hook['id']}/test")
        assert (status, answer["taken"], answer["status"]) == \
            (200, False, None), host
        said.add(answer["error"])
        assert rest(client, "DELETE", "/" + hook["id"])[0] == 200
    assert len(said) == 1 and receiver.got == []


def test_redirects_are_not_followed(client, make_receiver):
    other, r = make_receiver(), make_receiver()
    r.answer = lambda got: (307, {"Location": other.url})
    hook = add(client, r.url)
    assert rest(client, "POST", f"/{hook['id']}/test")[1] == \
        {"taken": False, "status": 307, "error": None}
    assert len(r.got) == 1 and other.got == []


def test_who_does_not_answer_delays_nobody_else(client, make_receiver):
    hanging, well = make_receiver(), make_receiver()
    hanging.answer = lambda got: None
    add(client, hanging.url)
    add(client, well.url)
    for i in range(5):
        client.run(f"box-{i}", "true")
    assert numbers(wait_taken(well, 5)) == [f"box-{i}" for i in range(5)]
    assert len(hanging.got) <= 2


def test_what_is_not_taken_is_tried_again_in_order(client, receiver):
    refused = []

    def answer(got):
        if refused.count(got.id) < 2:
            refused.append(got.id)
            return 503, {"Retry-After": "1"} if len(refused) == 1 else {}
        return 200, {}

    receiver.answer = answer
    hook = add(client, receiver.url)
    for i in range(3):
        client.run(f"box-{i}", "true")
    taken = wait_taken(receiver, 3)
    assert numbers(taken) == ["box-0", "box-1", "box-2"]
    assert [g.id for g in receiver.got] == [i for g in taken
                                            for i in [g.id] * 3]
    # Each try has its own time, under one id.
    for got in receiver.got:
        assert is_signed(hook["secret"], got.headers, got.raw)
    wait_for(lambda: deliveries(client, hook)["attempts"] == 0, 60, "peace")


@pytest.mark.parametrize("role", ["front", "courier"])
def test_none_is_forgotten_when_a_process_is_killed(server, client, receiver,
                                                    role):
    hook = add(client, receiver.url)
    held = []

    def answer(got):
        held.append(got.id)
        return None if len(held) == 1 else (200, {})

    receiver.answer = answer
    runs = [client.run(f"box-{i}", "true")["run_id"] for i in range(4)]
    wait_for(lambda: receiver.got, 60, "the first")
    server.kill(role)
    taken = wait_taken(receiver, 4)
    # In order, each at least once, and a second time under the same id.
    ids = list(dict.fromkeys(g.id for g in taken))
    told = {g.id: g.body["data"]["run_id"] for g in taken}
    assert [told[i] for i in ids] == runs
    assert receiver.got[0].id == ids[0]
    assert rest(client, "GET", "/" + hook["id"])[0] == 200


@pytest.mark.own(WEBHOOK_KEEP_SECONDS="2")
def test_what_nobody_takes_is_lost_in_the_end(server, client, receiver):
    receiver.answer = lambda got: (500, {})
    hook = add(client, receiver.url)
    client.run("box-0", "true")
    wait_for(lambda: deliveries(client, hook)["lost"] == 1, 60, "the loss")
    state = deliveries(client, hook)
    assert state["last_error"] == "it answered with status 500"
    assert state["failing_since"] is not None
    (told,) = events(client, "webhook.lost")
    assert told == {"webhook": hook["id"], "lost": 1,
                    "error": "it answered with status 500"}
    receiver.answer = lambda got: (200, {})
    client.run("box-1", "true")
    assert numbers(wait_taken(receiver, 1)) == ["box-1"]
    value = server.metric('sandboxd_webhook_deliveries_total{result="lost"}')
    assert value == 1
    wait_for(lambda: deliveries(client, hook)["failing_since"] is None, 60,
             "peace")
    assert server.metric("sandboxd_webhook_queue") == 0
    assert server.metric(
        'sandboxd_webhook_deliveries_total{result="taken"}') == 1
    assert server.metric(
        'sandboxd_webhook_deliveries_total{result="failed"}') > 0


def test_a_receiver_that_is_gone_disables_its_webhook(client, receiver):
    receiver.answer = lambda got: (410, {})
    hook = add(client, receiver.url)
    client.run("box-0", "true")
    one = wait_for(lambda: not listed(client, hook)["enabled"] and
                   listed(client, hook), 60, "the end")
    assert one["disabled_because"] == "it answered with status 410"
    (told,) = events(client, "webhook.disabled")
    assert told == {"webhook": hook["id"], "error": one["disabled_because"]}
    client.run("box-1", "true")
    receiver.answer = lambda got: (200, {})
    status, one = rest(client, "PATCH", "/" + hook["id"], {"enabled": True})
    assert status == 200 and one["disabled_because"] is None
    client.run("box-2", "true")
    # What was meanwhile is not sent.
    assert numbers(wait_taken(receiver, 1)) == ["box-2"]


def test_settings_are_checked_and_changed_on_condition(server, client,
                                                       receiver):
    for body, says in (
            ({}, "url is missing"), ({"url": 7}, "want a text"),
            ({"url": "ftp://a"}, "https://"),
            ({"url": "https://u:p@a.example/"}, "names a user"),
            ({"url": "https://a.example:25/"}, "port"),
            ({"url": receiver.url, "events": []}, "list of kinds"),
            ({"url": receiver.url, "events": ["run.sneezed"]}, "run.sneezed"),
            ({"url": receiver.url, "events": ["server.started"]},
             "server.started"), ({"url": receiver.url, "evens": []}, "evens"),
            ({"url": receiver.url, "enabled": "yes"}, "true or false")):
        status, said = rest(client, "POST", "", body)
        assert status == 400 and says in json.dumps(said), (body, said)
    made = [add(client, receiver.url, events=["run.started"])
            for _ in range(10)]
    status, said = rest(client, "POST", "", {"url": receiver.url})
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
    got = wait_taken(receiver, 1)[0]
    assert is_signed(other["secret"], got.headers, got.raw)
    assert not is_signed(made[0]["secret"], got.headers, got.raw)
    assert rest(client, "DELETE", "/" + made[0]["id"])[0] == 200
    assert rest(client, "GET", "/" + made[0]["id"])[0] == 404


def all_at_once(server, asks):
    """Statuses of requests (method, path, body, headers), each on a connection
    of its own and sent but for their bodies before any of those is."""
    conns = []
    for method, path, body, headers in asks:
        data = json.dumps(body).encode()
        conns.append((server.send(f"{method} /api/v1/webhooks{path}", *headers,
                                  f"Content-Length: {len(data)}"), data))
    for conn, data in conns:
        conn.sendall(data)
    statuses = []
    for conn, _ in conns:
        with conn:
            statuses.append(int(conn.recv(4096).split()[1]))
    return statuses


def test_of_many_that_are_made_at_once_no_more_than_the_quota_are(
        server, client, receiver):
    statuses = all_at_once(server,
                           [("POST", "", {"url": receiver.url}, ())] * 100)
    assert sorted(statuses) == [201] * 10 + [429] * 90
    assert len(rest(client, "GET", "")[1]["webhooks"]) == 10


def test_of_changes_on_one_condition_one_wins(server, client, receiver):
    path = "/" + add(client, receiver.url)["id"]
    tag = client.request("GET", "/api/v1/webhooks" + path)[1]["ETag"]
    statuses = all_at_once(server, [
        ("PATCH", path, {"events": [kind]}, [f"If-Match: {tag}"]) for kind in
        ("run.started", "run.ended", "sandbox.lost", "sandbox.removed") * 3])
    assert sorted(statuses) == [200] + [412] * 11


def test_the_document_names_the_kinds_that_there_are(server):
    top = os.path.join(os.path.dirname(__file__), "..", "..")
    with open(os.path.join(top, "schema", "events.txt"),
              encoding="utf-8") as f:
        kinds = [line.split(" -- ")[0] for line in f
                 if re.match(r"(run|sandbox|quota|webhook)\.\w+ -- ", line)]
    schemas = server.get_json("/api/v1/openapi.json")["components"]["schemas"]
    assert schemas["WebhookEvents"]["items"]["enum"] == kinds
    assert len(kinds) > 10


def test_secrets_are_sealed_anew_with_another_key(
        make_server, receiver, tmp_path):
    path = tmp_path / "keys"
    path.write_text("11" * 32 + "\n")
    path.chmod(0o600)
    server = make_server(env={**ON, "SECRETS_KEY_FILE": path})
    client = server.client()
    hook = add(client, receiver.url)
    for keys in ("22" * 32 + "\n" + "11" * 32 + "\n", "22" * 32 + "\n"):
        assert server.stop() == 0
        path.write_text(keys)
        server.start()
    client.run("box", "true")
    got = wait_taken(receiver, 1)[0]
    assert is_signed(hook["secret"], got.headers, got.raw)


@pytest.mark.own(WEBHOOKS="false")
def test_a_server_without_them_says_so(server, client):
    status, said = rest(client, "GET", "")
    assert status == 404 and "WEBHOOKS=true" in json.dumps(said)
    assert server.pids("courier") == []


def test_the_bound_of_a_host_is_each_tenants_own(server, make_receiver):
    hanging, well = make_receiver(), make_receiver()
    hanging.answer = lambda got: None
    theirs, mine = Tenant(server, "acme").client, Tenant(server, "beta").client
    hooks = [add(theirs, hanging.url) for _ in range(5)]
    add(mine, well.url)  # of the same host
    theirs.run("box", "true")
    wait_for(lambda: len(hanging.got) == 4, 60, "as many as may be")
    mine.run("box", "true")
    wait_taken(well, 1)
    # That none of theirs has been given up yet is why it counts.
    assert [deliveries(theirs, h)["attempts"] for h in hooks] == [0] * 5


def test_a_test_has_a_place_as_any_other_request(client, make_receiver):
    hanging = make_receiver()
    hanging.answer = lambda got: None
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


def test_what_is_cut_is_an_attempt(server, client, receiver):
    """Else what ends the courier is sent again at once, for ever."""
    receiver.answer = lambda got: None if len(receiver.got) == 1 else (204, {})
    hook = add(client, receiver.url)
    client.run("box", "true")
    wait_for(lambda: receiver.got, 60, "the first")
    os.kill(server.pids("courier")[0], signal.SIGKILL)
    wait_taken(receiver, 1)
    wait_for(lambda: deliveries(client, hook)["taken"] == 1, 60, "the count")
    assert server.metric(
        'sandboxd_webhook_deliveries_total{result="failed"}') == 1


def test_many_webhooks_do_not_keep_the_loop(server, make_receiver):
    """The fixture looks at the turns of the loop in the server's log."""
    well, hanging = make_receiver(), make_receiver()
    hanging.answer = lambda got: None
    many = Tenant(server, "acme", "quota.webhooks=1000").client
    for i in range(900):
        add(many, hanging.url)
    mine = Tenant(server, "beta").client
    add(mine, well.url)
    many.run("box", "true")
    mine.run("box", "true")
    wait_taken(well, 1)
    assert len(hanging.got) <= 4


def test_they_are_their_tenants_own(server, make_receiver):
    a, b = make_receiver(), make_receiver()
    mine, theirs = Tenant(server, "acme").client, Tenant(server, "beta").client
    hook = server.ctl.json("webhook", "add", a.url, "--tenant", "acme")
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
    assert a.url in server.ctl("webhook", "list", *words)
    assert "run.ended" in server.ctl("webhook", "show", hook["id"], *words)
    server.ctl("webhook", "test", hook["id"], *words)
    assert a.got[-1].body["type"] == "webhook.test"
    server.ctl("webhook", "set", hook["id"], "enabled=false", *words)
    a.answer = lambda got: (500, {})
    assert "did not take it" in server.ctl.refuses("webhook", "test",
                                                   hook["id"], *words)
    server.ctl("webhook", "delete", hook["id"], *words)
    assert a.url not in server.ctl("webhook", "list", *words)
    acts = server.ctl("audit", "list", "limit=50")
    for what in ("webhook.add", "webhook.set", "webhook.delete"):
        assert what in acts


# ---- what a webhook's receiver may answer, whoever it is

OK = b"HTTP/1.1 204 No Content\r\nContent-Length: 0\r\n\r\n"
LONG = b"9" * 400

# (what it sends before it hangs up, status that the server saw; None: any)
ANSWERS = (
    (b"", 0),
    (b"\0\xff\r\n\r\n", 0),
    (b"220 mail.example ESMTP\r\n", 0),
    (b"HTTP/1.1 200", 0),
    (b"HTTP/1.1 200 OK\r\nX: " + b"a" * 200000 + b"\r\n\r\n", 0),
    (b"HTTP/1.1 200 OK\r\n" + b"X: a\r\n" * 20000 + b"\r\n", 0),
    (b"HTTP/1.1 100 Continue\r\n\r\n" * 3, 0),
    (b"HTTP/1.1 100 Continue\r\n\r\n" * 20000, 0),
    (b"HTTP/1.1 200 OK\r\nContent-Length: 99999999\r\n\r\n" + b"x" * 1000000,
     200),
    (b"HTTP/1.1 200 OK\r\nContent-Length: -1\r\n\r\n", None),
    (b"HTTP/1.1 200 OK\r\nContent-Length: " + LONG + b"\r\n\r\n", None),
    (b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\nZZ\r\nx", None),
    (b"HTTP/1.1 200 OK\r\nContent-Encoding: gzip\r\nContent-Length: 4\r\n\r\n"
     b"\x1f\x8b\0\0", 200),
    (b"HTTP/1.1 999 So\r\nContent-Length: 0\r\n\r\n", 999),
    (b"HTTP/1.1 99999 So\r\nContent-Length: 0\r\n\r\n", None),
    (b"HTTP/1.1 302 Found\r\nLocation: file:///etc/passwd\r\n"
     b"Content-Length: 0\r\n\r\n", 302),
    (b"HTTP/1.1 503 No\r\nRetry-After: " + LONG + b"\r\n"
     b"Content-Length: 0\r\n\r\n", 503),
    (b"HTTP/1.1 429 No\r\nRetry-After: -1\r\nContent-Length: 0\r\n\r\n", 429),
    (b"HTTP/1.1 407 No\r\nProxy-Authenticate: Negotiate\r\n"
     b"Content-Length: 0\r\n\r\n", 407),
    (b"HTTP/1.1 101 Switching Protocols\r\nUpgrade: websocket\r\n"
     b"Connection: Upgrade\r\n\r\n\x81\x05hello", None),
    (OK, 204),
)


class Raw:
    """Sends .answer to whoever has sent a request, and hangs up."""

    def __init__(self):
        self.answer = OK
        self.listener = socket.create_server(("127.0.0.1", 0))
        self.url = f"http://127.0.0.1:{self.listener.getsockname()[1]}/"
        self.thread = threading.Thread(target=self.serve, daemon=True)
        self.thread.start()

    def serve(self):
        with contextlib.suppress(OSError):
            while True:
                conn, _ = self.listener.accept()
                with conn, contextlib.suppress(OSError):
                    conn.settimeout(60)
                    text = b""
                    while b"webhook.test" not in text:
                        part = conn.recv(65536)
                        if not part:
                            break
                        text += part
                    conn.sendall(self.answer)

    def close(self):
        with contextlib.suppress(OSError):
            self.listener.shutdown(socket.SHUT_RDWR)
        self.listener.close()
        self.thread.join()


def test_no_answer_harms_the_courier(server, client):
    with contextlib.closing(Raw()) as raw:
        hook = add(client, raw.url)
        for answer, want in ANSWERS:
            raw.answer = answer
            status, said = rest(client, "POST", f"/{hook['id']}/test")
            assert status == 200, (answer[:80], said)
            seen = said["status"] or 0
            assert want in (None, seen), (answer[:80], said)
            assert said["taken"] == (200 <= seen < 300)
            assert (said["error"] is None) == (seen != 0)
    assert said["taken"]
    assert server.metric('sandboxd_process_restarts_total{role="courier"}') == 0
