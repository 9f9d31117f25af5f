"""How commands end, and what is said about it."""
import signal
import uuid

import pytest

import wire
from wire import Command, python, shell


def test_true_exits_with_0(host):
    run = host.run(Command(["true"]))
    assert run.known == {"fresh": 1, "length": 0}
    end = run.end()
    assert (end.reason, end.exit_code, end.signal) == ("exit", 0, 0)
    assert run.run_end == wire.RunEnd("exit", False, False, 0)


@pytest.mark.parametrize("code", [1, 3, 126, 127, 255])
def test_an_exit_code_is_reported(host, code):
    run = host.run(shell(f"exit {code}"))
    assert (run.end().reason, run.end().exit_code) == ("exit", code)
    assert run.run_end.failed


@pytest.mark.parametrize("name", ["SIGTERM", "SIGKILL", "SIGSEGV", "SIGHUP"])
def test_death_by_a_signal_is_128_and_its_number(host, name):
    number = int(getattr(signal, name))
    run = host.run(python(f"import os; os.kill(os.getpid(), {number})"))
    end = run.end()
    assert (end.reason, end.exit_code, end.signal) == (
        "signal", 128 + number, number)


def test_both_streams_arrive_apart(host):
    run = host.run(shell("echo out; echo err >&2"))
    assert run.output() == b"out\n"
    assert run.output(wire.STDERR) == b"err\n"


def test_streams_keep_the_order_in_which_they_were_read(host):
    text = ("import os, time\n"
            "for i in range(6):\n"
            "    os.write(1 + i % 2, b'%d' % i); time.sleep(0.03)")
    run = host.run(python(text))
    order = [r.payload for r in run.records
             if r.kind in (wire.STDOUT, wire.STDERR)]
    assert order == [b"0", b"1", b"2", b"3", b"4", b"5"]


def test_merged_stderr_goes_where_stdout_goes(host):
    run = host.run(shell("echo a; echo b >&2; echo c",
                         flags=wire.MERGE_STDERR))
    assert run.output() == b"a\nb\nc\n"
    assert run.output(wire.STDERR) == b""


def test_stdin_is_empty(host):
    assert host.run(Command(["cat"])).end().exit_code == 0


@pytest.mark.parametrize("timeout_ms", [50, 300, 1300])
def test_a_timeout_holds_in_milliseconds(host, timeout_ms):
    run = host.run(Command(["sleep", "60"], timeout_ms=timeout_ms))
    end = run.end()
    assert (end.reason, end.exit_code) == ("timeout", 137)
    assert timeout_ms <= end.wall_us / 1000 < timeout_ms + 10000
    assert run.run_end == wire.RunEnd("exit", True, False, 0)


def test_a_timeout_keeps_the_output_up_to_it(host):
    run = host.run(shell("echo before; sleep 60", timeout_ms=300))
    assert run.end().reason == "timeout"
    assert run.output() == b"before\n"


def test_a_timeout_cannot_be_ignored(host):
    text = ("import signal, time\n"
            "for s in range(1, 65):\n"
            "    try: signal.signal(s, signal.SIG_IGN)\n"
            "    except (OSError, ValueError): pass\n"
            "print('deaf', flush=True); time.sleep(60)")
    run = host.run(python(text, timeout_ms=500))
    assert run.output() == b"deaf\n"
    assert run.end().reason == "timeout"


def test_exit_137_without_memory_trouble_is_an_exit(host):
    assert host.run(shell("exit 137")).end().reason == "exit"


def test_cpu_time_of_grandchildren_is_counted(host):
    run = host.run(shell("(i=0; while [ $i -lt 200000 ]; do i=$((i+1));"
                         " done); true"))
    assert run.end().cpu_us > 50000
    assert run.end().wall_us > 50000


def test_cancel_kills_the_command_and_starts_no_other(host):
    run = host.begin([Command(["sleep", "60"]), Command(["true"])])
    host.stop(run)
    end = run.end()
    assert (end.reason, end.exit_code, end.signal) == ("canceled", 137, 9)
    assert run.run_end == wire.RunEnd("canceled", True, False, 0)
    assert run.commands_ended == 1


def test_cancel_carries_the_reason_it_was_given(host):
    run = host.begin(Command(["sleep", "60"]))
    host.cancel(run, wire.OUTPUT_LIMIT)
    host.finish(run)
    assert run.end().reason == "output_limit"
    assert run.run_end.reason == "output_limit"


def test_cancel_of_a_finished_or_unknown_run_does_nothing(host):
    run = host.run(Command(["true"]))
    host.cancel(run)
    run.key = uuid.uuid4()
    host.cancel(run)
    host.ping()


