"""The disk and the database below a running server: full, gone, damaged."""
import errno
import os
import shutil
import signal
import subprocess
import tempfile

import pytest

from client import wait_for
from server import write

pytestmark = pytest.mark.own


def test_a_database_removed_below_the_server_stops_it(server, client):
    client.run("a", "true")
    os.unlink(server.database)
    status, _, body = server.get("/readyz")
    assert status in (0, 200, 503), body
    server.refuses("was removed below the running server", "put a backup")


def test_a_damaged_database_stops_the_start_with_what_to_do(server):
    server.client().run("a", "true")
    server.stop()
    with open(server.database, "r+b") as f:
        f.seek(4096)
        f.write(b"\x5a" * 40 * 4096)
    server.start(wait=False)
    server.refuses("is damaged", "put a backup in its place")
    assert server.tail().count("is damaged") < 4, server.tail()


# ---- a small disk

class Disk:
    """DATA_DIR whose part of the front is a tmpfs that only servers started
    here see: it is gone with the last process in its mount namespace."""

    def __init__(self, build, size):
        self.dir = tempfile.mkdtemp(prefix="mcp-sandboxd-disk-")
        os.chmod(self.dir, 0o755)
        self.data = os.path.join(self.dir, "data")
        front = os.path.join(self.data, "front")
        os.makedirs(front)
        self.holder = subprocess.Popen(
            ["unshare", "-m", "--propagation", "private", "sh", "-ec",
             f"mount -t tmpfs -o size={size},mode=0700 tmpfs '{front}'\n"
             "echo mounted\n"
             "exec setpriv --pdeathsig KILL sleep infinity"],
            stdin=subprocess.DEVNULL, stdout=subprocess.PIPE)
        assert self.holder.stdout.readline() == b"mounted\n"
        program = os.path.join(self.dir, "mcp-sandboxd")
        write(program, f"#!/bin/sh\nexec nsenter -m -t {self.holder.pid} "
              f"'{build}/mcp-sandboxd' \"$@\"\n", 0o755)
        self.inside = f"/proc/{self.holder.pid}/root{front}"

    def free(self):
        st = os.statvfs(self.inside)
        return st.f_bavail * st.f_frsize

    def fill(self, leave):
        """A file of somebody else's that leaves so many bytes; the server
        may write meanwhile."""
        with open(os.path.join(self.inside, "ballast"), "wb", 0) as f:
            while (more := self.free() - leave) > 0:
                try:
                    f.write(b"x" * more)
                except OSError as e:
                    if e.errno != errno.ENOSPC:
                        raise
                    break

    def clear(self):
        os.unlink(os.path.join(self.inside, "ballast"))

    def close(self):
        self.holder.kill()
        self.holder.wait()
        self.holder.stdout.close()
        shutil.rmtree(self.dir)


@pytest.fixture
def disk_server(build, make_server):
    """(disk, server, client) of that size, with these settings."""
    made = []

    def make(size, **env):
        made.append(Disk(build, size))
        server = make_server(build=made[-1].dir,
                             env={"DATA_DIR": made[-1].data, **env})
        return made[-1], server, server.client()

    yield make
    for d in made:
        d.close()


def refusal(client):
    """The text of the error that an awaited run gave, None if it gave none."""
    return refused_or_run(client, "a", "echo full")[0]


def refused_or_run(client, identifier, *commands):
    """(why not, None) or (None, final)"""
    result = client.tool("run_sandbox", identifier=identifier, commands=[
        {"shell": c} for c in commands], options={"await_completion": True})
    if result.get("isError"):
        return result["content"][0]["text"], None
    return None, result["structuredContent"]["final"]


