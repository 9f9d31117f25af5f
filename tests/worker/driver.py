"""Plays the supervisor and the front of one real worker.

What is said is read from schema/ipc.txt (tests/lists.py); specifications and
logs are written from common/*.h, not from the C code, so that a mistake in one
of the two shows.
"""
import array
import collections
import hashlib
import http.client
import io
import json
import os
import select
import shutil
import socket
import struct
import subprocess
import sys
import tarfile
import tempfile
import threading
import time
import urllib.parse
import uuid

sys.path.insert(0, os.path.dirname(os.path.dirname(
    os.path.abspath(__file__))))

from lists import Protocol, pack_bytes  # noqa: E402

IPC = Protocol("ipc.txt")
CREATE, ADOPT = (IPC.enums["open_mode"][n] for n in ("CREATE", "ADOPT"))
REASONS = (None, "exit", "signal", "timeout", "memory", "output_limit",
           "canceled", "start_failed", "denied", "sandbox_lost", "internal",
           "disk_full")
OUTPUT_LIMIT, CANCELED = 5, 6
SHELL = 2
STDOUT, RUN_IS_ENDED = 3, 6
ERR_BACKEND, ERR_POLICY = -8, -9
WAIT_S = 40
MIB = 1 << 20

Message = collections.namedtuple("Message", "type id fields")


class Channel:
    def __init__(self, sock):
        self.sock = sock
        self.waiting = collections.deque()
        self.on_ended = None  # (number, fields)
        self.parsed = collections.deque()

    def send(self, kind, number=0, fds=(), /, **fields):
        self.send_raw(kind, number, IPC.pack(kind, **fields), fds)

    def send_raw(self, name, number, body, fds=()):
        packet = struct.pack("<HHIQ", IPC.number(name), len(fds),
                             16 + len(body), number)
        extra = [(socket.SOL_SOCKET, socket.SCM_RIGHTS,
                  array.array("i", fds))] if fds else []
        self.sock.sendmsg([packet + body], extra)

    def receive(self, timeout):
        if not self.parsed:
            self.receive_packet(timeout)
        return self.parsed.popleft()

    def receive_packet(self, timeout):
        if not select.select([self.sock], [], [], max(timeout, 0))[0]:
            raise TimeoutError("the worker says nothing")
        data, extra, flags, _ = self.sock.recvmsg(
            1 << 17, socket.CMSG_SPACE(8))
        if not data:
            raise EOFError("the worker closed the channel")
        assert not flags & socket.MSG_TRUNC
        while data:
            kind, nfds, length, number = struct.unpack_from("<HHIQ", data)
            assert 16 <= length <= len(data) and nfds == 0 and not extra
            name = IPC.name(kind)
            fields = IPC.unpack(name, data[16:length])
            self.parsed.append(Message(name, number, fields))
            if name == "RUN_ENDED" and self.on_ended:
                self.on_ended(number, fields)
            data = data[length:]

    def wait(self, kinds, number=None, timeout=WAIT_S, seen=None):
        """The first message of these kinds; others are kept for later."""
        kinds = kinds if isinstance(kinds, tuple) else (kinds,)
        for m in list(self.waiting):
            if m.type in kinds and number in (None, m.id):
                self.waiting.remove(m)
                return m
        end = time.monotonic() + timeout
        while True:
            m = self.receive(end - time.monotonic())
            if seen is not None:
                seen(m)
            if m.type in kinds and number in (None, m.id):
                return m
            self.waiting.append(m)

    def has(self, kind, number):
        return any(m.type == kind and m.id == number for m in self.waiting)

    def close(self):
        self.sock.close()


