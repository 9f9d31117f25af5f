"""What the kernel does to a sandbox: memory and process limits.

These need a cgroup that the test can make: v1, or v2 with the memory and
pids controllers delegated.
"""
import os
import re
import uuid

import pytest

from host import wait_until
from wire import Command, python, shell

V1_MEMORY = "/sys/fs/cgroup/memory"
V1_PIDS = "/sys/fs/cgroup/pids"
V2 = "/sys/fs/cgroup"


class Cgroup:
    """A new group with one controller."""

    def __init__(self, v1, v1_name, v2_name, limit):
        name = f"agent-test-{uuid.uuid4().hex[:8]}"
        top = v1 if os.path.isdir(v1) else V2
        self.path = os.path.join(top, name)
        os.mkdir(self.path)
        self.write(v1_name if top == v1 else v2_name, str(limit))

    def write(self, name, text):
        with open(os.path.join(self.path, name), "w",
                  encoding="ascii") as f:
            f.write(text)

    def add(self, sandbox):
        """The sandbox with the keeper that waits there."""
        for pid in (sandbox.pid, *sandbox.all_processes()):
            self.write("cgroup.procs", str(pid))

    def is_removed(self):
        try:
            os.rmdir(self.path)
        except OSError:
            return False
        return True

    def remove(self):
        wait_until(self.is_removed, "the group is empty")


@pytest.fixture(name="limited")
def limited_fixture(make_sandbox):
    """limited(names of the limit in v1 and v2, limit): (sandbox, its group)"""
    made = []

    def limit(v1, *names, value):
        group = Cgroup(v1, *names, value)
        sandbox = make_sandbox(cgroup=group.path if v1 == V1_MEMORY else "")
        made.append((sandbox, group))
        group.add(sandbox)
        return sandbox, group

    yield limit
    for sandbox, group in made:
        sandbox.close()
        group.remove()


@pytest.fixture(name="small")
def small_fixture(limited):
    sandbox, _ = limited(V1_MEMORY, "memory.limit_in_bytes", "memory.max",
                         value=64 << 20)
    yield sandbox
    assert sandbox.is_agent_running(), "the agent died"


def with_pids(limited, n):
    sandbox, group = limited(V1_PIDS, "pids.max", "pids.max", value=n)
    return sandbox.host, group


EAT = "b = []\nwhile True: b.append(bytearray(1 << 20))"


def test_a_command_over_the_memory_limit_ends_with_reason_memory(small):
    run = small.host.run(python(EAT))
    end = run.end()
    assert (end.reason, end.exit_code, end.signal) == ("memory", 137, 9)
    check_said(small.host, run)


def check_said(host, run):
    host.ping()
    assert [(f["level"], f["text"], f["run"]) for f in host.said
            if f["what"] == "OUT_OF_MEMORY"] == [
                ("warn", "command 0, 1 processes", run.key)]


def test_kills_in_a_command_that_goes_on_are_said_of_it(small):
    run = small.host.run(shell(f"python3 -c '{EAT}'; true"))
    small.host.run(Command(["true"]))
    check_said(small.host, run)


def test_a_child_over_the_memory_limit_makes_the_shells_137_memory(small):
    run = small.host.run(shell(f"python3 -c '{EAT}'; exit $?"))
    assert (run.end().reason, run.end().exit_code) == ("memory", 137)


def test_a_kill_by_someone_else_is_not_memory(small):
    small.host.run(python(EAT))  # the counter is above zero from here on
    end = small.host.run(shell("kill -9 $$")).end()
    assert (end.reason, end.exit_code) == ("signal", 137)


def test_a_survivor_of_an_oom_kill_ends_as_it_ends(small):
    run = small.host.run(shell(f"python3 -c '{EAT}'; echo survived; exit 4"))
    assert run.output() == b"survived\n"
    assert (run.end().reason, run.end().exit_code) == ("exit", 4)
    assert run.end().memory_kills == 1


def test_each_command_says_how_many_were_killed_while_it_ran(small):
    eat = f"python3 -c '{EAT}'"
    run = small.host.run([
        shell("true"), shell(f"{eat}; {eat}; true"), shell("true"),
        shell(f"exec {eat}")])
    ends = [run.end(command) for command in range(4)]
    assert [(e.reason, e.memory_kills) for e in ends] == [
        ("exit", 0), ("exit", 2), ("exit", 0), ("memory", 1)]


def test_a_timeout_is_a_timeout_even_in_a_memory_shortage(small):
    run = small.host.run(shell(
        f"python3 -c '{EAT}'; python3 -c '{EAT}'; sleep 60",
        timeout_ms=4000))
    assert run.end().reason == "timeout"


def test_without_free_processes_a_run_says_so_and_the_next_works(limited):
    host, group = with_pids(limited, 20)
    hog = host.start(python(
        "import os, time\n"
        "while True:\n"
        "    try:\n"
        "        if os.fork() == 0: time.sleep(600)\n"
        "    except OSError: break\n"
        "print('full', flush=True); time.sleep(600)"))
    host.wait(lambda: hog.output() == b"full\n", "no process is left")
    end = host.run(Command(["true"])).end()
    found = re.fullmatch(
        rf"cannot start a process: (\d+) belong to run {hog.key}; "
        "control_run cancel or restart_sandbox", end.text)
    assert (end.reason, end.exit_code) == ("start_failed", 126)
    assert found and int(found[1]) >= 10, end.text
    host.stop(hog)
    assert host.run(Command(["true"])).end().exit_code == 0


def test_what_a_fork_bomb_left_is_named_with_its_run(limited):
    """Until somebody ends it, no command begins: each says how."""
    host, group = with_pids(limited, 20)
    assert host.run(shell("sleep 600 &")).end().exit_code == 0
    bomb = host.run(python(
        "import os, time\n"
        "while True:\n"
        "    try:\n"
        "        if os.fork() == 0: time.sleep(600)\n"
        "    except OSError: break"))
    left = bomb.left().count
    assert left >= 10
    for _ in range(2):
        end = host.run(Command(["true"])).end()
        assert (end.reason, end.exit_code, end.text) == (
            "start_failed", 126,
            f"cannot start a process: {left} left running by run "
            f"{bomb.key}; control_run kill or restart_sandbox")
    assert host.kill_left(bomb).killed == left
    wait_until(lambda: host.run(Command(["true"])).end().exit_code == 0,
               "a process is free")


def test_without_room_for_the_command_beside_its_keeper_it_says_so(limited):
    host, group = with_pids(limited, 2)
    for _ in range(2):
        end = host.run(Command(["true"])).end()
        assert (end.reason, end.text) == (
            "start_failed",
            "cannot start a process: Resource temporarily unavailable")
    group.write("pids.max", "3")
    assert host.run(Command(["true"])).end().exit_code == 0
