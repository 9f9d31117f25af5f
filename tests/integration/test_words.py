"""How far back words of runs are found, when there is a bound of them."""
import json
import signal
import urllib.parse

import pytest

from client import wait_for

pytestmark = pytest.mark.own

MIB = 1 << 20


def says_much(client, number):
    """A run with 64 KiB of text: of each stream of each command 8 KiB are
    looked through."""
    numbers = f"seq {number * 10000 + 1} {number * 10000 + 1300}"
    run = client.start("box", *[f"echo marker word{number}; {numbers}; "
                                f"{numbers} >&2"] * 4)["run_id"]
    client.wait_end(run)
    return run


def asks(client, path, **query):
    """An answer's headers and text; the index may be behind."""
    def answer():
        status, headers, data = client.request(
            "GET", f"/api/v1/{path}?{urllib.parse.urlencode(query)}")
        assert status in (200, 503), data
        return status == 200 and (headers, data.decode())
    return wait_for(answer, 60, "an answer")


def lists(client, **query):
    return json.loads(asks(client, "runs", **query)[1])


def text_bytes(server):
    return server.metric("sandboxd_history_index_text_bytes")


@pytest.mark.own(HISTORY_TEXT_MB="1")
def test_the_oldest_words_leave_and_that_is_said(server, client):
    runs = [says_much(client, 1)]
    found = lists(client, q="marker", count="true")
    assert [r["run_id"] for r in found["runs"]] == runs
    assert found["text_since"] is None
    assert found["total_is_at_least"] is False
    runs += [says_much(client, i) for i in range(2, 25)]
    lists(client, q="marker")  # the index has them all then
    wait_for(lambda: MIB - 70000 < text_bytes(server) <= MIB, 60,
             "text to leave")
    found = lists(client, q="marker", count="true", limit=100)
    there = [r["run_id"] for r in reversed(found["runs"])]
    assert 10 < len(there) < 20 and there == runs[-len(there):]
    assert found["total"] == len(there)
    assert found["total_is_at_least"] is True
    since = found["text_since"]
    assert found["runs"][-1]["created_at"] >= since
    assert lists(client, q="word24")["runs"]
    assert not lists(client, q="word1")["runs"]
    # Who does not ask for words, or not for so long ago, misses nothing.
    assert len(lists(client, limit=100)["runs"]) == 24
    assert lists(client)["text_since"] is None
    assert lists(client, q="marker", since=since)["text_since"] is None
    # The same elsewhere.
    told = client.tool("list_runs", q="marker", limit=1)
    assert told["structuredContent"]["text_since"] == since
    assert f"q finds none created before {since}" in \
        told["content"][0]["text"]
    assert "text_since" not in client.call("list_runs", limit=1)
    assert json.loads(asks(client, "stats", q="marker",
                           group_by="state")[1])["text_since"] == since
    headers, data = asks(client, "export", q="marker")
    assert headers["X-Text-Since"] == since
    assert len(data.splitlines()) == len(there)
    assert "X-Text-Since" not in asks(client, "export")[0]
    assert f"of runs created before {since} the text was given up" in \
        server.ctl.run("run", "list", "q=marker").stderr
    assert server.ctl.run("run", "list").stderr == ""
    # And after a start.
    server.restart()
    assert lists(client, q="marker", limit=100)["text_since"] == since
    wait_for(lambda: MIB - 70000 < text_bytes(server) <= MIB, 60, "the count")


def test_the_bound_changes_with_a_reload_and_holds_after_a_kill(make_server):
    server = make_server(args=["--config", "words.conf"], wait=None)
    server.write_config("HISTORY_TEXT_MB=0")
    server.start()
    client = server.client()
    runs = [says_much(client, i) for i in range(1, 25)]
    assert len(lists(client, q="marker", limit=100)["runs"]) == 24
    assert text_bytes(server) > MIB
    server.write_config("HISTORY_TEXT_MB=1")
    server.proc.send_signal(signal.SIGHUP)
    wait_for(lambda: text_bytes(server) <= 23 * 65536, 60, "some to leave")
    # Whatever it was at: it goes on with that.
    server.kill("front")

    def is_below():
        found = text_bytes(server)
        return found is not None and 0 < found <= MIB
    wait_for(is_below, 90, "the rest to leave")
    found = [r["run_id"] for r in
             reversed(lists(client, q="marker", limit=100)["runs"])]
    assert 10 < len(found) < 20 and found == runs[-len(found):]
