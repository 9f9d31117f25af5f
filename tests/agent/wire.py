"""Frames, run specifications and run logs, as the sandbox's agent has them.

Frames are those of tests/lists.py; specifications and logs are written from
common/*.h and not from the C code, so that a mistake in one of the two shows.
"""
import os
import struct
import sys
import uuid
from dataclasses import dataclass, field

sys.path.append(os.path.dirname(os.path.dirname(os.path.abspath(__file__))))
from lists import Cursor, Protocol, pack_bytes, pack_field  # noqa: E402

FRAMES = Protocol("frame.txt")
VERSION = FRAMES.version
SAID_WHATS = list(FRAMES.enums["said_what"])
UP_MAX = next(d.max for d in FRAMES.listing.directions if d.name == "up")
WINDOW = 1 << 20
(RUN_STARTED, COMMAND_STARTED, STDOUT, STDERR, COMMAND_ENDED,
 RUN_ENDED, LEFT) = range(1, 8)

REASONS = (None, "exit", "signal", "timeout", "memory", "output_limit",
           "canceled", "start_failed", "denied", "sandbox_lost", "internal")
OUTPUT_LIMIT, CANCELED = 5, 6

SANDBOX, ROOT = 0, 1
CONTINUE_ON_ERROR, LOCK, KILL_LEFTOVERS = 1, 2, 4
ALLOW_FAILURE, SHELL, DENIED, MERGE_STDERR = 1, 2, 4, 8


def pack_body(number, body):
    """A frame of any number with these bytes behind its head."""
    return struct.pack("<IHH", len(body) + 4, number, 0) + body


def pack_frame(name, **values):
    """A frame of schema/frame.txt; fields not given are 0 or empty."""
    fields = FRAMES.fields(name)
    assert values.keys() <= {f.name for f in fields}
    none = {"uuid": uuid.UUID(int=0), "str": "", "bytes": b"", "rest": b""}
    return pack_body(FRAMES.number(name), b"".join(pack_field(
        f, values.get(f.name, none.get(f.kind, 0))) for f in fields))


def unpack_frame(number, body):
    """(name, fields) of a frame that comes up."""
    name = FRAMES.name(number)
    assert FRAMES.by_name[name].direction.name in ("both", "up")
    cursor = Cursor(body)
    values = {f.name: cursor.field(f) for f in FRAMES.fields(name)}
    cursor.end()
    return name, values


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
    memory_peak_bytes: int
    memory_kills: int


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
        f = Cursor(self.payload)
        end = End(REASONS[f.number("B")], f.number("i"), f.number("i"),
                  f.number("Q"), f.number("Q"), f.number("Q"), f.number("Q"),
                  f.bytes().decode(), f.number("Q"), f.number("I"))
        f.end()
        return end

    def run_end(self):
        f = Cursor(self.payload)
        end = RunEnd(REASONS[f.number("B")], bool(f.number("B")),
                     bool(f.number("B")), f.number("H"))
        f.end()
        return end

    def left(self):
        f = Cursor(self.payload)
        count, killed, shown = (f.number(c) for c in "IBB")
        left = [(f.number("I"), f.number("I"), f.bytes().decode())
                for _ in range(shown)]
        f.end()
        return Left(count, bool(killed), left)


@dataclass
class Left:
    count: int
    killed: bool
    shown: list  # (id, pid, text)


@dataclass
class LeftLog:
    command: int
    state: str
    bytes: int
    output: bytes


@dataclass
class LeftList:
    total: int
    count: int
    killed: int
    processes: list  # (id, pid, command, text)
    logs: list


def unpack_leftlist(data):
    """common/leftlist.h"""
    f = Cursor(data)
    total, count, killed, n = (f.number("I") for _ in range(4))
    processes = [(f.number("I"), f.number("I"), f.number("H"),
                  f.bytes().decode()) for _ in range(n)]
    states = ("running", "ended", "killed", "disk_full")
    logs = [LeftLog(f.number("H"), states[f.number("B")], f.number("Q"),
                    f.bytes()) for _ in range(f.number("I"))]
    f.end()
    return LeftList(total, count, killed, processes, logs)


class LogParser:
    """Whole records from a log that comes in pieces; checks their order."""

    def __init__(self):
        self.buffer = bytearray()
        self.command = -1
        self.running = False
        self.left = False
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
            self.left = False
        elif record.kind in (STDOUT, STDERR):
            assert self.running and record.command == self.command
            assert not self.left
            assert record.payload, "an output record without output"
        elif record.kind == LEFT:
            assert self.running and record.command == self.command
            assert not self.left
            self.left = True
        elif record.kind == COMMAND_ENDED:
            assert self.running and record.command == self.command
            self.running = False
        else:
            assert record.kind == RUN_ENDED
            assert self.started and not self.running
            self.ended = True
