"""Files that are not what their rows say: nothing is completed and empty."""
import json
import os

from client import wait_for

LONG = "i=0; while [ $i -lt 9000 ]; do echo line $i; i=$((i + 1)); done"


def log_of(server, run):
    for folder, _, names in os.walk(os.path.join(server.front_dir, "spool")):
        if f"{run}.log" in names:
            return os.path.join(folder, f"{run}.log")
    raise AssertionError(f"run {run} has no log")


def blob_of(server, digest):
    return os.path.join(server.front_dir, "artifacts", "1", digest[:2], digest)


def assert_lost(server, path):
    status, headers, body = server.get(path)
    assert status == 410, (path, status, body)
    assert b"output_lost" in body and b"is lost" in body, body


def leave(client, name):
    run = client.run(name, LONG + f"; printf {name} >/artifacts/a; "
                     f"printf more-{name} >/artifacts/b")
    assert run["state"] == "completed", run
    return run


def test_what_a_disk_did_not_keep_is_said_to_be_lost(make_server):
    server = make_server()
    client = server.client()
    good, bad, gone = (leave(client, n) for n in ("good", "bad", "gone"))
    client.close()
    server.stop()
    with open(log_of(server, bad["run_id"]), "r+b") as f:
        f.truncate(20000)
    with open(blob_of(server, bad["artifacts"][0]["sha256"]), "r+b") as f:
        f.truncate(0)
    os.unlink(log_of(server, gone["run_id"]))
    os.unlink(blob_of(server, gone["artifacts"][1]["sha256"]))
    server.start()
    wait_for(lambda: len([n for n in server.log if " is lost: " in n]) == 4,
             60, "the words of the log")
    client = server.client()
    for run in (bad, gone):
        for path in (f"/mcp/events?run_id={run['run_id']}",
                     f"/api/v1/runs/{run['run_id']}/output"):
            assert_lost(server, path)
        text = client.fail("get_run", run_id=run["run_id"], cursor="0")
        assert "is lost" in text, text
        result = client.tool("get_run", run_id=run["run_id"])
        assert "the output is lost" in result["content"][0]["text"], result
        view = client.status(run["run_id"])
        assert view["state"] == "completed" and view["output_lost_at"], view
        record = json.loads(client.request(
            "GET", f"/api/v1/runs/{run['run_id']}")[2])
        assert record["output_lost_at"] == view["output_lost_at"]
    assert_lost(server, f"/artifacts/bad/{bad['run_id']}/a")
    assert_lost(server, f"/artifacts/gone/{gone['run_id']}/b")
    lost = [[a["path"] for a in client.status(r["run_id"])["artifacts"]
             if a.get("lost")] for r in (good, bad, gone)]
    assert lost == [[], ["a"], ["b"]], lost
    status, _, body = server.get(
        f"/api/v1/runs/{bad['run_id']}/artifacts")
    assert [a["path"] for a in json.loads(body)["artifacts"]
            if a.get("lost")] == ["a"], body
    assert server.get(f"/artifacts/bad/{bad['run_id']}/b")[2] == b"more-bad"
    assert "output_lost_at" not in client.status(good["run_id"])
    assert server.get(f"/artifacts/good/{good['run_id']}/a")[2] == b"good"
    # What comes once more is there.
    assert client.run("again", "printf bad >/artifacts/a")["artifacts"]
    assert server.get(f"/artifacts/bad/{bad['run_id']}/a")[2] == b"bad"


def test_a_file_that_became_short_is_not_read(make_server):
    """Before anybody looked at it."""
    server = make_server()
    client = server.client()
    run = leave(client, "box")
    with open(log_of(server, run["run_id"]), "r+b") as f:
        f.truncate(20000)
    with open(blob_of(server, run["artifacts"][0]["sha256"]), "r+b") as f:
        f.truncate(1)
    assert_lost(server, f"/api/v1/runs/{run['run_id']}/output")
    assert_lost(server, f"/artifacts/box/{run['run_id']}/a")
    assert client.status(run["run_id"])["output_lost_at"]
