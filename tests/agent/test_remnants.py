"""What a command leaves behind lives on, and stays in our hands."""
import errno
import os
import signal
import time

import pytest

import wire
from host import wait_until
from wire import Command, python, shell

ESRCH = 3
CRUMBS = {
    "a background child": "sleep 600 & echo x",
    "nohup": "nohup sleep 600 >/dev/null 2>&1 & echo x",
    "a session of its own": "setsid sleep 600 & echo x",
    "a double fork": "(setsid sh -c 'sleep 600 & exit' &) ; sleep 0.1;"
                     " echo x",
    "a stopped child": "sleep 600 & sleep 0.1; kill -STOP $!; echo x",
}


def sleepers(sandbox):
    return [p for p, a in sandbox.processes().items()
            if a.startswith(b"sleep\x00600")]


def left_pids(sandbox, listed):
    """Of processes of the list, outside."""
    want = {pid for _, pid, *_ in listed.processes}
    found = {}
    for pid in sandbox.processes():
        try:
            with open(f"/proc/{pid}/status", encoding="ascii",
                      errors="replace") as f:
                inside = next(int(line.split()[-1]) for line in f
                              if line.startswith("NSpid:"))
        except (OSError, StopIteration):
            continue
        if inside in want:
            found[inside] = pid
    return found


@pytest.mark.parametrize("text", CRUMBS.values(), ids=CRUMBS.keys())
def test_what_a_command_leaves_behind_lives_on(sandbox, host, text):
    run = host.run(shell(text))
    end = run.end()
    assert (end.reason, end.exit_code) == ("exit", 0)
    assert run.output() == b"x\n"
    left = run.left()
    assert (left.count, left.killed) == (1, False)
    number, pid, _ = left.shown[0]
    wait_until(lambda: len(sleepers(sandbox)) == 1, "its exec")
    listed = host.list_left(run)
    assert (listed.total, listed.count) == (1, 1)
    assert listed.processes == [(number, pid, 0, "sleep 600")]
    assert host.run(Command(["echo", "next"])).output() == b"next\n"
    killed = host.kill_left(run)
    assert (killed.killed, killed.count) == (1, 0)
    sandbox.wait_empty()


def test_a_command_that_leaves_nothing_says_nothing(host):
    run = host.run(shell("sleep 0.01 & wait; true | cat; echo > >(cat)"))
    assert run.left().count == 0
    assert host.list_left(run).logs == []
    assert host.list_left(run).total == 0


def test_a_keeper_with_leftovers_takes_no_other_job(sandbox, host):
    parent = python("import os; print(os.getppid())")
    first = int(host.run(parent).output())
    run = host.run(shell("sleep 600 & true"))
    second = int(host.run(parent).output())
    assert second != first
    assert int(host.run(parent).output()) == second
    cpu = host.run(Command(["true"])).end().cpu_us
    assert cpu < 250000
    host.kill_left(run)
    wait_until(lambda: len(sandbox.keepers()) == 1, "it has ended, too")


def test_what_is_printed_later_is_in_the_log(host):
    run = host.run(shell("(while [ ! -e /tmp/go ]; do sleep 0.01; done;"
                         " echo late; echo err >&2) & echo soon"))
    assert run.output() == b"soon\n"
    listed = host.list_left(run)
    assert [(log.state, log.bytes) for log in listed.logs] == [("running", 0)]
    assert host.run(shell("touch /tmp/go")).end().exit_code == 0

    def is_over():
        return host.list_left(run).logs[0].state == "ended"

    wait_until(is_over, "it has ended")
    log = host.list_left(run).logs[0]
    assert (log.output, log.bytes) == (b"late\nerr\n", 9)
    assert host.list_left(run).count == 0


def test_the_log_keeps_the_end_and_counts_all(host):
    run = host.run(python(
        "import os, time\n"
        "if os.fork(): os._exit(0)\n"
        "while not os.path.exists('/tmp/go'): time.sleep(0.01)\n"
        "for i in range(100000): os.write(1, b'%07d\\n' % i)\n"
        "open('/tmp/done', 'w')"))
    host.run(shell("touch /tmp/go; while [ ! -e /tmp/done ];"
                   " do sleep 0.01; done"))
    wait_until(lambda: host.list_left(run).logs[0].bytes == 800000,
               "all was read")
    log = host.list_left(run).logs[0]
    lines = log.output.split(b"\n")
    assert lines[-2:] == [b"0099999", b""]
    assert len(log.output) == 32768


