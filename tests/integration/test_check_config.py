"""mcp-sandboxd --check-config: what a start looks at, without one."""
import functools
import os
import pathlib
import shutil
import signal

import pytest

from client import wait_for
from server import users


BOTH = (["--check-config"], [])


@pytest.fixture
def check(program):
    return functools.partial(program, "--check-config")


def test_what_can_be_started_is_good_and_nothing_is_made(check, program):
    done = check()
    assert (done.returncode, done.stdout) == (0, "the configuration is good\n")
    assert " error " not in done.stderr
    for artifacts in ("data/kept", "data/front/kept"):
        assert check(f"ARTIFACTS_DIR={artifacts}").returncode == 0
    assert os.listdir(program.top) == []


def test_a_pattern_that_only_the_front_can_refuse_is_named(program):
    program.refuses("--check-config", "DENYLIST_ENABLED=true",
                    "DENYLIST_PATTERNS=[[=a=]]",
                    words=["DENYLIST_PATTERNS", "[[=a=]]"])


def test_a_start_goes_on_without_engine_and_images_and_so_does_this(check,
                                                                    program):
    done = check(f"DOCKER_HOST=unix://{program.top}/none.sock")
    assert done.returncode == 0, done.stderr
    assert "warn" in done.stderr and "none.sock" in done.stderr
    done = check("SANDBOX_IMAGE=localhost/no-such:1",
                 "SANDBOX_IMAGES_ALLOWED=localhost/no-such:2")
    assert done.returncode == 0, done.stderr
    for name in ("localhost/no-such:1", "localhost/no-such:2"):
        assert f"image {name} is missing" in done.stderr


def test_a_wrong_line_of_the_tenants_is_named(program, tokens):
    tokens.lines = ["tenant acme", "tenant .acme"]
    for args in BOTH:
        program.refuses(*args, TENANTS_FILE=tokens.write(),
                        words=["line 2: a tenant's name"])


def test_all_that_is_wrong_is_said_at_once(program):
    program.refuses("--check-config", "ARTIFACTS_DIR=/dev/null/x",
                    "SANDBOX_CAP_ADD=NO_SUCH", "DATA_DIR=/dev/null/x",
                    words=["ARTIFACTS_DIR", "SANDBOX_CAP_ADD", "DATA_DIR"])


def test_artifacts_where_the_front_may_not_write_are_refused(program):
    """Root's directory is as much another's as that of a stranger."""
    top = os.path.join(program.top, "kept")
    os.mkdir(top, 0o755)
    if users(program.build).get("RUN_AS_FRONT") == "":
        pytest.skip("needs the front's user")  # as root nothing is another's
    env = {"ARTIFACTS_DIR": top if os.geteuid() == 0 else "/kept"}
    for args in BOTH:
        said = program.refuses(*args, **env,
                               words=["ARTIFACTS_DIR", "give it to"])
        assert "started again" not in said.replace("is not started again", "")


@pytest.fixture
def home(program):
    """A directory that is root's alone, as its home is."""
    if users(program.build) or os.geteuid() != 0:
        pytest.skip("needs the users of front and workers")
    path = os.path.join(program.top, "home")
    os.mkdir(path, 0o700)
    return path


def test_a_way_that_is_shut_is_named_once_by_both(program, home):
    for args in BOTH:
        said = program.refuses(*args, DATA_DIR=os.path.join(home, "data"))
        assert said.count(f"may not pass through {home}") == 1
        assert said.count(" error ") == 1
    assert os.listdir(home) == []


def test_artifacts_behind_a_shut_way_are_named(program, home):
    for args in BOTH:
        program.refuses(*args, ARTIFACTS_DIR=os.path.join(home, "a/b"), words=[
            "ARTIFACTS_DIR", f"may not pass through {home}"])


