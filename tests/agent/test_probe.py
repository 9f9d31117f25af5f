"""agent listen, reach and barred: whether a network keeps two apart."""
import socket
import subprocess

import pytest


def start(agent, *args):
    return subprocess.Popen([agent, *args], stderr=subprocess.PIPE, text=True)


def ends(program):
    """Its exit status and what it said."""
    _, said = program.communicate(timeout=20)
    return program.returncode, said


@pytest.fixture(name="port")
def port_fixture():
    """One that nobody listens on."""
    with socket.socket() as s:
        s.bind(("127.0.0.1", 0))
        yield s.getsockname()[1]


@pytest.fixture(name="listener")
def listener_fixture():
    with socket.create_server(("127.0.0.1", 0)) as s:
        yield s


def address_of(listener):
    return f"127.0.0.1:{listener.getsockname()[1]}"


def test_who_listens_is_reached(agent, listener):
    assert ends(start(agent, "reach", address_of(listener), "20000")) == (
        0, "")


def test_nobody_is_not_reached(agent, port):
    assert ends(start(agent, "reach", f"127.0.0.1:{port}", "100")) == (
        1, f"agent reach: 127.0.0.1:{port}: Connection refused\n")


def test_who_does_not_answer_is_not_reached(agent):
    """A queue that is full drops what knocks."""
    with socket.socket() as s:
        s.bind(("127.0.0.1", 0))
        s.listen(0)
        with socket.create_connection(s.getsockname()):
            assert ends(start(agent, "reach", address_of(s), "100")) == (
                1, f"agent reach: {address_of(s)}: Connection timed out\n")


def test_who_listens_later_is_reached(agent, port):
    caller = start(agent, "reach", f"[::1]:{port}", "20000")
    with socket.create_server(("::1", port), family=socket.AF_INET6):
        assert ends(caller) == (0, "")


@pytest.mark.parametrize("family,host", [
    (socket.AF_INET, "127.0.0.1"), (socket.AF_INET6, "[::1]")])
def test_a_listener_is_reached_by_both_families(agent, family, host):
    with socket.socket(family) as s:
        s.bind((host.strip("[]"), 0))
        port = s.getsockname()[1]
    listener = start(agent, "listen", str(port))
    try:
        for _ in range(3):
            assert ends(start(agent, "reach", f"{host}:{port}", "20000")) == (
                0, "")
    finally:
        listener.terminate()
    assert ends(listener) == (0, "")


def test_a_listener_says_that_its_port_is_taken(agent, listener):
    port = listener.getsockname()[1]
    assert ends(start(agent, "listen", str(port))) == (
        1, f"agent listen: port {port}: Address already in use\n")


def test_nobody_is_barred(agent, port):
    assert ends(start(agent, "barred", f"127.0.0.1:{port}", "20000",
                      "50")) == (0, "")


def test_who_answers_is_not_barred(agent, listener):
    assert ends(start(agent, "barred", address_of(listener), "300",
                      "200")) == (
        1, f"agent barred: {address_of(listener)} can be reached\n")


def test_who_is_barred_later_is_barred(agent):
    with socket.create_server(("127.0.0.1", 0)) as listener:
        caller = start(agent, "barred", address_of(listener), "20000", "50")
        listener.accept()[0].close()
    assert ends(caller) == (0, "")


@pytest.mark.parametrize("args", [
    ("listen",), ("listen", "0"), ("listen", "65536"), ("listen", "80x"),
    ("reach", "127.0.0.1:80"), ("reach", "127.0.0.1", "100"),
    ("reach", "localhost:80", "100"), ("reach", "127.0.0.1:0", "100"),
    ("reach", "::1:80", "100"), ("reach", "[::1:80", "100"),
    ("reach", "[]:80", "100"), ("reach", "127.0.0.1:80", "-1"),
    ("reach", "127.0.0.1:80", "600001"), ("reach", "1" * 99 + ":80", "100"),
    ("barred", "127.0.0.1:80", "100"),
    ("barred", "127.0.0.1:80", "100", "101")])
def test_what_it_does_not_understand_it_refuses(agent, args):
    status, said = ends(start(agent, *args))
    assert status == 64
    assert said.startswith("agent listen PORT\n")
