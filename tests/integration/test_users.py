"""Whose users a sandbox has: SANDBOX_AS_ROOT, an engine that remaps users, and
what the kernel counts per user."""
import os
import subprocess

import pytest

from engines import dockerd
from server import serving

TIMERS = """
import ctypes, sys, time
libc = ctypes.CDLL(None)
timer, n = ctypes.c_void_p(), 0
while n < int(sys.argv[1]) and libc.timer_create(
        0, None, ctypes.byref(timer)) == 0:
    n += 1
print(n, flush=True)
time.sleep(float(sys.argv[2]))
"""
QUEUE = """
import ctypes, os
libc = ctypes.CDLL(None)
print(libc.mq_open(b"/q", os.O_CREAT | os.O_RDWR, 0o600, None) >= 0)
"""


@pytest.fixture(scope="module")
def remapped(engine):
    with dockerd("--userns-remap=default") as e:
        e.take_image(engine)
        yield e


@pytest.fixture(scope="module")
def on_remapped(build, remapped):
    with serving(build, remapped,
                 env=remapped.env | {"SANDBOX_AS_ROOT": "remapped"}) as s:
        yield s


def has_remap(engine):
    return b'"name=userns"' in engine.request("GET", "/info")[1]


def as_root(client, name, script):
    return client.run(name, script, as_user="root")


@pytest.mark.parametrize("setting", ["deny", "remapped"])
def test_root_is_refused_where_it_is_not_allowed(
        make_server, engine, setting):
    if setting == "remapped" and has_remap(engine):
        pytest.skip("this engine remaps users")
    server = make_server(env={"SANDBOX_AS_ROOT": setting})
    client = server.client()
    final = as_root(client, "a", "id -u")
    assert final["state"] == "failed"
    assert "SANDBOX_AS_ROOT=" + setting in str(final)
    assert client.out("a", "id -u") == "1000\n"


def test_a_start_says_whose_root_it_is(server, engine):
    words = ("root of a sandbox is another user of this host"
             if has_remap(engine) else
             "root of a sandbox is this host's root")
    assert words in "\n".join(server.log)


def test_root_of_a_remapped_sandbox_is_not_the_hosts(on_remapped, remapped):
    client = on_remapped.client()
    final = as_root(client, "a", "id -u; cat /proc/self/uid_map; "
                    "touch /workspace/x && chown 1000 /workspace/x && "
                    "stat -c %u /workspace/x")
    out = final["commands"][0]["stdout"].split()
    assert (out[0], out[1], out[-1]) == ("0", "0", "1000")
    assert int(out[2]) > 0
    container = final["sandbox_container_id"]
    shown = remapped.inspect(container)
    assert os.stat(f"/proc/{shown['State']['Pid']}").st_uid == int(out[2])
    user = client.run("a", "id -un; id -u; echo x > /artifacts/y")
    assert user["commands"][0]["stdout"] == "sandbox\n1000\n"
    assert "root of a sandbox is another user" in on_remapped.tail()
    # Let in by an access list, which the worker may make.
    assert "Function not implemented" not in on_remapped.tail()


def test_a_run_of_root_outlives_its_worker(on_remapped):
    client = on_remapped.client()
    run = client.start(
        "a", "echo begun; while [ ! -e /workspace/go ]; do sleep 0.05; done; "
        "echo done", as_user="root")
    client.wait_output(run["run_id"])
    on_remapped.kill("worker")
    client.run("a", "touch /workspace/go")
    final = client.wait_end(run["run_id"])
    assert final["commands"][0]["stdout"] == "begun\ndone\n"
    assert final["commands"][0]["exit_code"] == 0


def test_neighbours_on_a_remapped_engine_keep_their_timers(on_remapped):
    client = on_remapped.client()
    client.run("a", "cat > /workspace/t.py <<'E'\n" + TIMERS + "E")
    client.run("b", "cat > /workspace/t.py <<'E'\n" + TIMERS + "E")
    greedy = client.start("a", "python3 /workspace/t.py 1000000 60")
    client.wait_output(greedy["run_id"])
    taken = client.stdout_of(greedy["run_id"])
    assert 0 < int(taken) <= 1024
    assert client.out("b", "python3 /workspace/t.py 1000 0") == "1000\n"
    host = subprocess.run(["python3", "-c", TIMERS, "1000", "0"],
                          stdout=subprocess.PIPE, text=True, check=True)
    assert host.stdout == "1000\n"


def test_nobody_takes_posix_queues(client, sandbox):
    for options in ({}, {"as_user": "root"}):
        assert client.out(sandbox, "python3 - <<'E'\n" + QUEUE + "E",
                          **options) == "False\n"
    host = subprocess.run(["python3", "-c", QUEUE.replace("/q", "/mcpq")
                           + "libc.mq_unlink(b'/mcpq')\n"],
                          stdout=subprocess.PIPE, text=True, check=True)
    assert host.stdout == "True\n"
