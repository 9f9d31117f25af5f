"""How much a sandbox may write to the disk of the engine's data."""
import json
import os
import uuid

from driver import MIB, reason

NUMBER = "cat /sys/fs/cgroup/blkio/blkio.throttle.write_bps_device " \
    "/sys/fs/cgroup/io.max 2>/dev/null; true"


def disk_of_the_engine(engine):
    """Its number and its name, of the whole of it."""
    root = json.loads(engine.request("GET", "/info")[1])["DockerRootDir"]
    device = os.stat(root).st_dev
    at = os.path.realpath(
        f"/sys/dev/block/{os.major(device)}:{os.minor(device)}")
    if os.path.exists(f"{at}/partition"):
        at = os.path.dirname(at)
    with open(f"{at}/dev", encoding="ascii") as f:
        return f.read().strip(), "/dev/" + os.path.basename(at)


def test_the_kernel_holds_what_a_sandbox_writes(make_worker, engine):
    number, node = disk_of_the_engine(engine)
    worker = make_worker(
        SANDBOX_WRITE_MB_S="40", SANDBOX_WRITE_DEVICE=node).start()
    sandbox, _, container = worker.open()
    config = engine.inspect(container)["HostConfig"]
    assert config["BlkioDeviceWriteBps"] == [
        {"Path": node, "Rate": 40 * MIB}]
    run = worker.run(sandbox, NUMBER, "dd if=/dev/zero of=f bs=64k count=16 "
                     "conv=fsync 2>/dev/null")
    assert reason(worker.finish(run)) == "exit"
    assert number.encode() in run.stdout()
    assert str(40 * MIB).encode() in run.stdout()


def test_without_a_bound_the_engine_is_asked_for_none(worker, engine):
    _, _, container = worker.open()
    config = engine.inspect(container)["HostConfig"]
    assert not config["BlkioDeviceWriteBps"]


def test_a_disk_that_is_none_is_named(make_worker, engine):
    worker = make_worker(SANDBOX_WRITE_MB_S="40",
                         SANDBOX_WRITE_DEVICE="/dev/no-such-disk").start()
    number = worker.number()
    worker.send_open(number, uuid.uuid4())
    failed = worker.job.wait("SANDBOX_FAILED", number)
    assert "/dev/no-such-disk" in failed.fields.text