def test_an_endless_printer_does_not_take_the_agents_time(sandbox, host):
    run = host.run(shell("yes & echo x"))
    host.ping()
    wait_until(lambda: host.list_left(run).logs[0].bytes > 1 << 20,
               "it prints")
    before, begin = sandbox.cpu_ticks(), time.monotonic()
    time.sleep(1)
    took = (sandbox.cpu_ticks() - before) / os.sysconf("SC_CLK_TCK")
    assert took < 0.5 * (time.monotonic() - begin)
    host.kill_left(run)
    sandbox.wait_empty()


def test_one_is_killed_with_all_below_it_and_others_live(sandbox, host):
    run = host.run(shell("sh -c 'sleep 601 & sleep 602; true' & sleep 600 &"
                         " sleep 0.1; echo x"))
    wait_until(lambda: sum(p[3].startswith("sleep")
                           for p in host.list_left(run).processes) == 3,
               "their exec")
    listed = host.list_left(run)
    assert listed.count == 4
    parent = next(p for p in listed.processes if p[3].startswith("sh -c"))
    after = host.kill_left(run, parent[0])
    assert after.killed == 3
    wait_until(lambda: host.list_left(run).count == 1, "they are dead")
    assert host.list_left(run).processes[0] in listed.processes
    assert host.ask_left(run, 1, parent[0]).code == ESRCH
    assert host.ask_left(run, 1, 12345).code == ESRCH
    wait_until(lambda: len(sandbox.processes()) == 1, "they are dead")


def test_another_run_has_no_hand_on_them(host):
    run = host.run(shell("sleep 600 & echo x"))
    other = host.run(Command(["true"]))
    number = run.left().shown[0][0]
    assert host.ask_left(other, 1, number).code == ESRCH
    assert host.kill_left(other).killed == 0
    assert host.list_left(other).total == 1
    assert host.list_left(other).count == 0
    assert host.list_left(run).count == 1


def test_a_later_cancel_kills_its_own_only(sandbox, host):
    run = host.run(shell("sleep 600 & echo x"))
    busy = host.start([shell("sleep 601 & echo y"), shell("sleep 602")])
    host.wait(lambda: busy.commands_ended == 1, "the second command is on")
    assert host.list_left(busy).count == 1
    host.stop(busy)
    wait_until(lambda: len(sandbox.processes()) == 1, "its tree is dead", 5)
    assert [p[0] for p in host.list_left(run).processes] == \
        [run.left().shown[0][0]]
    assert host.list_left(busy).logs[0].state == "killed"


def test_a_timeout_ends_what_earlier_commands_of_the_run_left(sandbox, host):
    run = host.run([shell("setsid sleep 600 & echo y"),
                    shell("sleep 601 & sleep 602", timeout_ms=300)])
    assert run.end(1).reason == "timeout"
    assert run.left(1).count == 0
    sandbox.wait_empty(5)


def test_a_timeout_that_may_be_leaves_earlier_ones(sandbox, host):
    run = host.run([
        shell("sleep 600 & echo y"),
        Command(["sleep", "602"], timeout_ms=300, flags=wire.ALLOW_FAILURE),
        Command(["true"])])
    assert not run.run_end.failed
    wait_until(lambda: len(sleepers(sandbox)) == 1, "its exec")


def test_a_cancel_while_output_is_drained_kills_them(sandbox, host):
    run = host.start(python(
        "import os, time\n"
        "if os.fork() == 0: time.sleep(600)\n"
        "left = b'x' * 1400000\n"  # more than the log has room for
        "while left: left = left[os.write(1, left):]"),
        window=8192, auto_ack=False)
    host.wait(lambda: run.length > 4096, "output waits")
    wait_until(lambda: len(sandbox.processes()) <= 1, "the command ended")
    host.ping()
    assert not run.ended
    host.cancel(run)
    run.auto_ack = True
    run.window = wire.WINDOW
    host.ack(run)
    host.finish(run)
    sandbox.wait_empty(5)


def test_numbers_and_processes_survive_the_loss_of_the_link(host):
    run = host.run(shell("sleep 600 & echo x"))
    before = host.list_left(run)
    host.reconnect()
    assert host.left == 1
    assert host.list_left(run).processes == before.processes
    host.kill_left(run)
    host.ping()
    assert host.left == 0


