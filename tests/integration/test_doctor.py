"""mcp-sandboxd doctor: what holds on this host and what does not."""
import functools
import json
import os
import subprocess
import tempfile

import pytest

pytestmark = pytest.mark.docker("of its engine")


@pytest.fixture
def doctor(program):
    return functools.partial(program, "doctor")


def states(done):
    """{what: its states}"""
    found = {}
    for f in json.loads(done.stdout)["findings"]:
        found.setdefault(f["what"], set()).add(f["state"])
    return found


def test_it_says_what_holds_and_changes_nothing(doctor, program):
    done = doctor("--json")
    said = json.loads(done.stdout)
    found = states(done)
    assert {"settings", "processes", "kernel", "landlock", "clock", "disk",
            "engine", "containerd", "runc", "users", "seccomp", "lsm",
            "cgroups", "limits", "storage", "disks",
            "carrier"} <= set(found)
    good = all(s == {"holds"} for s in found.values())
    assert said["holds"] == good
    assert done.returncode == (0 if good else 1), done.stderr
    for f in said["findings"]:
        assert (f["advice"] == "") == (f["state"] == "holds"), f
    assert os.listdir(program.top) == []


def test_it_agrees_with_the_engine(doctor, engine):
    _, data = engine.request("GET", "/info")
    info = json.loads(data)
    options = str(info["SecurityOptions"])
    found = states(doctor("--json"))
    assert found["users"] == {"holds" if "name=userns" in options
                              or "name=rootless" in options else "fails"}
    assert found["seccomp"] == {"holds" if "name=seccomp" in options
                                else "fails"}
    assert found["cgroups"] == {"holds" if info["CgroupVersion"] == "2"
                                else "fails"}


def test_people_get_a_table(doctor):
    done = doctor()
    lines = done.stdout.splitlines()
    assert lines[-1].split()[1:] == ["hold,", lines[-1].split()[2], "do",
                                     "not,", lines[-1].split()[5], "unknown"]
    assert any(line.startswith("holds    settings") for line in lines)


def test_without_an_engine_it_says_so(doctor, tmp_path):
    done = doctor("--json", DOCKER_HOST=f"unix://{tmp_path}/none.sock")
    assert done.returncode == 1
    assert states(done)["engine"] == {"fails"}
    assert "none.sock" in done.stdout


def test_without_a_profile_it_says_so(doctor):
    done = doctor("--json", "SANDBOX_SECCOMP=unconfined",
                  "SANDBOX_ALLOW_UNCONFINED=true")
    assert states(done)["seccomp"] == {"fails"}


def test_a_runtime_that_the_engine_lacks_is_named(doctor):
    done = doctor("--json", SANDBOX_RUNTIMES_ALLOWED="runc,no-such")
    assert states(done)["runtime"] == {"fails"}
    assert "no-such (SANDBOX_RUNTIMES_ALLOWED)" in done.stdout


def carrier(done):
    finding, = [f for f in json.loads(done.stdout)["findings"]
                if f["what"] == "carrier"]
    return finding["state"], finding["text"]


def test_a_carrier_that_is_set_is_named(doctor):
    for word in ("unix", "bridge"):
        assert carrier(doctor("--json", CARRIER=word)) == \
            ("holds", f"{word}, set by CARRIER")


def test_a_carrier_that_takes_a_trial_is_left_to_workers(doctor):
    state, text = carrier(doctor("--json", CARRIER="auto"))
    assert state == "holds"
    assert text.startswith("auto: unix where the engine at "), text
    assert "each worker makes one at its start" in text


def test_a_carrier_needs_an_engine_to_be_tried_with(doctor, tmp_path):
    done = doctor("--json", CARRIER="auto",
                  DOCKER_HOST=f"unix://{tmp_path}/none.sock")
    assert carrier(done) == ("unknown",
                             "auto: there is no engine to try it with")


@pytest.mark.parametrize("setting", [
    {"SANDBOX_RUNTIME": "runsc"}, {"SANDBOX_RUNTIMES_ALLOWED": "runc,runsc"}])
def test_a_socket_of_this_host_is_in_no_sandbox_of_gvisor(doctor, setting):
    state, text = carrier(doctor("--json", CARRIER="unix", **setting))
    assert state == "fails"
    assert text.endswith("no socket of this host is in sandboxes of runsc")
    assert carrier(doctor("--json", CARRIER="auto", **setting))[0] == "holds"


