"""A backup of a server that runs, and what another begins with from it."""
import contextlib
import fcntl
import hashlib
import io
import json
import os
import pathlib
import signal
import sqlite3
import subprocess
import tarfile
import tempfile
import threading
import uuid

import pytest

from client import wait_for
from server import serving, users

BIG = 300_000  # bytes of output: its log is a file


def digest(data):
    return hashlib.sha256(data).hexdigest()


def output_of(client, run):
    _, _, data = client.request("GET", f"/mcp/events?run_id={run}")
    return data


class Load:
    """Clients that go on until they are told to stop."""

    def __init__(self, server, clients=3):
        self.server, self.stopped = server, threading.Event()
        self.done, self.failed = [], []
        self.threads = [threading.Thread(target=self.work, args=(i,))
                        for i in range(clients)]
        for t in self.threads:
            t.start()

    def work(self, i):
        client = self.server.client()
        try:
            while not self.stopped.is_set():
                text = uuid.uuid4().hex
                final = client.run(
                    f"load-{i}", f"echo {text}; echo {text} >"
                    " /artifacts/a.txt; head -c 40000 /dev/zero | tr '\\0' x")
                assert final["state"] == "completed", final
                self.done.append((f"load-{i}", final["run_id"], text))
        except Exception as e:  # whatever it is, a test must hear of it
            self.failed.append(repr(e))
        finally:
            client.close()

    def wait_for_more(self, n):
        want = len(self.done) + n

        def more():
            assert not self.failed, self.failed
            return len(self.done) >= want
        wait_for(more, 120, "runs under load")

    def stop(self):
        self.stopped.set()
        for t in self.threads:
            t.join()
        assert not self.failed, self.failed


def restore(build, data, file, *words, **env):
    """What sandboxctl came to."""
    return subprocess.run([os.path.join(build, "sandboxctl"), "--data-dir",
                           data, "restore", file, *words], capture_output=True,
                          text=True, check=False, timeout=120,
                          env={**os.environ, **users(build), **env})


def restored(make_server, server, file):
    """A server of its own that begins with the backup."""
    data = os.path.join(server.dir, "restored")
    done = restore(server.build, data, file)
    assert done.returncode == 0, done.stderr
    assert sorted(os.listdir(data)) == ["front", "instance"]
    return make_server(env={"DATA_DIR": data, "TAKEOVER": "forget"})


@pytest.mark.own
def test_a_backup_under_load_is_whole(server, client, make_server, place):
    big = client.run("big", f"head -c {BIG} /dev/urandom | base64 -w 0",
                     "head -c 100000 /dev/urandom > /artifacts/b")["run_id"]
    events = output_of(client, big)
    blob = client.request("GET", f"/artifacts/big/{big}/b")[2]
    client.start("slow", "echo begun; sleep 100000")
    load = Load(server)
    load.wait_for_more(10)
    before = list(load.done)
    made = server.ctl.json("backup", place / "all.tar")
    load.wait_for_more(5)
    load.stop()
    assert (place / "all.tar").stat().st_mode & 0o777 == 0o600
    assert os.listdir(place) == ["all.tar"]
    assert made["files"] > 0 and made["given_up_meanwhile"] == 0
    assert "backup" in [r["what"] for r in server.ctl.json("audit",
                                                           "list")["audit"]]

    with tarfile.open(place / "all.tar") as tar:
        names = tar.getnames()
    assert names[0] == "manifest.json"
    assert names[-2:] == ["mcp-sandboxd.db", "SHA256SUMS"]
    assert not [n for n in names if "key" in n]
    subprocess.run("tar xf all.tar && sha256sum --quiet -c SHA256SUMS",
                   cwd=place, shell=True, check=True, timeout=60)

    other = restored(make_server, server, place / "all.tar")
    assert other.sql("PRAGMA integrity_check") == [("ok",)]
    assert other.ctl("audit", "verify")
    assert other.get(f"/artifacts/big/{big}/b")[2] == blob
    client = other.client()
    assert digest(data_of(output_of(client, big))) == digest(data_of(events))
    for name, run, text in before:
        assert other.get(
            f"/artifacts/{name}/{run}/a.txt")[2].decode() == text + "\n"
        assert text.encode() in data_of(output_of(client, run))
    # What was under way is over there, and was not begun again.
    wait_for(lambda: other.sql(
        "SELECT state, end_reason FROM run WHERE identifier = 'slow'") ==
             [("failed", "sandbox_lost")], 60, "the end of what was under way")
    assert client.run("new", "echo here")["state"] == "completed"
    assert other.sql("SELECT count(*) FROM spec")[0][0] <= 1


