"""WALK and READ: the sandbox's files, whatever the sandbox made of them."""
import hashlib
import os
import struct
import time

import pytest

import wire
from host import wait_until
from wire import Command, python, shell

ENOENT, EAGAIN, EACCES, ENOTDIR, EISDIR, EINVAL = 2, 11, 13, 20, 21, 22
ELOOP, EXDEV, E2BIG, ENAMETOOLONG, ECANCELED = 40, 18, 7, 36, 125


def make(host, text):
    run = host.run(shell("cd /artifacts; " + text))
    assert run.end().exit_code == 0, run.output(wire.STDERR)


def test_a_walk_says_what_is_there(host):
    make(host, "mkdir -p a/b; printf 12345 > a/b/f; chmod 640 a/b/f;"
               " ln -s /etc/passwd l; mkfifo p; touch -d @1.5 a/b/f")
    entries, end = host.walk("/artifacts")
    assert (end["errno"], end["size"]) == (0, 5)
    assert {p: e["type"] for p, e in entries.items()} == {
        b"a": "d", b"a/b": "d", b"a/b/f": "f", b"l": "l", b"p": "?"}
    f = entries[b"a/b/f"]
    assert (f["size"], f["mode"], f["mtime_ns"]) == (5, 0o640, 1500000000)


def test_an_empty_directory_has_no_entries(host):
    entries, end = host.walk("/artifacts")
    assert not entries and end["errno"] == 0


@pytest.mark.parametrize("root, errno", [
    ("/nope", ENOENT), ("/etc/passwd", ENOTDIR), ("relative", EINVAL),
    ("", EINVAL), ("/bin/ls/x", ELOOP)])
def test_a_walk_of_what_is_no_directory_fails(host, root, errno):
    if root == "/bin/ls/x":  # below a link, where /bin is one
        host.run(shell("ln -s /etc /workspace/link"))
        root = "/workspace/link"
    entries, end = host.walk(root)
    assert not entries
    assert end["errno"] in (errno, ENOTDIR)


def test_links_are_not_followed_by_a_walk(host):
    make(host, "ln -s / all; ln -s . self; mkdir d; ln -s .. d/up")
    entries, _ = host.walk("/artifacts")
    assert set(entries) == {b"all", b"self", b"d", b"d/up"}


def test_names_arrive_byte_for_byte(host):
    names = [b"new\nline", b"tab\t", b" ", b"\xff\xfe", b"-rf", b"a" * 255,
             "\u20ac".encode(), b"quote'\"\\", b"..."]
    run = host.run(python(
        "import os, ast\n"
        f"for n in {names!r}:\n"
        "    open(b'/artifacts/' + n, 'wb').write(n)\n"))
    assert run.end().exit_code == 0
    entries, _ = host.walk("/artifacts")
    assert set(entries) == set(names)
    for name in names:
        data, end = host.read("/artifacts", name)
        assert data == name and end["errno"] == 0


def test_a_walk_stops_at_its_limit(host):
    make(host, "seq 50 | xargs touch")
    entries, end = host.walk("/artifacts", limit=20)
    assert len(entries) == 20
    assert (end["errno"], end["size"]) == (E2BIG, 20)


def test_a_walk_never_sends_more_than_5000(host):
    make(host, "seq 6000 | xargs touch")
    entries, end = host.walk("/artifacts", limit=100000)
    assert len(entries) == 5000 and end["errno"] == E2BIG


def test_a_very_deep_tree_is_walked_as_far_as_paths_reach(host):
    host.run(python("import os\nos.chdir('/artifacts')\n"
                    "for i in range(3000):\n"
                    "    os.mkdir('dd'); os.chdir('dd')\n"))
    entries, end = host.walk("/artifacts")
    assert end["errno"] in (0, E2BIG)
    assert len(entries) == 4096 // 3
    assert max(len(p) for p in entries) <= 4095


def test_directories_without_permissions_are_walked(host):
    make(host, "mkdir d; touch d/f; chmod 0 d/f d")
    entries, end = host.walk("/artifacts")
    assert set(entries) == {b"d", b"d/f"} and end["errno"] == 0
    assert host.read("/artifacts", "d/f")[1]["errno"] == 0


