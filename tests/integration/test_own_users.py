"""SANDBOX_USERNS=auto: on Podman each sandbox has users of its own."""
import os

import pytest

from engines import Podman, started
from server import serving, write

pytestmark = pytest.mark.docker("of its engine")

FIRST, COUNT = 300000, 1000000
# Podman takes the ranges of the user "containers": here it has one, whatever
# the machine's own files say.
SERVICE = """
mount --bind "$1/ids" /etc/subuid && mount --bind "$1/ids" /etc/subgid &&
exec podman system service --time=0 "unix://$2"
"""


class PodmanWithRanges(Podman):
    def start(self):
        write(os.path.join(self.dir, "ids"), f"containers:{FIRST}:{COUNT}\n")
        self.spawn(["unshare", "--mount", "--propagation", "slave", "sh", "-c",
                    SERVICE, "sh", self.dir, self.path],
                   env=os.environ | {
                       "CONTAINERS_CONF": self.config,
                       "CONTAINERS_STORAGE_CONF": self.storage})


@pytest.fixture(scope="module", name="podman")
def podman_fixture(engine):
    with started(PodmanWithRanges()) as e:
        e.take_image(engine)
        yield e


@pytest.fixture(scope="module", name="client", params=["unix", "bridge"])
def client_fixture(request, build, podman):
    with serving(build, podman, env=podman.env | {
            "SANDBOX_USERNS": "auto", "CARRIER": request.param,
            "SANDBOX_AS_ROOT": "remapped"}) as s:
        yield s.client()


def first_of(client, box):
    """The user of the host that its root is."""
    inside, outside, count = map(
        int, client.out(box, "cat /proc/self/uid_map").split())
    assert inside == 0 and count >= 1000
    return outside


def test_no_sandbox_has_anothers_users(client):
    ones = [first_of(client, box) for box in ("one", "two", "three")]
    assert len(set(ones)) == 3
    assert all(FIRST <= n < FIRST + COUNT for n in ones)


def test_files_are_its_users(client):
    assert client.out("one", "echo x >/workspace/f && "
                      "stat -c %u:%g /workspace/f && id -u") == \
        "1000:1000\n1000\n"


def test_root_is_another_user_of_the_host_and_is_allowed(client):
    final = client.run("one", "id -u", as_user="root")
    assert final["commands"][0]["stdout"] == "0\n"
    shown = client.get("/api/v1/sandboxes/one")["isolation"]
    assert shown["users_remapped"] is True
