#!/usr/bin/python3
"""Measure the agent over its socket: SANDBOX_AGENT=... ./bench.py [runs]

Prints p50 and p95 of short commands (RUN_START sent to RUN_ENDED received),
beside a bare fork and exec of the same program by this very process, the rate
of bulk output, and the agent's memory.
"""
import os
import struct
import sys
import time
import uuid

import wire
from host import Sandbox
from wire import Command, pack_bytes, pack_spec, python, shell

BULK_BYTES = 1 << 30


def percentile(values, part):
    values = sorted(values)
    return values[min(len(values) - 1, int(len(values) * part))]


def report(name, values):
    print(f"{name:34} p50 {percentile(values, .5) * 1e6:6.0f} us"
          f"   p95 {percentile(values, .95) * 1e6:6.0f} us"
          f"   p99 {percentile(values, .99) * 1e6:6.0f} us")


def one(conn, spec):
    """One run with as little Python around it as can be."""
    key = uuid.uuid4().bytes
    frame = wire.pack_frame(wire.RUN_START, key, struct.pack("<QQ", 0, 1 << 20),
                            spec)
    begin = time.perf_counter()
    conn.sendall(frame)
    data = b""
    while True:
        data += conn.recv(65536)
        # RUN_ENDED: magic, type 6, command 0, five bytes of payload
        if data[-21:-19] == b"\xa7\x06":
            break
    took = time.perf_counter() - begin
    # the log's length is in the frames; take it from the last RUN_LOG
    length, at, total = 0, 0, 0
    while at < len(data):
        size, kind, _ = struct.unpack_from("<IHH", data, at)
        if kind == wire.RUN_LOG:
            offset = struct.unpack_from("<Q", data, at + 24)[0]
            total = offset + size - 4 - 24
        at += size + 4
        length += 1
    conn.sendall(wire.pack_frame(wire.RUN_ACK, key, struct.pack("<Q", total))
                 + wire.pack_frame(wire.RUN_FORGET, key))
    return took, length


def spawn(argv):
    begin = time.perf_counter()
    pid = os.posix_spawn(argv[0], argv, {})
    os.waitpid(pid, 0)
    return time.perf_counter() - begin


def short(sandbox, runs):
    conn = sandbox.host.conn
    for name, command in (("true", Command(["/bin/true"])),
                          ("echo hi", Command(["/bin/echo", "hi"])),
                          ("sh -c 'echo hi'", Command(["/bin/sh", "-c",
                                                       "echo hi"])),
                          ("bash -lc 'echo hi'", shell("echo hi"))):
        spec = pack_spec([command])
        values, frames, bare = [], [], []
        for _ in range(runs):
            took, count = one(conn, spec)
            values.append(took)
            frames.append(count)
            time.sleep(0.0005)
            if name == "true":
                bare.append(spawn(["/bin/true"]))
        report(name, values)
        print(f"{'':34} frames per run: {percentile(frames, .5)}")
        if bare:
            report("  posix_spawn + wait of the same", bare)


def bulk(sandbox):
    host = sandbox.host
    for name, command in (
            ("head -c 1G /dev/zero", Command(["head", "-c", str(BULK_BYTES),
                                              "/dev/zero"])),
            ("python, 1 MiB writes", python(
                f"import os\nb = b'x' * (1 << 20)\n"
                f"for i in range({BULK_BYTES >> 20}):\n"
                "    n = 0\n"
                "    while n < len(b): n += os.write(1, b[n:])"))):
        key = uuid.uuid4()
        cpu = sandbox.cpu_ticks()
        begin = time.perf_counter()
        host.send(wire.RUN_START, key.bytes, struct.pack("<QQ", 0, 1 << 20),
                  pack_spec([command]))
        got = drain(host.conn, key.bytes)
        took = time.perf_counter() - begin
        cpu = (sandbox.cpu_ticks() - cpu) / os.sysconf("SC_CLK_TCK")
        print(f"{name:34} {got / took / 1e6:6.0f} MB/s"
              f"   agent's CPU {cpu / (got / 1e9):.2f} s/GB")
        host.send(wire.RUN_FORGET, key.bytes)


def drain(conn, key):
    """Read a run's log to its end without looking at the output."""
    space = bytearray(1 << 20)
    view = memoryview(space)
    need, got, acked, head = 0, 0, 0, b""
    tail = b""
    while True:
        n = conn.recv_into(view)
        at = 0
        while at < n:
            if need:
                step = min(need, n - at)
                tail = bytes(view[max(at, at + step - 21):at + step])
                need -= step
                at += step
                continue
            want = 32 if len(head) >= 8 and head[4] == wire.RUN_LOG else 8
            step = min(want - len(head), n - at)
            head += bytes(view[at:at + step])
            at += step
            if len(head) == 8 and head[4] != wire.RUN_LOG:
                need, head = struct.unpack("<I", head[:4])[0] - 4, b""
            elif len(head) == 32:
                need = struct.unpack("<I", head[:4])[0] - 28
                got += need
                head = b""
        if got - acked >= 1 << 18:
            conn.sendall(wire.pack_frame(wire.RUN_ACK, key,
                                         struct.pack("<Q", got - need)))
            acked = got - need
        if not need and tail[:2] == b"\xa7\x06":
            conn.sendall(wire.pack_frame(wire.RUN_ACK, key,
                                         struct.pack("<Q", got)))
            return got


def walks(sandbox):
    host = sandbox.host
    host.run(shell("cd /artifacts; seq 5000 | xargs touch"))
    begin = time.perf_counter()
    entries, _ = host.walk("/artifacts")
    print(f"{'walk of 5,000 files':34} "
          f"{(time.perf_counter() - begin) * 1e3:6.1f} ms"
          f" ({len(entries)} entries)")
    host.run(shell("head -c 512M /dev/zero > /artifacts/big"))
    begin = time.perf_counter()
    host.send(wire.READ, struct.pack("<IQQI", 9, 0, 1 << 40, 1 << 30),
              pack_bytes("/artifacts"), pack_bytes("big"))
    got, kind = 0, 0
    data = bytearray()
    while kind != wire.FILE_END:
        data += host.conn.recv(1 << 20)
        at = 0
        while len(data) - at >= 8:
            size, kind, _ = struct.unpack_from("<IHH", data, at)
            if len(data) - at < size + 4:
                kind = 0
                break
            got += size + 4
            at += size + 4
        del data[:at]
    took = time.perf_counter() - begin
    print(f"{'read of a file, 512 MiB':34} {got / took / 1e6:6.0f} MB/s")


def memory(sandbox, when):
    with open(f"/proc/{sandbox.pid}/status", encoding="ascii") as f:
        for line in f:
            if line.startswith("VmRSS"):
                print(f"{'RSS ' + when:34} {int(line.split()[1]):6} KiB")


def main():
    agent = os.environ["SANDBOX_AGENT"]
    runs = int(sys.argv[1]) if len(sys.argv) > 1 else 1000
    print(f"{'binary':34} {os.path.getsize(agent) // 1024:6} KiB")
    sandbox = Sandbox(agent)
    try:
        memory(sandbox, "at start")
        short(sandbox, runs)
        memory(sandbox, "after the short runs")
        bulk(sandbox)
        memory(sandbox, "after bulk output")
        walks(sandbox)
    finally:
        sandbox.close()


if __name__ == "__main__":
    main()