def test_a_disk_without_a_byte_fails_calls_clearly_and_the_server_goes_on(
        disk_server):
    disk, server, client = disk_server("12m", DISK_RESERVE_MB="0",
                                       DISK_RESERVE_INODES="0")
    client.run("a", "true")
    disk.fill(0)
    # What the database had reserved may carry a few runs; then it ends.
    text = wait_for(lambda: refusal(client), 30, "a refusal").lower()
    assert "disk is full" in text, text
    assert server.get("/healthz")[0] == 200
    disk.clear()
    wait_for(lambda: refusal(client) is None, 30, "recovery")
    assert client.out("a", "echo ok") == "ok\n"


def let_go(engine, server, identifier):
    """Makes /tmp/go in that sandbox, without the server."""
    box, = (b for b in engine.containers(server.instance)
            if b["Labels"]["mcp.identifier"] == identifier)
    pid = engine.inspect(box["Id"])["State"]["Pid"]
    with open(f"/proc/{pid}/root/tmp/go", "w", encoding="ascii"):
        pass


def test_an_end_that_finds_no_room_is_recorded_when_there_is_some(
        disk_server, engine):
    disk, server, client = disk_server("12m", DISK_RESERVE_MB="0",
                                       DISK_RESERVE_INODES="0")
    waits = "until [ -e /tmp/go ]; do sleep 0.05; done; echo kept"
    runs = {box: client.start(box, waits)["run_id"]
            for box in ("one", "two", "last")}
    for run in runs.values():
        client.wait_state(run)
    disk.fill(0)
    wait_for(lambda: refusal(client), 30, "a refusal")
    for box in ("one", "two"):
        let_go(engine, server, box)
        wait_for(lambda box=box: client.status(runs[box])["commands"][0][
            "status"] == "completed", 30, "the command's end")
        assert refusal(client)  # what came before it has been tried
        view = client.status(runs[box])
        if view["state"] == "running":
            break  # the first may need less than what was refused
    # It is told, but not as the run's end: that is not on disk.
    assert view["state"] == "running" and view["ended_at"] is None, view
    assert view["commands"][0]["stdout"] == "kept\n", view
    # Killed with an end that is nowhere on disk, and with one that nobody saw.
    server.stop(signal.SIGKILL)
    let_go(engine, server, "last")
    if box == "one":
        let_go(engine, server, "two")
    disk.clear()
    server.start()
    for run in runs.values():
        view = client.wait_end(run)
        assert view["state"] == "completed", view
        assert view["commands"][0]["stdout"] == "kept\n", view


def test_below_the_reserve_new_work_is_refused_and_readyz_says_why(
        disk_server):
    disk, server, client = disk_server("64m", DISK_RESERVE_MB="16")
    client.run("a", "true")
    run = client.start("a", "read x; echo $x")
    disk.fill(15 << 20)
    # Where there was much room a moment ago it is not asked again at once.
    wait_for(lambda: server.get("/readyz")[0] == 503, 30, "a full disk")
    status, _, body = server.get("/readyz")
    assert status == 503 and b"disk is full" in body, body
    assert b"DISK_RESERVE_MB" in body
    for text in (client.refused("b", "true"),
                 client.call("initialize_sandbox", identifier="b")["message"]):
        assert "disk is full" in text and "DISK_RESERVE_MB" in text, text
    name = 'sandboxd_disk_free_bytes{dir="data"}'
    assert server.metric(name) < 16 << 20
    # What runs already goes on, and its end is on disk.
    assert client.wait_end(run["run_id"])["state"] == "completed"
    disk.clear()
    assert server.get("/readyz")[0] == 200
    assert client.run("a", "echo ok")["state"] == "completed"