class Engine:
    def __init__(self, path):
        self.path = path

    def request(self, method, path, body=None, headers=None):
        conn = http.client.HTTPConnection("engine", timeout=60)
        conn.sock = socket.socket(socket.AF_UNIX)
        conn.sock.settimeout(60)
        conn.sock.connect(self.path)
        conn.request(method, path, body=body, headers=headers or {})
        answer = conn.getresponse()
        data = answer.read()
        conn.close()
        return answer.status, data

    def containers(self, instance):
        filters = urllib.parse.quote(json.dumps(
            {"label": [f"mcp.instance={instance}"]}))
        status, data = self.request(
            "GET", f"/containers/json?all=1&filters={filters}")
        assert status == 200, data
        return json.loads(data)

    def inspect(self, name):
        status, data = self.request("GET", f"/containers/{name}/json")
        return json.loads(data) if status == 200 else None

    def image_tags(self):
        status, data = self.request("GET", "/images/json")
        assert status == 200, data
        return [tag for i in json.loads(data) for tag in i["RepoTags"] or ()]

    def import_image(self, name, busybox="/bin/busybox", places=True):
        """A busybox, and with places the directories that a sandbox has."""
        out = io.BytesIO()
        with tarfile.open(fileobj=out, mode="w") as tar:
            for path, uid, mode in (
                    ("bin", 0, 0o755), ("etc", 0, 0o755), ("tmp", 0, 0o1777),
                    *((("workspace", 1000, 0o755), ("artifacts", 1000, 0o755))
                      if places else ())):
                info = tarfile.TarInfo(path)
                info.type, info.mode = tarfile.DIRTYPE, mode
                info.uid = info.gid = uid
                tar.addfile(info)
            tar.add(busybox, "bin/busybox", filter=as_root)
            for applet in ("sh", "cat", "dd", "echo", "sleep", "true", "seq",
                           "mkdir", "ln", "head", "yes", "kill", "grep",
                           "test", "rm", "wc", "usleep", "stat", "touch", "ls"):
                info = tarfile.TarInfo(f"bin/{applet}")
                info.type, info.linkname = tarfile.SYMTYPE, "busybox"
                tar.addfile(info)
        status, data = self.request(
            "POST", "/images/create?fromSrc=-&repo=" + name + "&tag=latest",
            out.getvalue(), {"Content-Type": "application/x-tar"})
        assert status == 200 and b'"error"' not in data, data


class Relay:
    """The engine's socket at another path; it can be made to hang."""

    def __init__(self, engine, directory):
        self.engine = engine
        self.path = os.path.join(directory, "engine.sock")
        self.server = socket.socket(socket.AF_UNIX)
        self.server.bind(self.path)
        self.server.listen(64)
        self.goes_on = threading.Event()
        self.goes_on.set()
        threading.Thread(target=self.accept, daemon=True).start()

    def accept(self):
        while True:
            try:
                near, _ = self.server.accept()
            except OSError:
                return
            far = socket.socket(socket.AF_UNIX)
            far.connect(self.engine.path)
            for a, b in ((near, far), (far, near)):
                threading.Thread(
                    target=self.copy, args=(a, b), daemon=True).start()

    def copy(self, source, to):
        try:
            while data := source.recv(65536):
                self.goes_on.wait()
                to.sendall(data)
            to.shutdown(socket.SHUT_WR)
        except OSError:
            pass

    def hang(self):
        self.goes_on.clear()

    def go_on(self):
        self.goes_on.set()

    def close(self):
        self.go_on()
        self.server.shutdown(socket.SHUT_RDWR)
        self.server.close()


def as_root(info):
    info.uid = info.gid = 0
    info.mode = 0o755
    return info


def pack_spec(*commands, user=0, timeout_ms=60000):
    """Shell texts, one after another."""
    out = [struct.pack("<IBII", 1, user, 0, len(commands))]
    for text in commands:
        out += [struct.pack("<I", 1), pack_bytes(text), struct.pack("<I", 0),
                pack_bytes("/workspace"),
                struct.pack("<II", timeout_ms, SHELL), pack_bytes("")]
    return b"".join(out) + struct.pack("<I", 0)


def parse_log(data):
    """[(type, command, payload)] of a run's log."""
    out, at = [], 0
    while at < len(data):
        magic, kind, command, n, _ = struct.unpack_from("<BBHIq", data, at)
        assert magic == 0xa7
        assert len(data) >= at + 16 + n, "the log is cut off"
        out.append((kind, command, data[at + 16:at + 16 + n]))
        at += 16 + n
    return out


class Run:
    def __init__(self, number, spec, directory):
        self.number, self.spec = number, spec
        self.uuid = uuid.uuid4()
        self.path = os.path.join(directory, f"{self.uuid}.log")
        self.files = {}
        self.pending = {}

    def log(self):
        with open(self.path, "rb") as f:
            return parse_log(f.read())

    def stdout(self):
        return b"".join(p for kind, _, p in self.log() if kind == STDOUT)


