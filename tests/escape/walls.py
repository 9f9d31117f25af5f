"""Probes of a sandbox's walls, through the real server, and their table.

probes.py runs in a sandbox as each of its users; what takes two sandboxes,
the server or a lot of memory is here.  A probe either holds, or is a residual:
RESIDUALS says for whom and under which heading docs/security.md explains it.
"""
import collections
import json
import os

from client import wait_for

HERE = os.path.dirname(os.path.abspath(__file__))
USERS = ("sandbox", "root")
MIB = 1 << 20

Probe = collections.namedtuple("Probe", "user group name outcome detail")

# (group, name): (who may do it, the residual's name in docs/security.md)
AGENT = (("root",), "root-and-its-agent")
RESIDUALS = {
    ("read", "a path of the host in mountinfo"): (USERS, "host-paths"),
    ("write", "/proc/1/oom_score_adj"): AGENT,
    ("write", "/proc/1/oom_adj"): AGENT,
    ("write", "/proc/1/coredump_filter"): AGENT,
    ("write", "/proc/1/autogroup"): AGENT,
    ("write", "/proc/1/sched"): AGENT,
    ("agent", "its limits, changed"): AGENT,
    ("across", "a lock on the agent's program"): (USERS, "one-agent-file"),
}


def residual(probe):
    """The residual's name if this one may be open, else None."""
    who, name = RESIDUALS.get((probe.group, probe.name), ((), None))
    return name if probe.user in who else None


def wrong(probes):
    """Those that are open and should not be, as lines."""
    return [f"{p.user}: {p.group}: {p.name}: {p.detail}" for p in probes
            if p.outcome != "held" and residual(p) is None]


def run(client, name, user, *commands):
    """The commands' results; each must have run."""
    final = client.run(name, *commands, as_user=user,
                       continue_on_error=True)
    for command in final["commands"]:
        assert command["exit_code"] is not None, command
    return final


def inside(client, name, user):
    """The probes of probes.py."""
    with open(os.path.join(HERE, "probes.py"), encoding="utf-8") as f:
        program = f.read()
    command = run(client, name, user,
                  {"argv": ["python3", "-c", program]})["commands"][0]
    assert command["exit_code"] == 0, command
    return [Probe(user, *json.loads(line))
            for line in command["stdout"].splitlines()]


# ---- two sandboxes

