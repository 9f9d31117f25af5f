"""A cluster takes away what it made, whatever end it had."""
import contextlib
import json
import signal
import urllib.parse

from . import Running, running
from .bodies import Pods, container
from .peer import wait_for


def marked(engine):
    """{what: [labels of runs]} of all that clusters made in the engine."""
    filters = urllib.parse.quote(json.dumps({"label": ["test-cluster.run"]}))
    out = {}
    for what, path, key in (("containers", "/containers/json?all=1&", None),
                            ("volumes", "/volumes?", "Volumes"),
                            ("images", "/images/json?", None)):
        status, data = engine.request("GET", f"{path}filters={filters}")
        assert status == 200, data
        found = json.loads(data)
        out[what] = [o["Labels"]["test-cluster.run"]
                     for o in (found[key] if key else found) or ()]
    return out


def left_by(engine, pid):
    return {what for what, marks in marked(engine).items()
            if any(f"/{pid}/" in m for m in marks)}


def fill(cluster, image):
    """A Pod with a volume and a holder, and a claim."""
    mount = {"volumeMounts": [{"name": "m", "mountPath": "/m"}]}
    pods = Pods(cluster, image)
    pods.running("left", container=mount, initContainers=[
        container(image, "true", name="first", **mount)], volumes=[
        {"name": "m", "emptyDir": {"medium": "Memory"}}])
    cluster.ask("POST", "/api/v1/namespaces/sbx/persistentvolumeclaims", {
        "metadata": {"name": "left"}, "spec": {
            "accessModes": ["ReadWriteOnce"],
            "resources": {"requests": {"storage": "1Gi"}}}})
    wait_for(lambda: cluster.ask(
        "GET", "/api/v1/namespaces/sbx/persistentvolumeclaims/left")[1][
            "status"]["phase"] == "Bound", "the claim")


def test_nothing_is_left_after_an_end(engine, image):
    with running() as cluster:
        fill(cluster, image)
        pid = cluster.process.pid
        assert left_by(engine, pid) == {"containers", "volumes", "images"}
    assert left_by(engine, pid) == set()


def test_the_next_one_takes_away_what_a_killed_one_left(engine, image):
    killed = Running()
    with contextlib.ExitStack() as stack:
        stack.callback(killed.clear)
        killed.start()
        fill(killed, image)
        killed.process.send_signal(signal.SIGKILL)
        killed.process.wait()
        killed.process.stdout.close()
        pid = killed.process.pid
        assert left_by(engine, pid) == {"containers", "volumes", "images"}
        with running():
            assert left_by(engine, pid) == set()


def test_one_leaves_another_alone(engine, image):
    with running() as one:
        fill(one, image)
        with running():
            assert left_by(engine, one.process.pid) == {
                "containers", "volumes", "images"}
        assert Pods(one, image).phase("left") == "Running"
