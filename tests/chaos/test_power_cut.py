"""The power is cut: what was acknowledged is on the disk, byte for byte.

front/ is an ext4 of its own on a loop device.  In each round clients run
commands whose output is above what a row holds, and which leave artifacts;
what the server has answered for is noted.  Then every process is stopped, and
the *blocks* of the disk are copied, not its files: what was not written back
is in the page cache above the device and not in the copy.  A server begins
with the copy, which is the next round's disk.

The file system commits nothing by itself meanwhile (commit=300), and what a
copy has is what was submitted to the device at one moment: it is made again
when something was written while it was made.
"""
import contextlib
import http.client
import os
import shutil
import signal
import subprocess
import tempfile
import threading
import uuid

import pytest

from client import wait_for

ROUNDS = 3
CLIENTS = 4
RUNS_OF_EACH = 5
DISK_BYTES = 192 << 20
LINES = 1500  # of 40 bytes and more: no row holds them


def sh(*words):
    return subprocess.run(words, check=True, capture_output=True, text=True,
                          timeout=60).stdout.strip()


class Disk:
    """An ext4 in a file, mounted at a directory."""

    def __init__(self, file, where):
        self.file, self.where, self.is_free = file, where, False
        self.loop = sh("losetup", "--find", "--show", file)
        try:
            os.makedirs(where, exist_ok=True)
            sh("mount", "-t", "ext4", "-o", "commit=300", self.loop, where)
        except BaseException:
            sh("losetup", "-d", self.loop)
            raise

    def written(self):
        """What changes with each block that is written, or on its way."""
        with open(f"/sys/block/{os.path.basename(self.loop)}/stat",
                  encoding="ascii") as f:
            numbers = f.read().split()
        return numbers[4:7], numbers[8]

    def copy_blocks(self, to):
        """What a disk would have if it lost its power now."""
        def copied():
            before = self.written()
            shutil.rmtree(to, ignore_errors=True)
            sh("cp", "--sparse=always", self.file, to)
            return before == self.written() and before[1] == "0"
        wait_for(copied, 60, "a moment in which nothing is written")

    def free(self):
        if self.is_free:
            return
        self.is_free = True
        done = subprocess.run(["umount", self.where], check=False,
                              capture_output=True, timeout=60)
        if done.returncode != 0 and os.path.ismount(self.where):
            sh("umount", "--lazy", self.where)
        subprocess.run(["losetup", "-d", self.loop], check=False, timeout=60)


@pytest.fixture
def disks():
    """make(file, where): a Disk that is taken away whatever happens."""
    made = []
    place = tempfile.mkdtemp(prefix="mcp-power-")

    def make(file, where):
        made.append(Disk(file, where))
        return made[-1]

    make.place = place
    yield make
    for disk in made:
        disk.free()
    shutil.rmtree(place)


def text_of(token):
    return "".join(f"{token} {i}\n" for i in range(LINES)).encode()


def script(token):
    """Prints the text, and leaves it, and a small file."""
    return (f"i=0; while [ $i -lt {LINES} ]; do echo {token} $i; "
            "i=$((i + 1)); done | tee /artifacts/large; "
            f"printf {token} > /artifacts/small")


class Caller(threading.Thread):
    """Notes what it was told has ended, and what must be there of it."""

    def __init__(self, server, name, told):
        super().__init__(daemon=True)
        self.server, self.name_of, self.told = server, name, told
        self.failed = None

    def run(self):
        try:
            with contextlib.closing(self.server.client()) as client:
                for _ in range(RUNS_OF_EACH):
                    token = uuid.uuid4().hex
                    final = client.run(self.name_of, script(token))
                    assert final["state"] == "completed", final
                    self.told.append((self.name_of, final["run_id"], token))
        except Exception as e:  # whatever it is, the test must hear of it
            self.failed = repr(e)


