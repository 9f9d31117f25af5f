"""The channel kind "process", and what holds for channels of every kind."""

import pytest

import wire
from host import Channel, wait_until
from wire import Command, python, shell

OUT, ERR = 1, 2
EINVAL, EAGAIN = 22, 11


def output(c, stream=OUT):
    return bytes(c.streams.get(stream, b""))


def test_a_process_has_two_streams_and_an_exit(host):
    c = host.wait_close(host.process(shell("echo out; echo err >&2; exit 3")))
    assert (output(c, OUT), output(c, ERR)) == (b"out\n", b"err\n")
    assert (c.exited["reason"], c.exited["exit_code"]) == ("exit", 3)
    assert c.exited["signal"] == 0 and c.exited["wall_us"] > 0
    assert c.closed == (0, "")


def test_a_process_that_cannot_start_says_why(host):
    c = host.wait_close(host.process(Command(["/nope"])))
    assert c.exited["reason"] == "start_failed"
    assert c.exited["exit_code"] == 127
    assert c.exited["text"] == "program /nope: No such file or directory"
    assert c.code == 0


def test_a_process_has_user_cwd_environment_and_time(host):
    c = host.wait_close(host.process(
        shell("id -u; pwd; echo $X", env=["X=y"], cwd="/tmp"),
        user=wire.ROOT))
    assert output(c) == b"0\n/tmp\ny\n"
    c = host.wait_close(host.process(shell("sleep 600", timeout_ms=50)))
    assert (c.exited["reason"], c.exited["exit_code"]) == ("timeout", 137)


@pytest.mark.parametrize("spec", [
    wire.pack_spec([Command(["a"]), Command(["b"])]),
    wire.pack_spec([Command(["a"])], files=[("f", 0o600, b"")]),
    wire.pack_spec([Command(["a"], flags=wire.DENIED)]),
    b"", b"\xff" * 40], ids=["two", "files", "denied", "empty", "noise"])
def test_what_is_no_single_process_is_refused(host, spec):
    c = host.wait_close(host.open("OPEN_PROCESS", spec=spec))
    assert c.code == EINVAL and c.closed[1] and not c.exited


def test_output_stays_within_credit_and_is_not_lost(host):
    c = host.process(python("import os\n"
                            "for i in range(40000): os.write(1, b'%07d' % i)"
                            "\nos.write(2, b'e')"), window=1000)
    c.auto_credit = False
    for got in range(0, 280000, 1000):
        host.wait(lambda n=got: len(output(c)) == n + 1000, "more")
        host.credit(c, got + 1000, OUT)
    host.wait_close(c)
    assert output(c) == b"".join(b"%07d" % i for i in range(40000))
    assert output(c, ERR) == b"e"


def test_zero_credit_blocks_the_program(host):
    c = host.process(shell("head -c 4000000 /dev/zero; echo x >&2"),
                     window=0)
    run = host.run(shell("sleep 0.3; cat /proc/[0-9]*/cmdline | tr '\\0' ' '"
                         " | grep -c 'head -c 4000000'"))
    assert int(run.output()) >= 1  # it stands in its write
    host.ping()
    assert not c.streams and not c.exited
    c.window = wire.WINDOW
    for stream in (OUT, ERR):
        host.credit(c, 0, stream)
    host.wait_close(c)
    assert output(c) == bytes(4000000) and output(c, ERR) == b"x\n"


TREE = ("for i in 1 2 3; do (sleep 600 & setsid sleep 601 &"
        " (setsid sleep 602 &) &) & done; echo up; sleep 603")


def test_a_close_kills_the_whole_tree(sandbox, host):
    c = host.process(shell(TREE))
    host.wait(lambda: output(c) == b"up\n", "the tree is there")
    host.close(c)
    sandbox.wait_empty()
    host.ping()


def test_a_close_kills_one_that_is_blocked_on_its_output(sandbox, host):
    c = host.process(shell("yes"), window=0)
    wait_until(sandbox.processes, "it runs")
    host.close(c)
    sandbox.wait_empty()


def test_a_cancel_kills_the_tree_and_its_end_is_told(sandbox, host):
    c = host.process(shell(TREE))
    host.wait(lambda: output(c) == b"up\n", "the tree is there")
    host.send("CANCEL", chan=c.number, reason=wire.CANCELED)
    host.wait_close(c)
    assert (c.exited["reason"], c.exited["signal"]) == ("canceled", 9)
    assert not sandbox.processes()


def test_processes_die_with_the_link_and_runs_do_not(sandbox, host):
    run = host.start(shell("echo run; sleep 0.5; echo done"))
    c = host.process(shell(TREE))
    host.wait(lambda: output(c) == b"up\n" and run.output(), "both run")
    host.reconnect()
    wait_until(lambda: not any(b"60" in a for a in
                               sandbox.processes().values()), "it is dead")
    host.attach(run)
    host.finish(run)
    assert run.output() == b"run\ndone\n"


def test_at_most_64_processes_have_a_channel(sandbox, host):
    some = [host.process(Command(["sleep", "600"])) for _ in range(65)]
    assert host.wait_close(some.pop()).code == EAGAIN
    for c in some:
        host.close(c)
    sandbox.wait_empty()
    assert output(host.wait_close(host.process(shell("echo x")))) == b"x\n"


def kinds(host):
    """A channel of each kind that does not end by itself."""
    host.run(shell("touch /workspace/f"))
    run = host.start(shell("sleep 600"))
    host.wait(lambda: run.known, "it runs")
    other = Channel(run.chan)
    return {"sequence": other,
            "process": host.process(Command(["sleep", "600"])),
            "read": host.start_read("/workspace", "f", window=0),
            "write": host.start_write("w"),
            "walk": host.open("OPEN_WALK", 0, root="/workspace")}


LATE = {"CREDIT": {"limit": 10}, "CANCEL": {"reason": wire.CANCELED},
        "CLOSE": {}, "STREAM_END": {}, "DATA": {"bytes": b"x"}}


@pytest.mark.parametrize("name", LATE)
def test_frames_that_crossed_with_a_close_are_passed_over(
        sandbox, host, name):
    for c in kinds(host).values():
        host.send("CLOSE", chan=c.number)
        host.send(name, chan=c.number, **LATE[name])
    host.ping()
    sandbox.wait_empty()


@pytest.mark.parametrize("name", LATE)
def test_frames_that_crossed_with_the_agents_close_are_passed_over(
        host, name):
    ended = [host.wait_close(c) for c in (
        host.process(Command(["true"])), host.start_read("/", "etc/passwd"),
        host.start_read("/", "nope"),
        host.open("OPEN_WALK", root="/workspace"))]
    for c in ended:
        host.send(name, chan=c.number, **LATE[name])
    host.ping()


def test_an_agent_with_channels_of_every_kind_keeps_no_file_open(
        sandbox, host):
    host.run(Command(["true"]))
    host.ping()  # a command's pipes are closed behind its end
    before = sandbox.open_files()
    for c in kinds(host).values():
        host.send("CLOSE", chan=c.number)
    host.ping()
    sandbox.wait_empty()
    wait_until(lambda: sandbox.open_files() <= before, "all is closed")
