"""What an operator sees and does with sandboxctl."""
import json
import os
import re
import signal
import subprocess

import pytest

from client import wait_for
from screens import Screen
from server import serving
from tenants import bearer

COLOURS = re.compile(r"\x1b\[[0-9;]*m")


@pytest.fixture(scope="module")
def own(build, engine):
    """With a first token nobody comes without one: not everybody's server."""
    with serving(build, engine) as server:
        yield server


def programs(status):
    return {p["name"]: p for p in status["programs"]}


def test_status_tells_of_all_programs(own, engine):
    server, ctl = own, own.ctl
    status = ctl.json("status")
    found = programs(status)
    assert found["supervisor"]["pid"] == server.proc.pid
    assert found["front"]["pid"] == server.pids("front")[0]
    assert {found[n]["pid"] for n in found if n.startswith("worker/")} == \
        set(server.pids("worker"))
    assert {p["state"] for p in found.values()} == {"ready"}
    assert status["health"] == "ready" and status["why"] is None
    assert {w["engine"] for w in status["engine"]} == {"up"}
    there = json.loads(engine.request("GET", "/version")[1])
    runtime = json.loads(engine.request("GET", "/info")[1])["DefaultRuntime"]
    for w in status["engine"]:
        assert (w["version"], w["api_version"]) == \
            (there["Version"], there["ApiVersion"])
        assert w["name"].endswith("Engine") or "Docker" in w["name"]
        assert w["runtime"] == runtime
        assert status["started_at"] <= w["since"]
    assert status["history"]["index"] == {
        "available": True, "lag_rows": 0, "lag_s": 0, "made_anew": 0,
        "why": None}
    assert [d["name"] for d in status["disks"]] == ["data", "artifacts"]
    assert status["disks"][0]["dir"] == server.data
    assert all(d["free_bytes"] > 0 for d in status["disks"])
    assert status["load"]["tenants"] >= 1
    text = ctl("status")
    for name in found:
        assert f"\n{name} " in text
    assert "\x1b" not in text and "ready, up " in text
    assert f" {there['Version']} " in text
    assert "index of the history: no rows wait\n" in text
    wait_for(lambda: ctl.json("status")["load"]["containers"] == 0, 60,
             "a count of containers")
    assert " 0 containers on the engine; " in ctl("status")


@pytest.mark.own(WORKERS="1")
def test_status_counts_deaths(server, ctl):
    assert programs(ctl.json("status"))["worker/0"]["restarts"] == 0
    pid = server.pids("worker")[0]
    os.kill(pid, signal.SIGKILL)

    def came_back():
        worker = programs(ctl.json("status"))["worker/0"]
        return worker["restarts"] == 1 and worker["state"] == "ready" and \
            worker["pid"] != pid
    wait_for(came_back, 60, "the worker's next life")


@pytest.mark.own
def test_status_is_for_administrators(server, ctl):
    ctl("tenant", "add", "acme")
    user, admin = ctl.token("acme"), ctl.token("-", "--role", "admin")
    for headers, status in ((bearer(user), 403), (bearer(admin), 200),
                            ({}, 401)):
        assert server.get("/api/v1/status", headers)[0] == status
    assert "ready, up " in ctl(
        "status", env={"SANDBOXCTL_URL": f"http://127.0.0.1:{server.port}",
                       "SANDBOXCTL_TOKEN": admin})


@pytest.mark.own(WORKERS="1")
def test_watch_outlives_the_server(server):
    screen = Screen([*server.ctl.base, "status", "--watch"])
    screen.wait_for(b"since ")
    screen.wait_for(b"supervisor")
    os.kill(server.pids("front")[0], signal.SIGKILL)
    # By another front, or by the same view: it goes on.
    screen.wait_for(b"\x1b[H\x1b[2J")
    server.stop()
    screen.wait_for(b"no answer since ")
    screen.wait_for(b"before that:")
    server.start()
    screen.wait_for(b"ready\x1b[0m, up ")
    screen.press(b"\x03")
    assert screen.finish()[0] == 0


def test_a_table_fits_its_terminal(own):
    ctl = own.ctl
    wide = "\u6f22\u5b57" * 10
    token = ctl.json("token", "add", "-", "--role", "metrics", "--name", wide)
    try:
        for columns in (60, 100):
            screen = Screen([*ctl.base, "token", "list"], columns=columns)
            status, text = screen.finish()
            assert status == 0 and "\x1b[1m" in text
            lines = COLOURS.sub("", text).replace("\r", "").splitlines()
            assert any("\u2026" in line for line in lines) or columns > 60
            for line in lines:
                taken = sum(2 if ord(c) > 0x2fff else 1 for c in line)
                assert taken <= columns, line
        screen = Screen([*ctl.base, "token", "list"],
                        env={"NO_COLOR": "1", "COLUMNS": "70"})
        text = screen.finish()[1]
        assert "\x1b" not in text and "\u2026" in text
        # Beside a terminal nothing is missing.
        assert wide in ctl("token", "list")
    finally:
        ctl("token", "revoke", token["id"])


