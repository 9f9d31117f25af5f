"""Private engines, beside the one that all tests share: started and ended by
a test, with everything of theirs in one directory.

    with dockerd() as e:                    a Docker engine at a Unix socket
    with dockerd(tls=Certificates(dir)) as e:   and by TLS on 127.0.0.1
    with dockerd(plain=True) as e:              and on 127.0.0.1 without
    with dockerd("--userns-remap=default") as e:   with an option more
    with podman() as e:                     Podman's service, with runc

e is a server.Engine (request, inspect, containers) at e.path, and

    e.env                    settings for a server or program of ours
    e.take_image(engine)     SANDBOX_IMAGE of another engine, saved and loaded
    e.import_image()         a busybox of 2 MiB instead: its name; enough for
                             commands of sh
    e.stop(), e.start()      a restart; containers end with it, or with
    e.kill()                 SIGKILL and live_restore=True go on

They need root and Debian's packages docker.io, or podman and runc.  A start
takes a second or two: let tests of a module share one, by a fixture with
scope="module".
"""
import contextlib
import http.client
import io
import json
import os
import shutil
import signal
import socket
import subprocess
import tarfile
import tempfile

from certificates import Authority
from client import wait_for
from server import Engine, UnixConnection, write

BUSYBOX = "localhost/test/busybox:latest"
APPLETS = ("cat", "chmod", "echo", "env", "false", "head", "id", "ls", "mkdir",
           "rm", "seq", "sh", "sleep", "stat", "tail", "touch", "true", "wc")
START_S, STOP_S = 60, 60


class Certificates:
    """DOCKER_CERT_PATH for an engine on 127.0.0.1 and its client: ca.pem,
    cert.pem and key.pem, and the engine's server.pem and server.key."""

    def __init__(self, directory, alt="IP:127.0.0.1,DNS:localhost", days=365):
        os.makedirs(directory, exist_ok=True)
        os.chmod(directory, 0o755)
        self.dir = str(directory)
        self.authority = Authority(os.path.join(self.dir, "authority"),
                                   days=3650)
        shutil.copy(self.authority.certificate, self.path("ca.pem"))
        self.issue("client", "cert.pem", "key.pem", days=days)
        self.issue("server", "server.pem", "server.key", days=days, alt=alt)

    def path(self, name):
        return os.path.join(self.dir, name)

    def issue(self, name, certificate, key, **kwargs):
        """Another one of the authority's, in the place of what was there."""
        for made, to in zip(self.authority.issue(name, **kwargs),
                            (certificate, key), strict=True):
            # As whoever renews does: never half of a file.
            shutil.copy(made, self.path(to + ".new"))
            os.chmod(self.path(to + ".new"), 0o644)
            os.rename(self.path(to + ".new"), self.path(to))


