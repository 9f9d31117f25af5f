"""A backup of a server that runs, and what another begins with from it."""
import contextlib
import fcntl
import hashlib
import io
import json
import os
import shutil
import signal
import sqlite3
import subprocess
import tarfile
import tempfile
import threading
import uuid

import pytest

from client import wait_for
from screens import Ctl

BIG = 300_000  # bytes of output: its log is a file


@pytest.fixture
def place():
    """Where root alone has its backups."""
    path = tempfile.mkdtemp(prefix="mcp-backup-")
    yield path
    shutil.rmtree(path)


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


def restored(make_server, server, file, env=None, words=()):
    """A server of its own that begins with the backup."""
    data = os.path.join(tempfile.mkdtemp(prefix="mcp-restored-"), "data")
    os.chmod(os.path.dirname(data), 0o755)
    done = subprocess.run(
        [os.path.join(server.build, "sandboxctl"), "--data-dir", data,
         "restore", file, *words], capture_output=True, text=True,
        check=False, timeout=120, env=environment(server))
    assert done.returncode == 0, done.stderr
    assert sorted(os.listdir(data)) == ["front", "instance"]
    return make_server(env={"DATA_DIR": data, "TAKEOVER": "forget",
                            **(env or {})})


def environment(server):
    """Whose the front's files are, as the server's settings say."""
    env = server.environment()
    return {k: env[k] for k in env
            if k in ("PATH", "RUN_AS_FRONT") or k.endswith("SAN_OPTIONS")}


def rows(path, query):
    db = sqlite3.connect(f"file:{path}?mode=ro", uri=True)
    try:
        return db.execute(query).fetchall()
    finally:
        db.close()


def test_a_backup_under_load_is_whole(make_server, place):
    server = make_server()
    file = os.path.join(place, "all.tar")
    with contextlib.closing(server.client()) as client:
        big = client.run("big", f"head -c {BIG} /dev/urandom | base64 -w 0; "
                         "head -c 100000 /dev/urandom > /artifacts/b")
        events = output_of(client, big["run_id"])
        blob = client.request(
            "GET", f"/artifacts/big/{big['run_id']}/b")[2]
        client.start("slow", "echo begun; sleep 100000")
        load = Load(server)
        load.wait_for_more(10)
        before = list(load.done)
        ctl = Ctl(server)
        made = ctl.json("backup", file)
        load.wait_for_more(5)
        load.stop()
    assert os.stat(file).st_mode & 0o777 == 0o600
    assert os.listdir(place) == ["all.tar"]
    assert made["files"] > 0 and made["given_up_meanwhile"] == 0
    assert "backup" in [r["what"] for r in ctl.json("audit", "list")["audit"]]

    with tarfile.open(file) as tar:
        names = tar.getnames()
    assert names[0] == "manifest.json"
    assert names[-2:] == ["mcp-sandboxd.db", "SHA256SUMS"]
    assert not [n for n in names if "key" in n]
    subprocess.run(f"cd {place} && tar xf all.tar && sha256sum --quiet -c "
                   "SHA256SUMS", shell=True, check=True, timeout=60)

    other = restored(make_server, server, file)
    assert rows(other.database, "PRAGMA integrity_check") == [("ok",)]
    assert Ctl(other)("audit", "verify")
    with contextlib.closing(other.client()) as client:
        assert client.request(
            "GET", f"/artifacts/big/{big['run_id']}/b")[2] == blob
        kept = output_of(client, big["run_id"])
        assert digest(data_of(kept)) == digest(data_of(events))
        for name, run, text in before:
            assert client.request("GET", f"/artifacts/{name}/{run}/a.txt")[
                2].decode() == text + "\n"
            assert text.encode() in data_of(output_of(client, run))
        # What was under way is over there, and was not begun again.
        wait_for(lambda: rows(
            other.database, "SELECT state, end_reason FROM run WHERE "
            "identifier = 'slow'") == [("failed", "sandbox_lost")], 60,
            "the end of what was under way")
        assert client.run("new", "echo here")["state"] == "completed"
    assert rows(other.database, "SELECT count(*) FROM spec")[0][0] <= 1


def data_of(events):
    """The data lines: ids are signed by a key that is no part of a backup."""
    return b"\n".join(n for n in events.split(b"\n")
                      if n.startswith(b"data:"))


