"""run_sandbox: commands, options and results, on the real engine."""
import base64
import functools
import json
import re

import pytest

from client import TOO_MUCH, at_once, python, stdout


def test_a_shell_command_gives_its_output(client, sandbox):
    final = client.run(sandbox, "echo hello")
    assert final["state"] == "completed"
    command = final["commands"][0]
    assert (command["status"], command["exit_code"]) == ("completed", 0)
    assert command["stdout"] == "hello\n"
    assert command["stdout_bytes"] == 6
    assert command["stdout_truncated"] is False


def test_the_answer_names_run_urls_and_sandbox(client, sandbox):
    out = client.start(sandbox, "true")
    assert re.fullmatch(r"[0-9a-f-]{36}", out["run_id"])
    assert out["events_url"] == f"/mcp/events?run_id={out['run_id']}"
    assert out["status_url"] == f"/mcp/runs/{out['run_id']}"
    assert out["identifier"] == sandbox
    assert out["sandbox_name"].startswith("mcp-sbx-")
    assert "final" not in out
    assert client.wait_end(out["run_id"])["state"] == "completed"


@pytest.mark.parametrize("commands, options, printed", [
    ([{"argv": ["printf", "%s;", "a b", "c"]}], {}, ["a b;c;"]),
    *[([{"shell": unset, "argv": ["echo", "x"]}], {}, ["x\n"])
      for unset in (False, "", None)],
    (["pwd"], {}, ["/workspace\n"]),
    (["pwd", {"shell": "pwd", "cwd": "/"}], {"default_cwd": "/tmp"},
     ["/tmp\n", "/\n"]),
    ([{"shell": "echo $A$B$C", "env": ["B=2", "C=x=y"]},
      {"shell": "echo $PORT", "env": {"PORT": 8080}}],
     {"default_env": {"A": "1", "B": "1"}}, ["12x=y\n", "8080\n"]),
    (["id -u"], {}, ["1000\n"]),
    (["id -u"], {"as_user": "root"}, ["0\n"]),
    (["printf 'a\rb\n'\necho c\n", {"argv": ["printf", "%s", "d\r\n"]}], {},
     ["a\rb\nc\n", "d\r\n"]),
    ([{"shell": "exit 3", "allow_failure": True}, "echo ok"], {},
     ["", "ok\n"]),
])
def test_what_commands_print(client, sandbox, commands, options, printed):
    final = client.run(sandbox, *commands, **options)
    assert final["state"] == "completed"
    assert [c["stdout"] for c in final["commands"]] == printed
    assert not any("note" in c for c in final["commands"])


def test_a_shell_text_is_run_as_it_was_said(client, sandbox):
    final = client.run(sandbox, "printf '%s|' a\\ ",
                       "printf '%s|' b \\\n", "\n\tprintf c\n\n", "-x")
    assert [c["stdout"] for c in final["commands"][:3]] == ["a |", "b|", "c"]
    assert final["commands"][0]["shell"] == "printf '%s|' a\\ "
    assert "-x: command not found" in final["commands"][3]["stderr"]


@pytest.mark.parametrize("command, says", [
    ({"shell": "x" * 131072}, "commands[0].shell: 131072 bytes"),
    ({"argv": ["echo", "x" * 131072]}, "commands[0].argv[1]: 131072 bytes"),
    ({"shell": "x", "env": {"BIG": "hunter2" * 20000}},
     "commands[0].env.BIG: the variable has 140004 bytes"),
    ({"shell": "x", "env": {f"V{i}": "hunter2" for i in range(513)}},
     "commands[0].env: a command has more than 512 variables"),
    ({"shell": "x", "env": {"A=hunter2": "hunter2"}},
     "commands[0].env.A: the variable's name contains \"=\""),
])
def test_what_exec_does_not_take_is_refused_before_a_sandbox_is_made(
        client, sandbox, command, says):
    text = client.refused(sandbox, command)
    assert says in text and "hunter2" not in text
    assert client.call("list_sandboxes", identifier=sandbox)["sandboxes"] == []


def test_a_run_that_is_too_large_makes_no_sandbox(client, sandbox):
    assert "limit 2097152" in client.refused(
        sandbox, *["x"] * 64, default_env={"EACH": "x" * 100000})
    assert client.call("list_sandboxes", identifier=sandbox)["sandboxes"] == []


