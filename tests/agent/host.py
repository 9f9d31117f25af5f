"""The worker's side of the link, and a sandbox with the real agent in it.

AGENT_CARRIER=bridge has all tests take the other way to the agent: it waits,
and what links is "agent bridge", started in the sandbox from outside.
"""
import os
import select
import shutil
import signal
import socket
import struct
import subprocess
import tempfile
import time
import uuid

import wire

WAIT_S = 20
CARRIER = os.environ.get("AGENT_CARRIER", "unix")
assert CARRIER in ("unix", "bridge")

# Runs in new PID and mount namespaces: builds a root of its own from the
# machine's programs, so that /workspace, /artifacts and /tmp are empty and
# nothing on the machine is changed, and becomes the agent.
ROOT_SCRIPT = """
set -e
share=$1 root=$2 cgroup=$3 hidden=$4 options=$5 user=$6
mount -t tmpfs -o mode=755 none "$root"
for d in bin sbin lib lib32 lib64 libx32; do
    if [ -L "/$d" ]; then cp -P "/$d" "$root/$d"
    elif [ -d "/$d" ]; then mkdir "$root/$d"; mount --rbind "/$d" "$root/$d"
    fi
done
mkdir "$root/usr" "$root/etc" "$root/dev" "$root/proc" "$root/sys" \
    "$root/tmp" "$root/workspace" "$root/artifacts" "$root/root" \
    "$root/.mcp-sandbox"
for d in usr etc; do
    mount --bind "/$d" "$root/$d"
    mount -o remount,bind,ro "$root/$d"
done
mount --rbind /dev "$root/dev"
mount -t proc proc "$root/proc"
mount --bind "$share" "$root/.mcp-sandbox"
for d in tmp workspace artifacts; do mount -t tmpfs none "$root/$d"; done
chmod 1777 "$root/tmp"
chown 1000:1000 "$root/workspace" "$root/artifacts"
# what the container gives its first process
set -- --inh-caps=-all --bounding-set=-all,+setuid,+setgid,+chown,+fowner,\
+dac_override,+kill,+setpcap
if [ -n "$user" ]; then
    chown 0:0 "$root/workspace" "$root/artifacts"
    chmod 777 "$root/workspace" "$root/artifacts"
    set -- "--reuid=$user" "--regid=$user" --groups=4321 --inh-caps=-all \
        --bounding-set=-all --no-new-privs
fi
if [ -n "$hidden" ]; then mount --bind /dev/null "$root$hidden"; fi
if [ -n "$cgroup" ]; then
    mkdir -p "$root/sys/fs/cgroup"
    if [ -e "$cgroup/memory.events" ]; then
        mount --bind "$cgroup" "$root/sys/fs/cgroup"
    else
        mkdir "$root/sys/fs/cgroup/memory"
        mount --bind "$cgroup" "$root/sys/fs/cgroup/memory"
    fi
fi
exec chroot "$root" setpriv "$@" /.mcp-sandbox/agent $options
"""


BRIDGE_ARGS = b"/.mcp-sandbox/agent\0bridge\0"


def wait_until(condition, what, seconds=WAIT_S):
    end = time.monotonic() + seconds
    while not condition():
        assert time.monotonic() < end, f"waited in vain until {what}"
        time.sleep(0.002)


