"""The worker's exec in a Pod, as its carrier uses it: one socket for input and
output, and words for what went wrong."""
import hashlib
import json
import os
import subprocess
import threading

import pytest

from .peer import wait_for

BUILD = os.path.abspath(os.environ.get("MCP_SANDBOXD_BUILD", "build"))
CLIENT = f"{BUILD}/tests/unit/worker/helpers/pod_exec_client"
WAIT_S = 60


class Program:
    """One in a Pod."""

    def __init__(self, cluster, pod, *command, container="main"):
        self.process = subprocess.Popen(
            [CLIENT, cluster.kubeconfig, pod, container, *command],
            stdin=subprocess.PIPE, stdout=subprocess.PIPE,
            stderr=subprocess.PIPE)

    def take(self, n):
        """The next n bytes of output."""
        got = self.process.stdout.read(n)
        assert len(got) == n
        return got

    def give(self, data):
        self.process.stdin.write(data)
        self.process.stdin.flush()

    def end(self):
        """(rest of the output, rc, why, lines of the log) of one that ends by
        itself."""
        out = self.process.stdout.read()
        assert self.process.wait(WAIT_S) == 0
        *log, last = self.process.stderr.read().decode().splitlines()
        for pipe in (self.process.stdin, self.process.stdout,
                     self.process.stderr):
            pipe.close()
        said = json.loads(last)
        return out, said["rc"], said["why"], log

    def hang_up(self):
        """Its input ends; the same."""
        self.process.stdin.close()
        return self.end()


@pytest.fixture
def run(cluster):
    """Program, and at the end that no frame was one too many."""
    yield lambda *a, **b: Program(cluster, *a, **b)
    assert cluster.faults.violations() == []


@pytest.fixture(params=[28, 36])
def version(request, cluster):
    """The oldest kind of server, with v4, and the newest."""
    cluster.faults.be_version(minor=request.param)


def test_a_program_has_its_output_and_its_end(version, run, pods):
    pods.running("ends")
    out, rc, why, log = run(
        "ends", "sh", "-c", "echo out; echo a complaint >&2; exit 7").end()
    assert (out, rc, why) == (b"out\n", "", "the program ended with 7")
    assert "the program in the sandbox says: a complaint" in "".join(log)
    out, rc, why, log = run("ends", "echo", "a  b", "$c&d=e").end()
    assert (out, rc, why, log) == (
        b"a  b $c&d=e\n", "", "the program ended with 0", [])


def test_bytes_go_through_both_ways_unchanged(version, run, pods):
    pods.running("bytes")
    data = os.urandom(3 << 20)
    program = run("bytes", "cat")
    writer = threading.Thread(target=program.give, args=[data])
    writer.start()
    got = program.take(len(data))
    writer.join()
    assert hashlib.md5(got).digest() == hashlib.md5(data).digest()
    out, rc, why, log = program.hang_up()
    assert (out, rc, why, log) == (b"", "", "the worker hung up", [])


def test_messages_in_fragments_are_joined(cluster, run, pods):
    pods.running("split")
    cluster.faults.split_messages()
    out, rc, why, _log = run(
        "split", "sh", "-c", "head -c 300000 /dev/zero; exit 3").end()
    assert (len(out), rc, why) == (300000, "", "the program ended with 3")


def test_a_server_that_pings_is_answered(cluster, run, pods):
    pods.running("pings")
    program = run("pings", "cat")
    program.give(b"x")
    program.take(1)
    cluster.faults.ping_streams()
    program.give(b"y")
    assert program.take(1) == b"y"
    assert program.hang_up()[2] == "the worker hung up"


def test_who_hangs_up_ends_the_programs_input(version, run, pods):
    pods.running("hangs-up")
    program = run("hangs-up", "sh", "-c", "cat; touch /over; sleep 600")
    program.give(b"x")
    program.take(1)
    assert program.hang_up()[2] == "the worker hung up"
    wait_for(lambda: run("hangs-up", "ls", "/over").end()[2] ==
             "the program ended with 0", "its end")


def test_a_connection_that_is_cut_says_nothing_of_the_program(
        cluster, run, pods):
    pods.running("cut")
    program = run("cut", "cat")
    program.give(b"x")
    program.take(1)
    cluster.faults.cut_streams()
    _out, rc, why, _log = program.end()
    assert rc == ""
    assert why.startswith("the connection to the API server ")


def test_a_program_that_is_not_there_has_not_started(version, run, pods):
    pods.running("missing")
    out, rc, why, _log = run("missing", "/no/such/program").end()
    assert (out, rc) == (b"", "")
    assert why.startswith("the program did not start: ")


def test_a_pod_that_is_deleted_ends_its_programs(
        cluster, run, pods):
    pods.running("deleted")
    program = run("deleted", "cat")
    program.give(b"x")
    program.take(1)
    cluster.faults.delete_pod(pod="deleted")
    assert program.end()[2] == "the program ended with 137"


def test_what_does_not_run_is_told_from_what_fails(cluster, run, pods):
    pods.made("over", "true")
    pods.ended("over")
    _out, rc, why, _log = run("over", "true").end()
    assert rc == "not_found"
    assert 'container not found ("main")' in why
    _out, rc, why, _log = run("nope", "true").end()
    assert rc == "not_found"
    assert 'pods "nope" not found' in why
    cluster.faults.refuse(code=502, path="/exec")
    assert run("over", "true").end()[1] == "backend"


def test_a_missing_right_is_named(cluster, run, pods):
    pods.running("rights")
    rules = [{"apiGroups": [""], "resources": ["pods"], "verbs": ["get"]}]
    before = cluster.ask("GET", "/apis/rbac.authorization.k8s.io/v1/"
                         f"namespaces/{cluster.namespace}/roles")[1]["items"]
    cluster.faults.set_rules(rules=rules)
    _out, rc, why, _log = run("rights", "true").end()
    cluster.faults.set_rules(rules=before[0]["rules"])
    assert rc == "backend"
    assert "a right is missing" in why
