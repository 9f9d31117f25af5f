"""Output arrives whole, in characters, and never faster than it is taken."""
import hashlib
import os
import time

import pytest

import wire
from host import wait_until
from wire import Command, python, shell


def test_a_character_cut_at_every_place_is_put_together(host):
    for data in (c.encode() for c in "\u00e9\u20ac\U0001f600"):
        for cut in range(1, len(data)):
            run = host.run(python(
                "import os, time\n"
                f"os.write(1, {data[:cut]!r}); time.sleep(0.03)\n"
                f"os.write(1, {data[cut:]!r})"))
            assert [r.payload for r in run.records
                    if r.kind == wire.STDOUT] == [data]


def test_a_cut_character_at_the_end_is_not_kept_back(host):
    run = host.run(python("import os; os.write(1, b'x\\xe2\\x82');"
                          " os.write(2, b'\\xf0\\x9f\\x98')"))
    assert run.output() == b"x\xe2\x82"
    assert run.output(wire.STDERR) == b"\xf0\x9f\x98"


def test_a_cut_character_is_delivered_when_its_command_ends(host):
    run = host.start(python("import os, time\n"
                            "os.write(1, b'\\xe2\\x82'); os.close(1)\n"
                            "os.write(2, b'x'); time.sleep(600)"))
    host.wait(lambda: run.output(wire.STDERR), "the bytes are written")
    host.stop(run)
    assert run.output() == b"\xe2\x82"


def test_bytes_that_are_no_text_arrive_unchanged(host):
    run = host.run(python(
        "import os\n"
        "b = bytes(range(256)) * 4096\n"
        "while b: b = b[os.write(1, b):]"))
    assert run.output() == bytes(range(256)) * 4096


@pytest.mark.parametrize("size", [1, 4095, 4096, 65535, 65536, 65537,
                                  1048575, 1048576, 1048577, 3000001])
