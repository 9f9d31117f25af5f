"""What waits, how much of it, and what nobody ends."""
import pytest

from client import wait_for
from server import memory_kib

pytestmark = pytest.mark.own

QUEUED = 40
# 15 commands of 120 kB: 1.8 MB of a run's 2 MiB.
LARGE = [{"shell": ": " + "x" * 120000} for _ in range(15)]
ROOM_KIB = 48 * 1024  # all of them in memory would be 72 MB, twice


def queue_behind(client, count):
    """A run that holds the lock, and large ones that wait for it."""
    first = client.start("box", "sleep 600", lock_sandbox=True)["run_id"]
    return first, [client.start("box", *LARGE, lock_sandbox=True)["run_id"]
                   for _ in range(count)]


def test_what_waits_is_on_disk_and_not_in_memory(server, client):
    client.run("box", "true")
    front, = server.pids("front")
    before = memory_kib(front)
    first, queued = queue_behind(client, QUEUED)
    assert client.status(queued[-1])["state"] == "queued"
    if not server.is_sanitized():
        wait_for(lambda: memory_kib(front) - before < ROOM_KIB, 30,
                 "the front's memory to stay below its bound")
    # Its turn comes all the same.
    client.cancel(first)
    final = client.wait_end(queued[0])
    assert final["state"] == "completed", final


@pytest.mark.own(MAX_SANDBOX_RUNS="3")
def test_places_of_a_sandbox_are_its_own(client):
    for _ in range(3):
        client.start("full", "sleep 600")
    text = client.refused("full", "true")
    assert "MAX_SANDBOX_RUNS" in text and "full" in text
    assert client.run("other", "true")["state"] == "completed"


@pytest.mark.own(RUN_GRACE_MS="1000")
def test_a_frozen_agent_does_not_hold_its_run(server, client, engine):
    client.run("box", "echo kept > f")
    run = client.start("box", {"shell": "echo begun; sleep 60",
                               "timeout_ms": 5000})["run_id"]
    client.wait_output(run)
    container = client.status(run)["sandbox_container_id"]
    status, _ = engine.request("POST", f"/containers/{container}/pause")
    assert status == 204
    final = client.wait_end(run)
    assert final["end_reason"] == "timeout", final
    assert "agent does not answer" in final["error"]
    again = client.run("box", "cat f 2>&1 || true")
    assert again["sandbox_container_id"] != container
    wait_for(lambda: len(engine.containers(server.instance)) == 1, 60,
             "the frozen container to go")
