"""How children live and die, on the real program."""
import os
import re
import signal
import socket
import subprocess

import pytest

from supervisor import PATIENCE_S, wait_for

# Time limits that last seconds or minutes are made short by MCP_SANDBOXD_...
# variables (supervisor/master/tuning.c); the tests wait for what happens.
QUICK_PING = {"MCP_SANDBOXD_PING_MS": "50", "MCP_SANDBOXD_SILENCE_MS": "300",
              "MCP_SANDBOXD_ABORT_MS": "200"}
# Deaths that a test makes shall not throttle it.
PATIENT = {"MCP_SANDBOXD_BURST": "1000"}
# A front that was ready has done well, also if it is killed in its first
# millisecond; otherwise it would wait, and its workers start before it.
HEALTHY = {"MCP_SANDBOXD_FRONT_HEALTHY_MS": "0"}


# Deaths

def test_a_worker_that_had_worked_restarts_at_once(make):
    s = make(modes={"worker": "work"})
    s.wait_ready()
    front = s.pid("front")
    s.kill("worker-0")
    s.wait_log("worker/0 died: signal 9 (Killed); work done: 1; "
               "restart in 0 ms")
    s.wait_event("worker-0", "heard", 2)
    assert s.pid("front") == front
    assert len(s.pids("worker-1")) == 1
    gone = s.events("front", "gone")
    assert [g[3] for g in gone] == ["0 0 0"]
    assert s.events("front", "peer")[-1][3] == "0 3"


def test_a_child_that_never_works_backs_off(make):
    s = make(modes={"worker-0": "crash"},
             env={"MCP_SANDBOXD_BACKOFF_MS": "10", **PATIENT})
    s.wait_log("restart in 640 ms")
    delays = re.findall(r"worker/0 died: exit status 70; work done: 0; "
                        r"restart in (\d+) ms", s.stderr())
    assert delays[:7] == ["10", "20", "40", "80", "160", "320", "640"]
    assert len(s.pids("worker-1")) == 1
    # The front hears of each wait.
    waits = [int(e[3].split()[1]) for e in s.events("front", "gone")]
    assert waits and max(waits) > 100


def test_a_front_that_was_ready_restarts_at_once(make):
    s = make(env=HEALTHY)
    s.wait_ready()
    s.kill("front")
    s.wait_log("front died: signal 9 (Killed); work done: 0; restart in 0 ms")


def test_a_front_that_was_ready_for_too_short_a_time_waits(make):
    s = make(env={"MCP_SANDBOXD_FRONT_HEALTHY_MS": "600000",
                  "MCP_SANDBOXD_BACKOFF_MS": "1000"})
    s.wait_ready()
    s.kill("front")
    s.wait_log("front died: signal 9 (Killed); work done: 0; "
               "restart in 1000 ms")
    # Its workers, which do not wait, are there before it and get it then.
    s.wait_paired(after=2)
    for i in (0, 1):
        assert len(s.pids(f"worker-{i}")) == 2
        assert f"worker/{i} died" not in s.stderr()


def test_a_dead_front_takes_the_workers_with_it(make):
    s = make(env=HEALTHY)
    s.wait_ready()
    before = {r: s.pid(r) for r in ("front", "worker-0", "worker-1")}
    s.kill("front")
    s.wait_paired(after=2)
    for role, pid in before.items():
        assert s.pid(role) != pid
    # They left by themselves and were not counted as dead.
    for i in (0, 1):
        assert s.events(f"worker-{i}", "front-gone")
        assert f"worker/{i} left with the front" in s.stderr()
        assert f"worker/{i} died" not in s.stderr()
    order = re.findall(r"supervisor\[\d+\] (\S+)\[\d+\] started", s.stderr())
    assert order[3] == "front" and len(order) == 6


def test_many_dead_fronts_never_count_against_the_workers(make):
    s = make(env={**HEALTHY, "MCP_SANDBOXD_BURST": "8"})
    s.wait_ready()
    for n in range(1, 8):
        s.kill("front")
        s.wait_paired(after=2 * n)
    assert "workers: more than" not in s.stderr()
    assert not re.search(r"worker/\d died", s.stderr())