# What the first sandbox leaves or holds, until its standard input ends; and
# what the second one tries.  Their first argument is a word that nobody else
# uses.
HOLD = """
import ctypes, fcntl, os, resource, socket, sys, time
word = sys.argv[1]
libc = ctypes.CDLL(None, use_errno=True)
key = int(word, 16) & 0x7fffffff
abstract = socket.socket(socket.AF_UNIX)
abstract.bind("\\0" + word); abstract.listen()
datagram = socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM)
datagram.bind("\\0d" + word)
tcp = socket.create_server(("127.0.0.1", 40001))
udp = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
udp.bind(("127.0.0.1", 40002))
def make(function, *args):
    # Others of the same user may have all of them for a moment.
    end = time.monotonic() + 50
    while function(*args) < 0:
        assert time.monotonic() < end, os.strerror(ctypes.get_errno())
        time.sleep(0.05)
small = (ctypes.c_long * 8)(0, 1, 1)
make(libc.shmget, key, 4096, 0o1666)
make(libc.semget, key, 1, 0o1666)
make(libc.msgget, key, 0o1666)
if resource.getrlimit(resource.RLIMIT_MSGQUEUE)[0] >= 65536:
    make(libc.mq_open, b"/" + word.encode(), 66, 0o666, small)
for d in ("/dev/shm", "/tmp", "/workspace", "/artifacts"):
    with open(f"{d}/{word}", "w") as f:
        f.write(word)
lock = open("/.mcp-sandbox/agent", "rb")
fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
open("/workspace/held", "w").close()
while os.path.exists("/workspace/held"):
    time.sleep(0.05)
"""
TRY = """
import ctypes, errno, fcntl, glob, json, os, socket, sys
word, container = sys.argv[1], sys.argv[3]
libc = ctypes.CDLL(None, use_errno=True)
key = int(word, 16) & 0x7fffffff
def connect(kind, address):
    s = socket.socket(address[0], kind)
    s.settimeout(60)
    s.connect(address[1])
    if kind == socket.SOCK_DGRAM:
        s.send(b"x"); s.send(b"x")
    return "connected"
def c(function, *args):
    if function(*args) < 0:
        raise OSError(ctypes.get_errno(), "")
    return "there"
def there(path):
    return path if os.path.exists(path) else None
def named():
    for path in glob.glob("/proc/[0-9]*/cmdline"):
        pid = path.split("/")[2]
        with open(path, "rb") as f:
            if word.encode() in f.read() and pid != str(os.getpid()):
                return pid
def lock():
    with open("/.mcp-sandbox/agent", "rb") as f:
        fcntl.flock(f, fcntl.LOCK_EX | fcntl.LOCK_NB)
    return None
def locked():
    try:
        return lock()
    except BlockingIOError:
        return "the other's lock is seen"
def resolved(name):
    return socket.gethostbyname(name)
def below(top):
    # Its id in a path: its control group, its link, its layers.
    for path, directories, files in os.walk(top):
        for found in directories + files:
            if container in found:
                return os.path.join(path, found)
def named_in(pattern):
    for path in glob.glob(pattern):
        try:
            with open(path, errors="replace") as f:
                if container in f.read():
                    return path
        except OSError:
            pass
def names_socket():
    with open("/proc/net/unix") as f:
        return "listed" if word in f.read() else None
U, I = socket.AF_UNIX, socket.AF_INET
S, D = socket.SOCK_STREAM, socket.SOCK_DGRAM
tries = {
    "an abstract socket": (connect, S, (U, "\\0" + word)),
    "an abstract datagram socket": (connect, D, (U, "\\0d" + word)),
    "the name of a socket": (names_socket,),
    "a TCP port": (connect, S, (I, ("127.0.0.1", 40001))),
    "a UDP port": (connect, D, (I, ("127.0.0.1", 40002))),
    "shared memory of System V": (c, libc.shmget, key, 4096, 0o666),
    "a semaphore of System V": (c, libc.semget, key, 1, 0o666),
    "a queue of System V": (c, libc.msgget, key, 0o666),
    "a queue of POSIX": (c, libc.mq_open, b"/" + word.encode(), 2),
    "a process": (named,),
    "a lock on the agent's program": (locked,),
    "the name of its container": (resolved, container[:12]),
    "its control group": (below, "/sys/fs/cgroup"),
    "its link": (below, "/.mcp-sandbox"),
    "its id in what /proc tells": (named_in, "/proc/[0-9s]*/mountinfo"),
    "its id in control groups": (named_in, "/proc/[0-9s]*/cgroup"),
    "the server's port": (connect, S, (I, ("127.0.0.1", int(sys.argv[2])))),
}
for d in ("/dev/shm", "/tmp", "/workspace", "/artifacts"):
    tries["a file of " + d] = (there, f"{d}/{word}")
for name, (function, *args) in tries.items():
    try:
        got = function(*args)
        said = ["held", "nothing"] if got is None else ["open", got]
    except OSError as e:
        said = ["held", errno.errorcode.get(e.errno, str(e))]
    print(json.dumps(["across", name] + said))
"""


def is_held(client, name, user, run_id):
    view = client.ended(run_id)
    assert view is None, view["commands"][0]["stderr"]
    command = client.run(name, "test -e /workspace/held",
                         as_user=user)["commands"][0]
    return command["exit_code"] == 0


def across(client, port, first, second, user, word, seeker=None):
    """What one sandbox, the seeker's if that is another tenant's client, finds
    of another that holds all it can."""
    held = client.start(first, {"argv": ["python3", "-c", HOLD, word]},
                        as_user=user)
    wait_for(lambda: is_held(client, first, user, held["run_id"]), 90,
             "the first sandbox to hold all it can")
    container = client.call(
        "initialize_sandbox", identifier=first)["container_id"]
    command = run(seeker or client, second, user, {"argv": [
        "python3", "-c", TRY, word, str(port), container]})["commands"][0]
    run(client, first, user, "rm -f /workspace/held")
    client.wait_end(held["run_id"])
    assert command["exit_code"] == 0, command
    return [Probe(user, *json.loads(line))
            for line in command["stdout"].splitlines()]


