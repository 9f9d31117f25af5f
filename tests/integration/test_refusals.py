"""Settings that are wrong or unsafe: the server does not start, and says in
words which one it is and why."""
import os
import shutil
import subprocess
import tempfile

import pytest

OPEN_PROFILE = '{"defaultAction": "SCMP_ACT_ALLOW", "syscalls": []}'


@pytest.fixture
def start(build):
    """Start it in a directory of its own; (exit status, what it said)."""
    top = tempfile.mkdtemp(prefix="mcp-sandboxd-refusal-")
    os.chmod(top, 0o755)

    def run(*settings, program=None, **env):
        kept = {k: os.environ[k] for k in (
            "PATH", "ASAN_OPTIONS", "UBSAN_OPTIONS", "DOCKER_HOST",
            "SANDBOX_IMAGE") if k in os.environ}
        done = subprocess.run(
            [program or os.path.join(build, "mcp-sandboxd"), *settings],
            env={**kept, "PORT": "0", "DATA_DIR": os.path.join(top, "data"),
                 **env},
            cwd=top, capture_output=True, text=True, timeout=60, check=False)
        return done.returncode, done.stderr
    run.top = top
    yield run
    shutil.rmtree(top)


# What is set, and the words of the reason.
REFUSED = [
    # Who may come in.
    ("BIND=0.0.0.0", "BIND", "other machines"),
    ("BIND=::", "BIND", "other machines"),
    ("BIND=localhost", "BIND", "want an IPv4 or IPv6 address"),
    ("PORT=70000", "PORT", "want a number"),
    ("CORS_ALLOW_ORIGINS=*", "CORS_ALLOW_ORIGINS", "want origins"),
    ("CORS_ALLOW_ORIGINS=null", "CORS_ALLOW_ORIGINS", "want origins"),
    ("ALLOWED_HOSTS=*", "ALLOWED_HOSTS", "want names"),
    ("MCP_PATH=/metrics", "MCP_PATH", "in use"),
    ("MAX_CONNECTIONS=0", "MAX_CONNECTIONS", "want a number"),
    ("MAX_BODY_BYTES=1000000000", "MAX_BODY_BYTES", "want a number"),
    # What a sandbox may.
    ("SANDBOX_NETWORK_MODE=host", "SANDBOX_NETWORK_MODE", "want one of"),
    ("SANDBOX_NETWORK_MODE=container:x", "SANDBOX_NETWORK_MODE",
     "want one of"),
    ("SANDBOX_CAP_ADD=SYS_ADMIN", "SANDBOX_CAP_ADD", "SYS_ADMIN"),
    ("SANDBOX_CAP_ADD=ALL", "SANDBOX_CAP_ADD", "ALL"),
    ("SANDBOX_CAP_ADD=cap_net_admin", "SANDBOX_CAP_ADD", "cap_net_admin"),
    ("SANDBOX_CAP_ADD=SYS_PTRACE", "SANDBOX_CAP_ADD", "SYS_PTRACE"),
    ("SANDBOX_CAP_ADD=SETUID,SYS_MODULE", "SANDBOX_CAP_ADD", "SYS_MODULE"),
    ("SANDBOX_CAP_ADD=DAC_READ_SEARCH", "SANDBOX_CAP_ADD",
     "DAC_READ_SEARCH"),
    ("SANDBOX_CAP_ADD=SUPER", "SANDBOX_CAP_ADD", "no capability"),
    ("SANDBOX_CAP_DROP=SUPER", "SANDBOX_CAP_DROP", "no capability"),
    ("SANDBOX_SECCOMP=unconfined", "SANDBOX_SECCOMP", "no system call"),
    ("SANDBOX_SECCOMP=none", "SANDBOX_SECCOMP", "want default"),
    ("SANDBOX_SECCOMP=profile.json", "SANDBOX_SECCOMP", "want default"),
    ("SANDBOX_SECCOMP=/nowhere.json", "SANDBOX_SECCOMP", "No such file"),
    ("DEFAULT_MEMORY_MB=0", "DEFAULT_MEMORY_MB", "want a number"),
    ("DEFAULT_PIDS=0", "DEFAULT_PIDS", "want a number"),
    ("DEFAULT_TTL_SECONDS=604801", "DEFAULT_TTL_SECONDS", "want a number"),
    ("TENANT_CEILING=colour=5", "TENANT_CEILING", "no ceiling colour"),
    ("TOTAL_CEILING=sandbox_pids=64", "TOTAL_CEILING", "want sandboxes"),
    # What it is made of.
    ("SANDBOX_RUNTIME=no-such-runtime", "SANDBOX_RUNTIME", "no runtime"),
    ("SANDBOX_RUNTIME=../runc", "SANDBOX_RUNTIME", "no runtime name"),
    ("SANDBOX_BACKEND=chroot", "SANDBOX_BACKEND", "want one of"),
    ("SANDBOX_IMAGE=a b", "SANDBOX_IMAGE", "no image name"),
    ("SANDBOX_IMAGE=--privileged", "SANDBOX_IMAGE", "no image name"),
    ("SANDBOX_IMAGE=../../etc", "SANDBOX_IMAGE", "no image name"),
    ("SANDBOX_IMAGES_ALLOWED=good:1,bad?x=y", "SANDBOX_IMAGES_ALLOWED",
     "no image name"),
    ("DOCKER_HOST=tcp://127.0.0.1:2375", "DOCKER_HOST", "want unix://"),
    ("DOCKER_HOST=ssh://root@host", "DOCKER_HOST", "want unix://"),
    ("DOCKER_HOST=unix://docker.sock", "DOCKER_HOST", "want unix:///"),
    ("DOCKER_HOST=unix:///" + "x" * 120, "DOCKER_HOST", "at most"),
    # Where its own things are.
    ("DATA_DIR=/", "DATA_DIR", "directory of the system"),
    ("DATA_DIR=/etc/", "DATA_DIR", "directory of the system"),
    ("DATA_DIR=/tmp", "DATA_DIR", "directory of the system"),
    ("DATA_DIR=/proc/self/fd", "DATA_DIR", "DATA_DIR"),
    ("ARTIFACTS_DIR=/usr", "ARTIFACTS_DIR", "directory of the system"),
    ("INSTANCE=a b", "INSTANCE", "letters"),
    ("RUN_AS_FRONT=root", "RUN_AS_FRONT", "root"),
    ("RUN_AS_WORKER=no-such-user", "RUN_AS_WORKER", "no-such-user"),
    ("NO_SUCH_KEY=1", "NO_SUCH_KEY", "no configuration key"),
]