def test_words_of_others_do_not_move_the_cursor(own):
    ctl = own.ctl
    made = ctl.json("token", "add", "-", "--role", "metrics", "--name",
                    "a\x1b[2Jb\x07c\u009bd")
    try:
        text = Screen([*ctl.base, "token", "list"], columns=200,
                      env={"NO_COLOR": "1"}).finish()[1]
        assert "a?[2Jb?c" in text
        assert not re.search("[\x00-\x08\x0b\x0c\x0e-\x1f\x7f-\x9f]", text)
        listed = ctl.json("token", "list")
        assert made["id"] in [t["id"] for t in listed["tokens"]]
        text = Screen([*ctl.base, "--json", "token", "list"]).finish()[1]
        assert "c\\u009Bd" in text
        assert not re.search("[\x00-\x08\x0b\x0c\x0e-\x1f\x7f-\x9f]", text)
    finally:
        ctl("token", "revoke", made["id"])


# ---- runs


def test_a_run_is_shown_with_its_commands(client, ctl, sandbox):
    run = client.run(sandbox, "echo a; echo a > /artifacts/a.txt",
                     "exit 3")["run_id"]
    shown = ctl.json("run", "show", run)
    assert shown["run_id"] == run and shown["exit_code"] == 3
    text = ctl("run", "show", run)
    assert f"identifier: {sandbox}\n" in text and "exit 3" in text
    assert "exit_code: 3\n" in text
    assert "a.txt" in ctl("run", "artifacts", run)
    assert ctl.json("run", "artifacts", run)["artifacts"][0]["path"] == "a.txt"
    assert ctl("run", "tail", run) == "a\n"
    assert ctl("run", "tail", run, "stream=stderr") == ""
    assert f"run {run} is deleted" in ctl("run", "delete", run)
    for words in (["show"], ["tail"], ["tail", "-f"], ["cancel"]):
        assert "(status 404)" in ctl.refuses("run", words[0], run, *words[1:])
    assert "want the id of a run" in ctl.refuses("run", "show", "no-id",
                                                 status=2)
    assert "no" in ctl.refuses("run", "tail", run, "no=such")
    assert "want KEY=VALUE" in ctl.refuses("run", "tail", run, "word",
                                           status=2)


def test_health_is_an_exit_status(make_server):
    """Of a server whose engine is away it is that of a failure."""
    server = make_server()
    assert server.ctl("health") == "status: ready\n"
    lost = make_server(env={"DOCKER_HOST": "unix:///no/such.sock"},
                       wait="port")
    wait_for(lambda: "no/such.sock" in lost.ctl.refuses("health"), 30,
             "the engine's name")
    lost.stop()
    assert "admin.sock" in lost.ctl.refuses("health")


@pytest.mark.parametrize("words, option, wanted", [
    (["tenant", "list", "--role", "admin"], "--role", "tenant list\n"),
    (["whoami", "--tenant", "a"], "--tenant", "whoami\n"),
    (["audit", "list", "--tenant", "a"], "--tenant", "audit list [tenant="),
    (["run", "show", "ID", "-f"], "--follow", "run show ID [--tenant TENANT]"),
    (["backup", "/no/file", "--drop-damaged"], "--drop-damaged",
     "backup FILE [--force]\n"),
    (["run", "tail", "ID", "--json"], "--json", "run tail ID [--follow]"),
    (["doctor", "--url", "http://x", "--token", "x"], "--url", "doctor [KEY="),
    (["token", "make", "a", "--data-dir", "/"], "--data-dir",
     "token make TENANT|- [--role ROLE]"),
])
def test_an_option_of_no_use_is_refused(build, words, option, wanted):
    done = subprocess.run(
        [os.path.join(build, "sandboxctl"), *words], capture_output=True,
        text=True, timeout=60)
    assert done.returncode == 2 and not done.stdout
    assert done.stderr.startswith(
        f"sandboxctl: {option} is of no use here; want: sandboxctl {wanted}")


def test_a_tail_in_a_pipe_is_what_was_printed(client, ctl, sandbox):
    run = client.run(sandbox, "seq 1 700000; printf '\\033[31m\\377'")["run_id"]
    raw = ctl.run("run", "tail", run, text=False)
    assert raw.returncode == 0
    assert raw.stdout == b"".join(b"%d\n" % i for i in range(1, 700001)) + \
        b"\033[31m\377"


def test_a_tail_on_a_terminal_moves_no_cursor(client, ctl, sandbox):
    run = client.run(
        sandbox, "printf 'a\\033[2Jb\\tc\\302\\233d\\rze \\303\\244 "
        "\\377.\\n'")["run_id"]
    status, text = Screen([*ctl.base, "run", "tail", run]).finish()
    assert status == 0
    assert "a\\x1b[2Jb" in text and "c\\x9bd\\x0dze \u00e4 \ufffd." in text
    assert "\x1b" not in text
    status, text = Screen([*ctl.base, "run", "tail", "--raw", run]).finish()
    assert status == 0 and "a\x1b[2Jb" in text


