"""mcp-sandboxd stdio, and a server that says what a test tells it to."""
import contextlib
import itertools
import json
import os
import queue
import socket
import subprocess
import threading

from client import wait_for
from server import passed_on, users

REVISION = "2025-11-25"
LIMIT_S = 60


def request(number, method, **params):
    return {"jsonrpc": "2.0", "id": number, "method": method,
            "params": params}


def notification(method, **params):
    return {"jsonrpc": "2.0", "method": method, "params": params}


def initialize(number=0, revision=REVISION):
    return request(number, "initialize", protocolVersion=revision,
                   capabilities={},
                   clientInfo={"name": "test", "version": "1"})


def run_shell(number, identifier, shell, **options):
    return request(number, "tools/call", name="run_sandbox", arguments={
        "identifier": identifier, "commands": [{"shell": shell}],
        "options": {"await_completion": True, "await_timeout_ms": 60000,
                    **options}})


def text_of(answer):
    """What a model is given by a tool's answer."""
    return answer["result"]["content"][0]["text"]


class Bridge:
    """The command as a client starts it."""

    def __init__(self, build, *args, reads=True, **env):
        self.proc = self.popen(build, args, env)
        self.messages = []
        self.log = []
        self.news = queue.Queue()
        self.numbers = itertools.count(100)
        self.threads = []
        self.start(self.read_log)
        if reads:
            self.start(self.read)

    def popen(self, build, args, env):
        return subprocess.Popen(
            [os.path.join(build, "mcp-sandboxd"), "stdio", *args],
            env=passed_on(**users(build)) | env, stdin=subprocess.PIPE,
            stdout=subprocess.PIPE, stderr=subprocess.PIPE)

    def start(self, work):
        self.threads.append(threading.Thread(target=work, daemon=True))
        self.threads[-1].start()

    def read_log(self):
        for line in self.proc.stderr:
            self.log.append(line.decode(errors="replace").rstrip("\n"))

    def read(self):
        """Each line of stdout is a message, and nothing else is there."""
        for line in self.proc.stdout:
            self.messages.append(json.loads(line))

    def write(self, data):
        self.proc.stdin.write(data)
        self.proc.stdin.flush()

    def send(self, *messages):
        self.write(b"".join(json.dumps(m).encode() + b"\n"
                            for m in messages))

    def find(self, number):
        """The answer to a request, if it is there."""
        return next((m for m in list(self.messages)
                     if m.get("id") == number and "method" not in m), None)

    def wait(self, number, seconds=LIMIT_S):
        try:
            return wait_for(lambda: self.find(number), seconds,
                            f"the answer to {number!r}")
        except AssertionError as e:
            raise AssertionError(f"{e}:\n" + "\n".join(self.log)) from e

    def ask(self, method, **params):
        number = next(self.numbers)
        self.send(request(number, method, **params))
        return self.wait(number)

    def initialize(self, revision=REVISION):
        self.send(initialize(revision=revision))
        answer = self.wait(0)
        self.send(notification("notifications/initialized"))
        return answer

    def run(self, identifier, shell):
        number = next(self.numbers)
        self.send(run_shell(number, identifier, shell))
        return text_of(self.wait(number))

    def wait_log(self, words):
        return wait_for(lambda: [n for n in list(self.log) if words in n],
                        LIMIT_S, f"{words} in the log")

    def end(self, seconds=LIMIT_S):
        """The input's; how it went."""
        with contextlib.suppress(BrokenPipeError):
            self.proc.stdin.close()
        return self.ended(seconds)

    def ended(self, seconds=LIMIT_S):
        status = self.proc.wait(seconds)
        for t in self.threads:
            t.join(LIMIT_S)
        return status

    def close(self):
        if self.proc.poll() is None:
            self.proc.kill()
        self.ended()
        for f in (self.proc.stdin, self.proc.stdout, self.proc.stderr):
            with contextlib.suppress(OSError, ValueError):
                f.close()

    def harm(self):
        return [n for n in self.log
                if "Sanitizer" in n or "runtime error" in n]


