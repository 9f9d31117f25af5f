"""Reads, writes and walks of files, whatever the sandbox made of them."""
import hashlib
import os

import pytest

import wire
from host import wait_until
from wire import Command, python, shell

ENOENT, EAGAIN, EACCES, ENOTDIR, EISDIR, EINVAL = 2, 11, 13, 20, 21, 22
ELOOP, EXDEV, E2BIG = 40, 18, 7
ENAMETOOLONG, EROFS = 36, 30


def make(host, text):
    run = host.run(shell("cd /artifacts; " + text))
    assert run.end().exit_code == 0, run.output(wire.STDERR)


def test_a_walk_says_what_is_there(host):
    make(host, "mkdir -p a/b; printf 12345 > a/b/f; chmod 640 a/b/f;"
               " ln -s /etc/passwd l; mkfifo p; touch -d @1.5 a/b/f")
    entries, code = host.walk("/artifacts")
    assert code == 0
    assert {p: e["type"] for p, e in entries.items()} == {
        b"a": "d", b"a/b": "d", b"a/b/f": "f", b"l": "l", b"p": "?"}
    f = entries[b"a/b/f"]
    assert (f["size"], f["mode"], f["mtime_ns"]) == (5, 0o640, 1500000000)


def test_an_empty_directory_has_no_entries(host):
    entries, code = host.walk("/artifacts")
    assert not entries and code == 0


@pytest.mark.parametrize("root, errno", [
    ("/nope", ENOENT), ("/etc/passwd", ENOTDIR), ("relative", EINVAL),
    ("", EINVAL), ("/bin/ls/x", ELOOP)])
def test_a_walk_of_what_is_no_directory_fails(host, root, errno):
    if root == "/bin/ls/x":  # below a link, where /bin is one
        host.run(shell("ln -s /etc /workspace/link"))
        root = "/workspace/link"
    entries, code = host.walk(root)
    assert not entries
    assert code in (errno, ENOTDIR)


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
        assert host.read("/artifacts", name) == (name, 0)


def test_a_walk_stays_within_its_credit(host):
    make(host, "seq 50 | xargs touch")
    walk = host.open("OPEN_WALK", 20, root="/artifacts")
    walk.auto_credit = False
    for limit in (20, 40):
        host.wait(lambda n=limit: len(walk.entries) == n, "all it may")
        host.ping()
        assert len(walk.entries) == limit and not walk.closed
        host.credit(walk, limit)
    host.wait_close(walk)
    assert len({e["path"] for e in walk.entries}) == 50
    assert walk.code == 0


def test_a_walk_without_credit_waits_for_it(host):
    make(host, "touch a")
    walk = host.open("OPEN_WALK", 0, root="/artifacts")
    host.ping()
    assert not walk.entries and not walk.closed
    walk.window = 5
    host.credit(walk, 0)
    assert host.wait_close(walk).code == 0
    assert [e["path"] for e in walk.entries] == [b"a"]


def test_a_closed_walk_sends_no_more(host):
    make(host, "seq 6000 | xargs touch")
    walk = host.open("OPEN_WALK", 10, root="/artifacts")
    host.wait(lambda: len(walk.entries) >= 10, "entries")
    host.close(walk)
    host.ping()
    seen = len(walk.entries)
    host.ping()
    assert len(walk.entries) == seen
    assert len(host.walk("/artifacts")[0]) == 6000


def test_a_very_deep_tree_is_walked_as_far_as_paths_reach(host):
    host.run(python("import os\nos.chdir('/artifacts')\n"
                    "for i in range(3000):\n"
                    "    os.mkdir('dd'); os.chdir('dd')\n"))
    entries, code = host.walk("/artifacts")
    assert code in (0, E2BIG)
    assert len(entries) == 4096 // 3
    assert max(len(p) for p in entries) <= 4095


def test_directories_without_permissions_are_walked(host):
    make(host, "mkdir d; touch d/f; chmod 0 d/f d")
    entries, code = host.walk("/artifacts")
    assert set(entries) == {b"d", b"d/f"} and code == 0
    assert host.read("/artifacts", "d/f")[1] == 0