@pytest.mark.own(WORKERS="1")
def test_a_tail_follows_over_a_restart(server, client, ctl, tmp_path):
    run = client.start(
        "box", "i=0; while [ ! -e end ]; do i=$((i+1)); echo $i; sleep 0.02; "
        "done; echo over")["run_id"]
    out, said = tmp_path / "out", tmp_path / "said"

    def wait_for_lines(n):
        wait_for(lambda: len(out.read_text().splitlines()) >= n, 120, "lines")

    with out.open("w") as to, said.open("w") as err:
        tail = subprocess.Popen([*ctl.base, "run", "tail", "-f", run],
                                stdout=to, stderr=err)
    wait_for_lines(5)
    server.kill("front")
    wait_for_lines(100)
    server.stop()
    wait_for(lambda: "waiting for the server" in said.read_text(), 60,
             "the tail to miss the server")
    server.start()
    client.run("box", "touch end")
    assert tail.wait(120) == 0, said.read_text()
    lines = out.read_text().splitlines()
    assert lines[-1] == "over"
    assert lines[:-1] == [str(i) for i in range(1, len(lines))]
    assert ctl("run", "tail", run) == out.read_text()


def test_a_run_is_canceled(client, ctl, sandbox):
    run = client.start(sandbox, "echo begun; sleep 100000")["run_id"]
    wait_for(lambda: ctl("run", "tail", run) == "begun\n", 60, "output")
    assert f"run {run} is told to end" in ctl("run", "cancel", run)
    client.wait_state(run, "canceled")


@pytest.mark.own
def test_the_history_is_asked_and_taken_away(client, ctl):
    """On a server of its own, whose history is known."""
    runs = [client.run(f"box-{i % 2}", f"echo nr{i}; exit {i}")["run_id"]
            for i in range(4)]
    listed = ctl.json("run", "list", "limit=3", "count=true")
    assert [r["run_id"] for r in listed["runs"]] == runs[:0:-1]
    assert listed["total"] == 4
    rest = ctl.json("run", "list", "limit=3", f"cursor={listed['next_cursor']}")
    assert [r["run_id"] for r in rest["runs"]] == runs[:1]
    text = ctl("run", "list", "identifier=box-1", "state=failed")
    assert runs[1] in text and runs[3] in text and runs[0] not in text
    assert runs[2] in ctl("run", "list", "exit_code=2")
    assert runs[2] in ctl("run", "list", "q=nr2")
    done = ctl.run("run", "list", "limit=1")
    assert "there are more: cursor=" in done.stderr
    assert "colour" in ctl.refuses("run", "list", "colour=red")
    groups = {g["key"]: g["runs"] for g in ctl.json(
        "run", "stats", "group_by=identifier")["groups"]}
    assert groups == {"box-0": 2, "box-1": 2}
    assert "box-0" in ctl("run", "stats", "group_by=identifier")
    lines = ctl("run", "export", "format=jsonl").splitlines()
    assert sorted(json.loads(n)["run_id"] for n in lines) == sorted(runs)
    assert len(ctl("run", "export", "format=csv").splitlines()) == 5
    assert "format" in ctl.refuses("run", "export", "format=xml")
    assert {"box-0", "box-1"} == {
        s["identifier"] for s in ctl.json("sandbox", "list")["sandboxes"]}
    assert "\nbox-0 " in ctl("sandbox", "list")
    assert "identifier: box-0\n" in ctl("sandbox", "show", "box-0")
    again = ctl.json("run", "rerun", runs[1])
    client.wait_state(again["run_id"], "failed")
    assert runs[3] not in ctl("--tenant", "default", "run", "list", "limit=1")


def test_a_sandbox_is_deleted(client, ctl, sandbox):
    run = client.start(sandbox, "sleep 100000")["run_id"]
    assert ctl("sandbox", "delete", sandbox) == \
        f"sandbox {sandbox} is deleted\n"
    client.wait_state(run, "canceled")
    for words in (["show"], ["delete"], ["--tenant", "default", "delete"]):
        assert "no such sandbox" in ctl.refuses("sandbox", *words, sandbox)
    assert "no such tenant" in ctl.refuses("sandbox", "delete", sandbox,
                                           "--tenant", "nobody")
    client.run(sandbox, "true")
    assert ctl.json("sandbox", "delete", sandbox) == {
        "identifier": sandbox, "deleted": True}


def test_the_doctor_is_the_servers(own):
    ctl = own.ctl
    said = ctl.run("--json", "doctor", env={"DATA_DIR": ctl.server.data})
    own = subprocess.run(
        [os.path.join(ctl.server.build, "mcp-sandboxd"), "doctor", "--json"],
        capture_output=True, text=True, timeout=120, check=False,
        env={**os.environ, "DATA_DIR": ctl.server.data})
    assert said.returncode == own.returncode in (0, 1)
    assert json.loads(said.stdout).keys() == json.loads(own.stdout).keys()


def test_the_doctor_looks_at_the_named_directory(own):
    ctl = own.ctl
    said = ctl.run("--json", "--data-dir", "/proc/none", "doctor")
    disk = [f["text"] for f in json.loads(said.stdout)["findings"]
            if f["what"] == "disk"]
    assert disk and "free at /proc" in disk[0]
