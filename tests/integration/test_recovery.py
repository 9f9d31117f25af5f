"""Any process of ours dies in the middle of runs; nothing is lost."""
import os
import signal
import time

import pytest

from client import Follower, wait_for

COMMANDS = 10
LINES = 50
# Prints for five seconds; the last line says that all came.
PRINTER = (f"for i in $(seq 1 {LINES}); do echo line$i; echo e$i >&2; "
           "sleep 0.1; done; exit $CODE")
STDOUT = "".join(f"line{i}\n" for i in range(1, LINES + 1))
STDERR = "".join(f"e{i}\n" for i in range(1, LINES + 1))


def start_printers(client):
    runs = []
    for i in range(COMMANDS):
        out = client.start(f"box{i % 4}",
                           {"shell": PRINTER, "env": {"CODE": str(i + 1)}})
        runs.append(out["run_id"])
    for run in runs:
        wait_for(lambda run=run: client.status(run)["state"] == "running",
                 60, "the runs to begin")
    return runs


def check_printers(client, runs):
    for i, run in enumerate(runs):
        final = client.wait_end(run, 90)
        command = final["commands"][0]
        assert command["end_reason"] == "exit", final
        assert command["exit_code"] == i + 1
        assert command["stdout"] == STDOUT
        assert command["stderr"] == STDERR


def answers(server):
    return server.get("/healthz", timeout=2)[0] == 200


@pytest.mark.parametrize("role", ["front", "worker"])
def test_kill_in_the_middle_of_ten_runs(make_server, role):
    server = make_server()
    client = server.client()
    runs = start_printers(client)
    followers = [Follower(server.port, run) for run in runs]
    for f in followers:
        f.start()
    containers = {c["identifier"]: c["sandbox_container_id"]
                  for c in map(client.status, runs)}
    old = server.pids(role)
    assert len(old) == (1 if role == "front" else 2)
    for pid in old:
        began = time.monotonic()
        os.kill(pid, signal.SIGKILL)
        wait_for(lambda pid=pid: pid not in server.pids(role), 10, "the death")
        wait_for(lambda: answers(server), 10, "an answer")
        print(f"answered {time.monotonic() - began:.3f} s after the kill")
    client.close()
    check_printers(client, runs)
    for f in followers:
        f.join(90)
        assert not f.is_alive()
        assert f.text() == STDOUT
        assert f.text(0, "command_stderr") == STDERR
        assert f.events[-1]["event"] == "run_failed"
    if role == "front":
        assert all(f.reconnects > 0 for f in followers)
    for run in runs:
        view = client.status(run)
        assert view["sandbox_container_id"] == containers[view["identifier"]]
    assert set(server.pids(role)).isdisjoint(old)


def test_a_session_and_a_sandbox_survive_the_front(make_server):
    server = make_server()
    client = server.client()
    client.run("keep", "echo kept > f")
    os.kill(server.pids("front")[0], signal.SIGKILL)
    wait_for(lambda: answers(server), 10, "an answer")
    client.close()
    wait_for(server.is_ready, 30, "readiness")
    final = client.run("keep", "cat f")
    assert final["commands"][0]["stdout"] == "kept\n"


def test_a_clean_restart_keeps_sandboxes_runs_and_history(make_server):
    server = make_server()
    client = server.client()
    ended = client.run("keep", "echo before; echo kept > f")
    running = client.start("keep", "sleep 3; echo after")
    assert server.stop() == 0
    client.close()
    server.start()
    view = client.status(ended["run_id"])
    assert view["commands"][0]["stdout"] == "before\n"
    final = client.wait_end(running["run_id"])
    assert final["commands"][0]["stdout"] == "after\n"
    assert client.run("keep", "cat f")["commands"][0]["stdout"] == "kept\n"


def test_a_sandbox_lost_from_outside_is_told_and_replaced(
        make_server, engine):
    server = make_server()
    client = server.client()
    out = client.start("gone", "echo first; sleep 60")
    wait_for(lambda: client.status(out["run_id"])["commands"][0]["stdout"],
             30, "its output")
    container = client.status(out["run_id"])["sandbox_container_id"]
    engine.request("DELETE", f"/containers/{container}?force=1")
    final = client.wait_end(out["run_id"])
    assert final["state"] == "failed"
    assert final["end_reason"] == "sandbox_lost"
    assert final["commands"][0]["stdout"] == "first\n"
    again = client.run("gone", "echo again")
    assert again["commands"][0]["stdout"] == "again\n"
    assert again["sandbox_container_id"] != container


def test_an_earlier_versions_data_is_moved_with_all_that_lives(make_server):
    """Its database, spool, artifacts and key lay in DATA_DIR itself, which
    was the front's (decision 22)."""
    server = make_server()
    client = server.client()
    done = client.run("a", "echo kept; echo art > /artifacts/f; "
                      "head -c 50000 /dev/zero | tr '\\0' x")
    session = client.session
    server.stop()
    owner = os.stat(server.front_dir)
    for name in os.listdir(server.front_dir):
        os.rename(os.path.join(server.front_dir, name),
                  os.path.join(server.data, name))
    os.rmdir(server.front_dir)
    os.chown(server.data, owner.st_uid, owner.st_gid)
    server.start()
    assert any("layout of an earlier version" in n for n in server.log)
    assert os.stat(server.data).st_uid == os.geteuid()
    assert server.get("/artifacts/a/latest/f")[2] == b"art\n"
    client = server.client()
    client.session = session
    again = client.run("a", "echo again")
    assert again["commands"][0]["stdout"] == "again\n"
    assert again["sandbox_container_id"] == done["sandbox_container_id"]
    before = client.status(done["run_id"])
    assert before["commands"][0]["stdout"].startswith("kept\n")
    assert before["commands"][0]["stdout_bytes"] == 50005


def test_readyz_names_a_worker_that_is_stopped(make_server):
    server = make_server(env={"MCP_SANDBOXD_PING_MS": "100",
                              "MCP_SANDBOXD_QUIET_MS": "1000",
                              "MCP_SANDBOXD_SILENCE_MS": "600000"})
    stopped = server.pids("worker")[0]
    os.kill(stopped, signal.SIGSTOP)
    try:
        body = wait_for(lambda: not_ready(server), 30, "a 503")
        assert b"does not answer" in body, body
        # The other one makes sandboxes meanwhile.
        assert server.client().run("a", "true")["state"] == "completed"
    finally:
        os.kill(stopped, signal.SIGCONT)
    wait_for(server.is_ready, 30, "readiness")


def not_ready(server):
    status, _, body = server.get("/readyz")
    return body if status == 503 else None


def test_expired_sandboxes_are_reaped_but_not_while_in_use(
        make_server, engine):
    server = make_server(env={"REAPER_INTERVAL_MS": "200"})
    client = server.client()
    client.run("short", "true", ttl_seconds=1)
    busy = client.start("busy", "sleep 3; echo lived", ttl_seconds=1)
    wait_for(lambda: len(engine.containers(server.instance)) == 1, 30,
             "the reaper")
    final = client.wait_end(busy["run_id"])
    assert final["commands"][0]["stdout"] == "lived\n"
    wait_for(lambda: engine.containers(server.instance) == [], 30,
             "the reaper")
    # The engine's list is ahead: the server counts what it was told is gone.
    wait_for(lambda: server.metric("mcp_reaper_deletes_total") == 2, 30,
             "the count of both")
