"""A machine of its own, as far as a person at a shell can tell: loopback and
a network for containers that lead nowhere, /run, and an engine at
/var/run/docker.sock.
"""
import contextlib
import json
import os
import re
import shutil
import signal
import subprocess
import tempfile

from client import wait_for
from server import proc_status, write

TOP = os.path.dirname(os.path.dirname(os.path.dirname(
    os.path.abspath(__file__))))
SERVER = "localhost/mcp-sandboxd/server:latest"
SANDBOX = "localhost/mcp-sandboxd/sandbox:latest"
SIDECAR = "docker:27-dind"
SOCKET_GROUP = 4711  # nobody's
LIMIT_S = 60
# No rules of a firewall: the proxy alone publishes ports, on any kernel.
START = """
ip link set lo up
mount -t tmpfs tmpfs /run
exec dockerd --host unix:///run/docker.sock --host "unix://$1/s" \
    --data-root "$1/d" --exec-root "$1/x" --pidfile "$1/p" \
    --config-file "$1/c" --group "$2" --iptables=false --ip-masq=false \
    --userland-proxy=true
"""


# Where root lacks a capability, a privileged container is one with the others.
RUNC = """#!/bin/sh
for word; do
    case $before in
    --bundle) file=$word/config.json ;;
    --process) file=$word ;;
    esac
    before=$word
done
[ -z "$file" ] || sed -i 's/"\\(%s\\)",//g' "$file"
exec runc "$@"
"""


def missing_capabilities():
    """Names of what is not in the bounding set of this process."""
    with open("/usr/include/linux/capability.h", encoding="ascii") as f:
        known = re.findall(r"^#define (CAP_[A-Z_]+)\s+(\d+)$", f.read(), re.M)
    bound = int(proc_status("self")["CapBnd"], 16)
    return [name for name, number in known if not bound >> int(number) & 1]


class Machine:
    def __init__(self):
        self.dir = tempfile.mkdtemp(prefix="mcpm-", dir="/tmp")
        os.chmod(self.dir, 0o711)
        self.log = open(os.path.join(self.dir, "log"), "w+b")
        self.process = None
        self.home = os.path.join(self.dir, "home")
        os.mkdir(self.home)

    def start(self):
        write(os.path.join(self.dir, "c"), json.dumps(self.config()))
        self.process = subprocess.Popen(
            ["unshare", "--mount", "--propagation", "slave", "--net", "sh",
             "-ec", START, "sh", self.dir, str(SOCKET_GROUP)],
            stdout=self.log, stderr=self.log, stdin=subprocess.DEVNULL,
            start_new_session=True)
        wait_for(self.answers, LIMIT_S, "the engine")
        self.add_compose()

    def config(self):
        missing = missing_capabilities()
        if not missing:
            return {}
        path = os.path.join(self.dir, "runc")
        write(path, RUNC % r"\|".join(missing), mode=0o755)
        return {"runtimes": {"here": {"path": path}},
                "default-runtime": "here"}

    def answers(self):
        if self.process.poll() is not None:
            self.log.seek(0)
            raise AssertionError(self.log.read().decode()[-2000:])
        return self.run("docker", "version", check=False).returncode == 0

    def add_compose(self):
        """Debian's program, where the client looks for "docker compose"."""
        plugins = os.path.join(self.home, ".docker/cli-plugins")
        os.makedirs(plugins)
        path = os.path.join(plugins, "docker-compose")
        write(path, "#!/bin/sh\n"
              'if [ "$1" = docker-cli-plugin-metadata ]; then\n'
              'echo \'{"SchemaVersion":"0.1.0","Vendor":"Debian"}\'\n'
              "else\nshift\nexec docker-compose \"$@\"\nfi\n", mode=0o755)

    @property
    def within(self):
        """Words before a command that is run there."""
        return ["nsenter", f"--target={self.process.pid}", "--mount", "--net",
                f"--wd={TOP}"]

    @property
    def env(self):
        return {"PATH": "/usr/sbin:/usr/bin:/sbin:/bin", "HOME": self.home,
                "LC_ALL": "C.UTF-8", "DIND_IMAGE": SIDECAR}

    def run(self, *words, check=True, **more):
        done = subprocess.run([*self.within, *words], env=self.env, text=True,
                              check=False, timeout=2 * LIMIT_S, **{
                                  "capture_output": True, **more})
        assert not check or done.returncode == 0, \
            (words, done.stdout, done.stderr)
        return done

    def popen(self, *words, **more):
        return subprocess.Popen([*self.within, *words], env=self.env, **more)

    def docker(self, *words, **more):
        """What it prints."""
        return self.run("docker", *words, **more).stdout.strip()

    def serve(self, *words, name="mcp-sandboxd", command=(), wait=True):
        """docker run of the server's image, until it is healthy."""
        self.docker("run", "-d", "--name", name, "-v",
                    "/var/run/docker.sock:/var/run/docker.sock", *words,
                    SERVER, *command)
        if wait:
            wait_for(lambda: self.is_healthy(name), LIMIT_S,
                     "the server's health")
        return name

    def is_healthy(self, name):
        if self.state(name)["Status"] != "running":
            raise AssertionError(self.logs(name))
        return self.run("docker", "exec", name, "sandboxctl", "health",
                        check=False).returncode == 0

    def state(self, name):
        return json.loads(self.docker("inspect", name))[0]["State"]

    def logs(self, name):
        done = self.run("docker", "logs", name)
        return done.stdout + done.stderr

    # ---- images

    def take_image(self, name):
        """From the engine that all tests share."""
        save = subprocess.Popen(["docker", "save", name],
                                stdout=subprocess.PIPE)
        with save:
            self.run("docker", "load", stdin=save.stdout)
        assert save.returncode == 0
        self.docker("tag", name, SANDBOX)

    def make_server_image(self, build):
        """What it says."""
        return self.run(
            "env", "SERVER_IMAGE=" + SERVER,
            os.path.join(TOP, "images/server/build"), build).stdout

    def make_sidecar_image(self):
        """In the place of a registry's: this machine's engine."""
        self.run(os.path.join(TOP, "tests/forms/sidecar"), SIDECAR, SANDBOX)

    # ---- the end

    def clean(self):
        """All containers and volumes."""
        for kind, flag in (("container", "-aq"), ("volume", "-q")):
            found = self.docker(kind, "ls", flag).split()
            if found:
                self.docker(kind, "rm", "-f", *(
                    ["-v"] if kind == "container" else []), *found)

    def close(self):
        with contextlib.suppress(AssertionError, subprocess.SubprocessError):
            self.clean()
        if self.process is not None:
            self.process.send_signal(signal.SIGTERM)
            try:
                self.process.wait(LIMIT_S)
            except subprocess.TimeoutExpired:
                self.process.kill()
                self.process.wait(LIMIT_S)
        self.log.close()
        shutil.rmtree(self.dir, ignore_errors=True)
