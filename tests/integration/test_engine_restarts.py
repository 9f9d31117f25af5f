"""An engine that is restarted while runs go on.  With live-restore its
containers live, and runs are whole; without it they are lost, which is told."""
import pytest

from client import stdout, wait_for
from engines import dockerd
from server import serving

BOXES = ("a", "b")
# Numbers, until it is told to end.
COUNTER = ("i=0; while [ ! -e /workspace/go ]; do "
           "seq $((i * 100)) $((i * 100 + 99)); i=$((i + 1)); sleep 0.05; "
           "done; echo the end")
# Ends by itself, perhaps while no engine is there.
SHORT = "echo begun; sleep 0.5; seq 5000; exit 3"
SHORT_PRINTS = "begun\n" + "".join(f"{n}\n" for n in range(1, 5001))


@pytest.fixture(scope="module")
def living():
    with dockerd(live_restore=True) as e:
        e.image = e.import_image()
        yield e


@pytest.fixture(scope="module")
def mortal():
    with dockerd() as e:
        e.image = e.import_image()
        yield e


@pytest.fixture(params=["unix", "bridge"])
def serve(request, build):
    def server_of(engine):
        return serving(build, engine, env=engine.env | {
            "SANDBOX_IMAGE": engine.image, "CARRIER": request.param,
            "WORKERS": "1", "DEFAULT_MEMORY_MB": "128"})
    return server_of


@pytest.fixture(params=["stop", "kill"])
def restart(request):
    """By SIGTERM, by SIGKILL."""
    def restart_it(engine, server):
        getattr(engine, request.param)()
        wait_for(lambda: server.get("/readyz")[0] != 200, 30, "its absence")
        engine.start()
        engine.await_start()
        wait_for(server.is_ready, 60, "readiness")
    return restart_it


def bridges(engine, server):
    return {pid for c in engine.containers(server.instance)
            for pid in engine.bridges(c["Id"])}


def check_counted(view):
    assert (view["state"], view["end_reason"]) == ("completed", "exit"), view
    *numbers, last, rest = stdout(view).split("\n")
    assert (last, rest) == ("the end", "")
    assert numbers == [str(n) for n in range(len(numbers))]


def test_runs_are_whole_with_live_restore(living, serve, restart):
    with serve(living) as server:
        client = server.client()
        counters = [client.start(box, COUNTER)["run_id"] for box in BOXES]
        short = [client.start(box, SHORT)["run_id"] for box in BOXES]
        for run in counters + short:
            client.wait_output(run)
        boxes = {c["Id"] for c in living.containers(server.instance)}
        before = bridges(living, server)
        restart(living, server)
        for run in short:
            view = client.wait_end(run)
            assert stdout(view) == SHORT_PRINTS
            assert view["commands"][0]["exit_code"] == 3
        for box in BOXES:
            client.run(box, "touch /workspace/go")
        for run in counters:
            check_counted(client.wait_end(run))
        assert {c["Id"] for c in
                living.containers(server.instance)} == boxes
        # Nobody has told the old ones but their agents.
        wait_for(lambda: len(bridges(living, server)) == len(before), 60,
                 "as many bridges as before")
        assert not bridges(living, server) & before
        assert client.out("fresh", "echo on") == "on\n"


def test_runs_end_with_the_engine_without_live_restore(
        mortal, serve, restart):
    with serve(mortal) as server:
        client = server.client()
        run = client.start("a", "echo first; sleep 600")["run_id"]
        client.wait_output(run)
        box, = mortal.containers(server.instance)
        restart(mortal, server)
        final = client.wait_end(run)
        assert (final["state"], final["end_reason"]) == \
            ("failed", "sandbox_lost"), final
        assert final["error"], final
        assert stdout(final) == "first\n"
        assert client.out("a", "echo again") == "again\n"
        # Sooner than by a sweep that would come anyway.
        wait_for(lambda: [c["State"] for c in mortal.containers(
            server.instance)] == ["running"], 20, "one box")
        assert mortal.containers(server.instance)[0]["Id"] != box["Id"]
