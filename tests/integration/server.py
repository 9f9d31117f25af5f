"""Starts the real server on a port of its own, and looks after it."""
import contextlib
import http.client
import json
import os
import pwd
import re
import shutil
import signal
import socket
import sqlite3
import subprocess
import tempfile
import threading
import urllib.parse
import uuid

from client import Client, wait_for
from screens import Ctl


class Engine:
    """The Docker API over its Unix socket, for looking and for bad days."""

    def __init__(self, host):
        self.path = host.removeprefix("unix://")

    def request(self, method, path, body=None, headers=None):
        conn = UnixConnection(self.path)
        conn.request(method, path, body=body, headers=headers or {})
        answer = conn.getresponse()
        data = answer.read()
        conn.close()
        return answer.status, data

    def inspect(self, container):
        """What it says of a container."""
        status, data = self.request("GET", f"/containers/{container}/json")
        assert status == 200, data
        return json.loads(data)

    def containers(self, instance):
        filters = urllib.parse.quote(json.dumps(
            {"label": [f"mcp.instance={instance}"]}))
        status, data = self.request(
            "GET", f"/containers/json?all=1&filters={filters}")
        assert status == 200, data
        return json.loads(data)

    def bridges(self, container):
        """Pids, on this host, of what bridges are in a container."""
        init = self.inspect(container)["State"]["Pid"]
        return [pid for pid, words in processes()
                if words[1:] == ["bridge"] and
                namespace(pid) == namespace(init)]


def processes():
    """[(pid, words)] of this host's."""
    found = []
    for pid in filter(str.isdigit, os.listdir("/proc")):
        with contextlib.suppress(OSError):  # it has ended
            with open(f"/proc/{pid}/cmdline", "rb") as f:
                words = f.read().decode(errors="replace")
            found.append((int(pid), words.split("\0")[:-1]))
    return found


def namespace(pid):
    """Of pids, that of this one; None: it has ended."""
    with contextlib.suppress(OSError):
        return os.readlink(f"/proc/{pid}/ns/pid")
    return None


class Admin:
    """Who asks at a server's admin socket."""

    def __init__(self, server):
        self.path = os.path.join(server.data, "admin.sock")

    def ask(self, method, path, body=None, **headers):
        """(status, headers, JSON); if_match= is the header If-Match."""
        conn = UnixConnection(self.path)
        with contextlib.closing(conn):
            conn.request(method, path, body if body is None or
                         isinstance(body, str) else json.dumps(body),
                         {k.replace("_", "-"): v for k, v in headers.items()})
            answer = conn.getresponse()
            data = answer.read()
        return answer.status, answer.headers, \
            json.loads(data) if data else None


class UnixConnection(http.client.HTTPConnection):
    def __init__(self, path):
        super().__init__("localhost", timeout=60)
        self.unix_path = path

    def connect(self):
        self.sock = socket.socket(socket.AF_UNIX)
        self.sock.settimeout(60)
        self.sock.connect(self.unix_path)


STALL_MS = 100


def long_turns(log):
    """(milliseconds, line) of turns of a loop that kept others waiting
    (common/turns.h)"""
    return [(int(re.search(r"took (\d+) ms", n)[1]), n) for n in log
            if "a turn of the loop took" in n]


def harm(log, stall_ms=STALL_MS):
    """Lines of a log that tell of harm: reports of sanitizers, and long turns.
    A machine may stop a processor for a moment, and counts that as the
    thread's work: a loop that does nothing else sees 20 to 30 ms at once.  So
    one turn alone is no harm up to stall_ms; what our code does it does
    again."""
    turns = long_turns(log)
    if len(turns) == 1 and turns[0][0] <= stall_ms:
        turns = []
    return [n for n in log if "Sanitizer" in n or "runtime error" in n] + \
        [n for _, n in turns]


def may_execute(user, build):
    """Whether user can reach the programs, as the supervisor starts them."""
    entry = pwd.getpwnam(user)
    return subprocess.run(
        ["test", "-x", os.path.join(build, "mcp-sandboxd-front")],
        user=entry.pw_uid, group=entry.pw_gid, extra_groups=[],
        check=False).returncode == 0