def test_crlf_ends_a_line_of_shell_text(client, sandbox):
    text = "cd /tmp\r\necho a > name.txt\r\nls name*\r\nprintf 'x\ry'\r\n"
    result = client.tool(
        "run_sandbox", identifier=sandbox, commands=[{"shell": text}],
        options={"await_completion": True})
    command = result["structuredContent"]["final"]["commands"][0]
    assert command["stdout"] == "name.txt\nx\ry"
    assert command["shell"] == text
    assert "CRLF" in command["note"]
    assert f"[{command['note']}]" in result["content"][0]["text"]
    run = result["structuredContent"]["run_id"]
    asked = client.call("get_run", run_id=run)["commands"][0]
    assert asked["note"] == command["note"]
    again = client.ask("POST", f"/api/v1/runs/{run}/rerun", want=201)
    assert stdout(client.wait_end(again["run_id"])) == "name.txt\nx\ry"


def test_crlf_is_told_of_a_text_of_which_the_beginning_is_kept(
        client, sandbox):
    text = f"printf %s # {'x' * 30000}\r\nprintf b\r\n"
    commands = client.run(sandbox, "printf a", text)["commands"]
    assert commands[1]["stdout"] == "b"
    assert "CRLF" in commands[1]["note"] and "note" not in commands[0]


def test_shell_and_argv_together_run_argv_as_shell_text(client, sandbox):
    final = client.run(sandbox, {"shell": "/bin/bash", "argv": ["ls", "/"]})
    assert final["state"] == "completed"
    assert "workspace" in final["commands"][0]["stdout"]


def test_a_failure_stops_the_run(client, sandbox):
    final = client.run(sandbox, "exit 3", "echo no")
    assert final["state"] == "failed"
    first, second = final["commands"]
    assert (first["status"], first["exit_code"]) == ("failed", 3)
    assert (second["status"], second["stdout"]) == ("queued", "")
    assert "command 0 failed with exit 3" in final["error"]


def test_continue_on_error_goes_on_and_still_fails(client, sandbox):
    final = client.run(sandbox, "exit 3", "echo yes", continue_on_error=True)
    assert final["state"] == "failed"
    assert final["commands"][1]["stdout"] == "yes\n"


@pytest.mark.parametrize("command, told, says", [
    ({"shell": "sleep 30", "timeout_ms": 300},
     {"status": "timed_out", "exit_code": 137, "end_reason": "timeout"},
     "timed out"),
    ("exit 137", {"status": "failed", "exit_code": 137, "end_reason": "exit"},
     "exit 137"),
    ("kill -TERM $$", {"signal": 15, "exit_code": 143, "end_reason": "signal"},
     ""),
    (TOO_MUCH, {"exit_code": 137, "end_reason": "memory"}, ""),
    ({"argv": ["no-such-program"]},
     {"exit_code": 127, "end_reason": "start_failed"}, "no-such-program"),
    ({"shell": "true", "cwd": "/nope"}, {"end_reason": "start_failed"},
     "/nope"),
    ("echo o; echo e >&2", {"stdout": "o\n", "stderr": "e\n"}, ""),
], ids=["timeout", "137", "signal", "memory", "program", "cwd", "streams"])
def test_how_a_command_ended_is_told(client, sandbox, command, told, says):
    final = client.run(sandbox, command)
    shown = final["commands"][0]
    assert {k: shown[k] for k in told} == told
    assert final["end_reason"] == shown["end_reason"]
    assert says in f"{final.get('error')} {shown.get('error')}"


def test_split_utf8_stays_whole(client, sandbox):
    text = "€" * 200000
    final = client.run(sandbox, python(
        "import sys\n"
        "for i in range(200000): sys.stdout.buffer.write('€'.encode())"))
    command = final["commands"][0]
    assert len(command["stdout"].encode()) in range(16382, 16385)
    assert command["stdout"] + command["stdout_tail"] in text
    assert client.stdout_of(final["run_id"]) == text


def test_binary_output_comes_back_whole_as_base64(client, sandbox):
    command = client.run(sandbox, python(
        "import sys\nsys.stdout.buffer.write(bytes(range(256)) * 16)"))[
            "commands"][0]
    assert base64.b64decode(command["stdout_base64"]) == bytes(range(256)) * 16
    assert command["stdout_bytes"] == 4096


def test_an_expired_wait_gives_null_and_the_run_goes_on(client, sandbox):
    out = client.start(sandbox, "sleep 1; echo done", await_completion=True,
                       await_timeout_ms=100)
    assert out["final"] is None
    assert stdout(client.wait_end(out["run_id"])) == "done\n"


def test_a_plain_call_waits_and_costs_a_model_little(client, sandbox):
    client.run(sandbox, "true")
    result = client.tool("run_sandbox", identifier=sandbox,
                         commands=[{"shell": "echo hi", "argv": None}],
                         options=None, reason="to say hi")
    text = result["content"][0]["text"]
    assert text.endswith(" completed\nexit code 0\nhi\n")
    assert len(text) / 4 <= 60
    structured = json.dumps(result["structuredContent"],
                            separators=(",", ":"))
    assert len(structured) / 4 <= 250


