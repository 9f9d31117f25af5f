"""Frames, run specifications and run logs, as common/*.h describe them.

Written from the headers and not from the C code, so that a mistake in one of
the two shows.
"""
import struct
import uuid
from dataclasses import dataclass, field

UP_MAX = 262144 + 64
WINDOW = 1 << 20

(HELLO, HELLO_RUN, HELLO_END, RUN_KNOWN, RUN_REFUSED, RUN_LOG, FILE_ENTRY,
 FILE_DATA, FILE_END, PONG) = range(1, 11)
(WELCOME, RUN_START, RUN_ACK, RUN_CANCEL, RUN_FORGET, WALK, WALK_TAKEN, READ,
 READ_ACK, ABORT, PING) = range(32, 43)

(RUN_STARTED, COMMAND_STARTED, STDOUT, STDERR, COMMAND_ENDED,
 RUN_ENDED) = range(1, 7)

REASONS = (None, "exit", "signal", "timeout", "memory", "output_limit",
           "canceled", "start_failed", "denied", "sandbox_lost", "internal")
OUTPUT_LIMIT, CANCELED = 5, 6

SANDBOX, ROOT = 0, 1
CONTINUE_ON_ERROR = 1
ALLOW_FAILURE, SHELL, DENIED, MERGE_STDERR = 1, 2, 4, 8


def pack_bytes(data):
    if isinstance(data, str):
        data = data.encode()
    return struct.pack("<I", len(data)) + data


def pack_frame(kind, *parts):
    body = b"".join(parts)
    return struct.pack("<IHH", len(body) + 4, kind, 0) + body


class Fields:
    """The fields of one frame, in order; end() says that none is left."""

    def __init__(self, data):
        self.data = data

    def take(self, n):
        assert len(self.data) >= n, "a frame is cut off"
        part, self.data = self.data[:n], self.data[n:]
        return part

    def number(self, code):
        size = struct.calcsize("<" + code)
        return struct.unpack("<" + code, self.take(size))[0]

    def text(self):
        return bytes(self.take(self.number("I")))

    def id(self):
        return uuid.UUID(bytes=bytes(self.take(16)))

    def rest(self):
        part, self.data = self.data, b""
        return part

    def end(self):
        assert not self.data, "bytes left over in a frame"


@dataclass
class Command:
    argv: list
    env: list = field(default_factory=list)
    cwd: str = "/workspace"
    timeout_ms: int = 60000
    flags: int = 0
    deny: str = ""

    def pack(self):
        out = []
        for strings in (self.argv, self.env):
            out.append(struct.pack("<I", len(strings)))
            out.extend(pack_bytes(s) for s in strings)
        out.append(pack_bytes(self.cwd))
        out.append(struct.pack("<II", self.timeout_ms, self.flags))
        out.append(pack_bytes(self.deny))
        return b"".join(out)


def shell(text, **more):
    flags = more.pop("flags", 0) | SHELL
    return Command([text], flags=flags, **more)


def python(text, **more):
    return Command(["/usr/bin/python3", "-I", "-S", "-c", text], **more)


def pack_spec(commands, user=SANDBOX, flags=0, files=()):
    out = [struct.pack("<IBII", 1, user, flags, len(commands))]
    out.extend(c.pack() for c in commands)
    out.append(struct.pack("<I", len(files)))
    for name, mode, data in files:
        out.append(pack_bytes(name) + struct.pack("<I", mode)
                   + pack_bytes(data))
    return b"".join(out)


@dataclass
class End:
    reason: str
    exit_code: int
    signal: int
    stdout_bytes: int
    stderr_bytes: int
    wall_us: int
    cpu_us: int
    text: str


@dataclass
class RunEnd:
    reason: str
    failed: bool
    artifacts: bool
    command: int


@dataclass
class Record:
    kind: int
    command: int
    wall_us: int
    payload: bytes

    def end(self):
        f = Fields(self.payload)
        end = End(REASONS[f.number("B")], f.number("i"), f.number("i"),
                  f.number("Q"), f.number("Q"), f.number("Q"),
                  f.number("Q"), f.text().decode())
        f.end()
        return end

    def run_end(self):
        f = Fields(self.payload)
        end = RunEnd(REASONS[f.number("B")], bool(f.number("B")),
                     bool(f.number("B")), f.number("H"))
        f.end()
        return end


class LogParser:
    """Whole records from a log that comes in pieces; checks their order."""

    def __init__(self):
        self.buffer = bytearray()
        self.command = -1
        self.running = False
        self.started = False
        self.ended = False

    def feed(self, data):
        self.buffer += data
        at = 0
        while len(self.buffer) - at >= 16:
            magic, kind, command, size, wall_us = struct.unpack_from(
                "<BBHIq", self.buffer, at)
            assert magic == 0xa7 and size <= 65536
            if len(self.buffer) - at < 16 + size:
                break
            payload = bytes(self.buffer[at + 16:at + 16 + size])
            at += 16 + size
            record = Record(kind, command, wall_us, payload)
            self.check(record)
            yield record
        del self.buffer[:at]

    def check(self, record):
        assert not self.ended
        if record.kind == RUN_STARTED:
            assert not self.started and not record.payload
            self.started = True
        elif record.kind == COMMAND_STARTED:
            assert self.started and not self.running
            assert record.command == self.command + 1
            self.command += 1
            self.running = True
        elif record.kind in (STDOUT, STDERR):
            assert self.running and record.command == self.command
            assert record.payload, "an output record without output"
        elif record.kind == COMMAND_ENDED:
            assert self.running and record.command == self.command
            self.running = False
        else:
            assert record.kind == RUN_ENDED
            assert self.started and not self.running
            self.ended = True
