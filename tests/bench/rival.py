"""The engine's own exec over its API, which the benchmarks stand beside.

The client is a raw socket in Python, with keep-alive where the API allows it;
what it costs is small beside an exec.
"""
import json
import socket
import threading
import time


class Wire:
    """HTTP/1.1 with keep-alive on one socket; just enough, and quick.

    took: of the last exchange, in milliseconds: from the first byte's sending
    to the last byte's arrival, without what Python does before and after.
    """

    def __init__(self, sock, host):
        self.sock = sock
        self.host = host
        self.rest = b""
        self.began = self.took = 0.0

    def receive(self):
        data = self.sock.recv(65536)
        self.took = (time.perf_counter() - self.began) * 1000
        if not data:
            raise OSError("closed")
        self.rest += data

    def read_head(self):
        while b"\r\n\r\n" not in self.rest:
            self.receive()
        head, self.rest = self.rest.split(b"\r\n\r\n", 1)
        lines = head.decode("latin-1").split("\r\n")
        pairs = (line.split(": ", 1) for line in lines[1:])
        fields = {name.lower(): value for name, value in pairs}
        return int(lines[0].split()[1]), fields

    def read_exactly(self, n):
        while len(self.rest) < n:
            self.receive()
        data, self.rest = self.rest[:n], self.rest[n:]
        return data

    def read_chunked(self):
        body = b""
        while True:
            while b"\r\n" not in self.rest:
                self.receive()
            size, self.rest = self.rest.split(b"\r\n", 1)
            n = int(size, 16)
            body += self.read_exactly(n)
            self.read_exactly(2)
            if n == 0:
                return body

    def request(self, method, path, body=b"", fields=()):
        head = [f"{method} {path} HTTP/1.1", f"Host: {self.host}",
                f"Content-Length: {len(body)}",
                "Content-Type: application/json", *fields, "", ""]
        data = "\r\n".join(head).encode() + body
        self.began = time.perf_counter()
        self.sock.sendall(data)
        status, got = self.read_head()
        if got.get("transfer-encoding") == "chunked":
            return status, got, self.read_chunked()
        return status, got, self.read_exactly(
            int(got.get("content-length", "0")))


def unix_wire(path):
    sock = socket.socket(socket.AF_UNIX)
    sock.connect(path)
    return Wire(sock, "docker")


class Rival:
    """The engine's exec, on a container like ours."""

    def __init__(self, engine, image, network_disabled):
        self.engine = engine
        self.wire = unix_wire(engine.path)
        self.spent = 0.0  # in exchanges, milliseconds
        self.received = 0  # bytes of the last stream, with its framing
        self.id = self.create(image, network_disabled)

    def api(self, method, path, obj=None):
        body = b"" if obj is None else json.dumps(obj).encode()
        status, _, data = self.wire.request(method, "/v1.41" + path, body)
        self.spent += self.wire.took
        if status >= 400:
            raise SystemExit(f"engine: {method} {path}: {data!r}")
        return json.loads(data) if data else None

    def create(self, image, network_disabled):
        box = self.api("POST", "/containers/create", {
            "Image": image, "Cmd": ["sleep", "infinity"], "User": "1000:1000",
            "NetworkDisabled": network_disabled,
            "HostConfig": {"NetworkMode": "none", "CapDrop": ["ALL"],
                           "LogConfig": {"Type": "none"},
                           "SecurityOpt": ["no-new-privileges"],
                           "Memory": 1 << 30, "MemorySwap": 1 << 30,
                           "PidsLimit": 256, "NanoCpus": 1000000000}})
        self.api("POST", f"/containers/{box['Id']}/start")
        return box["Id"]

    def remove(self):
        self.api("DELETE", f"/containers/{self.id}?force=1&v=1")

    def stream(self, exec_id):
        """Start it, and read its output to the end."""
        body = b'{"Detach":false,"Tty":false}'
        request = (
            f"POST /v1.41/exec/{exec_id}/start HTTP/1.1\r\n"
            "Host: docker\r\nContent-Type: application/json\r\n"
            f"Content-Length: {len(body)}\r\nConnection: Upgrade\r\n"
            "Upgrade: tcp\r\n\r\n").encode() + body
        began = time.perf_counter()
        stream = unix_wire(self.engine.path)
        stream.sock.sendall(request)
        self.received = 0
        buffer = bytearray(1 << 18)
        while n := stream.sock.recv_into(buffer):
            self.received += n
        stream.sock.close()
        self.spent += (time.perf_counter() - began) * 1000

    def run(self, argv):
        """Milliseconds."""
        self.spent = 0.0
        made = self.api("POST", f"/containers/{self.id}/exec", {
            "AttachStdout": True, "AttachStderr": True, "Cmd": argv})
        self.stream(made["Id"])
        state = self.api("GET", f"/exec/{made['Id']}/json")
        if state["ExitCode"] != 0:
            raise SystemExit(f"exec failed: {state}")
        return self.spent


class Mcp:
    """Our tools on one connection, in as little time of the client's."""

    def __init__(self, port):
        sock = socket.create_connection(("127.0.0.1", port))
        sock.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        self.wire = Wire(sock, f"127.0.0.1:{port}")
        self.fields = ["Accept: application/json, text/event-stream"]
        (_, got, _), _ = self.post("initialize", {
            "protocolVersion": "2025-11-25", "capabilities": {},
            "clientInfo": {"name": "bench", "version": "1"}})
        self.fields.append("Mcp-Session-Id: " + got["mcp-session-id"])

    def post(self, method, params):
        """The answer, and the milliseconds that the exchange took."""
        body = json.dumps({"jsonrpc": "2.0", "id": 1, "method": method,
                           "params": params}).encode()
        answer = self.wire.request("POST", "/mcp", body, self.fields)
        return answer, self.wire.took

    def call(self, name, arguments):
        """structuredContent and milliseconds."""
        (status, _, data), took = self.post(
            "tools/call", {"name": name, "arguments": arguments,
                           "_meta": {"mcp-sandboxd/structured": True}})
        result = json.loads(data).get("result", {"isError": True})
        if status != 200 or result.get("isError"):
            raise SystemExit(f"the call failed: {data[:500]!r}")
        return result["structuredContent"], took

    def run(self, identifier, argv):
        """Milliseconds."""
        content, took = self.call("run_sandbox", {
            "identifier": identifier, "commands": [{"argv": argv}],
            "options": {"await_completion": True}})
        if content["final"]["state"] != "completed":
            raise SystemExit(f"the run failed: {content}")
        return took

    def code(self, identifier, code):
        """Milliseconds."""
        content, took = self.call(
            "execute_code", {"identifier": identifier, "code": code})
        if content["status"] != "success":
            raise SystemExit(f"the code failed: {content}")
        return took


def pss_mib(pid):
    with open(f"/proc/{pid}/smaps_rollup", encoding="ascii") as f:
        return next(int(n.split()[1]) for n in f if n.startswith("Pss:")) / 1024


class Peak(threading.Thread):
    """The largest of what measure() gives, ten times a second."""

    def __init__(self, measure, key=None):
        super().__init__(daemon=True)
        self.measure, self.key = measure, key
        self.most = measure()
        self.enough = threading.Event()

    def run(self):
        while not self.enough.wait(0.1):
            self.most = max(self.most, self.measure(), key=self.key)

    def end(self):
        self.enough.set()
        self.join()
        return self.most


def percentile(values, p):
    values = sorted(values)
    return values[min(len(values) - 1, int(len(values) * p / 100))]