def test_a_file_that_is_there_stays(server, place):
    file = os.path.join(place, "f")
    with open(file, "w", encoding="ascii") as f:
        f.write("mine")
    ctl = Ctl(server)
    done = ctl.run("backup", file)
    assert done.returncode == 1 and "--force replaces it" in done.stderr
    with open(file, encoding="ascii") as f:
        assert f.read() == "mine"
    ctl("backup", file, "--force")
    assert tarfile.is_tarfile(file)
    done = ctl.run("backup", os.path.join(place, "none", "f"))
    assert done.returncode == 2 and "No such file" in done.stderr
    done = ctl.run("restore", file)
    assert done.returncode == 1 and "a server runs there" in done.stderr


def test_a_server_at_rest_is_backed_up_too(make_server, place):
    server = make_server()
    with contextlib.closing(server.client()) as client:
        run = client.run("box", "echo kept")["run_id"]
    server.stop()
    file = os.path.join(place, "f")
    Ctl(server)("backup", file)
    assert not os.path.exists(os.path.join(server.front_dir, "backup"))
    server.start()
    with contextlib.closing(server.client()) as client:
        assert b"kept" in data_of(output_of(client, run))


def test_a_backup_belongs_to_who_makes_it(server, place):
    """What another user put where it is written is not written to."""
    file, other = os.path.join(place, "f"), os.path.join(place, "x")

    def make_file(path):
        with open(path, "w", encoding="ascii") as f:
            f.write("mine")
        os.chown(path, 65534, 65534)

    with open(other, "w", encoding="ascii") as f:
        f.write("mine")
    for make in (make_file, lambda path: os.link(other, path),
                 lambda path: os.symlink(other, path)):
        make(file + ".partial")
        done = Ctl(server).run("backup", file)
        assert done.returncode != 0 and ".partial: " in done.stderr
        assert sorted(os.listdir(place)) == ["f.partial", "x"]
        with open(file + ".partial", encoding="ascii") as f:
            assert f.read() == "mine"
        os.unlink(file + ".partial")


def test_a_backup_leaves_another_alone(make_server, place):
    """One that is under way keeps what it made."""
    server = make_server()
    there = os.path.join(server.front_dir, "backup")
    copy = os.path.join(there, "mcp-sandboxd.db")
    owner = os.stat(server.front_dir)
    os.mkdir(there)
    with open(copy, "w", encoding="ascii") as f:
        f.write("half")
    for path in (there, copy):
        os.chown(path, owner.st_uid, owner.st_gid)
    lock = os.open(there, os.O_RDONLY)
    fcntl.flock(lock, fcntl.LOCK_EX)
    try:
        done = Ctl(server).run("backup", os.path.join(place, "f"))
        assert done.returncode == 1
        assert "another backup of" in done.stderr
        assert os.listdir(there) == ["mcp-sandboxd.db"]
    finally:
        os.close(lock)
    Ctl(server)("backup", os.path.join(place, "f"))
    assert not os.path.exists(there)


def test_a_backup_has_more_files_open_than_others_may(server, place):
    program = os.path.join(server.build, "sandboxctl")
    subprocess.run(["prlimit", "--nofile=9:1024", program, "--data-dir",
                    server.data, "backup", os.path.join(place, "f")],
                   check=True, timeout=120, stdout=subprocess.DEVNULL)


def test_a_backup_that_is_ended_takes_its_copy_away(make_server, place):
    server = make_server()
    ctl = Ctl(server)
    with contextlib.closing(server.client()) as client:
        for _ in range(4):
            client.run("box", "head -c 3000000 /dev/urandom | base64; "
                       "head -c 3000000 /dev/urandom > /artifacts/a")
    file = os.path.join(place, "f")
    for i in range(12):
        proc = subprocess.Popen(
            [*ctl.base, "backup", file, "--force"], stdout=subprocess.DEVNULL,
            stderr=subprocess.DEVNULL)
        with contextlib.suppress(subprocess.TimeoutExpired):
            proc.wait(i * 0.01)
        proc.send_signal((signal.SIGTERM, signal.SIGINT)[i % 2])
        proc.wait(60)
        assert not os.path.exists(os.path.join(server.front_dir, "backup"))
    ctl("backup", file, "--force")
    assert os.listdir(place) == ["f"]