class Run:
    """What the worker knows of one run."""

    def __init__(self, key):
        self.key = key
        self.spool = bytearray()
        self.kept = True
        self.length = 0
        self.parser = wire.LogParser()
        self.records = []
        self.chan = 0
        self.known = None
        self.refused = None
        self.window = wire.WINDOW
        self.auto_ack = True
        self.seen_at = {}

    def take(self, offset, data):
        assert offset == self.length, "log bytes not in order"
        self.length += len(data)
        if self.kept:
            self.spool += data
        for record in self.parser.feed(data):
            if record.kind not in self.seen_at:
                self.seen_at[record.kind] = time.monotonic()
            if self.kept or record.kind not in (wire.STDOUT, wire.STDERR):
                self.records.append(record)
            self.on_record(record)

    def on_record(self, record):
        """For tests that look at output without keeping it."""

    @property
    def ended(self):
        return self.parser.ended

    def output(self, kind=wire.STDOUT, command=0):
        return b"".join(r.payload for r in self.records
                        if r.kind == kind and r.command == command)

    def record(self, kind, command):
        return next((r for r in self.records
                     if (r.kind, r.command) == (kind, command)), None)

    def end(self, command=0):
        record = self.record(wire.COMMAND_ENDED, command)
        assert record, f"command {command} has no end"
        end = record.end()
        if self.kept:
            assert (end.stdout_bytes, end.stderr_bytes) == tuple(
                len(self.output(kind, command))
                for kind in (wire.STDOUT, wire.STDERR))
        return end

    def left(self, command=0):
        record = self.record(wire.LEFT, command)
        return record.left() if record else wire.Left(0, False, [])

    @property
    def run_end(self):
        return self.records[-1].run_end()

    @property
    def commands_ended(self):
        return sum(r.kind == wire.COMMAND_ENDED for r in self.records)


class Channel:
    """What came on any other channel."""

    def __init__(self, number, window=wire.WINDOW, start=0):
        self.number = number
        self.start = start
        self.window = window
        self.auto_credit = True
        self.streams = {}
        self.entries = []
        self.order = []  # streams of the DATA, as they came
        self.exited = None
        self.closed = None  # (code, text)
        self.limit = 0      # what the agent grants us

    @property
    def data(self):
        return bytes(self.streams.get(0, b""))

    @property
    def code(self):
        return self.closed[0]


