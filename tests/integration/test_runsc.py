"""gVisor: sandboxes by the runtime runsc, on an engine of the tests' own.  Its
Unix sockets do not leave the sandbox, so that the carrier is the bridge.

What it does not do is in docs/security.md ("Under gVisor"), each line tried
here."""
import os
import shutil

import pytest

from client import wait_for
from engines import dockerd
from server import serving, write

pytestmark = pytest.mark.docker("of its engine")

# As on a machine without KVM; without a network; and where the shim's control
# group may not be divided.
WRAPPER = """#!/bin/sh
exec %s --platform=ptrace --network=none --ignore-cgroups "$@"
"""


@pytest.fixture(scope="module", name="gvisor")
def gvisor_fixture(engine, tmp_path_factory):
    """An engine that has runsc beside runc."""
    program = shutil.which("runsc")
    assert program, "these tests need Debian's package runsc"
    wrapper = str(tmp_path_factory.mktemp("runsc") / "runsc")
    write(wrapper, WRAPPER % program, 0o755)
    with dockerd("--add-runtime", "runsc=" + wrapper) as e:
        e.take_image(engine)
        yield e


@pytest.fixture(scope="module", name="server")
def server_fixture(build, gvisor):
    with serving(build, gvisor, env=gvisor.env | {
            "SANDBOX_RUNTIME": "runsc", "CARRIER": "bridge"}) as s:
        yield s


@pytest.fixture
def client(server):
    return server.client()


def container(server, engine, name):
    box, = [c for c in engine.containers(server.instance)
            if c["Labels"]["mcp.identifier"] == name]
    return engine.inspect(box["Id"])


def test_a_command_runs_in_gvisor(server, client, gvisor, sandbox):
    assert "Starting gVisor" in client.out(sandbox, "dmesg")
    assert container(server, gvisor, sandbox)["HostConfig"]["Runtime"] == \
        "runsc"


def test_isolation_names_the_runtime(client, sandbox):
    client.out(sandbox, "true")
    shown = client.get(f"/api/v1/sandboxes/{sandbox}")["isolation"]
    assert shown["runtime"] == "runsc"
    assert shown["seccomp"] == "not enforced"


def test_a_status_is_the_commands(client, sandbox):
    final = client.run(sandbox, {"shell": "exit 3", "allow_failure": True},
                       {"shell": "kill -9 $$", "allow_failure": True})
    assert [c["exit_code"] for c in final["commands"]][0] == 3
    assert final["commands"][1]["signal"] == 9


def test_output_of_both_kinds_is_whole(client, sandbox):
    run = client.start(sandbox, "seq 100000; echo last >&2")["run_id"]
    final = client.wait_end(run)
    assert final["commands"][0]["stderr"] == "last\n"
    assert client.stdout_of(run) == "".join(
        f"{n}\n" for n in range(1, 100001))


def test_files_stay_from_one_run_to_the_next(client, sandbox):
    client.out(sandbox, "echo kept >/workspace/file; id -u >/workspace/id")
    assert client.out(sandbox, "cat /workspace/file /workspace/id") == \
        "kept\n1000\n"


def test_artifacts_are_taken(server, client, sandbox):
    final = client.run(sandbox, "seq 50000 >/artifacts/out.txt")
    one, = final["artifacts"]
    assert one["path"] == "out.txt"
    with open(server.blob_of(one), encoding="ascii") as f:
        assert f.read().split()[-1] == "50000"


def test_a_timeout_ends_all_that_a_command_started(client, sandbox):
    final = client.run(
        sandbox, {"shell": "(setsid sleep 4711 &); sleep 4711 & sleep 4711",
                  "timeout_ms": 1500})
    assert final["commands"][0]["end_reason"] == "timeout"
    wait_for(lambda: client.out(
        sandbox, "pgrep -cx sleep || true") == "0\n", 10, "they are dead")


def test_what_a_command_leaves_ends_with_it_where_that_is_asked(
        client, sandbox):
    client.out(sandbox, "(setsid sleep 4713 &); sleep 4714 & echo",
               kill_leftovers=True)
    assert client.out(sandbox, "pgrep -cx sleep || true") == "0\n"