def data_of(events):
    """The data lines: ids are signed by a key that is no part of a backup."""
    return b"\n".join(n for n in events.split(b"\n")
                      if n.startswith(b"data:"))


def test_a_file_that_is_there_stays(ctl, place):
    file = place / "f"
    file.write_text("mine")
    assert "--force replaces it" in ctl.refuses("backup", file)
    assert file.read_text() == "mine"
    ctl("backup", file, "--force")
    assert tarfile.is_tarfile(file)
    assert "No such file" in ctl.refuses("backup", place / "none/f", status=2)
    assert "a server runs there" in ctl.refuses("restore", file)


@pytest.mark.own
def test_a_server_at_rest_is_backed_up_too(server, client, place):
    run = client.run("box", "echo kept")["run_id"]
    server.stop()
    server.ctl("backup", place / "f")
    assert not os.path.exists(os.path.join(server.front_dir, "backup"))
    server.start()
    assert b"kept" in data_of(output_of(client, run))


def test_a_backup_belongs_to_who_makes_it(ctl, place):
    """What another user put where it is written is not written to."""
    partial, other = place / "f.partial", place / "x"

    def make_file():
        partial.write_text("mine")
        os.chown(partial, 65534, 65534)

    other.write_text("mine")
    for make in (make_file, lambda: os.link(other, partial),
                 lambda: os.symlink(other, partial)):
        make()
        done = ctl.run("backup", place / "f")
        assert done.returncode != 0 and ".partial: " in done.stderr
        assert sorted(os.listdir(place)) == ["f.partial", "x"]
        assert partial.read_text() == "mine"
        partial.unlink()


@pytest.mark.own
def test_a_backup_leaves_another_alone(server, ctl, place):
    """One that is under way keeps what it made."""
    there = pathlib.Path(server.front_dir, "backup")
    owner = os.stat(server.front_dir)
    there.mkdir()
    (there / "mcp-sandboxd.db").write_text("half")
    for path in (there, there / "mcp-sandboxd.db"):
        os.chown(path, owner.st_uid, owner.st_gid)
    lock = os.open(there, os.O_RDONLY)
    fcntl.flock(lock, fcntl.LOCK_EX)
    try:
        assert "another backup of" in ctl.refuses("backup", place / "f")
        assert os.listdir(there) == ["mcp-sandboxd.db"]
    finally:
        os.close(lock)
    ctl("backup", place / "f")
    assert not there.exists()


def test_a_backup_has_more_files_open_than_others_may(ctl, place):
    subprocess.run(["prlimit", "--nofile=9:1024", *ctl.base, "backup", place /
                    "f"], check=True, timeout=120, stdout=subprocess.DEVNULL)


def leave_megabytes(client):
    for _ in range(4):
        client.run("box", "head -c 3000000 /dev/urandom | base64; "
                   "head -c 3000000 /dev/urandom > /artifacts/a")


def end_at(ctl, words, moment, sig, **env):
    """Whether it had ended by itself at that moment."""
    proc = subprocess.Popen([*ctl.base, *words], stdout=subprocess.DEVNULL,
                            stderr=subprocess.DEVNULL,
                            env={**os.environ, **env})
    with contextlib.suppress(subprocess.TimeoutExpired):
        proc.wait(moment)
    proc.send_signal(sig)
    return proc.wait(60) == 0


@pytest.mark.own
def test_a_backup_that_is_ended_takes_its_copy_away(server, client, ctl, place):
    leave_megabytes(client)
    words = ("backup", place / "f", "--force")
    for i in range(12):
        end_at(ctl, words, i * 0.01, (signal.SIGTERM, signal.SIGINT)[i % 2])
        assert not os.path.exists(os.path.join(server.front_dir, "backup"))
    ctl(*words)
    assert os.listdir(place) == ["f"]


