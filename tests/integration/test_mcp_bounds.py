"""What many clients of MCP, or bad ones, can take is bounded."""
import socket

import pytest

import raw
from client import wait_for
from raw import read, request

MIB = 1 << 20


def waiting(server):
    """Bytes of answers that their clients have not taken, by where."""
    return {where: server.metric(
        f'sandboxd_answers_waiting_bytes{{in="{where}"}}')
        for where in ("memory", "files")}


# ---- connections

PLACES = 1024  # MAX_CONNECTIONS, as it is


def is_open(sock):
    """It is answered once more."""
    try:
        sock.sendall(b"GET /healthz HTTP/1.1\r\nHost: localhost\r\n\r\n")
        return read(sock).status == 200
    except (OSError, ValueError):
        return False


def is_closed(sock):
    return sock.recv(1, socket.MSG_DONTWAIT) == b""


@pytest.mark.own
def test_connections_that_rest_keep_no_new_client_out(server):
    """They said something of MCP, and are kept alive; whoever rests longest
    gives way, and nobody else."""
    resting = []
    for _ in range(PLACES):
        resting.append(server.send(
            "POST /mcp", raw.JSON, raw.BOTH,
            body=raw.as_bytes(raw.initialize())))
        assert read(resting[-1]).status == 200
    first, second, third = resting[:3]
    assert is_open(first)  # now it rests for the shortest time of all
    new = [server.send("POST /mcp", raw.JSON, raw.BOTH,
                       body=raw.as_bytes(raw.initialize())) for _ in range(2)]
    for sock in new:
        assert read(sock).result["protocolVersion"] == raw.LEGACY
    for sock in (second, third):
        wait_for(lambda s=sock: is_closed(s), 10, "its place to be given up")
    assert is_open(first) and is_open(resting[3]) and is_open(resting[-1])
    for sock in resting + new:
        sock.close()


# ---- sessions

def begin_sessions(server, n, then=()):
    """On one connection; each is left without a word."""
    with server.send("GET /healthz") as sock:
        assert read(sock).status == 200
        for _ in range(n):
            ident = say(server, sock, raw.initialize())
            for message in then:
                say(server, sock, message, f"Mcp-Session-Id: {ident}")


def say(server, sock, message, *fields):
    sock.sendall(server.message("POST /mcp", raw.JSON, raw.BOTH, *fields,
                                body=raw.as_bytes(message)))
    answer = read(sock)
    assert answer.status == 200, answer
    return answer.headers.get("Mcp-Session-Id")


def own_bytes(pid):
    """What a process has for itself."""
    with open(f"/proc/{pid}/smaps_rollup", encoding="ascii") as f:
        return 1024 * sum(int(line.split()[1]) for line in f
                          if line.startswith("Private_"))


@pytest.mark.own
def test_sessions_that_were_left_cost_nothing(server):
    """tests/unit/mcp/test_mcp_memory.c counts bytes, where no sanitizer
    keeps what was freed."""
    front, = server.pids("front")
    says = [request("logging/setLevel", {"level": "info"})]
    begin_sessions(server, 1500, says)
    before = own_bytes(front)
    begin_sessions(server, 10000, says)
    if not server.is_sanitized():
        assert own_bytes(front) - before < 2 * MIB
    assert server.pids("front") == [front]


# ---- clients that do not read

UNREAD = 8
ASKED = 60  # answers of 200 KB: more than the kernel takes for a client


@pytest.mark.own(IDLE_TIMEOUT_MS=3000)
def test_who_does_not_read_its_streams_is_bounded_and_let_go(server, client):
    run = client.run("unread", "head -c 100000 /dev/zero | tr '\\0' '\\1'")
    lines = raw.session(server)
    params = {"name": "get_run", "arguments": {"run_id": run["run_id"]},
              "_meta": {"mcp-sandboxd/structured": True}}
    asked = [server.message(
        "POST /mcp", raw.JSON, "Accept: text/event-stream", *lines,
        body=raw.as_bytes(request("tools/call", params, i)))
        for i in range(UNREAD * ASKED)]
    socks = [server.send("GET /healthz", room=4096) for _ in range(UNREAD)]
    for i, sock in enumerate(socks):
        sock.sendall(b"".join(asked[i::UNREAD]))
    wait_for(lambda: sum(waiting(server).values()) > UNREAD * 10_000, 60,
             "answers that wait")
    most = waiting(server)
    assert most["memory"] < UNREAD * 512 * 1024
    assert most["files"] < UNREAD * MIB
    wait_for(lambda: not any(waiting(server).values()), 60,
             "the connections to be closed")
    for sock in socks:
        sock.close()
