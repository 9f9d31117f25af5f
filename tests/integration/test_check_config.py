"""mcp-sandboxd --check-config: what a start looks at, without one."""
import os
import signal
import sqlite3
import subprocess

import pytest

from client import wait_for
from server import users


class Check:
    """Runs of the program in a directory of their own."""

    def __init__(self, build, top):
        self.build, self.top = build, str(top)
        os.chmod(self.top, 0o755)  # other users pass through
        self.data = os.path.join(self.top, "data")

    def run(self, *args, **env):
        kept = {k: os.environ[k] for k in ("PATH", "ASAN_OPTIONS",
                                           "UBSAN_OPTIONS", "DOCKER_HOST",
                                           "SANDBOX_IMAGE")
                if k in os.environ}
        return subprocess.run(
            [os.path.join(self.build, "mcp-sandboxd"), *args],
            env={**kept, "DATA_DIR": self.data, "PORT": "0",
                 **users(self.build), **env},
            cwd=self.top, capture_output=True, text=True, timeout=120,
            check=False)

    def __call__(self, *settings, **env):
        return self.run("--check-config", *settings, **env)


@pytest.fixture
def check(build, engine, tmp_path_factory):
    """Not below tmp_path, whose directories are shut for other users."""
    import shutil
    import tempfile
    top = tempfile.mkdtemp(prefix="mcp-sandboxd-check-")
    yield Check(build, top)
    shutil.rmtree(top)


def test_what_can_be_started_is_good_and_nothing_is_made(check):
    done = check()
    assert (done.returncode, done.stdout) == (0, "the configuration is good\n")
    assert " error " not in done.stderr
    for artifacts in ("data/kept", "data/front/kept"):
        assert check(f"ARTIFACTS_DIR={artifacts}").returncode == 0
    assert os.listdir(check.top) == []


def test_a_pattern_that_only_the_front_can_refuse_is_named(check):
    done = check("DENYLIST_ENABLED=true", "DENYLIST_PATTERNS=[[=a=]]")
    assert done.returncode == 78
    assert "DENYLIST_PATTERNS" in done.stderr and "[[=a=]]" in done.stderr


def test_a_start_goes_on_without_engine_and_images_and_so_does_this(check):
    done = check(f"DOCKER_HOST=unix://{check.top}/none.sock")
    assert done.returncode == 0, done.stderr
    assert "warn" in done.stderr and "none.sock" in done.stderr
    done = check("SANDBOX_IMAGE=localhost/no-such:1",
                 "SANDBOX_IMAGES_ALLOWED=localhost/no-such:2")
    assert done.returncode == 0, done.stderr
    for name in ("localhost/no-such:1", "localhost/no-such:2"):
        assert f"image {name} is missing" in done.stderr


@pytest.mark.parametrize("setting, said", [
    ("SANDBOX_CAP_ADD=NO_SUCH", "NO_SUCH"),
    ("DEFAULT_PIDS=many", "DEFAULT_PIDS"),
    ("SANDBOX_RUNTIME=no-such", "no-such"),
    ("SANDBOX_IMAGE=a b", "SANDBOX_IMAGE"),
    ("SANDBOX_SECCOMP=/no/such", "SANDBOX_SECCOMP"),
    ("INSTANCE=-", "INSTANCE"),
    ("RUN_AS_FRONT=no-such-user", "RUN_AS_FRONT"),
    ("CORS_ALLOW_ORIGINS=*", "CORS_ALLOW_ORIGINS"),
    ("ALLOWED_HOSTS=http://x/", "ALLOWED_HOSTS"),
    ("ARTIFACTS_DIR=/dev/null/x", "ARTIFACTS_DIR"),
    ("ARTIFACTS_DIR=data/links/x", "ARTIFACTS_DIR"),
    ("TENANTS_FILE=/no/such", "TENANTS_FILE"),
    ("DATA_DIR=/dev/null/x", "DATA_DIR")])
