"""./bootstrap, as far as it needs no engine."""
import os
import shutil
import subprocess

import pytest

from pages import TOP


@pytest.fixture
def tree(tmp_path):
    """Of a path that leaves no room for a socket below it."""
    path = tmp_path / ("long" * 20)
    path.mkdir()
    shutil.copy(os.path.join(TOP, "bootstrap"), path)
    return path


def bootstrap(tree, *args):
    return subprocess.run(["./bootstrap", *args], cwd=tree, text=True,
                          stdin=subprocess.DEVNULL, capture_output=True,
                          timeout=60, check=False)


def engines_place(tree):
    done = subprocess.run(["cksum"], input=str(tree), text=True,
                          capture_output=True, check=True)
    return f"/run/mcp-sandboxd-{done.stdout.split()[0]}"


@pytest.mark.skipif(os.geteuid() != 0, reason="/run is root's")
def test_stop_leaves_nothing_of_the_engine_in_run(tree):
    place = engines_place(tree)
    os.makedirs(os.path.join(place, "containerd"))
    done = bootstrap(tree, "stop")
    assert done.returncode == 0, done.stderr
    assert "no engine of ours runs" in done.stdout
    assert not os.path.exists(place)


@pytest.mark.parametrize("args", [["stop", "--al"], ["run", "--twice"]])
def test_a_slip_is_an_error(tree, args):
    done = bootstrap(tree, *args)
    assert done.returncode == 1 and args[1] in done.stderr