def test_a_run_that_fills_the_disk_ends_and_others_go_on(disk_server):
    disk, server, client = disk_server("96m", DISK_RESERVE_MB="16")
    client.run("other", "true")
    run = client.start("flood", "head -c 200000000 /dev/zero",
                       await_completion=False)
    told = set()
    while client.ended(run["run_id"]) is None:
        text, final = refused_or_run(client, "other", "echo here")
        if text:
            told.add(text)
        else:
            assert final["commands"][0]["stdout"] == "here\n", final
    assert all("disk is full" in text for text in told), told
    final = client.status(run["run_id"])
    assert final["end_reason"] == "disk_full", final
    assert "DISK_RESERVE_MB" in final["error"]
    assert final["commands"][0]["end_reason"] == "disk_full"
    # The space comes back by itself: what was cut is given up.
    wait_for(lambda: disk.free() > 60 << 20, 30, "space")
    wait_for(lambda: server.get("/readyz")[0] == 200, 30, "readiness")
    view = client.status(run["run_id"])
    assert view.get("output_evicted_at")
    assert view["commands"][0]["stdout_bytes"] > 60 << 20
    assert client.run("other", "echo on")["state"] == "completed"
    wait_for(lambda: server.metric("sandboxd_evicted_runs_total") == 1, 10,
             "the count")
    assert server.metric('sandboxd_history_bytes{kind="logs"}') == 0
    assert disk.free() > 60 << 20
    server.restart()
    assert client.status(run["run_id"]) == view


def test_rows_that_fill_the_disk_give_room_the_oldest_first(disk_server):
    """What is in rows has no file that could go."""
    disk, server, client = disk_server("56m", DISK_RESERVE_MB="4",
                                       HISTORY_TEXT_MB="1")
    commands = ["printf %03000d 0 # " + "x" * 16000] * 4

    def run():
        text, final = refused_or_run(client, "a", *commands)
        assert text is None or "disk is full" in text, text
        return final and final["run_id"]

    runs = [wait_for(run, 60, "room") for _ in range(400)]
    wait_for(lambda: server.get("/readyz")[0] == 200, 30, "readiness")
    wait_for(lambda: disk.free() > 7 << 20, 30, "room on the disk")
    assert client.request("GET", f"/mcp/runs/{runs[0]}")[0] == 404
    assert client.status(runs[-1])["state"] == "completed"
    # What has less than the reserve is not what fills the disk.
    listed = client.call("list_runs", limit=1, count=True)["total"]
    assert listed > 40
    assert any("runs are forgotten: their rows had" in n for n in server.log)


def files_below(path):
    return sum(len(names) for _, _, names in os.walk(path))


def test_a_run_can_be_deleted_with_all_it_left(server, client):
    run = client.run(
        "a", "head -c 100000 /dev/zero; echo hello > /artifacts/x")["run_id"]
    front = server.front_dir
    assert files_below(f"{front}/spool") == 1
    assert files_below(f"{front}/artifacts") == 1
    going = client.start("a", "sleep 600")["run_id"]
    assert "has not ended" in str(client.ask("DELETE", f"/mcp/runs/{going}",
                                             want=409))
    assert client.ask("DELETE", f"/mcp/runs/{run}") == {"run_id": run,
                                                        "deleted": True}
    client.ask("DELETE", f"/mcp/runs/{run}", want=404)
    client.get(f"/mcp/runs/{run}", 404)
    assert server.get(f"/artifacts/a/{run}/x")[0] == 404
    wait_for(lambda: files_below(f"{front}/artifacts") == 0, 10, "the blob")
    client.cancel(going)
    client.wait_end(going)
    client.ask("DELETE", f"/mcp/runs/{going}")
    wait_for(lambda: files_below(f"{front}/spool") == 0, 10, "the log")


