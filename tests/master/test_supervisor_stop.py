"""Stopping, reloading, the service manager, on the real program."""
import ctypes
import os
import re
import signal
import socket

import pytest

from supervisor import PATIENCE_S, sockets_of, wait_for


# Stopping

@pytest.mark.parametrize("sig", [signal.SIGTERM, signal.SIGINT])
def test_stopping_drains_the_front_and_then_the_workers(make, sig):
    s = make(env={"DRAIN_TIMEOUT_MS": "4321"})
    s.wait_ready()
    s.signal(sig)
    assert s.wait_exit() == 0
    assert s.events("front", "drain")[0][3] == "4321"
    order = [e[0] for e in s.events() if e[2] in ("drain", "front-gone")]
    assert order[0] == "front"
    assert s.living() == []


def test_no_client_is_kept_waiting_by_a_server_that_drains(make):
    s = make(modes={"front": "stubborn"})
    s.wait_ready()
    port = s.port()
    s.signal(signal.SIGTERM)
    s.wait_event("front", "drain")
    # The stand-in keeps its copy; that of the supervisor is closed.
    listeners = [e for e in sockets_of(s.proc.pid)
                 if e in sockets_of(s.pid("front"))]
    assert listeners == []
    assert port
    s.signal(signal.SIGTERM)
    assert s.wait_exit() == 0


def test_a_front_that_does_not_drain_is_killed_in_the_end(make):
    s = make(modes={"front": "stubborn"}, env={"DRAIN_TIMEOUT_MS": "50"})
    s.wait_ready()
    assert s.stop() == 0
    assert "the front did not drain in time: SIGKILL" in s.stderr()
    assert s.living() == []


def test_a_worker_that_does_not_leave_is_killed_in_the_end(make):
    s = make(modes={"worker-0": "faithless"},
             env={"MCP_SANDBOXD_LEAVE_MS": "100"})
    s.wait_ready()
    assert s.stop() == 0
    assert "worker/0 did not leave: SIGKILL" in s.stderr()
    assert s.living() == []


def test_a_second_sigterm_skips_the_wait(make):
    s = make(modes={"front": "stubborn"}, env={"DRAIN_TIMEOUT_MS": "600000"})
    s.wait_ready()
    s.signal(signal.SIGTERM)
    s.wait_event("front", "drain")
    s.signal(signal.SIGTERM)
    assert s.wait_exit() == 0
    assert s.living() == []


def test_stopping_works_before_anybody_is_ready(make):
    s = make(modes={"front": "mute", "worker": "mute"},
             env={"DRAIN_TIMEOUT_MS": "0", "MCP_SANDBOXD_LEAVE_MS": "50"})
    for role in ("front", "worker-0", "worker-1"):
        s.wait_event(role, "start")
    assert s.stop() == 0
    assert s.living() == []


def test_stopping_works_while_children_wait_for_their_restart(make):
    s = make(modes={"worker": "crash"},
             env={"MCP_SANDBOXD_BACKOFF_MS": "60000"})
    s.wait_log("worker/0 died")
    s.wait_log("worker/1 died")
    assert s.stop() == 0
    assert s.living() == []


def test_nobody_is_restarted_while_stopping(make):
    s = make(modes={"front": "stubborn", "worker": "work"})
    s.wait_ready()
    s.signal(signal.SIGTERM)
    s.wait_event("front", "drain")
    s.kill("worker-0")
    # The front hears that this one will not come back.
    gone = s.wait_event("front", "gone")
    assert gone[0][3].split()[2] == "1"
    s.kill("front")
    assert s.wait_exit() == 0
    assert [len(s.pids(r)) for r in ("front", "worker-0", "worker-1")] == \
        [1, 1, 1]


def test_children_do_not_outlive_a_killed_supervisor(make):
    s = make(modes={"worker-0": "hang"})
    s.wait_event("worker-0", "ready")
    s.wait_event("front", "ready")
    s.proc.kill()
    s.wait_exit()
    wait_for("all children to die", lambda: not s.living())


# Reload

def reload_with(s, text):
    path = os.path.join(s.dir, "conf")
    with open(path, "w", encoding="ascii") as f:
        f.write(text)
    s.signal(signal.SIGHUP)


def test_sighup_takes_new_values(make):
    s = make(start=False, args=["--config", "conf"],
             env={"LOG_LEVEL": None})
    with open(os.path.join(s.dir, "conf"), "w", encoding="ascii") as f:
        f.write("LOG_LEVEL=debug\nDRAIN_TIMEOUT_MS=1000\n")
    s.start()
    s.wait_ready()
    reload_with(s, "LOG_LEVEL=error\nDRAIN_TIMEOUT_MS=2222\n")
    assert s.wait_event("front", "reload")[0][3] == \
        "DRAIN_TIMEOUT_MS=2222 level=0"
    assert s.wait_event("worker-1", "reload")
    # Children that start later are told the new values, too.
    s.kill("front")
    s.wait_paired(after=2)
    s.signal(signal.SIGTERM)
    assert s.wait_exit() == 0
    assert s.events("front", "drain")[0][3] == "2222"