def test_output_of_any_size_is_complete(host, size):
    run = host.run(python(
        f"import os\nb = b'0123456789' * {size // 10 + 1}\nb = b[:{size}]\n"
        "while b: b = b[os.write(1, b):]"))
    assert len(run.output()) == size
    assert run.output() == (b"0123456789" * (size // 10 + 1))[:size]


def test_output_written_just_before_the_end_is_there(host):
    for _ in range(30):
        run = host.run(python("import os; os.write(1, b'x' * 60000);"
                              " os.write(2, b'y' * 60000); os._exit(7)"))
        assert len(run.output()) == len(run.output(wire.STDERR)) == 60000
        assert run.end().exit_code == 7


def test_nothing_is_sent_beyond_the_credit(host):
    run = host.start(python("import os\nwhile True: os.write(1, b'x' * 999)"),
                     window=100000, auto_ack=False)
    host.wait(lambda: run.length == 100000, "the window is full")
    host.ping()
    assert run.length == 100000
    host.ack(run, 50000)
    host.wait(lambda: run.length == 150000, "the window moved")
    host.ping()
    assert run.length == 150000
    run.auto_ack = True
    host.ack(run)
    host.stop(run)


def test_without_credit_nothing_is_sent_and_the_run_goes_on(sandbox, host):
    run = host.start(shell("echo x; echo y > /artifacts/done"), window=0,
                     auto_ack=False)
    host.wait(lambda: run.known, "RUN_KNOWN")
    done = sandbox.path("/artifacts/done")
    wait_until(lambda: os.path.exists(done), "it ran")
    host.ping()
    assert run.length == 0
    host.attach(run, have=0)
    host.finish(run)
    assert run.output() == b"x\n"


def test_a_full_log_blocks_the_program_and_loses_nothing(host):
    count = 200 << 20
    run = host.start(python(
        "import hashlib, os, sys\n"
        "h = hashlib.sha256(); n = 0; i = 0\n"
        f"while n < {count}:\n"
        "    b = (b'%d ' % i) * 7000; i += 1; n += len(b); h.update(b)\n"
        "    while b: b = b[os.write(1, b):]\n"
        "os.write(2, h.hexdigest().encode() + b' %d' % n)"),
        auto_ack=False)
    run.kept = False
    digest, total, err = hashlib.sha256(), 0, b""

    def on_record(record):
        nonlocal total, err
        if record.kind == wire.STDOUT:
            digest.update(record.payload)
            total += len(record.payload)
        elif record.kind == wire.STDERR:
            err += record.payload

    run.on_record = on_record
    host.wait(lambda: run.length >= wire.WINDOW - 65536 * 2, "it is blocked")
    for _ in range(3):
        before = run.length
        host.ping()
        assert run.length - before < 65536 * 3
        assert run.length <= wire.WINDOW
    stops = 0
    while not run.ended:
        stops += 1
        host.ack(run)
        if stops <= 20:
            time.sleep(0.01)  # a slow reader
        before = run.length
        host.wait(lambda n=before: run.length > n or run.ended, "more", 30)
    assert err.decode() == f"{digest.hexdigest()} {total}"
    assert total >= count
    end = run.end()
    assert (end.reason, end.exit_code) == ("exit", 0)
    assert end.stdout_bytes == total


def test_what_a_blocked_program_wrote_is_delivered_after_its_timeout(
        sandbox, host):
    run = host.start(python(
        "import os\n"
        "i = 0\n"
        "while True:\n"
        "    os.write(1, b'%07d\\n' % i * 512); i += 1", timeout_ms=700),
        auto_ack=False)
    wait_until(sandbox.processes, "it runs")
    sandbox.wait_empty()
    host.ping()
    assert not run.commands_ended
    run.auto_ack = True
    host.ack(run)
    host.finish(run)
    end = run.end()
    assert end.reason == "timeout"
    assert 690000 < end.wall_us < 1200000
    out = run.output()
    # the window and one large pipe; all of it in order
    assert len(out) > wire.WINDOW
    for i in range(0, len(out) // 4096):
        assert out[i * 4096:i * 4096 + 8] == b"%07d\n" % i


def test_another_process_that_holds_the_pipe_cannot_delay_the_end(host):
    server = host.start(python(
        "import socket, array, os, time\n"
        "s = socket.socket(socket.AF_UNIX); s.bind('/tmp/s'); s.listen()\n"
        "print('up', flush=True)\n"
        "c, _ = s.accept()\n"
        "_, a, _, _ = c.recvmsg(1, 64)\n"
        "fd = array.array('i', a[0][2])[0]\n"
        "while True:\n"
        "    try: os.write(fd, b'foreign' * 100)\n"
        "    except BrokenPipeError: print('gone', flush=True); break\n"))
    host.wait(lambda: server.output() == b"up\n", "the other run is up")
    run = host.run(python(
        "import socket, array, time\n"
        "s = socket.socket(socket.AF_UNIX); s.connect('/tmp/s')\n"
        "s.sendmsg([b'x'], [(socket.SOL_SOCKET, socket.SCM_RIGHTS,"
        " array.array('i', [1]))])\n"
        "time.sleep(0.2)"))
    assert run.end().exit_code == 0
    assert run.end().wall_us < 5000000
    host.finish(server)
    assert server.output() == b"up\ngone\n"


def test_a_loud_run_does_not_silence_a_quiet_one(host):
    loud = [host.start(Command(["yes"])) for _ in range(4)]
    for run in loud:
        run.kept = False
    took = []
    for _ in range(20):
        begin = time.monotonic()
        assert host.run(Command(["echo", "x"])).output() == b"x\n"
        took.append(time.monotonic() - begin)
    host.stop(*loud)
    took.sort()
    assert took[10] < 5, took


def test_a_small_command_leaves_in_one_piece(host):
    """KNOWN and the whole log of a short run are one write, if it is short
    enough: on a busy machine not every one is."""
    reads = []
    while 1 not in reads and len(reads) < 400:
        run = host.start(Command(["true"]))
        count = 0
        while not run.ended:
            host.pump(5)
            count += 1
        reads.append(count)
        host.forget(run)
    assert 1 in reads, reads
