"""exec and attach beside the captures of a real server."""
import contextlib
import hashlib
import json

import pytest

from .peer import (
    V4, V5, WAIT_S, attaching, executing, frame, path_of, wait_for)
from .test_cluster import CLOSED, SUCCESS

CONNECTED = (2, b"\x01")
BASE64 = "v4.base64.channel.k8s.io"


@pytest.fixture(scope="module")
def box(shared_cluster, image):
    """A Pod for the commands of all tests here."""
    from .bodies import Pods
    pods = Pods(shared_cluster, image)
    pods.running("box")
    yield "box"
    shared_cluster.faults.delete_pod(pod="box")


@pytest.fixture
def cluster(shared_cluster):
    """Without a reset: the box goes on."""
    return shared_cluster


def processes(cluster, engine, word):
    """Commands in the box that have this word."""
    status, said = engine.request(
        "GET", f"/containers/{cluster.faults.container(pod='box')}/top")
    assert status == 200, said
    return [p for p in json.loads(said)["Processes"] if word in p[-1]]


def test_v5_is_chosen_wherever_it_stands(cluster, box):
    with executing(cluster, box, "true", protocols=[V4, V5]) as peer:
        assert peer.headers["sec-websocket-protocol"] == V5
        assert peer.frames() == [CONNECTED, (2, SUCCESS), CLOSED]


def test_without_a_subprotocol_the_status_is_a_text(cluster, box):
    with executing(cluster, box, "sh", "-c", "echo hi; exit 3",
                   protocols=[]) as peer:
        assert peer.headers["sec-websocket-protocol"] == ""
        assert peer.frames() == [
            CONNECTED, (2, b"\x01hi\n"),
            (2, b"\x03command terminated with non-zero exit code: error "
             b"executing command [sh -c echo hi; exit 3], exit code 3"),
            CLOSED]


def test_base64_has_text_frames(cluster, box):
    with executing(cluster, box, "echo", "hi", protocols=[BASE64]) as peer:
        assert peer.frames() == [
            (1, b"1"), (1, b"1aGkK"),
            (1, b"3eyJtZXRhZGF0YSI6e30sInN0YXR1cyI6IlN1Y2Nlc3MifQ=="),
            CLOSED]


def test_v5_ends_the_input_and_v4_cannot(cluster, box):
    for protocol, ends in ((V5, True), (V4, False)):
        with executing(cluster, box, "cat", stdin=True,
                       protocols=[protocol]) as peer:
            peer.say(0, b"hello\n")
            assert peer.frame() == CONNECTED
            assert peer.frame() == (2, b"\x01hello\n")
            peer.say(255, b"\x00")
            # Whoever is still there says it again.
            peer.say(0, b"more\n")
            assert peer.frame() == (2, SUCCESS if ends else b"\x01more\n")


def test_input_that_nobody_asked_for_goes_nowhere(cluster, box):
    with executing(cluster, box, "sh", "-c", "cat; echo ended") as peer:
        peer.say(0, b"hello\n")
        assert peer.frames() == [CONNECTED, (2, b"\x01ended\n"),
                                 (2, SUCCESS), CLOSED]


@pytest.mark.parametrize("command, words", [
    (["/no/such"], '"/no/such": stat /no/such: no such file or directory'),
    (["/etc"], "permission denied"),
    ([], "args must not be empty")])
def test_a_command_that_cannot_start_is_an_internal_error(
        cluster, box, command, words):
    with executing(cluster, box, *command) as peer:
        first, status, close = peer.frames()
    assert (first, close) == (CONNECTED, CLOSED)
    said = json.loads(status[1][1:])
    assert status[1][:1] == b"\x03"
    assert (said["status"], said["reason"], said["code"]) == \
        ("Failure", "InternalError", 500)
    assert words in said["message"]
    assert said["message"] == "Internal error occurred: " + \
        said["details"]["causes"][0]["message"]


@pytest.mark.parametrize("command, code", [
    ("kill -9 $$", 137), ("exit 255", 255), ("exit 127", 127)])
def test_exit_codes_and_signals_are_a_cause(cluster, box, command, code):
    with executing(cluster, box, "sh", "-c", command) as peer:
        said = json.loads(peer.frames()[1][1][1:])
    assert said["details"] == {"causes": [
        {"reason": "ExitCode", "message": str(code)}]}


def test_a_terminal_has_one_stream_and_a_size(cluster, box):
    with executing(cluster, box, "sh", "-c",
                   'read -r a; echo err >&2; [ -t 0 ] && echo tty',
                   tty=True, stdin=True) as peer:
        peer.say(4, b'{"Width":100,"Height":40}')
        peer.say(0, b"go\n")
        got = peer.until(1, b"tty\r\n")
        assert b"err\r\n" in got
        assert peer.frames() == [(2, SUCCESS), CLOSED]


def test_a_ping_has_its_pong(cluster, box):
    with executing(cluster, box, "cat", stdin=True) as peer:
        assert peer.frame() == CONNECTED
        peer.send(frame(b"hi", opcode=9))
        assert peer.frame() == (10, b"hi")


