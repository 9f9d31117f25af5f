"""The worker's side of the link, and a sandbox with the real agent in it."""
import os
import select
import shutil
import socket
import struct
import subprocess
import tempfile
import time
import uuid

import wire

WAIT_S = 20

# Runs in new PID and mount namespaces: builds a root of its own from the
# machine's programs, so that /workspace, /artifacts and /tmp are empty and
# nothing on the machine is changed, and becomes the agent.
ROOT_SCRIPT = """
set -e
share=$1 root=$2 cgroup=$3 hidden=$4
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
# the capabilities that the container gives its first process
exec chroot "$root" setpriv --inh-caps=-all --bounding-set=-all,+setuid,\
+setgid,+chown,+fowner,+dac_override,+kill,+setpcap /.mcp-sandbox/agent
"""


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
        self.known = None
        self.refused = None
        self.acked = 0
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

    def end(self, command=0):
        for record in self.records:
            if (record.kind, record.command) == (wire.COMMAND_ENDED, command):
                end = record.end()
                if self.kept:
                    assert end.stdout_bytes == len(
                        self.output(wire.STDOUT, command))
                    assert end.stderr_bytes == len(
                        self.output(wire.STDERR, command))
                return end
        raise AssertionError(f"command {command} has no end")

    @property
    def run_end(self):
        return self.records[-1].run_end()

    @property
    def commands_ended(self):
        return sum(r.kind == wire.COMMAND_ENDED for r in self.records)


class Host:
    """Listens where the agent connects, and speaks frames with it."""

    def __init__(self, directory):
        self.path = os.path.join(directory, "sock")
        self.listener = None
        self.conn = None
        self.runs = {}
        self.replies = []
        self.hello = None
        self.hello_runs = {}
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

    def accept(self, welcome=True):
        self.conn, _ = self.listener.accept()
        self.closed = False
        self.buffer.clear()
        self.replies.clear()
        self.hello_runs.clear()
        self.hello = None
        done = []
        self.on_hello_end = lambda: done.append(True)
        self.wait(lambda: done, "HELLO_END")
        assert self.hello["runs"] == len(self.hello_runs)
        if welcome:
            self.welcome()

    def welcome(self):
        self.send(wire.WELCOME, struct.pack("<I", 1))

    def drop(self):
        self.conn.close()
        self.conn = None

    def send_raw(self, data):
        self.conn.sendall(data)

    def send(self, kind, *parts):
        self.send_raw(wire.pack_frame(kind, *parts))

    # runs

    def start(self, commands, key=None, have=0, window=wire.WINDOW,
              auto_ack=True, **spec):
        if not isinstance(commands, list):
            commands = [commands]
        key = key or uuid.uuid4()
        run = self.runs.setdefault(key, Run(key))
        run.auto_ack = auto_ack
        run.known = run.refused = None
        self.send(wire.RUN_START, key.bytes, struct.pack("<QQ", have, window),
                  wire.pack_spec(commands, **spec))
        return run

    def attach(self, run, have=None, window=wire.WINDOW):
        """After a reconnect: go on from what the spool has."""
        run.known = run.refused = None
        have = run.length if have is None else have
        self.send(wire.RUN_START, run.key.bytes,
                  struct.pack("<QQ", have, window))
        self.wait(lambda: run.known or run.refused, "an answer to RUN_START")

    def ack(self, run, offset=None):
        run.acked = run.length if offset is None else offset
        self.send(wire.RUN_ACK, run.key.bytes, struct.pack("<Q", run.acked))

    def cancel(self, run, reason=wire.CANCELED):
        self.send(wire.RUN_CANCEL, run.key.bytes, struct.pack("<B", reason))

    def forget(self, run):
        self.send(wire.RUN_FORGET, run.key.bytes)

    def finish(self, *runs, seconds=WAIT_S):
        self.wait(lambda: all(r.ended or r.refused for r in runs),
                  "the runs end", seconds)
        return runs[0]

    def run(self, commands, **more):
        return self.finish(self.start(commands, **more))

    # requests

    def walk(self, root, changed_only=False, limit=5000, request=1):
        self.send(wire.WALK, struct.pack("<IBI", request, changed_only,
                                         limit), wire.pack_bytes(root))
        self.wait(lambda: self.reply(wire.FILE_END, request), "a walk ends")
        entries = {r["path"]: r for r in self.replies
                   if r["kind"] == wire.FILE_ENTRY
                   and r["request"] == request}
        end = self.reply(wire.FILE_END, request)
        self.forget_replies(request)
        return entries, end

    def taken(self, path, request=1):
        self.send(wire.WALK_TAKEN, struct.pack("<I", request),
                  wire.pack_bytes(path))

    def start_read(self, root, path, offset=0, limit=1 << 40,
                   window=1 << 20, request=2):
        self.send(wire.READ, struct.pack("<IQQI", request, offset, limit,
                                         window),
                  wire.pack_bytes(root), wire.pack_bytes(path))

    def read(self, root, path, request=2, **more):
        self.start_read(root, path, request=request, **more)
        self.wait(lambda: self.reply(wire.FILE_END, request), "a read ends")
        data = b"".join(r["data"] for r in self.replies
                        if r["kind"] == wire.FILE_DATA
                        and r["request"] == request)
        end = self.reply(wire.FILE_END, request)
        self.forget_replies(request)
        return data, end

    def reply(self, kind, request):
        for r in self.replies:
            if r["kind"] == kind and r["request"] == request:
                return r
        return None

    def forget_replies(self, request):
        self.replies = [r for r in self.replies if r["request"] != request]

    def ping(self, token=7):
        self.send(wire.PING, struct.pack("<Q", token))
        self.wait(lambda: self.reply(wire.PONG, token), "a PONG")
        self.forget_replies(token)

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
            size, kind, zero = struct.unpack_from("<IHH", view, at)
            assert zero == 0 and 4 <= size <= wire.UP_MAX
            if len(view) - at < size + 4:
                break
            body = bytes(view[at + 8:at + 4 + size])
            at += size + 4
            self.take(kind, wire.Fields(body))
        view.release()
        del self.buffer[:at]

    def take(self, kind, f):
        self.HANDLERS[kind](self, f)
        f.end()

    def on_hello(self, f):
        self.hello = {"version": f.number("I"), "boot": f.id(),
                      "runs": f.number("I")}
        assert self.hello["version"] == 1

    def on_hello_run(self, f):
        key = f.id()  # before the others: fields come in order
        self.hello_runs[key] = {"ended": f.number("B"),
                                "from": f.number("Q"),
                                "length": f.number("Q")}

    def on_hello_end_frame(self, _):
        self.on_hello_end()

    def on_run_known(self, f):
        run = self.runs[f.id()]
        run.known = {"fresh": f.number("B"), "length": f.number("Q")}

    def on_run_refused(self, f):
        run = self.runs[f.id()]
        run.refused = f.text().decode()

    def on_run_log(self, f):
        run = self.runs[f.id()]
        assert run.known, "a log before the answer to RUN_START"
        run.take(f.number("Q"), f.rest())
        if run.auto_ack:
            self.ack(run)

    def on_file_entry(self, f):
        self.replies.append({
            "kind": wire.FILE_ENTRY, "request": f.number("I"),
            "type": chr(f.number("B")), "mode": f.number("I"),
            "size": f.number("Q"), "mtime_ns": f.number("q"),
            "path": f.text()})

    def on_file_data(self, f):
        request, offset = f.number("I"), f.number("Q")
        data = bytes(f.rest())
        self.replies.append({"kind": wire.FILE_DATA, "request": request,
                             "offset": offset, "data": data})
        self.on_data(request, offset + len(data))

    def on_data(self, request, offset):
        self.send(wire.READ_ACK, struct.pack("<IQ", request, offset))

    def on_file_end(self, f):
        self.replies.append({"kind": wire.FILE_END, "request": f.number("I"),
                             "errno": f.number("i"), "size": f.number("Q")})

    def on_pong(self, f):
        self.replies.append({"kind": wire.PONG, "request": f.number("Q")})

    HANDLERS = {
        wire.HELLO: on_hello, wire.HELLO_RUN: on_hello_run,
        wire.HELLO_END: on_hello_end_frame, wire.RUN_KNOWN: on_run_known,
        wire.RUN_REFUSED: on_run_refused, wire.RUN_LOG: on_run_log,
        wire.FILE_ENTRY: on_file_entry, wire.FILE_DATA: on_file_data,
        wire.FILE_END: on_file_end, wire.PONG: on_pong,
    }