def load(server, told):
    callers = [Caller(server, f"load-{i}", told) for i in range(CLIENTS)]
    for c in callers:
        c.start()
    for c in callers:
        c.join(120)
    assert [c.failed for c in callers if c.failed or c.is_alive()] == []


def stop_all(server):
    """As they are; nothing of them says a last word."""
    pids = [server.proc.pid, *[pid for pid, _ in server.children()]]
    for pid in pids:
        os.kill(pid, signal.SIGSTOP)

    def stopped(pid):
        """Each of its threads: none is inside a write any more."""
        for task in os.listdir(f"/proc/{pid}/task"):
            with open(f"/proc/{pid}/task/{task}/stat", encoding="ascii") as f:
                if f.read().rsplit(")", 1)[1].split()[0] != "T":
                    return False
        return True
    wait_for(lambda: all(stopped(pid) for pid in pids), 60, "their stop")
    return pids


def cut(server, disk, copy, engine):
    """Only the blocks are left, and no sandbox."""
    pids = stop_all(server)
    disk.copy_blocks(copy)
    for pid in pids:
        os.kill(pid, signal.SIGKILL)
    server.proc.wait(30)
    wait_for(lambda: not any(os.path.exists(f"/proc/{pid}") for pid in pids),
             60, "the end of all processes")
    for c in engine.containers(server.instance):
        engine.request("DELETE", f"/containers/{c['Id']}?force=1&v=1")
    disk.free()


def missing(client, name, run, token):
    """What was acknowledged and is not there as it was."""
    want = text_of(token)
    for path, bytes_of in ((f"/artifacts/{name}/{run}/large", want),
                           (f"/artifacts/{name}/{run}/small", token.encode()),
                           (f"/api/v1/runs/{run}/output", want)):
        try:
            status, _, data = client.request("GET", path)
        except (OSError, http.client.HTTPException) as e:
            yield path, repr(e)
            continue
        if status != 200 or data != bytes_of:
            yield path, status, len(data), data[:80]
    view = client.status(run)
    if view["state"] != "completed" or "output_lost_at" in view:
        yield run, view["state"], view.get("output_lost_at")


def new_disk(place):
    file = os.path.join(place, "disk-0")
    with open(file, "wb") as f:
        f.truncate(DISK_BYTES)
    sh("mkfs.ext4", "-q", "-F", "-J", "size=16", file)
    return file


def begin(disks, make_server, file):
    """A server whose front/ is that disk."""
    data = os.path.join(disks.place, "data")
    os.makedirs(data, exist_ok=True)
    os.chmod(disks.place, 0o755)
    disk = disks(file, os.path.join(data, "front"))
    lost = os.path.join(disk.where, "lost+found")
    if os.path.isdir(lost):
        os.rmdir(lost)
    return disk, make_server(env={"DATA_DIR": data, "DISK_RESERVE_MB": "1"})


@pytest.mark.skipif(os.geteuid() != 0, reason="only root mounts a disk")
def test_nothing_acknowledged_is_lost(disks, make_server, engine):
    told = []
    file = new_disk(disks.place)
    disk, server = begin(disks, make_server, file)
    for i in range(ROUNDS):
        load(server, told)
        with contextlib.closing(server.client()) as client:
            going = client.start("going", "i=0; while :; do echo line $i; "
                                 "i=$((i + 1)); done")["run_id"]
            wait_for(lambda: client.status(going)["commands"][0][
                "stdout_bytes"] > 100000, 60, "a run that prints")
            load(server, told)
        file = os.path.join(disks.place, f"disk-{i + 1}")
        cut(server, disk, file, engine)
        disk, server = begin(disks, make_server, file)
        with contextlib.closing(server.client()) as client:
            lost = [m for n in told for m in missing(client, *n)]
            assert lost == [], (i, len(lost), lost[:10])
            view = client.wait_end(going)
            assert view["state"] == "failed", view
            assert view["end_reason"] == "sandbox_lost", view
    assert len(told) == ROUNDS * CLIENTS * RUNS_OF_EACH * 2
