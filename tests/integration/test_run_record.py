"""One run that is asked about by its id: /api/v1/runs/ID and below."""
import json
import re
import signal

import pytest

from client import wait_for
from server import Admin
from tenants import Tenant

NEVER = "00000000-0000-4000-8000-000000000000"


def output(client, run, query=""):
    status, headers, data = client.request(
        "GET", f"/api/v1/runs/{run}/output{query}")
    assert status == 200, (status, data)
    names = ("Offset", "Next", "Total", "Missing")
    return data, [int(headers[f"X-Output-{n}"]) for n in names], \
        headers["X-Output-Complete"] == "true"


def test_a_run_shows_what_is_recorded_of_it(client, sandbox):
    run = client.run(
        sandbox, "echo out; echo err >&2; echo x > /artifacts/f",
        {"argv": ["sh", "-c", "exit 3"], "env": {"A": "1"},
         "allow_failure": True})["run_id"]
    got = client.get(f"/api/v1/runs/{run}")
    assert got["run_id"] == run
    assert (got["identifier"], got["tool"]) == (sandbox, "run_sandbox")
    assert (got["state"], got["end_reason"]) == ("completed", "exit")
    assert got["exit_code"] == 3
    assert (got["stdout_bytes"], got["stderr_bytes"]) == (4, 4)
    assert (got["artifact_count"], got["artifact_bytes"]) == (1, 2)
    assert got["queue_ms"] >= 0 and got["duration_ms"] >= 0
    assert got["address"] == "127.0.0.1"
    assert got["rerun_of"] is None and got["waits_for"] is None
    first, second = got["commands"]
    assert first["shell"].startswith("echo out") and first["argv"] is None
    assert (first["exit_code"], second["exit_code"]) == (0, 3)
    assert second["argv"] == ["sh", "-c", "exit 3"]
    assert second["env"] == {"A": "***"} and second["allow_failure"] is True
    files = client.get(f"/api/v1/runs/{run}/artifacts")
    assert [(f["path"], f["size"]) for f in files["artifacts"]] == [("f", 2)]
    assert files["next_cursor"] is None and files["total"] == 1
    assert client.get(f"/api/v1/runs/{run}/artifacts?cursor=1")[
        "artifacts"] == []


def test_output_comes_by_range(client, sandbox):
    run = client.run(sandbox, "printf abcdef; printf XYZ >&2",
                     "printf ghi")["run_id"]
    assert output(client, run, "?stream=stdout") == (
        b"abcdefghi", [0, 9, 9, 0], True)
    assert output(client, run, "?stream=stderr") == (
        b"XYZ", [0, 3, 3, 0], True)
    assert output(client, run, "?stream=stdout&offset=4&limit=3") == (
        b"efg", [4, 7, 9, 0], False)
    assert output(client, run, "?stream=stdout&command=1&offset=1") == (
        b"hi", [1, 3, 3, 0], True)
    assert output(client, run, "?stream=stdout&offset=100") == (
        b"", [9, 9, 9, 0], True)
    both, numbers, _ = output(client, run)
    assert sorted(both) == sorted(b"abcdefXYZghi") and numbers[2] == 12


def test_long_output_is_whole_in_pages(client, sandbox):
    run = client.run(sandbox, "seq 1 400000; seq 1 9 >&2")["run_id"]
    want = "".join(f"{i}\n" for i in range(1, 400001)).encode()
    got, done = b"", False
    while not done:
        page, numbers, done = output(
            client, run, f"?stream=stdout&offset={len(got)}&limit=1000003")
        assert numbers[0] == len(got) and numbers[2] == len(want)
        got += page
    assert got == want


def test_output_of_a_run_that_goes_on_is_there(client, sandbox):
    run = client.start(sandbox, "echo begun; sleep 100000")["run_id"]
    wait_for(lambda: output(client, run)[0] == b"begun\n", 60, "its output")
    assert output(client, run)[1:] == ([0, 6, 6, 0], False)
    got = client.get(f"/api/v1/runs/{run}")
    assert got["state"] == "running" and got["ended_at"] is None
    assert client.ask("POST", f"/api/v1/runs/{run}/cancel")["run_id"] == run
    client.wait_state(run, "canceled")
    assert output(client, run) == (b"begun\n", [0, 6, 6, 0], True)


def test_an_ended_run_is_forgotten(client, sandbox):
    run = client.run(sandbox, "true")["run_id"]
    assert client.ask("DELETE", f"/api/v1/runs/{run}") == {"run_id": run,
                                                           "deleted": True}
    client.get(f"/api/v1/runs/{run}", 404)