def test_a_backup_leaves_room_for_runs(make_server, place):
    """What its copy takes of the server's disk would end them."""
    server = make_server()
    ctl = Ctl(server)
    file = os.path.join(place, "f")
    st = os.statvfs(server.data)
    if st.f_bavail * st.f_frsize >= 1 << 40:
        pytest.skip("the disk has more room than a reserve can be")
    server.stop()
    server.extra["DISK_RESERVE_MB"] = str(
        min(1048576, st.f_bavail * st.f_frsize // (1 << 20) * 2))
    server.start(wait=False)  # it is never ready so
    wait_for(lambda: ctl.run("status").returncode == 0, 60, "the server")
    done = ctl.run("backup", file)
    assert done.returncode == 1 and "DISK_RESERVE_MB" in done.stderr
    assert os.listdir(place) == []
    assert not os.path.exists(os.path.join(server.front_dir, "backup"))
    server.stop()
    ctl("backup", file)  # nobody needs it now
    assert os.listdir(place) == ["f"]


def test_artifacts_elsewhere_are_not_left_behind(make_server, place):
    elsewhere = tempfile.mkdtemp(prefix="mcp-artifacts-")
    os.chmod(elsewhere, 0o777)
    server = make_server(env={"ARTIFACTS_DIR": elsewhere})
    ctl = Ctl(server)
    try:
        with contextlib.closing(server.client()) as client:
            client.run("box", "echo hello > /artifacts/a")
        ctl("backup", os.path.join(place, "up"))
        server.stop()
        done = ctl.run("backup", os.path.join(place, "f"))
        assert done.returncode == 1 and "ARTIFACTS_DIR" in done.stderr
        assert os.listdir(place) == ["up"]
        ctl("backup", os.path.join(place, "down"),
            env={"ARTIFACTS_DIR": elsewhere})
    finally:
        shutil.rmtree(elsewhere)
    for name in ("up", "down"):
        with tarfile.open(os.path.join(place, name)) as tar:
            assert [n for n in tar.getnames() if n.startswith("artifacts/")]


@pytest.mark.skipif(os.geteuid() != 0, reason="root has other users")
@pytest.mark.parametrize("is_there", [False, True])
def test_a_restore_is_passed_through_by_its_user(
        make_server, good, place, is_there):
    """Whatever root's umask is, and how root made the directory."""
    file, data = os.path.join(place, "f"), os.path.join(place, "a", "data")
    server = make_server()
    owner = os.stat(server.front_dir)
    os.chmod(place, 0o711)
    with open(file, "wb") as f:
        f.write(good)
    if is_there:
        os.makedirs(os.path.join(data, "front"))
        os.chmod(data, 0o700)
        os.chown(os.path.join(data, "front"), owner.st_uid, owner.st_gid)
    before = os.umask(0o077)
    try:
        done = subprocess.run(
            [os.path.join(server.build, "sandboxctl"), "--data-dir", data,
             "restore", "--force", file], capture_output=True, text=True,
            check=False, timeout=120, env=environment(server))
    finally:
        os.umask(before)
    assert done.returncode == 0, done.stderr
    st = os.stat(os.path.join(data, "front"))
    assert (st.st_uid, st.st_mode & 0o777) == (owner.st_uid, 0o700)
    assert os.stat(os.path.join(
        data, "front", "mcp-sandboxd.db")).st_uid == owner.st_uid


def test_the_same_directory_goes_back_to_what_it_was(make_server, place):
    """Its sandboxes are taken over, and what is done there stays done once."""
    server = make_server()
    ctl = Ctl(server)
    file = os.path.join(place, "f")
    with contextlib.closing(server.client()) as client:
        client.run("box", "echo first > kept")
        run = client.start("box", "while [ ! -e go ]; do sleep 0.1; done; "
                           "echo once >> effect")["run_id"]
        ctl("backup", file)
        client.run("box", "touch go")
        wait_for(lambda: client.call("get_run", run_id=run)["state"] ==
                 "completed", 60, "the run's end")
        later = client.run("box", "echo later")["run_id"]
    server.stop()
    done = ctl.run("restore", file, env=environment(server))
    assert done.returncode == 1 and "--force" in done.stderr
    text = ctl("restore", file, "--force", env=environment(server))
    before = [n for n in os.listdir(server.data) if n.startswith("before-")]
    assert len(before) == 1 and before[0] in text
    assert os.path.exists(os.path.join(
        server.data, before[0], "front", "mcp-sandboxd.db"))
    server.start()  # no --adopt: the instance is the one it was
    with contextlib.closing(server.client()) as client:
        assert client.run("box", "cat kept effect")["commands"][0][
            "stdout"] == "first\nonce\n"
        wait_for(lambda: client.call("get_run", run_id=run)["state"] ==
                 "failed", 60, "the end of what was under way")
        assert client.request("GET", f"/mcp/runs/{later}")[0] == 404


@pytest.fixture(scope="module")
def good(build, engine):
    """A small backup, in memory."""
    from server import Server
    place = tempfile.mkdtemp(prefix="mcp-backup-")
    server = Server(build)
    try:
        with contextlib.closing(server.client()) as client:
            client.run("box", "head -c 30000 /dev/zero | tr '\\0' x; "
                       "echo hello > /artifacts/a")
        Ctl(server)("backup", os.path.join(place, "f"))
        with open(os.path.join(place, "f"), "rb") as f:
            yield f.read()
    finally:
        server.destroy(engine)
        shutil.rmtree(place)


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


def blob_at(files):
    return next(i for i, (m, _) in enumerate(files)
                if m.name.startswith("artifacts/"))


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
        with open(f.name, "rb") as changed:
            return [*files[:at], (files[at][0], changed.read()),
                    *files[at + 1:]]


def broken_page(files):
    at = [m.name for m, _ in files].index("mcp-sandboxd.db")
    data = bytearray(files[at][1])
    data[4096 * 3:4096 * 4] = b"\xff" * 4096
    return [*files[:at], (files[at][0], bytes(data)), *files[at + 1:]]


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
        [(m, d[:-1] + b"x" if i == blob_at(f) else d)
         for i, (m, d) in enumerate(f)]),
    "newer form": lambda f: archive(with_manifest(f, version=2)),
    "other form": lambda f: archive(with_manifest(f, format="x")),
    "instance": lambda f: archive(with_manifest(f, instance="../../x")),
    "other instance": lambda f: archive(with_manifest(f, instance="a" * 32)),
    "newer database": lambda f: archive(newer(f)),
    "damaged database": lambda f: archive(broken_page(f)),
    "no tar": lambda f: b"x" * 20000,
    "empty": lambda f: b"",
}