# ---- artifacts

# What is left in /artifacts, and what of it must not come out.
TRICKS = {
    "a link to /etc/passwd": "ln -s /etc/passwd trick",
    "a link to /proc/1/environ": "ln -s /proc/1/environ trick",
    "a link to the agent": "ln -s /.mcp-sandbox/agent trick",
    "a link to a directory": "ln -s / trick",
    "a link to itself": "ln -s trick trick",
    "a directory that becomes a link": "mkdir trick; echo x >trick/passwd; "
    "(sleep 0.05; rm -r trick; ln -s /etc trick) & disown",
    "a FIFO": "mkfifo trick",
    "a socket": "python3 -c 'import socket; "
    "socket.socket(socket.AF_UNIX).bind(\"trick\")'",
    "a name of two dots": "mkdir -p trick && cd trick && echo x >..x",
    "a name with a line's end": "echo x >\"trick$(printf '\\nx')\"",
    "a file of 1 TiB": "truncate -s 1T trick",
    "/artifacts itself a link": "cd / && rmdir artifacts && "
    "ln -s /etc artifacts",
}


def artifacts(client, server, name, user):
    """Whatever comes out of /artifacts is a file that was put there."""
    found = []
    for trick, shell in TRICKS.items():
        box = f"{name}-{len(found)}"
        final = client.run(box, "cd /artifacts; " + shell, as_user=user,
                           continue_on_error=True)
        leaked = [a for a in final["artifacts"]
                  if is_foreign(server, box, a)]
        found.append(Probe(user, "artifact", trick,
                           "open" if leaked else "held",
                           str(leaked or "nothing")))
        client.call("delete_sandbox", identifier=box)
    return found


def is_foreign(server, box, artifact):
    path = artifact["path"] if isinstance(artifact, dict) else artifact
    if ".." in path.split("/") or path.startswith("/"):
        return True
    _, _, data = server.get(f"/artifacts/{box}/latest/{path}")
    return b"root:" in data or b"PATH=" in data or b"\x7fELF" in data


# ---- as much as there is

FLOODS = {
    "all of /dev/shm": ("dd if=/dev/zero of=/dev/shm/x bs=1M count=100000",
                        64 * MIB),
    "all of /tmp": ("dd if=/dev/zero of=/tmp/x bs=1M count=100000",
                    256 * MIB),
    "all of /dev": ("dd if=/dev/zero of=/dev/x bs=1M count=100000", 0),
    "all of /sys/fs/cgroup":
    ("dd if=/dev/zero of=/sys/fs/cgroup/x bs=1M count=100000", 0),
}


def floods(client, name, user):
    """Each file system that is memory has an end."""
    found = []
    for flood, (shell, most) in FLOODS.items():
        path = shell.split("of=")[1].split()[0]
        command = run(
            client, name, user, f"{shell} 2>/dev/null; "
            f"stat -c %s {path} 2>/dev/null || echo 0; rm -f {path}"
        )["commands"][0]
        size = int(command["stdout"].split()[-1])
        found.append(Probe(user, "flood", flood,
                           "held" if size <= most else "open",
                           f"{size} bytes"))
    return found


def table(probes):
    """A line of Markdown per probe: what held, what is a residual."""
    rows = {}
    for p in probes:
        said = p.detail if p.outcome == "held" else \
            f"`{residual(p)}`" if residual(p) else f"OPEN: {p.detail}"
        rows.setdefault((p.group, p.name), {})[p.user] = said
    lines = ["| group | probe | as the user | as root |",
             "| --- | --- | --- | --- |"]
    for (group, name), said in rows.items():
        cells = [group, name] + [said.get(u, "") for u in USERS]
        lines.append("| " + " | ".join(
            c.replace("|", "\\|") for c in cells) + " |")
    return "\n".join(lines)