@pytest.mark.parametrize("query,why", [
    ("?stream=all", "stream: want one of stdout, stderr, both"),
    ("?command=64", "command: want a number from 0 to 63"),
    ("?command=1", "command: the run has 1, counted from 0"),
    ("?limit=0", "limit: want a number from 1 to 1048576"),
    ("?line=1", 'there is no parameter "line" here; there are: tenant, '
     "command, stream, offset, limit"),
])
def test_wrong_questions_are_answered_with_what_is_wanted(
        client, sandbox, query, why):
    run = client.run(sandbox, "true")["run_id"]
    answer = client.get(f"/api/v1/runs/{run}/output{query}", 400)
    assert answer["error"]["message"] == why


@pytest.mark.parametrize("below", ["", "/output", "/artifacts"])
def test_a_run_that_never_was_is_not_known(client, below):
    error = client.get(f"/api/v1/runs/{NEVER}{below}", 404)["error"]
    assert error["message"] == f"run {NEVER} is not known"


def rerun(client, run, body=None, want=201):
    return client.ask("POST", f"/api/v1/runs/{run}/rerun", body, want)


def test_a_run_is_run_once_more_as_it_was(client, sandbox):
    first = client.run(
        sandbox, "id -un; pwd", {"argv": ["false"], "cwd": "/tmp"},
        {"argv": ["echo", "a  b"]}, as_user="root",
        continue_on_error=True)["run_id"]
    again = rerun(client, first)
    assert again["rerun_of"] == first and again["run_id"] != first
    ended = client.wait_end(again["run_id"])
    assert output(client, first)[0] == output(client, again["run_id"])[0] \
        == b"root\n/workspace\na  b\n"
    assert ended["state"] == client.status(first)["state"]
    was, now = [client.get(f"/api/v1/runs/{r}")
                for r in (first, again["run_id"])]
    assert was["options"] == now["options"] == {
        "as_user": "root", "continue_on_error": True, "lock_sandbox": False,
        "kill_leftovers": False}
    for key in ("shell", "argv", "cwd", "timeout_ms", "exit_code"):
        assert [c[key] for c in was["commands"]] == \
            [c[key] for c in now["commands"]]


def test_a_run_is_run_once_more_when_its_sandbox_is_gone(client, sandbox):
    first = client.run(sandbox, "echo here")
    client.delete(sandbox)
    again = rerun(client, first["run_id"])
    assert again["identifier"] == sandbox
    assert again["sandbox_name"] != first["sandbox_name"]
    assert client.wait_end(again["run_id"])["state"] == "completed"


def test_values_of_variables_come_with_the_request(client, sandbox):
    first = client.run(sandbox, {
        "shell": "echo $A $B", "env": {"A": "one", "B": "two"}})["run_id"]
    error = rerun(client, first, want=409)["error"]
    assert error["message"] == (
        "values of variables are not recorded; give those of A, B in the "
        'body: {"env": {"NAME": "value"}}')
    error = rerun(client, first, {"env": {"A": "1"}}, 409)["error"]
    assert "give those of B in" in error["message"]
    again = rerun(client, first, {"env": {"A": "1", "B": "2"}})["run_id"]
    client.wait_end(again)
    assert output(client, again)[0] == b"1 2\n"
    assert client.get(f"/api/v1/runs/{again}")["commands"][0]["env"] == {
        "A": "***", "B": "***"}


def test_of_many_variables_that_are_missing_the_rest_is_counted(
        client, sandbox):
    many = {f"A_LONG_NAME_{i:020}": "x" for i in range(20)}
    first = client.run(sandbox, {"shell": "true", "env": many})["run_id"]
    error = rerun(client, first, want=409)["error"]
    named = error["message"].count("A_LONG_NAME_")
    assert 0 < named < 20 and f" and {20 - named} more in the" in \
        error["message"]


@pytest.mark.parametrize("body, why", [
    ({"env": {"C": "1"}},
     "env.C: no command of the run has a variable of this name"),
    ({"env": {"A": 1}}, "env.A: want a text"),
    ({"env": 1}, "env: want an object of names and values"),
    ({"evn": {}}, 'the body: "evn" is not known; there is: env'),
    ([], "the body: want a JSON object"),
])
def test_a_body_that_is_wrong_is_named(client, sandbox, body, why):
    first = client.run(sandbox, {"shell": ":", "env": {"A": "1"}})["run_id"]
    assert rerun(client, first, body, 400)["error"]["message"] == why


