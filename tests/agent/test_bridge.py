"""The other way to an agent: it waits, and bridges come in by exec."""
import os
import select
import signal
import subprocess
import time
import uuid

import pytest

import wire
from host import WAIT_S, wait_until
from wire import Command, python, shell

BRIDGE = ["/.mcp-sandbox/agent", "bridge"]
AN_HOUR_MS = 3600 * 1000
# In the sandbox: connects to the agent, with which it has no business.
CONNECT = """
import os, socket, sys
def connect():
    s = socket.socket(socket.AF_UNIX)
    s.connect("\\0mcp-sandboxd-agent")
    return s
"""
# In the sandbox: the process there that came in from outside.
FIND = """
import os, signal
def parent(pid):
    with open(f"/proc/{pid}/stat") as f:
        return int(f.read().rsplit(")", 1)[1].split()[1])
bridge, = (int(p) for p in os.listdir("/proc")
           if p.isdigit() and p != "1" and parent(p) == 0)
"""


@pytest.fixture(name="sandbox")
def sandbox_fixture(make_sandbox):
    sandbox = make_sandbox(carrier="bridge")
    yield sandbox
    assert sandbox.is_agent_running(), "the agent died"


@pytest.fixture(name="hasty")
def hasty_fixture(make_sandbox):
    """Its agent gives a bridge up that is quiet for a second."""
    return make_sandbox(carrier="bridge", options="-q 1000")


def start_piped(sandbox):
    """A bridge as an engine has it: with three pipes."""
    return sandbox.start_bridge(stdin=subprocess.PIPE, stdout=subprocess.PIPE,
                                stderr=subprocess.PIPE)


def say(bridge, data):
    bridge.stdin.write(data)
    bridge.stdin.flush()


def wait_ended(bridge, seconds=WAIT_S):
    """What it said on stderr."""
    assert bridge.wait(seconds) == 0
    return bridge.stderr.read() if bridge.stderr else b""


def knock(secret):
    return wire.pack_frame("KNOCK", secret=secret)


def refusals(host):
    """A PONG comes behind what was said before it."""
    host.ping()
    return [f for f in host.said if f["what"] == "LINK_REFUSED"]


def hears_something(bridge, seconds):
    return bool(select.select([bridge.stdout], [], [], seconds)[0])


# ---- who is let in

def test_nothing_comes_up_before_the_knock(sandbox, host):
    bridge = start_piped(sandbox)
    assert not hears_something(bridge, 0.3)
    say(bridge, knock(host.secret))
    assert hears_something(bridge, WAIT_S)


@pytest.mark.parametrize("user", [wire.SANDBOX, wire.ROOT])
def test_a_process_of_the_sandbox_is_refused(host, user):
    run = host.run(python(
        CONNECT + "s = connect()\n"
        f"try:\n    s.sendall({knock(host.secret)!r})\n"
        "except BrokenPipeError:\n    pass\n"
        "try:\n    print(s.recv(100))\n"
        "except ConnectionResetError:\n    print(b'')\n"), user=user)
    assert run.output() == b"b''\n"
    host.ping()


def test_a_bridge_that_a_command_starts_is_refused(host):
    run = host.run(shell("sleep 600 | /.mcp-sandbox/agent bridge; echo $?;"
                         " kill $!", timeout_ms=1000), user=wire.ROOT)
    assert run.output() == b"" and run.end().reason == "timeout"
    run = host.run(python(
        "import subprocess\n"
        "b = subprocess.Popen(['/.mcp-sandbox/agent', 'bridge'],\n"
        "    stdin=subprocess.PIPE, stdout=subprocess.PIPE)\n"
        "print(b.stdout.read(), b.wait())"))
    assert run.output() == b"b'' 0\n"
    host.ping()


def test_another_secret_is_refused_and_the_stream_stays(sandbox, host):
    secret = os.urandom(32)
    bridge = start_piped(sandbox)
    say(bridge, knock(secret))
    assert wait_ended(bridge) == b""
    assert bridge.stdout.read() == b""
    line, = refusals(host)
    assert line["text"] == "a bridge knocked with another secret"


