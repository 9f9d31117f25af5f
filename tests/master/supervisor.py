"""The real mcp-sandboxd with stand-ins for the front and the workers."""
import os
import re
import shutil
import signal
import socket
import subprocess
import tempfile
import time

PATIENCE_S = 30


def wait_for(what, condition, seconds=PATIENCE_S):
    """The first true value of condition(); fails with what after seconds."""
    end = time.monotonic() + seconds
    while True:
        value = condition()
        if value:
            return value
        assert time.monotonic() < end, f"waited {seconds} s for {what}"
        time.sleep(0.005)


def sockets_of(pid):
    found = set()
    for fd in os.listdir(f"/proc/{pid}/fd"):
        target = os.readlink(f"/proc/{pid}/fd/{fd}")
        if target.startswith("socket:"):
            found.add(target)
    return found


def programs():
    path = os.environ.get("MCP_SANDBOXD_BUILD")
    assert path, "MCP_SANDBOXD_BUILD is not set: run ./bootstrap check"
    return path


class Supervisor:
    """mcp-sandboxd in a directory of its own, beside the stand-ins.

    modes: how a role behaves, such as {"worker": "hang"}; see fake_child.c.
    """

    def __init__(self, modes=None, env=None, args=(), start=True, **popen):
        fake = "tests/unit/master/helpers/fake_child"
        sources = {name: os.path.join(programs(), source)
                   for name, source in (("mcp-sandboxd", "mcp-sandboxd"),
                                        ("mcp-sandboxd-front", fake),
                                        ("mcp-sandboxd-worker", fake),
                                        ("mcp-sandboxd-keys", fake),
                                        ("mcp-sandboxd-courier", fake))}
        for path in sources.values():
            assert os.path.exists(path), f"{path} is not built"
        self.dir = tempfile.mkdtemp(prefix="mcp-sandboxd-master-")
        os.chmod(self.dir, 0o755)  # other users pass through
        self.bin = os.path.join(self.dir, "bin")
        self.control = os.path.join(self.dir, "control")
        self.data = os.path.join(self.dir, "data")
        os.mkdir(self.bin)
        os.mkdir(self.control)
        os.chmod(self.control, 0o755)
        for name, path in sources.items():
            shutil.copy(path, os.path.join(self.bin, name))
        self.log_path = os.path.join(self.control, "log")
        with open(self.log_path, "w", encoding="ascii"):
            pass
        os.chmod(self.log_path, 0o666)
        self.stderr_path = os.path.join(self.dir, "stderr")
        for role, mode in (modes or {}).items():
            self.set_mode(role, mode)
        self.env = dict(env or {})
        self.args = list(args)
        self.popen = popen
        self.proc = None
        if start:
            self.start()

    def environment(self):
        env = {"PATH": os.environ["PATH"], "PORT": "0",
               "DATA_DIR": self.data, "RUN_AS_FRONT": "",
               "RUN_AS_WORKER": "", "RUN_AS_KEYS": "",
               "RUN_AS_COURIER": "", "LOG_LEVEL": "debug",
               "MCP_SANDBOXD_TEST_DIR": self.control}
        for key in ("ASAN_OPTIONS", "UBSAN_OPTIONS", "LSAN_OPTIONS"):
            if key in os.environ:
                env[key] = os.environ[key]
        env.update(self.env)
        return {k: v for k, v in env.items() if v is not None}

    def start(self):
        with open(self.stderr_path, "ab") as err:
            self.proc = subprocess.Popen(
                [os.path.join(self.bin, "mcp-sandboxd"), *self.args],
                stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL,
                stderr=err, env=self.environment(), cwd=self.dir,
                **self.popen)

    def set_mode(self, role, mode):
        path = os.path.join(self.control, role + ".mode")
        if mode is None:
            if os.path.exists(path):
                os.unlink(path)
            return
        with open(path + ".new", "w", encoding="ascii") as f:
            f.write(mode + "\n")
        os.rename(path + ".new", path)

    # What was said

    def stderr(self):
        with open(self.stderr_path, encoding="utf-8") as f:
            return f.read()

    def events(self, role=None, event=None):
        """Lines of the stand-ins: (role, pid, event, rest)."""
        found = []
        with open(self.log_path, encoding="utf-8") as f:
            for line in f:
                if not line.endswith("\n"):
                    break
                who, pid, what, rest = (line[:-1].split(" ", 3) + [""])[:4]
                if role in (None, who) and event in (None, what):
                    found.append((who, int(pid), what, rest))
        return found

    def wait_log(self, text, times=1):
        wait_for(f"{times} x {text!r} in\n{self.stderr()}",
                 lambda: self.stderr().count(text) >= times)

    def wait_event(self, role, event, times=1):
        """The event's occurrences, at least so many."""
        return wait_for(
            f"{times} x {role} {event}\n{self.stderr()}",
            lambda: len(self.events(role, event)) >= times
            and self.events(role, event))

    def wait_ready(self):
        self.wait_log("] ready\n")
        self.wait_paired()

    def wait_paired(self, after=0):
        """Both workers have heard the front on a channel newer than after."""
        def all_heard():
            heard = [max((int(e[3]) for e in self.events(f"worker-{i}",
                                                         "heard")), default=0)
                     for i in (0, 1)]
            return heard if min(heard) > after else None
        return wait_for(f"channels\n{self.stderr()}", all_heard)

    def port(self):
        return int(wait_for("the port", lambda: re.search(
            r"listening on http://127\.0\.0\.1:(\d+)", self.stderr()))[1])

    def pids(self, role):
        """Of all lives of a role, in their order."""
        return [e[1] for e in self.events(role, "start")]

    def pid(self, role):
        return self.pids(role)[-1]

    def kill(self, role, sig=signal.SIGKILL):
        os.kill(self.pid(role), sig)

    def ask(self):
        """The pid that a front gives to a client."""
        with socket.create_connection(("127.0.0.1", self.port()),
                                      timeout=PATIENCE_S) as s:
            return int(s.makefile().readline().split()[1])

    # The end

    def signal(self, sig):
        self.proc.send_signal(sig)

    def wait_exit(self):
        return self.proc.wait(PATIENCE_S)

    def stop(self):
        self.signal(signal.SIGTERM)
        return self.wait_exit()

    def living(self):
        """Children that were started and are still there."""
        alive = []
        for _, pid, _, _ in self.events(event="start"):
            try:
                with open(f"/proc/{pid}/stat", encoding="ascii") as f:
                    if f.read().rsplit(")", 1)[1].split()[0] != "Z":
                        alive.append(pid)
            except OSError:
                pass
        return alive

    def close(self):
        if self.proc is not None and self.proc.poll() is None:
            self.proc.kill()
            self.proc.wait()
        for pid in self.living():
            os.kill(pid, signal.SIGKILL)
        said = self.stderr() if os.path.exists(self.stderr_path) else ""
        shutil.rmtree(self.dir, ignore_errors=True)
        assert "Sanitizer" not in said, said
        assert "runtime error" not in said, said
