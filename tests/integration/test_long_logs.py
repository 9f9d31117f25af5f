"""Long output: what a status shows of it, and what looking at it costs."""
import json

import pytest

from client import wait_for

MIB = 1 << 20
LONG = 64 * MIB
PRINT = f"head -c {LONG} /dev/zero | tr '\\0' x; echo end"


def bytes_read(server):
    """What the front has read from files and pipes since it started."""
    with open(f"/proc/{server.pids('front')[0]}/io") as f:
        return int(f.readline().split()[1])


def cost_of_status(client, server, run):
    """Its command, and what was read for it; a long answer is sent from a
    file, which is not counted."""
    before = bytes_read(server)
    _, _, data = client.request("GET", f"/mcp/runs/{run}")
    return (json.loads(data)["commands"][0],
            bytes_read(server) - before - len(data))


def check(command):
    head, tail = command["stdout"], command["stdout_tail"]
    assert command["stdout_bytes"] == LONG + 4
    assert command["stdout_truncated"] is True
    assert head == "x" * MIB
    assert tail.endswith("xend\n") and set(tail[:-4]) == {"x"}
    assert command["stdout_dropped"] == LONG + 4 - len(head) - len(tail)


def test_a_long_output_has_its_head_its_tail_and_what_is_between(
        client, sandbox):
    final = client.run(sandbox, PRINT)
    command = client.status(final["run_id"])["commands"][0]
    check(command)
    assert "stderr_tail" not in command
    short = final["commands"][0]
    assert len(short["stdout"]) + len(short["stdout_tail"]) == 32768
    assert short["stdout_dropped"] == LONG + 4 - 32768
    assert command["stdout"].startswith(short["stdout"])
    assert command["stdout_tail"].endswith(short["stdout_tail"])


def test_the_second_status_of_a_run_that_goes_on_reads_what_is_new(
        client, server, sandbox):
    run = client.start(sandbox, PRINT + "; sleep 60")["run_id"]
    wait_for(lambda: client.status(run)["commands"][0]["stdout_bytes"] ==
             LONG + 4, 60, "all of its output")
    command, cost = cost_of_status(client, server, run)
    check(command)
    assert cost < MIB // 2


@pytest.mark.own
def test_after_a_restart_a_long_log_is_not_walked_again(server, client):
    run = client.run("long", PRINT)["run_id"]
    server.restart()
    command, cost = cost_of_status(client, server, run)
    check(command)
    assert cost < 2 * MIB