def test_all_output_can_be_paged_through(client, sandbox):
    run = client.run(sandbox, "seq 1 30000; echo bad >&2; seq 5",
                     {"argv": ["printf", "\\377"]})
    pages = [p for page in client.pages(
        "get_run", "output", run_id=run["run_id"], cursor="0") for p in page]
    out = [p["text"] for p in pages if p["stream"] == "stdout" and
           p["index"] == 0]
    assert "".join(out) == "".join(
        f"{i}\n" for i in [*range(1, 30001), *range(1, 6)])
    assert [p["text"] for p in pages if p["stream"] == "stderr"] == ["bad\n"]
    assert pages[-1]["index"] == 1 and pages[-1]["base64"] == "/w=="
    assert "cursor: want" in client.fail("get_run", run_id=run["run_id"],
                                         cursor="7")


def test_pages_of_a_run_that_goes_on_say_where_the_next_begins(
        client, sandbox):
    run = client.start(sandbox, "echo one; sleep 60")["run_id"]
    client.wait_output(run)
    page = client.call("get_run", run_id=run, cursor="0")
    assert page["output"][0]["text"] == "one\n"
    again = client.call("get_run", run_id=run, cursor=page["next_cursor"])
    assert again["output"] == []
    assert again["next_cursor"] == page["next_cursor"]
    place, sign = page["next_cursor"].split("-")
    other = client.start(sandbox, "true")["run_id"]
    for who, forged in [(run, place), (run, f"{int(place) - 1}-{sign}"),
                        (run, "x"), (other, page["next_cursor"])]:
        assert "cursor: want" in client.fail("get_run", run_id=who,
                                             cursor=forged)


def test_a_run_that_was_not_awaited_is_got_later(client, sandbox):
    run = client.start(sandbox, "sleep 0.3; echo done",
                       await_completion=False)["run_id"]
    seen = client.call("get_run", run_id=run)
    assert seen["state"] in ("queued", "running")
    ended = client.call("get_run", run_id=run, wait_ms=45000)
    assert ended["state"] == "completed"
    assert ended["commands"][0]["stdout"] == "done\n"
    assert client.call("get_run", run_id=run) == ended


def test_a_run_that_there_is_not_is_named(client):
    for tool, more in (("control_run", {"action": "cancel"}), ("get_run", {})):
        text = client.fail(tool, run_id="00000000-0000-4000-8000-000000000000",
                           **more)
        assert f"{tool}: " in text and "is not known" in text
    assert "run_id" in client.fail("get_run", run_id="x" * 36)


def test_a_queued_run_says_what_it_waits_for(client, sandbox):
    first = client.start(sandbox, "sleep 60", lock_sandbox=True)["run_id"]
    second = client.start(sandbox, "true", lock_sandbox=True)["run_id"]
    client.wait_state(first)
    queued = client.call("get_run", run_id=second, wait_ms=100)
    assert queued["state"] == "queued"
    assert queued["waits_for"] == "lock"


def test_locked_runs_go_one_after_another_in_order(client, sandbox):
    runs = [client.start(
        sandbox, f"echo begin{i} >> log; sleep 0.1; echo end{i} >> log",
        lock_sandbox=True)["run_id"] for i in range(5)]
    for run in runs:
        assert client.wait_end(run)["state"] == "completed"
    log = client.out(sandbox, "cat log").split()
    assert log == [w for i in range(5) for w in (f"begin{i}", f"end{i}")]


def test_no_network_but_loopback(client, sandbox):
    assert client.out(sandbox, {"argv": [
        "python3", "-c",
        "import socket\n" "print([n for _, n in socket.if_nameindex()])\n"
        "s = socket.socket(); s.bind(('127.0.0.1', 0)); print('lo')\n"
        "try:\n socket.create_connection(('192.0.2.1', 80), 2)\n"
        "except OSError as e: print(e.errno)"]}) == "['lo']\nlo\n101\n"


def test_commands_hold_no_capability_and_gain_none(client, sandbox):
    text = "grep -E '^(Cap(Prm|Eff|Bnd|Amb)|NoNewPrivs|Seccomp):' " \
        "/proc/self/status"

    def values_of(**options):
        lines = client.out(sandbox, text, **options).splitlines()
        return dict(line.split(":\t") for line in lines)
    values = values_of()
    assert values["NoNewPrivs"] == "1"
    assert values["Seccomp"] == "2"
    assert int(values["CapEff"], 16) == 0 == int(values["CapPrm"], 16)
    assert int(values["CapBnd"], 16) == 0
    values = values_of(as_user="root")
    assert int(values["CapEff"], 16) == 0xcb
    assert int(values["CapBnd"], 16) == 0


