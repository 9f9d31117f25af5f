"""What a client has: its runs and its sandboxes, in pages; and cancels."""
import re

import pytest

from client import wait_for


def pages(client, tool, what, **arguments):
    """All items of a list, and how many pages it had."""
    items, count, cursor = [], 0, None
    while True:
        more = {"cursor": cursor} if cursor else {}
        page = client.call(tool, **arguments, **more)
        items += page[what]
        count += 1
        cursor = page.get("next_cursor")
        if cursor is None:
            return items, count


def test_runs_are_listed_newest_first_in_pages(client, sandbox):
    ids = [client.run(sandbox, f"exit {i % 2}")["run_id"] for i in range(5)]
    runs, count = pages(client, "list_runs", "runs", identifier=sandbox,
                        limit=2)
    assert [r["run_id"] for r in runs] == ids[::-1]
    assert count == 3
    assert {r["identifier"] for r in runs} == {sandbox}
    failed, _ = pages(client, "list_runs", "runs", identifier=sandbox,
                      state="failed")
    assert [r["run_id"] for r in failed] == [ids[3], ids[1]]
    everything, _ = pages(client, "list_runs", "runs", limit=100)
    assert set(ids) <= {r["run_id"] for r in everything}


def test_a_run_that_goes_on_is_listed_and_can_be_cancelled(client, sandbox):
    client.run(sandbox, "true")
    run = client.start(sandbox, "sleep 60")["run_id"]
    wait_for(lambda: client.call("get_run", run_id=run)["state"] == "running",
             30, "its beginning")
    listed = client.call("list_runs", identifier=sandbox, state="running")
    assert [r["run_id"] for r in listed["runs"]] == [run]
    assert listed["runs"][0]["started_at"] == \
        client.call("get_run", run_id=run)["started_at"] is not None
    assert client.call("list_runs", identifier=sandbox,
                       state="queued")["runs"] == []
    boxes, _ = pages(client, "list_sandboxes", "sandboxes", limit=1)
    mine = [b for b in boxes if b["identifier"] == sandbox]
    assert [(b["state"], b["active_runs"]) for b in mine] == [("ready", 1)]
    gone = client.call("control_run", run_id=run, action="cancel")
    assert gone["state"] == "canceled"
    assert client.call("control_run", run_id=run,
                       action="cancel")["state"] == "canceled"
    assert client.call("list_runs", identifier=sandbox,
                       state="canceled")["runs"][0]["run_id"] == run


def test_the_text_of_a_list_has_what_it_lists(client, sandbox):
    run = client.run(sandbox, "true")["run_id"]
    text = client.tool("list_runs", identifier=sandbox)["content"][0]["text"]
    assert re.fullmatch(
        f"1 run\n{run} completed with exit code 0 after \\d+ ms in {sandbox}, "
        r"made [-0-9T:.]+Z: true\n", text)
    text = client.tool("list_sandboxes")["content"][0]["text"]
    assert f"\n{sandbox} ready, 0 active runs, expires " in text


def test_a_list_says_what_ran_and_how_it_ended(client, sandbox):
    client.run(sandbox, "seq 3;\ncat /nowhere", "true")
    client.run(sandbox, {"argv": ["python3", "-c", "print(6 * 7)"]})
    client.run(sandbox, {"shell": "sleep 60; true", "timeout_ms": 100})
    client.call("initialize_sandbox", identifier=sandbox)
    client.call("execute_code", identifier=sandbox, code="import sys\nx = 1")
    waits = client.start(sandbox, "sleep 600; echo " + "x" * 200)["run_id"]
    result = client.tool("list_runs", identifier=sandbox)
    said = result["content"][0]["text"].split("\n")[1:6]
    runs = result["structuredContent"]["runs"]
    assert [r["command"] for r in runs[1:]] == [
        "import sys x = 1", "sleep 60; true", "python3 -c print(6 * 7)",
        "seq 3; cat /nowhere"]
    assert runs[0]["command"].startswith("sleep 600; echo xxx") and \
        runs[0]["command"].endswith("x...")
    for line, run in zip(said, runs):
        assert line.endswith(": " + run["command"])
    assert [re.sub(r" after \d+ ms", "", n).split(" in ")[0].split(" ", 1)[1]
            for n in said[1:]] == [
        "completed with exit code 0", "failed by timeout",
        "completed with exit code 0", "failed with exit code 1"]
    client.call("control_run", run_id=waits, action="cancel")
    text = client.tool("list_runs", identifier=sandbox,
                       limit=1)["content"][0]["text"]
    assert " canceled after " in text and "canceled by" not in text


@pytest.mark.parametrize("tool", ["list_runs", "list_sandboxes"])
@pytest.mark.parametrize("cursor", ["x", "7", "-" * 64,
                                    "1-a b"])
def test_a_cursor_that_was_never_given_out_is_refused(client, tool, cursor):
    assert "cursor" in client.fail(tool, cursor=cursor)


def test_a_foreign_run_is_not_known(client):
    for tool, more in (("control_run", {"action": "cancel"}),
                       ("get_run", {})):
        assert "is not known" in client.fail(
            tool, run_id="00000000-0000-4000-8000-000000000000", **more)