class PrivateEngine(Engine):
    """A program that serves the API of an engine, in its directory."""

    def __init__(self):
        # Short: sockets have little room for their paths.
        self.dir = tempfile.mkdtemp(prefix="mcpe-", dir="/tmp")
        os.chmod(self.dir, 0o711)
        super().__init__(f"unix://{self.dir}/s")
        self.env = {"DOCKER_HOST": f"unix://{self.path}"}
        self.log = open(os.path.join(self.dir, "log"), "w+b")
        self.process = None

    def said(self):
        self.log.seek(0)
        return self.log.read().decode(errors="replace")

    def answers(self):
        assert self.process.poll() is None, self.said()[-2000:]
        try:
            return self.request("GET", "/_ping")[0] == 200
        except (OSError, http.client.HTTPException):
            return False

    def spawn(self, command, **kwargs):
        self.process = subprocess.Popen(
            command, stdout=self.log, stderr=self.log,
            stdin=subprocess.DEVNULL, start_new_session=True, **kwargs)

    def start(self):
        raise NotImplementedError

    def await_start(self):
        try:
            wait_for(self.answers, START_S, "the engine")
        except AssertionError as e:
            raise AssertionError(f"{e}\n{self.said()[-2000:]}") from e

    def kill(self):
        self.process.kill()
        self.process.wait(STOP_S)

    def stop(self):
        self.process.send_signal(signal.SIGTERM)
        try:
            self.process.wait(STOP_S)
        except subprocess.TimeoutExpired:
            self.kill()

    def end_all(self):
        """Whatever of its containers is left; their mounts and shims go."""
        if self.process.poll() is not None:
            self.start()
            self.await_start()
        status, data = self.request("GET", "/containers/json?all=1")
        for c in json.loads(data) if status == 200 else []:
            self.request("DELETE", f"/containers/{c['Id']}?force=1&v=1")

    def end_rest(self):
        """What is left when the program has ended."""

    def close(self):
        try:
            self.end_all()
        finally:
            self.stop()
            self.end_rest()
            self.log.close()
            subprocess.run(
                ["sh", "-c", 'while read -r _ at _; do case $at in "$1"/*) '
                 'umount -l "$at";; esac; done </proc/mounts', "sh", self.dir],
                check=False, stderr=subprocess.DEVNULL)
            shutil.rmtree(self.dir, ignore_errors=True)

    def take_image(self, other, name=None):
        name = name or os.environ["SANDBOX_IMAGE"]
        source = UnixConnection(other.path)
        there = UnixConnection(self.path)
        with contextlib.closing(source), contextlib.closing(there):
            source.request("GET", f"/images/{name}/get")
            there.request("POST", "/images/load?quiet=1", source.getresponse(),
                          {"Content-Type": "application/x-tar"},
                          encode_chunked=True)
            answer = there.getresponse()
            data = answer.read()
        assert answer.status == 200 and b"Loaded" in data, data
        return name

    def import_image(self, name=BUSYBOX):
        name, _, tag = name.rpartition(":")
        status, data = self.request(
            "POST", f"/images/create?fromSrc=-&repo={name}&tag={tag}",
            busybox_tar(), {"Content-Type": "application/x-tar"})
        assert status == 200 and b"rror" not in data, data
        return f"{name}:{tag}"


def busybox_tar():
    out = io.BytesIO()
    with tarfile.open(fileobj=out, mode="w") as tar:
        def add(name, kind=tarfile.DIRTYPE, mode=0o755, uid=0, data=b"",
                link=""):
            info = tarfile.TarInfo(name)
            info.type, info.mode, info.linkname = kind, mode, link
            info.uid = info.gid = uid
            info.size = len(data)
            tar.addfile(info, io.BytesIO(data))

        for name in ("bin", "dev", "etc", "proc", "root", "sys"):
            add(name)
        add("tmp", mode=0o1777)
        for name in ("artifacts", "workspace"):
            add(name, uid=1000)
        add("etc/passwd", tarfile.REGTYPE, 0o644,
            data=b"root:x:0:0::/root:/bin/sh\n"
                 b"sandbox:x:1000:1000::/workspace:/bin/sh\n")
        add("etc/group", tarfile.REGTYPE, 0o644,
            data=b"root:x:0:\nsandbox:x:1000:\n")
        with open("/bin/busybox", "rb") as f:
            add("bin/busybox", tarfile.REGTYPE, data=f.read())
        for name in APPLETS:
            add(f"bin/{name}", tarfile.SYMTYPE, link="busybox")
    return out.getvalue()