class Host:
    """Listens where the agent connects, and speaks frames with it."""

    def __init__(self, directory):
        self.path = os.path.join(directory, "sock")
        self.listener = None
        self.conn = None
        self.runs = {}
        self.channels = {}  # by number: Run or Channel
        self.last = 0
        self.pongs = []
        self.said = []
        self.hello = None
        self.hello_runs = {}
        self.greeted = False
        self.left = None  # processes, as HELLO_END and PONG say
        self.closed = False
        self.buffer = bytearray()
        self.listen()

    def listen(self):
        self.listener = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
        self.listener.bind(self.path)
        os.chmod(self.path, 0o666)
        self.listener.listen(4)
        self.listener.settimeout(WAIT_S)

    def stop_listening(self):
        self.listener.close()
        os.unlink(self.path)

    def connect(self):
        """What the agent greets on; here it is the agent that connects."""
        self.conn, _ = self.listener.accept()

    def accept(self, welcome=True):
        self.connect()
        self.greet(welcome)

    def greet(self, welcome=True):
        """With what has connected."""
        self.closed = False
        self.buffer.clear()
        self.pongs.clear()
        self.channels.clear()
        self.last = 0
        self.hello_runs.clear()
        self.hello = None
        self.greeted = False
        self.wait(lambda: self.greeted, "HELLO_END")
        assert self.hello["runs"] == len(self.hello_runs)
        if welcome:
            self.welcome()

    def welcome(self):
        self.send("WELCOME", version=wire.VERSION)

    def drop(self):
        self.conn.close()
        self.conn = None

    def reconnect(self):
        self.drop()
        self.accept()

    def wait_refused(self):
        """What was sent costs the link; then there is another."""
        self.wait_closed()
        self.reconnect()

    def send_raw(self, data):
        self.conn.sendall(data)

    def send(self, name, **fields):
        self.send_raw(wire.pack_frame(name, **fields))

    def next_number(self):
        self.last += 1
        return self.last

    def open(self, name, window=wire.WINDOW, start=0, **fields):
        """A channel of any kind but a sequence."""
        c = Channel(self.next_number(), window, start)
        self.channels[c.number] = c
        if name != "OPEN_WRITE":
            fields["limit"] = start + window
        self.send(name, chan=c.number, **fields)
        return c

    def close(self, c, code=0):
        self.send("CLOSE", chan=c.number, code=code)
        del self.channels[c.number]

    # runs

    def start(self, commands, key=None, have=0, window=wire.WINDOW,
              auto_ack=True, **spec):
        if not isinstance(commands, list):
            commands = [commands]
        return self.start_spec(wire.pack_spec(commands, **spec), key, have,
                               window, auto_ack)

    def begin(self, commands, **more):
        """Start, and wait until the first command runs."""
        run = self.start(commands, **more)
        self.wait(lambda: run.records, "it runs")
        return run

    def start_spec(self, spec, key=None, have=0, window=wire.WINDOW,
                   auto_ack=True):
        key = key or uuid.uuid4()
        run = self.runs.setdefault(key, Run(key))
        run.auto_ack = auto_ack
        self.open_run(run, have, window, spec)
        return run

    def open_run(self, run, have, window, spec=b""):
        self.channels.pop(run.chan, None)
        run.known = run.refused = None
        run.window = window
        run.chan = self.next_number()
        self.channels[run.chan] = run
        self.send("OPEN_SEQUENCE", chan=run.chan, run=run.key,
                  limit=have + window, **{"from": have}, spec=spec)

    def attach(self, run, have=None, window=wire.WINDOW):
        """After a reconnect: go on from what the spool has."""
        self.open_run(run, run.length if have is None else have, window)
        self.wait(lambda: run.known or run.refused, "an answer")

    def ack(self, run, offset=None):
        offset = run.length if offset is None else offset
        self.send("CREDIT", chan=run.chan, taken=offset,
                  limit=offset + run.window)

    def cancel(self, run, reason=wire.CANCELED):
        self.send("CANCEL", chan=run.chan, reason=reason)

    def stop(self, *runs):
        """Cancel, and wait for the ends."""
        for run in runs:
            self.cancel(run)
        return self.finish(*runs)

    def forget(self, run):
        self.send("CLOSE", chan=run.chan)
        self.channels.pop(run.chan, None)

    def finish(self, *runs, seconds=WAIT_S):
        self.wait(lambda: all(r.ended or r.refused for r in runs),
                  "the runs end", seconds)
        return runs[0]

    def run(self, commands, **more):
        return self.finish(self.start(commands, **more))

    # what runs left behind

    def ask_left(self, run, kind, process=0):
        return self.wait_close(self.open(
            "OPEN_ASK", kind=kind,
            arguments=run.key.bytes + struct.pack("<I", process)))

    def list_left(self, run):
        c = self.ask_left(run, 0)
        assert c.code == 0
        return wire.unpack_leftlist(c.data)

    def kill_left(self, run, process=0):
        c = self.ask_left(run, 1, process)
        assert c.code == 0
        return wire.unpack_leftlist(c.data)

    # processes

    def process(self, command, window=wire.WINDOW, **spec):
        return self.open("OPEN_PROCESS", window,
                         spec=wire.pack_spec([command], **spec))

    def wait_close(self, *channels):
        self.wait(lambda: all(c.closed for c in channels), "a CLOSE")
        return channels[0]

    # files

    def walk(self, root, changed_only=False, window=100):
        c = self.open("OPEN_WALK", window, changed_only=changed_only,
                      root=root)
        self.wait_close(c)
        return {e["path"]: e for e in c.entries}, c.code

    def taken(self, entry, path=None, root="/artifacts", stored=True):
        self.send("TAKEN", root=root, path=path or entry["path"],
                  mark=entry["mark"])
        if stored is not None:
            self.send("TAKEN_STORED", stored=stored)

    def start_read(self, root, path, offset=0, until=1 << 40,
                   window=wire.WINDOW):
        return self.open("OPEN_READ", window, start=offset, root=root,
                         path=path, until=until, **{"from": offset})

    def read(self, root, path, **more):
        c = self.wait_close(self.start_read(root, path, **more))
        return c.data, c.code

    def start_write(self, path, root="/workspace", mode=0o644, owner=0):
        return self.open("OPEN_WRITE", root=root, path=path, mode=mode,
                         owner=owner)

    def write_some(self, c, offset, data):
        """Within what the agent grants; to its end, or until it closes."""
        while data and not c.closed:
            self.wait(lambda: c.limit > offset or c.closed, "credit")
            part = data[:min(c.limit - offset, 200000)]
            self.send("DATA", chan=c.number, offset=offset, bytes=part)
            offset += len(part)
            data = data[len(part):]
        return offset

    def write(self, path, data, **more):
        c = self.start_write(path, **more)
        self.write_some(c, 0, data)
        if not c.closed:
            self.send("STREAM_END", chan=c.number)
        return self.wait_close(c).code

    def ping(self, token=7):
        self.send("PING", token=token)
        self.wait(lambda: token in self.pongs, "a PONG")
        self.pongs.clear()

    # receiving

    def wait(self, condition, what, seconds=WAIT_S):
        end = time.monotonic() + seconds
        while not condition():
            left = end - time.monotonic()
            assert left > 0, f"waited in vain until {what}"
            assert not self.closed, f"the agent hung up before {what}"
            self.pump(left)

    def wait_closed(self):
        end = time.monotonic() + WAIT_S
        while not self.closed:
            assert time.monotonic() < end, "the agent keeps a bad link"
            self.pump(1)

    def pump(self, seconds):
        """Take what comes in one read, within so many seconds."""
        if not select.select([self.conn], [], [], seconds)[0]:
            return
        try:
            data = self.conn.recv(1 << 20)
        except ConnectionResetError:
            data = b""
        if not data:
            self.closed = True
            return
        self.buffer += data
        at = 0
        view = memoryview(self.buffer)
        while len(view) - at >= 8:
            size, number, zero = struct.unpack_from("<IHH", view, at)
            assert zero == 0 and 4 <= size <= wire.UP_MAX
            if len(view) - at < size + 4:
                break
            body = bytes(view[at + 8:at + 4 + size])
            at += size + 4
            name, fields = wire.unpack_frame(number, body)
            getattr(self, "on_" + name.lower())(fields)
        view.release()
        del self.buffer[:at]

    def on_hello(self, f):
        self.hello = f
        assert f["version"] == wire.VERSION

    def on_hello_run(self, f):
        key = f.pop("run")
        self.hello_runs[key] = f

    def on_hello_end(self, f):
        self.greeted = True
        self.left = f["left"]

    def on_said(self, f):
        assert self.greeted
        f["level"] = ("debug", "info", "warn")[f["level"]]
        f["what"] = wire.SAID_WHATS[f["what"]]
        self.said.append(f)

    def on_pong(self, f):
        self.left = f["left"]
        self.pongs.append(f["token"])

    def on_known(self, f):
        run = self.channels[f.pop("chan")]
        run.known = f

    def on_data(self, f):
        c = self.channels.get(f["chan"])
        if c is None:  # closed by us, on its way
            return
        if isinstance(c, Run):
            assert c.known, "a log before the answer to OPEN_SEQUENCE"
            assert f["stream"] == 0
            c.take(f["offset"], f["bytes"])
            if c.auto_ack:
                self.ack(c)
            return
        got = c.streams.setdefault(f["stream"], bytearray())
        assert f["offset"] == c.start + len(got), "bytes not in order"
        got += f["bytes"]
        c.order.append(f["stream"])
        self.grant(c, f["stream"], c.start + len(got))

    def on_entry(self, f):
        c = self.channels.get(f["chan"])
        if c is None:
            return
        assert f["index"] == len(c.entries)
        f["type"] = chr(f.pop("kind"))
        c.entries.append(f)
        self.grant(c, 0, len(c.entries))

    def grant(self, c, stream, offset):
        if c.auto_credit:
            self.credit(c, offset, stream)

    def credit(self, c, offset, stream=0):
        self.send("CREDIT", chan=c.number, stream=stream, taken=offset,
                  limit=offset + c.window)

    def on_credit(self, f):
        c = self.channels.get(f["chan"])
        if c is not None:
            c.limit = f["limit"]

    def on_exited(self, f):
        c = self.channels[f["chan"]]
        c.exited = f
        f["reason"] = wire.REASONS[f["reason"]]

    def on_close(self, f):
        c = self.channels.pop(f["chan"], None)
        if isinstance(c, Run):
            c.refused = None if f["code"] == 0 else f["text"]
        elif c is not None:
            c.closed = (f["code"], f["text"])


