"""quota_engine.py DIRECTORY quota|small - an engine with a storage of its own

Runs dockerd for a test: with the btrfs driver over an image file that is
mounted by a loop device, so that it has quotas, or with little room, in memory.
It is in namespaces of its own (so start it by unshare --mount --net: an engine
without a bridge removes docker0, which may be another engine's), with
everything in DIRECTORY, and with a second name for its runtime.  Says "ready"
on stdout, goes on until its stdin ends, which it does however who started it
ends, and takes everything away: the mount goes with the namespace, and the loop
device with the mount.
"""
import contextlib
import ctypes
import os
import shutil
import signal
import subprocess
import sys
import tempfile
import time

import driver

PR_SET_PDEATHSIG, PR_SET_CHILD_SUBREAPER = 1, 36
IMAGE_BYTES = 2 << 30  # sparse
SMALL_BYTES = 96 << 20
START_S, STOP_S = 90, 30

libc = ctypes.CDLL(None)


def die_with_parent():
    libc.prctl(PR_SET_PDEATHSIG, signal.SIGKILL)


def mount_small(directory):
    data = os.path.join(directory, "data")
    os.mkdir(data)
    subprocess.run(["mount", "-t", "tmpfs", "-o", f"size={SMALL_BYTES}",
                    "tmpfs", data], check=True)
    return data


def mount_quota(directory):
    image, data = (os.path.join(directory, n) for n in ("image", "data"))
    os.mkdir(data)
    with open(image, "wb") as f:
        f.truncate(IMAGE_BYTES)
    for command in (["mkfs.btrfs", "-q", image],
                    ["mount", "-t", "btrfs", "-o", "loop", image, data],
                    ["btrfs", "quota", "enable", data]):
        subprocess.run(command, check=True, stdout=subprocess.DEVNULL)
    os.unlink(image)  # the mount keeps it
    return data


def start(directory, data, storage):
    config = os.path.join(directory, "daemon.json")
    with open(config, "w", encoding="ascii") as f:
        f.write("{}")
    log = open(os.path.join(directory, "log"), "wb")
    return subprocess.Popen(
        ["dockerd", "--host", f"unix://{directory}/sock",
         "--data-root", data, "--exec-root", f"{directory}/exec",
         "--pidfile", f"{directory}/pid", "--config-file", config,
         "--storage-driver", storage, "--bridge", "none",
         "--add-runtime", f"second={shutil.which('runc')}",
         "--iptables=false", "--ip-masq=false", "--group", "0"],
        stdin=subprocess.DEVNULL, stdout=log, stderr=log,
        preexec_fn=die_with_parent)


def await_socket(directory, engine):
    end = time.monotonic() + START_S
    while not os.path.exists(f"{directory}/sock"):
        if engine.poll() is not None or time.monotonic() > end:
            with open(os.path.join(directory, "log"), "rb") as f:
                sys.exit(f.read()[-2000:].decode(errors="replace"))
        time.sleep(0.05)


def children():
    with open(f"/proc/self/task/{os.getpid()}/children",
              encoding="ascii") as f:
        return [int(pid) for pid in f.read().split()]


def end_all(engine):
    """The engine by itself, so that no cgroup stays; then what is left."""
    engine.terminate()
    try:
        engine.wait(STOP_S)
    except subprocess.TimeoutExpired:
        engine.kill()
    while pids := children():  # we are the subreaper of all of them
        for pid in pids:
            os.kill(pid, signal.SIGKILL)
            os.waitpid(pid, 0)


def main():
    directory = sys.argv[1]
    libc.prctl(PR_SET_CHILD_SUBREAPER, 1)
    for sig in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP):
        signal.signal(sig, signal.SIG_IGN)  # the end of stdin counts
    mount, storage = {"quota": (mount_quota, "btrfs"),
                      "small": (mount_small, "overlay2")}[sys.argv[2]]
    engine = start(directory, mount(directory), storage)
    try:
        await_socket(directory, engine)
        print("ready", flush=True)
        sys.stdin.buffer.read()
    finally:
        end_all(engine)
        subprocess.run(["umount", os.path.join(directory, "data")],
                       check=False, stderr=subprocess.DEVNULL)
        shutil.rmtree(directory, ignore_errors=True)


@contextlib.contextmanager
def running(kind):
    """The engine, and where its storage is to be seen from here."""
    directory = tempfile.mkdtemp(prefix=f"mcp-{kind}-", dir="/tmp")
    guard = subprocess.Popen(
        ["unshare", "--mount", "--net", "--propagation", "slave",
         sys.executable, os.path.abspath(__file__), directory, kind],
        stdin=subprocess.PIPE, stdout=subprocess.PIPE)
    try:
        assert guard.stdout.readline() == b"ready\n", "the engine's own log"
        engine = driver.Engine(os.path.join(directory, "sock"))
        driver.wait_for(lambda: engine.request("GET", "/_ping")[0] == 200)
        yield engine, f"/proc/{guard.pid}/root{directory}/data"
    finally:
        guard.stdin.close()
        guard.wait()
        guard.stdout.close()
        shutil.rmtree(directory, ignore_errors=True)  # if it never began


if __name__ == "__main__":
    main()
