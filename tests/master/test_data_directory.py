"""DATA_DIR: whose it is, what is moved, which ways to it are refused."""
import os
import pwd
import stat

import pytest

needs_root = pytest.mark.skipif(os.geteuid() != 0, reason="changes owners")

# Two accounts that every Debian has stand for the front's and the workers'.
TWO = {"RUN_AS_FRONT": "daemon", "RUN_AS_WORKER": "nobody"}
OLD_FILES = ("session.key", "mcp-sandboxd.db", "mcp-sandboxd.db-wal",
             "spool/ab/run.log", "artifacts/1/cd/blob")


def uid(name):
    return pwd.getpwnam(name).pw_uid


def mode(path):
    return stat.S_IMODE(os.lstat(path).st_mode)


def old_layout(data, owner):
    """What the versions before decision 22 leave behind."""
    os.makedirs(os.path.join(data, "links", "a-sandbox"))
    for name in OLD_FILES:
        path = os.path.join(data, name)
        os.makedirs(os.path.dirname(path), exist_ok=True)
        with open(path, "w", encoding="ascii") as f:
            f.write(name)
    for top, dirs, files in os.walk(data):
        for name in dirs + files:
            os.chown(os.path.join(top, name), owner, owner)
    os.chown(data, owner, owner)
    os.chmod(data, 0o711)


@needs_root
def test_each_directory_has_its_owner(make):
    s = make(env=TWO)
    s.wait_ready()
    assert os.stat(s.data).st_uid == 0
    assert mode(s.data) == 0o711
    front, links = (os.path.join(s.data, n) for n in ("front", "links"))
    assert os.stat(front).st_uid == uid("daemon")
    assert mode(front) == 0o700
    assert os.stat(links).st_uid == uid("nobody")
    assert mode(links) == 0o711


@needs_root
def test_the_layout_of_old_is_moved_once_and_said(make):
    s = make(start=False, env=TWO)
    old_layout(s.data, uid("daemon"))
    before = os.stat(os.path.join(s.data, "links", "a-sandbox")).st_ino
    s.start()
    s.wait_ready()
    assert "had the layout of an earlier version: 5 files" in s.stderr()
    for name in OLD_FILES:
        path = os.path.join(s.data, "front", name)
        with open(path, encoding="ascii") as f:
            assert f.read() == name
        assert os.stat(path).st_uid == uid("daemon")
    assert sorted(os.listdir(s.data)) == [
        "admin.sock", "front", "instance", "links", "secrets.key"]
    assert os.stat(s.data).st_uid == 0
    # Sandboxes that run have theirs mounted.
    assert os.stat(os.path.join(s.data, "links", "a-sandbox")).st_ino == before
    s.stop()
    s.start()
    s.wait_log("] ready\n", times=2)
    assert s.stderr().count("layout of an earlier version") == 1


@needs_root
def test_a_move_that_was_broken_off_goes_on(make):
    s = make(start=False, env=TWO)
    old_layout(s.data, uid("daemon"))
    os.mkdir(os.path.join(s.data, "front"))
    os.rename(os.path.join(s.data, "spool"),
              os.path.join(s.data, "front", "spool"))
    s.start()
    s.wait_ready()
    assert sorted(os.listdir(os.path.join(s.data, "front"))) == [
        "artifacts", "mcp-sandboxd.db", "mcp-sandboxd.db-wal", "session.key",
        "spool"]


@needs_root
def test_a_database_in_both_places_is_nobodys_guess(make):
    s = make(start=False, env=TWO)
    old_layout(s.data, uid("daemon"))
    os.mkdir(os.path.join(s.data, "front"))
    with open(os.path.join(s.data, "front", "mcp-sandboxd.db"), "w",
              encoding="ascii") as f:
        f.write("newer")
    s.start()
    assert s.wait_exit() == 78
    assert "mcp-sandboxd.db is in" in s.stderr()
    # Nothing was moved: all or nothing.
    for name in OLD_FILES:
        assert os.path.exists(os.path.join(s.data, name))
    assert os.listdir(os.path.join(s.data, "front")) == ["mcp-sandboxd.db"]


def test_an_ordinary_users_layout_of_old_is_moved_too(make):
    s = make(start=False)
    old_layout(s.data, os.geteuid())
    s.start()
    s.wait_ready()
    assert sorted(os.listdir(s.data)) == [
        "admin.sock", "front", "instance", "links", "secrets.key"]


@needs_root
@pytest.mark.parametrize("name", ["front", "links"])
def test_a_planted_link_is_not_followed(make, name):
    """A front of old, which owned DATA_DIR, may have left it there."""
    s = make(start=False, env=TWO)
    victim = os.path.join(s.dir, "victim")
    os.mkdir(victim, mode=0o700)
    os.mkdir(s.data)
    os.symlink(victim, os.path.join(s.data, name))
    s.start()
    assert s.wait_exit() == 71
    assert f"open {name}" in s.stderr()
    assert os.stat(victim).st_uid == 0
    assert mode(victim) == 0o700


