"""Carrier bridge, and an engine, a network or a box that has a bad day: what
runs print is whole, nothing twice, and what cannot go on is told with its
reason."""
import json
import time

import pytest

import bridge_engine as days
from client import python, stdout, wait_for

pytestmark = pytest.mark.docker("of its engine")

LINES = 3000
# A first part at once; the rest comes while something happens.
PRINTER = ("import sys, time\n"
           f"for i in range({LINES}):\n"
           "    print('line', i, 'x' * 60, flush=i % 100 == 0)\n"
           "    if i % 100 == 0: time.sleep(float(sys.argv[1]))\n")
PRINTED = "".join(f"line {i} {'x' * 60}\n" for i in range(LINES))


@pytest.fixture
def bridges(engine, open_place):
    made = days.BridgeEngine(str(open_place / "engine.sock"), engine.path)
    yield made
    made.close()


@pytest.fixture
def make_bridged(make_server, bridges):
    """A server whose one worker has that engine; quick to see silence."""
    def make(**env):
        return make_server(env={
            "DOCKER_HOST": f"unix://{bridges.path}", "CARRIER": "bridge",
            "WORKERS": "1", "AGENT_PING_MS": "500", **env})
    return make


def printer(pause_s=0.1):
    return python(PRINTER, str(pause_s))


def check_whole(view):
    command = view["commands"][0]
    assert (view["state"], command["end_reason"]) == ("completed", "exit"), \
        json.dumps(view)[-600:]
    assert command["stdout"] == PRINTED, first_difference(command["stdout"])


def first_difference(text):
    for i, (is_, want) in enumerate(zip(text.split("\n"),
                                        PRINTED.split("\n"))):
        if is_ != want:
            return i, is_, want
    return len(text), len(PRINTED)


# ---- the engine's own stream format

# Those after which the stream goes on, and those that end it.
GO_ON = [days.errors_between, days.empty_frames, days.bytes_apart]
END_IT = [days.end_at_once, days.end_in_a_head, days.end_in_a_frame,
          days.frame_of_4_gib, days.errors_without_end, days.unknown_kind,
          days.no_format_at_all, days.words_of_the_engine]


@pytest.mark.parametrize("fault", GO_ON + END_IT,
                         ids=lambda fault: fault.__name__)
def test_a_stream_that_is_not_right_costs_no_byte(
        make_bridged, bridges, fault):
    """The box's first, and one in the middle of a run."""
    client = make_bridged().client()
    bridges.faults = [fault]
    run = client.start("a", printer())["run_id"]
    client.wait_output(run)
    begun = bridges.started
    assert (begun > 1) == (fault in END_IT)
    bridges.faults = [fault]
    assert bridges.cut_streams() == 1
    check_whole(client.wait_end(run))
    assert bridges.faults == [] and bridges.started > begun


def test_what_the_program_says_on_stderr_is_in_the_log(make_bridged, bridges):
    server = make_bridged()
    client = server.client()
    bridges.faults = [days.errors_between]
    client.run("a", "true")
    bridges.cut_streams()
    line, = server.wait_log("a line", "of nobody")
    assert "\x1b" not in line


def test_a_new_sandbox_whose_stream_hangs_is_refused_with_the_reason(
        make_bridged, bridges):
    client = make_bridged().client()
    bridges.always = days.hang_after_start
    began = time.monotonic()
    assert "its agent did not answer" in client.refused("a", "true")
    assert time.monotonic() - began < 30
    bridges.always = None
    assert client.out("a", "echo on") == "on\n"


def test_a_stream_that_hangs_in_the_middle_is_made_anew(
        make_bridged, bridges):
    client = make_bridged().client()
    run = client.start("a", printer())["run_id"]
    client.wait_output(run)
    bridges.faults = [days.hang_after_start]
    bridges.cut_streams()
    check_whole(client.wait_end(run))


def test_a_stream_that_falls_silent_is_made_anew(make_bridged, bridges):
    """Half open: nobody is told, and nothing comes through."""
    client = make_bridged().client()
    bridges.faults = [days.hang_after(20000)]
    run = client.start("a", printer())["run_id"]
    check_whole(client.wait_end(run))
    assert bridges.started == 2


# ---- cut anywhere

BOXES, CUTS = 6, 6


@pytest.mark.parametrize("cut", [days.cut_after, days.cut_down_after],
                         ids=["on the way up", "on the way down"])