class BridgeHost(Host):
    """The same, but it is the host that connects: by a bridge each time."""

    def __init__(self, sandbox):
        self.sandbox = sandbox
        self.secret = os.urandom(32)
        super().__init__(sandbox.dir)

    def listen(self):
        """There is nothing that the agent could connect to."""

    def stop_listening(self):
        """Nothing comes in but by connect."""

    def connect(self):
        self.conn, end = socket.socketpair()
        with end:
            self.sandbox.start_bridge(stdin=end, stdout=end)
        self.knock()

    def knock(self):
        self.send("KNOCK", secret=self.secret)

    def send_raw(self, data):
        """That the bridge is gone is noticed by reading."""
        try:
            super().send_raw(data)
        except (BrokenPipeError, ConnectionResetError):
            pass


class Sandbox:
    """The agent as PID 1 of its own namespace, and its host."""

    def __init__(self, agent, cgroup="", accept=True, hidden="", env=None,
                 carrier=CARRIER, options="", user=""):
        self.dir = tempfile.mkdtemp(prefix="sandbox-")
        share = os.path.join(self.dir, "share")
        root = os.path.join(self.dir, "root")
        os.mkdir(share, 0o755)
        os.mkdir(root)
        os.chmod(self.dir, 0o755)
        subprocess.run([agent, "install", share], check=True)
        self.user = user
        self.bridges = []
        self.is_bridged = carrier == "bridge"
        more = []
        if self.is_bridged:
            self.host = BridgeHost(self)
            more = ["--net"]  # the inner socket's name is the namespace's
            options += " -l 1"
        else:
            self.host = Host(share)
        self.child = subprocess.Popen(
            ["unshare", "--pid", "--fork", "--mount-proc", *more,
             "--mount", "--kill-child", "sh", "-c", ROOT_SCRIPT, "sh",
             share, root, cgroup, hidden, options, user],
            stdin=subprocess.DEVNULL,
            env={"PATH": os.environ["PATH"], **(env or {})})
        if self.is_bridged or not accept:
            wait_until(self.is_agent_running, "the agent runs")
        if accept:
            self.host.accept()

    def enter(self, command, **more):
        """Start it in the sandbox as an engine's exec does: from outside."""
        who = ([f"--setuid={self.user}", f"--setgid={self.user}"]
               if self.user else [])
        return subprocess.Popen(
            ["nsenter", f"--target={self.pid}", "--pid", "--mount", "--net",
             "--root", *who, "--", *command], **more)

    def start_bridge(self, **more):
        for bridge in self.bridges:
            bridge.poll()  # nobody else takes what has ended
        self.bridges.append(self.enter(["/.mcp-sandbox/agent", "bridge"],
                                       **more))
        return self.bridges[-1]

    def children(self, pid):
        path = f"/proc/{pid}/task/{pid}/children"
        with open(path, encoding="ascii") as f:
            return [int(p) for p in f.read().split()]

    @property
    def pid(self):
        """Of the agent, outside."""
        return self.children(self.child.pid)[0]

    def is_agent_running(self):
        try:
            with open(f"/proc/{self.pid}/comm", encoding="ascii") as f:
                return f.read() == "agent\n"
        except (IndexError, OSError):
            return False

    def processes(self):
        """As all_processes, but for keepers."""
        return {p: args for p, (name, _, args) in self.scan().items()
                if name != "keeper"}

    def wait_empty(self, seconds=WAIT_S):
        wait_until(lambda: not self.processes(), "no process lives", seconds)

    def keepers(self):
        """Pids; on its way to exec a command has a keeper's name, too."""
        return {p for p, (name, parent, _) in self.scan().items()
                if name == "keeper" and parent == self.pid}

    def all_processes(self):
        """All processes in the sandbox but its init: pid -> arguments."""
        return {p: args for p, (_, _, args) in self.scan().items()}

    def running_bridges(self):
        """Pids, outside."""
        return [p for p, (_, _, args) in self.scan_all().items()
                if args == BRIDGE_ARGS]

    def scan(self):
        """pid -> (name, parent, arguments) of what is there but bridges, which
        belong to the link."""
        return {p: it for p, it in self.scan_all().items()
                if it[2] != BRIDGE_ARGS and it[0] != "nsenter"}

    def scan_all(self):
        """Each looked at once: keepers come and go."""
        mine = os.readlink(f"/proc/{self.pid}/ns/pid")
        found = {}
        for name in os.listdir("/proc"):
            try:
                if not name.isdigit() or int(name) == self.pid:
                    continue
                if os.readlink(f"/proc/{name}/ns/pid") != mine:
                    continue
                with open(f"/proc/{name}/stat", encoding="latin-1") as f:
                    comm, rest = f.read().rsplit(")", 1)
                with open(f"/proc/{name}/cmdline", "rb") as f:
                    found[int(name)] = (comm.split("(", 1)[1],
                                        int(rest.split()[1]), f.read())
            except OSError:
                continue
        return found

    def open_files(self):
        """How many descriptors the agent has."""
        return len(os.listdir(f"/proc/{self.pid}/fd"))

    def links(self):
        """What the agent has open, by name."""
        names = []
        for fd in os.listdir(f"/proc/{self.pid}/fd"):
            try:
                names.append(os.readlink(f"/proc/{self.pid}/fd/{fd}"))
            except OSError:
                continue
        return names

    def path(self, inside):
        """A path of the sandbox, seen from outside."""
        return f"/proc/{self.pid}/root{inside}"

    def cpu_ticks(self):
        with open(f"/proc/{self.pid}/stat", encoding="ascii") as f:
            fields = f.read().rsplit(")", 1)[1].split()
        return int(fields[11]) + int(fields[12])

    def switches(self):
        """How often the agent went to sleep."""
        with open(f"/proc/{self.pid}/status", encoding="ascii") as f:
            return next(int(line.split()[1]) for line in f
                        if line.startswith("voluntary_ctxt_switches"))

    def will_sleep_ms(self):
        """The time-out of the epoll_wait that it is in: its fourth argument,
        of which -1 is the greatest.  0: it is not asleep."""
        with open(f"/proc/{self.pid}/syscall", encoding="ascii") as f:
            call = f.read().split()
        return int(call[4], 16) & 0xffffffff if len(call) > 4 else 0

    def wait_asleep(self, ms=0xffffffff):
        """Whatever it is asked in between, it goes back to sleep for as long,
        if nothing happens; on a bridge until the next PING is due."""
        if self.is_bridged:
            ms = min(ms, 25000)
        for _ in range(3):
            wait_until(lambda: self.will_sleep_ms() >= ms, "the agent sleeps")
            self.host.ping()
        wait_until(lambda: self.will_sleep_ms() >= ms, "the agent sleeps")

    def close(self):
        if self.user and self.is_agent_running():
            # that its parent dies it does not hear: its user was changed
            os.kill(self.pid, signal.SIGKILL)
        self.child.kill()
        self.child.wait()
        if self.host.conn:
            self.host.conn.close()
        if self.host.listener:
            self.host.listener.close()
        for bridge in self.bridges:
            bridge.wait()
        shutil.rmtree(self.dir, ignore_errors=True)
