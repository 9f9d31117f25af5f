"""Settings that are wrong or unsafe: the server does not start, and says in
words which one it is and why."""
import os
import shutil

import pytest

from server import write

OPEN_PROFILE = '{"defaultAction": "SCMP_ACT_ALLOW", "syscalls": []}'


# What is set, and the words of the reason.  More texts that are wrong by their
# form alone: tests/unit/common/test_conf.c.
REFUSED = [
    # Who may come in.
    ("BIND=0.0.0.0", "BIND", "other machines"),
    ("BIND=::", "BIND", "other machines"),
    ("PORT=70000", "PORT", "want a number"),
    ("CORS_ALLOW_ORIGINS=*", "CORS_ALLOW_ORIGINS", "want origins"),
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
    ("SANDBOX_SECCOMP=unconfined", "SANDBOX_ALLOW_UNCONFINED",
     "no system call"),
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
    ("SANDBOX_USERNS=auto", "SANDBOX_USERNS", "--userns-remap=default"),
    ("SANDBOX_USERNS=host", "SANDBOX_USERNS", "want auto"),
    ("SANDBOX_BACKEND=chroot", "SANDBOX_BACKEND", "want one of"),
    ("SANDBOX_IMAGE=a b", "SANDBOX_IMAGE", "no image name"),
    ("SANDBOX_IMAGE=--privileged", "SANDBOX_IMAGE", "no image name"),
    ("SANDBOX_IMAGE=../../etc", "SANDBOX_IMAGE", "no image name"),
    ("SANDBOX_IMAGES_ALLOWED=good:1,bad?x=y", "SANDBOX_IMAGES_ALLOWED",
     "no image name"),
    ("DOCKER_HOST=tcp://127.0.0.1", "DOCKER_HOST", "want tcp://HOST:PORT"),
    ("DOCKER_HOST=tcp://x/y:2375", "DOCKER_HOST", "want tcp://HOST:PORT"),
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
    ("DEFAULT_PIDS=many", "DEFAULT_PIDS", "want a number"),
    ("INSTANCE=-", "INSTANCE", "INSTANCE"),
    ("ALLOWED_HOSTS=http://x/", "ALLOWED_HOSTS", "want names"),
    ("ARTIFACTS_DIR=/dev/null/x", "ARTIFACTS_DIR", "ARTIFACTS_DIR"),
    ("ARTIFACTS_DIR=data/links/x", "ARTIFACTS_DIR", "ARTIFACTS_DIR"),
    ("TENANTS_FILE=/no/such", "TENANTS_FILE", "TENANTS_FILE"),
    ("DATA_DIR=/dev/null/x", "DATA_DIR", "DATA_DIR"),
]


@pytest.mark.parametrize("setting,key,why", REFUSED,
                         ids=[r[0][:50] for r in REFUSED])
def test_neither_a_start_nor_the_check_takes_it(program, setting, key, why):
    for args in ([], ["--check-config"]):
        said = program.refuses(setting, *args, status=(71, 78),
                               words=[key, why])
        assert "the configuration is good" not in said


def put(program, name, text, mode):
    path = os.path.join(program.top, name)
    write(path, text, mode)
    return path


@pytest.mark.parametrize("text,mode,why", [
    (OPEN_PROFILE, 0o644, "no system call"),
    ("{}", 0o644, "no seccomp profile"),
    ("{", 0o644, "profile.json"),
    ('{"defaultAction": "SCMP_ACT_ERRNO", "syscalls": []}', 0o666,
     "others")], ids=["open", "empty", "broken", "writable"])
def test_a_bad_profile_is_refused(program, text, mode, why):
    path = put(program, "profile.json", text, mode)
    program.refuses("SANDBOX_SECCOMP=" + path, words=["SANDBOX_SECCOMP", why])


@pytest.mark.parametrize("name,args", [
    ("server.conf", ["--config"]), ("Dockerfile", [])])
def test_a_file_that_everybody_may_write_is_refused(program, name, args):
    path = put(program, name, "", 0o666)
    args = [*args, path] if args else ["SANDBOX_DOCKERFILE_PATH=" + path]
    program.refuses(*args, words=[args[0].split("=")[0], "everybody"])


def test_a_program_that_everybody_may_write_is_refused(program, build):
    for name in ("mcp-sandboxd", "mcp-sandboxd-front",
                 "mcp-sandboxd-worker", "sandbox-agent"):
        shutil.copy(os.path.join(build, name), program.top)
    program.build = program.top
    os.chmod(os.path.join(program.top, "mcp-sandboxd-worker"), 0o777)
    program.refuses(words=["mcp-sandboxd-worker", "everybody"])


def test_a_way_to_the_data_that_others_may_change_is_refused(program):
    way = os.path.join(program.top, "way")
    os.mkdir(way)
    os.chmod(way, 0o777)
    program.refuses("DATA_DIR=" + os.path.join(way, "data"),
                    words=["DATA_DIR", way])


def test_data_behind_a_link_of_others_is_refused(program):
    way = os.path.join(program.top, "way")
    os.mkdir(way)
    os.chown(way, 12345, 12345)
    os.mkdir(os.path.join(way, "data"))
    os.symlink(os.path.join(way, "data"), program.data)
    program.refuses(words=["DATA_DIR", way])


def test_two_grave_settings_want_two_words(program):
    """What is refused alone is taken when it is said to be meant: then the
    next thing that is wrong is named."""
    said = program.refuses(
        "SANDBOX_CAP_ADD=SYS_ADMIN", "SANDBOX_CAPS_BYPASS_CHECK=true",
        "SANDBOX_RUNTIME=no-such-runtime", words=["SANDBOX_RUNTIME"])
    assert "SANDBOX_CAP_ADD" not in said