def test_a_way_that_is_shut_later_ends_the_server(make_server, home):
    """What a child finds when it is started again would not mend itself."""
    os.chmod(home, 0o755)
    for role in ("worker", "front"):
        s = make_server(env={"DATA_DIR": os.path.join(home, role)})
        os.chmod(home, 0o700)
        for pid in s.pids(role):
            os.kill(pid, signal.SIGKILL)
        s.refuses(f"may not pass through {home}")
        os.chmod(home, 0o755)
        assert not any("throttled" in n for n in s.log)


def test_a_port_of_another_is_75(program, server):
    program.refuses("--check-config", f"PORT={server.port}", status=[75],
                    words=[str(server.port)])


@pytest.mark.own
def test_a_server_that_runs_is_not_disturbed(check, server):
    front = server.pids("front")
    done = check(f"PORT={server.port}", DATA_DIR=server.data)
    assert done.returncode == 0, done.stderr
    assert "is in use by another mcp-sandboxd" in done.stderr
    assert server.get("/readyz")[0] == 200 and server.pids("front") == front
    # What is wrong with the next start is said nevertheless.
    assert check("SANDBOX_CAP_ADD=NO_SUCH",
                 DATA_DIR=server.data).returncode == 78


@pytest.mark.own
def test_a_database_and_a_key_that_are_not_ours(check, program, server):
    server.stop()
    before = sorted(os.listdir(server.front_dir))
    assert check(DATA_DIR=server.data).returncode == 0
    assert sorted(os.listdir(server.front_dir)) == before
    server.change("PRAGMA user_version = 9999")
    program.refuses("--check-config", DATA_DIR=server.data,
                    words=["newer mcp-sandboxd"])
    os.chmod(os.path.join(server.front_dir, "session.key"), 0o644)
    for args in BOTH:
        program.refuses(*args, DATA_DIR=server.data, words=["session.key"])


@pytest.mark.own
def test_a_copy_of_a_data_directory_asks(check, program, server):
    server.stop()
    shutil.copytree(server.data, program.data, symlinks=True)
    program.refuses("--check-config", words=["is a copy of"])
    assert check("TAKEOVER=forget").returncode == 0


@pytest.mark.own
def test_an_address_for_others_is_refused_while_there_is_no_tenant(
        check, program, server, tokens):
    """As by a start; nothing that is looked at is changed by it."""
    others = {"BIND": "0.0.0.0"}
    for args in BOTH:
        program.refuses(*args, **others,
                        words=["can be reached from other machines",
                               "OAUTH_ISSUER", "sandboxctl tenant add"])
    assert check(OAUTH_ISSUER="http://127.0.0.1:1", RUN_AS_KEYS="",
                 OAUTH_AUDIENCE="https://mcp.example/mcp",
                 **others).returncode == 0
    assert check(REQUIRE_TOKEN="true", **others).returncode == 0
    for line, status in (("tenant default quota.sandboxes=3", 78),
                         ("tenant acme", 0)):
        tokens.lines = [line]
        assert check(TENANTS_FILE=tokens.write(), **others).returncode == status

    there = {"DATA_DIR": server.data, "PORT": str(server.port), **others}
    assert check(**there).returncode == 78
    server.ctl("tenant", "add", "acme")
    assert check(**there).returncode == 0
    front = server.pids("front")[0]
    server.stop(signal.SIGKILL)
    wait_for(lambda: not os.path.exists(f"/proc/{front}"), 30, "its end")
    # What was written is in the WAL alone.
    before = contents(server.front_dir)
    assert [n for n in before if n.endswith("-wal")]
    assert check(**there).returncode == 0
    assert contents(server.front_dir) == before


@pytest.mark.own
def test_a_database_from_before_tenants_has_none(check, program, server):
    server.stop()
    server.change("DROP TABLE token", "PRAGMA user_version = 6")
    before = contents(server.front_dir)
    assert check(DATA_DIR=server.data).returncode == 0
    program.refuses("--check-config", DATA_DIR=server.data, BIND="::",
                    words=["BIND"])
    assert contents(server.front_dir) == before


def contents(directory):
    return {f.name: f.read_bytes() for f in pathlib.Path(directory).iterdir()
            if f.is_file()}