def test_delete_is_idempotent_and_forgets_files(client, sandbox):
    client.run(sandbox, "echo x > f")
    for _ in range(2):
        out = client.delete(sandbox)
        assert out == {"tool": "delete_sandbox", "deleted": True,
                       "identifier": sandbox}
    assert client.out(sandbox, "ls") == ""


def test_restart_gives_a_fresh_container(client, sandbox):
    before = client.run(sandbox, "echo x > f")["sandbox_container_id"]
    out = client.call("restart_sandbox", identifier=sandbox,
                      options={"ttl_seconds": 60})
    box = out["sandbox"]
    assert box["identifier"] == sandbox
    assert box["container_id"] != before
    assert {"name", "created_at", "expires_at", "image"} <= set(box)
    final = client.run(sandbox, "ls")
    assert final["sandbox_container_id"] == box["container_id"]
    assert final["commands"][0]["stdout"] == ""


def test_delete_cancels_what_runs(client, sandbox):
    out = client.start(sandbox, "sleep 60")
    client.delete(sandbox)
    final = client.wait_end(out["run_id"])
    assert final["state"] == "canceled"


def test_two_hundred_parallel_runs_all_end_right(server, sandbox):
    finals = at_once([functools.partial(
        server.client().run, sandbox, f"echo {i}; exit {i % 7}", wait_ms=90000)
                      for i in range(200)])
    for i, final in enumerate(finals):
        assert stdout(final) == f"{i}\n"
        assert final["commands"][0]["exit_code"] == i % 7


def test_the_environments_values_are_not_shown(client, sandbox, server):
    final = client.run(sandbox, {"shell": "echo ${#KEY}",
                                 "env": {"KEY": "hunter2-secret"}})
    assert stdout(final) == "14\n"
    assert "hunter2" not in str(final["commands"][0].get("env"))
    assert "hunter2" not in "\n".join(server.log)


# ---- bad input

def test_a_body_that_is_too_large(server, client):
    client.initialize()
    assert client.post(b'"' + b"x" * (3 << 20) + b'"')[0] == 413
    assert server.get("/healthz")[0] == 200


@pytest.mark.parametrize("arguments, words", [
    ({"identifier": "a", "commands": [{}]},
     ["command 0", "shell or argv"]),
    ({"identifier": "a", "commands": [{"shell": "x", "cwd": "rel"}]},
     ["commands[0].cwd", "cwd must be absolute"]),
    ({"identifier": "a", "commands": [{"shell": "x"}], "extra": 1},
     ["extra"]),
    ({"identifier": "a", "commands": [{"shell": "x", "env": ["novalue"]}]},
     ["commands[0].env"]),
    ({"identifier": "a", "commands": [{"shell": "x"}],
      "options": {"default_cwd": "rel"}}, ["cwd must be absolute"]),
])
def test_wrong_arguments_are_named(client, arguments, words):
    text = client.fail("run_sandbox", **arguments)
    for word in words:
        assert word in text


def test_empty_arguments_that_are_optional_are_not_given(client, sandbox):
    """Some clients fill in every argument."""
    run = client.call("run_sandbox", identifier=sandbox, commands=[
        {"shell": "pwd; echo $USER", "argv": [], "cwd": "", "timeout_ms": 0}],
        options={"ttl_seconds": 0, "default_cwd": "", "as_user": "",
                 "await_completion": True, "await_timeout_ms": 0})
    assert run["final"]["commands"][0]["exit_code"] == 0
    assert run["final"]["commands"][0]["stdout"].startswith("/workspace\n")
    client.call("initialize_sandbox", image="", identifier=sandbox)
    assert client.call("execute_code", code="print(6 * 7)", language="",
                       identifier=sandbox)["output"] == "42\n"
    runs = client.call(
        "list_runs", identifier=sandbox, sandbox="", principal="", tool="",
        language="", state="", end_reason="", since="", until="",
        min_duration_ms=0, max_duration_ms=0, q="", artifact="", sort="",
        limit=0, cursor="")["runs"]
    assert len(runs) == 2
    boxes = client.call("list_sandboxes", identifier=sandbox, state="",
                        limit=0, cursor="")["sandboxes"]
    assert [b["identifier"] for b in boxes] == [sandbox]
    assert client.call("get_run", run_id=run["run_id"], wait_ms=0, cursor="",
                       artifacts_from=0)["state"] == "completed"
