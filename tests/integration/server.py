"""Starts the real server on a port of its own, and looks after it."""
import http.client
import os
import pwd
import re
import shutil
import signal
import subprocess
import tempfile
import threading

from client import Client, wait_for


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

    def containers(self, instance):
        import json
        import urllib.parse
        filters = urllib.parse.quote(json.dumps(
            {"label": [f"mcp.instance={instance}"]}))
        status, data = self.request(
            "GET", f"/containers/json?all=1&filters={filters}")
        assert status == 200, data
        return json.loads(data)


class UnixConnection(http.client.HTTPConnection):
    def __init__(self, path):
        super().__init__("localhost", timeout=60)
        self.unix_path = path

    def connect(self):
        import socket
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


class Server:
    """One mcp-sandboxd with its own data directory and instance label."""

    count = 0
    prefix = ()  # words that run the program

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
        self.extra = dict(env or {})
        self.args = list(args)
        self.log = []
        self.port = None
        self.proc = None
        self.reader = None
        if wait is not None:  # it is started later
            self.start(wait)

    def environment(self):
        keep = ("PATH", "DOCKER_HOST", "SANDBOX_IMAGE", "ASAN_OPTIONS",
                "UBSAN_OPTIONS", "LSAN_OPTIONS", "HOME")
        env = {k: os.environ[k] for k in keep if k in os.environ}
        env.update(PORT=str(self.port or 0), INSTANCE=self.instance,
                   DATA_DIR=self.data, **users(self.build))
        env.update(self.extra)
        return env

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
            found = re.search(r"listening on http://\S+:(\d+)", line)
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
        except OSError:
            return 0, {}, b""
        except http.client.HTTPException:
            return 0, {}, b""
        finally:
            conn.close()

    def metric(self, name):
        """The value of one line of /metrics, labels as there; or None."""
        for line in self.get("/metrics")[2].decode().split("\n"):
            if line.startswith(name + " "):
                return float(line.rsplit(" ", 1)[1])
        return None

    def client(self, **kwargs):
        return Client(self.port, **kwargs)

    def tail(self, lines=100):
        """The last of the log; all of it when the server has ended."""
        if self.proc.poll() is not None:
            self.reader.join(30)
        return "\n".join(self.log[-lines:])

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

    def is_sanitized(self):
        """A sanitizer keeps what is freed: its memory says little."""
        with open(os.path.join(self.build, "mcp-sandboxd-front"), "rb") as f:
            return b"__asan_init" in f.read()

    def stop(self, sig=signal.SIGTERM, seconds=30):
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
            if engine is not None:
                for c in engine.containers(self.instance):
                    engine.request(
                        "DELETE", f"/containers/{c['Id']}?force=1&v=1")
            shutil.rmtree(self.dir, ignore_errors=True)