def test_what_would_stop_a_start_is_named_by_both(check, setting, said):
    for args in (["--check-config", setting], [setting]):
        done = check.run(*args)
        assert done.returncode == 78, done.stderr
        assert said in done.stderr and "the configuration" not in done.stdout


def test_a_wrong_line_of_the_tenants_is_named(check):
    path = os.path.join(check.top, "tenants")
    with open(path, "w", encoding="ascii") as f:
        f.write("tenant acme\ntenant .acme\n")
    for args in (["--check-config"], []):
        done = check.run(*args, TENANTS_FILE=path)
        assert done.returncode == 78, done.stderr
        assert "line 2: a tenant's name" in done.stderr


def test_all_that_is_wrong_is_said_at_once(check):
    done = check("ARTIFACTS_DIR=/dev/null/x", "SANDBOX_CAP_ADD=NO_SUCH",
                 "DATA_DIR=/dev/null/x")
    assert done.returncode == 78
    for key in ("ARTIFACTS_DIR", "SANDBOX_CAP_ADD", "DATA_DIR"):
        assert key in done.stderr


def test_artifacts_where_the_front_may_not_write_are_refused(check):
    """Root's directory is as much another's as that of a stranger."""
    top = os.path.join(check.top, "kept")
    os.mkdir(top, 0o755)
    env = {} if os.geteuid() == 0 else {"ARTIFACTS_DIR": "/kept"}
    front = users(check.build).get("RUN_AS_FRONT")
    if front == "":  # as root alone: nothing is another's
        pytest.skip("needs the front's user")
    env.setdefault("ARTIFACTS_DIR", top)
    for args in (["--check-config"], []):
        done = check.run(*args, **env)
        assert done.returncode == 78, done.stderr
        assert "ARTIFACTS_DIR" in done.stderr and "give it to" in done.stderr
        assert "started again" not in done.stderr.replace(
            "is not started again", "")


@pytest.fixture
def home(check):
    """A directory that is root's alone, as its home is."""
    if users(check.build) or os.geteuid() != 0:
        pytest.skip("needs the users of front and workers")
    path = os.path.join(check.top, "home")
    os.mkdir(path, 0o700)
    return path


def test_a_way_that_is_shut_is_named_once_by_both(check, home):
    for args in (["--check-config"], []):
        done = check.run(*args, DATA_DIR=os.path.join(home, "data"))
        assert done.returncode == 78, done.stderr
        assert done.stderr.count(f"may not pass through {home}") == 1
        assert done.stderr.count(" error ") == 1
    assert os.listdir(home) == []


def test_artifacts_behind_a_shut_way_are_named(check, home):
    for args in (["--check-config"], []):
        done = check.run(*args, ARTIFACTS_DIR=os.path.join(home, "a/b"))
        assert done.returncode == 78, done.stderr
        assert "ARTIFACTS_DIR" in done.stderr
        assert f"may not pass through {home}" in done.stderr


def test_a_way_that_is_shut_later_ends_the_server(check, make_server, home):
    """What a child finds when it is started again would not mend itself."""
    os.chmod(home, 0o755)
    for role in ("worker", "front"):
        s = make_server(env={"DATA_DIR": os.path.join(home, role)})
        os.chmod(home, 0o700)
        for pid in s.pids(role):
            os.kill(pid, signal.SIGKILL)
        assert s.proc.wait(30) == 78
        os.chmod(home, 0o755)
        log = "\n".join(s.log)
        assert f"may not pass through {home}" in log
        assert "throttled" not in log


def test_a_port_of_another_is_75(check, server):
    done = check(f"PORT={server.port}")
    assert done.returncode == 75
    assert str(server.port) in done.stderr