def test_a_second_walk_shows_only_what_changed(host):
    make(host, "mkdir d; echo 1 > a; echo 2 > d/b; echo 3 > c; ln -s a l")
    entries, _ = host.walk("/artifacts", changed_only=True)
    assert set(entries) == {b"a", b"d/b", b"c"}
    for path in (b"a", b"d/b"):
        host.taken(entries[path])
    entries, _ = host.walk("/artifacts", changed_only=True)
    assert set(entries) == {b"c"}
    host.taken(entries[b"c"])
    assert not host.walk("/artifacts", changed_only=True)[0]
    make(host, "echo 4 > a; touch new; mv d/b d/renamed;"
               " rm c; echo 3 > c")
    entries, _ = host.walk("/artifacts", changed_only=True)
    assert set(entries) == {b"a", b"new", b"d/renamed", b"c"}
    assert len(host.walk("/artifacts")[0]) == 6


def test_a_change_that_keeps_size_and_mtime_is_seen(host):
    make(host, "echo 1 > a; touch -d @100 a")
    host.taken(host.walk("/artifacts", changed_only=True)[0][b"a"])
    make(host, "echo 2 > a; touch -d @100 a")
    assert set(host.walk("/artifacts", changed_only=True)[0]) == {b"a"}


def test_a_file_written_after_its_walk_is_not_taken_as_new(host):
    make(host, "echo 1 > a")
    entries, _ = host.walk("/artifacts", changed_only=True)
    make(host, "echo 22 > a")
    host.taken(entries[b"a"])  # what was copied is what the walk saw
    assert set(host.walk("/artifacts", changed_only=True)[0]) == {b"a"}


def test_what_is_taken_outlives_the_link(host):
    make(host, "echo 1 > a")
    host.taken(host.walk("/artifacts", changed_only=True)[0][b"a"])
    host.ping()
    host.reconnect()
    assert not host.walk("/artifacts", changed_only=True)[0]


def test_what_is_taken_counts_when_it_is_stored(host):
    make(host, "echo 1 > a; echo 2 > b")
    entries, _ = host.walk("/artifacts", changed_only=True)
    host.taken(entries[b"a"], stored=None)
    assert len(host.walk("/artifacts", changed_only=True)[0]) == 2
    host.taken(entries[b"b"], stored=False)
    assert len(host.walk("/artifacts", changed_only=True)[0]) == 2
    host.taken(entries[b"b"], stored=None)
    host.taken(entries[b"a"])
    assert not host.walk("/artifacts", changed_only=True)[0]


def test_taking_what_was_never_shown_is_harmless(host):
    make(host, "echo 1 > a")
    entries, _ = host.walk("/artifacts", changed_only=True)
    host.taken(entries[b"a"], path=b"nope")
    host.taken(entries[b"a"], root="/elsewhere")
    host.taken(entries[b"a"], path=b"a\0b")
    host.taken({"path": b"a", "mark": bytes(40)})
    assert set(host.walk("/artifacts", changed_only=True)[0]) == {b"a"}


def test_a_file_is_read_whole(host):
    make(host, "head -c 5000000 /dev/urandom > f")
    data, code = host.read("/artifacts", "f")
    run = host.run(shell("sha256sum < /artifacts/f"))
    assert hashlib.sha256(data).hexdigest() == run.output().split()[
        0].decode()
    assert (code, len(data)) == (0, 5000000)


@pytest.mark.parametrize("offset, limit, want", [
    (0, 4, b"0123"), (3, 4, b"3456"), (8, 100, b"89"), (10, 5, b""),
    (500, 5, b""), (2, 0, b""), (0, 10, b"0123456789")])
def test_a_part_of_a_file_is_read(host, offset, limit, want):
    make(host, "printf 0123456789 > f")
    assert host.read("/artifacts", "f", offset=offset,
                     until=offset + limit) == (want, 0)


# What makes it, the path, and what a read and a write of it end with.
HOSTILE = {
    "a link": ("ln -s /etc/passwd x", "x", ELOOP, 0),
    "a link to a sibling": ("echo 1 > f; ln -s f x", "x", ELOOP, 0),
    "a dangling link": ("ln -s /nope x", "x", ELOOP, 0),
    "a loop": ("ln -s x x", "x", ELOOP, 0),
    "a link before it": ("ln -s /etc d", "d/passwd", ELOOP, ENOTDIR),
    "a link on the way": ("ln -s /etc d", "d/e/f", ELOOP, ELOOP),
    "the parent": ("true", "../etc/passwd", EXDEV, EXDEV),
    "the parent from within": ("mkdir d", "d/../../f", EXDEV, EXDEV),
    "an absolute path": ("true", "/etc/passwd", EXDEV, EXDEV),
    "a directory": ("mkdir d", "d", EISDIR, EISDIR),
    "a directory's own name": ("mkdir d", "d/.", EISDIR, EISDIR),
    "a path that ends in a slash": ("mkdir d", "d/", EISDIR, EISDIR),
    "a fifo": ("mkfifo p", "p", EINVAL, 0),
    "nothing": ("true", "nope", ENOENT, 0),
    "no directory": ("true", "d/f", ENOENT, ENOENT),
    "an empty path": ("true", "", ENOENT, EISDIR),
    "a NUL": ("echo 1 > a", b"a\0b", EINVAL, EINVAL),
    "a long name": ("true", "n" * 300, ENAMETOOLONG, ENAMETOOLONG),
    "a file as a directory": ("echo 1 > f", "f/x", ENOTDIR, ENOTDIR),
}