def test_what_is_odd_is_let_through(cluster, box):
    """A text frame, an empty message, and a channel that nobody has."""
    with executing(cluster, box, "cat", stdin=True) as peer:
        peer.send(frame(b"\x00abc\n", opcode=1) + frame(b"") +
                  frame(b"\x09junk") + frame(b"\xff\x00"))
        assert peer.frames() == [CONNECTED, (2, b"\x01abc\n"), (2, SUCCESS),
                                 CLOSED]


# ---- violations

@pytest.mark.parametrize("data, frames, words", [
    (frame(b"\xff\x00", mask=None), [(8, b"\x03\xea"), CLOSED],
     "a frame without a mask"),
    (frame(b"\xff\x00\x00"), [CLOSED], "a close signal of b'\\x00\\x00'"),
    (frame(b"\xff\x07"), [CLOSED], "a close signal of b'\\x07'"),
    (frame(b"")[:1] + b"\xff" + (40 << 20).to_bytes(8, "big"), [],
     "a message of 41943040 bytes")])
def test_what_the_real_server_mishandles_is_a_violation(
        cluster, box, data, frames, words):
    with executing(cluster, box, "cat", stdin=True) as peer:
        assert peer.frame() == CONNECTED
        peer.send(data)
        assert peer.frames() == [f for f in frames]
    assert [v.partition(": ")[2] for v in
            cluster.faults.take_violations()] == [words]


def test_frames_before_the_101_are_lost_and_a_violation(cluster, box):
    with executing(cluster, box, "head", "-n", "1", stdin=True,
                   early=frame(b"\x00lost\n")) as peer:
        peer.say(0, b"came\n")
        assert peer.until(1, b"\n") == b"came\n"
    assert "frames came before the 101" in \
        cluster.faults.take_violations()[0]


def test_who_offers_http2_would_get_it(cluster, box):
    with executing(cluster, box, "true", alpn=["h2", "http/1.1"]) as peer:
        assert peer.frames()[-1] == CLOSED
    assert "HTTP/2 was offered" in cluster.faults.take_violations()[0]


# ---- who goes first

def test_a_command_outlives_its_connection(cluster, box, engine):
    """Whether it is closed well or drops."""
    for number, is_closed in (("7771", False), ("7772", True)):
        with executing(cluster, box, "sleep", number) as peer:
            assert peer.frame() == CONNECTED
            wait_for(lambda n=number: processes(cluster, engine, n),
                     "the command")
            if is_closed:
                peer.send(frame(b"\x03\xe8", opcode=8))
                assert peer.frames() == [CLOSED]
        wait_for(lambda: not cluster.faults.streams(), "the stream's end")
        assert processes(cluster, engine, number)


def test_who_drops_ends_the_input(cluster, box, engine):
    with executing(cluster, box, "sh", "-c", "cat >/dev/null; sleep 7773",
                   stdin=True) as peer:
        assert peer.frame() == CONNECTED
        wait_for(lambda: processes(cluster, engine, "7773"), "the command")
        assert not [p for p in processes(cluster, engine, "sleep 7773")
                    if p[-1].startswith("sleep")]
    wait_for(lambda: [p for p in processes(cluster, engine, "sleep 7773")
                      if p[-1].startswith("sleep")], "what is behind cat")


@pytest.mark.parametrize("number, is_closed", [("7776", True),
                                               ("7778", False)])
def test_a_client_that_goes_while_it_reads_nothing(
        cluster, box, engine, number, is_closed):
    """Who closes well ends the input; a reset is not noticed."""
    word = f"cat /dev/stdin {number}"
    with executing(cluster, box, "sh", "-c",
                   f"yes & {word}; kill $!", stdin=True) as peer:
        wait_for(cluster.faults.blocked_streams, "a stream that is blocked")
        wait_for(lambda: cats(cluster, engine, word), "who reads")
        if is_closed:
            peer.send(frame(b"\x03\xe8", opcode=8))
            wait_for(lambda: not cats(cluster, engine, word),
                     "the end of its input")
    wait_for(lambda: not cluster.faults.streams(), "the stream's end")
    with executing(cluster, box, "true") as other:
        other.frames()
    assert bool(cats(cluster, engine, word)) != is_closed


def cats(cluster, engine, word):
    return [p for p in processes(cluster, engine, word)
            if p[-1].startswith("cat")]


def test_large_messages_go_through_whole(cluster, box):
    data = bytes(range(256)) * (1 << 12)  # 1 MiB
    with executing(cluster, box, "cat", stdin=True) as peer:
        assert peer.frame() == CONNECTED
        peer.say(0, data)
        got, largest = b"", 0
        while len(got) < len(data):
            opcode, part = peer.frame()
            assert (opcode, part[:1]) == (2, b"\x01")
            got += part[1:]
            largest = max(largest, len(part))
        peer.say(255, b"\x00")
        assert peer.frames() == [(2, SUCCESS), CLOSED]
    assert hashlib.sha256(got).digest() == hashlib.sha256(data).digest()
    assert largest <= (32 << 10) + 1


