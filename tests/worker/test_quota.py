"""What takes an engine of its own: a storage with quotas, a second runtime."""
import os
import shutil
import subprocess
import uuid

import pytest

import driver
import quota_engine
from conftest import IMAGE
from driver import reason


def has_btrfs():
    if shutil.which("modprobe"):
        subprocess.run(["modprobe", "-q", "btrfs"], check=False,
                       stderr=subprocess.DEVNULL)
    with open("/proc/filesystems", encoding="ascii") as f:
        return "\tbtrfs\n" in f.read()


@pytest.fixture(name="engine_of_quotas", scope="module")
def engine_of_quotas_fixture():
    if os.geteuid() != 0 or not shutil.which("mkfs.btrfs") or not has_btrfs():
        pytest.skip("needs root, btrfs-progs and btrfs in the kernel")
    with quota_engine.running("quota") as (engine, _):
        engine.import_image(IMAGE)
        yield engine


def test_the_engine_limits_what_a_sandbox_writes(build, engine_of_quotas):
    worker = driver.Worker(build, engine_of_quotas, IMAGE + ":latest",
                           SANDBOX_DISK_MB="64")
    try:
        worker.start()
        sandbox, _, container = worker.open()
        assert "MiB by the engine (btrfs" in worker.log()
        options = worker.engine.inspect(container)["HostConfig"]
        assert int(options["StorageOpt"]["size"]) >= 64 << 20
        run = worker.run(
            sandbox, "head -c 200000000 /dev/zero > x; echo $?; wc -c < x; "
            "rm x; busybox sync; echo again > y; cat y")
        assert reason(worker.finish(run)) == "exit"
        status, size, again = run.stdout().split()
        assert status != b"0" and again == b"again"
        assert 40 << 20 < int(size) < 100 << 20
    finally:
        worker.destroy()


def test_a_tenants_rule_chooses_the_runtime(build, engine_of_quotas):
    worker = driver.Worker(
        build, engine_of_quotas, IMAGE + ":latest",
        ceilings=[("t2", "rule.runtime=second"), ("t3", "rule.runtime=runsc")])
    try:
        worker.start()
        for tenant, runtime in ((1, "runc"), (2, "second")):
            container = worker.open(tenant=tenant)[2]
            shown = worker.engine.inspect(container)
            assert shown["HostConfig"]["Runtime"] == runtime
        number = worker.number()
        worker.send_open(number, uuid.uuid4(), tenant=3)
        failed = worker.job.wait("SANDBOX_FAILED", number)
        assert "runsc" in failed.fields.text
    finally:
        worker.destroy()
