"""From the command line to READY, on the real program."""
import fcntl
import os
import pwd
import re
import resource
import shutil
import signal
import socket
import stat
import subprocess
import time

import pytest

from supervisor import PATIENCE_S, programs, sockets_of, wait_for

# Deaths that a test makes shall not throttle it.
PATIENT = {"MCP_SANDBOXD_BURST": "1000"}


# Start

def test_children_start_the_front_first_and_all_are_paired(make):
    s = make()
    s.wait_ready()
    log = s.stderr()
    order = re.findall(r"supervisor\[\d+\] (\S+)\[\d+\] started", log)
    assert order == ["front", "worker/0", "worker/1"]
    assert log.index("listening on http://127.0.0.1:") < log.index("] ready\n")
    peers = s.events("front", "peer")
    assert sorted(p[3].split()[0] for p in peers) == ["0", "1"]
    generations = {p[3].split()[1] for p in peers}
    assert generations == {"1", "2"}
    assert s.stop() == 0


def test_ready_is_said_once_and_only_when_all_are(make):
    s = make(modes={"worker-1": "mute"})
    s.wait_log("worker/0[")
    s.wait_event("front", "ready")
    wait_for("the mute one", lambda: s.pids("worker-1"))
    assert "] ready\n" not in s.stderr()
    s.set_mode("worker-1", None)
    s.kill("worker-1")
    s.wait_ready()
    s.kill("worker-1")
    s.wait_event("worker-1", "heard", 2)
    assert len(re.findall(r"supervisor\[\d+\] ready\n", s.stderr())) == 1


def test_children_are_told_facts(make):
    s = make(env={"DATA_DIR": "relative/data", "SANDBOX_IMAGE": "some:image"})
    s.wait_ready()
    s.wait_event("worker-0", "config", 4)
    port = str(s.port())
    front = dict(e[3].split("=", 1) for e in s.events("front", "config"))
    worker = dict(e[3].split("=", 1) for e in s.events("worker-0", "config"))
    assert front["PORT"] == port
    assert front["DATA_DIR"] == os.path.join(s.dir, "relative/data")
    assert re.fullmatch("d[0-9a-f]{16}", front["INSTANCE"])
    assert worker["INSTANCE"] == front["INSTANCE"]
    assert worker["DATA_DIR"] == front["DATA_DIR"]
    assert worker["SANDBOX_IMAGE"] == "some:image"
    assert s.events("front", "listen")[0][3] == "127.0.0.1:" + port


def test_later_sources_win(make):
    s = make(start=False, env={"INSTANCE": "from-environment",
                               "WORKERS": "3"})
    path = os.path.join(s.dir, "conf")
    with open(path, "w", encoding="ascii") as f:
        f.write("# a comment\nSANDBOX_IMAGE=from:file\nINSTANCE='from-file'\n"
                "WORKERS=1\n")
    s.args = ["--config", path, "INSTANCE=from-argument"]
    s.start()
    s.wait_event("worker-2", "ready")
    config = dict(e[3].split("=", 1) for e in s.events("worker-2", "config"))
    assert config["SANDBOX_IMAGE"] == "from:file"
    assert config["INSTANCE"] == "from-argument"


# What children inherit

def test_children_inherit_nothing_but_their_channel(make):
    # Descriptors and variables of whoever starts the server stay with it.
    leak = os.open("/dev/null", os.O_RDONLY)
    s = make(env={"SECRET_TOKEN": "x", "TZ": "UTC", "HOME": "/root",
                  "LD_LIBRARY_PATH": "/nowhere", "XDG_RUNTIME_DIR": "/run/x",
                  "KUBERNETES_SERVICE_HOST": "10.0.0.1",
                  "KUBERNETES_SERVICE_PORT": "443",
                  "KUBERNETES_SERVICE_PORT_HTTPS": "443",
                  "GLIBC_TUNABLES": "glibc.malloc.check=3"},
             pass_fds=(leak,))
    os.close(leak)
    s.wait_ready()
    for role in ("front", "worker-0", "worker-1"):
        assert s.events(role, "fds")[0][3] == "0 1 2 3"
        names = {e[3].split("=")[0] for e in s.events(role, "env")}
        assert names == {"TZ", "XDG_RUNTIME_DIR", "KUBERNETES_SERVICE_HOST",
                         "KUBERNETES_SERVICE_PORT", "MCP_SANDBOXD_TEST_DIR"}
        said = {e[2]: e[3] for e in s.events(role)}
        assert said["umask"] == "077"
        assert said["term"] == "open"
        assert said["pdeathsig"] == str(int(signal.SIGKILL))
        assert said["nonewprivs"] == "1"
        assert said["session"] == "own"
        pid = s.pid(role)
        assert os.readlink(f"/proc/{pid}/fd/0") == "/dev/null"
        assert os.readlink(f"/proc/{pid}/fd/1") == s.stderr_path
        assert os.readlink(f"/proc/{pid}/fd/2") == s.stderr_path
        assert "socket:" in os.readlink(f"/proc/{pid}/fd/3")