@pytest.mark.parametrize("setup, path, read, write", HOSTILE.values(),
                         ids=HOSTILE.keys())
def test_only_regular_files_below_the_root_are_read_and_written(
        host, setup, path, read, write):
    make(host, setup)
    assert host.read("/artifacts", path) == (b"", read)
    before = listing(host, "/artifacts")
    assert host.write(path, b"x", root="/artifacts") == write
    if write:
        assert listing(host, "/artifacts") == before
    else:
        assert host.read("/artifacts", path) == (b"x", 0)


def test_a_socket_and_a_device_are_not_opened(host):
    run = host.run(python("import socket, os\n"
                          "s = socket.socket(socket.AF_UNIX)\n"
                          "s.bind('/artifacts/s')\n"))
    assert run.end().exit_code == 0
    assert host.read("/artifacts", "s")[1] == EINVAL
    assert host.read("/dev", "null")[1] == EINVAL


def test_reading_a_fifo_does_not_wake_its_writer(sandbox, host):
    run = host.start(shell("mkfifo /artifacts/p; echo up;"
                           " echo x > /artifacts/p; echo woken"))
    host.wait(lambda: run.output() == b"up\n", "the writer waits")
    assert host.read("/artifacts", "p")[1] == EINVAL
    host.ping()
    assert run.output() == b"up\n"
    host.stop(run)


def test_a_root_that_was_replaced_by_a_link_is_not_followed(host):
    host.run(shell("mkdir d; touch d/f; mv d e; ln -s /etc d"))
    assert host.read("/workspace/d", "passwd")[1] in (
        ELOOP, ENOTDIR)
    assert host.walk("/workspace/d")[1] in (ELOOP, ENOTDIR)


def test_a_growing_file_ends_at_its_maximum(sandbox, host):
    run = host.begin(Command(["sh", "-c", "yes > /artifacts/f"]))
    wait_until(lambda: os.path.getsize(
        sandbox.path("/artifacts/f")) > 3000000, "it is long enough")
    data, code = host.read("/artifacts", "f", until=3000000)
    assert (len(data), code) == (3000000, 0)
    host.stop(run)


def test_a_file_that_shrinks_ends_where_it_ends(sandbox, host):
    make(host, "head -c 3000000 /dev/zero > f")
    read = host.start_read("/artifacts", "f", window=100000)
    read.auto_credit = False
    host.wait(lambda: len(read.data) == 100000, "the window is full")
    os.truncate(sandbox.path("/artifacts/f"), 150000)
    host.credit(read, 100000)
    host.wait_close(read)
    assert (read.code, len(read.data)) == (0, 150000)


def test_a_read_stays_within_its_credit(host):
    make(host, "head -c 1000000 /dev/zero > f")
    read = host.start_read("/artifacts", "f", window=70000)
    read.auto_credit = False
    got = 0
    while got < 1000000:
        want = min(got + 70000, 1000000)
        host.wait(lambda w=want: len(read.data) == w, "more")
        host.ping()
        assert len(read.data) == want
        got = want
        host.credit(read, got)
    assert host.wait_close(read).code == 0


def test_taking_more_of_a_file_than_was_sent_is_malformed(host):
    make(host, "head -c 1000000 /dev/zero > f")
    read = host.start_read("/artifacts", "f", window=1000)
    read.auto_credit = False
    host.wait(lambda: read.data, "data")
    host.credit(read, 1001)
    host.wait_refused()


def test_a_closed_read_ends(sandbox, host):
    make(host, "head -c 1000000 /dev/zero > f")
    host.ping()  # a command's pipes are closed behind its end
    before = sandbox.open_files()
    read = host.start_read("/artifacts", "f", window=1000)
    read.auto_credit = False
    host.wait(lambda: read.data, "data")
    host.close(read)
    host.send("CLOSE", chan=read.number)  # again: nothing to do
    host.credit(read, 1000)  # on its way when it was closed
    host.ping()
    assert sandbox.open_files() == before


