"""Messages of megabytes: read by threads, while others are served."""
import json
import socket
import threading

from client import McpError, wait_for

PAD = " " * 200000  # makes any message large
LARGE = [{"shell": ": " + "x" * 120000} for _ in range(15)]


def connections(server):
    """How many there are, the one that asks among them."""
    c = server.client()
    text = c.request("GET", "/metrics")[2].decode()
    c.close()
    return next(int(line.split()[1]) for line in text.splitlines()
                if line.startswith("sandboxd_connections "))


def raw_post(client, body):
    """A connection that has sent a message and reads nothing yet."""
    sock = socket.create_connection(("127.0.0.1", client.port), timeout=60)
    sock.sendall((
        f"POST /mcp HTTP/1.1\r\nHost: 127.0.0.1:{client.port}\r\n"
        "Content-Type: application/json\r\n"
        f"Mcp-Session-Id: {client.session}\r\n"
        f"Content-Length: {len(body)}\r\n\r\n").encode() + body)
    return sock


def test_what_is_wrong_in_a_large_message_is_said_as_in_a_small_one(client):
    client.initialize()
    for text in ('{"jsonrpc":"2.0","id":1,"method":}', "[]",
                 '{"jsonrpc":"2.0","id":1,"method":"no/such"}',
                 '{"jsonrpc":"2.0","id":1,"method":"tools/call",'
                 '"params":{"name":"run_sandbox","arguments":{"x":1}}}',
                 '{"a":1,"a":2}'):
        small = client.post(text)
        large = client.post(text + PAD)
        assert (small[0], small[2]) == (large[0], large[2])
        assert b"rror" in large[2]


def test_what_is_ignored_of_a_large_message_costs_no_turn(server):
    """conftest.py looks at the turns."""
    c = server.client()
    for _ in range(5):
        final = c.tool(
            "run_sandbox", identifier="ignores",
            commands=[{"shell": "true"}], description=[{}] * 48000)
        assert not final["isError"]
        wrong = c.tool("run_sandbox", identifier="ignores", x=[{}] * 48000)
        assert wrong["isError"]
    c.call("delete_sandbox", identifier="ignores")


def test_many_large_messages_beside_small_ones(server):
    failed = []

    def send_large(n):
        c = server.client()
        try:
            for _ in range(2):
                assert c.run(f"many-{n}", *LARGE)["state"] == "completed"
        except (McpError, AssertionError, OSError) as e:
            failed.append(e)
        c.close()

    threads = [threading.Thread(target=send_large, args=(n,))
               for n in range(4)]
    for t in threads:
        t.start()
    c = server.client()
    c.initialize()
    while any(t.is_alive() for t in threads):
        c.rpc("ping")
    for t in threads:
        t.join()
    assert not failed, failed
    for n in range(4):
        c.call("delete_sandbox", identifier=f"many-{n}")


def test_a_client_that_leaves_while_its_message_is_read(server, client):
    client.initialize()
    before = connections(server)
    body = json.dumps({"jsonrpc": "2.0", "id": 1, "method": "ping",
                       "params": {"x": ["a"] * 90000}}).encode()
    for _ in range(30):
        raw_post(client, body).close()
    client.rpc("ping")
    wait_for(lambda: connections(server) <= before, 30,
             "their connections to end")


def test_answers_of_one_connection_keep_their_order(client):
    client.initialize()
    large = json.dumps({"jsonrpc": "2.0", "id": "large",
                        "method": "ping"}).encode() + PAD.encode()
    sock = raw_post(client, large)
    small = b'{"jsonrpc":"2.0","id":"small","method":"ping"}'
    sock.sendall((
        f"POST /mcp HTTP/1.1\r\nHost: 127.0.0.1:{client.port}\r\n"
        "Content-Type: application/json\r\nConnection: close\r\n"
        f"Mcp-Session-Id: {client.session}\r\n"
        f"Content-Length: {len(small)}\r\n\r\n").encode() + small)
    said = b""
    while chunk := sock.recv(65536):
        said += chunk
    sock.close()
    assert 0 < said.find(b'"id":"large"') < said.find(b'"id":"small"')
