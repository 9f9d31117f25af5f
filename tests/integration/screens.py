"""sandboxctl as an operator has it: on a terminal, and beside one."""
import fcntl
import json
import os
import pty
import select
import struct
import subprocess
import termios
import time


class Ctl:
    """At a server's admin socket."""

    def __init__(self, server):
        self.server = server
        self.program = os.path.join(server.build, "sandboxctl")
        self.base = [self.program, "--data-dir", server.data]

    def run(self, *words, env=None, text=True, value=""):
        """value: of its standard input"""
        return subprocess.run(
            [*self.base, *words], capture_output=True, timeout=120,
            input=value if text else value.encode(), check=False, text=text,
            errors="replace" if text else None,
            env={**os.environ, **(env or {})})

    def __call__(self, *words, **more):
        done = self.run(*words, **more)
        assert done.returncode == 0, (words, done.stdout, done.stderr)
        return done.stdout

    def json(self, *words):
        return json.loads(self("--json", *words))

    def refuses(self, *words, status=1, **more):
        """What it says where it ends with that status."""
        done = self.run(*words, **more)
        assert done.returncode == status, (words, done.stdout, done.stderr)
        return done.stderr

    def token(self, *words):
        text = self("token", "add", *words)
        assert text.startswith("mcps_") and text.count("\n") == 1
        return text.strip()


class Screen:
    """A program on a terminal of its own, and what it wrote there."""

    def __init__(self, argv, columns=80, lines=50, env=None):
        self.master, slave = pty.openpty()
        fcntl.ioctl(slave, termios.TIOCSWINSZ,
                    struct.pack("HHHH", lines, columns, 0, 0))
        plain = {k: v for k, v in os.environ.items()
                 if k not in ("COLUMNS", "LINES", "NO_COLOR")}
        self.proc = subprocess.Popen(
            argv, stdin=slave, stdout=slave, stderr=slave,
            env={**plain, "TERM": "xterm", **(env or {})},
            start_new_session=True,
            preexec_fn=lambda: fcntl.ioctl(0, termios.TIOCSCTTY, 0))
        os.close(slave)
        self.seen = b""

    def read_some(self, seconds):
        ready, _, _ = select.select([self.master], [], [], seconds)
        if not ready:
            return None
        try:
            got = os.read(self.master, 65536)
        except OSError:  # its last holder is gone
            return b""
        self.seen += got
        return got

    def wait_for(self, text, seconds=60):
        """Until text has come, behind what was asked for before."""
        end = time.monotonic() + seconds
        while time.monotonic() < end:
            at = self.seen.find(text)
            if at >= 0:
                self.seen = self.seen[at + len(text):]
                return
            if self.read_some(1) == b"":
                break
        raise AssertionError(f"{text} did not come: {self.seen[-2000:]}")

    def press(self, keys):
        os.write(self.master, keys)

    def finish(self, seconds=60):
        """(exit status, all that was not asked for)"""
        end = time.monotonic() + seconds
        while time.monotonic() < end:
            if self.read_some(1) == b"":
                break
        status = self.proc.wait(30)
        os.close(self.master)
        return status, self.seen.decode("utf-8", "replace")
