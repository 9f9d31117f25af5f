"""Sixteen clients on four identifiers do whatever they like, all at once,
while processes of ours are killed; then engine, database and answers are held
against each other.

What may happen to a call is listed below, each with its reason.  Anything else
fails the test, which says the seed: pytest tests/chaos --seed N --seconds S.
The seed gives each client its calls; how they meet is up to the machine.
"""
import collections
import http.client
import json
import os
import random
import re
import signal
import sqlite3
import threading
import time

from client import McpError, wait_for

CLIENTS = 16
NAMES = ("one", "two", "three", "four")

# Why a call may fail, in any chaos: another client is as free as this one.
ALWAYS = {
    r"^(\w+: )*the sandbox was deleted$":
        "another restart or a delete took the name before it was up",
    r"Sandbox not initialized\. Call 'initialize_sandbox' first\.":
        "execute_code makes no sandbox, and it was deleted",
    r"twice MAX_SANDBOXES":
        "restarts come faster than the engine removes what they replace",
    r"\(MAX_SANDBOXES\)":
        "the same, for a new identifier",
    r"\(MAX_SANDBOX_RUNS\)":
        "all clients have chosen one sandbox",
}
# And when processes are killed.
KILLED = {
    r"the worker for this sandbox is starting: try again":
        "its worker was killed, the next one is not there yet",
    r"the worker for this sandbox keeps failing":
        "it was killed too often in a minute",
    r"worker \d+ looks for the engine":
        "a fresh worker has not heard of the engine yet",
    r"the server is shutting down":
        "a client came while it was ending",
    r"still there: .*; the server keeps trying":
        "the worker died while it removed the old one",
}
# How a run may end, besides by itself.
ENDS = {
    ("canceled", "canceled"):
        "its sandbox was deleted or replaced",
}
ENDS_KILLED = {
    ("failed", "start_failed"):
        "its sandbox could not be made: its worker was killed",
}


class Tally:
    """What came of all calls; shared by the clients."""

    def __init__(self):
        self.lock = threading.Lock()
        self.calls = collections.Counter()
        self.allowed = collections.Counter()
        self.unexpected = []
        self.runs = []  # acknowledged: (run id, what it prints or None)

    def unexpected_add(self, what):
        with self.lock:
            self.unexpected.append(what)


class Chaos:
    """One server, and whether it is being killed."""

    def __init__(self, server, kills, seed):
        self.server = server
        self.kills = kills
        self.seed = seed
        self.tally = Tally()
        self.over = threading.Event()
        self.errors = {**ALWAYS, **(KILLED if kills else {})}
        self.ends = {**ENDS, **(ENDS_KILLED if kills else {})}

    def failed(self, tool, text):
        """A call failed with this text: may it?"""
        for pattern in self.errors:
            if re.search(pattern, text):
                with self.tally.lock:
                    self.tally.allowed[pattern] += 1
                return
        self.tally.unexpected_add(f"{tool}: {text}")