@pytest.mark.own
def test_many_variables_are_soon_compared(server, client):
    """Each name is looked for once, not once per command."""
    names = [[f"V{i}_{c}" for i in range(100)] for c in range(20)]
    first = client.run("box", *[
        {"shell": ":", "env": dict.fromkeys(n, "1")} for n in names])["run_id"]
    given = {n: "1" for of in names for n in of}
    again = rerun(client, first, {"env": given})["run_id"]
    assert client.wait_end(again)["state"] == "completed"
    assert not [n for n in server.log if "a turn of the loop took" in n]


def test_references_to_secrets_are_recorded_and_hold_again(client, sandbox):
    for value in ("first", "second"):
        client.ask("PUT", "/api/v1/secrets/again", value,
                   201 if value == "first" else 200)
        if value == "first":
            run = client.run(sandbox, {
                "shell": "echo $S", "env": {"S": "secret://again"}})["run_id"]
    again = rerun(client, run)
    assert again["commands"][0]["env"] == {"S": "secret://again"}
    client.wait_end(again["run_id"])
    assert output(client, run)[0] == b"first\n"
    assert output(client, again["run_id"])[0] == b"second\n"
    client.request("DELETE", "/api/v1/secrets/again")
    assert "there is no secret" in rerun(client, run, want=404)[
        "error"]["message"]


@pytest.mark.own
def test_an_administrator_gets_at_no_secret_by_a_run(server):
    """Neither by one that refers to it, nor by one that is told to."""
    client, admin = server.client(), Admin(server)
    client.ask("PUT", "/api/v1/secrets/key", "hunter2", 201)
    greets = client.run("box", {"shell": "echo $NAME",
                                "env": {"NAME": "moon"}})["run_id"]
    refers = client.run("box", {"shell": "echo ${#S}",
                                "env": {"S": "secret://key"}})["run_id"]

    for run, body in ((greets, {"env": {"NAME": "secret://key"}}),
                      (greets, {"env": {"NAME": "secret://never"}}),
                      (refers, {})):
        error = admin_rerun(admin, run, body, 403)["error"]
        assert error["code"] == "policy"
        assert "with a token of role user of this tenant" in error["message"]
    for run, body in ((greets, {"env": {"NAME": "sun"}}),
                      (refers, {"env": {"S": "none"}})):
        again = admin_rerun(admin, run, body)["run_id"]
        assert client.wait_end(again)["state"] == "completed"
    again = rerun(client, greets, {"env": {"NAME": "secret://key"}})["run_id"]
    client.wait_end(again)
    assert output(client, again)[0] == b"hunter2\n"


def test_code_is_run_once_more(client, sandbox):
    client.call("initialize_sandbox", identifier=sandbox)
    run = client.call("execute_code", identifier=sandbox,
                      code="print(6 * 7)")["run_id"]
    assert client.get(f"/api/v1/runs/{run}")["language"] == "python"
    again = rerun(client, run)
    client.wait_end(again["run_id"])
    assert again["tool"] == "execute_code"
    assert output(client, again["run_id"])[0] == b"42\n"
    long = client.call("execute_code", identifier=sandbox,
                       code="#" * 20000)["run_id"]
    assert "not recorded whole" in rerun(client, long, want=409)[
        "error"]["message"]


@pytest.mark.parametrize("command", [
    {"shell": "sleep 1000 # " + "x" * 60000},
    {"argv": ["sh", "-c", "sleep 1000", *["y" * 1000] * 60]}])
def test_of_a_long_command_the_beginning_is_kept(client, sandbox, command):
    """All of it as long as it runs; then as much as of code."""
    run = client.call(
        "run_sandbox", identifier=sandbox, commands=[command],
        options={"await_completion": False})["run_id"]
    how, whole = next(iter(command.items()))
    got = client.get(f"/api/v1/runs/{run}")["commands"][0]
    assert got[how] == whole and got["cwd"] == "/workspace"
    assert "request_truncated" not in got
    again = rerun(client, run)["run_id"]
    for one in (run, again):
        client.cancel(one)
        client.wait_end(one)
    got = client.get(f"/api/v1/runs/{run}")["commands"][0]
    kept = got[how]
    assert got["request_truncated"] is True
    assert whole[:len(kept) - 1] == kept[:-1] and kept[-1] in whole[-1]
    assert 19 << 10 < len(json.dumps(kept)) < 22 << 10
    assert "not recorded whole" in rerun(client, run, want=409)[
        "error"]["message"]


