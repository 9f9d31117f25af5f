"""The real engine behind a socket of a test's, with bad days of the exec
streams that bridges go over, and days on which nobody comes through.

    engine = BridgeEngine(path, real)
    engine.faults = [hang_after_start]	the next stream's, and the one's after
    engine.always = cut_after(4000)	of all that have none of these
    engine.refusal = (403, "no exec")	of every exec, until it is None
    engine.away(); engine.back()

All else goes through as it is.  A fault is a function that is given a Stream
when the engine has answered 101; behind it the stream goes on, unless the fault
has ended it.
"""
import contextlib
import json
import os
import re
import socket
import struct
import threading
import time

OUT, ERRORS = 1, 2
HEAD = struct.Struct(">BxxxI")
PIECE = 65536
START = re.compile(rb"POST (?:/v[\d.]+)?/exec/[^/ ]+/start[ ?]")
CREATE = re.compile(rb"POST (?:/v[\d.]+)?/containers/[^/ ]+/exec[ ?]")


class Over(Exception):
    """A side of the connection is gone."""


def receive(sock, n=PIECE):
    try:
        data = sock.recv(n)
    except OSError as e:
        raise Over from e
    if not data:
        raise Over
    return data


def send(sock, data):
    try:
        sock.sendall(data)
    except OSError as e:
        raise Over from e


class Reader:
    """Bytes of a socket, by count or up to a mark."""

    def __init__(self, sock):
        self.sock = sock
        self.rest = b""

    def up_to(self, mark):
        while mark not in self.rest:
            self.rest += receive(self.sock)
        data, _, self.rest = self.rest.partition(mark)
        return data + mark

    def some(self, most=PIECE):
        data = self.rest[:most] or receive(self.sock, most)
        self.rest = self.rest[len(data):]
        return data

    def exactly(self, n):
        data = b""
        while len(data) < n:
            data += self.some(n - len(data))
        return data

    def all(self, to):
        while True:
            send(to, self.some())


class Stream:
    """What an exec prints, as the engine cuts it: on its way to a worker."""

    def __init__(self, near, reader):
        self.near, self.reader = near, reader

    def frame(self):
        """(kind, payload) of the next one, which is passed on by nobody."""
        kind, length = HEAD.unpack(self.reader.exactly(HEAD.size))
        return kind, self.reader.exactly(length)

    def send(self, data):
        send(self.near, data)

    def send_frame(self, kind, payload, length=None):
        self.send(HEAD.pack(kind, len(payload) if length is None else length)
                  + payload)

    def pass_frames(self, count):
        for _ in range(count):
            self.send_frame(*self.frame())

    def pass_bytes(self, count):
        while count > 0:
            data = self.reader.some(min(count, PIECE))
            self.send(data)
            count -= len(data)

    def wait_closed(self):
        """Nothing comes any more, until either side ends it."""
        while True:
            self.reader.some()

    def end(self):
        raise Over


# ---- faults

def hang_after_start(stream):
    stream.wait_closed()


def end_at_once(stream):
    stream.end()


def end_in_a_head(stream):
    stream.pass_frames(1)
    stream.send(HEAD.pack(OUT, 100)[:5])
    stream.end()


