"""Nothing of a run is alive after its end, and no run takes others along."""
import contextlib
import os
import signal
import time

import pytest

import wire
from host import wait_until
from wire import KILL_LEFTOVERS, Command, python, shell


def assert_empty(sandbox):
    """At the end's arrival only keepers may be there."""
    left = {p: a for p, a in sandbox.all_processes().items() if a}
    assert not any(b"agent" not in a for a in left.values()), left
    assert not sandbox.processes()


LEFTOVERS = {
    "a background child": "sleep 600 & echo x",
    "a session of its own": "setsid sleep 600 & echo x",
    "a double fork": "(setsid sh -c 'sleep 600 & sleep 601 &' &) ; echo x",
    "a stopped child": "sleep 600 & kill -STOP $!; echo x",
    "a deaf child": "sh -c 'trap \"\" TERM INT HUP; sleep 600' & echo x",
    "a tree": "for i in 1 2 3 4 5 6 7 8; do (sleep 600 & sleep 601 &"
              " (sleep 602 & sleep 603) &) & done; echo x",
    "nohup": "nohup sleep 600 >/dev/null 2>&1 & echo x",
}


@pytest.mark.parametrize("text", LEFTOVERS.values(), ids=LEFTOVERS.keys())
def test_what_a_command_leaves_behind_is_killed_on_request(
        sandbox, host, text):
    run = host.run(shell(text), flags=KILL_LEFTOVERS)
    assert_empty(sandbox)
    end = run.end()
    assert (end.reason, end.exit_code) == ("exit", 0)
    assert end.wall_us < 5000000


@pytest.mark.parametrize("text", LEFTOVERS.values(), ids=LEFTOVERS.keys())
def test_a_timeout_kills_all_of_it(sandbox, host, text):
    run = host.run(shell(text + "; sleep 600", timeout_ms=400))
    assert_empty(sandbox)
    assert run.end().reason == "timeout"


def test_a_cancel_kills_a_tree_at_once(sandbox, host):
    took = []
    for _ in range(10):
        run = host.start(shell(LEFTOVERS["a tree"] + "; sleep 600"))
        host.wait(lambda r=run: r.output() == b"x\n", "the tree is there")
        begin = time.monotonic()
        host.stop(run)
        took.append(time.monotonic() - begin)
        assert_empty(sandbox)
    took.sort()
    assert took[5] < 5, took  # a guard; it takes some milliseconds


def test_children_of_threads_are_found(sandbox, host):
    run = host.run(python(
        "import threading, os, time\n"
        "def go():\n"
        "    if os.fork() == 0: os.setsid(); time.sleep(600)\n"
        "    time.sleep(600)\n"
        "for i in range(5):\n"
        "    threading.Thread(target=go, daemon=True).start()\n"
        "time.sleep(0.2); print('x', flush=True); os._exit(0)"),
        flags=KILL_LEFTOVERS)
    assert run.output() == b"x\n"
    assert_empty(sandbox)


def test_a_fork_storm_ends_with_its_run(sandbox, host):
    run = host.run(python(
        "import os, resource, signal, time\n"
        "resource.setrlimit(resource.RLIMIT_NPROC, (200, 200))\n"
        "signal.signal(signal.SIGCHLD, signal.SIG_IGN)\n"
        "pid = -1\n"
        "while pid < 0:\n"  # others may use up uid 1000's processes
        "    try: pid = os.fork()\n"
        "    except OSError: time.sleep(0.01)\n"
        "if pid: time.sleep(600)\n"
        "os.setsid()\n"
        "while True:\n"
        "    try:\n"
        "        if os.fork() and os.getpid() % 3: os._exit(0)\n"
        "    except OSError: time.sleep(0.001)\n", timeout_ms=1500))
    assert run.end().reason == "timeout"
    sandbox.wait_empty(5)
    assert host.run(Command(["echo", "calm"])).output() == b"calm\n"


def test_a_chain_that_forks_and_exits_is_caught(sandbox, host):
    chain = ("import os\n"
             "while True:\n"
             "    if os.fork(): os._exit(0)\n"
             "    os.setsid()\n")
    run = host.run(shell(f"python3 -c '{chain}' & sleep 0.3; echo x"),
                   flags=KILL_LEFTOVERS)
    assert run.output() == b"x\n"
    sandbox.wait_empty(5)


def test_the_kill_of_one_run_leaves_the_others(sandbox, host):
    other = host.start(shell("setsid sh -c 'sleep 1; echo alive' & wait"))
    for _ in range(10):
        host.run(shell(LEFTOVERS["a tree"]), flags=KILL_LEFTOVERS)
    host.finish(other)
    assert other.output() == b"alive\n"
    assert other.end().exit_code == 0
    assert_empty(sandbox)