def test_a_cut_stream_ends_without_a_word(cluster, box):
    with executing(cluster, box, "sleep", "7774") as peer:
        assert peer.frame() == CONNECTED
        cluster.faults.cut_streams()
        assert peer.frames() == []


def test_a_server_may_split_messages_and_ping(cluster, box):
    with executing(cluster, box, "cat", stdin=True) as peer:
        assert peer.frame() == CONNECTED
        cluster.faults.split_messages()
        peer.say(0, b"abc\n")
        opcode, half = peer.frame()
        assert (opcode, peer.frame()[0]) == (2, 0)
        assert half == b"\x01a"
        cluster.faults.split_messages(on=False)
        cluster.faults.ping_streams()
        assert peer.frame() == (9, b"ping")


# ---- refusals before the upgrade

@pytest.mark.parametrize("query, status, words", [
    ({"container": "nope"}, 400, "container nope is not valid for pod box"),
    ({"stdout": False, "stderr": False}, 400,
     "you must specify at least 1 of stdin, stdout, stderr")])
def test_a_wrong_question_is_refused_before_the_upgrade(
        cluster, box, query, status, words):
    with executing(cluster, box, "true", **query) as peer:
        assert peer.status == status
        assert words in peer.body.decode()
        is_text = "container" not in query
        assert ("text/plain" in peer.headers["content-type"]) == is_text


def test_methods_and_upgrades_that_do_not_fit(cluster, box):
    path = path_of(cluster, box, "exec", "true", stdout=True)
    status, said = cluster.ask("POST", path)
    assert (status, said["message"]) == (400, "Upgrade request required")
    status, _, data = cluster.exchange(
        "POST", path, Connection="Upgrade", Upgrade="websocket")
    assert (status, data) == (405, b"")


def test_an_older_server_has_no_v5_and_wants_no_create(cluster, box):
    cluster.faults.be_version(minor=28)
    try:
        with executing(cluster, box, "true") as peer:
            assert (peer.status, peer.body) == (403, b"")
        with executing(cluster, box, "true", protocols=[V5, V4]) as peer:
            assert peer.headers["sec-websocket-protocol"] == V4
        assert cluster.ask("GET", "/version")[1]["minor"] == "28"
    finally:
        cluster.faults.be_version()


def test_a_deleted_pod_ends_its_commands(cluster, box, pods):
    pods.running("deleted")
    with executing(cluster, "deleted", "sleep", "7775") as peer:
        assert peer.frame() == CONNECTED
        cluster.faults.delete_pod(pod="deleted", grace=1)
        said = peer.frames()
    assert b'"reason":"ExitCode","message":"137"' in said[0][1]
    assert said[1:] == [CLOSED]


# ---- attach

def test_attach_is_not_told_what_was_before(cluster, box, pods):
    pods.running("attach", "sh", "-c", "echo before; while read -r a; do "
                 'echo "got:$a"; done', container={"stdin": True})
    wait_for(lambda: pods.ask("GET", "/attach/log")[1] == "before\n",
             "the first line")
    with attaching(cluster, "attach", stdin=True, stdout=True) as one, \
            attaching(cluster, "attach", stdout=True) as other:
        assert one.frame() == other.frame() == CONNECTED
        heard_by_both(one, other)
        one.say(255, b"\x00")
        assert one.frames()[-2:] == [(2, SUCCESS), CLOSED]
        other.socket.settimeout(WAIT_S)
        with attaching(cluster, "attach", stdin=True, stdout=True) as again:
            assert again.frame() == CONNECTED
            again.say(0, b"two\n")
            assert other.until(1, b"two\n").endswith(b"got:two\n")
    cluster.faults.delete_pod(pod="attach")


def heard_by_both(one, other):
    """Connected is not yet attached, so it is said until it is heard."""
    other.socket.settimeout(0.1)
    for _ in range(100):
        one.say(0, b"one\n")
        with contextlib.suppress(TimeoutError):
            assert other.frame() == (2, b"\x01got:one\n")
            break
    assert one.frame() == (2, b"\x01got:one\n")


def test_input_of_once_ends_with_its_attach(cluster, box, pods):
    pods.running("once", "sh", "-c", "cat; echo over", container={
        "stdin": True, "stdinOnce": True})
    with attaching(cluster, "once", stdin=True, stdout=True) as peer:
        peer.say(0, b"data\n")
        assert peer.frame() == CONNECTED
        assert peer.frame() == (2, b"\x01data\n")
        peer.say(255, b"\x00")
        assert peer.frames() == [(2, b"\x01over\n"), (2, SUCCESS), CLOSED]
    assert pods.ended("once")["phase"] == "Succeeded"
    with attaching(cluster, "once", stdout=True) as peer:
        assert (peer.status, peer.body) == (
            500, b"container main not found in pod once_sbx")
    with executing(cluster, "once", "true") as peer:
        assert (peer.status, peer.body) == (
            500, b'container not found ("main")')
    cluster.faults.delete_pod(pod="once")
