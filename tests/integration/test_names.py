"""Calls on one identifier at the same time: who holds the name."""
import functools

import pytest

from client import at_once, wait_for

pytestmark = pytest.mark.own


def in_parallel(server, calls):
    """Each call on a connection of its own, all at once; their results."""
    return at_once([functools.partial(server.client().tool, name, **arguments)
                    for name, arguments in calls])


def live_rows(server, identifier):
    return server.sql(
        "SELECT name FROM sandbox WHERE identifier = ? AND state IN"
        " ('creating', 'ready')", identifier)


def containers(server, engine):
    return [c["Names"][0].lstrip("/")
            for c in engine.containers(server.instance)]


def run_call(name):
    return ("run_sandbox", {
        "identifier": name, "commands": [{"shell": "true"}],
        "options": {"await_completion": True, "await_timeout_ms": 60000}})


def check_one_sandbox(server, engine, client, name):
    """Engine, database and the next answer agree on one sandbox."""
    def settled():
        rows = [r[0] for r in live_rows(server, name)]
        return len(rows) == 1 and containers(server, engine) == rows

    wait_for(settled, 30, "one container and one row")
    answer = client.start(name, "true", await_completion=True)
    assert answer["sandbox_name"] == live_rows(server, name)[0][0]


def test_a_run_beside_a_restart_leaves_one_sandbox(server, client, engine):
    client.run("one", "true")
    for _ in range(3):
        calls = [("restart_sandbox", {"identifier": "one"})]
        calls += [run_call("one")] * 7
        in_parallel(server, calls)
        check_one_sandbox(server, engine, client, "one")


def test_restarts_beside_each_other_leave_one_sandbox(server, client, engine):
    client.run("one", "true")
    for _ in range(3):
        results = in_parallel(
            server, [("restart_sandbox", {"identifier": "one"})] * 6)
        assert any(not r.get("isError") for r in results), results
        check_one_sandbox(server, engine, client, "one")


def test_deletes_restarts_and_runs_in_any_order_agree(server, client, engine):
    calls = [("restart_sandbox", {"identifier": "one"}), run_call("one"),
             ("delete_sandbox", {"identifier": "one"}), run_call("one"),
             ("restart_sandbox", {"identifier": "one"}), run_call("one")]
    for turn in range(3):
        in_parallel(server, calls[turn:] + calls[:turn])
        client.run("one", "true")
        check_one_sandbox(server, engine, client, "one")
