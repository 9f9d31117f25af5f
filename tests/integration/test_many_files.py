"""Thousands of files of one run, and a process of ours that dies meanwhile."""
import os

import pytest

from client import python, wait_for

pytestmark = pytest.mark.own

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
    assert "and 280 more" in text["content"][0]["text"]
