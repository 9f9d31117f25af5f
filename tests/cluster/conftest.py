"""Fixtures: a cluster on the local engine, and kubectl.

Environment: DOCKER_HOST (unix://...).  The image of the Pods is a busybox that
is imported once and taken away at the end.
"""
import os
import sys

import pytest

sys.path.insert(0, os.path.join(os.path.dirname(__file__), "../worker"))

from cluster import running  # noqa: E402
from cluster.bodies import Pods  # noqa: E402
from cluster.kubectl import Kubectl  # noqa: E402
from driver import Engine  # noqa: E402

IMAGE = f"localhost/test-cluster/box-{os.getpid()}"


@pytest.fixture(scope="session")
def engine():
    host = os.environ.get("DOCKER_HOST", "")
    assert host.startswith("unix://"), "set DOCKER_HOST to unix:///path"
    return Engine(host.removeprefix("unix://"))


@pytest.fixture(scope="session")
def image(engine):
    engine.import_image(IMAGE)
    yield f"{IMAGE}:latest"
    engine.request("DELETE", f"/images/{IMAGE}:latest?force=1")


@pytest.fixture(scope="session")
def shared_cluster(engine, image):
    with running() as c:
        yield c


@pytest.fixture
def cluster(shared_cluster):
    """One for all tests that leave nothing of their bad days; what a test
    made in it goes with the test."""
    yield shared_cluster
    shared_cluster.faults.reset()


@pytest.fixture
def kubectl(cluster):
    return Kubectl(cluster)


@pytest.fixture
def pods(cluster, image):
    return Pods(cluster, image)