def test_a_running_child_holds_its_own_channels_only(make):
    s = make()
    s.wait_ready()
    # Its channel, a peer each; the front has a second worker and
    # listens twice.
    front, *workers = [sockets_of(s.pid(r))
                       for r in ("front", "worker-0", "worker-1")]
    assert [len(w) for w in workers] == [2, 2]
    assert len(front) == 5
    assert not workers[0] & workers[1]
    assert not front & (workers[0] | workers[1])


def test_the_supervisor_keeps_no_end_of_a_job_channel(make):
    s = make(env=PATIENT)
    s.wait_ready()
    before = len(os.listdir(f"/proc/{s.proc.pid}/fd"))
    for n in range(1, 6):
        s.kill("worker-0")
        wait_for("a new channel", lambda n=n: len(
            s.events("worker-0", "heard")) == n + 1)
        s.set_mode("worker-0", "work")  # so that it restarts at once
    wait_for("as many descriptors as before", lambda: len(
        os.listdir(f"/proc/{s.proc.pid}/fd")) == before)


# The command line

def run(s, *args, **env):
    return subprocess.run(
        [os.path.join(s.bin, "mcp-sandboxd"), *args], cwd=s.dir,
        env={**s.environment(), **env}, capture_output=True, text=True,
        timeout=PATIENCE_S, check=False)


@pytest.fixture
def idle(make):
    return make(start=False)


@pytest.mark.parametrize("setting", [
    "PORT=70000", "PORT=http", "WORKERS=0", "SANDBOX_NETWORK_MODE=host",
    "LOG_LEVEL=loud", "NO_SUCH_KEY=1", "BIND=localhost",
    "DEFAULT_TTL_SECONDS=900000"])
def test_a_wrong_value_names_its_key(idle, setting):
    done = run(idle, setting)
    assert done.returncode == 78
    assert setting.split("=")[0] in done.stderr
    assert idle.events() == []


def test_a_wrong_value_in_the_environment_names_its_key(idle):
    done = run(idle, PORT="http")
    assert done.returncode == 78
    assert "PORT" in done.stderr


def test_a_wrong_line_in_the_file_is_named(idle):
    path = os.path.join(idle.dir, "conf")
    with open(path, "w", encoding="ascii") as f:
        f.write("\nWORKERS=many\n")
    done = run(idle, "--config", path)
    assert done.returncode == 78
    assert "WORKERS" in done.stderr and path in done.stderr
    assert run(idle, "--config", path + ".missing").returncode == 78


@pytest.mark.parametrize("args", [
    ["--no-such"], ["--config"], ["start"], ["--config", "a", "--config",
                                             "b"]])
def test_a_wrong_command_line_is_64(idle, args):
    done = run(idle, *args)
    assert done.returncode == 64
    assert done.stderr.count("\n") == 1


@pytest.mark.parametrize("option", ["--help", "-h"])
def test_help_lists_every_key(idle, option):
    done = run(idle, option)
    assert done.returncode == 0
    for key in ("BIND", "PORT", "DATA_DIR", "SANDBOX_IMAGE", "--config",
                "--check-config", "--version"):
        assert key in done.stdout


ROOT = os.path.join(os.path.dirname(__file__), "../..")


def rows_of(usage):
    """[[kind, column, ...]]"""
    with open(os.path.join(ROOT, "schema", usage), encoding="ascii") as f:
        rows = [line.rstrip("\n").partition("|") for line in f
                if not line.startswith("#")]
    return [[kind, *rest.split("|", 6 if kind == "call" else -1)]
            for kind, _, rest in rows]


def words(text):
    """Without what is only form."""
    text = re.sub(r"\\(f[BIRP]|&)|[\\`*|]|^\\... ", "", text, flags=re.M)
    return " ".join(text.split()).lower()


@pytest.mark.parametrize("program, usage, documents", [
    ("mcp-sandboxd", "usage.txt",
     ["man/mcp-sandboxd.8", "docs/configuration.md"]),
    ("sandboxctl", "ctl.txt", ["man/sandboxctl.1"])])
