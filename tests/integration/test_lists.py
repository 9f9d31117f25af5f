"""What a client has: its runs and its sandboxes, in pages; and cancels."""
import re

import pytest

from client import python


def items(client, tool, what, **arguments):
    return [i for page in client.pages(tool, what, **arguments) for i in page]


def test_runs_are_listed_newest_first_in_pages(client, sandbox):
    ids = [client.run(sandbox, f"exit {i % 2}")["run_id"] for i in range(5)]
    pages = list(client.pages("list_runs", "runs", identifier=sandbox, limit=2))
    runs = [r for page in pages for r in page]
    assert [r["run_id"] for r in runs] == ids[::-1] and len(pages) == 3
    assert {r["identifier"] for r in runs} == {sandbox}
    failed = items(client, "list_runs", "runs", identifier=sandbox,
                   state="failed")
    assert [r["run_id"] for r in failed] == [ids[3], ids[1]]
    everything = items(client, "list_runs", "runs", limit=100)
    assert set(ids) <= {r["run_id"] for r in everything}


def test_a_run_that_goes_on_is_listed_and_can_be_cancelled(client, sandbox):
    client.run(sandbox, "true")
    run = client.start(sandbox, "sleep 60")["run_id"]
    client.wait_state(run)
    listed, = client.call("list_runs", identifier=sandbox,
                          state="running")["runs"]
    assert listed["run_id"] == run and listed["started_at"] is not None
    assert listed["started_at"] == client.call("get_run",
                                               run_id=run)["started_at"]
    assert client.call("list_runs", identifier=sandbox,
                       state="queued")["runs"] == []
    boxes = items(client, "list_sandboxes", "sandboxes", limit=1)
    mine = [b for b in boxes if b["identifier"] == sandbox]
    assert [(b["state"], b["active_runs"]) for b in mine] == [("ready", 1)]
    for _ in range(2):
        assert client.cancel(run)["state"] == "canceled"
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
    client.run(sandbox, python("print(6 * 7)"))
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
    client.cancel(waits)
    text = client.tool("list_runs", identifier=sandbox,
                       limit=1)["content"][0]["text"]
    assert " canceled after " in text and "canceled by" not in text


@pytest.mark.parametrize("tool", ["list_runs", "list_sandboxes"])
@pytest.mark.parametrize("cursor", ["x", "7", "-" * 64,
                                    "1-a b"])
def test_a_cursor_that_was_never_given_out_is_refused(client, tool, cursor):
    assert "cursor" in client.fail(tool, cursor=cursor)