def test_more_files_than_allowed_end_what_runs(build, gvisor):
    with serving(build, gvisor, env=gvisor.env | {
            "SANDBOX_RUNTIME": "runsc", "CARRIER": "bridge",
            "SANDBOX_DISK_INODES": "300"}) as small:
        final = small.client().run(
            "box", "for i in $(seq 900); do echo >f$i; done; sleep 60")
    assert final["commands"][0]["end_reason"] == "disk_full"


def test_use_is_counted(client, sandbox):
    final = client.run(
        sandbox, "python3 -c 'x = b\"x\" * (100 << 20)\n"
        "for i in range(3000000): pass'")
    run = client.get(f"/api/v1/runs/{final['run_id']}")
    assert run["cpu_seconds"] > 0.1
    assert run["memory_peak_bytes"] > 100 << 20


def test_a_cancel_ends_a_command(client, sandbox):
    run = client.start(sandbox, "echo begun; sleep 4712")["run_id"]
    client.wait_output(run)
    client.cancel(run)
    assert client.wait_end(run)["state"] == "canceled"
    assert client.out(sandbox, "pgrep -cx sleep || true") == "0\n"


def test_standard_input_has_ended_and_code_is_run(client, sandbox):
    assert client.out(sandbox, "wc -c") == "0\n"
    made = client.call("execute_code", identifier=sandbox, language="python",
                       code="print(6 * 7)")
    assert "42" in str(made)


def test_runs_go_on_side_by_side(client, sandbox):
    client.out(sandbox, "mkfifo /workspace/p")
    reader = client.start(sandbox, "cat /workspace/p")["run_id"]
    client.out(sandbox, "echo met >/workspace/p")
    assert client.wait_end(reader)["commands"][0]["stdout"] == "met\n"


def test_a_restart_gives_a_sandbox_anew(server, client, gvisor, sandbox):
    client.out(sandbox, "echo gone >/workspace/file")
    before = container(server, gvisor, sandbox)["Id"]
    client.call("restart_sandbox", identifier=sandbox)
    assert "No such file" in client.run(
        sandbox, {"shell": "cat /workspace/file", "allow_failure": True}
    )["commands"][0]["stderr"]
    assert container(server, gvisor, sandbox)["Id"] != before


def test_a_deletion_leaves_nothing(server, client, gvisor, sandbox):
    client.out(sandbox, "true")
    box = container(server, gvisor, sandbox)["Id"]
    client.delete(sandbox)
    wait_for(lambda: gvisor.request("GET", f"/containers/{box}/json")[0]
             == 404, 30, "the container is gone")
    wait_for(lambda: not processes_of(box), 30, "no process of gVisor's")


def processes_of(box):
    found = []
    for pid in filter(str.isdigit, os.listdir("/proc")):
        try:
            with open(f"/proc/{pid}/cmdline", "rb") as f:
                words = f.read()
        except OSError:
            continue
        if b"runsc" in words and box.encode() in words:
            found.append(pid)
    return found


def test_runs_survive_the_death_of_a_worker(server, client, sandbox):
    run = client.start(sandbox, "seq 1000; sleep 3; seq 1000")["run_id"]
    client.wait_output(run)
    server.kill("worker")
    final = client.wait_end(run)
    assert final["state"] == "completed"
    assert client.stdout_of(run) == "".join(
        f"{n}\n" for n in range(1, 1001)) * 2


def test_a_share_that_gvisor_does_not_set_is_one_warning(build, gvisor):
    """It is asked for again and again, as an engine may be busy."""
    with serving(build, gvisor, env=gvisor.env | {
            "SANDBOX_RUNTIME": "runsc", "CARRIER": "bridge", "WORKERS": "1",
            "LOG_LEVEL": "debug"}) as server:
        def told(what):
            return [n for n in server.log if "box mcp-sbx-box-" in n and
                    f"its share of the host is {what} set" in n]
        client = server.client()
        client.out("box", "true")
        client.out("another", "true")  # each has a half from now on
        wait_for(lambda: told("still not"), 30, "a second failure")
        first, = told("not")
        assert " warn " in first