def test_a_second_walk_shows_only_what_changed(host):
    make(host, "mkdir d; echo 1 > a; echo 2 > d/b; echo 3 > c; ln -s a l")
    entries, _ = host.walk("/artifacts", changed_only=True)
    assert set(entries) == {b"a", b"d/b", b"c"}
    for path in (b"a", b"d/b"):
        host.taken(path)
    entries, _ = host.walk("/artifacts", changed_only=True, request=5)
    assert set(entries) == {b"c"}
    host.taken(b"c", request=5)
    assert not host.walk("/artifacts", changed_only=True)[0]
    make(host, "echo 4 > a; touch new; mv d/b d/renamed;"
               " rm c; echo 3 > c")
    entries, _ = host.walk("/artifacts", changed_only=True)
    assert set(entries) == {b"a", b"new", b"d/renamed", b"c"}
    assert len(host.walk("/artifacts")[0]) == 6


def test_a_change_that_keeps_size_and_mtime_is_seen(host):
    make(host, "echo 1 > a; touch -d @100 a")
    host.walk("/artifacts", changed_only=True)
    host.taken(b"a")
    make(host, "echo 2 > a; touch -d @100 a")
    assert set(host.walk("/artifacts", changed_only=True)[0]) == {b"a"}


def test_a_file_written_after_its_walk_is_not_taken_as_new(host):
    make(host, "echo 1 > a")
    host.walk("/artifacts", changed_only=True)
    make(host, "echo 22 > a")
    host.taken(b"a")  # what was copied is what the walk saw
    assert set(host.walk("/artifacts", changed_only=True)[0]) == {b"a"}


def test_what_is_taken_outlives_the_link(host):
    make(host, "echo 1 > a")
    host.walk("/artifacts", changed_only=True)
    host.taken(b"a")
    host.ping()
    host.drop()
    host.accept()
    assert not host.walk("/artifacts", changed_only=True)[0]


def test_taking_what_was_never_shown_is_harmless(host):
    make(host, "echo 1 > a")
    host.taken(b"a")
    host.walk("/artifacts", changed_only=True)
    host.taken(b"nope")
    host.taken(b"a", request=77)
    host.taken(b"a\0b")
    assert set(host.walk("/artifacts", changed_only=True)[0]) == {b"a"}


def test_a_file_is_read_whole(host):
    make(host, "head -c 5000000 /dev/urandom > f")
    data, end = host.read("/artifacts", "f")
    run = host.run(shell("sha256sum < /artifacts/f"))
    assert hashlib.sha256(data).hexdigest() == run.output().split()[
        0].decode()
    assert (end["errno"], end["size"]) == (0, 5000000)


@pytest.mark.parametrize("offset, limit, want", [
    (0, 4, b"0123"), (3, 4, b"3456"), (8, 100, b"89"), (10, 5, b""),
    (500, 5, b""), (2, 0, b""), (0, 10, b"0123456789")])
def test_a_part_of_a_file_is_read(host, offset, limit, want):
    make(host, "printf 0123456789 > f")
    data, end = host.read("/artifacts", "f", offset=offset, limit=limit)
    assert data == want
    assert (end["errno"], end["size"]) == (0, len(want))


HOSTILE = {
    "a link": ("ln -s /etc/passwd x", "x", ELOOP),
    "a link to a sibling": ("echo 1 > f; ln -s f x", "x", ELOOP),
    "a link on the way": ("ln -s /etc d", "d/passwd", ELOOP),
    "a dangling link": ("ln -s /nope x", "x", ELOOP),
    "a loop": ("ln -s x x", "x", ELOOP),
    "the parent": ("true", "../etc/passwd", EXDEV),
    "the parent from within": ("mkdir d", "d/../../etc/passwd", EXDEV),
    "an absolute path": ("true", "/etc/passwd", EXDEV),
    "a directory": ("mkdir d", "d", EISDIR),
    "a fifo": ("mkfifo p", "p", EINVAL),
    "nothing": ("true", "nope", ENOENT),
    "an empty path": ("true", "", ENOENT),
    "a NUL": ("echo 1 > a", b"a\0b", EINVAL),
    "a long name": ("true", "n" * 300, ENAMETOOLONG),
    "a file as a directory": ("echo 1 > f", "f/x", ENOTDIR),
}


