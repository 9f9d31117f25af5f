"""The life of sandboxes on Podman's service (Debian's 4.3.1, with runc): what
differs from Docker in its API shows nowhere above the worker."""
import json
import os
import signal
import time

import pytest

from client import stdout, wait_for
from engines import podman
from server import serving
from test_instance import remove_database

pytestmark = pytest.mark.docker("of its engine")

SETTINGS = {"WORKERS": "1", "DEFAULT_MEMORY_MB": "128", "SANDBOX_TMP_MB": "16"}


@pytest.fixture(scope="module")
def podman_engine():
    with podman() as e:
        e.image = e.import_image()
        yield e


@pytest.fixture(scope="module", params=["unix", "bridge"])
def on_podman(request, build, podman_engine):
    with serving(build, podman_engine, env=podman_engine.env | SETTINGS | {
            "SANDBOX_IMAGE": podman_engine.image,
            "CARRIER": request.param}) as s:
        yield s


@pytest.fixture
def box(on_podman):
    client = on_podman.client()
    name = f"p{time.monotonic_ns()}"
    yield client, name
    client.delete(name)
    client.close()


@pytest.fixture
def make_podman_server(make_server, podman_engine):
    def make(**env):
        return make_server(env=podman_engine.env | SETTINGS | {
            "SANDBOX_IMAGE": podman_engine.image, **env})
    return make


def container_of(engine, server):
    c, = engine.containers(server.instance)
    return engine.inspect(c["Id"])


def test_a_command_runs_on_podman(box, podman_engine, on_podman):
    client, name = box
    assert client.out(name, "echo hello; id -u") == "hello\n1000\n"
    assert client.out(name, "id -u", as_user="root") == "0\n"
    assert any("Podman Engine 4." in n for n in on_podman.log)
    c = container_of(podman_engine, on_podman)
    assert c["Config"]["Labels"]["mcp.role"] == "sandbox"
    assert c["HostConfig"]["Memory"] == 128 << 20
    assert c["HostConfig"]["NetworkMode"] == "none"
    assert any(o.startswith("seccomp=/") for o in
               c["HostConfig"]["SecurityOpt"])


def test_a_sandbox_on_podman_has_no_network(box):
    client, name = box
    assert client.out(name, "ls /sys/class/net") == "lo\n"


def test_a_run_on_podman_outlives_all_of_the_server(box, on_podman):
    client, name = box
    run = client.start(name, "echo begun; while [ ! -e /workspace/go ]; do "
                       "sleep 0.05; done; echo done")
    client.wait_output(run["run_id"])
    on_podman.kill("worker")
    client.run(name, "touch /workspace/go")
    final = client.wait_end(run["run_id"])
    assert final["commands"][0]["stdout"] == "begun\ndone\n"


def test_an_end_on_podman_is_heard_of(box, podman_engine, on_podman):
    client, name = box
    client.out(name, "true")
    c = container_of(podman_engine, on_podman)
    os.kill(c["State"]["Pid"], signal.SIGKILL)
    wait_for(lambda: any("is lost: exited with status 137" in n and
                         f"-{name}-" in n for n in on_podman.log), 20,
             "word of it")
    assert client.out(name, "echo again") == "again\n"


def test_a_deleted_sandbox_leaves_nothing_on_podman(
        on_podman, podman_engine):
    client = on_podman.client()
    client.out("gone", "true")
    client.delete("gone")
    wait_for(lambda: not podman_engine.containers(on_podman.instance), 20,
             "its container's end")
    assert client.out("gone", "ls /workspace") == ""
    client.delete("gone")