def test_a_worker_that_stays_without_its_front_is_killed(make):
    s = make(modes={"worker-0": "faithless"},
             env={"MCP_SANDBOXD_LEAVE_MS": "200"})
    s.wait_ready()
    s.kill("front")
    s.set_mode("worker-0", None)
    s.wait_log("worker/0 died: signal 9")
    s.wait_paired(after=2)


def test_leaving_without_a_reason_is_a_death(make):
    s = make(modes={"worker-1": "leave"}, env=PATIENT)
    s.wait_log("worker/1 died: exit status 0 without a reason; work done: 0; "
               "restart in 100 ms")
    s.wait_log("worker/1 died: exit status 0 without a reason; work done: 0; "
               "restart in 200 ms")


def test_more_than_five_deaths_throttle_the_role(make):
    s = make(modes={"worker": "work"},
             env={"MCP_SANDBOXD_THROTTLE_MS": "1000"})
    s.wait_ready()
    for n in range(1, 7):
        s.kill("worker-0")
        if n < 6:
            s.wait_event("worker-0", "heard", n + 1)
    s.wait_log("workers: more than 5 deaths in 60 s: throttled for 1 s")
    gone = s.wait_event("front", "gone", 6)[5][3].split()
    assert gone[0] == "0" and gone[2] == "1"
    assert 0 < int(gone[1]) <= 1000
    assert len(s.pids("worker-0")) == 6
    # The other one and the front go on, and later it is back.
    s.wait_log("workers: no longer throttled")
    s.wait_event("worker-0", "heard", 7)
    assert len(s.pids("worker-1")) == 1
    assert len(s.pids("front")) == 1
    assert s.stderr().count("throttled for 1 s") == 1


def test_a_new_front_hears_that_the_workers_are_throttled(make):
    s = make(modes={"worker": "work"},
             env={"MCP_SANDBOXD_BURST": "1",
                  **HEALTHY,
                  "MCP_SANDBOXD_THROTTLE_MS": "60000"})
    s.wait_ready()
    for n in (1, 2):
        s.kill("worker-0")
        if n < 2:
            s.wait_event("worker-0", "heard", 2)
    s.wait_log("throttled for 60 s")
    s.kill("front")
    front = s.wait_event("front", "start", 2)[1][1]
    said = wait_for("news of worker 0", lambda: [
        e[3] for e in s.events("front", "gone")
        if e[1] == front and e[3].startswith("0 ")])
    assert said[0].endswith(" 1")


def test_a_throttled_front_comes_back(make):
    s = make(modes={"front": "crash"},
             env={"MCP_SANDBOXD_BACKOFF_MS": "1", "MCP_SANDBOXD_BURST": "2",
                  "MCP_SANDBOXD_THROTTLE_MS": "300"})
    s.wait_log("front: more than 2 deaths in 60 s: throttled for 0 s")
    s.set_mode("front", None)
    s.wait_log("front: no longer throttled")
    s.wait_ready()


def test_last_words_are_logged(make):
    s = make(modes={"worker-0": "exit 71"}, env=PATIENT)
    s.wait_log("ends with status 71: told to end with 71")
    s.wait_log("worker/0 died: exit status 71")


@pytest.mark.parametrize("status", [77, 78])
def test_a_front_that_refuses_ends_the_supervisor(make, status):
    s = make(modes={"front": f"exit {status}"})
    assert s.wait_exit() == status
    assert s.living() == []
    assert len(s.pids("front")) == 1
    assert f"front exited with status {status} and is not started again" \
        in s.stderr()


def test_all_workers_that_refuse_end_the_supervisor(make):
    s = make(modes={"worker": "exit 78"})
    assert s.wait_exit() == 78
    assert s.living() == []


def test_one_worker_that_refuses_leaves_the_rest_at_work(make):
    s = make(modes={"worker-1": "exit 78"})
    s.wait_log("worker/1 exited with status 78 and is not started again")
    s.wait_event("worker-0", "heard")
    assert s.ask() == s.pid("front")
    assert len(s.pids("worker-1")) == 1
    gone = wait_for("the news", lambda: s.events("front", "gone"))
    assert gone[0][3].split()[0] == "1" and gone[0][3].split()[2] == "1"
    assert s.stop() == 0