def test_groups_are_bounded_and_ended_ones_give_way(sandbox, host):
    runs = [host.run(shell("sleep 600 & echo x")) for _ in range(16)]
    more = host.run(shell("sleep 600 & sleep 601 & echo x"))
    assert (more.left().count, more.left().killed) == (2, True)
    wait_until(lambda: len(sandbox.processes()) == 16, "those are dead")
    host.kill_left(runs[3])
    again = host.run(shell("sleep 600 & echo x"))
    assert (again.left().count, again.left().killed) == (1, False)
    assert host.list_left(runs[3]).logs == []
    assert host.list_left(again).total == 16


def test_their_command_line_is_made_fit_to_be_read(host):
    run = host.run(python(
        "import os\n"
        "if os.fork() == 0:\n"
        "    os.execv('/usr/bin/python3',"
        " [b'evil\\x1b[31m\\n\\xc3\\xa9\\xff\\xc2\\x9b1m\\x7f',"
        " '-c', 'import time; time.sleep(600)', 'x' * 500])\n"
        "import time; time.sleep(0.1)"))
    wait_until(lambda: "evil" in host.list_left(run).processes[0][3],
               "its exec")
    text = host.list_left(run).processes[0][3]
    assert text.startswith("evil?[31m?\u00e9??1m? -c import time; "
                           "time.sleep(600) xxx")
    assert len(text.encode()) == 199  # of 200, two became one
    assert len(run.left().shown[0][2].encode()) <= 96


def test_many_are_counted_and_a_bounded_number_told(host):
    run = host.run(shell("for i in $(seq 100); do sleep 600 & done; echo x"))
    assert run.left().count == 100
    assert len(run.left().shown) == 6
    listed = host.list_left(run)
    assert (listed.count, len(listed.processes)) == (100, 64)
    assert host.kill_left(run).killed == 100
    assert host.list_left(run).count == 0


def test_root_killing_the_keeper_ends_what_it_stayed_with(sandbox, host):
    run = host.run(shell("sleep 600 & echo x"))
    for pid in sandbox.keepers():
        os.kill(pid, signal.SIGKILL)
    sandbox.wait_empty()
    assert host.list_left(run).logs[0].state == "ended"
    assert host.run(Command(["echo", "next"])).output() == b"next\n"


def test_a_stopped_keeper_does_not_protect_them(sandbox, host):
    run = host.run(shell("sleep 600 & echo x"))
    for pid in sandbox.keepers():
        os.kill(pid, signal.SIGSTOP)
    assert host.kill_left(run).killed == 1
    sandbox.wait_empty()


def test_a_fork_storm_that_was_left_can_be_killed(sandbox, host):
    run = host.run(python(
        "import os, resource, signal, time\n"
        "resource.setrlimit(resource.RLIMIT_NPROC, (200, 200))\n"
        "signal.signal(signal.SIGCHLD, signal.SIG_IGN)\n"
        "if os.fork(): os._exit(0)\n"
        "os.setsid()\n"
        "while True:\n"
        "    try:\n"
        "        if os.fork() and os.getpid() % 3: os._exit(0)\n"
        "    except OSError: time.sleep(0.001)\n"))
    assert run.left().count > 0
    host.kill_left(run)
    sandbox.wait_empty(5)
    assert host.run(Command(["echo", "calm"])).output() == b"calm\n"


def test_a_process_channel_leaves_nothing(sandbox, host):
    c = host.process(shell("sleep 600 & echo x"))
    host.wait_close(c)
    assert not sandbox.processes()
    assert host.left is not None


def test_an_agent_with_leftovers_sleeps(sandbox, host):
    host.run(shell("sleep 600 & echo x"))
    sandbox.wait_asleep()


@pytest.mark.parametrize("kind, arguments, limit, code", [
    (0, b"", wire.WINDOW, errno.EINVAL),
    (1, bytes(19), wire.WINDOW, errno.EINVAL),
    (0, bytes(21), wire.WINDOW, errno.EINVAL),
    (0, bytes(20), 59999, errno.EINVAL),
    (1, bytes(16) + b"\1\0\0\0", wire.WINDOW, ESRCH),
    (2, bytes(20), wire.WINDOW, errno.ENOSYS),
    (255, b"", wire.WINDOW, errno.ENOSYS)])
def test_a_question_that_cannot_be_answered_is_refused(
        host, kind, arguments, limit, code):
    c = host.wait_close(
        host.open("OPEN_ASK", limit, kind=kind, arguments=arguments))
    assert (c.code, bytes(c.data)) == (code, b"")
    assert host.run(Command(["echo", "on"])).output() == b"on\n"
