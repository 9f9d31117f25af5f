"""What a front says for one tenant reaches nothing of another's.

A real worker, driven with forged messages.  The kinds are those of
schema/ipc.txt: one that is new and names a sandbox or a run must be forged
here, too.
"""
import os
import uuid

import pytest

import driver
from conftest import IMAGE

A, B = 1, 2
EXIT_PROTO = 76
# They are about no tenant's, but about all that there is.
OF_ALL = {"SWEEP", "SWEEP_END", "TENANTS"}
KINDS = [name for name in driver.IPC.spoken("front_to_worker")
         if name not in OF_ALL]


@pytest.fixture(scope="module")
def ground(build, engine):
    """A worker with a sandbox and a run of B."""
    w = driver.Worker(build, engine, IMAGE + ":latest")
    w.start()
    w.box = w.open(tenant=B)
    w.held = driver.Run(w.number(), driver.pack_spec("sleep 600"), w.spools)
    w.send_run(w.box[0], w.held, tenant=B)
    w.job.wait("RUN_RECORD", w.held.number)
    yield w
    w.destroy()


def forged(w, kind):
    """That kind, complete and right but for who says it: (number, fields)."""
    sandbox, uid, container = w.box
    new = driver.Run(w.number(), driver.pack_spec("true"), w.spools)
    return {
        "SANDBOX_OPEN": (w.number(), {
            "tenant": A, "mode": driver.ADOPT, "uuid": uid,
            "tenant_name": f"t{A}", "identifier": "chat", "generation": 1,
            "name": f"mcp-test-{uid}", "image": "", "container_id": container,
            "memory_bytes": 0, "nano_cpus": 0, "pids": 0, "cpu_shares": 0,
            "runtime": "", "read_only_root": False, "ttl_s": 0}),
        "SANDBOX_SHARES": (sandbox, {"tenant": A, "cpu_shares": 2,
                                     "first_cpu": 0, "cpus": 0,
                                     "nano_cpus": 0,
                                     "output_bytes_s": 0}),
        "SANDBOX_SETTLED": (sandbox, {"tenant": A}),
        "SANDBOX_REMOVE": (sandbox, {
            "uuid": uid, "tenant_name": f"t{A}", "name": f"mcp-test-{uid}",
            "keeps_files": False, "left_by": ""}),
        "SANDBOX_TTL": (sandbox, {"tenant": A, "ttl_s": 1}),
        "RUN_START": (new.number, {
            "tenant": A, "sandbox": sandbox, "uuid": new.uuid,
            "spool_limit": 1 << 20, "request": "", "spec": new.spec}),
        "RUN_CANCEL": (w.held.number, {"tenant": A,
                                       "reason": driver.CANCELED}),
        "RUN_FORGET": (w.held.number, {"tenant": A}),
        "ASK": (sandbox, {
            "tenant": A, "ask": 1, "kind": 0,
            "arguments": w.held.uuid.bytes + bytes(4)}),
        "ASK_CANCEL": (sandbox, {"tenant": A, "ask": 1}),
        "ARTIFACT_FD": (w.held.number, {
            "tenant": A, "file": 0, "refusal": ""}),
    }[kind]


@pytest.mark.parametrize("kind", KINDS)
def test_a_message_for_another_tenant_ends_the_channel(ground, kind):
    w = ground
    if w.process.poll() is not None:
        w.start()
        w.send_open(w.box[0], w.box[1], mode=driver.ADOPT,
                    container=w.box[2], tenant=B)
        w.send_run(w.box[0], w.held, tenant=B)
        w.job.wait("SANDBOX_READY", w.box[0])
    number, fields = forged(w, kind)
    said = len(w.log())
    fd = os.open(w.held.path, os.O_RDWR | os.O_APPEND)
    fds = [fd] if kind in ("RUN_START", "ARTIFACT_FD") else []
    w.job.send(kind, number, fds, **fields)
    os.close(fd)
    with pytest.raises(EOFError):
        while True:
            w.job.receive(driver.WAIT_S)
    assert w.process.wait(driver.WAIT_S) == EXIT_PROTO
    assert ("is open already" if kind == "SANDBOX_OPEN" else
            "is not tenant") in w.log()[said:]
    assert w.engine.inspect(w.box[2])["State"]["Running"]


def label(w, container):
    return w.engine.inspect(container)["Config"]["Labels"]["mcp.tenant"]


@pytest.fixture
def boxes(make_worker):
    """A worker that knows nothing of B's running sandbox."""
    w = make_worker().start()
    w.box = w.open(tenant=B)
    assert label(w, w.box[2]) == f"t{B}"
    w.kill()
    return w.start()


def test_a_sandbox_is_not_adopted_by_another_tenant(boxes):
    number, (_, uid, container) = boxes.number(), boxes.box
    boxes.send_open(number, uid, mode=driver.ADOPT, container=container,
                    tenant=A)
    why = boxes.job.wait(("SANDBOX_LOST", "SANDBOX_READY"), number)
    assert why.type == "SANDBOX_LOST" and "mcp.tenant" in why.fields.why
    assert boxes.engine.inspect(container)["State"]["Running"]


def test_a_sandbox_is_not_removed_for_another_tenant(boxes):
    number, (_, uid, container) = boxes.number(), boxes.box
    boxes.send_remove(number, uid, tenant=A)
    boxes.job.wait("SANDBOX_REMOVED", number)
    assert boxes.engine.inspect(container)["State"]["Running"]
    boxes.send_remove(number, uid, tenant=B)
    boxes.job.wait("SANDBOX_REMOVED", number)
    assert boxes.engine.inspect(container) is None


@pytest.mark.parametrize("same_uuid", [True, False])
def test_the_name_of_anothers_sandbox_is_taken(boxes, same_uuid):
    number, (_, uid, container) = boxes.number(), boxes.box
    boxes.send_open(number, uid if same_uuid else uuid.uuid4(),
                    name=f"mcp-test-{uid}", tenant=A)
    end = boxes.job.wait(("SANDBOX_FAILED", "SANDBOX_READY"), number)
    assert end.type == "SANDBOX_FAILED" and "exists already" in end.fields.text
    assert boxes.engine.inspect(container)["State"]["Running"]
    assert label(boxes, container) == f"t{B}"