def test_help_man_page_and_document_say_one_thing(program, usage, documents):
    said = [words(subprocess.run(
        [os.path.join(programs(), program), "--help"], text=True,
        stdout=subprocess.PIPE, check=True, timeout=60).stdout)]
    for path in documents:
        top = programs() if path.startswith("man/") else ROOT
        with open(os.path.join(top, path), encoding="utf-8") as f:
            said.append(words(f.read()))
    for kind, *row in rows_of(usage):
        if kind == "call":
            row = [row[0] + " " + row[-1], row[-2]]
        elif kind not in ("command", "option", "signal", "status", "file"):
            continue
        for text in said[:2] if kind == "file" else said:
            assert words(row[-1]) in text, row
            assert words(row[0]) in text, row


def test_exit_statuses_are_those_of_the_list():
    statuses = [row[1] for row in rows_of("usage.txt") if row[0] == "status"]
    assert {"0", "1", "64", "71", "75", "77", "78"} <= set(statuses)


def test_a_command_of_sandboxctl_says_what_it_wants(tmp_path):
    """Each of the list: with too few words, or too many."""
    calls = [row for row in rows_of("ctl.txt") if row[0] == "call"]
    assert len(calls) > 10
    for _, name, _, least, most, _, _, follows in calls:
        few = ["x"] * (int(least) - 1 if int(least) else int(most) + 1)
        done = subprocess.run(
            [os.path.join(programs(), "sandboxctl"), *name.split(), *few],
            cwd=tmp_path, capture_output=True, text=True, timeout=60,
            check=False)
        assert (done.returncode, done.stderr.strip()) == \
            (2, f"sandboxctl: want: sandboxctl {name} {follows}".strip())


@pytest.mark.parametrize("option", ["--version", "-V"])
def test_version_is_said(idle, option):
    done = run(idle, option)
    assert done.returncode == 0
    assert re.fullmatch(r"mcp-sandboxd \S+\n", done.stdout)


def test_a_slip_in_the_environment_is_warned_about(idle):
    done = run(idle, "--check-config", WORKER="3", MAX_SANDBOXS="1",
               SANDBOX_NETWORK="bridge", EDITOR="vi", MAXIMUM="7")
    assert done.returncode == 0
    assert "WORKER is no key of this server; did you mean WORKERS?" in \
        done.stderr
    assert "did you mean MAX_SANDBOXES?" in done.stderr
    assert "SANDBOX_NETWORK is no key of this server; did you mean " \
        "SANDBOX_NETWORK_MODE?" in done.stderr
    assert "EDITOR" not in done.stderr and "MAXIMUM" not in done.stderr


def test_a_file_of_the_compatible_server_is_read(idle):
    path = os.path.join(idle.dir, "env")
    with open(path, "w", encoding="ascii") as f:
        f.write("SANDBOX_BACKEND=docker\nDEBUG_UI_ENABLED=true\n"
                "K8S_SANDBOX_NAMESPACE=x\nDEFAULT_AWAIT_COMPLETION=false\n")
    done = run(idle, "--check-config", "--config", path)
    assert done.returncode == 0, done.stderr
    assert "DEBUG_UI_ENABLED means nothing to this server" in done.stderr
    with open(path, "a", encoding="ascii") as f:
        f.write("WORKER=2\n")
    done = run(idle, "--check-config", "--config", path)
    assert done.returncode == 78
    assert "WORKER is no configuration key (did you mean WORKERS)" in \
        done.stderr


def test_check_config_starts_nothing(idle):
    assert run(idle, "--check-config").returncode == 0
    assert run(idle, "--check-config", "PORT=x").returncode == 78
    assert run(idle, "--check-config", "BIND=here").returncode == 78
    assert idle.events() == []
    assert not os.path.exists(idle.data)


def test_a_missing_program_is_named(idle):
    os.unlink(os.path.join(idle.bin, "mcp-sandboxd-worker"))
    done = run(idle)
    assert done.returncode == 78
    assert "mcp-sandboxd-worker" in done.stderr
    assert idle.events() == []


# The data directory

def test_the_data_directory_is_made(make):
    s = make(env={"DATA_DIR": "a/b/data"}, umask=0o077)
    s.wait_ready()
    for path in ("a/b/data", "a/b/data/links"):
        mode = os.stat(os.path.join(s.dir, path)).st_mode
        assert stat.S_IMODE(mode) == 0o711, path


