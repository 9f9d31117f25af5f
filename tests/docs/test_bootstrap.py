"""./bootstrap, in trees that have of the project what it needs.

What takes minutes is made already, or a stand-in: packages are installed, make
and configure have nothing to do, the programs are those of the check.
"""
import json
import os
import re
import shutil
import stat
import subprocess
import tempfile

import pytest

from pages import TOP, run

needs_root = pytest.mark.skipif(os.geteuid() != 0,
                                reason="places outside the tree are root's")
PROGRAMS = ("mcp-sandboxd", "mcp-sandboxd-front", "mcp-sandboxd-worker",
            "mcp-sandboxd-keys", "mcp-sandboxd-courier", "mcp-sandboxd-stdio",
            "sandbox-agent", "sandboxctl")


def script(path, *lines):
    os.makedirs(os.path.dirname(path), exist_ok=True)
    with open(path, "w", encoding="utf-8") as f:
        f.write("\n".join(("#!/bin/sh", *lines)) + "\n")
    os.chmod(path, 0o755)


class Tree:
    """A copy of what bootstrap needs, at a path; and how it is called."""

    def __init__(self, path):
        self.path = str(path)
        self.env = {k: v for k, v in os.environ.items() if k != "DATA_DIR"}
        shutil.copy(os.path.join(TOP, "bootstrap"), self.path)
        shutil.copytree(os.path.join(TOP, "bootstrap.d"),
                        self.file("bootstrap.d"))
        self.name = subprocess.run(
            ["cksum"], input=self.path, text=True, capture_output=True,
            check=True).stdout.split()[0]
        # Seen under one path by the engine, too: its tests may have a root
        # of their own (tests/fresh).
        self.outside = tempfile.mkdtemp(prefix="mcp-sandboxd-place-")
        os.chmod(self.outside, 0o755)
        self.env["BOOTSTRAP_PLACE"] = self.outside
        self.place = os.path.join(self.outside, self.name)
        self.run_place = f"/run/mcp-sandboxd-{self.name}"

    def file(self, *names):
        return os.path.join(self.path, *names)

    def read(self, *names):
        with open(self.file(*names), encoding="utf-8") as f:
            return f.read()

    def stand_in(self, name, *lines):
        """A program that is found before the machine's."""
        script(self.file("stand-ins", name), *lines)
        self.env["PATH"] = self.file("stand-ins") + ":" + os.environ["PATH"]

    def furnish(self, build):
        """All that run needs; the engine and the image are the check's."""
        shutil.copytree(os.path.join(TOP, "images/sandbox"),
                        self.file("images/sandbox"))
        os.makedirs(self.file("m4"))
        open(self.file("configure.ac"), "w", encoding="ascii").close()
        programs = " ".join(os.path.join(build, p) for p in PROGRAMS)
        script(self.file("configure"), f"cp {programs} .",
               "touch config.status")
        self.stand_in("make")

    def __call__(self, *args, **env):
        return run("./bootstrap", *args, cwd=self.path,
                   env={**self.env, **env}, stdin=subprocess.DEVNULL)


@pytest.fixture
def make_tree():
    made = []

    def make(mode=0o755, below=""):
        top = tempfile.mkdtemp(prefix="mcp-sandboxd-tree-")
        path = os.path.join(top, below) if below else top
        os.makedirs(path, exist_ok=True)
        os.chmod(top, mode)
        made.append((top, Tree(path)))
        return made[-1][1]

    yield make
    for top, tree in made:
        for path in (top, tree.outside, tree.run_place):
            shutil.rmtree(path, ignore_errors=True)


@pytest.fixture
def tree(make_tree):
    """Of a path that leaves no room for a socket below it."""
    return make_tree(below="long" * 20)


# ---- where things are

@needs_root
def test_stop_leaves_nothing_of_the_engine_in_run(tree):
    os.makedirs(os.path.join(tree.run_place, "containerd"))
    done = tree("stop")
    assert done.returncode == 0, done.stderr
    assert "no engine of ours runs" in done.stdout
    assert not os.path.exists(tree.run_place)


