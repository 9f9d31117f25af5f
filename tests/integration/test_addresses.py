"""What one address may ask for, and who is behind a proxy."""
import http.client
import json
import signal
import socket

import pytest

from client import wait_for
from server import serving


@pytest.fixture(scope="module")
def limited(build, engine):
    """A server that counts loopback addresses, and has a proxy on one."""
    with serving(build, engine, env={
            "LIMIT_LOOPBACK": "true", "CONNECTIONS_PER_ADDRESS": 4,
            "REQUESTS_PER_SECOND_PER_ADDRESS": 1, "REQUEST_BURST_PER_ADDRESS":
            10, "TRUSTED_PROXIES": "127.9.0.0/16", "LOG_HTTP_REQUESTS": "true",
            "ALLOWED_HOSTS": "sandbox.example"}) as s:
        yield s


def connect(server, address):
    return http.client.HTTPConnection(
        "127.0.0.1", server.port, timeout=60, source_address=(address, 0))


def get(conn, path="/healthz", **headers):
    conn.request("GET", path, headers={
        k.replace("_", "-"): v for k, v in headers.items()})
    answer = conn.getresponse()
    return answer.status, answer.headers, answer.read()


def statuses(server, address, times, path="/healthz", **headers):
    conn = connect(server, address)
    found = [get(conn, path, **headers)[0] for _ in range(times)]
    conn.close()
    return found


def test_an_address_that_asks_too_often_is_told_when_to_come_again(limited):
    assert 429 not in statuses(limited, "127.0.1.1", 9)
    conn = connect(limited, "127.0.1.1")
    answers = [get(conn) for _ in range(20)]
    status, headers, data = next(a for a in answers if a[0] == 429)
    error = json.loads(data)["error"]
    assert error["code"] == "rate_limited"
    assert "127.0.1.1" in error["message"]
    assert "REQUESTS_PER_SECOND_PER_ADDRESS" in error["message"]
    assert int(headers["Retry-After"]) >= 1
    # Nobody else is told so, on whatever path.
    assert 429 not in statuses(limited, "127.0.1.2", 5, "/readyz")
    conn.close()


def test_mcp_is_refused_in_its_own_form(limited):
    conn = connect(limited, "127.0.1.3")
    for _ in range(20):
        status, headers, data = get(conn, "/mcp")
        if status == 429:
            break
    assert status == 429
    assert headers["Retry-After"] is not None
    assert "too many requests" in json.loads(data)["error"]["message"]
    conn.close()


def test_an_address_has_so_many_connections(limited):
    held = [connect(limited, "127.0.2.1") for _ in range(4)]
    for conn in held:
        assert get(conn)[0] == 200
    more = connect(limited, "127.0.2.1")
    status, headers, data = get(more)
    assert status == 429 and headers["Retry-After"] == "1"
    assert json.loads(data)["error"]["code"] == "too_many_connections"
    assert statuses(limited, "127.0.2.2", 1) == [200]
    held.pop().close()

    def is_let_in():
        conn = connect(limited, "127.0.2.1")
        try:
            # Its requests are counted, too: what matters is the reason.
            return b"too_many_connections" not in get(conn)[2]
        finally:
            conn.close()
    wait_for(is_let_in, 30, "a place of the connection that closed")
    for conn in held:
        conn.close()


def test_a_flood_of_connections_leaves_others_theirs(limited):
    flood = [socket.create_connection(
        ("127.0.0.1", limited.port), 60, ("127.0.2.9", 0)) for _ in range(300)]
    assert statuses(limited, "127.0.2.10", 3) == [200] * 3
    for sock in flood:
        sock.close()


def test_behind_a_proxy_each_client_is_counted(limited):
    proxy = connect(limited, "127.9.0.1")
    first = [get(proxy, X_Forwarded_For="192.0.2.1")[0] for _ in range(20)]
    assert 429 in first
    assert get(proxy, X_Forwarded_For="192.0.2.2")[0] == 200
    # What a client writes itself is not what its proxy adds.
    assert get(proxy, X_Forwarded_For="192.0.2.3, 192.0.2.1")[0] == 429
    proxy.close()


def test_who_is_no_proxy_is_counted_itself(limited):
    conn = connect(limited, "127.0.3.1")
    found = [get(conn, X_Forwarded_For=f"192.0.2.{i}")[0] for i in range(20)]
    assert 429 in found
    conn.close()


def test_a_proxy_says_how_it_was_reached(limited):
    proxy = connect(limited, "127.9.0.2")
    told = {"Accept": "text/html", "X_Forwarded_Proto": "https",
            "X_Forwarded_Host": "sandbox.example",
            "X_Forwarded_For": "192.0.2.9"}
    page = get(proxy, "/", **told)[2].decode()
    assert "https://sandbox.example/mcp" in page
    told["X_Forwarded_Host"] = "evil.example"
    status, _, data = get(proxy, "/", **told)
    assert status == 403 and b"host_not_allowed" in data
    proxy.close()
    page = get(connect(limited, "127.0.3.2"), "/", Accept="text/html",
               X_Forwarded_Proto="https", X_Forwarded_Host="evil.example")[2]
    assert b"https:" not in page and b"evil" not in page


def test_the_log_has_the_client_and_metrics_what_was_refused(limited):
    proxy = connect(limited, "127.9.0.3")
    assert get(proxy, X_Forwarded_For="198.51.100.7")[0] == 200
    limited.wait_log("address=198.51.100.7")
    page = get(proxy, "/metrics", X_Forwarded_For="198.51.100.8")[2].decode()
    numbers = dict(n.rsplit(" ", 1) for n in page.splitlines()
                   if n.startswith("sandboxd_refused_total"))
    assert int(numbers['sandboxd_refused_total{limit="requests"}']) > 0
    assert int(numbers['sandboxd_refused_total{limit="connections"}']) > 0
    proxy.close()


def test_loopback_has_no_limits_by_default(server):
    assert 429 not in statuses(server, "127.0.0.1", 1500)


def test_limits_change_with_a_reload(make_server):
    s = make_server(args=["--config", "limits.conf"], wait=None)
    s.write_config("LIMIT_LOOPBACK=true", "REQUESTS_PER_SECOND_PER_ADDRESS=0")
    s.start()
    assert 429 not in statuses(s, "127.0.4.1", 50)
    s.write_config("LIMIT_LOOPBACK=true", "REQUESTS_PER_SECOND_PER_ADDRESS=1",
                   "REQUEST_BURST_PER_ADDRESS=1")
    s.proc.send_signal(signal.SIGHUP)
    wait_for(lambda: 429 in statuses(s, "127.0.4.1", 3), 30, "the new limit")


def test_a_wrong_proxy_is_refused_at_the_start(program):
    program.refuses("TRUSTED_PROXIES=10.0.0.1/8", words=["TRUSTED_PROXIES"])
