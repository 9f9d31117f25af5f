"""An agent that is not root, as in a Pod at the level "restricted"."""
import os
import signal

import pytest

import wire
from host import wait_until
from wire import Command, python, shell

USER = 1234
NO_ROOT = ("there is no root in this sandbox: all its commands run as user "
           f"{USER}")
# In the sandbox: all processes there, of which 1 is the agent.
PIDS = """
import os
pids = [int(p) for p in os.listdir("/proc") if p.isdigit()]
"""


@pytest.fixture(name="sandbox", params=["unix", "bridge"])
def sandbox_fixture(make_sandbox, request):
    sandbox = make_sandbox(carrier=request.param, user=str(USER))
    yield sandbox
    assert sandbox.is_agent_running(), "the agent died"


def test_a_command_is_of_the_agents_user_and_groups(host):
    run = host.run(shell("id -u; id -g; id -G; grep CapBnd /proc/self/status;"
                         " grep NoNewPrivs /proc/self/status"))
    assert run.output().split() == [
        b"1234", b"1234", b"1234", b"4321", b"CapBnd:", b"0" * 16,
        b"NoNewPrivs:", b"1"]


def test_root_is_refused_with_the_reason(host):
    run = host.run(shell("id"), user=wire.ROOT)
    end = run.end()
    assert (end.reason, end.exit_code, end.text) == (
        "start_failed", 126, NO_ROOT)
    run = host.run([Command(["id"]), Command(["id"])], user=wire.ROOT,
                   files=[("script", 0o755, b"#!/bin/sh\n")])
    assert run.end().text == NO_ROOT
    c = host.wait_close(host.process(shell("id"), user=wire.ROOT))
    assert c.closed[1] == NO_ROOT
    host.ping()


def test_its_files_are_there_and_gone_afterwards(sandbox, host):
    run = host.run(shell("exec /tmp/.run-*/script"),
                   files=[("script", 0o755, b"#!/bin/sh\nid -u\n")])
    assert run.output() == b"1234\n"
    assert not os.listdir(sandbox.path("/tmp"))


def test_files_are_written_read_and_listed(sandbox, host):
    assert host.write("made", b"by a client") == 0
    assert os.stat(sandbox.path("/workspace/made")).st_uid == USER
    assert host.read("/workspace", "made") == (b"by a client", 0)
    entries, code = host.walk("/workspace")
    assert (list(entries), code) == ([b"made"], 0)


def test_a_file_for_root_is_refused(sandbox, host):
    c = host.wait_close(host.start_write("made", owner=1))
    assert c.closed == (1, NO_ROOT)
    assert not os.listdir(sandbox.path("/workspace"))


def test_a_time_out_kills_the_whole_tree(sandbox, host):
    run = host.run(shell("setsid sleep 600 & (trap '' TERM; sleep 600) & wait",
                         timeout_ms=200))
    assert run.end().reason == "timeout"
    sandbox.wait_empty()


def test_what_is_left_behind_is_listed_and_killed(sandbox, host):
    run = host.run(shell("sleep 600 >/dev/null 2>&1 &"))
    assert host.list_left(run).total == 1
    host.kill_left(run)
    sandbox.wait_empty()


def test_a_command_looks_into_none_of_ours(sandbox, host):
    run = host.run(python(PIDS + """
looked = 0
for pid in pids:
    if pid == os.getpid():
        continue
    for name in "mem", "environ", "maps", "fd/0":
        try:
            open(f"/proc/{pid}/{name}", "rb")
            print(pid, name)
        except PermissionError:
            looked += 1
print(looked)
"""))
    bridged = len(sandbox.bridges)
    assert int(run.output()) >= 4 * (2 + bridged)


def test_a_command_that_kills_all_it_can_costs_its_own_run(sandbox, host):
    run = host.start(shell("kill -9 -1; sleep 600"))
    if sandbox.is_bridged:
        host.wait_closed()
        host.reconnect()
        host.attach(run)
    host.finish(run)
    assert run.end().reason == "signal"
    sandbox.wait_empty()
    assert host.run(shell("echo on")).output() == b"on\n"


def test_a_command_that_stops_all_it_can_is_ended_by_its_time(sandbox, host):
    run = host.start(shell("kill -STOP -1; sleep 600", timeout_ms=200))
    if sandbox.is_bridged:
        wait_until(lambda: run.ended or stopped(sandbox), "it is stopped")
        host.reconnect()
        sandbox.bridges[0].send_signal(signal.SIGCONT)  # nsenter stopped, too
        host.attach(run)
    host.finish(run)
    assert run.end().reason == "timeout"
    sandbox.wait_empty()


def stopped(sandbox):
    for pid in sandbox.running_bridges():
        with open(f"/proc/{pid}/stat", encoding="latin-1") as f:
            if f.read().rsplit(")", 1)[1].split()[0] == "T":
                return True
    return False


def test_a_home_that_is_not_its_own_is_none(host):
    run = host.run(shell('echo "$HOME $USER"; cd ~ && echo x >y'))
    assert run.output() == b"/workspace sandbox\n"
    assert run.end().exit_code == 0
