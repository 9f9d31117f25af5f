"""Files that are not what their rows say: nothing is completed and empty."""
import os

import pytest

from client import wait_for

LONG = "i=0; while [ $i -lt 9000 ]; do echo line $i; i=$((i + 1)); done"


pytestmark = pytest.mark.own


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