def test_too_many_reads_at_once_are_refused(host):
    make(host, "head -c 1000000 /dev/zero > f")
    reads = [host.start_read("/artifacts", "f", window=0)
             for _ in range(65)]
    assert host.wait_close(reads.pop()).code == EAGAIN
    host.ping()
    assert not any(r.closed for r in reads)
    for read in reads:
        host.close(read)
    assert len(host.read("/artifacts", "f")[0]) == 1000000


def test_many_reads_at_once_are_served_in_turn(host):
    make(host, "for i in 1 2 3 4 5 6 7 8; do"
               " head -c 2000000 /dev/urandom > f$i; done")
    seen = []
    host.on_data = lambda f: (seen.append(f["chan"]),
                              type(host).on_data(host, f))
    reads = [host.start_read("/artifacts", f"f{i}") for i in range(1, 9)]
    host.wait(lambda: any(r.closed for r in reads), "one is read")
    assert set(seen) == {r.number for r in reads}
    host.wait_close(*reads)


def test_a_large_walk_does_not_hold_up_a_run(host):
    make(host, "for d in 1 2 3 4; do mkdir $d;"
               " (cd $d; seq 10000 | xargs touch); done")
    walks = [host.open("OPEN_WALK", 50000, root="/artifacts")
             for i in range(3)]
    for walk in walks:
        walk.auto_credit = False
    run = host.start(Command(["echo", "quick"]))
    host.finish(run)
    assert not all(w.closed for w in walks)
    host.wait_close(*walks)


def test_files_end_with_the_link(sandbox, host):
    make(host, "head -c 1000000 /dev/zero > f")
    host.ping()  # a command's pipes are closed behind its end
    before = sandbox.open_files()
    reads = [host.start_read("/artifacts", "f", window=1000)
             for _ in range(10)]
    for read in reads:
        read.auto_credit = False
    write = host.start_write("w", root="/artifacts")
    host.wait(lambda: reads[9].data and write.limit, "they run")
    host.reconnect()
    host.ping()
    wait_until(lambda: sandbox.open_files() == before, "the files are closed")
    assert set(host.walk("/artifacts")[0]) == {b"f"}


def listing(host, where="/workspace"):
    return set(host.walk(where)[0])


def test_a_file_is_written_whole(host):
    data = os.urandom(3000000)
    assert host.write("f", data, mode=0o640) == 0
    assert host.read("/workspace", "f") == (data, 0)
    run = host.run(shell("stat -c '%a %u %g' f"))
    assert run.output() == b"640 1000 1000\n"
    assert host.write("f", b"", mode=0o755, owner=wire.ROOT) == 0
    run = host.run(shell("stat -c '%a %u %s' f"))
    assert run.output() == b"755 0 0\n"
    assert listing(host) == {b"f"}


def test_nothing_is_seen_of_a_write_before_its_end(host):
    assert host.write("f", b"old") == 0
    write = host.start_write("f")
    host.write_some(write, 0, b"new")
    host.ping()
    assert host.read("/workspace", "f") == (b"old", 0)
    host.send("STREAM_END", chan=write.number)
    assert host.wait_close(write).code == 0
    assert host.read("/workspace", "f") == (b"new", 0)


def test_a_write_that_is_closed_leaves_nothing(host):
    write = host.start_write("f")
    host.write_some(write, 0, b"x" * 100000)
    host.close(write)
    host.ping()
    assert listing(host) == set()


def test_a_write_before_its_credit_is_malformed(host):
    """Nothing may be sent before the agent has granted the first bytes; two
    frames that arrive together are more than it can have granted."""
    size = wire.WINDOW + 1
    host.last += 1
    host.send_raw(
        wire.pack_frame("OPEN_WRITE", chan=host.last, root="/workspace",
                        path="f")
        + wire.pack_frame("DATA", chan=host.last, bytes=bytes(size)))
    host.wait_refused()
    assert listing(host) == set()


def test_a_link_of_the_files_name_is_replaced_and_not_followed(host):
    host.run(shell("echo safe > target; ln -s target f"))
    assert host.write("f", b"new") == 0
    run = host.run(shell("cat target; stat -c %F f"))
    assert run.output() == b"safe\nregular file\n"


def test_a_write_that_fails_ends_with_its_errno(host):
    assert host.write("f", b"x", root="/etc") == EROFS
    assert host.write("f", b"x", root="/dev/fd") in (ENOTDIR, ELOOP)