@pytest.mark.own
def test_a_backup_leaves_room_for_runs(server, ctl, place):
    """What its copy takes of the server's disk would end them."""
    st = os.statvfs(server.data)
    if st.f_bavail * st.f_frsize >= 1 << 40:
        pytest.skip("the disk has more room than a reserve can be")
    server.stop()
    server.extra["DISK_RESERVE_MB"] = str(
        min(1048576, st.f_bavail * st.f_frsize // (1 << 20) * 2))
    server.start(wait=False)  # it is never ready so
    wait_for(lambda: ctl.run("status").returncode == 0, 60, "the server")
    assert "DISK_RESERVE_MB" in ctl.refuses("backup", place / "f")
    assert os.listdir(place) == []
    assert not os.path.exists(os.path.join(server.front_dir, "backup"))
    server.stop()
    ctl("backup", place / "f")  # nobody needs it now
    assert os.listdir(place) == ["f"]


def test_artifacts_elsewhere_are_not_left_behind(make_server, place):
    elsewhere = place / "artifacts"
    elsewhere.mkdir()
    place.chmod(0o755)
    elsewhere.chmod(0o777)
    server = make_server(env={"ARTIFACTS_DIR": elsewhere})
    server.client().run("box", "echo hello > /artifacts/a")
    server.ctl("backup", place / "up")
    server.stop()
    assert "ARTIFACTS_DIR" in server.ctl.refuses("backup", place / "f")
    assert sorted(os.listdir(place)) == ["artifacts", "up"]
    server.ctl("backup", place / "down", env={"ARTIFACTS_DIR": str(elsewhere)})
    for name in ("up", "down"):
        with tarfile.open(place / name) as tar:
            assert [n for n in tar.getnames() if n.startswith("artifacts/")]


@pytest.mark.own
@pytest.mark.skipif(os.geteuid() != 0, reason="root has other users")
@pytest.mark.parametrize("is_there", [False, True])
def test_a_restore_is_passed_through_by_its_user(server, good, place,
                                                 is_there):
    """Whatever root's umask is, and how root made the directory."""
    file, data = place / "f", place / "a/data"
    owner = os.stat(server.front_dir)
    place.chmod(0o711)
    file.write_bytes(good)
    if is_there:
        (data / "front").mkdir(parents=True)
        data.chmod(0o700)
        os.chown(data / "front", owner.st_uid, owner.st_gid)
    before = os.umask(0o077)
    try:
        done = restore(server.build, data, file, "--force")
    finally:
        os.umask(before)
    assert done.returncode == 0, done.stderr
    st = (data / "front").stat()
    assert (st.st_uid, st.st_mode & 0o777) == (owner.st_uid, 0o700)
    assert (data / "front/mcp-sandboxd.db").stat().st_uid == owner.st_uid


@pytest.mark.own
def test_the_same_directory_goes_back_to_what_it_was(server, client, ctl,
                                                     place):
    """Its sandboxes are taken over, and what is done there stays done once."""
    client.run("box", "echo first > kept")
    run = client.start(
        "box",
        "while [ ! -e go ]; do sleep 0.1; done; echo once >> effect")["run_id"]
    ctl("backup", place / "f")
    client.run("box", "touch go")
    client.wait_state(run, "completed")
    later = client.run("box", "echo later")["run_id"]
    server.stop()
    env = users(server.build)
    assert "--force" in ctl.refuses("restore", place / "f", env=env)
    text = ctl("restore", place / "f", "--force", env=env)
    before, = (n for n in os.listdir(server.data) if n.startswith("before-"))
    assert before in text
    assert os.path.exists(os.path.join(server.data, before, "front",
                                       "mcp-sandboxd.db"))
    server.start()  # no --adopt: the instance is the one it was
    client = server.client()
    assert client.out("box", "cat kept effect") == "first\nonce\n"
    client.wait_state(run, "failed")
    assert client.request("GET", f"/mcp/runs/{later}")[0] == 404


@pytest.fixture(scope="module")
def good(build, engine, tmp_path_factory):
    """A small backup, in memory."""
    file = tmp_path_factory.mktemp("backup") / "f"
    with serving(build, engine) as server:
        server.client().run(
            "box",
            "head -c 30000 /dev/zero | tr '\\0' x; echo hello > /artifacts/a")
        server.ctl("backup", file)
    return file.read_bytes()


def members(data):
    with tarfile.open(fileobj=io.BytesIO(data)) as tar:
        return [(m, tar.extractfile(m).read()) for m in tar.getmembers()]


def archive(files, sums=True):
    """files: (TarInfo, bytes); the sums are made to fit."""
    out, lines = io.BytesIO(), []
    with tarfile.open(fileobj=out, mode="w", format=tarfile.PAX_FORMAT) as tar:
        for info, data in files:
            if info.name == "SHA256SUMS" and sums:
                data = "".join(lines).encode()
            elif info.isreg():
                lines.append(f"{digest(data)}  {info.name}\n")
            info.size = len(data) if info.isreg() else 0
            tar.addfile(info, io.BytesIO(data))
    return out.getvalue()


def entry(name, kind=tarfile.REGTYPE, target=""):
    info = tarfile.TarInfo(name)
    info.type, info.linkname = kind, target
    return info, b"bytes"


def put(files, new, at=1):
    return files[:at] + [new] + files[at:]


def with_manifest(files, **changes):
    manifest = {**json.loads(files[0][1]), **changes}
    return [(files[0][0], json.dumps(manifest).encode()), *files[1:]]


def blob_at(files, folder="artifacts/"):
    return next(i for i, (m, _) in enumerate(files)
                if m.name.startswith(folder))


def with_data(files, at, data):
    return [*files[:at], (files[at][0], data), *files[at + 1:]]


def newer(files):
    """The same, its database of a version that is not made yet."""
    at = [m.name for m, _ in files].index("mcp-sandboxd.db")
    with tempfile.NamedTemporaryFile() as f:
        f.write(files[at][1])
        f.flush()
        db = sqlite3.connect(f.name)
        db.execute("PRAGMA user_version = 9999")
        db.commit()
        db.close()
        return with_data(files, at, pathlib.Path(f.name).read_bytes())


def broken_page(files):
    at = [m.name for m, _ in files].index("mcp-sandboxd.db")
    data = bytearray(files[at][1])
    data[4096 * 3:4096 * 4] = b"\xff" * 4096
    return with_data(files, at, bytes(data))


HOSTILE = {
    "traversal": lambda f: archive(put(f, entry("spool/../../x"))),
    "absolute": lambda f: archive(put(f, entry("/etc/mcp-hostile"))),
    "other name": lambda f: archive(put(f, entry("session.key"))),
    "dots": lambda f: archive(put(f, entry("artifacts/1/../passwd"))),
    "symlink": lambda f: archive(
        put(f, entry("spool", tarfile.SYMTYPE, "/tmp"))),
    "hard link": lambda f: archive(
        put(f, entry("spool/aa", tarfile.LNKTYPE, "/etc/passwd"))),
    "device": lambda f: archive(put(f, entry("spool/ab", tarfile.CHRTYPE))),
    "directory": lambda f: archive(put(f, entry("spool", tarfile.DIRTYPE))),
    "twice": lambda f: archive(put(f, f[1])),
    "behind the end": lambda f: archive([*f, entry("manifest.json")]),
    "no manifest": lambda f: archive(f[1:]),
    "no database": lambda f: archive(
        [n for n in f if n[0].name != "mcp-sandboxd.db"]),
    "no sums": lambda f: archive(f[:-1]),
    "wrong sums": lambda f: archive(
        [*f[:-1], (f[-1][0], f[-1][1].replace(b"a", b"b"))], sums=False),
    "changed artifact": lambda f: archive(
        with_data(f, blob_at(f), f[blob_at(f)][1][:-1] + b"x")),
    "newer form": lambda f: archive(with_manifest(f, version=2)),
    "other form": lambda f: archive(with_manifest(f, format="x")),
    "instance": lambda f: archive(with_manifest(f, instance="../../x")),
    "other instance": lambda f: archive(with_manifest(f, instance="a" * 32)),
    "newer database": lambda f: archive(newer(f)),
    "damaged database": lambda f: archive(broken_page(f)),
    "no tar": lambda f: b"x" * 20000,
    "empty": lambda f: b"",
}


def try_restore(build, place, data, *words):
    """(what it came to, where) in a directory that others look at."""
    (place / "f").write_bytes(data)
    return restore(build, place / "data", place / "f", *words,
                   RUN_AS_FRONT=""), place / "data"


@pytest.mark.parametrize("kind", HOSTILE)
def test_what_is_no_backup_is_not_restored(build, good, place, kind):
    done, target = try_restore(build, place, HOSTILE[kind](members(good)))
    assert done.returncode == 1, done.stdout
    assert done.stderr.startswith("sandboxctl: "), done.stderr
    assert os.listdir(target) == []
    assert not os.path.exists("/etc/mcp-hostile")
    assert sorted(os.listdir(place)) == ["data", "f"]


def test_half_a_backup_is_not_restored(build, good, place):
    for i in range(1, 20):
        done, target = try_restore(build, place, good[:len(good) * i // 20])
        assert done.returncode == 1, i
        assert os.listdir(target) == []
    done, target = try_restore(build, place, good)
    assert done.returncode == 0, done.stderr
    assert sorted(os.listdir(target)) == ["front", "instance"]


@pytest.mark.own
def test_killed_in_the_middle_nothing_is_wrong(server, client, ctl, place):
    """At many moments: a backup that is killed is none, and a restore did
    nothing or all of it."""
    leave_megabytes(client)
    file, env = place / "f", users(server.build)
    ended = [end_at(ctl, ["backup", file], i * 0.008, signal.SIGKILL)
             for i in range(12)]
    if not any(ended):
        assert not file.exists()
    wait_for(lambda: ctl.run("backup", file, "--force").returncode == 0, 60,
             "a backup after those that were killed")
    assert not (place / "f.partial").exists()
    assert client.run("box", "true")["state"] == "completed"
    server.stop()
    for i in range(12):
        end_at(ctl, ["restore", file, "--force"], i * 0.008, signal.SIGKILL,
               **env)
        wait_for(lambda: is_free(server.data), 60, "the directory's lock")
        assert server.sql("PRAGMA integrity_check") == [("ok",)]
        assert server.sql("SELECT count(*) FROM run")[0][0] >= 4
    ctl("restore", file, "--force", env=env)
    server.start()
    assert server.client().run("box", "true")["state"] == "completed"


def is_free(data):
    return subprocess.run(["flock", "-n", data, "true"], check=False,
                          timeout=60).returncode == 0


def leave(client, name):
    return client.run(name, f"printf {name} >/artifacts/a; printf other-{name} "
                      ">/artifacts/b; head -c 30000 /dev/zero | tr '\\0' x")


@pytest.mark.own
def test_a_backup_leaves_out_what_is_damaged_and_says_so(server, client,
                                                         make_server, place):
    """Bytes that changed under their name, a file that is short, and one that
    is not there; the rest is restored."""
    left = {n: leave(client, n) for n in ("good", "bytes", "short", "gone")}
    runs = {n: run["run_id"] for n, run in left.items()}
    blobs = {n: server.blob_of(run["artifacts"][0]) for n, run in left.items()}
    with open(blobs["bytes"], "r+b") as f:
        f.write(b"BYTES")
    os.truncate(blobs["short"], 2)
    os.unlink(blobs["gone"])
    os.truncate(server.log_of(runs["short"]), 20000)
    os.unlink(server.log_of(runs["gone"]))
    said = server.ctl.refuses("backup", place / "f")
    assert "without 5 files that are damaged" in said
    told = [n for n in said.splitlines() if "is left out: " in n]
    damaged = [os.path.basename(blobs[n]) for n in ("bytes", "short", "gone")]
    for name in (*damaged, runs["short"], runs["gone"]):
        assert sum(name in n for n in told) == 1, (name, told)
    assert len(told) == 5

    other = restored(make_server, server, place / "f")
    for name in ("bytes", "short", "gone"):
        other.check_lost(f"/artifacts/{name}/{runs[name]}/a")
        assert other.get(
            f"/artifacts/{name}/{runs[name]}/b")[2] == f"other-{name}".encode()
    for name in ("short", "gone"):
        other.check_lost(f"/api/v1/runs/{runs[name]}/output")
    for name in ("good", "bytes"):
        assert len(other.get(f"/api/v1/runs/{runs[name]}/output")[2]) == 30000
    assert other.get(f"/artifacts/good/{runs['good']}/a")[2] == b"good"
    # What it knows to be lost is no news, and nothing is missing of it.
    assert other.ctl.json("backup", place / "again")["damaged"] == 0
    restored(make_server, other, place / "again")


def spoiled(files, folder="artifacts/"):
    """(name, files) with one that is not what its name says."""
    at = blob_at(files, folder)
    return files[at][0].name, with_data(files, at, b"X" * len(files[at][1]))


@pytest.mark.parametrize("heal", [False, True])
def test_a_restore_can_leave_out_what_is_damaged(
        make_server, build, good, place, heal):
    """As it was made of a damaged file, or damaged since."""
    name, files = spoiled(members(good))
    data = archive(files, sums=not heal)
    done, target = try_restore(build, place, data)
    assert done.returncode == 1
    assert name in done.stderr and "--drop-damaged" in done.stderr
    done, _ = try_restore(build, place, data, "--drop-damaged")
    assert done.returncode == 0, done.stderr
    assert f"{name} is left out" in done.stderr
    assert "1 artifacts were left out" in done.stdout
    place.chmod(0o755)
    server = make_server(env={"DATA_DIR": target, "TAKEOVER": "forget",
                              "RUN_AS_FRONT": "", "RUN_AS_WORKER": ""})
    run = uuid.UUID(bytes=server.sql("SELECT uuid FROM run")[0][0])
    server.check_lost(f"/artifacts/box/{run}/a")
    assert len(server.get(f"/api/v1/runs/{run}/output")[2]) == 30000


def test_a_restore_drops_nothing_but_artifacts(build, good, place):
    _, files = spoiled(members(good), "spool/")
    done, _ = try_restore(build, place, archive(files, sums=False),
                          "--drop-damaged")
    assert done.returncode == 1 and "SHA256SUMS" in done.stderr