def test_two_servers_do_not_share_a_data_directory(make):
    first = make()
    first.wait_ready()
    second = make(env={"DATA_DIR": first.data})
    assert second.wait_exit() == 75
    assert "is in use by another mcp-sandboxd" in second.stderr()
    assert second.events() == []
    # The lock goes with its holder, however that dies.
    first.proc.kill()
    first.wait_exit()
    third = make(env={"DATA_DIR": first.data})
    third.wait_ready()


def test_the_lock_of_a_server_that_is_about_to_end_is_waited_for(make):
    """kill -9 and a start right behind it: the killed one may be in the
    middle of a sync and ends when that does."""
    first = make()
    first.wait_ready()
    first.proc.kill()
    first.wait_exit()
    fd = os.open(first.data, os.O_RDONLY)
    try:
        fcntl.flock(fd, fcntl.LOCK_EX | fcntl.LOCK_NB)
        second = make(env={"DATA_DIR": first.data})
        time.sleep(0.3)
        assert second.proc.poll() is None, second.stderr()
    finally:
        os.close(fd)
    second.wait_ready()


def test_a_data_directory_that_cannot_be_made_is_named(make):
    s = make(env={"DATA_DIR": "/proc/no/data"})
    assert s.wait_exit() == 71
    assert "DATA_DIR" in s.stderr() and "/proc/no" in s.stderr()


# Users

def test_children_run_as_their_users(make):
    """nobody and another ordinary user stand for front and worker."""
    s = make(env={"RUN_AS_FRONT": "daemon", "RUN_AS_WORKER": "nobody"})
    s.wait_ready()
    daemon, nobody = pwd.getpwnam("daemon"), pwd.getpwnam("nobody")
    assert s.events("front", "uid")[0][3] == \
        f"{daemon.pw_uid} gid {daemon.pw_gid}"
    assert s.events("worker-0", "uid")[0][3] == \
        f"{nobody.pw_uid} gid {nobody.pw_gid}"
    assert "the front runs as daemon, the workers as nobody" in s.stderr()
    assert os.stat(s.data).st_uid == 0
    assert os.stat(os.path.join(s.data, "front")).st_uid == daemon.pw_uid
    assert os.stat(os.path.join(s.data, "links")).st_uid == nobody.pw_uid
    with open(f"/proc/{s.pid('front')}/status", encoding="ascii") as f:
        status = f.read()
    assert re.search(r"^CapEff:\s0+$", status, re.M)
    assert re.search(r"^CapPrm:\s0+$", status, re.M)
    # They still die with the supervisor: the change of ids clears the
    # death signal, so it was set afterwards.
    assert s.events("front", "pdeathsig")[0][3] == "9"


def test_only_the_worker_gets_the_group_of_the_engines_socket(make):
    s = make(start=False, env={"RUN_AS_FRONT": "daemon",
                               "RUN_AS_WORKER": "nobody"})
    path = os.path.join(s.dir, "engine.sock")
    with socket.socket(socket.AF_UNIX) as engine:
        engine.bind(path)
        os.chmod(path, 0o660)
        os.chown(path, 0, 54321)
        s.env["DOCKER_HOST"] = "unix://" + path
        s.start()
        s.wait_ready()

    def groups(role):
        with open(f"/proc/{s.pid(role)}/status", encoding="ascii") as f:
            return re.search(r"^Groups:(.*)$", f.read(), re.M)[1].split()
    assert groups("worker-0") == ["54321"]
    assert groups("front") == []


@pytest.mark.parametrize("owner, group, mode", [
    (0, "daemon", 0o660), ("daemon", 0, 0o600)])
def test_a_front_that_may_open_the_engines_socket_is_refused(
        make, owner, group, mode):
    s = make(start=False, env={"RUN_AS_FRONT": "daemon",
                               "RUN_AS_WORKER": "nobody"})
    path = os.path.join(s.dir, "engine.sock")
    with socket.socket(socket.AF_UNIX) as engine:
        engine.bind(path)
        os.chmod(path, mode)
        shutil.chown(path, owner, group)
        s.env["DOCKER_HOST"] = "unix://" + path
        s.start()
        assert s.wait_exit() == 78
    assert f"daemon may open the engine's socket {path}" in s.stderr()


@pytest.mark.parametrize("key, other", [
    ("RUN_AS_FRONT", "RUN_AS_WORKER"), ("RUN_AS_WORKER", "RUN_AS_FRONT")])