class Visit:
    """One HTTP request at a scripted server, and what is answered."""

    def __init__(self, connection):
        self.connection = connection
        self.file = connection.makefile("rb")
        line = self.file.readline().decode().split()
        self.method = line[0] if line else ""
        self.headers = {}
        while (line := self.file.readline().decode().rstrip("\r\n")):
            name, _, value = line.partition(":")
            self.headers[name.lower()] = value.strip()
        self.body = self.file.read(int(self.headers.get("content-length", 0)))

    @property
    def message(self):
        return json.loads(self.body)

    @property
    def what(self):
        """The MCP method, or HTTP's."""
        if self.method != "POST":
            return self.method
        message = self.message
        return message.get("method", "response") \
            if isinstance(message, dict) else "batch"

    def send(self, data):
        self.connection.sendall(data)

    def answer(self, status, body=None, kind="application/json", **headers):
        data = b"" if body is None else body if isinstance(body, bytes) \
            else json.dumps(body).encode()
        head = [f"HTTP/1.1 {status} X", f"Content-Length: {len(data)}",
                "Connection: close",
                *([f"Content-Type: {kind}"] if data else []),
                *(f"{k.replace('_', '-')}: {v}" for k, v in headers.items())]
        self.send("\r\n".join([*head, "", ""]).encode() + data)

    def result(self, result=None, **headers):
        self.answer(200, {"jsonrpc": "2.0", "id": self.message["id"],
                          "result": result or {}}, **headers)

    def stream(self):
        self.send(b"HTTP/1.1 200 OK\r\nContent-Type: text/event-stream\r\n"
                  b"Connection: close\r\n\r\n")

    def event(self, data=None, **fields):
        lines = [f"{k}: {v}" for k, v in fields.items()]
        lines.append("data: " + (json.dumps(data) if data else ""))
        self.send("\n".join([*lines, "", ""]).encode())

    def cut(self):
        """The connection, in the middle: a reset."""
        self.connection.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER,
                                   b"\1\0\0\0\0\0\0\0")
        self.file.close()
        self.connection.close()

    def is_gone(self):
        """Waits until the client has closed it."""
        try:
            return self.connection.recv(1) == b""
        except ConnectionResetError:
            return True


class Scripted:
    """A server for what no real one can be made to do when a test wants it.
    says: {what: a function that is given the visit}; the rest is answered as
    a small server would."""

    def __init__(self, **says):
        self.says = {"initialize": self.on_initialize, "GET":
                     lambda v: v.answer(405), "DELETE":
                     lambda v: v.answer(204), **says}
        self.visits = []
        self.sessions = itertools.count(1)
        self.port = None
        self.open()

    def open(self):
        """Also again, on the same port."""
        self.socket = socket.create_server(
            ("127.0.0.1", self.port or 0), reuse_port=False, backlog=256)
        self.port = self.socket.getsockname()[1]
        threading.Thread(target=self.serve, args=(self.socket,),
                         daemon=True).start()

    def close(self):
        with contextlib.suppress(OSError):
            self.socket.shutdown(socket.SHUT_RDWR)
        self.socket.close()

    @property
    def url(self):
        return f"http://127.0.0.1:{self.port}/mcp"

    def serve(self, listening):
        with contextlib.suppress(OSError):
            while True:
                connection, _ = listening.accept()
                threading.Thread(target=self.visit, args=(connection,),
                                 daemon=True).start()

    def visit(self, connection):
        with contextlib.suppress(OSError), connection:
            v = Visit(connection)
            if v.method == "":
                return
            self.visits.append(v)
            says = self.says.get(v.what, self.on_rest)
            says(v)
            v.file.close()

    def on_initialize(self, v):
        v.result({"protocolVersion": v.message["params"]["protocolVersion"],
                  "capabilities": {}, "serverInfo": {"name": "s",
                                                     "version": "1"}},
                 Mcp_Session_Id=f"session-{next(self.sessions)}")

    @staticmethod
    def on_rest(v):
        if "id" in v.message and "method" in v.message:
            v.result()
        else:
            v.answer(202)

    def of(self, what):
        return [v for v in list(self.visits) if v.what == what]

    def wait(self, what, count=1):
        return wait_for(lambda: len(self.of(what)) >= count and self.of(what),
                        LIMIT_S, f"{count} of {what}")