def test_sighup_names_what_needs_a_restart(make):
    s = make(start=False, args=["--config", "conf"])
    with open(os.path.join(s.dir, "conf"), "w", encoding="ascii") as f:
        f.write("WORKERS=2\n")
    s.start()
    s.wait_ready()
    reload_with(s, "WORKERS=5\nMAX_RUNS=77\n")
    s.wait_log("reload: WORKERS needs a restart to change")
    s.wait_event("front", "reload")
    assert len(s.pids("worker-0")) == 1
    assert s.pids("worker-4") == []


def test_a_wrong_file_leaves_all_as_it_was(make):
    s = make(start=False, args=["--config", "conf"])
    with open(os.path.join(s.dir, "conf"), "w", encoding="ascii") as f:
        f.write("DRAIN_TIMEOUT_MS=1000\n")
    s.start()
    s.wait_ready()
    reload_with(s, "DRAIN_TIMEOUT_MS=soon\n")
    s.wait_log("the configuration stays as it was")
    assert "DRAIN_TIMEOUT_MS" in s.stderr()
    assert s.ask() == s.pid("front")
    assert s.stop() == 0
    assert s.events("front", "reload") == []
    assert s.events("front", "drain")[0][3] == "1000"


def test_a_closed_terminal_ends_the_server(make):
    """A hangup by the kernel is no request to reload."""
    s = make(start=False)
    leader, terminal = os.openpty()
    libc = ctypes.CDLL(None, use_errno=True)

    def take_terminal():
        # nohup, which may have started the tests, ignores it for all.
        signal.signal(signal.SIGHUP, signal.SIG_DFL)
        os.setsid()
        # TIOCSCTTY: our controlling terminal
        if libc.ioctl(terminal, 0x540E, 0) != 0:
            os._exit(99)

    s.popen = {"preexec_fn": take_terminal, "pass_fds": (terminal,)}
    s.start()
    os.close(terminal)
    s.wait_ready()
    os.close(leader)
    assert s.wait_exit() == 0
    assert "configuration reloaded" not in s.stderr()
    assert s.living() == []


# The service manager

class Manager:
    """The other end of NOTIFY_SOCKET."""

    def __init__(self, address):
        self.socket = socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM)
        self.socket.bind(address)
        self.socket.settimeout(PATIENCE_S)
        self.seen = []

    def wait(self, start):
        while True:
            text = self.socket.recv(4096).decode()
            self.seen.append(text)
            if text.startswith(start):
                return text

    def close(self):
        self.socket.close()


@pytest.fixture(params=["path", "abstract"])
def manager(request, tmp_path):
    name = (str(tmp_path / "notify") if request.param == "path"
            else f"@mcp-sandboxd-test-{os.getpid()}")
    m = Manager(name.replace("@", "\0"))
    m.name = name
    yield m
    m.close()


def test_the_service_manager_is_told(make, manager):
    s = make(env={"NOTIFY_SOCKET": manager.name})
    manager.wait("READY=1")
    assert f"127.0.0.1:{s.port()}" in manager.wait("STATUS=")
    s.signal(signal.SIGHUP)
    text = manager.wait("RELOADING=1")
    assert re.fullmatch(r"RELOADING=1\nMONOTONIC_USEC=\d+", text)
    manager.wait("READY=1")
    s.signal(signal.SIGTERM)
    manager.wait("STOPPING=1")
    assert s.wait_exit() == 0
    # Children never see the socket's name.
    assert not [e for e in s.events(event="env") if "NOTIFY" in e[3]]


def test_a_degraded_server_says_so(make, manager):
    s = make(modes={"worker": "work"},
             env={"NOTIFY_SOCKET": manager.name, "MCP_SANDBOXD_BURST": "1",
                  "MCP_SANDBOXD_THROTTLE_MS": "300"})
    manager.wait("READY=1")
    s.wait_ready()
    s.kill("worker-0")
    s.wait_event("worker-0", "heard", 2)
    s.kill("worker-0")
    assert "degraded" in manager.wait("STATUS=degraded")
    manager.wait("STATUS=ready")


def test_the_watchdog_is_fed(make, manager):
    make(env={"NOTIFY_SOCKET": manager.name, "WATCHDOG_USEC": "40000"})
    for _ in range(5):
        manager.wait("WATCHDOG=1")


def test_a_watchdog_for_another_process_is_not_fed(make, manager):
    make(env={"NOTIFY_SOCKET": manager.name, "WATCHDOG_USEC": "1000",
              "WATCHDOG_PID": "1"})
    manager.wait("READY=1")
    manager.wait("STATUS=")
    assert not [t for t in manager.seen if "WATCHDOG" in t]


def test_a_manager_that_went_away_does_no_harm(make, manager):
    s = make(env={"NOTIFY_SOCKET": manager.name})
    manager.close()
    s.wait_ready()
    assert s.stop() == 0