def try_restore(build, place, data):
    """(exit status, what it says) into a directory that others look at."""
    file, target = os.path.join(place, "f"), os.path.join(place, "data")
    with open(file, "wb") as f:
        f.write(data)
    done = subprocess.run(
        [os.path.join(build, "sandboxctl"), "--data-dir", target, "restore",
         file], capture_output=True, text=True, check=False, timeout=120,
        env={**os.environ, "RUN_AS_FRONT": ""})
    return done, target


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


def test_killed_in_the_middle_nothing_is_wrong(make_server, place):
    """At many moments: a backup that is killed is none, and a restore did
    nothing or all of it."""
    server = make_server()
    ctl = Ctl(server)
    with contextlib.closing(server.client()) as client:
        for _ in range(4):
            client.run("box", "head -c 3000000 /dev/urandom | base64; "
                       "head -c 3000000 /dev/urandom > /artifacts/a")
    file = os.path.join(place, "f")

    def kill_at(words, moment):
        proc = subprocess.Popen(
            [*ctl.base, *words], stdout=subprocess.DEVNULL,
            stderr=subprocess.DEVNULL,
            env={**os.environ, **environment(server)})
        try:
            proc.wait(moment)
        except subprocess.TimeoutExpired:
            proc.send_signal(signal.SIGKILL)
        return proc.wait(60) == 0

    ended = [kill_at(["backup", file], i * 0.008) for i in range(12)]
    if not any(ended):
        assert not os.path.exists(file)
    wait_for(lambda: ctl.run("backup", file, "--force").returncode == 0, 60,
             "a backup after those that were killed")
    assert not os.path.exists(file + ".partial")
    with contextlib.closing(server.client()) as client:
        assert client.run("box", "true")["state"] == "completed"
    server.stop()
    for i in range(12):
        kill_at(["restore", file, "--force"], i * 0.008)
        wait_for(lambda: is_free(server.data), 60, "the directory's lock")
        assert rows(server.database, "PRAGMA integrity_check") == [("ok",)]
        assert rows(server.database, "SELECT count(*) FROM run")[0][0] >= 4
    ctl("restore", file, "--force", env=environment(server))
    server.start()
    with contextlib.closing(server.client()) as client:
        assert client.run("box", "true")["state"] == "completed"


def is_free(data):
    return subprocess.run(["flock", "-n", data, "true"], check=False,
                          timeout=60).returncode == 0


def leave(client, name):
    run = client.run(name, f"printf {name} >/artifacts/a; printf other-{name} "
                     ">/artifacts/b; head -c 30000 /dev/zero | tr '\\0' x")
    return run["run_id"], [n["sha256"] for n in run["artifacts"]]


def blob_file(server, sha256):
    return os.path.join(server.front_dir, "artifacts", "1", sha256[:2], sha256)


def log_file(server, run):
    return next(os.path.join(folder, f"{run}.log") for folder, _, names
                in os.walk(os.path.join(server.front_dir, "spool"))
                if f"{run}.log" in names)


def assert_lost(server, path):
    status, _, body = server.get(path)
    assert status == 410 and b"output_lost" in body, (path, status, body)