def end_in_a_frame(stream):
    """What is missing of it has never come."""
    stream.pass_frames(1)
    kind, payload = stream.frame()
    stream.send_frame(kind, payload[:len(payload) // 2], len(payload))
    stream.end()


def frame_of_4_gib(stream):
    """And as many of its bytes as somebody reads, none of the box's."""
    stream.pass_frames(1)
    stream.send_frame(OUT, b"", 0xffffffff)
    while True:
        stream.send(bytes(PIECE))


def errors_between(stream):
    """A line where none belongs; the rest comes as it was."""
    stream.pass_frames(1)
    stream.send_frame(ERRORS, b"a line \x1b[31mof nobody\n")


def errors_without_end(stream):
    stream.pass_frames(1)
    while True:
        stream.send_frame(ERRORS, b"x" * 1000)


def unknown_kind(stream):
    stream.pass_frames(1)
    stream.send_frame(7, b"what may this be")


def words_of_the_engine(stream):
    """As output of a program that it could not start."""
    stream.send_frame(OUT, b"OCI runtime exec failed: exec failed: no\r\n")
    stream.end()


def no_format_at_all(stream):
    stream.send(b"HTTP/1.1 500 Internal Server Error\r\n\r\n")


def empty_frames(stream):
    stream.pass_frames(1)
    for _ in range(100):
        stream.send_frame(OUT, b"")


def bytes_apart(stream):
    """Heads and frames come in the smallest pieces for a while."""
    for _ in range(2000):
        stream.pass_bytes(1)


def cut_after(count):
    """The connection is gone when so many bytes have come up."""
    def cut(stream):
        stream.pass_bytes(count)
        stream.end()
    return cut


def cut_down_after(count):
    """The same of bytes that go down."""
    def cut(_):
        pass
    cut.down = count
    return cut


def hang_after(count):
    def hang(stream):
        stream.pass_bytes(count)
        stream.wait_closed()
    return hang


def late(seconds):
    def wait(_):
        time.sleep(seconds)  # it is how late
    return wait


# ---- the engine

class Connection:
    """One of a worker's, with its other half at the real engine."""

    def __init__(self, engine, near):
        self.engine, self.near = engine, near
        self.far = socket.socket(socket.AF_UNIX)
        self.fault = None
        self.is_exec = False

    def begin(self):
        for work in (self.down, self.up):
            threading.Thread(target=self.do, args=(work,), daemon=True).start()

    def do(self, work):
        with contextlib.suppress(Over):
            work()
        if self.is_exec and self.engine.holds:
            self.engine.held += work == self.down
            return
        if work == self.down and self.is_exec:
            # The program's standard input ends; what it said still comes.
            with contextlib.suppress(OSError):
                self.far.shutdown(socket.SHUT_WR)
            return
        self.close()

    def close(self):
        for sock in (self.near, self.far):
            with contextlib.suppress(OSError):
                sock.shutdown(socket.SHUT_RDWR)
        self.engine.left(self)

    def down(self):
        """Requests, and what follows the one that becomes a stream."""
        reader = Reader(self.near)
        while True:
            head = reader.up_to(b"\r\n\r\n")
            length = re.search(rb"\r\ncontent-length: *(\d+)", head, re.I)
            if CREATE.match(head) and self.engine.refusal:
                reader.exactly(int(length[1]))
                self.engine.refused += 1
                self.refuse(*self.engine.refusal)
            if START.match(head):
                self.is_exec = True
                self.fault = self.engine.next_fault()
            send(self.far, head)
            if self.is_exec:
                break
            if length:
                left = int(length[1])
                while left > 0:
                    data = reader.some(min(left, PIECE))
                    send(self.far, data)
                    left -= len(data)
            elif re.search(rb"\r\ntransfer-encoding:", head, re.I):
                break  # an archive: the connection is of no other request
        left = getattr(self.fault, "down", None)
        while left is None or left > 0:
            data = reader.some(PIECE if left is None else min(left, PIECE))
            send(self.far, data)
            left = left and left - len(data)
        self.close()

    def refuse(self, status, message):
        body = json.dumps({"message": message}).encode()
        send(self.near, b"HTTP/1.1 %d X\r\nContent-Type: application/json\r\n"
             b"Content-Length: %d\r\nConnection: close\r\n\r\n%s" %
             (status, len(body), body))
        raise Over

    def up(self):
        reader = Reader(self.far)
        data = reader.some()
        while not self.is_exec:
            send(self.near, data)
            data = reader.some()
        reader.rest = data + reader.rest
        head = reader.up_to(b"\r\n\r\n")
        send(self.near, head)
        if self.fault is not None and head.startswith(b"HTTP/1.1 101"):
            self.fault(Stream(self.near, reader))
        reader.all(self.near)


class BridgeEngine:
    """It listens from the beginning."""

    def __init__(self, path, target):
        self.path, self.target = path, target
        self.lock = threading.Lock()
        self.faults = []
        self.always = None
        self.refusal = None
        self.refused = 0
        self.holds = False  # what the worker has closed stays open behind us
        self.held = 0
        self.started = 0  # exec streams, ever
        self.connections = set()
        self.server = None
        self.back()

    def back(self):
        self.server = socket.socket(socket.AF_UNIX)
        self.server.bind(self.path)
        os.chmod(self.path, 0o666)
        self.server.listen(64)
        threading.Thread(target=self.accept, args=(self.server,),
                         daemon=True).start()

    def away(self):
        """Nobody listens, and what was open is cut."""
        self.server.shutdown(socket.SHUT_RDWR)
        self.server.close()
        os.unlink(self.path)
        self.cut_all()

    def cut_all(self):
        with self.lock:
            all_of_them = list(self.connections)
        for c in all_of_them:
            c.close()

    def cut_streams(self):
        """Only those that bridges go over."""
        with self.lock:
            streams = [c for c in self.connections if c.is_exec]
        for c in streams:
            c.close()
        return len(streams)

    def close(self):
        with contextlib.suppress(OSError):
            self.away()

    def accept(self, server):
        while True:
            try:
                near, _ = server.accept()
            except OSError:
                return
            c = Connection(self, near)
            with self.lock:
                self.connections.add(c)
            try:
                c.far.connect(self.target)
            except OSError:
                c.close()
                continue
            c.begin()

    def left(self, connection):
        with self.lock:
            self.connections.discard(connection)

    def next_fault(self):
        with self.lock:
            self.started += 1
            return self.faults.pop(0) if self.faults else self.always