def test_it_says_what_each_runtime_isolates(doctor, engine):
    done = doctor("--json")
    texts = [f["text"] for f in json.loads(done.stdout)["findings"]
             if f["what"] == "runtimes"]
    there = json.loads(engine.request("GET", "/info")[1])["Runtimes"]
    assert {t.split()[0] for t in texts} == set(there)
    assert any(t.startswith("runc isolates by namespaces and control groups; "
                            "the host's kernel is shared") for t in texts)


@pytest.mark.parametrize("setting", ["PORT=x", "SANDBOX_CAP_ADD=NO_SUCH"])
def test_wrong_settings_are_named(doctor, setting):
    done = doctor(setting)
    assert done.returncode == 78
    assert setting.split("=")[0] in done.stderr
    assert done.stdout == ""


def test_a_wrong_command_line_is_64(doctor, program):
    assert doctor("--jsn").returncode == 64
    program.refuses("--json", status=[64], words=["doctor"])


@pytest.fixture
def mounted():
    """A file system on a loop over a file in this directory; its place."""
    made = []

    def mount(over):
        image = os.path.join(over, "image")
        with open(image, "wb") as f:
            f.truncate(16 << 20)
        subprocess.run(["mkfs.ext4", "-q", image], check=True)
        place = tempfile.mkdtemp(prefix="doctor-disk-", dir="/tmp")
        subprocess.run(["mount", "-o", "loop", image, place], check=True)
        made.append(place)
        os.chmod(place, 0o755)
        return place
    yield mount
    for place in made:
        subprocess.run(["umount", place], check=True)
        os.rmdir(place)


def disks(done):
    finding, = [f for f in json.loads(done.stdout)["findings"]
                if f["what"] == "disks"]
    return finding


def engines_data(engine):
    return json.loads(engine.request("GET", "/info")[1])["DockerRootDir"]


def test_a_store_on_the_engines_disk_is_told(doctor, engine, mounted):
    """Also through a loop: its blocks are on the disk below."""
    beside = os.path.dirname(engines_data(engine))
    with tempfile.TemporaryDirectory(dir=beside) as folder:
        for place in (folder, mounted(folder)):
            found = disks(doctor("--json", DATA_DIR=place))
            assert found["state"] == "fails", found
            assert "shares a disk with the engine's data" in found["text"]
            assert "a disk of its own" in found["advice"]


def test_a_store_on_a_disk_of_its_own_holds(doctor, program, mounted):
    """The loop's blocks are in memory, where no disk is waited for."""
    with tempfile.TemporaryDirectory(dir="/dev/shm") as folder:
        os.chmod(folder, 0o755)
        place = mounted(folder)
        front = os.path.join(program.data, "front")
        os.makedirs(front)
        assert disks(doctor("--json"))["state"] == "fails"
        subprocess.run(["mount", "--bind", place, front], check=True)
        try:
            found = disks(doctor("--json"))
        finally:
            subprocess.run(["umount", front], check=True)
        assert found["state"] == "holds", found


def test_a_store_in_memory_waits_for_no_disk(doctor):
    with tempfile.TemporaryDirectory(dir="/dev/shm") as data:
        os.chmod(data, 0o755)
        assert disks(doctor("--json", DATA_DIR=data))["state"] == "holds"


def test_a_bound_of_what_is_written_holds_as_well(doctor, engine):
    """The advice names the disk; what it says is then enough."""
    beside = os.path.dirname(engines_data(engine))
    with tempfile.TemporaryDirectory(dir=beside) as data:
        found = disks(doctor("--json", DATA_DIR=data))
        words = dict(w.split("=") for w in found["advice"].split()
                     if w.startswith("SANDBOX_WRITE_"))
        assert set(words) == {"SANDBOX_WRITE_MB_S", "SANDBOX_WRITE_DEVICE"}
        found = disks(doctor("--json", DATA_DIR=data, **words))
        assert found["state"] == "holds", found
        words["SANDBOX_WRITE_DEVICE"] = "/dev/another"
        found = disks(doctor("--json", DATA_DIR=data, **words))
        assert found["state"] == "fails", found