@needs_root
def test_what_others_might_write_is_taken_from_them(make):
    s = make(start=False, env=TWO)
    os.mkdir(s.data)
    os.mkdir(os.path.join(s.data, "links"))
    for path in (s.data, os.path.join(s.data, "links")):
        os.chmod(path, 0o1777)
    s.start()
    s.wait_ready()
    for path in (s.data, os.path.join(s.data, "links")):
        assert mode(path) == 0o755


@needs_root
@pytest.mark.parametrize("change, said", [
    (lambda path: os.chown(path, uid("games"), 0), "belongs to uid"),
    (lambda path: os.chmod(path, 0o777), "everybody may write"),
    (lambda path: (os.chown(path, 0, 12345), os.chmod(path, 0o775)),
     "group 12345 may write")])
def test_a_way_that_others_could_change_is_refused(make, change, said):
    s = make(start=False, env=dict(TWO, DATA_DIR="a/b/data"))
    above = os.path.join(s.dir, "a")
    os.mkdir(above)
    change(above)
    s.start()
    assert s.wait_exit() == 78
    assert said in s.stderr() and "Set DATA_DIR to" in s.stderr()
    assert s.events() == []


@needs_root
@pytest.mark.parametrize("bits, gid", [(0o1777, 12345), (0o775, 0)])
def test_a_sticky_directory_of_root_and_group_0_are_fine(make, bits, gid):
    s = make(start=False, env=dict(TWO, DATA_DIR="a/b/data"))
    above = os.path.join(s.dir, "a")
    os.mkdir(above)
    os.chown(above, 0, gid)
    os.chmod(above, bits)
    s.start()
    s.wait_ready()


def test_in_one_user_mode_such_a_way_is_only_said(make):
    s = make(start=False, env={"DATA_DIR": "a/b/data"})
    above = os.path.join(s.dir, "a")
    os.mkdir(above)
    os.chmod(above, 0o777)
    s.start()
    s.wait_ready()
    assert "everybody may write in" in s.stderr()


def said_by(s):
    """What went wrong, line by line."""
    return [line for line in s.stderr().splitlines()
            if " error " in line or " warn " in line]


@needs_root
@pytest.mark.parametrize("who, stays", [
    ("daemon", "RUN_AS_WORKER"), ("nobody", "RUN_AS_FRONT")])
def test_a_way_that_is_shut_ends_a_start_with_one_sentence(make, who, stays):
    """As below root's home, whose mode is 700: for either of the two users."""
    s = make(start=False, env=dict(TWO, DATA_DIR="home/a/data"))
    s.env[stays] = ""
    home = os.path.join(s.dir, "home")
    os.makedirs(os.path.join(home, "a"))
    os.chmod(home, 0o700)
    s.start()
    assert s.wait_exit() == 78
    said, = said_by(s)
    assert f"DATA_DIR {home}/a/data: user {who}: " in said
    assert f"may not pass through {home}: set DATA_DIR to" in said
    assert s.events() == [] and os.listdir(os.path.join(home, "a")) == []
    os.chmod(home, 0o711)
    s.start()
    s.wait_ready()


@needs_root
def test_a_group_that_may_pass_does(make):
    s = make(start=False, env=dict(TWO, DATA_DIR="home/data",
                                   RUN_AS_WORKER=""))
    home = os.path.join(s.dir, "home")
    os.mkdir(home)
    os.chown(home, 0, pwd.getpwnam("daemon").pw_gid)
    os.chmod(home, 0o710)
    s.start()
    s.wait_ready()


@needs_root
def test_a_data_directory_that_is_shut_itself_is_opened(make):
    s = make(start=False, env=TWO)
    os.mkdir(s.data, 0o700)
    s.start()
    s.wait_ready()
    assert mode(s.data) == 0o711


@needs_root
def test_artifacts_in_the_data_directory_itself_are_the_fronts(make):
    s = make(start=False, env=TWO)
    kept = os.path.join(s.data, "artifacts")
    s.env["ARTIFACTS_DIR"] = kept
    old_layout(s.data, uid("daemon"))
    s.start()
    s.wait_ready()
    assert os.path.exists(os.path.join(kept, "1/cd/blob"))
    assert os.stat(kept).st_uid == uid("daemon")
    assert "4 files and directories are in" in s.stderr()


@needs_root
def test_artifacts_in_a_new_data_directory_are_made_for_the_front(make):
    s = make(start=False, env=TWO)
    s.env["ARTIFACTS_DIR"] = os.path.join(s.data, "kept/")
    s.start()
    s.wait_ready()
    assert os.stat(os.path.join(s.data, "kept")).st_uid == uid("daemon")


def test_artifacts_to_be_made_where_the_workers_write_are_refused(make):
    s = make(start=False)
    s.env["ARTIFACTS_DIR"] = s.data + "/links/x"
    s.start()
    assert s.wait_exit() == 78
    assert "ARTIFACTS_DIR" in s.stderr()


@pytest.mark.parametrize("where", ["", "/links", "/links/x", "/.."])
def test_artifacts_are_not_where_the_workers_write(make, where):
    s = make(start=False)
    s.env["ARTIFACTS_DIR"] = s.data + where
    os.makedirs(s.data + where.replace("..", ""), exist_ok=True)
    s.start()
    assert s.wait_exit() == 78
    assert "ARTIFACTS_DIR" in s.stderr()