def test_a_server_that_runs_is_not_disturbed(check, make_server):
    s = make_server()
    front = s.pids("front")
    done = check(f"PORT={s.port}", DATA_DIR=s.data)
    assert done.returncode == 0, done.stderr
    assert "is in use by another mcp-sandboxd" in done.stderr
    assert s.get("/readyz")[0] == 200 and s.pids("front") == front
    # What is wrong with the next start is said nevertheless.
    assert check("SANDBOX_CAP_ADD=NO_SUCH",
                 DATA_DIR=s.data).returncode == 78


def test_a_database_and_a_key_that_are_not_ours(check, make_server):
    s = make_server()
    s.stop()
    before = sorted(os.listdir(s.front_dir))
    assert check(DATA_DIR=s.data).returncode == 0
    assert sorted(os.listdir(s.front_dir)) == before
    with sqlite3.connect(s.database) as db:
        db.execute("PRAGMA user_version = 9999")
    db.close()
    done = check(DATA_DIR=s.data)
    assert done.returncode == 78 and "newer mcp-sandboxd" in done.stderr
    os.chmod(os.path.join(s.front_dir, "session.key"), 0o644)
    done = check(DATA_DIR=s.data)
    assert done.returncode == 78 and "session.key" in done.stderr


def test_a_copy_of_a_data_directory_asks(check, make_server):
    import shutil
    s = make_server()
    s.stop()
    shutil.copytree(s.data, check.data, symlinks=True)
    done = check()
    assert done.returncode == 78 and "is a copy of" in done.stderr
    assert check("TAKEOVER=forget").returncode == 0


def test_an_address_for_others_is_refused_while_there_is_no_tenant(
        check, make_server):
    """As by a start; nothing that is looked at is changed by it."""
    others = {"BIND": "0.0.0.0"}
    for args in (["--check-config"], []):
        done = check.run(*args, **others)
        assert done.returncode == 78, done.stderr
        assert "can be reached from other machines" in done.stderr
        assert "OAUTH_ISSUER" in done.stderr
    assert check(OAUTH_ISSUER="http://127.0.0.1:1", RUN_AS_KEYS="",
                 OAUTH_AUDIENCE="https://mcp.example/mcp",
                 **others).returncode == 0
    path = os.path.join(check.top, "tenants")
    for lines, status in (("tenant default quota.sandboxes=3\n", 78),
                          ("tenant acme\n", 0)):
        with open(path, "w", encoding="ascii") as f:
            f.write(lines)
        assert check(TENANTS_FILE=path, **others).returncode == status

    s = make_server()
    there = {"DATA_DIR": s.data, "PORT": str(s.port), **others}
    assert check(**there).returncode == 78
    subprocess.run(
        [os.path.join(check.build, "sandboxctl"), "--data-dir", s.data,
         "tenant", "add", "acme"], check=True, timeout=60)
    assert check(**there).returncode == 0
    front = s.pids("front")[0]
    assert s.proc.poll() is None
    os.kill(s.proc.pid, signal.SIGKILL)
    wait_for(lambda: not os.path.exists(f"/proc/{front}"), 30, "its end")
    # What was written is in the WAL alone.
    before = contents(s.front_dir)
    assert [n for n in before if n.endswith("-wal")]
    assert check(**there).returncode == 0
    assert contents(s.front_dir) == before


def test_a_database_from_before_tenants_has_none(check, make_server):
    s = make_server()
    s.stop()
    with sqlite3.connect(s.database) as db:
        db.execute("DROP TABLE token")
        db.execute("PRAGMA user_version = 6")
    db.close()
    before = contents(s.front_dir)
    assert check(DATA_DIR=s.data).returncode == 0
    done = check(DATA_DIR=s.data, BIND="::")
    assert done.returncode == 78 and "BIND" in done.stderr
    assert contents(s.front_dir) == before


def contents(directory):
    out = {}
    for name in sorted(os.listdir(directory)):
        path = os.path.join(directory, name)
        if os.path.isfile(path):
            with open(path, "rb") as f:
                out[name] = f.read()
    return out