@pytest.mark.parametrize("first", [
    wire.pack_frame("WELCOME", version=wire.VERSION),
    wire.pack_body(wire.FRAMES.number("KNOCK"), b"x" * 31),
    wire.pack_body(wire.FRAMES.number("KNOCK"), b"x" * 33),
    b"GET / HTTP/1.1\r\n\r\n"], ids=["WELCOME", "short", "long", "HTTP"])
def test_another_first_frame_is_refused(sandbox, host, first):
    bridge = start_piped(sandbox)
    say(bridge, first)
    wait_ended(bridge)
    assert bridge.stdout.read() == b""
    host.ping()


def test_a_second_knock_is_malformed(host):
    host.knock()
    host.wait_refused()
    host.ping()


def test_what_follows_the_knock_at_once_is_not_lost(sandbox, host):
    bridge = start_piped(sandbox)
    say(bridge, knock(host.secret) + start_of(shell("echo all is here")))
    read_until(bridge, b"all is here\n")


def start_of(command, **more):
    """What opens the link and starts a run on it."""
    return (wire.pack_frame("WELCOME", version=wire.VERSION)
            + wire.pack_frame("OPEN_SEQUENCE", chan=1, limit=1 << 20,
                              run=more.pop("key", uuid.uuid4()),
                              spec=wire.pack_spec([command], **more)))


def read_until(bridge, text):
    """What comes up, to where that stands in it."""
    read = b""
    while text not in read:
        assert hears_something(bridge, WAIT_S)
        part = os.read(bridge.stdout.fileno(), 65536)
        assert part, "the agent hung up"
        read += part
    return read


def test_a_bridge_that_does_not_knock_is_closed_after_five_seconds(
        sandbox, host):
    begin = time.monotonic()
    wait_ended(start_piped(sandbox))
    assert 4.9 < time.monotonic() - begin
    host.ping()


def test_of_five_that_do_not_knock_the_oldest_is_closed(sandbox, host):
    bridges = []
    for n in range(5):
        bridges.append(start_piped(sandbox))
        if n < 4:
            wait_until(lambda n=n: len(accepted(sandbox)) == n + 2, "it is in")
    begin = time.monotonic()
    wait_ended(bridges[0])
    assert time.monotonic() - begin < 3
    assert [b.poll() for b in bridges[1:]] == [None] * 4
    say(bridges[4], knock(host.secret))
    assert hears_something(bridges[4], WAIT_S)


def accepted(sandbox):
    """Sockets of the agent's on which bridges came in."""
    with open(f"/proc/{sandbox.pid}/net/unix", encoding="ascii") as f:
        lines = [line.split() for line in f]
    named = {line[6] for line in lines
             if line[5] == "03" and line[7:] == ["@mcp-sandboxd-agent"]}
    return named & {name[len("socket:["):-1]
                    for name in sandbox.links()}


# ---- one after another

def test_a_newer_bridge_takes_the_place_of_the_older(sandbox, host):
    first, = sandbox.bridges
    run = host.begin(shell("sleep 0.3; echo x"))
    old = host.conn
    host.accept()  # while the old one is there
    assert first.wait(WAIT_S) == 0
    old.close()
    host.attach(run)
    host.finish(run)
    assert run.output() == b"x\n"
    assert len(sandbox.running_bridges()) == 1


def test_the_agent_says_nothing_while_no_bridge_is_there(sandbox, host):
    host.drop()
    wait_until(lambda: not sandbox.running_bridges(), "it is gone")
    sandbox.host.connect()
    sandbox.host.greet()
    host.drop()
    wait_until(lambda: not sandbox.running_bridges(), "it is gone")
    wait_until(lambda: sandbox.will_sleep_ms() > AN_HOUR_MS,
               "nothing wakes it")