@pytest.mark.parametrize("setup, path, errno", HOSTILE.values(),
                         ids=HOSTILE.keys())
def test_only_regular_files_below_the_root_are_read(
        host, setup, path, errno):
    make(host, setup)
    data, end = host.read("/artifacts", path)
    assert data == b""
    assert (end["errno"], end["size"]) == (errno, 0)


def test_a_socket_and_a_device_are_not_opened(host):
    run = host.run(python("import socket, os\n"
                          "s = socket.socket(socket.AF_UNIX)\n"
                          "s.bind('/artifacts/s')\n"))
    assert run.end().exit_code == 0
    assert host.read("/artifacts", "s")[1]["errno"] == EINVAL
    assert host.read("/dev", "null")[1]["errno"] == EINVAL


def test_reading_a_fifo_does_not_wake_its_writer(sandbox, host):
    run = host.start(shell("mkfifo /artifacts/p; echo up;"
                           " echo x > /artifacts/p; echo woken"))
    host.wait(lambda: run.output() == b"up\n", "the writer waits")
    assert host.read("/artifacts", "p")[1]["errno"] == EINVAL
    host.ping()
    assert run.output() == b"up\n"
    host.cancel(run)
    host.finish(run)


def test_a_root_that_was_replaced_by_a_link_is_not_followed(host):
    host.run(shell("mkdir d; touch d/f; mv d e; ln -s /etc d"))
    assert host.read("/workspace/d", "passwd")[1]["errno"] in (
        ELOOP, ENOTDIR)
    assert host.walk("/workspace/d")[1]["errno"] in (ELOOP, ENOTDIR)


def test_a_growing_file_ends_at_its_maximum(host):
    run = host.start(Command(["sh", "-c", "yes > /artifacts/f"]))
    host.wait(lambda: run.records, "it runs")
    time.sleep(0.05)
    data, end = host.read("/artifacts", "f", limit=3000000)
    assert len(data) <= 3000000 and end["errno"] == 0
    host.cancel(run)
    host.finish(run)


def test_a_file_that_shrinks_ends_where_it_ends(sandbox, host):
    make(host, "head -c 3000000 /dev/zero > f")
    host.on_data = lambda request, offset: None
    host.start_read("/artifacts", "f", window=100000)
    host.wait(lambda: sum(len(r.get("data", b"")) for r in host.replies)
              == 100000, "the window is full")
    os.truncate(sandbox.path("/artifacts/f"), 150000)
    host.send(wire.READ_ACK, struct.pack("<IQ", 2, 100000))
    host.wait(lambda: sum(len(r.get("data", b"")) for r in host.replies)
              == 150000, "the rest")
    host.send(wire.READ_ACK, struct.pack("<IQ", 2, 150000))
    host.wait(lambda: host.reply(wire.FILE_END, 2), "the end")
    end = host.reply(wire.FILE_END, 2)
    assert (end["errno"], end["size"]) == (0, 150000)


def test_a_read_stays_within_its_window(host):
    make(host, "head -c 1000000 /dev/zero > f")
    host.on_data = lambda request, offset: None
    host.start_read("/artifacts", "f", window=70000)
    got = 0
    while got < 1000000:
        want = min(got + 70000, 1000000)
        host.wait(lambda w=want: sum(
            len(r.get("data", b"")) for r in host.replies) == w, "more")
        host.ping()
        assert sum(len(r.get("data", b"")) for r in host.replies) == want
        got = want
        host.send(wire.READ_ACK, struct.pack("<IQ", 2, got))
    host.wait(lambda: host.reply(wire.FILE_END, 2), "the end")