@pytest.mark.own(HISTORY_TENANT_MAX_MB="1")
def test_beyond_the_quota_the_oldest_runs_give_up_their_files(server, client):
    old, new = [client.run(
        "a", f"printf '%0600000d' {i}; echo {i} > /artifacts/{i}")["run_id"]
        for i in (1, 2)]
    view = wait_for(lambda: evicted(client, old), 30, "the eviction")
    assert view["state"] == "completed"
    assert view["commands"][0]["stdout_bytes"] == 600000
    assert view["commands"][0]["stdout_truncated"]
    assert view["artifacts"][0]["path"] == "1"
    assert evicted(client, new) is None
    text = client.fail("get_run", run_id=old, cursor="0")
    assert "given up" in text and "HISTORY_MAX_MB" in text
    for path in (f"/mcp/events?run_id={old}", f"/artifacts/a/{old}/1"):
        status, _, body = server.get(path)
        assert status == 410 and b"given up" in body, (path, body)
    assert server.get(f"/artifacts/a/{new}/2")[2] == b"2\n"
    assert not client.tool("get_run", run_id=new, cursor="0").get("isError")
    assert server.metric('sandboxd_history_files{kind="logs"}') == 1
    assert server.metric('sandboxd_history_files{kind="artifacts"}') == 1


def evicted(client, run_id):
    view = client.status(run_id)
    return view if "output_evicted_at" in view else None


# ---- files that are not what their rows say

LONG = "i=0; while [ $i -lt 9000 ]; do echo line $i; i=$((i + 1)); done"


def leave(client, name):
    run = client.run(name, LONG + f"; printf {name} >/artifacts/a; "
                     f"printf more-{name} >/artifacts/b")
    assert run["state"] == "completed", run
    return run


def test_what_a_disk_did_not_keep_is_said_to_be_lost(server, client):
    good, bad, gone = (leave(client, n) for n in ("good", "bad", "gone"))
    server.stop()
    os.truncate(server.log_of(bad["run_id"]), 20000)
    os.truncate(server.blob_of(bad["artifacts"][0]), 0)
    os.unlink(server.log_of(gone["run_id"]))
    os.unlink(server.blob_of(gone["artifacts"][1]))
    server.start()
    wait_for(lambda: len([n for n in server.log if " is lost: " in n]) == 4,
             60, "the words of the log")
    for run in (bad, gone):
        for path in (f"/mcp/events?run_id={run['run_id']}",
                     f"/api/v1/runs/{run['run_id']}/output"):
            server.check_lost(path)
        text = client.fail("get_run", run_id=run["run_id"], cursor="0")
        assert "is lost" in text, text
        result = client.tool("get_run", run_id=run["run_id"])
        assert "the output is lost" in result["content"][0]["text"], result
        view = client.status(run["run_id"])
        assert view["state"] == "completed" and view["output_lost_at"], view
        record = client.get(f"/api/v1/runs/{run['run_id']}")
        assert record["output_lost_at"] == view["output_lost_at"]
    server.check_lost(f"/artifacts/bad/{bad['run_id']}/a")
    server.check_lost(f"/artifacts/gone/{gone['run_id']}/b")
    lost = [[a["path"] for a in client.status(r["run_id"])["artifacts"]
             if a.get("lost")] for r in (good, bad, gone)]
    assert lost == [[], ["a"], ["b"]], lost
    listed = client.get(f"/api/v1/runs/{bad['run_id']}/artifacts")
    assert [a["path"] for a in listed["artifacts"] if a.get("lost")] == ["a"]
    assert server.get(f"/artifacts/bad/{bad['run_id']}/b")[2] == b"more-bad"
    assert "output_lost_at" not in client.status(good["run_id"])
    assert server.get(f"/artifacts/good/{good['run_id']}/a")[2] == b"good"
    # What comes once more is there.
    assert client.run("again", "printf bad >/artifacts/a")["artifacts"]
    assert server.get(f"/artifacts/bad/{bad['run_id']}/a")[2] == b"bad"


def test_a_file_that_became_short_is_not_read(server, client):
    """Before anybody looked at it."""
    run = leave(client, "box")
    os.truncate(server.log_of(run["run_id"]), 20000)
    os.truncate(server.blob_of(run["artifacts"][0]), 1)
    server.check_lost(f"/api/v1/runs/{run['run_id']}/output")
    server.check_lost(f"/artifacts/box/{run['run_id']}/a")
    assert client.status(run["run_id"])["output_lost_at"]
