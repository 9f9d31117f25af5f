"""The link may go at any moment; the runs do not notice."""
import errno
import hashlib
import os
import struct
import time
import uuid

import pytest

import wire
from host import Channel, WAIT_S, wait_until
from wire import Command, python, shell


def test_the_hello_names_version_boot_and_no_runs(host):
    assert host.hello["version"] == wire.VERSION
    assert host.hello["runs"] == 0
    assert host.hello["boot"].int != 0


def test_nothing_is_sent_before_the_welcome(sandbox, host):
    run = host.start(shell("sleep 0.2; echo x"))
    host.wait(lambda: run.known, "it runs")
    host.drop()
    host.accept(welcome=False)
    length = run.length
    host.pump(0.6)
    assert run.length == length and not host.channels
    host.welcome()
    host.attach(run)
    host.finish(run)
    assert run.output() == b"x\n"


def test_the_agent_comes_back_at_once_and_is_the_same(host):
    boot = host.hello["boot"]
    for _ in range(5):
        host.drop()
        begin = time.monotonic()
        host.accept()
        assert time.monotonic() - begin < 10
        assert host.hello["boot"] == boot


def test_the_agent_waits_for_a_host_that_is_away(sandbox, host):
    host.stop_listening()
    host.drop()
    time.sleep(1.2)  # several attempts
    before = sandbox.switches()
    time.sleep(1)
    assert sandbox.switches() - before <= 6  # every 500 ms, not more
    host.listen()
    begin = time.monotonic()
    host.accept()
    assert time.monotonic() - begin < 10
    assert host.run(Command(["true"])).end().exit_code == 0


def test_a_host_that_comes_late_is_found(make_sandbox):
    sandbox = make_sandbox(accept=False)
    sandbox.host.accept()
    assert sandbox.host.run(Command(["true"])).end().exit_code == 0


def test_a_run_goes_on_while_nobody_listens(sandbox, host):
    run = host.start(shell("for i in 1 2 3 4 5 6; do echo $i; sleep 0.1;"
                           " done; exit 3"))
    host.wait(lambda: b"2\n" in run.output(), "it runs")
    host.stop_listening()
    host.drop()
    sandbox.wait_empty()
    host.listen()
    host.accept()
    known = host.hello_runs[run.key]
    assert known["ended"] == 1
    assert known["from"] <= run.length < known["length"]
    host.attach(run)
    assert run.known == {"fresh": 0, "length": known["length"]}
    host.finish(run)
    assert run.output() == b"1\n2\n3\n4\n5\n6\n"
    assert run.end().exit_code == 3
    assert run.length == known["length"]


def test_reconnects_in_the_middle_are_exact_to_the_byte(host):
    run = host.start(python(
        "import os\n"
        "for i in range(200000): os.write(1, b'%099d\\n' % i)"))
    cuts = 0
    while not run.ended:
        target = run.length + 150000
        host.wait(lambda n=target: run.length >= n or run.ended, "more")
        if not run.ended:
            cuts += 1
            host.drop()  # whatever was on its way is lost
            host.accept()
            # what was read but never acknowledged is still kept
            assert host.hello_runs[run.key]["from"] <= run.length
            host.attach(run)
    assert cuts >= 10
    assert run.output() == b"".join(b"%099d\n" % i for i in range(200000))


def test_a_host_that_lost_everything_gets_all_that_is_kept(host):
    run = host.start(shell("echo one; echo two"), auto_ack=False)
    host.finish(run)
    length = run.length
    host.reconnect()
    assert host.hello_runs[run.key] == {"ended": 1, "from": 0,
                                        "length": length}
    again = host.runs[run.key] = type(run)(run.key)
    host.attach(again, have=0)
    host.finish(again)
    assert again.output() == b"one\ntwo\n"


def test_what_was_acknowledged_is_not_kept(host):
    run = host.run(shell("echo one"))
    host.ping()
    host.reconnect()
    host.attach(run, have=0)
    assert run.refused == (
        f"the log is kept from byte {run.length} on, not from 0")
    host.attach(run)
    assert run.known == {"fresh": 0, "length": run.length}


def test_a_log_cannot_be_continued_beyond_its_end(host):
    run = host.run(shell("echo one"))
    host.attach(run, have=run.length + 1)
    assert "ends at byte" in run.refused


def test_a_key_never_runs_twice(sandbox, host):
    command = shell("echo x >> /artifacts/log; cat /artifacts/log")
    run = host.run(command)
    for _ in range(3):
        again = host.start(command, key=run.key, have=run.length)
        host.wait(lambda r=again: r.known, "an answer")
        assert again.known == {"fresh": 0, "length": run.length}
    host.reconnect()
    host.attach(run)
    host.forget(run)
    again = host.start(command, key=run.key, have=run.length)
    host.wait(lambda: again.known, "an answer")
    assert again.known == {"fresh": 0, "length": run.length}
    assert host.run(shell("cat /artifacts/log")).output() == b"x\n"