class Dockerd(PrivateEngine):
    """Its network is its own, so that it leaves other engines' bridges alone;
    the socket on 127.0.0.1 is the test's, handed down as systemd does."""

    def __init__(self, *args, tls=None, plain=False, live_restore=False):
        super().__init__()
        self.args = list(args)
        self.listener = None
        # What is mounted for a container that goes on is to be seen by the
        # engine that is started next.
        self.apart = [] if live_restore else [
            "--mount", "--propagation", "slave"]
        if tls is not None or plain:
            self.listener = socket.create_server(("127.0.0.1", 0))
            self.port = self.listener.getsockname()[1]
            self.args += ["--host", "fd://"]
            self.tcp = {"DOCKER_HOST": f"tcp://127.0.0.1:{self.port}"}
        if tls is not None:
            self.args += ["--tlsverify", "--tlscacert", tls.path("ca.pem"),
                          "--tlscert", tls.path("server.pem"),
                          "--tlskey", tls.path("server.key")]
            self.tcp |= {"DOCKER_TLS_VERIFY": "1", "DOCKER_CERT_PATH": tls.dir}
        if self.listener is not None:
            self.env = self.tcp
        self.config = os.path.join(self.dir, "c")
        write(self.config, json.dumps({"live-restore": live_restore}))

    def start(self):
        fd = -1 if self.listener is None else self.listener.fileno()

        def hand_down():
            if fd != -1:
                os.dup2(fd, 3)

        self.spawn(
            ["sh", "-c", 'LISTEN_FDS=1 LISTEN_PID=$$ exec "$@"', "sh",
             "unshare", "--net", *self.apart,
             "dockerd", "--host", f"unix://{self.path}",
             "--data-root", f"{self.dir}/d", "--exec-root", f"{self.dir}/x",
             "--pidfile", f"{self.dir}/p", "--config-file", self.config,
             "--group", "root", "--userland-proxy=false", "--iptables=false",
             "--ip-masq=false", "--bridge=none", *self.args],
            preexec_fn=hand_down, pass_fds=() if fd == -1 else (3, fd))

    def kill(self):
        """With its containerd.  The next one would take a pid that nobody has
        waited for yet for one that lives."""
        super().kill()
        path = f"{self.dir}/x/containerd/containerd.pid"
        with contextlib.suppress(FileNotFoundError, ProcessLookupError):
            with open(path, encoding="ascii") as f:
                os.kill(int(f.read()), signal.SIGKILL)
        with contextlib.suppress(FileNotFoundError):
            os.unlink(path)

    def close(self):
        super().close()
        if self.listener is not None:
            self.listener.close()


class Podman(PrivateEngine):
    """podman system service.  Its locks are files of its own: services of one
    user share theirs otherwise, and one that begins frees another's."""

    def __init__(self):
        super().__init__()
        self.config = os.path.join(self.dir, "containers.conf")
        write(self.config, f"""[engine]
runtime = "runc"
cgroup_manager = "cgroupfs"
events_logger = "file"
lock_type = "file"
tmp_dir = "{self.dir}/t"
""")
        self.storage = os.path.join(self.dir, "storage.conf")
        write(self.storage, f"""[storage]
driver = "overlay"
runroot = "{self.dir}/x"
graphroot = "{self.dir}/d"
""")

    def start(self):
        with contextlib.suppress(FileNotFoundError):
            os.unlink(self.path)
        self.spawn(["podman", "system", "service", "--time=0",
                    f"unix://{self.path}"],
                   env=os.environ | {
                       "CONTAINERS_CONF": self.config,
                       "CONTAINERS_STORAGE_CONF": self.storage})

    def await_start(self):
        """As Debian's podman.socket has it: made for its user alone, where a
        service makes it."""
        super().await_start()
        os.chmod(self.path, 0o660)

    def end_rest(self):
        """What stays of each exec for five minutes, to be asked how it ended:
        it would make the directory anew at its end."""
        for pid in filter(str.isdigit, os.listdir("/proc")):
            with contextlib.suppress(OSError):  # it has ended
                with open(f"/proc/{pid}/cmdline", "rb") as f:
                    words = f.read()
                if b"conmon" in words and f"{self.dir}/".encode() in words:
                    os.kill(int(pid), signal.SIGKILL)


@contextlib.contextmanager
def started(engine):
    try:
        engine.start()
        engine.await_start()
        yield engine
    finally:
        engine.close()


def dockerd(*args, **kwargs):
    return started(Dockerd(*args, **kwargs))


def podman():
    return started(Podman())