@needs_root
def test_data_is_in_the_tree_or_where_the_users_reach_it(make_tree):
    tree = make_tree(0o755, below="of/root")
    done = tree("stop", "--all")
    assert f"no server ran with DATA_DIR={tree.path}/data" in done.stdout
    tree = make_tree(0o700, below="of/root")
    for place in (tree.outside, "/var/lib/mcp-sandboxd"):
        if place != tree.outside:
            del tree.env["BOOTSTRAP_PLACE"]
        done = tree("stop", "--all")
        assert done.returncode == 0, done.stderr
        assert (f"no server ran with DATA_DIR={place}/{tree.name}/data"
                in done.stdout)
    # As root alone nobody is shut out.
    done = tree("stop", "--all", RUN_AS_FRONT="", RUN_AS_WORKER="")
    assert f"no server ran with DATA_DIR={tree.path}/data" in done.stdout


@needs_root
def test_a_build_that_is_out_of_reach_is_not_touched(make_tree, build):
    tree = make_tree(0o700)
    tree.furnish(build)
    os.mkdir(tree.file("build"))
    done = tree("run", "--once")
    assert done.returncode == 1
    assert f"cannot reach {tree.path}/build: remove it" in done.stderr
    assert os.listdir(tree.file("build")) == []
    assert tree("stop").returncode == 0  # of an engine that it may have


# ---- the first minute

def result_of(done):
    """The four lines, by their first words."""
    lines = done.stdout.split("\n\n")[-1].splitlines()
    assert [line[:10].strip() for line in lines] == [
        "set up", "listens", "ran", "paste"], done.stdout + done.stderr
    return {line[:10].strip(): line[10:] for line in lines}


@needs_root
@pytest.mark.parametrize("mode", [0o755, 0o700])
def test_run_says_four_lines_and_leaves_no_more(
        make_tree, build, shell_env, tmp_path, mode):
    """Also in root's home; of the server's log nothing but where it is."""
    tree = make_tree(mode)
    tree.furnish(build)
    done = tree("run", "--once", PORT="0",
                INSTANCE=f"tree-{os.getpid()}")
    assert done.returncode == 0, done.stdout + done.stderr
    assert done.stderr == ""
    said = result_of(done)
    place = tree.path if mode == 0o755 else tree.place
    reason = "" if mode == 0o755 else f" (mcp-front cannot reach {tree.path})"
    try:
        assert said["set up"].endswith(f"data {place}/data{reason}")
        assert tree.env["SANDBOX_IMAGE"] in said["set up"]
        assert tree.env["DOCKER_HOST"].removeprefix("unix://") in \
            said["set up"]
        url = re.fullmatch(r"(http://127\.0\.0\.1:\d+/mcp) until now "
                           r"\(--once\); log: build/server-0\.log",
                           said["listens"])[1]
        assert re.fullmatch(
            r".* printed 332833500 in \d+\.\d ms in a new sandbox, again in "
            r"\d+\.\d ms in the warm one", said["ran"])
        pasted, _, rest = said["paste"].partition(" into ")
        assert json.loads(pasted)["mcpServers"]["sandbox"]["url"] == url
        assert rest.endswith("build/mcp-sandboxd clients")
        assert (f"build/ is a link to {tree.place}/build" in done.stdout) == (
            mode != 0o755)
        # What a server logs is in the file alone.
        assert "] ready" in tree.read("build", "server-0.log")
        assert "supervisor[" not in done.stdout
        assert stat.S_IMODE(os.stat(
            tree.file("build", "server-0.log")).st_mode) == 0o600
        # The second time there is nothing to set up, and nothing is said.
        again = tree("run", "--once", PORT="0")
        assert again.returncode == 0, again.stderr
        assert len(again.stdout.splitlines()) == 5  # one of them empty
        shell = run("sh", "-c", ". build/env; command -v mcp-sandboxd; "
                    "echo $DOCKER_HOST $SANDBOX_IMAGE", cwd=tree.path,
                    env={"PATH": "/usr/bin:/bin"})
        assert shell.stdout.splitlines() == [
            f"{place}/build/mcp-sandboxd",
            f"{tree.env['DOCKER_HOST']} {tree.env['SANDBOX_IMAGE']}"]
    finally:
        done = tree("stop", "--all")
        assert done.returncode == 0, done.stdout + done.stderr
    assert (f"rm -rf build {place}" in done.stdout) == (mode != 0o755)