def test_an_ack_beyond_a_files_sent_bytes_is_malformed(host):
    make(host, "head -c 1000000 /dev/zero > f")
    host.on_data = lambda request, offset: None
    host.start_read("/artifacts", "f", window=1000)
    host.wait(lambda: host.reply(wire.FILE_DATA, 2), "data")
    host.send(wire.READ_ACK, struct.pack("<IQ", 2, 1001))
    host.wait_closed()
    host.drop()
    host.accept()


def test_an_aborted_read_ends(host):
    make(host, "head -c 1000000 /dev/zero > f")
    host.on_data = lambda request, offset: None
    host.start_read("/artifacts", "f", window=1000)
    host.wait(lambda: host.reply(wire.FILE_DATA, 2), "data")
    host.send(wire.ABORT, struct.pack("<I", 2))
    host.wait(lambda: host.reply(wire.FILE_END, 2), "the end")
    end = host.reply(wire.FILE_END, 2)
    assert (end["errno"], end["size"]) == (ECANCELED, 1000)
    host.send(wire.ABORT, struct.pack("<I", 2))  # again: nothing to do
    host.ping()


def test_a_request_number_in_use_is_malformed(host):
    make(host, "head -c 1000000 /dev/zero > f")
    host.on_data = lambda request, offset: None
    for _ in range(2):
        host.start_read("/artifacts", "f", window=1000)
    host.wait_closed()
    host.drop()
    host.accept()


def test_too_many_reads_at_once_are_refused(host):
    make(host, "head -c 1000000 /dev/zero > f")
    host.on_data = lambda request, offset: None
    for i in range(100, 165):
        host.start_read("/artifacts", "f", window=1000, request=i)
    host.wait(lambda: host.reply(wire.FILE_END, 164), "a refusal")
    assert host.reply(wire.FILE_END, 164)["errno"] == EAGAIN
    assert not any(host.reply(wire.FILE_END, i) for i in range(100, 164))
    for i in range(100, 164):
        host.send(wire.ABORT, struct.pack("<I", i))
    host.wait(lambda: host.reply(wire.FILE_END, 163), "they end")
    host.on_data = type(host).on_data.__get__(host)
    assert len(host.read("/artifacts", "f")[0]) == 1000000


def test_many_reads_at_once_are_served_in_turn(host):
    make(host, "for i in 1 2 3 4 5 6 7 8; do"
               " head -c 2000000 /dev/urandom > f$i; done")
    for i in range(1, 9):
        host.start_read("/artifacts", f"f{i}", request=i)
    host.wait(lambda: all(host.reply(wire.FILE_END, i)
                          for i in range(1, 9)), "all are read")
    order = [r["request"] for r in host.replies
             if r["kind"] == wire.FILE_DATA]
    first_end = next(i for i, r in enumerate(host.replies)
                     if r["kind"] == wire.FILE_END)
    assert set(order[:first_end]) == set(range(1, 9))


def test_a_large_walk_does_not_hold_up_a_run(host):
    make(host, "for d in 1 2 3 4; do mkdir $d;"
               " (cd $d; seq 10000 | xargs touch); done")
    for i in range(8):
        host.send(wire.WALK, struct.pack("<IBI", 10 + i, 1, 1),
                  wire.pack_bytes("/artifacts"))
        host.send(wire.WALK, struct.pack("<IBI", 30 + i, 0, 5000),
                  wire.pack_bytes("/artifacts"))
    run = host.start(Command(["echo", "quick"]))
    host.finish(run)
    assert not all(host.reply(wire.FILE_END, 30 + i) for i in range(8))
    host.wait(lambda: all(host.reply(wire.FILE_END, 30 + i)
                          for i in range(8)), "all walks end")


def test_requests_end_with_the_link(sandbox, host):
    make(host, "head -c 1000000 /dev/zero > f")
    before = len(os.listdir(f"/proc/{sandbox.pid}/fd"))
    host.on_data = lambda request, offset: None
    for i in range(10):
        host.start_read("/artifacts", "f", window=1000, request=50 + i)
    host.wait(lambda: host.reply(wire.FILE_DATA, 59), "they run")
    host.drop()
    host.accept()
    host.ping()
    wait_until(lambda: len(os.listdir(
        f"/proc/{sandbox.pid}/fd")) == before, "the files are closed")
