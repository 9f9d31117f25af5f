"""No answer, no turn of a loop and no process at rest is without a bound."""
import json
from collections import Counter

import pytest

from client import at_once, python, wait_for

MIB = 1 << 20
IDLE_MAX = 22 * MIB  # with every library for itself; PSS is below 20
ANSWER_MAX = 8 * MIB
COMMANDS = 64
BYTES = 100_000
CONTROL = (f"head -c {BYTES} /dev/zero | tr '\\0' '\\1'; "
           f"head -c {BYTES} /dev/zero | tr '\\0' '\\1' >&2")


def check_largest(view):
    """All that was printed is there or counted."""
    assert len(view["commands"]) == COMMANDS
    for c in view["commands"]:
        for name in ("stdout", "stderr"):
            assert c[f"{name}_bytes"] == BYTES
            assert c[f"{name}_truncated"] is True
            shown = c[name] + c[f"{name}_tail"]
            assert set(shown) == {"\1"}
            assert len(shown) + c[f"{name}_dropped"] == BYTES


def test_the_largest_run_has_bounded_answers(server, client, sandbox):
    final = client.run(sandbox, *[CONTROL] * COMMANDS)
    check_largest(final)
    assert len(json.dumps(final)) < MIB
    run = client.start(sandbox, "true")  # the server goes on
    front = server.pids("front")
    listed = client.tool("get_run", run_id=run["run_id"], wait_ms=20000)
    assert listed["structuredContent"]["state"] == "completed"
    path = f"/mcp/runs/{final['run_id']}"
    for status, _, data in at_once([lambda: server.get(path, timeout=60)] * 4):
        assert status == 200
        assert MIB < len(data) < ANSWER_MAX
        check_largest(json.loads(data))
    assert len(json.dumps(client.tool("get_run",
                                      run_id=final["run_id"]))) < ANSWER_MAX
    assert server.pids("front") == front


def test_a_long_list_of_artifacts_comes_in_parts(server, client, sandbox):
    make = ("import os\nos.chdir('/artifacts')\n"
            "for i in range(1500): open('\\1' * 180 + str(i), 'w')")
    final = client.run(sandbox, python(make), wait_ms=90000)
    names = [a["path"] for a in final["artifacts"]]
    assert final["artifacts_dropped"] == 1500 - len(names)
    path = f"/mcp/runs/{final['run_id']}?artifacts_from="
    page = final
    while "artifacts_next" in page:
        page = client.get(path + str(page["artifacts_next"]))
        names += [a["path"] for a in page["artifacts"]]
    assert len(names) == len(set(names)) == 1500
    assert server.get(path + "x")[0] == 400


def test_when_all_connections_are_taken_probes_and_new_clients_are_served(
        make_server):
    places = 20
    server = make_server(env={"MAX_CONNECTIONS": places})
    resting = [server.send("GET /healthz") for _ in range(places)]
    for sock in resting:
        assert sock.recv(4096).startswith(b"HTTP/1.1 200")
    run = server.client().start("busy", "sleep 60")["run_id"]
    following = [server.send(f"GET /mcp/events?run_id={run}")
                 for _ in range(places)]
    for sock in following:
        assert sock.recv(4096).startswith(b"HTTP/1.1 200")
    # Nobody rests now: only probes are served.
    for path, status in (("/healthz", 200), ("/readyz", 200),
                         ("/metrics", 200), (f"/mcp/runs/{run}", 503)):
        assert server.get(path)[0] == status
    for sock in following + resting:
        sock.close()
    wait_for(lambda: server.get(f"/mcp/runs/{run}")[0] == 200, 30,
             "a place to be free")


def test_followers_that_do_not_read_cost_little(server, client, sandbox):
    """Of what waits for them 16 KiB each are here, however much there is."""
    readers = 50
    run = client.start(
        sandbox,
        "sleep 1; head -c 20000000 /dev/zero | tr '\\0' '\\1'")["run_id"]
    socks = [server.send(f"GET /mcp/events?run_id={run}", room=4096)
             for _ in range(readers)]
    waiting = 'sandboxd_answers_waiting_bytes{in="memory"}'
    most = 0
    while client.ended(run) is None:
        most = max(most, server.metric(waiting))
    most = max(most, server.metric(waiting))
    assert 0 < most < readers * 40_000
    for sock in socks:
        sock.close()
    wait_for(lambda: server.metric(waiting) < 20_000, 30, "an empty house")


def mappings(pid):
    """(what is mapped, bytes there, bytes of it that are the process's)"""
    what = None
    with open(f"/proc/{pid}/smaps", encoding="ascii") as f:
        for line in f:
            word = line.split()
            if not word[0].endswith(":"):
                what = (*word[5:], word[2])
            elif word[0] == "Rss:":
                there = int(word[1]) * 1024
            elif word[0] == "Anonymous:":
                yield what, there, int(word[1]) * 1024


def taken(pids):
    """Bytes of memory: what each has for itself, and of a file what the one
    has that uses most of it.  So it says the same beside other servers, which
    share the libraries."""
    own, files = 0, Counter()
    for pid in pids:
        of_this = Counter()
        for what, there, anonymous in mappings(pid):
            own += anonymous
            of_this[what] += there - anonymous
        files |= of_this
    return own + files.total()


@pytest.mark.own
def test_an_idle_server_takes_little_memory(server):
    pids = [server.proc.pid, *(pid for pid, _ in server.children())]
    if not server.is_sanitized():
        wait_for(lambda: taken(pids) <= IDLE_MAX, 60,
                 "the memory of all processes to be below its bound")


# ---- long output

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