def test_a_missing_user_is_refused(make, key, other):
    s = make(env={key: "no-such-user", other: "nobody"})
    assert s.wait_exit() == 78
    assert f"{key}: there is no user no-such-user: make it (useradd" \
        in s.stderr()
    assert s.events() == []


def test_a_missing_user_is_refused_also_by_who_is_not_root(make):
    s = make(start=False, env={"RUN_AS_FRONT": "no-such-user"},
             user="nobody", group="nogroup", extra_groups=[])
    os.chmod(s.dir, 0o777)
    with open(s.stderr_path, "w", encoding="ascii"):
        pass
    os.chmod(s.stderr_path, 0o666)
    s.start()
    assert s.wait_exit() == 78
    assert "there is no user no-such-user" in s.stderr()


def test_front_and_workers_are_not_one_user(make):
    s = make(env={"RUN_AS_FRONT": "daemon", "RUN_AS_WORKER": "daemon"})
    assert s.wait_exit() == 78
    assert "are both daemon" in s.stderr()


@pytest.mark.parametrize("name", ["daemon", ""])
def test_children_have_no_capability_and_can_get_none(make, name):
    s = make(env={"RUN_AS_FRONT": name,
                  "RUN_AS_WORKER": name and "nobody"})
    s.wait_ready()
    for role in ("front", "worker-0"):
        with open(f"/proc/{s.pid(role)}/status", encoding="ascii") as f:
            status = f.read()
        sets = re.findall(r"^Cap[A-Z][a-z]+:\s(\w+)$", status, re.M)
        assert [int(s, 16) for s in sets] == [0] * 5, status
        with open(f"/proc/{s.pid(role)}/limits", encoding="ascii") as f:
            assert re.search(r"^Max core file size\s+0\s+0 ", f.read(), re.M)


def test_the_supervisor_keeps_what_it_needs(make):
    """To start children as other users (6, 7, 8) and to signal them (5)."""
    s = make(env={"RUN_AS_FRONT": "daemon", "RUN_AS_WORKER": "nobody"})
    s.wait_ready()
    needed = 1 << 5 | 1 << 6 | 1 << 7 | 1 << 8
    with open(f"/proc/{s.proc.pid}/status", encoding="ascii") as f:
        status = dict(line.split(":\t") for line in f if ":\t" in line)
    for kind in ("Prm", "Eff", "Bnd"):
        assert int(status[f"Cap{kind}"], 16) & ~needed == 0, kind
    assert int(status["CapInh"], 16) == int(status["CapAmb"], 16) == 0
    assert status["NoNewPrivs"].strip() == "1"
    # It is enough: a child that died comes back as its user.
    s.kill("front")
    wait_for("another front", lambda: len(s.pids("front")) == 2)
    daemon = pwd.getpwnam("daemon")
    s.wait_event("front", "uid", times=2)
    assert s.events("front", "uid")[1][3].startswith(f"{daemon.pw_uid} ")


def test_an_ordinary_user_starts_all_as_itself(make):
    s = make(start=False, user="nobody", group="nogroup", extra_groups=[])
    os.chmod(s.dir, 0o777)
    with open(s.stderr_path, "w", encoding="ascii"):
        pass
    os.chmod(s.stderr_path, 0o666)
    s.start()
    s.wait_ready()
    nobody = pwd.getpwnam("nobody")
    for role in ("front", "worker-0"):
        assert s.events(role, "uid")[0][3].startswith(f"{nobody.pw_uid} ")
    assert f"started as uid {nobody.pw_uid}:" in s.stderr()


def test_a_program_the_user_may_not_execute_ends_with_77(make):
    s = make(start=False, env={"RUN_AS_FRONT": "daemon",
                               "RUN_AS_WORKER": "nobody"})
    os.chmod(s.bin, 0o700)
    s.start()
    assert s.wait_exit() == 77
    assert "cannot execute" in s.stderr() and "daemon" in s.stderr()
    assert f"may not pass through {s.bin}" in s.stderr()


# Resources

def test_children_may_open_many_descriptors(make):
    s = make(preexec_fn=lambda: resource.setrlimit(
        resource.RLIMIT_NOFILE, (256, 4096)))
    s.wait_ready()
    with open(f"/proc/{s.pid('front')}/limits", encoding="ascii") as f:
        soft, hard = re.search(r"Max open files\s+(\d+)\s+(\d+)",
                               f.read()).groups()
    # All of the hard limit, and more where root may raise that.
    assert int(soft) >= 4096
    assert int(hard) >= int(soft)
