"""What a command leaves running lives on, is told, listed and killed."""
import os
import signal

import pytest

from client import wait_for

FETCH = ("python3 -c \"import urllib.request as r, time\n"
         "for i in range(200):\n"
         "    try: print(r.urlopen('http://127.0.0.1:8765/page').read()"
         ".decode()); break\n"
         "    except OSError: time.sleep(0.05)\"")


def left_of(final, command=0):
    return final["commands"][command].get("left_running")


def count_sleepers(client, sandbox):
    return int(client.out(sandbox, "pgrep -c -x sleep || true"))


def wait_sleepers(client, sandbox, n):
    wait_for(lambda: count_sleepers(client, sandbox) == n, 20, f"{n} sleepers")


def control(client, final, action, **more):
    return client.call("control_run", run_id=final["run_id"], action=action,
                       **more)


def refused(client, final, action, process):
    return client.fail("control_run", run_id=final["run_id"], action=action,
                       process=process)


# However it is left: tests/agent/test_remnants.py.
def test_what_is_left_lives_on_and_is_killed(client, sandbox):
    final = client.run(sandbox, "(exec sleep 300) & echo out")
    assert (final["state"], final["end_reason"]) == ("completed", "exit")
    left = left_of(final)
    assert left["count"] == 1
    name = left["processes"][0]["process"]
    wait_sleepers(client, sandbox, 1)
    listed = control(client, final, "list")
    assert [(p["process"], p["command_line"])
            for p in listed["processes"]] == [(name, "sleep 300")]
    killed = control(client, final, "kill", process=name)
    assert killed["killed"] == 1
    wait_sleepers(client, sandbox, 0)
    assert f"has left no {name} running" in refused(client, final, "kill", name)


def test_a_server_answers_the_next_run(client, sandbox):
    final = client.run(
        sandbox, "echo page $$ > page; python3 -m http.server 8765 &")
    name = left_of(final)["processes"][0]["process"]
    assert client.out(sandbox, FETCH).startswith("page ")

    def requests():
        listed = control(client, final, "list")
        return "GET /page" in listed["output"][0]["text"] and listed

    listed = wait_for(requests, 20, "its own words of it")
    assert listed["output"][0]["state"] == "running"
    assert listed["output"][0]["dropped"] == 0
    text = client.tool("control_run", run_id=final["run_id"],
                       action="list")["content"][0]["text"]
    assert f"{name} pid " in text and "GET /page" in text
    assert "python3 -m http.server 8765" in text
    assert control(client, final, "kill")["killed"] >= 1
    dead = client.run(sandbox, "python3 -c \"import urllib.request as r\n"
                               "r.urlopen('http://127.0.0.1:8765/page')\"")
    assert dead["state"] == "failed"


def test_the_answer_says_it_in_words(client, sandbox):
    out = client.tool("run_sandbox", identifier=sandbox, commands=[
        {"shell": "sleep 300 & sleep 301 &"}])
    text = out["content"][0]["text"]
    assert "2 processes left running: p" in text
    assert text.count("`") == 4
    assert "control_run" in text
    run = out["structuredContent"]["run_id"]
    client.call("control_run", run_id=run, action="kill")
    later = client.tool("get_run", run_id=run)
    assert "2 processes left running" in later["content"][0]["text"]


def test_what_is_printed_later_is_kept(client, sandbox):
    final = client.run(sandbox, "(sleep 0.5; echo late; echo err >&2) & "
                                "echo soon")
    assert final["commands"][0]["stdout"] == "soon\n"

    def over():
        listed = control(client, final, "list")
        return listed["output"][0]["state"] == "ended" and listed

    output = wait_for(over, 20, "its end")["output"]
    assert (output[0]["text"], output[0]["bytes"]) == ("late\nerr\n", 9)


def test_kill_leftovers_ends_them_with_their_command(client, sandbox):
    final = client.run(sandbox, "sleep 300 & setsid sleep 301 & echo x",
                       kill_leftovers=True)
    assert left_of(final) is None
    assert count_sleepers(client, sandbox) == 0
    client.call("initialize_sandbox", identifier=sandbox)
    code = "import subprocess; subprocess.Popen(['sleep', '300'])"
    out = client.call("execute_code", identifier=sandbox, code=code,
                      options={"kill_leftovers": True})
    assert "left_running" not in out
    assert count_sleepers(client, sandbox) == 0
    out = client.call("execute_code", identifier=sandbox, code=code)
    assert out["left_running"]["count"] == 1
    wait_sleepers(client, sandbox, 1)
    client.call("control_run", run_id=out["run_id"], action="kill")