def users(build):
    """As root: front and workers as users of their own where these exist
    and can reach the build, else all as root, which must be asked for."""
    if os.geteuid() != 0:
        return {}
    for user in ("mcp-front", "mcp-worker"):
        try:
            reached = may_execute(user, build)
        except KeyError:
            reached = False
        if not reached:
            return {"RUN_AS_FRONT": "", "RUN_AS_WORKER": ""}
    return {}


TOP = os.path.dirname(os.path.dirname(os.path.dirname(
    os.path.abspath(__file__))))
# What the sandboxes are that the tests are run on, and how their agents are
# reached: unix or bridge.
BACKEND = os.environ.get("SANDBOX_BACKEND", "docker")
CARRIER = "bridge" if BACKEND == "kubernetes" else \
    os.environ.get("SANDBOX_CARRIER", "unix")


def carrier():
    """The setting, where there is one: not the one that finds it out, which
    makes a container of its own at each start."""
    with open(os.path.join(TOP, "schema/config.txt"), encoding="utf-8") as f:
        known = any(line.startswith("CARRIER|") for line in f)
    return {"CARRIER": CARRIER} if known else {}


def passed_on(**more):
    """The environment of a program of ours: what of this one's it needs."""
    keep = ("PATH", "DOCKER_HOST", "SANDBOX_IMAGE", "ASAN_OPTIONS",
            "UBSAN_OPTIONS", "LSAN_OPTIONS", "HOME")
    if BACKEND == "kubernetes":
        keep += ("SANDBOX_BACKEND", "KUBECONFIG", "KUBERNETES_AGENT_IMAGE",
                 "KUBERNETES_PULL_POLICY",
                 "KUBERNETES_ALLOW_UNENFORCED_NETWORK")
    return {k: os.environ[k] for k in keep if k in os.environ} | \
        carrier() | more


def write(path, text, mode=0o644):
    """A file with that text, which others may read."""
    with open(path, "w", encoding="utf-8") as f:
        f.write(text)
    os.chmod(path, mode)


def proc_status(pid):
    """{name: value} of /proc/PID/status"""
    with open(f"/proc/{pid}/status", encoding="ascii") as f:
        pairs = (line.partition(":") for line in f)
        return {name: value.strip() for name, _, value in pairs}


def memory_kib(pid, what="VmRSS"):
    return int(proc_status(pid)[what].split()[0])


class Program:
    """mcp-sandboxd in a directory of its own, which others may pass through:
    called with arguments and settings it gives what it said at its end."""

    def __init__(self, build):
        self.build = build
        self.top = tempfile.mkdtemp(prefix="mcp-sandboxd-program-")
        os.chmod(self.top, 0o755)
        self.data = os.path.join(self.top, "data")

    def __call__(self, *args, program="mcp-sandboxd", **env):
        return subprocess.run(
            [os.path.join(self.build, program), *args], env=passed_on(
                DATA_DIR=self.data, PORT="0", **users(self.build)) | env,
            cwd=self.top, capture_output=True, text=True, timeout=120,
            check=False)

    def refuses(self, *args, words=(), status=(78,), **env):
        """It ends with one of these, and says these words: so what."""
        done = self(*args, **env)
        assert done.returncode in status, done.stderr
        assert all(w in done.stderr for w in words), done.stderr
        return done.stderr