@pytest.mark.parametrize("setting,key,why", REFUSED,
                         ids=[r[0][:50] for r in REFUSED])
def test_it_does_not_start_and_names_the_reason(start, setting, key, why):
    status, said = start(setting)
    assert status in (71, 78), said
    assert key in said and why in said, said


def put(path, text, mode):
    with open(path, "w", encoding="ascii") as f:
        f.write(text)
    os.chmod(path, mode)
    return path


@pytest.mark.parametrize("text,mode,why", [
    (OPEN_PROFILE, 0o644, "no system call"),
    ("{}", 0o644, "no seccomp profile"),
    ("{", 0o644, "profile.json"),
    ('{"defaultAction": "SCMP_ACT_ERRNO", "syscalls": []}', 0o666,
     "others")], ids=["open", "empty", "broken", "writable"])
def test_a_bad_profile_is_refused(start, text, mode, why):
    path = put(os.path.join(start.top, "profile.json"), text, mode)
    status, said = start("SANDBOX_SECCOMP=" + path)
    assert status == 78
    assert "SANDBOX_SECCOMP" in said and why in said, said


@pytest.mark.parametrize("name,setting", [
    ("server.conf", "--config"), ("Dockerfile", "SANDBOX_DOCKERFILE_PATH")])
def test_a_file_that_everybody_may_write_is_refused(start, name, setting):
    path = put(os.path.join(start.top, name), "", 0o666)
    args = [setting, path] if setting == "--config" else \
        [f"{setting}={path}"]
    status, said = start(*args)
    assert status == 78
    assert setting in said and "everybody" in said, said


def test_a_program_that_everybody_may_write_is_refused(start, build):
    for name in ("mcp-sandboxd", "mcp-sandboxd-front",
                 "mcp-sandboxd-worker", "sandbox-agent"):
        shutil.copy(os.path.join(build, name), start.top)
    os.chmod(os.path.join(start.top, "mcp-sandboxd-worker"), 0o777)
    status, said = start(program=os.path.join(start.top, "mcp-sandboxd"))
    assert status == 78
    assert "mcp-sandboxd-worker" in said and "everybody" in said, said


def test_a_way_to_the_data_that_others_may_change_is_refused(start):
    way = os.path.join(start.top, "way")
    os.mkdir(way)
    os.chmod(way, 0o777)
    status, said = start("DATA_DIR=" + os.path.join(way, "data"))
    assert status == 78
    assert "DATA_DIR" in said and way in said, said


def test_data_behind_a_link_of_others_is_refused(start):
    way = os.path.join(start.top, "way")
    os.mkdir(way)
    os.chown(way, 12345, 12345)
    os.mkdir(os.path.join(way, "data"))
    os.symlink(os.path.join(way, "data"), os.path.join(start.top, "data"))
    status, said = start()
    assert status == 78
    assert "DATA_DIR" in said and way in said, said


def test_a_key_that_others_may_read_is_refused(make_server):
    server = make_server()
    server.stop()
    found = [os.path.join(d, "session.key")
             for d, _, files in os.walk(server.dir) if "session.key" in files]
    os.chmod(found[0], 0o644)
    server.start(wait=False)
    assert server.proc.wait(60) == 78
    assert "session.key" in server.tail()


def test_two_grave_settings_want_two_words(start):
    """What is refused alone is taken when it is said to be meant: then the
    next thing that is wrong is named."""
    status, said = start("SANDBOX_CAP_ADD=SYS_ADMIN",
                         "SANDBOX_CAPS_BYPASS_CHECK=true",
                         "SANDBOX_RUNTIME=no-such-runtime")
    assert status == 78
    assert "SANDBOX_CAP_ADD" not in said and "SANDBOX_RUNTIME" in said, said