def test_no_zombies_pile_up(sandbox, host):
    for _ in range(30):
        host.run(shell("(sleep 0.001 &) ; (true &) ; setsid true &"))
    sandbox.wait_empty(2)


def test_root_killing_its_keeper_ends_the_run_as_a_signal(sandbox, host):
    run = host.run(python(
        "import os, time\n"
        "if os.fork() == 0: os.setsid(); time.sleep(600)\n"
        "print('x', flush=True)\n"
        "os.kill(os.getppid(), 9); time.sleep(600)"), user=wire.ROOT)
    end = run.end()
    assert run.output() == b"x\n"
    assert (end.reason, end.exit_code, end.signal) == ("signal", 137, 9)
    assert end.wall_us < 5000000
    sandbox.wait_empty(2)


def test_root_killing_every_keeper_harms_only_running_runs(sandbox, host):
    others = [host.begin(Command(["sleep", "600"])) for _ in range(5)]
    killer = host.run(python(
        "import os\n"
        "for p in os.listdir('/proc'):\n"
        "    try:\n"
        "        if open(f'/proc/{p}/comm').read() == 'keeper\\n':\n"
        "            os.kill(int(p), 9)\n"
        "    except OSError: pass\n"), user=wire.ROOT)
    host.finish(*others)
    assert killer.end().reason in ("signal", "exit")
    for run in others:
        assert (run.end().reason, run.end().exit_code) == ("signal", 137)
    assert host.run(Command(["echo", "next"])).output() == b"next\n"
    sandbox.wait_empty(2)


def signal_all(pids, sig):
    for pid in pids:
        with contextlib.suppress(ProcessLookupError):
            os.kill(pid, sig)


def keeper_of(host, **more):
    return int(host.run(python("import os; print(os.getppid())"),
                        **more).output())


def test_a_keeper_is_used_again(host):
    assert len({keeper_of(host) for _ in range(5)}) == 1


def test_when_all_is_done_one_keeper_waits(sandbox, host):
    runs = [host.begin(Command(["sleep", "600"])) for _ in range(20)]
    wait_until(lambda: len(sandbox.keepers()) == 20, "each has its keeper")
    host.stop(*runs[10:])
    wait_until(lambda: len(sandbox.keepers()) == 14, "four of ten are left")
    host.stop(*runs[:10])
    wait_until(lambda: len(sandbox.keepers()) == 1, "one is left")


@pytest.mark.parametrize("pause", [0, 0.0005, 0.1])
def test_a_keeper_that_was_killed_while_it_waited_is_replaced(
        sandbox, host, pause):
    first = keeper_of(host)
    for _ in range(30):
        signal_all(sandbox.keepers(), signal.SIGKILL)
        time.sleep(pause)
        # Given a job before it is dead, it may not take that with it.
        second = keeper_of(host)
        assert second != first
        first = second


def test_a_keeper_that_was_stopped_while_it_waited_goes_on(sandbox, host):
    first = keeper_of(host)
    for _ in range(20):
        signal_all(sandbox.keepers(), signal.SIGSTOP)
        assert keeper_of(host) == first


def test_a_signal_to_a_keeper_that_waits_hits_no_command(sandbox, host):
    for sig in (signal.SIGTERM, signal.SIGHUP, signal.SIGUSR1):
        signal_all(sandbox.keepers(), sig)
    run = host.run(Command(["echo", "whole"]))
    assert (run.output(), run.end().reason) == (b"whole\n", "exit")


@pytest.mark.parametrize("user", [wire.ROOT, wire.SANDBOX])
def test_a_command_begins_without_a_signal_of_its_keepers(host, user):
    """None is blocked or pending."""
    text = ("for line in open('/proc/self/status'):\n"
            "    if line[:6] in ('SigPnd', 'ShdPnd', 'SigBlk'):\n"
            "        print(int(line.split()[1], 16))\n")
    for _ in range(2):
        assert host.run(python(text), user=user).output() == b"0\n" * 3


def test_a_kill_that_comes_too_late_hits_no_other_command(host):
    for _ in range(200):
        run = host.start(Command(["true"]))
        host.cancel(run)
        again = host.start(Command(["echo", "whole"]))
        host.finish(run, again)
        assert run.end().reason in ("exit", "canceled")
        assert again.output() == b"whole\n"
        assert (again.end().reason, again.end().exit_code) == ("exit", 0)


