"""Messages of megabytes: read by threads, while others are served."""
import concurrent.futures
import json

from client import wait_for

PAD = " " * 200000  # makes any message large
LARGE = [{"shell": ": " + "x" * 120000} for _ in range(15)]


def post(server, session, body, *fields):
    """A connection that has sent a message and reads nothing yet."""
    return server.send("POST /mcp", *head_of(session, *fields), body=body)


def head_of(session, *fields):
    return ("Content-Type: application/json", f"Mcp-Session-Id: {session}",
            *fields)


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


def test_what_is_ignored_of_a_large_message_costs_no_turn(client, sandbox):
    """conftest.py looks at the turns."""
    for _ in range(5):
        client.call("run_sandbox", identifier=sandbox,
                    commands=[{"shell": "true"}], description=[{}] * 48000)
        client.fail("run_sandbox", identifier=sandbox, x=[{}] * 48000)


def test_many_large_messages_beside_small_ones(server, client):
    def send_large(n):
        for _ in range(2):
            state = server.client().run(f"many-{n}", *LARGE)["state"]
        return state

    client.initialize()
    with concurrent.futures.ThreadPoolExecutor(4) as pool:
        sent = [pool.submit(send_large, n) for n in range(4)]
        while not all(f.done() for f in sent):
            client.rpc("ping")
    assert [f.result() for f in sent] == ["completed"] * 4
    for n in range(4):
        client.delete(f"many-{n}")


def test_a_client_that_leaves_while_its_message_is_read(server, client):
    client.initialize()
    before = server.metric("sandboxd_connections")
    body = json.dumps({"jsonrpc": "2.0", "id": 1, "method": "ping",
                       "params": {"x": ["a"] * 90000}}).encode()
    for _ in range(30):
        post(server, client.session, body).close()
    client.rpc("ping")
    wait_for(lambda: server.metric("sandboxd_connections") <= before, 30,
             "their connections to end")


def test_answers_of_one_connection_keep_their_order(server, client):
    client.initialize()
    large = json.dumps({"jsonrpc": "2.0", "id": "large",
                        "method": "ping"}) + PAD
    sock = post(server, client.session, large.encode())
    sock.sendall(server.message(
        "POST /mcp", *head_of(client.session, "Connection: close"),
        body=b'{"jsonrpc":"2.0","id":"small","method":"ping"}'))
    said = b""
    while chunk := sock.recv(65536):
        said += chunk
    sock.close()
    assert 0 < said.find(b'"id":"large"') < said.find(b'"id":"small"')