def test_a_bridge_that_root_of_the_sandbox_kills_costs_nothing(host):
    run = host.start(python(
        FIND + "os.kill(bridge, signal.SIGKILL)\nprint('killed')"),
        user=wire.ROOT)
    host.wait_closed()
    host.reconnect()
    host.attach(run)
    host.finish(run)
    assert run.output() == b"killed\n" and run.end().exit_code == 0


def test_a_bridge_that_root_of_the_sandbox_stops_is_given_up(hasty):
    host = hasty.host
    first, = hasty.bridges
    run = host.start(python(
        FIND + "os.kill(bridge, signal.SIGSTOP)\nprint('stopped')"),
        user=wire.ROOT)
    wait_until(lambda: state(first.pid) == "T", "it is stopped")
    old = host.conn
    host.accept()
    wait_until(lambda: len(hasty.running_bridges()) == 1, "the old one ends")
    first.send_signal(signal.SIGCONT)  # nsenter has stopped itself, too
    assert first.wait(WAIT_S) == 0
    old.close()
    host.attach(run)
    host.finish(run)
    assert run.output() == b"stopped\n"


def state(pid):
    with open(f"/proc/{pid}/stat", encoding="latin-1") as f:
        return f.read().rsplit(")", 1)[1].split()[0]


def test_a_log_stays_whole_through_kills_of_its_bridge(sandbox, host):
    size = 50 << 20
    run = host.start(Command(
        ["sh", "-c", "yes 0123456789abcde | head -c 52428800"]))
    kills = 0
    while not run.ended:
        target = run.length + (4 << 20)
        try:
            host.wait(lambda n=target: run.length >= n or run.ended, "more")
        except AssertionError:
            assert host.closed
            host.reconnect()
            host.attach(run)
            continue
        if not run.ended:
            kills += 1
            for pid in sandbox.running_bridges():
                os.kill(pid, signal.SIGKILL)
    assert kills >= 10
    assert run.output() == b"0123456789abcde\n" * (size // 16)


def test_a_stream_cut_at_any_byte_starts_a_run_once(sandbox, host):
    key = uuid.uuid4()
    command = shell("echo x >>/workspace/n; echo done")
    first = (knock(host.secret) + start_of(command, key=key)
             + wire.pack_frame("PING"))
    for n in range(1, len(first)):
        bridge = start_piped(sandbox)
        head = min(n, len(knock(host.secret)))
        say(bridge, first[:head])
        if n > head:
            assert hears_something(bridge, WAIT_S)
            say(bridge, first[head:n])
        bridge.stdin.close()
        wait_ended(bridge)
    host.reconnect()
    assert host.hello_runs.keys() == {key}
    run = host.run(command, key=key)
    assert run.known["fresh"] == 0 and run.output() == b"done\n"
    with open(sandbox.path("/workspace/n"), encoding="ascii") as f:
        assert f.read() == "x\n"


# ---- quiet ones

def test_a_bridge_that_brings_nothing_is_given_up(hasty):
    host = hasty.host
    host.wait_closed()
    host.reconnect()
    line, = refusals(host)
    assert line["text"] == "a bridge was quiet for 1000 ms"


def test_a_bridge_with_pings_stays(hasty):
    host = hasty.host
    end = time.monotonic() + 3
    while time.monotonic() < end:
        host.ping()
        host.pump(0.2)
    assert not host.closed


def test_output_alone_does_not_keep_a_bridge(hasty):
    """It may end in a buffer of somebody who is away."""
    host = hasty.host
    run = host.start(shell("while echo x; do sleep 0.05; done"),
                     auto_ack=False)
    host.wait_closed()
    host.reconnect()
    host.attach(run)
    host.stop(run)


# ---- crowds

FLOOD = CONNECT + """
for i in range(7):
    if os.fork() == 0:
        break
while True:
    try:
        connect().close()
    except OSError:
        pass
"""


def test_a_flood_from_inside_keeps_no_bridge_out(sandbox, host):
    run = host.begin(python(FLOOD))
    host.wait(lambda: refusals(host), "the flood")
    for _ in range(10):
        host.reconnect()
    host.attach(run)
    begin, ticks = time.monotonic(), sandbox.cpu_ticks()
    host.pump(1)
    spent = (sandbox.cpu_ticks() - ticks) / os.sysconf("SC_CLK_TCK")
    assert spent < 0.6 * (time.monotonic() - begin)
    host.stop(run)
    line, = refusals(host)
    assert line["text"].startswith(
        "connections of the sandbox's own processes: ")


# ---- what belongs to nobody in the sandbox

def test_a_bridge_is_no_process_that_was_left_behind(sandbox, host):
    bridge, = sandbox.running_bridges()
    run = host.run(shell("sleep 600 >/dev/null 2>&1 & echo x"))
    listed = host.list_left(run)
    assert [p[3] for p in listed.processes] == ["sleep 600"]
    assert listed.total == 1
    host.kill_left(run)
    sandbox.wait_empty()
    host.ping()
    assert host.left == 0
    assert sandbox.running_bridges() == [bridge]


def test_what_kills_orphans_spares_the_bridge(sandbox, host):
    bridge, = sandbox.running_bridges()
    run = host.run(python(
        "import os, time\n"
        "if os.fork() == 0:\n    os.setsid()\n    time.sleep(600)\n"
        "os.kill(os.getppid(), 9)\ntime.sleep(600)"), user=wire.ROOT)
    sandbox.wait_empty()
    host.ping()
    assert [f["run"] for f in host.said if f["what"] == "KEEPER_LOST"] == [
        run.key]
    assert sandbox.running_bridges() == [bridge]


def test_nobody_in_the_sandbox_looks_into_a_bridge(sandbox, host):
    """Not even root with all that the bridge may."""
    bridge = sandbox.enter(
        ["setpriv", "--inh-caps=-all", "--bounding-set=-all", *BRIDGE],
        stdin=subprocess.PIPE, stdout=subprocess.PIPE)
    say(bridge, knock(host.secret))
    assert hears_something(bridge, WAIT_S)
    host.conn.close()
    say(bridge, start_of(python(FIND + """
for name in "mem", "environ", "maps", "fd/0":
    try:
        open(f"/proc/{bridge}/{name}", "rb").read(1)
        print(name)
    except PermissionError:
        print("refused", flush=True)
print("all looked at")
"""), user=wire.ROOT))
    assert read_until(bridge, b"all looked at\n").count(b"refused\n") == 4


# ---- the program

def test_a_bridge_ends_when_its_input_does(sandbox, host):
    bridge = start_piped(sandbox)
    say(bridge, knock(host.secret))
    assert hears_something(bridge, WAIT_S)
    bridge.stdin.close()
    assert wait_ended(bridge) == b""


def test_a_bridge_ends_when_its_output_is_not_wanted(sandbox, host):
    bridge = start_piped(sandbox)
    say(bridge, knock(host.secret))
    assert hears_something(bridge, WAIT_S)
    bridge.stdout.close()
    assert wait_ended(bridge) == b""


def test_a_bridge_ends_with_the_stream_though_nobody_reads(sandbox, host):
    bridge = start_piped(sandbox)
    say(bridge, knock(host.secret)
        + wire.pack_frame("WELCOME", version=wire.VERSION)
        + wire.pack_frame("PING") * 50000)
    host.accept()
    assert bridge.wait(WAIT_S) == 0


def test_a_bridge_without_an_agent_says_so_and_fails(make_sandbox):
    sandbox = make_sandbox(carrier="unix")
    bridge = sandbox.enter(BRIDGE, stdin=subprocess.PIPE,
                           stdout=subprocess.PIPE, stderr=subprocess.PIPE)
    bridge.stdin.flush()
    out, err = bridge.stdout.read(), bridge.stderr.read()
    assert (bridge.wait(WAIT_S), out) == (1, b"")
    assert err == b"agent bridge: connect: Connection refused\n"
