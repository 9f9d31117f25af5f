"""What the agent says of itself, for the server's log."""
import re
import uuid

from wire import Command, python, shell
import wire

NONE = uuid.UUID(int=0)


def lines(host, what):
    """All that came so far: a PONG comes behind what was said before it."""
    host.ping()
    return [f for f in host.said if f["what"] == what]


def test_it_says_its_version_with_the_hello_and_later_in_a_whisper(host):
    line, = lines(host, "STARTED")
    assert (line["level"], line["run"], line["dropped"]) == ("info", NONE, 0)
    assert re.fullmatch(rf"version \S+, link {wire.VERSION}", line["text"])
    host.reconnect()
    assert [f["level"] for f in lines(host, "STARTED")] == ["info", "debug"]


def test_of_commands_that_end_by_themselves_it_says_nothing(host):
    host.run([Command(["true"]), shell("exit 3", flags=wire.ALLOW_FAILURE),
              shell("kill -9 $$")])
    host.run(Command(["/no/such/program"]))
    lines(host, "STARTED")
    assert [f["what"] for f in host.said] == ["STARTED"]


def test_a_command_that_it_ended_is_said_with_its_run(host):
    late = host.run(shell("sleep 600", timeout_ms=50))
    canceled = host.begin(shell("sleep 600"))
    host.stop(canceled)
    first, second = lines(host, "ENDED_COMMAND")
    assert (first["run"], second["run"]) == (late.key, canceled.key)
    assert first["level"] == second["level"] == "info"
    assert re.fullmatch(r"command 0 after \d+ ms: timeout", first["text"])
    assert second["text"].endswith(": canceled")


def test_a_keeper_that_died_is_a_warning(host):
    run = host.run(python("import os, time\nos.kill(os.getppid(), 9)\n"
                          "time.sleep(600)"), user=wire.ROOT)
    line, = lines(host, "KEEPER_LOST")
    assert (line["level"], line["run"]) == ("warn", run.key)
    assert line["text"] == "command 0"


def test_what_it_refused_is_said_on_the_next_link(host):
    host.send_raw(wire.pack_body(9999, b""))
    host.wait_refused()
    host.wait(lambda: lines(host, "LINK_REFUSED"), "the line")
    line, = lines(host, "LINK_REFUSED")
    assert line["level"] == "warn" and "9999" in line["text"]


def test_a_flood_is_bounded_and_what_was_dropped_is_counted(sandbox, host):
    """Commands that are ended as quickly as can be, far more than may be
    said."""
    count, round_size = 0, 40
    while not any(f["dropped"] for f in host.said):
        host.run([shell("sleep 600", flags=wire.ALLOW_FAILURE,
                        timeout_ms=1)
                  for _ in range(round_size)])
        count += round_size
        said = lines(host, "ENDED_COMMAND")
        assert len(said) + sum(f["dropped"] for f in said) <= count
    # SAY_BURST, and what came since at one in SAY_EVERY_MS.
    assert len(said) < count / 2
    assert all(f["run"] in host.runs for f in said)
    sandbox.wait_empty(10)