ENVOYS = {"keys": {"OAUTH_ISSUER": "http://127.0.0.1:1",
                   "OAUTH_AUDIENCE": "https://mcp.example/"},
          "courier": {"WEBHOOKS": "true"}}


@pytest.mark.parametrize("role", list(ENVOYS))
def test_an_envoy_that_refuses_at_the_start_ends_the_supervisor(make, role):
    s = make(modes={role: "exit 78"}, env=ENVOYS[role])
    assert s.wait_exit() == 78
    assert s.living() == []
    assert f"{role} exited with status 78 and is not started again" \
        in s.stderr()


@pytest.mark.parametrize("status", [77, 78])
@pytest.mark.parametrize("role", list(ENVOYS))
def test_an_envoy_that_refuses_later_leaves_the_rest_at_work(
        make, role, status):
    """A file of authorities that is being written anew, say: what it is
    missing may come back."""
    s = make(env={"MCP_SANDBOXD_THROTTLE_MS": "300", **ENVOYS[role]})
    s.wait_ready()
    s.wait_event(role, "heard")
    s.set_mode(role, f"exit {status}")
    s.kill(role)
    s.wait_log(
        f"{role} exited with status {status} and is tried again in 300 ms", 8)
    assert "throttled" not in s.stderr()
    assert s.ask() == s.pid("front")
    assert len(s.pids("front")) == 1
    s.set_mode(role, None)
    s.wait_event(role, "heard", 2)
    assert s.stop() == 0


def test_envoys_are_started_where_they_are_wanted(make):
    s = make()
    s.wait_ready()
    assert not s.pids("keys") and not s.pids("courier")
    s = make(env={"OTLP_ENDPOINT": "http://127.0.0.1:4318"})
    s.wait_ready()
    assert s.pids("courier") and not s.pids("keys")


# Silence

def test_a_hung_child_is_aborted(make):
    s = make(modes={"worker-0": "hang"}, env=QUICK_PING)
    s.wait_log("worker/0[")
    s.wait_event("worker-0", "ready")
    s.set_mode("worker-0", None)
    s.wait_log("answered no ping in 300 ms: SIGABRT")
    s.wait_log("worker/0 died: signal 6")
    s.wait_event("worker-0", "heard", 1)


def test_a_child_that_says_it_goes_on_is_waited_for(make):
    s = make(modes={"front": "slow"},
             env={"MCP_SANDBOXD_READY_MS": "5000", **PATIENT})
    s.wait_event("front", "slow")  # for longer than that
    with open(os.path.join(s.control, "go"), "w", encoding="ascii"):
        pass
    s.wait_ready()
    assert "was not ready" not in s.stderr()
    assert len(s.events("front", "start")) == 1


def test_but_not_for_ever(make):
    s = make(modes={"front": "endless"},
             env={"MCP_SANDBOXD_READY_MAX_MS": "2000",
                  "MCP_SANDBOXD_GOING_ON_MS": "200", **PATIENT})
    # A machine that is busy may hear it for the first time when it is too
    # late.
    s.wait_log("was not ready in ")


def test_a_child_that_ignores_sigabrt_is_killed(make):
    s = make(modes={"front": "hang-hard"}, env=QUICK_PING)
    s.wait_event("front", "ready")
    s.set_mode("front", None)
    s.wait_log("answered no ping in 300 ms: SIGABRT")
    s.wait_log("front died: signal 9")
    s.wait_ready()


def test_a_stopped_child_is_killed(make):
    s = make(env=QUICK_PING)
    s.wait_ready()
    s.kill("worker-1", signal.SIGSTOP)
    s.wait_log("worker/1 died: signal")
    s.wait_event("worker-1", "heard", 2)


def test_the_front_is_told_of_a_worker_that_does_not_answer(make):
    s = make(env={"MCP_SANDBOXD_PING_MS": "20",
                  "MCP_SANDBOXD_QUIET_MS": "200",
                  "MCP_SANDBOXD_SILENCE_MS": "600000"})
    s.wait_ready()
    s.wait_paired()
    s.kill("worker-1", signal.SIGSTOP)
    s.wait_log("worker/1[")
    s.wait_log("does not answer")
    s.wait_event("front", "quiet", 1)
    s.kill("worker-1", signal.SIGCONT)
    s.wait_event("front", "quiet", 2)
    assert "worker/0[" not in "".join(
        n for n in s.stderr().splitlines() if "does not answer" in n)