class Sandbox:
    """The agent as PID 1 of its own namespace, and its host."""

    def __init__(self, agent, cgroup="", accept=True, hidden=""):
        self.dir = tempfile.mkdtemp(prefix="sandbox-")
        share = os.path.join(self.dir, "share")
        root = os.path.join(self.dir, "root")
        os.mkdir(share, 0o755)
        os.mkdir(root)
        os.chmod(self.dir, 0o755)
        shutil.copy(agent, os.path.join(share, "agent"))
        os.chmod(os.path.join(share, "agent"), 0o755)
        self.host = Host(share)
        self.child = subprocess.Popen(
            ["unshare", "--pid", "--fork", "--mount-proc",
             "--mount", "--kill-child", "sh", "-c", ROOT_SCRIPT, "sh",
             share, root, cgroup, hidden],
            stdin=subprocess.DEVNULL, env={"PATH": os.environ["PATH"]})
        if accept:
            self.host.accept()
        else:
            wait_until(self.is_agent_running, "the agent runs")

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
        """As all_processes, but for keepers: those may wait for work."""
        keepers = self.keepers()
        return {p: a for p, a in self.all_processes().items()
                if p not in keepers}

    def keepers(self):
        """Pids of what looks like a keeper; on the way to a command's exec
        its process does, too."""
        found = set()
        for pid in self.all_processes():
            try:
                with open(f"/proc/{pid}/comm", encoding="ascii") as f:
                    if f.read() == "keeper\n":
                        found.add(pid)
            except OSError:
                continue
        return found

    def all_processes(self):
        """All processes in the sandbox but its init: pid -> arguments."""
        mine = os.readlink(f"/proc/{self.pid}/ns/pid")
        found = {}
        for name in os.listdir("/proc"):
            try:
                if not name.isdigit() or int(name) == self.pid:
                    continue
                if os.readlink(f"/proc/{name}/ns/pid") != mine:
                    continue
                with open(f"/proc/{name}/cmdline", "rb") as f:
                    found[int(name)] = f.read()
            except OSError:
                continue
        return found

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
            for line in f:
                if line.startswith("voluntary_ctxt_switches"):
                    return int(line.split()[1])
        raise AssertionError("no such line")

    def close(self):
        self.child.kill()
        self.child.wait()
        if self.host.conn:
            self.host.conn.close()
        self.host.listener.close()
        shutil.rmtree(self.dir, ignore_errors=True)