def test_a_key_that_is_running_is_not_started_again(host):
    command = shell("echo x >> log; sleep 0.3")
    run = host.begin(command)
    host.start(command, key=run.key, have=run.length)
    host.wait(lambda: run.known, "an answer")
    assert run.known["fresh"] == 0
    host.finish(run)
    assert host.run(shell("cat log")).output() == b"x\n"


def test_a_forgotten_log_is_refused_and_not_listed(host):
    run = host.run(shell("echo x"))
    host.forget(run)
    host.reconnect()
    assert run.key not in host.hello_runs
    host.attach(run, have=0)
    assert run.refused == "the log was forgotten on request"


def test_closing_a_live_run_kills_and_forgets_it(sandbox, host):
    run = host.start(shell("echo x; yes"), auto_ack=False)
    host.wait(lambda: run.length >= wire.WINDOW - 65536, "its pipe is full")
    host.forget(run)
    sandbox.wait_empty()
    host.ping()
    host.reconnect()
    assert run.key not in host.hello_runs
    host.attach(run)
    assert run.refused == "the log was forgotten on request"


def test_a_second_channel_for_a_run_ends_the_first(host):
    run = host.start(shell("echo x; sleep 0.2; echo y"))
    host.wait(lambda: run.output() == b"x\n", "it runs")
    number = run.chan
    host.open_run(run, run.length, wire.WINDOW)
    first = host.channels[number] = Channel(number)
    host.finish(run)
    assert run.output() == b"x\ny\n"
    assert first.closed == (errno.ECANCELED, "opened again")


def test_a_key_with_a_past_elsewhere_is_not_started(host):
    run = host.start(Command(["true"]), have=10)
    host.finish(run)
    assert run.refused == "the run is not known here any more"