def test_a_backup_leaves_out_what_is_damaged_and_says_so(make_server, place):
    """Bytes that changed under their name, a file that is short, and one that
    is not there; the rest is restored."""
    server = make_server()
    file = os.path.join(place, "f")
    with contextlib.closing(server.client()) as client:
        runs = {n: leave(client, n) for n in ("good", "bytes", "short",
                                              "gone")}
    with open(blob_file(server, runs["bytes"][1][0]), "r+b") as f:
        f.write(b"BYTES")
    with open(blob_file(server, runs["short"][1][0]), "r+b") as f:
        f.truncate(2)
    os.unlink(blob_file(server, runs["gone"][1][0]))
    with open(log_file(server, runs["short"][0]), "r+b") as f:
        f.truncate(20000)
    os.unlink(log_file(server, runs["gone"][0]))
    done = Ctl(server).run("backup", file)
    assert done.returncode == 1, done.stdout
    assert "without 5 files that are damaged" in done.stderr
    told = [n for n in done.stderr.splitlines() if "is left out: " in n]
    for name in (*(runs[n][1][0] for n in ("bytes", "short", "gone")),
                 runs["short"][0], runs["gone"][0]):
        assert sum(name in n for n in told) == 1, (name, told)
    assert len(told) == 5

    other = restored(make_server, server, file)
    for name in ("bytes", "short", "gone"):
        assert_lost(other, f"/artifacts/{name}/{runs[name][0]}/a")
        assert other.get(f"/artifacts/{name}/{runs[name][0]}/b")[2] == \
            f"other-{name}".encode()
    for name in ("short", "gone"):
        assert_lost(other, f"/api/v1/runs/{runs[name][0]}/output")
    for name in ("good", "bytes"):
        assert len(other.get(
            f"/api/v1/runs/{runs[name][0]}/output")[2]) == 30000
    assert other.get(f"/artifacts/good/{runs['good'][0]}/a")[2] == b"good"
    # What it knows to be lost is no news, and nothing is missing of it.
    again = os.path.join(place, "again")
    assert Ctl(other).json("backup", again)["damaged"] == 0
    restored(make_server, other, again)


def spoiled(files, heal):
    """An archive with an artifact that is not what its name says; heal: its
    sums are of what was meant."""
    at = blob_at(files)
    info, data = files[at]
    bad = [*files[:at], (info, b"X" * len(data)), *files[at + 1:]]
    if not heal:
        return info.name, archive(bad)
    return info.name, archive(bad, sums=False)


@pytest.mark.parametrize("heal", [False, True])
def test_a_restore_can_leave_out_what_is_damaged(
        make_server, build, good, place, heal):
    """As it was made of a damaged file, or damaged since."""
    name, data = spoiled(members(good), heal)
    done, target = try_restore(build, place, data)
    assert done.returncode == 1
    assert name in done.stderr and "--drop-damaged" in done.stderr
    done = subprocess.run(
        [os.path.join(build, "sandboxctl"), "--data-dir", target, "restore",
         os.path.join(place, "f"), "--drop-damaged"], capture_output=True,
        text=True, check=False, timeout=120,
        env={**os.environ, "RUN_AS_FRONT": ""})
    assert done.returncode == 0, done.stderr
    assert f"{name} is left out" in done.stderr
    assert "1 artifacts were left out" in done.stdout
    os.chmod(place, 0o755)
    server = make_server(env={"DATA_DIR": target, "TAKEOVER": "forget",
                              "RUN_AS_FRONT": "", "RUN_AS_WORKER": ""})
    run = rows(server.database, "SELECT lower(hex(uuid)) FROM run")[0][0]
    assert_lost(server, f"/artifacts/box/{uuid.UUID(run)}/a")
    assert len(server.get(
        f"/api/v1/runs/{uuid.UUID(run)}/output")[2]) == 30000


def test_a_restore_drops_nothing_but_artifacts(build, good, place):
    files = members(good)
    at = next(i for i, (m, _) in enumerate(files)
              if m.name.startswith("spool/"))
    bad = [*files[:at], (files[at][0], b"X" * len(files[at][1])),
           *files[at + 1:]]
    with open(os.path.join(place, "f"), "wb") as f:
        f.write(archive(bad, sums=False))
    done = subprocess.run(
        [os.path.join(build, "sandboxctl"), "--data-dir",
         os.path.join(place, "data"), "restore", os.path.join(place, "f"),
         "--drop-damaged"], capture_output=True, text=True, check=False,
        timeout=120, env={**os.environ, "RUN_AS_FRONT": ""})
    assert done.returncode == 1 and "SHA256SUMS" in done.stderr