def test_podman_restarted_keeps_its_sandboxes(on_podman, podman_engine, box):
    """Its service is nobody's parent: containers go on without it."""
    client, name = box
    client.run(name, "echo kept > /workspace/f")
    before = container_of(podman_engine, on_podman)["Id"]
    podman_engine.kill()
    wait_for(lambda: on_podman.get("/readyz")[0] != 200, 30, "its absence")
    podman_engine.start()
    podman_engine.await_start()
    wait_for(on_podman.is_ready, 30, "readiness")
    assert client.out(name, "cat /workspace/f") == "kept\n"
    assert container_of(podman_engine, on_podman)["Id"] == before


def test_a_server_that_starts_anew_finds_its_sandboxes_on_podman(
        podman_engine, make_podman_server):
    server = make_podman_server()
    client = server.client()
    client.run("kept", "echo kept > /workspace/f")
    server.restart(signal.SIGKILL)
    client = server.client()
    assert client.out("kept", "cat /workspace/f") == "kept\n"
    client.delete("kept")
    wait_for(lambda: not podman_engine.containers(server.instance), 20,
             "its container's end")


@pytest.mark.parametrize("step", ["restart?t=0", "stop?t=0"],
                         ids=["restarted", "stopped"])
def test_a_box_restarted_by_hand_on_podman_is_lost_and_replaced(
        box, podman_engine, on_podman, step):
    client, name = box
    run = client.start(name, "echo first; sleep 600")["run_id"]
    client.wait_output(run)
    before = container_of(podman_engine, on_podman)["Id"]
    with on_podman.standing_still("worker"):  # or it removes what was stopped
        status, said = podman_engine.request(
            "POST", f"/containers/{before}/{step}")
    assert status == 204, said
    final = client.wait_end(run)
    assert (final["state"], final["end_reason"]) == \
        ("failed", "sandbox_lost"), final
    assert final["error"], final
    assert stdout(final) == "first\n"
    assert client.out(name, "echo again") == "again\n"
    wait_for(lambda: [c["State"] for c in podman_engine.containers(
        on_podman.instance)] == ["running"], 20, "one box")
    assert container_of(podman_engine, on_podman)["Id"] != before


@pytest.fixture(params=["unix", "bridge"])
def forgetful(request, make_podman_server):
    """A server that has lost its database, and with it a sandbox."""
    server = make_podman_server(CARRIER=request.param)
    server.client().run("lost", "true")
    server.stop()
    remove_database(server)
    return server


def test_what_nobody_knows_on_podman_is_stopped_and_then_removed(
        forgetful, podman_engine):
    def states():
        return [c["State"] for c in
                podman_engine.containers(forgetful.instance)]

    forgetful.restart(args=["--forget"])
    wait_for(lambda: states() == ["exited"], 60, "the stop")
    forgetful.restart(args=["UNKNOWN_KEEP_SECONDS=1"])
    wait_for(lambda: states() == [], 60, "the removal")
    client = forgetful.client()
    assert client.out("lost", "ls /workspace") == ""
    client.delete("lost")
    wait_for(lambda: states() == [], 60, "the end")


def prepared(engine):
    """Ids of the images that have our agent."""
    status, data = engine.request("GET", "/images/json")
    assert status == 200, data
    return [i["Id"] for i in json.loads(data)
            if "mcp.prepared_base" in (i["Labels"] or {})]


def test_podman_commits_one_image_for_all_sandboxes_of_a_base(
        make_podman_server, podman_engine):
    server = make_podman_server(CARRIER="bridge")
    client = server.client()
    for _ in range(2):  # the second time, of one that was removed
        for name in ("a", "b"):
            assert client.out(name, "echo hello") == "hello\n"
        image, = prepared(podman_engine)
        for c in podman_engine.containers(server.instance):
            c = podman_engine.inspect(c["Id"])
            assert c["Image"] in image
            assert c["Config"]["Labels"]["mcp.image"] == podman_engine.image
        for name in ("a", "b"):
            client.delete(name)
        wait_for(lambda: not podman_engine.containers(server.instance), 20,
                 "the containers' end")
        status, said = podman_engine.request("DELETE", f"/images/{image}")
        assert status == 200, said