class Caller(threading.Thread):
    """One client: calls, one after another, at random."""

    def __init__(self, chaos, number):
        super().__init__(daemon=True)
        self.chaos = chaos
        self.tally = chaos.tally
        self.random = random.Random(chaos.seed * 1000 + number)
        self.number = number
        self.client = chaos.server.client(timeout=120)
        self.mine = []
        self.calls = 0

    def run(self):
        doings = ((self.run_waiting, 20), (self.run_apart, 12),
                  (self.restart, 2), (self.delete, 1), (self.initialize, 2),
                  (self.stop, 1), (self.status, 8), (self.execute, 8))
        choices = [do for do, weight in doings for _ in range(weight)]
        while not self.chaos.over.is_set():
            do = self.random.choice(choices)
            self.calls += 1
            try:
                do(self.random.choice(NAMES))
                with self.tally.lock:
                    self.tally.calls[do.__name__] += 1
            except (OSError, http.client.HTTPException, McpError,
                    AssertionError, KeyError, ValueError) as e:
                self.broken(do.__name__, e)
        self.client.close()

    def broken(self, what, e):
        """No answer, or none that a client could use."""
        lost = isinstance(e, (OSError, http.client.HTTPException))
        if not (lost and self.chaos.kills):
            self.tally.unexpected_add(f"{what}: {e!r}")
        with self.tally.lock:
            self.tally.allowed["connection lost"] += 1
        self.client.close()
        self.chaos.over.wait(0.05)

    def tool(self, name, **arguments):
        """structuredContent, or None after a failure that may be."""
        result = self.client.tool(name, **arguments)
        if result.get("isError"):
            self.chaos.failed(name, result["content"][0]["text"])
            return None
        out = result["structuredContent"]
        if out.get("status") == "error":
            self.code_failed(name, out)
            return None
        return out

    def code_failed(self, name, out):
        # A program that was ended with its sandbox: the run says how.
        if out.get("run_id") and out["error_type"] == "ExecutionError":
            self.acked(out["run_id"], None)
            return
        self.chaos.failed(name, out["message"])

    def acked(self, run_id, prints):
        self.mine.append(run_id)
        with self.tally.lock:
            self.tally.runs.append((run_id, prints))

    def token(self):
        return f"c{self.number}n{self.calls}"

    def run_waiting(self, name):
        token = self.token()
        out = self.tool("run_sandbox", identifier=name, commands=[
            {"shell": f"echo {token}"}], options={
                "await_completion": True, "await_timeout_ms": 90000})
        if out is not None:
            self.acked(out["run_id"], token + "\n")
            final = out["final"]
            if final is not None and final["state"] == "completed":
                assert final["run_id"] == out["run_id"], out
                assert final["commands"][0]["stdout"] == token + "\n", out

    def run_apart(self, name):
        token = self.token()
        pause = self.random.choice(("0.01", "0.1", "0.5"))
        out = self.tool("run_sandbox", identifier=name, commands=[
            {"shell": f"sleep {pause}; echo {token}"}], options={
                "lock_sandbox": self.random.random() < 0.3})
        if out is not None:
            self.acked(out["run_id"], token + "\n")

    def execute(self, name):
        token = self.token()
        out = self.tool("execute_code", identifier=name, language="sh",
                        code=f"echo {token}")
        if out is not None:
            assert out["output"] == token + "\n", out
            self.acked(out["run_id"], None)

    def restart(self, name):
        self.tool("restart_sandbox", identifier=name)

    def delete(self, name):
        self.tool("delete_sandbox", identifier=name)

    def initialize(self, name):
        self.tool("initialize_sandbox", identifier=name)

    def stop(self, name):
        self.tool("stop_sandbox", identifier=name)

    def status(self, _):
        if self.mine:
            run = self.random.choice(self.mine)
            assert self.client.status(run)["run_id"] == run


class Killer(threading.Thread):
    """Kills processes of ours, and starts the supervisor again.

    A role that dies more than five times in a minute is paused, and a fresh
    supervisor counts anew: so each fourth death is the supervisor's.
    """

    ROLES = ("worker", "front", "worker", "supervisor")

    def __init__(self, chaos, every_s):
        super().__init__(daemon=True)
        self.chaos = chaos
        self.random = random.Random(chaos.seed)
        self.every_s = every_s
        self.kills = collections.Counter()
        self.killed_all = threading.Event()  # each role at least once

    def run(self):
        for turn in range(10 ** 6):
            if turn == len(self.ROLES):
                self.killed_all.set()
            wait = self.every_s * self.random.uniform(0.5, 1.5)
            if self.chaos.over.wait(wait):
                return
            try:
                self.kill(self.ROLES[turn % len(self.ROLES)])
            except AssertionError as e:
                self.chaos.tally.unexpected_add(f"after a kill: {e}")
                return

    def kill(self, role):
        server = self.chaos.server
        self.kills[role] += 1
        if role == "supervisor":
            children = [pid for pid, _ in server.children()]
            server.proc.kill()
            server.proc.wait()
            wait_for(lambda: not any(map(is_ours, children)), 30,
                     "the end of its children")
            server.start()
            return
        pids = server.pids(role)
        if pids:
            os.kill(self.random.choice(pids), signal.SIGKILL)


def is_ours(pid):
    try:
        with open(f"/proc/{pid}/stat", encoding="ascii") as f:
            return f.read().rsplit(")", 1)[1].split()[0] != "Z"
    except OSError:
        return False


# ---- afterwards

def live_rows(server):
    """{container name: (identifier, state)} of what the database wants."""
    db = sqlite3.connect(f"file:{server.database}?mode=ro", uri=True)
    try:
        return {name: (identifier, state) for name, identifier, state in
                db.execute("SELECT name, identifier, state FROM sandbox "
                           "WHERE state IN ('creating','ready','removing')")}
    finally:
        db.close()