class Worker:
    """One worker process; kill() and start() it as often as you like."""

    numbers = 0

    def __init__(self, build, engine, image, ceilings=(), **config):
        Worker.numbers += 1
        self.build, self.engine = build, engine
        self.instance = f"test{os.getpid()}-{Worker.numbers}"
        self.instance_id = uuid.uuid4().hex
        self.dir = tempfile.mkdtemp(prefix="mcp-worker-test-")
        os.chmod(self.dir, 0o755)
        self.spools = os.path.join(self.dir, "spool")
        os.mkdir(self.spools)
        self.ceilings = ceilings
        self.config = {
            "DATA_DIR": self.dir, "INSTANCE": self.instance,
            "DOCKER_HOST": "unix://" + engine.path, "SANDBOX_IMAGE": image,
            "CARRIER": "unix",
            "DEFAULT_MEMORY_MB": "128", "SANDBOX_TMP_MB": "16",
            "AUTO_BUILD_SANDBOX_IMAGE": "false", **config}
        self.process = None
        self.last_number = 0
        self.runs = {}
        self.errors = open(os.path.join(self.dir, "stderr"), "a+b")

    def number(self):
        self.last_number += 1
        return self.last_number

    # ---- as the supervisor

    def start(self, wait=True):
        self.ctl, theirs = (Channel(s) for s in socket.socketpair(
            socket.AF_UNIX, socket.SOCK_SEQPACKET))
        fd = theirs.sock.fileno()

        def move():
            os.dup2(fd, 3)

        self.process = subprocess.Popen(
            [os.path.join(self.build, "mcp-sandboxd-worker"), "0"],
            preexec_fn=move, close_fds=True, pass_fds=(3, fd),
            stderr=self.errors)
        theirs.close()
        hello = self.ctl.wait("HELLO").fields
        assert hello.version == IPC.version
        assert hello.role == IPC.enums["role"]["WORKER"]
        self.ctl.send("INSTANCE", instance=self.instance_id)
        for tenant, word in self.ceilings:
            self.ctl.send("CEILING", tenant=tenant, word=word)
        for key, value in self.config.items():
            self.ctl.send("CONFIG", key=key, value=value)
        self.ctl.send("CONFIG_END")
        if not wait:
            return self
        self.ctl.wait("READY")
        self.job, theirs = (Channel(s) for s in socket.socketpair(
            socket.AF_UNIX, socket.SOCK_SEQPACKET))
        self.job.on_ended = self.keep_log
        self.ctl.send("PEER", 0, [theirs.sock.fileno()], index=0,
                      generation=1)
        theirs.close()
        self.state = self.wait_state(
            lambda up, _, lack: not up or "is looked for" not in lack)
        return self

    def wait_state(self, is_it):
        """The first (engine_up, detail, lack) that is meant."""
        while True:
            state = self.job.wait("WORKER_STATE").fields
            if is_it(*state):
                return state

    def kill(self):
        self.process.kill()
        self.process.wait()
        self.ctl.close()
        self.job.close()

    def log(self):
        self.errors.seek(0)
        return self.errors.read().decode(errors="replace")

    def destroy(self):
        if self.process is not None and self.process.poll() is None:
            self.kill()
        for c in self.engine.containers(self.instance):
            self.engine.request(
                "DELETE", f"/containers/{c['Id']}?force=1&v=1")
        self.errors.close()
        shutil.rmtree(self.dir)

    # ---- as the front

    def send_open(self, number, uid, mode=CREATE, name=None, image="",
                  container="", memory=0, ttl_s=0, tenant=1, runtime="",
                  read_only_root=False, pids=0, cpus=0):
        self.job.send(
            "SANDBOX_OPEN", number, tenant=tenant, mode=mode, uuid=uid,
            tenant_name=f"t{tenant}", identifier="chat", generation=1,
            name=name or f"mcp-test-{uid}",
            image=image, container_id=container, memory_bytes=memory,
            nano_cpus=cpus * 10 ** 9, pids=pids, cpu_shares=0,
            runtime=runtime, read_only_root=read_only_root, ttl_s=ttl_s)

    def open(self, tenant=1, **more):
        """A new sandbox that is ready: (number, uuid, container id)."""
        number, uid = self.number(), uuid.uuid4()
        self.send_open(number, uid, tenant=tenant, **more)
        self.job.send("SANDBOX_SETTLED", number, tenant=tenant)
        m = self.job.wait(("SANDBOX_READY", "SANDBOX_FAILED"), number)
        assert m.type == "SANDBOX_READY", m
        return number, uid, m.fields.container_id

    def send_remove(self, number, uid, name=None, tenant=1):
        self.job.send("SANDBOX_REMOVE", number, uuid=uid,
                      tenant_name=f"t{tenant}", keeps_files=False, left_by="",
                      name=name or f"mcp-test-{uid}")

    def run(self, sandbox, *texts, limit=1 << 30, **more):
        run = Run(self.number(), pack_spec(*texts, **more), self.spools)
        self.send_run(sandbox, run, limit)
        return run

    def send_run(self, sandbox, run, limit=1 << 30, tenant=1):
        spool = os.open(run.path, os.O_RDWR | os.O_APPEND | os.O_CREAT, 0o600)
        fds, inline = [spool], run.spec
        if len(inline) > 32768:
            fds.append(sealed(inline))
            inline = b""
        self.job.send("RUN_START", run.number, fds, tenant=tenant,
                      sandbox=sandbox, uuid=run.uuid, spool_limit=limit,
                      request="", spec=inline)
        self.runs[run.number] = run
        for fd in fds:
            os.close(fd)

    def keep_log(self, number, ended):
        """A short log comes with the end, and nothing of it before."""
        run = self.runs.get(number)
        if run is None or not ended.log:
            return
        assert os.path.getsize(run.path) == 0
        assert len(ended.log) == ended.length
        with open(run.path, "wb") as f:
            f.write(ended.log)

    def cancel(self, run, reason=CANCELED):
        self.job.send("RUN_CANCEL", run.number, tenant=1, reason=reason)

    def forget(self, run):
        self.job.send("RUN_FORGET", run.number, tenant=1)

    def finish(self, run, timeout=WAIT_S):
        """RUN_ENDED's fields; artifacts are taken meanwhile."""
        while True:
            m = self.job.wait(
                ("RUN_ENDED", "ARTIFACT_OPEN", "ARTIFACT_DONE",
                 "ARTIFACT_FAILED"), run.number, timeout)
            if m.type == "ARTIFACT_OPEN":
                self.take_file(run, *m.fields)
            elif m.type == "ARTIFACT_DONE":
                file_done(run, *m.fields)
            elif m.type == "ARTIFACT_FAILED":
                run.pending.pop(m.fields.file)[1].close()
            else:
                return m.fields

    def take_file(self, run, number, size, mode, mtime_ns, path):
        f = tempfile.TemporaryFile()
        run.pending[number] = (path, f)
        self.job.send("ARTIFACT_FD", run.number, [f.fileno()], tenant=1,
                      file=number, refusal="")

    def sweep(self, uuids, asof_ms=None, keep_ms=0):
        """What was found without being listed, then (found, removed)."""
        self.job.send("SWEEP", uuids=b"".join(u.bytes for u in uuids))
        asof = asof_ms if asof_ms is not None else int(time.time() * 1000)
        self.job.send("SWEEP_END", asof_wall_ms=asof, keep_ms=keep_ms,
                      only_look=False)
        swept = self.job.wait("SWEPT").fields
        assert swept.is_known
        return swept.found, swept.removed


def reason(ended):
    return REASONS[ended.reason]


def file_done(run, number, size, digest):
    path, f = run.pending.pop(number)
    f.seek(0)
    data = f.read()
    f.close()
    assert len(data) == size
    assert hashlib.sha256(data).digest() == digest
    run.files[path] = data


def sealed(data):
    import fcntl
    fd = os.memfd_create("spec", os.MFD_ALLOW_SEALING | os.MFD_CLOEXEC)
    os.write(fd, data)
    os.lseek(fd, 0, os.SEEK_SET)
    seals = (fcntl.F_SEAL_WRITE | fcntl.F_SEAL_SHRINK | fcntl.F_SEAL_GROW
             | fcntl.F_SEAL_SEAL)
    fcntl.fcntl(fd, fcntl.F_ADD_SEALS, seals)
    return fd


def wait_for(what, timeout=WAIT_S):
    end = time.monotonic() + timeout
    while True:
        got = what()
        if got:
            return got
        assert time.monotonic() < end, "it did not come to be"
        time.sleep(0.01)
