"""Raw clients for tests: a WebSocket of exec and attach, and a watch."""
import base64
import contextlib
import http.client
import json
import os
import struct
import time
import urllib.parse

V5, V4 = "v5.channel.k8s.io", "v4.channel.k8s.io"
BINARY, CLOSE, PING = 2, 8, 9
WAIT_S = 10
MASK = b"\x11\x22\x33\x44"


def frame(data, opcode=BINARY, fin=True, mask=MASK):
    first, length = opcode | (0x80 if fin else 0), len(data)
    bit = 0x80 if mask else 0
    if length < 126:
        head = struct.pack("!BB", first, bit | length)
    elif length < 1 << 16:
        head = struct.pack("!BBH", first, bit | 126, length)
    else:
        head = struct.pack("!BBQ", first, bit | 127, length)
    if not mask:
        return head + data
    key = mask * (length // 4 + 1)
    return head + mask + bytes(a ^ b for a, b in zip(data, key))


class Peer:
    """One WebSocket; status is the HTTP status of its beginning."""

    def __init__(self, cluster, path, protocols=(V5,), early=b"", alpn=()):
        self.socket = cluster.stream(WAIT_S, alpn)
        self.buffer = b""
        offered = f"Sec-WebSocket-Protocol: {', '.join(protocols)}\r\n" \
            if protocols else ""
        account = "".join(
            f"{k}: {v}\r\n" for k, v in cluster.account().items())
        self.send(
            f"GET {path} HTTP/1.1\r\nHost: localhost\r\nConnection: Upgrade\r"
            "\nUpgrade: websocket\r\nSec-WebSocket-Version: 13\r\n"
            f"{account}{offered}"
            "Sec-WebSocket-Key: "
            f"{base64.b64encode(os.urandom(16)).decode()}\r\n\r\n".encode() +
            early)
        head = self.take_until(b"\r\n\r\n").decode()
        first, *lines = head.strip().split("\r\n")
        self.status = int(first.split()[1])
        self.headers = {k.lower(): v.strip() for k, v in (
            line.split(":", 1) for line in lines)}
        self.body = b"" if self.status == 101 else self.take(
            int(self.headers["content-length"]))

    def __enter__(self):
        return self

    def __exit__(self, *exc):
        self.socket.close()

    def send(self, data):
        self.socket.sendall(data)

    def say(self, channel, data):
        self.send(frame(bytes([channel]) + data))

    def take_until(self, end):
        while end not in self.buffer:
            data = self.socket.recv(1 << 16)
            assert data, self.buffer
            self.buffer += data
        out, _, self.buffer = self.buffer.partition(end)
        return out

    def take(self, count):
        """Fewer bytes at the end of the connection."""
        while len(self.buffer) < count:
            try:
                data = self.socket.recv(1 << 16)
            except ConnectionResetError:
                data = b""
            if not data:
                break
            self.buffer += data
        out, self.buffer = self.buffer[:count], self.buffer[count:]
        return out

    def frame(self):
        """(opcode, data), or None at the end; what has a mask is no frame of
        a server."""
        head = self.take(2)
        if len(head) < 2:
            return None
        length = head[1]
        assert not length & 0x80
        if length >= 126:
            length = int.from_bytes(
                self.take(2 if length == 126 else 8), "big")
        return head[0] & 0x0f, self.take(length)

    def frames(self):
        """All that are left, to the end."""
        out = []
        while (one := self.frame()) is not None:
            out.append(one)
        return out

    def until(self, channel, text):
        """What comes on that channel, until it has this text."""
        got = b""
        while text not in got:
            opcode, data = self.frame()
            assert opcode == BINARY, (opcode, data)
            if data[:1] == bytes([channel]):
                got += data[1:]
        return got


def path_of(cluster, pod, verb, *command, **query):
    words = [("command", c) for c in command] + [
        (k, str(v).lower()) for k, v in query.items()]
    return f"/api/v1/namespaces/{cluster.namespace}/pods/{pod}/{verb}?" + \
        urllib.parse.urlencode(words)


def executing(cluster, pod, *command, **kwargs):
    """stdin=True and the like are of the query, the others of Peer."""
    query = {"stdout": True, "stderr": True, "container": "main"}
    for key in ("stdin", "stdout", "stderr", "tty", "container"):
        if key in kwargs:
            query[key] = kwargs.pop(key)
    return Peer(cluster, path_of(cluster, pod, "exec", *command, **query),
                **kwargs)


def attaching(cluster, pod, protocols=(V5,), **query):
    return Peer(cluster, path_of(cluster, pod, "attach", **query), protocols)


class Watch:
    """Lines of a watch of Pods, as events."""

    def __init__(self, cluster, **query):
        self.connection = cluster.connection()
        words = urllib.parse.urlencode({"watch": "true", **query})
        self.connection.request(
            "GET", f"/api/v1/namespaces/{cluster.namespace}/pods?{words}",
            headers=cluster.account())
        self.answer = self.connection.getresponse()
        assert self.answer.status == 200

    def __enter__(self):
        return self

    def __exit__(self, *exc):
        self.connection.close()

    def event(self):
        """The next one, or None at the end."""
        line = self.answer.readline()
        return json.loads(line) if line else None

    def until(self, good):
        """The first event of which good(type, object) says so."""
        while (one := self.event()) is not None:
            if good(one["type"], one["object"]):
                return one
        raise AssertionError("the watch ended")


def wait_for(good, what):
    end = time.monotonic() + WAIT_S
    while time.monotonic() < end:
        with contextlib.suppress(http.client.HTTPException, OSError):
            if found := good():
                return found
        time.sleep(0.02)
    raise AssertionError(f"not in {WAIT_S} s: {what}")