def test_timeout_and_cancel_end_all_of_their_run(client, sandbox):
    other = client.run(sandbox, "sleep 300 &")
    client.run(sandbox, "sleep 301 &",
               {"shell": "setsid sleep 302 & sleep 303", "timeout_ms": 300})
    wait_sleepers(client, sandbox, 1)
    out = client.start(sandbox, "sleep 301 &", "setsid sleep 302 & sleep 303")
    wait_sleepers(client, sandbox, 4)
    control(client, out, "cancel")
    wait_sleepers(client, sandbox, 1)
    assert control(client, other, "kill")["killed"] == 1


@pytest.mark.own(RUN_OUTPUT_MAX_BYTES="100000", DEFAULT_MEMORY_MB="64")
def test_a_limit_ends_all_of_its_run(client):
    other = client.run("limits", "sleep 300 &")
    for last, reason in (("yes", "output_limit"),
                         ("python3 -c 'x = b\"x\" * (1 << 30)'", "memory")):
        final = client.run("limits", "setsid sleep 301 &", last)
        assert final["end_reason"] == reason
        assert final["commands"][1]["end_reason"] == reason
        assert left_of(final)["count"] == 1
        wait_sleepers(client, "limits", 1)
    assert control(client, other, "kill")["killed"] == 1


def test_the_list_of_sandboxes_counts_them(client, sandbox):
    def count():
        listed = client.call("list_sandboxes", limit=100)["sandboxes"]
        return next(s["left_running"] for s in listed
                    if s["identifier"] == sandbox)

    final = client.run(sandbox, "sleep 300 & sleep 301 &")
    assert count() == 2
    assert left_of(client.status(final["run_id"]))["count"] == 2
    text = client.tool("list_sandboxes")["content"][0]["text"]
    assert f"{sandbox} ready, 0 active runs, 2 processes left running," in text
    control(client, final, "kill")
    assert count() == 0


def test_bad_arguments_are_told(client, sandbox):
    final = client.run(sandbox, "true")
    assert control(client, final, "list")["processes"] == []
    assert control(client, final, "kill")["killed"] == 0
    for process in ("7", "p0", "px", "p99999999999"):
        refused(client, final, "kill", process)
    assert "has left no p4294967295 running" in refused(client, final, "kill",
                                                        "p4294967295")
    assert "only with action kill" in refused(client, final, "cancel", "p1")


@pytest.mark.own
def test_they_survive_the_death_of_each_of_our_processes(server, client,
                                                         engine):
    final = client.run("keep", "sleep 300 & sleep 301 &")
    names = [p["process"] for p in left_of(final)["processes"]]

    def listed():
        return [p["process"]
                for p in control(client, final, "list")["processes"]]

    for role in ("worker", "front"):
        server.kill(role)
        assert listed() == names
    children = server.pids("front") + server.pids("worker")
    server.stop(signal.SIGKILL)
    wait_for(lambda: not any(os.path.exists(f"/proc/{pid}")
                             for pid in children), 30, "the end of all")
    server.start()
    assert listed() == names
    told = client.call("list_sandboxes")["sandboxes"][0]
    assert told["left_running"] == 2
    assert left_of(client.status(final["run_id"]))["count"] == 2
    assert control(client, final, "kill", process=names[0])["killed"] == 1
    wait_for(lambda: listed() == names[1:], 20, "its death")
    assert client.out("keep", "pgrep -a -x sleep").count("sleep 30") == 1
    client.delete("keep")
    assert control(client, final, "list")["processes"] == []
    assert control(client, final, "kill")["killed"] == 0


@pytest.mark.own(SANDBOX_DISK_MB="32")
def test_a_full_disk_ends_what_was_left(server, client):
    final = client.run(
        "full", "setsid sh -c 'sleep 0.3; while :; do"
                " head -c 4000000 /dev/zero >> /workspace/big; sleep 0.05;"
                " done' >/dev/null 2>&1 &")
    assert left_of(final)["count"] >= 1

    def over():
        try:
            listed = control(client, final, "list")
        except AssertionError:
            return False
        return listed["left_running"] == 0

    wait_for(over, 30, "its end")
    wait_for(lambda: any("agent saw a full disk" in n and "sandbox=full" in n
                         for n in server.log), 60, "the agent's line")