def test_a_keepers_earlier_commands_are_not_in_the_cpu_time(host):
    busy = host.run(python("import time\n"
                           "while time.process_time() < 0.5: pass"))
    assert busy.end().cpu_us >= 500000
    assert host.run(Command(["true"])).end().cpu_us < 250000


def test_the_memory_of_the_largest_process_is_told(host):
    grown = host.run(shell("python3 -I -S -c 'x = b\"x\" * (64 << 20)';"
                           " true"))
    assert grown.end().exit_code == 0
    assert 64 << 20 <= grown.end().memory_peak_bytes < 256 << 20


def test_a_keepers_earlier_commands_are_not_in_the_memory(host):
    first = host.run(python("x = b'x' * (64 << 20)"))
    assert first.end().memory_peak_bytes >= 64 << 20
    assert host.run(Command(["true"])).end().memory_peak_bytes < 32 << 20


def test_a_killed_keeper_takes_no_other_run_down(sandbox, host):
    other = host.begin(shell(
        "setsid sh -c 'sleep 0.8; echo alive' & (sleep 600 &) ; wait $!"))
    for _ in range(5):
        run = host.run(python("import os, time\n"
                              "if os.fork(): os.kill(os.getppid(), 9)\n"
                              "os.setsid(); time.sleep(600)"),
                       user=wire.ROOT)
        assert run.end().reason == "signal"
    host.finish(other)
    assert other.output() == b"alive\n" and other.end().exit_code == 0


def test_a_stopped_keeper_does_not_stop_the_timeout(sandbox, host):
    run = host.run(python(
        "import os, time\n"
        "os.kill(os.getppid(), 19); print('x', flush=True); time.sleep(600)",
        timeout_ms=500), user=wire.ROOT)
    end = run.end()
    assert (end.reason, end.exit_code) == ("timeout", 137)
    assert run.output() == b"x\n"
    assert end.wall_us < 3000000
    sandbox.wait_empty(2)


# siginfo_t with a sender of the caller's choice: 0 is "from outside".
QUEUE_SIGNAL = """
import ctypes, os, signal, struct
info = struct.pack("<iiiiiI", signal.SIGTERM, 0, -1, 0, 0, 0).ljust(128, b"\\0")
number = {"x86_64": 129, "aarch64": 138}[os.uname().machine]
libc = ctypes.CDLL(None, use_errno=True)
print(libc.syscall(number, 1, int(signal.SIGTERM), info))
"""


@pytest.mark.parametrize("attack, printed", [
    (shell("for s in TERM KILL INT HUP QUIT USR1 CHLD STOP SEGV; do"
           " kill -$s 1; done; kill -1 -1 2>/dev/null"), b""),
    (python(QUEUE_SIGNAL), b"0\n")], ids=["kill", "forged"])
def test_root_cannot_end_the_agent_by_a_signal(host, attack, printed):
    run = host.run(attack, user=wire.ROOT)
    assert run.ended and run.output() == printed
    boot = host.hello["boot"]
    host.ping()
    host.reconnect()
    assert host.hello["boot"] == boot


def test_sigterm_from_outside_ends_the_agent_and_all_else(make_sandbox):
    sandbox = make_sandbox()
    run = sandbox.host.start(shell("setsid sleep 600 & sleep 600"))
    sandbox.host.wait(lambda: run.records, "it runs")
    os.kill(sandbox.pid, signal.SIGTERM)
    assert sandbox.child.wait(timeout=10) == 0


def test_many_runs_at_once_stay_apart(sandbox, host):
    runs = [host.start(shell(f"sleep 0.{i % 5}; echo {i}; exit {i % 7}"))
            for i in range(100)]
    host.finish(*runs)
    for i, run in enumerate(runs):
        assert run.output() == b"%d\n" % i
        assert run.end().exit_code == i % 7
    assert_empty(sandbox)


def test_one_run_too_many_is_refused(host):
    runs = [host.begin(Command(["sleep", "600"])) for _ in range(256)]
    more = host.start(Command(["true"]))
    host.finish(more)
    assert more.refused == "too many runs in this sandbox"
    host.stop(*runs)
    assert {r.end().reason for r in runs} == {"canceled"}
    again = host.start(Command(["true"]), key=more.key)
    assert host.finish(again).end().exit_code == 0


def test_an_idle_agent_sleeps(sandbox, host):
    host.run(shell("sleep 0.2 & sleep 0.01"), flags=KILL_LEFTOVERS)
    sandbox.wait_asleep()


def test_a_long_command_costs_no_wakeups(sandbox, host):
    run = host.begin(Command(["sleep", "600"], timeout_ms=600000))
    sandbox.wait_asleep(300000)
    host.stop(run)