def test_a_connection_that_is_cut_at_any_byte_costs_none(
        make_bridged, bridges, cut):
    client = make_bridged().client()
    # The first ones in heads and greetings, the last ones in what is printed.
    counts = [1 + 7 * i for i in range(BOXES * CUTS // 2)] + \
        [40 * i * i for i in range(1, BOXES * CUTS // 2 + 1)]
    bridges.faults = [cut(n) for n in counts]
    runs = [client.start(f"box{i}", printer(0.3))["run_id"]
            for i in range(BOXES)]
    for run in runs:
        check_whole(client.wait_end(run))
    assert bridges.started > BOXES * CUTS // 2


# ---- more than one

def test_a_bridge_that_nobody_ended_is_replaced(make_bridged, bridges):
    """Its worker is dead, and the engine has not told it."""
    server = make_bridged()
    client = server.client()
    run = client.start("a", printer())["run_id"]
    client.wait_output(run)
    bridges.holds = True
    server.kill("worker")
    check_whole(client.wait_end(run))
    assert bridges.started == 2 and bridges.held == 1


def bridges_in(client, name):
    """Pids, as its box has them, of what came in from outside."""
    return client.out(name, (
        "cd /proc; for p in [0-9]*; do "
        "[ $p != 1 ] && grep -q '^PPid:.0$' $p/status 2>/dev/null && echo $p;"
        "done; true"), as_user="root").split()


def test_a_bridge_killed_by_the_boxs_root_costs_nothing(
        make_bridged, bridges):
    client = make_bridged().client()
    run = client.start("a", printer())["run_id"]
    client.wait_output(run)
    for _ in range(4):
        pid, = bridges_in(client, "a")
        client.run("a", f"kill -9 {pid}", as_user="root")
    check_whole(client.wait_end(run))
    assert bridges.started == 5


# ---- execs

REFUSALS = [(403, "authorization denied by plugin"),
            (409, "container is paused"), (500, "no exec today")]


@pytest.mark.parametrize("status, message", REFUSALS)
def test_an_exec_that_is_refused_and_then_permitted_costs_nothing(
        make_bridged, bridges, status, message):
    client = make_bridged().client()
    bridges.refusal = (status, message)
    run = client.start("a", printer(0.05))["run_id"]
    wait_for(lambda: bridges.refused > 1, 30, "refusals")
    bridges.refusal = None
    client.wait_output(run)
    bridges.refusal = (status, message)
    bridges.refused = 0
    bridges.cut_streams()
    wait_for(lambda: bridges.refused > 1, 30, "refusals")
    bridges.refusal = None
    check_whole(client.wait_end(run))


def test_execs_that_are_never_permitted_are_the_reason_that_is_told(
        make_bridged, bridges):
    client = make_bridged().client()
    bridges.refusal = (403, "authorization denied by plugin no-exec")
    assert "plugin no-exec" in client.refused("a", "true")


# ---- the box

def box_of(engine, server):
    box, = engine.containers(server.instance)
    return box["Id"]


@pytest.mark.parametrize("step", ["restart?t=0", "stop?t=0"],
                         ids=["restarted", "stopped"])
def test_a_box_restarted_by_hand_is_lost_and_replaced(
        make_bridged, engine, step):
    server = make_bridged()
    client = server.client()
    run = client.start("a", "echo first; sleep 600")["run_id"]
    client.wait_output(run)
    box = box_of(engine, server)
    with server.standing_still("worker"):  # or it removes what was stopped
        status, said = engine.request("POST", f"/containers/{box}/{step}")
    assert status == 204, said
    final = client.wait_end(run)
    assert (final["state"], final["end_reason"]) == \
        ("failed", "sandbox_lost"), final
    assert final["error"], final
    assert stdout(final) == "first\n"
    assert client.out("a", "echo again") == "again\n"
    wait_for(lambda: [c["State"] for c in engine.containers(
        server.instance)] == ["running"], 60, "one box")
    assert box_of(engine, server) != box


# ---- the way to the engine

AWAY_S = 20


def test_runs_are_whole_when_the_engine_was_away(make_bridged, bridges):
    """Longer than anybody waits for an agent that is late."""
    server = make_bridged(RUN_GRACE_MS="8000")
    client = server.client()
    long = [client.start(f"box{i % 4}", python(
        "import time\n"
        "for i in range(40): print(i, flush=True); time.sleep(1)"))["run_id"]
        for i in range(12)]
    short = [client.start(f"box{i}", printer())["run_id"] for i in range(4)]
    late = [client.start(f"box{i}", {
        "shell": "echo begun; sleep 600", "timeout_ms": 5000})["run_id"]
        for i in range(2)]
    for run in long + short + late:
        client.wait_output(run)
    boxes = {client.status(run)["sandbox_container_id"] for run in long}
    bridges.away()
    time.sleep(AWAY_S)  # it is how long it is away
    assert {client.status(run)["state"] for run in long + short + late} == \
        {"running"}
    bridges.back()
    for run in short:
        check_whole(client.wait_end(run))
    for run in late:
        view = client.wait_end(run)
        command, = view["commands"]
        assert command["end_reason"] == "timeout", view
        assert command["stdout"] == "begun\n"
    for run in long:
        view = client.wait_end(run)
        assert stdout(view) == "".join(f"{i}\n" for i in range(40)), view
        assert view["state"] == "completed", view
    assert {client.status(run)["sandbox_container_id"]
            for run in long} == boxes


def test_a_run_asked_for_meanwhile_waits_or_is_refused_with_the_reason(
        make_bridged, bridges):
    client = make_bridged().client()
    assert client.out("a", "echo on") == "on\n"
    bridges.away()
    run = client.start("a", "echo later")["run_id"]
    assert "engine" in client.refused("fresh", "true").lower()
    bridges.back()
    assert stdout(client.wait_end(run)) == "later\n"