class Server:
    """One mcp-sandboxd with its own data directory and instance label."""

    count = 0
    prefix = ()  # words that run the program
    tidy = None  # takes away what is left of a server's Pods

    def __init__(self, build, env=None, args=(), wait=True):
        Server.count += 1
        self.build = build
        self.dir = tempfile.mkdtemp(prefix="mcp-sandboxd-test-")
        os.chmod(self.dir, 0o755)
        self.data = (env or {}).get(
            "DATA_DIR", os.path.join(self.dir, "data"))
        # common/layout.h
        self.front_dir = os.path.join(self.data, "front")
        self.links_dir = os.path.join(self.data, "links")
        self.database = os.path.join(self.front_dir, "mcp-sandboxd.db")
        self.instance = f"test-{os.getpid()}-{Server.count}"
        self.extra = {k: str(v) for k, v in (env or {}).items()}
        self.clients = []
        self.ctl = Ctl(self)
        self.args = list(args)
        self.log = []
        self.port = None
        self.proc = None
        self.reader = None
        if wait is not None:  # it is started later
            self.start(wait)

    def environment(self):
        return passed_on(PORT=str(self.port or 0), INSTANCE=self.instance,
                         DATA_DIR=self.data, **users(self.build)) | self.extra

    def write_config(self, *lines):
        """The file that its last argument names."""
        write(os.path.join(self.dir, self.args[-1]), "\n".join([*lines, ""]))

    def start(self, wait=True):
        self.proc = subprocess.Popen(
            [*self.prefix, os.path.join(self.build, "mcp-sandboxd"),
             *self.args],
            env=self.environment(), stderr=subprocess.PIPE,
            stdout=subprocess.DEVNULL, stdin=subprocess.DEVNULL, text=True,
            errors="replace", cwd=self.dir)
        self.reader = threading.Thread(
            target=self.read_log, args=(self.proc.stderr,), daemon=True)
        self.reader.start()
        if wait:
            self.port = wait_for(self.find_port, 30, "the listening port")
        if wait is True:  # else "port": it may not get ready
            try:
                wait_for(self.is_ready, 60, "readiness")
            except AssertionError as e:
                raise AssertionError(f"{e}:\n{self.tail()}") from e

    def read_log(self, stream):
        for line in stream:
            self.log.append(line.rstrip("\n"))

    def find_port(self):
        if self.proc.poll() is not None:
            raise AssertionError("the server ended:\n" + self.tail())
        for line in reversed(self.log):
            found = re.search(r"listening on https?://\S+:(\d+)", line)
            if found:
                return int(found.group(1))
        return None

    def is_ready(self):
        if self.proc.poll() is not None:
            raise AssertionError("the server ended:\n" + self.tail())
        return self.get("/readyz")[0] == 200

    def get(self, path, headers=None, timeout=10):
        conn = http.client.HTTPConnection("127.0.0.1", self.port,
                                          timeout=timeout)
        try:
            conn.request("GET", path, headers=headers or {})
            answer = conn.getresponse()
            return answer.status, answer.headers, answer.read()
        except (OSError, http.client.HTTPException):
            return 0, {}, b""
        finally:
            conn.close()

    def get_json(self, path, want=200):
        status, _, data = self.get(path)
        assert status == want, (path, status, data)
        return json.loads(data)

    def send(self, line, *fields, body=b"", address="127.0.0.1", room=None):
        """A connection with a request of which nothing is read yet; room: of
        its receiving buffer."""
        sock = socket.socket()
        if room is not None:
            sock.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, room)
        sock.settimeout(60)
        sock.bind((address, 0))
        sock.connect(("127.0.0.1", self.port))
        sock.sendall(self.message(line, *fields, body=body))
        return sock

    def message(self, line, *fields, body=b""):
        head = [f"{line} HTTP/1.1", f"Host: 127.0.0.1:{self.port}", *fields]
        if body:
            head.append(f"Content-Length: {len(body)}")
        return "\r\n".join([*head, "", ""]).encode() + body

    def metric(self, name):
        """The value of one line of /metrics, labels as there; or None."""
        for line in self.get("/metrics")[2].decode().split("\n"):
            if line.startswith(name + " "):
                return float(line.rsplit(" ", 1)[1])
        return None

    def client(self, **kwargs):
        self.clients.append(Client(self.port, **kwargs))
        return self.clients[-1]

    def hang_up(self):
        """Its clients come back on connections of the next process."""
        for client in self.clients:
            client.close()

    def sql(self, query, *values):
        """Rows of its database, which is only read."""
        with contextlib.closing(sqlite3.connect(
                f"file:{self.database}?mode=ro", uri=True, timeout=60)) as db:
            return db.execute(query, values).fetchall()

    def run_row(self, run):
        """{column: value} of a run"""
        names = [c for _, c, *_ in self.sql("PRAGMA table_info(run)")]
        row, = self.sql("SELECT * FROM run WHERE uuid = ?",
                        uuid.UUID(run).bytes)
        return dict(zip(names, row, strict=True))

    def change(self, *statements):
        """Its database, behind its back."""
        with contextlib.closing(sqlite3.connect(
                self.database, timeout=30)) as db:
            for text in statements:
                db.execute(text)
            db.commit()

    def tail(self, lines=100):
        """The last of the log; all of it when the server has ended."""
        if self.proc.poll() is not None:
            self.reader.join(30)
        return "\n".join(self.log[-lines:])

    def log_of(self, run):
        """The file of a run's output."""
        return next(os.path.join(folder, f"{run}.log") for folder, _, names
                    in os.walk(os.path.join(self.front_dir, "spool"))
                    if f"{run}.log" in names)

    def blob_of(self, artifact):
        """The file of what is in the list of a run's artifacts."""
        digest = artifact["sha256"]
        return os.path.join(self.front_dir, "artifacts", "1", digest[:2],
                            digest)

    def check_lost(self, path):
        status, _, body = self.get(path)
        assert status == 410, (path, status, body)
        assert b"output_lost" in body and b"is lost" in body, body

    def wait_log(self, *words, since=0, seconds=60):
        """Lines of the log with all these words, once there is one."""
        return wait_for(lambda: [n for n in self.log[since:] if all(
            w in n for w in words)], seconds, f"{words} in the log")

    def refuses(self, *words):
        """It ends with status 78 and says these words."""
        assert self.proc.wait(60) == 78, self.tail()
        said = self.tail(1000)
        assert all(w in said for w in words), said

    def children(self):
        """[(pid, role)] of the supervisor's children, from /proc."""
        found = []
        path = f"/proc/{self.proc.pid}/task/{self.proc.pid}/children"
        with open(path, encoding="ascii") as f:
            for pid in f.read().split():
                try:
                    exe = os.readlink(f"/proc/{pid}/exe")
                except OSError:
                    continue
                name = os.path.basename(exe).removeprefix("lt-")
                if name.startswith("mcp-sandboxd-"):
                    found.append((int(pid), name.rsplit("-", 1)[1]))
        return found

    def pids(self, role):
        return [pid for pid, name in self.children() if name == role]

    def kill(self, role):
        """Its processes of a role, and wait for others in their places."""
        old = self.pids(role)
        for pid in old:
            os.kill(pid, signal.SIGKILL)
        self.hang_up()
        wait_for(lambda: len(self.pids(role)) == len(old) and
                 not set(self.pids(role)) & set(old), 60, f"another {role}")
        wait_for(self.is_ready, 60, "readiness")

    @contextlib.contextmanager
    def standing_still(self, role):
        """What a test does meanwhile, those processes find done."""
        pids = self.pids(role)
        for pid in pids:
            os.kill(pid, signal.SIGSTOP)
        try:
            yield
        finally:
            for pid in pids:
                os.kill(pid, signal.SIGCONT)

    def is_sanitized(self):
        """A sanitizer keeps what is freed: its memory says little."""
        with open(os.path.join(self.build, "mcp-sandboxd-front"), "rb") as f:
            return b"__asan_init" in f.read()

    def restart(self, sig=signal.SIGTERM, args=None):
        self.stop(sig)
        if args is not None:
            self.args = args
        self.start()

    def stop(self, sig=signal.SIGTERM, seconds=30):
        self.hang_up()
        if self.proc.poll() is None:
            self.proc.send_signal(sig)
            try:
                self.proc.wait(seconds)
            except subprocess.TimeoutExpired:
                self.proc.kill()
                self.proc.wait(10)
                raise AssertionError(
                    "the server did not stop:\n" + self.tail()) from None
        return self.proc.returncode

    def destroy(self, engine):
        """Stop, take away what is on the engine, and the directory."""
        try:
            if self.proc.poll() is None:
                self.stop()
        finally:
            if self.proc.poll() is None:
                self.proc.kill()
            if Server.tidy is not None:
                Server.tidy(self)
            if engine is not None:
                for c in engine.containers(self.instance):
                    engine.request(
                        "DELETE", f"/containers/{c['Id']}?force=1&v=1")
            shutil.rmtree(self.dir, ignore_errors=True)


@contextlib.contextmanager
def serving(build, engine, stall_ms=STALL_MS, **kwargs):
    """A server of some tests, and what is held against it at their end."""
    server = Server(build, **kwargs)
    try:
        yield server
        bad = harm(server.log, stall_ms)
        assert not bad, bad
    finally:
        server.hang_up()
        server.destroy(engine)