@needs_root
def test_image_makes_the_servers_of_what_was_built(make_tree, build):
    """Its script is a stand-in; what that makes: tests/forms."""
    tree = make_tree(0o755)
    tree.furnish(build)
    script(tree.file("images/server/build"),
           'echo "made of $1 for $DOCKER_HOST: $(ls "$1"/mcp-sandboxd)"')
    done = tree("image", "server")
    assert done.returncode == 0, done.stdout + done.stderr
    assert (f"made of {tree.path}/build for {tree.env['DOCKER_HOST']}: "
            f"{tree.path}/build/mcp-sandboxd\n") in done.stdout
    alone = tree("image")
    assert alone.returncode == 0 and "made of" not in alone.stdout
    assert tree.env["SANDBOX_IMAGE"] in alone.stdout
    assert tree("image", "none").returncode == 1


@needs_root
def test_settings_that_are_wrong_are_said_before_a_start(make_tree, build):
    tree = make_tree(0o755)
    tree.furnish(build)
    home = tree.file("home")
    os.mkdir(home, 0o700)
    done = tree("run", "--once", PORT="0", DATA_DIR=os.path.join(home, "d"))
    assert done.returncode == 1
    assert f"may not pass through {home}" in done.stderr
    assert "the server cannot be started like this" in done.stderr
    assert "server-0.log" in done.stderr
    assert done.stderr.count("\n") == 3, done.stderr
    assert os.listdir(home) == []


@needs_root
def test_a_server_that_ends_at_its_start_shows_why(make_tree, build):
    tree = make_tree(0o755)
    tree.furnish(build)
    script(tree.file("configure"), "touch config.status",
           "cat >mcp-sandboxd <<'E'", "#!/bin/sh",
           "[ \"$1\" != --check-config ] || exit 0",
           "echo '2026-01-01T00:00:00.000Z info supervisor[1] begun' >&2",
           "echo '2026-01-01T00:00:00.000Z error supervisor[1] no more' >&2",
           "exit 71", "E", "chmod 755 mcp-sandboxd")
    done = tree("run", "--once", PORT="0", DATA_DIR=tree.file("d"))
    assert done.returncode == 1
    assert "the server ended at its start" in done.stderr
    assert "error supervisor[1] no more" in done.stderr
    assert "begun" not in done.stderr


def test_a_wait_is_by_the_clock(tree):
    """Not by counting tries, of which each may take its time."""
    done = run(
        "bash", "-c", ". bootstrap.d/engine.sh; n=0; slow() { n=$((n + 1)); "
        "SECONDS=$((SECONDS + 20)); false; }; await 30 slow; echo $? $n",
        cwd=tree.path)
    assert done.stdout == "1 2\n"


# ---- check and what it brings