@pytest.mark.parametrize("words, allowed, flags, ended, end", [
    (["true", "false", "true"], (), 0, 2, wire.RunEnd("exit", True, False, 1)),
    (["false", "true"], (0,), 0, 2, wire.RunEnd("exit", False, False, 0)),
    (["false", "true", "false"], (), wire.CONTINUE_ON_ERROR, 3,
     wire.RunEnd("exit", True, False, 0)),
    (["/nope", "true"], (), 0, 1, wire.RunEnd("exit", True, False, 0)),
    (["/nope", "true"], (0,), 0, 2, wire.RunEnd("exit", False, False, 0)),
], ids=["the first stops", "allowed", "continue", "no start", "allowed start"])
def test_how_a_failure_goes_on(host, words, allowed, flags, ended, end):
    run = host.run([Command([w], flags=wire.ALLOW_FAILURE if i in allowed
                            else 0) for i, w in enumerate(words)], flags=flags)
    assert (run.commands_ended, run.run_end) == (ended, end)


def test_commands_run_one_after_another(host):
    run = host.run([shell(f"sleep 0.05; echo {i} >> log") for i in range(4)]
                   + [Command(["cat", "log"])])
    assert run.output(command=4) == b"0\n1\n2\n3\n"


def test_as_many_commands_as_a_run_may_have(host):
    run = host.run([Command(["echo", str(i)]) for i in range(64)])
    assert [run.output(command=i) for i in range(64)] == [
        b"%d\n" % i for i in range(64)]
    assert not run.run_end.failed


def test_a_denied_command_is_not_executed(host):
    denied = Command(["docker ps; touch /workspace/ran"], deny=r"\bdocker\b",
                     flags=wire.SHELL | wire.DENIED)
    run = host.run([denied, Command(["true"])])
    end = run.end()
    assert (end.reason, end.exit_code, end.text) == (
        "denied", 1, r"\bdocker\b")
    assert run.run_end == wire.RunEnd("exit", True, False, 0)
    assert host.run(Command(["ls"])).output() == b""


@pytest.mark.parametrize("argv, cwd, code, text", [
    (["no-such-program"], "/workspace", 127,
     "program no-such-program: not found; this image has: "),
    (["/no/such"], "/workspace", 127,
     "program /no/such: No such file or directory"),
    (["true"], "/nope", 126, "cwd /nope: No such file or directory"),
    (["true"], "/etc/passwd", 126, "cwd /etc/passwd: Not a directory"),
    (["true"], "/root/x", 126, "cwd /root/x: No such file or directory"),
    (["/etc/passwd"], "/workspace", 126,
     "program /etc/passwd: Permission denied"),
    (["/etc"], "/workspace", 126, "program /etc: Permission denied"),
    (["group"], "/etc", 127,
     "program group: not found; this image has: "),
])
def test_what_cannot_start_says_why(host, argv, cwd, code, text):
    command = Command(argv, cwd=cwd, env=["PATH=/usr/sbin:/bin:/usr/lib"])
    end = host.run(command).end()
    assert (end.reason, end.exit_code, end.signal) == (
        "start_failed", code, 0)
    assert end.text.startswith(text)


@pytest.mark.parametrize("setup, command, code, text", [
    ("mkdir d; echo x > d/prog; chmod 644 d/prog",
     Command(["prog"], env=["PATH=/workspace/d:/nope"]), 126,
     "program prog: Permission denied"),
    ("echo hi > t; chmod 755 t", Command(["./t"]), 126,
     "program ./t: Exec format error"),
    ("mkdir -m 0 secret", Command(["true"], cwd="/workspace/secret"), 126,
     "cwd /workspace/secret: Permission denied"),
], ids=["no permission", "a text file", "a closed cwd"])
def test_what_the_sandbox_has_and_cannot_be_started_says_why(
        host, setup, command, code, text):
    host.run(shell(setup))
    end = host.run(command).end()
    assert (end.reason, end.exit_code, end.text) == (
        "start_failed", code, text)


def test_a_program_runs_as_any_other_is_scheduled(host):
    run = host.run([Command(["cut", "-d", " ", "-f", "41", "/proc/self/stat"]),
                    Command(["id", "-G"])])
    assert run.output() == b"0\n"  # SCHED_OTHER
    assert run.output(command=1) == b"1000\n"


def test_as_many_arguments_as_a_spec_may_have_arrive(host):
    most = ["true"] + ["x" * 131000] * 15 + ["y" * 60000]
    end = host.run(Command(most)).end()
    assert end.exit_code == 0


def test_a_program_with_a_very_long_name_says_why_it_cannot_start(host):
    end = host.run(Command(["x" * 5000])).end()
    assert end.reason == "start_failed"
    assert ": not found; this image has: " in end.text


def test_artifacts_are_noticed(host):
    assert not host.run(Command(["true"])).run_end.artifacts
    assert host.run(shell("touch /artifacts/.x")).run_end.artifacts
    assert not host.run(shell("rm /artifacts/.x")).run_end.artifacts


def test_the_largest_program_and_path_beside_the_most_arguments(sandbox, host):
    """The name and PATH are in the keeper's job twice."""
    command = Command(["x" * 131000] + ["y" * 131000] * 13,
                      env=["PATH=" + "/p" * 65000])
    end = host.run(command).end()
    assert end.reason == "start_failed"
    assert sandbox.is_agent_running()
    assert host.run(Command(["true"])).end().exit_code == 0