@pytest.mark.own
def test_a_rerun_is_in_the_audit(server, client, ctl):
    run = client.run("box", "true")["run_id"]
    again = rerun(client, run)["run_id"]
    client.wait_end(again)
    wait_for(lambda: again in [r["subject"] for r in ctl.json(
        "audit", "list", "what=run.rerun")["audit"]], 30, "its row")
    admin = Admin(server)

    def error(query):
        return admin.ask("GET",
                         f"/api/v1/runs/{again}{query}")[2]["error"]["message"]
    assert ctl.json("run", "show", again)["rerun_of"] == run
    assert "so say whose" in error("")
    assert error("?tenant=nobody") == "no such tenant"
    third = admin_rerun(admin, run)
    assert third["principal"] == "socket"
    client.wait_end(third["run_id"])


def admin_rerun(admin, run, body=None, want=201):
    status, _, answer = admin.ask(
        "POST", f"/api/v1/runs/{run}/rerun?tenant=default", body)
    assert status == want, answer
    return answer


# ---- what the row of a run says

MEGABYTE = 1 << 20
# Holds so many megabytes for a while, with a processor busy.
GROWN = ("python3 -c 'x = b\"x\" * (%d << 20); "
         "import time\nwhile time.process_time() < %s: pass'")


def test_a_row_says_what_a_run_came_to(server, client, sandbox):
    run = client.start(
        sandbox, "printf 12345; printf 123 >&2; echo x > /artifacts/a",
        {"shell": GROWN % (48, 0.2), "allow_failure": True},
        {"shell": "exit 3", "allow_failure": True})["run_id"]
    client.wait_end(run)
    row = server.run_row(run)
    assert row["stdout_bytes"] == 5
    assert row["stderr_bytes"] == 3
    assert row["exit_code"] == 3
    assert (row["artifacts"], row["artifact_bytes"]) == (1, 2)
    assert row["cpu_us"] >= 200000
    assert row["memory_peak_bytes"] >= 48 * MEGABYTE
    assert row["created_ms"] <= row["sent_ms"] <= row["ended_ms"]
    assert row["rerun_of"] is None
    assert row["language"] == ""


def test_a_row_says_who_asked(server, client, sandbox):
    client.initialize()
    message = {"jsonrpc": "2.0", "id": 77, "method": "tools/call",
               "params": {"name": "run_sandbox", "arguments": {
                   "identifier": sandbox, "commands": [{"shell": "true"}],
                   "options": {"await_completion": False}}}}
    _, headers, data = client.post(message)
    run = re.search(rb"run ([0-9a-f-]{36}) has not ended", data)[1].decode()
    client.wait_end(run)
    row = server.run_row(run)
    assert row["principal"] == ""  # nobody: this server asks for no token
    assert row["client"] == "test/1"
    assert row["address"] == "127.0.0.1"
    assert row["request_id"] == headers["X-Request-Id"]
    assert re.fullmatch("[0-9a-f]{32}", row["session"])
    assert row["session"] not in client.session


@pytest.mark.own
def test_a_token_is_named_and_so_is_a_language(server):
    a = Tenant(server, "a")
    a.client.call("initialize_sandbox", identifier="box")
    run = a.client.call("execute_code", identifier="box", language="py",
                        code="print(1)")["run_id"]
    row = server.run_row(run)
    assert row["principal"] == a.token.split("_")[1]
    assert row["language"] == "python"


def test_what_a_client_says_it_is_is_bounded(server, sandbox):
    client = server.client()
    client.rpc("initialize", {
        "protocolVersion": client.revision, "capabilities": {},
        "clientInfo": {"name": "né\n" + "x" * 500, "version": "9"}})
    run = client.start(sandbox, "true")["run_id"]
    client.wait_end(run)
    said = server.run_row(run)["client"]
    assert said.startswith("né?x")
    assert len(said.encode()) <= 128
    client.delete(sandbox)


@pytest.mark.own
def test_what_was_used_is_known_when_all_died_meanwhile(server, client):
    run = client.start("a", GROWN % (40, 0.1), "sleep 5", "exit 4")["run_id"]
    wait_for(lambda: client.status(run)["commands"][0].get("end_reason"),
             60, "the first command's end")
    server.restart(signal.SIGKILL)  # and with it all that it had started
    client.wait_end(run, 90)
    row = server.run_row(run)
    assert row["memory_peak_bytes"] >= 40 * MEGABYTE
    assert row["cpu_us"] >= 100000
    assert row["exit_code"] == 4
    assert row["client"] == "test/1"
    assert row["sent_ms"] > 0