@pytest.fixture
def checked(make_tree):
    """A tree whose image is a file, and whose tests say how they went."""
    tree = make_tree(0o755)
    tree.env["SANDBOX_IMAGE"] = f"mcp-sandboxd/brought-{os.getpid()}:latest"
    os.makedirs(tree.file("m4"))
    open(tree.file("configure.ac"), "w", encoding="ascii").close()
    script(tree.file("configure"), "touch config.status")
    for name in ("make", "npm", "dockerd"):
        tree.stand_in(name)
    tree.stand_in("node", "echo v18.0.0")
    tree.stand_in("dpkg-query", "printf installed")
    socket = tree.env["DOCKER_HOST"].removeprefix("unix://")
    script(tree.file("images/sandbox/build"), f"""\
base=mcp-sandboxd/none-such:1
curl -s -f -o /dev/null --unix-socket {socket} \\
http://e/images/$SANDBOX_IMAGE/json && exit
to="fromSrc=-&repo=${{SANDBOX_IMAGE%:*}}&tag=latest"
printf x >x; tar -c x | curl -sS --fail --unix-socket {socket} \\
-X POST "http://e/images/create?$to" \\
-H 'Content-Type: application/x-tar' --data-binary @- >/dev/null""")
    script(tree.file("tests/run"), "echo \"$@\"",
           f"curl -s -o /dev/null -w '%{{http_code}}' --unix-socket {socket} "
           "http://e/images/$SANDBOX_IMAGE/json", "exit 3")

    yield tree, lambda: run(
        "curl", "-s", "-f", "-o", "/dev/null", "--unix-socket", socket,
        f"http://e/images/{tree.env['SANDBOX_IMAGE']}/json").returncode == 0
    run("curl", "-s", "-o", "/dev/null", "-X", "DELETE", "--unix-socket",
        socket, f"http://e/images/{tree.env['SANDBOX_IMAGE']}")


def test_check_takes_its_images_from_a_foreign_engine_again(checked):
    tree, has_image = checked
    done = tree("check", "--more", "-k", "one")
    assert done.returncode == 3, done.stderr
    assert f"--build {tree.path}/build --more -k one\n200" in done.stdout
    assert not has_image()


def test_check_leaves_an_image_that_was_there(checked):
    tree, has_image = checked
    subprocess.run([tree.file("images/sandbox/build")], cwd=tree.path,
                   env=tree.env, check=True)
    done = tree("check")
    assert done.returncode == 3, done.stderr
    assert has_image()


# ---- words

@pytest.mark.parametrize("args", [["stop", "--al"], ["run", "--twice"],
                                  ["deps", "everything"]])
def test_a_slip_is_an_error(tree, args):
    done = tree(*args)
    assert done.returncode == 1 and args[1] in done.stderr


def test_a_servers_packages_are_not_those_of_tests(tree):
    """As on a machine that has none of them."""
    tree.stand_in("dpkg-query", "exit 1")
    tree.stand_in("sudo", 'exec "$@"')
    tree.stand_in("apt-get", f"echo \"$@\" >>'{tree.path}/asked'")
    done = tree("deps")
    assert done.returncode == 0, done.stderr
    asked = set(tree.read("asked").split())
    assert {"gcc", "make", "jq", "libevent-dev"} <= asked
    assert not asked & {"clang", "cppcheck", "zsh", "npm", "nodejs", "wrk",
                        "libcmocka-dev", "python3-pytest"}
    done = tree("deps", "check")
    assert done.returncode == 0, done.stderr
    assert {"clang", "zsh", "libcmocka-dev", "iproute2"} <= \
        set(tree.read("asked").split())


def test_the_engine_is_stopped_without_programs_of_procps(tree):
    """A user's sudo has no shell's kill."""
    tree.stand_in("id", 'case $1 in -u) echo 1000 ;; *) echo 1000 ;; esac')
    tree.stand_in("sudo", 'case $1 in kill | pkill | ps) exit 127 ;; esac',
                  'exec "$@"')
    pidfile = tree.file("build/engine/dockerd.pid")
    os.makedirs(os.path.dirname(pidfile))
    with subprocess.Popen(
            ["bash", "-c", "read -r x", "dockerd", "--pidfile", pidfile, ""],
            stdin=subprocess.PIPE) as engine:
        with open(pidfile, "w", encoding="ascii") as f:
            f.write(str(engine.pid))
        # Whoever waits for it, so that nothing is left to be seen.
        reaper = subprocess.Popen(
            ["./bootstrap", "stop"], cwd=tree.path, env=tree.env, text=True,
            stdout=subprocess.PIPE, stderr=subprocess.STDOUT)
        assert engine.wait(60) == -15
        out, _ = reaper.communicate(timeout=60)
    assert reaper.returncode == 0, out
    assert "the engine is stopped" in out
