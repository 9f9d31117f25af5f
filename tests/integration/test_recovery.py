"""Any process of ours dies in the middle of runs; nothing is lost."""
import os
import signal
import time

import pytest

from client import Follower, python, stdout, wait_for

pytestmark = pytest.mark.own

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
        client.wait_state(run)
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
def test_kill_in_the_middle_of_ten_runs(server, client, role):
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
        assert all(f.connects > 1 for f in followers)
    for run in runs:
        view = client.status(run)
        assert view["sandbox_container_id"] == containers[view["identifier"]]
    assert set(server.pids(role)).isdisjoint(old)


def test_a_session_and_a_sandbox_survive_the_front(server, client):
    client.run("keep", "echo kept > f")
    server.kill("front")
    assert client.out("keep", "cat f") == "kept\n"


def test_a_clean_restart_keeps_sandboxes_runs_and_history(server, client):
    ended = client.run("keep", "echo before; echo kept > f")
    running = client.start("keep", "sleep 3; echo after")
    assert server.stop() == 0
    server.start()
    view = client.status(ended["run_id"])
    assert view["commands"][0]["stdout"] == "before\n"
    final = client.wait_end(running["run_id"])
    assert final["commands"][0]["stdout"] == "after\n"
    assert client.out("keep", "cat f") == "kept\n"


def test_a_sandbox_lost_from_outside_is_told_and_replaced(client, engine):
    run = client.start("gone", "echo first; sleep 60")["run_id"]
    client.wait_output(run)
    container = client.status(run)["sandbox_container_id"]
    engine.request("DELETE", f"/containers/{container}?force=1")
    final = client.wait_end(run)
    assert final["state"] == "failed"
    assert final["end_reason"] == "sandbox_lost"
    assert final["commands"][0]["stdout"] == "first\n"
    again = client.run("gone", "echo again")
    assert again["commands"][0]["stdout"] == "again\n"
    assert again["sandbox_container_id"] != container


def test_an_earlier_versions_data_is_moved_with_all_that_lives(server, client):
    """Its database, spool, artifacts and key lay in DATA_DIR itself, which
    was the front's (decision 22)."""
    done = client.run("a", "echo kept; echo art > /artifacts/f; "
                      "head -c 50000 /dev/zero | tr '\\0' x")
    server.stop()
    owner = os.stat(server.front_dir)
    for name in os.listdir(server.front_dir):
        os.rename(os.path.join(server.front_dir, name),
                  os.path.join(server.data, name))
    os.rmdir(server.front_dir)
    os.chown(server.data, owner.st_uid, owner.st_gid)
    server.start()
    server.wait_log("layout of an earlier version")
    assert os.stat(server.data).st_uid == os.geteuid()
    assert server.get("/artifacts/a/latest/f")[2] == b"art\n"
    again = client.run("a", "echo again")
    assert stdout(again) == "again\n"
    assert again["sandbox_container_id"] == done["sandbox_container_id"]
    before = client.status(done["run_id"])
    assert before["commands"][0]["stdout"].startswith("kept\n")
    assert before["commands"][0]["stdout_bytes"] == 50005


@pytest.mark.own(MCP_SANDBOXD_PING_MS="100", MCP_SANDBOXD_QUIET_MS="1000",
                 MCP_SANDBOXD_SILENCE_MS="600000")
def test_readyz_names_a_worker_that_is_stopped(server):
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


@pytest.mark.own(REAPER_INTERVAL_MS="200")
def test_expired_sandboxes_are_reaped_but_not_while_in_use(server, client,
                                                           engine):
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


# ---- thousands of files of one run, and a process of ours that dies meanwhile

FILES = 2000
MAKE = ("import os\nos.chdir('/artifacts')\n"
        f"for i in range({FILES}): open(f'{{i:05}}', 'w').write(str(i))")


def count(server, what):
    return server.sql(f"SELECT {what}")[0][0]


def listed(server, run):
    """All pages of its list."""
    names, at = [], 0
    while at is not None:
        page = server.get_json(f"/mcp/runs/{run}?artifacts_from={at}")
        names += [a["path"] for a in page["artifacts"]]
        at = page.get("artifacts_next")
        assert page.get("artifacts_dropped", 0) == FILES - len(names)
    return names


@pytest.mark.own(WORKERS="1")
@pytest.mark.parametrize("role", ["front", "worker"])
def test_a_kill_while_they_come_loses_none(server, client, role):
    run = client.start("a", python(MAKE), await_completion=False)["run_id"]
    wait_for(lambda: count(server, "count(*) FROM artifact") > FILES / 10,
             60, "some of them")
    # Nobody's before the end, which may come first on a busy machine.
    hidden = server.get("/artifacts/a/latest/00000")[0]
    at = client.status(run)
    assert at["state"] == "completed" or (hidden, at["artifacts"]) == (404, [])
    server.kill(role)
    final = client.wait_end(run, 90)
    assert final["state"] == "completed"
    assert "artifacts_error" not in final
    assert listed(server, run) == [f"{i:05}" for i in range(FILES)]
    for i in (0, FILES // 10, FILES - 1):
        assert server.get(f"/artifacts/a/{run}/{i:05}")[2] == b"%d" % i
    assert count(server, "count(*) FROM blob WHERE refs <> 1") == 0
    assert count(server, "blob_files FROM tenant") == FILES
    blobs = f"{server.front_dir}/artifacts"
    wait_for(lambda: sum(len(files) for _, _, files in os.walk(blobs))
             == FILES, 60, "no file but these")
    again = client.run("a", "echo more > /artifacts/more")
    assert [a["path"] for a in again["artifacts"]] == ["more"]


@pytest.mark.own(ARTIFACTS_MAX_EXTRACT_FILES="300")
def test_of_more_than_may_be_kept_the_answer_says_so(client):
    final = client.run("a", "cd /artifacts; touch $(seq 400)")
    assert "the rest is left out, 300 of a run" in final["artifacts_error"]
    assert len(final["artifacts"]) + final.get("artifacts_dropped", 0) == 300
    text = client.tool("get_run", run_id=final["run_id"])
    assert "artifacts were left out: " in text["content"][0]["text"]
    assert f"280 more artifacts; call get_run with run_id " \
        f"{final['run_id']} and artifacts_from 20 " in \
        text["content"][0]["text"]