def unfinished_rows(server):
    db = sqlite3.connect(f"file:{server.database}?mode=ro", uri=True)
    try:
        return db.execute("SELECT count(*) FROM run WHERE state IN "
                          "('queued', 'running')").fetchone()[0]
    finally:
        db.close()


def containers(server, engine):
    return {c["Names"][0].lstrip("/") for c in
            engine.containers(server.instance)}


def check_runs(chaos):
    """Each acknowledged run has ended, as one may end, with all it printed."""
    client = chaos.server.client()
    ends = collections.Counter()
    assert len({run for run, _ in chaos.tally.runs}) == len(chaos.tally.runs)
    for run, prints in chaos.tally.runs:
        try:
            view = client.wait_end(run, 90)
        except AssertionError as e:
            chaos.tally.unexpected_add(f"run {run}: {e}")
            continue
        end = (view["state"], view.get("end_reason"))
        ends[end] += 1
        out = view["commands"][0]["stdout"]
        if end == ("completed", "exit"):
            if prints is not None and out != prints:
                chaos.tally.unexpected_add(
                    f"run {run} printed {out!r}, not {prints!r}: {view}")
        elif end not in chaos.ends:
            chaos.tally.unexpected_add(
                f"run {run} ended as {end}: {view.get('error')}")
    client.close()
    return ends


def check_sandboxes(chaos, engine):
    """Engine and database agree, and the names are where clients get to."""
    server = chaos.server

    def agree():
        rows = live_rows(server)
        identifiers = [identifier for identifier, _ in rows.values()]
        return all(state == "ready" for _, state in rows.values()) and \
            len(set(identifiers)) == len(identifiers) and \
            set(rows) == containers(server, engine) and \
            server.metric("mcp_active_sandboxes") == len(rows)

    try:
        wait_for(agree, 90, "engine and database to agree")
    except AssertionError as e:
        chaos.tally.unexpected_add(
            f"{e}: {live_rows(server)} {containers(server, engine)} "
            f"{server.metric('mcp_active_sandboxes')}")
    check_names(chaos, engine)


def check_names(chaos, engine):
    """Each identifier takes a run, in the container that has its name, and
    lets itself be deleted; then there is nothing left."""
    server = chaos.server
    client = server.client()
    before = {i: name for name, (i, _) in live_rows(server).items()}
    for name in NAMES:
        out = client.start(name, "cat /proc/sys/kernel/hostname",
                           await_completion=True)
        assert out["final"]["state"] == "completed", out
        assert out["sandbox_name"] == before.get(name, out["sandbox_name"])
        client.call("delete_sandbox", identifier=name)
    client.close()
    wait_for(lambda: containers(server, engine) == set(), 60,
             "the engine to be empty")
    wait_for(lambda: live_rows(server) == {}, 60, "the last rows' end")
    assert unfinished_rows(server) == 0


def run_chaos(chaos, engine, seconds, killer=None):
    callers = [Caller(chaos, n) for n in range(CLIENTS)]
    for thread in callers + ([killer] if killer else []):
        thread.start()
    time.sleep(seconds)  # it is how long the chaos lasts
    assert killer is None or killer.killed_all.wait(60)
    chaos.over.set()
    for thread in callers + ([killer] if killer else []):
        thread.join(150)
        assert not thread.is_alive(), "a call that never ends"
    wait_for(chaos.server.is_ready, 90, "readiness")
    ends = check_runs(chaos)
    check_sandboxes(chaos, engine)
    tally = chaos.tally
    print(json.dumps({
        "seed": chaos.seed, "calls": tally.calls, "allowed": tally.allowed,
        "ends": {" ".join(map(str, k)): v for k, v in ends.items()},
        "kills": killer.kills if killer else {},
        "unexpected": len(tally.unexpected)}))
    assert not tally.unexpected, \
        f"{len(tally.unexpected)} unexpected: {tally.unexpected[:10]}"
    assert sum(tally.calls.values()) > CLIENTS


def test_calls_that_meet_leave_one_container_or_none(
        make_server, engine, seconds, seed):
    chaos = Chaos(make_server(), False, seed)
    run_chaos(chaos, engine, seconds)


def test_calls_and_kills_leave_one_container_or_none(
        make_server, engine, seconds, seed):
    # A front that dies between a create and its row leaves a container that
    # nobody knows: the sweep is to take it away now, and not in a day.
    chaos = Chaos(make_server(env={"UNKNOWN_KEEP_SECONDS": "0"}), True, seed)
    run_chaos(chaos, engine, seconds, Killer(chaos, 1.2))