def test_a_child_that_is_not_ready_in_time_is_aborted(make):
    s = make(modes={"worker-0": "mute"},
             env={"MCP_SANDBOXD_READY_MS": "200", **PATIENT})
    s.wait_log("was not ready in 200 ms: SIGABRT")
    s.set_mode("worker-0", None)
    s.wait_ready()


def test_healthy_children_live_through_many_pings(make):
    s = make(env={"MCP_SANDBOXD_PING_MS": "10",
                  "MCP_SANDBOXD_SILENCE_MS": "2000"})
    s.wait_ready()
    # Some hundred pings' worth of other work.
    for _ in range(300):
        assert s.ask() == s.pid("front")
    assert "died" not in s.stderr()


def test_a_supervisor_that_was_stopped_kills_nobody(make):
    s = make(env={"MCP_SANDBOXD_PING_MS": "20",
                  "MCP_SANDBOXD_SILENCE_MS": "100"})
    s.wait_ready()
    s.signal(signal.SIGSTOP)
    # It was away for longer than the silence it allows: its own log stands
    # still while the front answers us.
    for _ in range(100):
        assert s.ask() == s.pid("front")
        subprocess.run(["sleep", "0.005"], check=True)
    s.signal(signal.SIGCONT)
    s.signal(signal.SIGHUP)
    s.wait_log("configuration reloaded")
    assert "SIGABRT" not in s.stderr()


# Nothing a child says ends the supervisor

@pytest.mark.parametrize("mode", ["rubbish", "rubbish-later", "foreign"])
@pytest.mark.parametrize("role", ["front", "worker-0"])
def test_rubbish_costs_only_who_says_it(make, role, mode):
    s = make(modes={role: mode}, env=PATIENT)
    name = "front" if role == "front" else "worker/0"
    s.wait_log(f"{name} died: signal 9")
    if mode == "foreign":
        s.wait_log("speaks version")
    s.set_mode(role, None)
    s.wait_ready()
    assert s.ask() == s.pid("front")
    assert s.stop() == 0


def test_a_program_that_ends_at_once_is_only_a_death(make):
    s = make(modes={"worker-0": "exit-at-once"}, env=PATIENT)
    s.wait_log("worker/0 died: exit status 3")
    s.set_mode("worker-0", None)
    s.wait_ready()


# The listening socket

def test_a_connection_waits_while_the_front_is_dead(make):
    s = make(env=PATIENT)
    s.wait_ready()
    assert s.ask() == s.pid("front")
    s.set_mode("front", "mute")
    old = s.pid("front")
    s.kill("front")
    s.wait_event("front", "start", 2)
    # Nobody accepts now; the backlog takes it.
    with socket.create_connection(("127.0.0.1", s.port()),
                                  timeout=PATIENCE_S) as c:
        s.set_mode("front", None)
        s.kill("front")
        served_by = int(c.makefile().readline().split()[1])
    assert served_by not in (old, s.pids("front")[1])
    assert served_by == s.pid("front")


def test_a_taken_port_says_what_to_do(make):
    with socket.socket() as other:
        other.bind(("127.0.0.1", 0))
        other.listen()
        port = other.getsockname()[1]
        s = make(env={"PORT": str(port)})
        assert s.wait_exit() == 75
    assert (f"port {port} on 127.0.0.1 is in use: stop the other server or "
            "set PORT") in s.stderr()
    assert s.events() == []
    assert not os.path.exists(s.data)


def test_ipv6_loopback_is_served(make):
    s = make(env={"BIND": "::1"})
    s.wait_ready()
    port = int(re.search(r"listening on http://\[::1\]:(\d+)",
                         s.stderr())[1])
    with socket.create_connection(("::1", port), timeout=PATIENCE_S) as c:
        assert c.makefile().readline() == f"front {s.pid('front')}\n"
