"""What a call that waits hears while nothing is printed."""
import json
import re

from client import parse_events


def notes_of(client, tool, **arguments):
    """(progress, message) of each notification of a call, and its result."""
    status, _, data = client.post({
        "jsonrpc": "2.0", "id": 7, "method": "tools/call", "params": {
            "name": tool, "arguments": arguments,
            "_meta": {"progressToken": "t"}}})
    assert status == 200, data
    messages = [json.loads(e["data"]) for e in parse_events(data.decode())
                if e.get("data")]
    *notes, answer = messages
    assert all(n["method"] == "notifications/progress" for n in notes)
    return ([(n["params"]["progress"], n["params"].get("message"))
             for n in notes], answer["result"])


def test_a_silent_call_hears_that_it_goes_on(client, sandbox):
    client.run(sandbox, "true")
    notes, result = notes_of(
        client, "run_sandbox", identifier=sandbox,
        commands=[{"shell": "echo one; sleep 16"}])
    assert notes[0] == (4, "one\n")
    assert re.fullmatch("running for 1[56] s, nothing printed for 1[56] s",
                        notes[1][1])
    done = [n for n, _ in notes]
    assert done == sorted(set(done))
    assert result["content"][0]["text"].endswith("exit code 0\none\n")


def test_a_call_that_waits_for_a_run_hears_of_it_too(client, sandbox):
    client.run(sandbox, "true")
    run = client.start(sandbox, "sleep 600")["run_id"]
    client.wait_state(run)
    notes, result = notes_of(client, "get_run", run_id=run, wait_ms=17000)
    (_, first), (_, second) = notes
    assert re.fullmatch("running for \\d s, nothing printed for 1 s", first)
    assert re.fullmatch("running for [12]\\d s, nothing printed for 1[67] s",
                        second)
    assert f"run {run} running: call get_run again" in \
        result["content"][0]["text"]
    client.cancel(run)