def test_the_journal_keeps_4096_ended_keys(sandbox, host):
    first = host.run(Command(["true"]))
    host.forget(first)
    second = host.run(Command(["true"]))
    host.forget(second)
    live = host.start(Command(["sleep", "600"]))
    denied = Command(["x"], flags=wire.DENIED, deny="x")  # no process
    for _ in range(4095 // 64 + 1):
        batch = [host.start(denied) for _ in range(64)]
        host.finish(*batch)
        for run in batch:
            host.forget(run)
            del host.runs[run.key]
    # 1 + 1 + 4096 have ended: the two oldest are gone
    for run in (first, second):
        host.attach(run, have=0)
        assert run.refused or run.known["fresh"] == 1
    assert host.run(Command(["true"])).ended
    host.stop(live)
    assert live.end().reason == "canceled"


def test_of_4096_ended_runs_that_nobody_forgets_the_oldest_goes(host):
    """With the channel that it still has."""
    denied = Command(["x"], flags=wire.DENIED, deny="x")  # no process
    runs = []
    for _ in range(4096 // 64 + 1):
        batch = [host.start(denied) for _ in range(64)]
        runs += batch
        host.finish(*batch)
    host.ping()
    gone = [r.refused == "too many runs are not forgotten" for r in runs]
    assert gone == [True] * 64 + [False] * 4096
    host.ack(runs[0])  # on its way when it was closed
    host.forget(runs[-1])
    assert host.run(Command(["true"])).end().exit_code == 0


def test_logs_that_nobody_takes_are_bounded(host):
    """64 MiB of ended runs' logs, then no new run until some are taken."""
    runs = []
    while not runs or not runs[-1].refused:
        assert len(runs) < 80
        run = host.start(Command(["head", "-c", "1000000", "/dev/zero"]),
                         auto_ack=False)
        run.kept = False
        runs.append(host.finish(run))
    refused = runs.pop()
    assert refused.refused == (
        "too much output of ended runs is not taken yet")
    assert len(runs) >= 60
    for run in runs:
        host.ack(run)
    again = host.start(Command(["true"]), key=refused.key)
    assert host.finish(again).end().exit_code == 0


def test_acknowledging_twice_or_late_is_harmless(host):
    run = host.run(shell("echo x"))
    host.ack(run)
    host.ack(run, 3)
    host.forget(run)
    host.ack(run, run.length)
    host.ping()


def test_a_spec_that_is_wrong_is_refused_and_the_link_stays(host):
    for spec in (b"", b"\xff" * 40, wire.pack_spec([Command(["a"])])[:-1],
                 wire.pack_spec([Command([""])]),
                 wire.pack_spec([Command(["a"], cwd="relative")])):
        run = host.start_spec(spec)
        host.finish(run)
        assert run.refused
    host.ping()


PING = wire.FRAMES.number("PING")


WALK = wire.pack_frame("OPEN_WALK", chan=77, root="/proc", limit=1)
BAD_FRAMES = {
    "too long": struct.pack("<IHH", 0x7fffffff, PING, 0),
    "too short": struct.pack("<IHH", 3, PING, 0),
    "flags": struct.pack("<IHHQ", 12, PING, 1, 0),
    "an unknown type": struct.pack("<IHH", 4, 999, 0),
    "a frame of its own": wire.pack_frame("HELLO_END"),
    "a short field": wire.pack_body(PING, b"1234"),
    "bytes left over": wire.pack_body(PING, b"123456789"),
    "a second welcome": wire.pack_frame("WELCOME", version=wire.VERSION),
    "a string beyond the frame": wire.pack_body(
        wire.FRAMES.number("OPEN_WALK"),
        struct.pack("<IBQI", 77, 0, 1, 99)),
    "a NUL in a root": wire.pack_frame("OPEN_WALK", chan=77, root="/a\0"),
    "a cancel without reason": wire.pack_frame("CANCEL", chan=1, reason=0),
    "a channel that never was": wire.pack_frame("CREDIT", chan=78),
    "channel zero": wire.pack_frame("OPEN_WALK", chan=0, root="/"),
    "a close of channel zero": wire.pack_frame("CLOSE", chan=0),
    "a channel number again": WALK + WALK,
    "data for one that sends": WALK + wire.pack_frame(
        "DATA", chan=77, bytes=b"x"),
    "a cancel of a walk": WALK + wire.pack_frame(
        "CANCEL", chan=77, reason=wire.CANCELED),
    "the end of a walk's stream": WALK + wire.pack_frame(
        "STREAM_END", chan=77),
    "credit for another stream": WALK + wire.pack_frame(
        "CREDIT", chan=77, stream=1, limit=9),
    "data of no bytes": wire.pack_frame(
        "OPEN_WRITE", chan=77, root="/tmp", path="x") + wire.pack_frame(
            "DATA", chan=77),
    "data out of order": wire.pack_frame(
        "OPEN_WRITE", chan=77, root="/tmp", path="x") + wire.pack_frame(
            "DATA", chan=77, offset=1, bytes=b"x"),
    "noise": os.urandom(4) + b"\xff" * 64,
}


@pytest.mark.parametrize("frame", BAD_FRAMES.values(), ids=BAD_FRAMES.keys())
def test_a_malformed_frame_costs_the_link_and_nothing_else(host, frame):
    run = host.begin(shell("sleep 0.3; echo x"))
    host.send_raw(frame)
    host.wait_refused()
    host.attach(run)
    host.finish(run)
    assert run.output() == b"x\n"


def test_an_ack_beyond_what_was_sent_is_malformed(host):
    run = host.run(shell("echo x"))
    host.ack(run, run.length + 1)
    host.wait_refused()


@pytest.mark.parametrize("first", [wire.pack_frame("PING"), wire.pack_frame(
    "WELCOME", version=wire.VERSION + 1), wire.pack_body(
        wire.FRAMES.number("WELCOME"), b""),])
def test_only_a_right_welcome_opens_the_link(host, first):
    host.drop()
    host.accept(welcome=False)
    host.send_raw(first)
    host.wait_refused()
    host.ping()


def test_frames_may_come_in_any_pieces(host):
    send, sent = host.send_raw, []
    host.send_raw = sent.append
    run = host.start(shell("echo pieces"))
    host.send_raw = send
    frame = b"".join(sent)
    for i in range(0, len(frame), 7):
        host.send_raw(frame[i:i + 7])
        time.sleep(0.0005)
    host.finish(run)
    assert run.output() == b"pieces\n"


def test_a_large_spec_arrives_whole(host):
    data = os.urandom(1500000)
    key = uuid.uuid4()
    run = host.run(shell(f"sha256sum < /tmp/.run-{key}/blob"), key=key,
                   files=[("blob", 0o600, data)])
    assert run.output().split()[0].decode() == hashlib.sha256(
        data).hexdigest()


def test_a_host_that_does_not_read_stops_the_agent_from_reading(host):
    """PONGs do not pile up in the agent."""
    host.conn.setblocking(False)
    frame = wire.pack_frame("PING") * 1000
    sent = 0
    try:
        while sent < 64 << 20:
            sent += host.conn.send(frame)
            time.sleep(0)
    except BlockingIOError:
        pass
    deadline = time.monotonic() + 1
    while time.monotonic() < deadline:
        try:
            sent += host.conn.send(frame)
        except BlockingIOError:
            time.sleep(0.01)
    host.conn.setblocking(True)
    assert sent < 8 << 20
    wanted = sent // 16
    host.wait(lambda: len(host.pongs) >= wanted - 1, "all PONGs")


def test_an_agent_that_no_server_wants_any_more_ends(make_sandbox):
    sandbox = make_sandbox()
    host = sandbox.host
    host.begin(shell("sleep 1; echo done"))
    host.send("LEASE", ms=300)
    host.ping()
    host.drop()
    host.stop_listening()
    wait_until(lambda: sandbox.processes(), "it has begun")
    assert sandbox.child.poll() is None  # what runs holds it
    assert sandbox.child.wait(timeout=WAIT_S) == 75


def test_a_server_that_comes_in_time_is_waited_for(sandbox, host):
    host.send("LEASE", ms=60000)
    host.ping()
    host.reconnect()
    host.ping()
