"""agent install: the program comes into a directory that a sandbox mounts."""
import os
import shutil
import stat
import subprocess
import tempfile
from pathlib import Path

import pytest


def install(agent, directory, **more):
    return subprocess.run([agent, "install", directory], timeout=20,
                          capture_output=True, text=True, check=False, **more)


@pytest.fixture(name="shared")
def shared_fixture():
    """A directory that every user reaches, unlike those of tmp_path."""
    with tempfile.TemporaryDirectory(prefix="install-") as name:
        os.chmod(name, 0o755)
        yield Path(name)


@pytest.fixture(name="small")
def small_fixture(tmp_path):
    """A file system with room for no agent."""
    subprocess.run(["mount", "-t", "tmpfs", "-o", "size=64k", "none",
                    tmp_path], check=True)
    yield tmp_path
    subprocess.run(["umount", tmp_path], check=True)


def test_the_copy_is_the_program(agent, tmp_path):
    done = install(agent, tmp_path)
    assert (done.returncode, done.stderr) == (0, "")
    assert os.listdir(tmp_path) == ["agent"]
    with open(agent, "rb") as wanted:
        assert (tmp_path / "agent").read_bytes() == wanted.read()


def test_what_was_there_is_replaced_and_a_draft_left_over_too(agent, tmp_path):
    (tmp_path / "agent").write_text("old")
    (tmp_path / ".agent-draft").write_text("half")
    assert install(agent, tmp_path).returncode == 0
    assert os.listdir(tmp_path) == ["agent"]
    assert os.path.getsize(tmp_path / "agent") == os.path.getsize(agent)


def test_without_room_nothing_is_left_and_it_says_so(agent, small):
    done = install(agent, small)
    assert done.returncode == 1
    assert done.stderr == (f"agent install: write {small}/.agent-draft: "
                           "No space left on device\n")
    assert os.listdir(small) == []


@pytest.mark.parametrize("name,why", [
    ("nowhere", "No such file or directory"), ("file", "Not a directory")])
def test_where_there_is_no_directory_it_says_so(agent, tmp_path, name, why):
    (tmp_path / "file").write_text("")
    done = install(agent, tmp_path / name)
    assert done.returncode == 1
    assert done.stderr == f"agent install: open {tmp_path / name}/.: {why}\n"


def test_a_user_other_than_root_installs_and_runs_it(agent, shared):
    """As the init container and the sandbox of a restricted Pod do."""
    os.chown(shared, 1234, 1234)
    shutil.copy(agent, shared / "of-the-image")
    os.chmod(shared / "of-the-image", 0o755)
    done = install(shared / "of-the-image", shared, user=1234, group=1234)
    assert (done.returncode, done.stderr) == (0, "")
    assert stat.S_IMODE(os.stat(shared / "agent").st_mode) == 0o111
    done = subprocess.run([shared / "agent", "reach", "nobody"], user=1234,
                          group=1234, stderr=subprocess.PIPE, check=False)
    assert done.returncode == 64


def test_nobody_looks_into_it_from_its_first_instruction_on(agent, shared):
    """Before it has asked the kernel for that: here it never does."""
    assert install(agent, shared).returncode == 0
    with subprocess.Popen([shared / "agent", "listen", "1024"], user=1234,
                          group=1234, stderr=subprocess.PIPE) as program:
        try:
            assert os.stat(f"/proc/{program.pid}/mem").st_uid == 0
        finally:
            program.kill()
