"""The forms of a server in a container, each as docs/containers.md shows it,
and what holds in them."""
import json
import os
import signal
import subprocess
import time

import pytest

from bridges import Bridge, request
from client import wait_for
from machine import LIMIT_S, SERVER, SOCKET_GROUP, TOP
from pages import blocks_of, play, read

PAGE = "docs/containers.md"
PUBLISHED = ("-p", "127.0.0.1:8080:8080", "-v", "data:/data")
# As the page's section of this name has it.
ORDINARY = ("--user", "10001", "--group-add", str(SOCKET_GROUP), "--read-only",
            "--cap-drop", "ALL", "--security-opt", "no-new-privileges")
REVISION = "2026-07-28"


def token(machine, name="mcp-sandboxd"):
    return machine.docker("exec", name, "sandboxctl", "token", "add",
                          "default")


def call_words(good, tool, **arguments):
    """A command that calls one tool; it prints JSON, and a line's status."""
    message = request(1, "tools/call", name=tool, arguments=arguments, _meta={
        "io.modelcontextprotocol/protocolVersion": REVISION,
        "io.modelcontextprotocol/clientCapabilities": {}})
    headers = ("Content-Type: application/json", "Accept: application/json",
               f"MCP-Protocol-Version: {REVISION}", "Mcp-Method: tools/call",
               f"Mcp-Name: {tool}", f"Authorization: Bearer {good}")
    return ["curl", "-s", "-m", str(LIMIT_S), "-w", "\n%{http_code}",
            "http://127.0.0.1:8080/mcp", "-d", json.dumps(message),
            *(w for h in headers for w in ("-H", h))]


def post(machine, good, tool, **arguments):
    """(status, JSON) of one tool's call."""
    done = machine.run(*call_words(good, tool, **arguments))
    body, _, status = done.stdout.rpartition("\n")
    return int(status), json.loads(body)


def run_shell(machine, good, shell, identifier="a", **options):
    """The text that a model reads."""
    status, answer = post(machine, good, "run_sandbox", identifier=identifier,
                          commands=[{"shell": shell}], options=options)
    assert status == 200, answer
    return answer["result"]["content"][0]["text"]


def fetch(machine, path, *headers):
    """The status of an answer."""
    return machine.run(
        "curl", "-s", "-m", "20", "-o", "/dev/null", "-w", "%{http_code}",
        "http://127.0.0.1:8080" + path, *(
            w for h in headers for w in ("-H", h)), check=False).stdout


def programs_of(machine, name="mcp-sandboxd"):
    """[(pid, whether it is a zombie, name)], the health check's aside"""
    lines = machine.docker("top", name, "-eo", "pid,stat,comm").splitlines()
    return [(pid, stat.startswith("Z"), comm)
            for pid, stat, comm in (n.split()[:3] for n in lines[1:])
            if comm != "sandboxctl"]


def users_of(machine, name="mcp-sandboxd"):
    """{program: [uid]} of a container, as this host has them."""
    lines = machine.docker("top", name, "-eo", "pid,uid,comm").splitlines()
    found = {}
    for _, uid, comm in map(str.split, lines[1:]):
        found.setdefault(comm, []).append(int(uid))
    return found


class Stdio(Bridge):
    """docker run -i ... stdio, as a client starts it."""

    def __init__(self, machine, name, *words):
        self.machine, self.name, self.words = machine, name, words
        super().__init__(None)

    def popen(self, build, args, env):
        return self.machine.popen(
            "docker", "run", "--rm", "-i", "--name", self.name, "-v",
            "/var/run/docker.sock:/var/run/docker.sock", "-v", "data:/data",
            *self.words, SERVER, "stdio", stdin=subprocess.PIPE,
            stdout=subprocess.PIPE, stderr=subprocess.PIPE)


@pytest.fixture
def stdio(machine):
    made = []

    def make(*words):
        made.append(Stdio(machine, f"stdio-{len(made)}", *words))
        return made[-1]

    yield make
    for b in made:
        b.close()


# ---- the page

def test_commands_of_the_page_do_what_it_says(machine, tmp_path):
    machine.make_sidecar_image()
    played = play(blocks_of(PAGE, read(PAGE)), [], machine.env, TOP,
                  within=machine.within, limit_s=4 * LIMIT_S)
    assert played > 5


# ---- docker run

def test_the_image_is_the_same_whenever_it_is_made(machine, build):
    assert "is up to date" in machine.make_server_image(build)


def test_nobody_without_a_token_is_served(machine):
    machine.serve(*PUBLISHED)
    assert fetch(machine, "/readyz") == "200"
    assert fetch(machine, "/mcp") == fetch(machine, "/metrics") == "401"
    assert fetch(machine, "/mcp", "Authorization: Bearer x") == "401"
    assert post(machine, token(machine), "list_sandboxes")[0] == 200


def test_a_loopback_name_with_the_ports_number_on_the_host_is_known(machine):
    machine.serve("-p", "127.0.0.1:8080:9090", "-e", "PORT=9090")
    good = f"Authorization: Bearer {token(machine)}"
    for host, status in (("localhost:8080", "200"), ("127.0.0.1:8080", "200"),
                         ("[::1]:8080", "200"), ("evil.test:8080", "403")):
        assert fetch(machine, "/", good, f"Host: {host}") == status


def test_roots_server_runs_its_parts_as_users_of_their_own(machine):
    machine.serve(*PUBLISHED)
    found = users_of(machine)
    assert found["mcp-sandboxd"] == [0]
    assert found["mcp-sandboxd-fr"] == [10101]
    assert set(found["mcp-sandboxd-wo"]) == {10102}
    assert "42" in run_shell(machine, token(machine), "echo $((6 * 7))")


def test_an_ordinary_user_serves_read_only_without_capabilities(machine):
    machine.serve(*PUBLISHED, *ORDINARY)
    assert {u for us in users_of(machine).values() for u in us} == {10001}
    assert "front and workers run as one user" in \
        machine.logs("mcp-sandboxd")
    assert "42" in run_shell(machine, token(machine), "echo $((6 * 7))")


def test_data_outlives_the_container(machine):
    machine.serve(*PUBLISHED)
    good = token(machine)
    run_shell(machine, good, "echo kept >f")
    machine.docker("rm", "-f", "mcp-sandboxd")
    machine.serve(*PUBLISHED)
    assert "kept" in run_shell(machine, good, "cat f")


def test_an_artifact_is_fetched_through_the_published_port(machine):
    machine.serve(*PUBLISHED)
    good = token(machine)
    run_shell(machine, good, "echo hi >/artifacts/x")
    assert fetch(machine, "/artifacts/a/latest/x",
                 f"Authorization: Bearer {good}") == "200"


def test_root_without_capabilities_is_told_what_to_do(machine):
    machine.serve("--cap-drop", "ALL", wait=False)
    wait_for(lambda: machine.state("mcp-sandboxd")["Status"] == "exited",
             LIMIT_S, "its end")
    assert machine.state("mcp-sandboxd")["ExitCode"] == 78
    said = machine.logs("mcp-sandboxd")
    assert "SETUID and SETGID" in said and "--user" in said


def test_a_socket_of_a_group_that_was_not_added_is_named(machine):
    machine.serve("--user", "10001", wait=False)
    wait_for(lambda: "no permission on the engine's socket" in
             machine.logs("mcp-sandboxd"), LIMIT_S, "the socket in the log")


def test_without_an_engine_it_is_unhealthy_and_says_why(machine):
    machine.docker("run", "-d", "--name", "mcp-sandboxd",
                   "--health-interval=1s", "--health-start-period=1s",
                   "--health-retries=2", SERVER)
    health = wait_for(
        lambda: [h for h in [machine.state("mcp-sandboxd")["Health"]]
                 if h["Status"] == "unhealthy"], LIMIT_S, "its health")[0]
    assert "no Docker engine" in health["Log"][-1]["Output"]


def test_docker_stop_lets_calls_end_and_then_it_ends_by_itself(machine):
    machine.serve(*PUBLISHED)
    good = token(machine)
    run_shell(machine, good, "true")
    waiting = machine.popen(*call_words(
        good, "run_sandbox", identifier="a",
        commands=[{"shell": "sleep 2; echo last"}]),
        stdout=subprocess.PIPE, text=True)
    wait_for(lambda: "1 running" in machine.docker(
        "exec", "mcp-sandboxd", "sandboxctl", "status"), LIMIT_S, "the run")
    began = time.monotonic()
    machine.docker("stop", "mcp-sandboxd")
    assert time.monotonic() - began < 10
    said = waiting.communicate(timeout=LIMIT_S)[0]
    assert "last" in said and said.endswith("200")
    assert machine.state("mcp-sandboxd")["ExitCode"] == 0
    assert machine.logs("mcp-sandboxd").rstrip().endswith("stopped")


def test_the_first_process_reaps_what_is_left_to_it(machine):
    """Here a server whose bridge is killed."""
    machine.serve(*PUBLISHED)
    before = programs_of(machine)
    other = machine.popen(
        "docker", "exec", "-i", "mcp-sandboxd", "mcp-sandboxd", "stdio",
        "DATA_DIR=/tmp/other", "STDIO_HTTP=false", stdin=subprocess.PIPE,
        stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
    with other:
        wait_for(lambda: len(programs_of(machine)) > 2 * len(before), LIMIT_S,
                 "the other server")
        bridge, = (pid for pid, _, comm in programs_of(machine)
                   if comm.startswith("mcp-sandboxd-st"))
        os.kill(int(bridge), signal.SIGKILL)
        wait_for(lambda: programs_of(machine) == before, LIMIT_S,
                 "the end of all of it")
        other.kill()


def test_other_commands_of_the_program_are_words_behind_the_image(machine):
    done = machine.run("docker", "run", "--rm", SERVER, "--version")
    assert done.stdout.startswith("mcp-sandboxd ")
    done = machine.run("docker", "run", "--rm", SERVER, "--check-config",
                       "PORT=x", check=False)
    assert done.returncode == 78 and "PORT" in done.stderr


# ---- stdin and stdout

def test_over_stdio_a_program_runs_while_http_is_served_too(machine, stdio):
    b = stdio("-p", "127.0.0.1:8080:8080")
    b.initialize()
    assert "hi" in b.run("a", "echo hi >/artifacts/x; cat /artifacts/x")
    assert fetch(machine, "/artifacts/a/latest/x") == "401"
    good = token(machine, b.name)
    assert fetch(machine, "/artifacts/a/latest/x",
                 f"Authorization: Bearer {good}") == "200"
    assert "again" in b.run("a", "echo again")
    assert b.end() == 0
    assert any(n.endswith("stopped") for n in b.log)


def test_two_clients_over_stdio_share_a_server_and_its_sandboxes(stdio):
    first = stdio()
    first.initialize()
    first.run("a", "echo shared >f")
    second = stdio()
    second.initialize()
    assert "shared" in second.run("a", "cat f")
    assert first.end() == 0
    assert "shared" in second.run("a", "cat f")
    assert second.end() == 0


# ---- Compose

@pytest.mark.parametrize("which", ["socket", "dind"])
def test_compose_serves(machine, which):
    if which == "dind":
        machine.make_sidecar_image()
    compose = ("docker", "compose", "-f",
               os.path.join(TOP, "deploy/compose", which, "compose.yaml"))
    inside = (*compose, "exec", "-T", "server", "sandboxctl")
    machine.run(*compose, "up", "-d")
    try:
        wait_for(lambda: machine.run(*inside, "health",
                                     check=False).returncode == 0,
                 2 * LIMIT_S, "the server's health")
        good = machine.run(*inside, "token", "add", "default").stdout.strip()
        assert "42" in run_shell(machine, good, "echo $((6 * 7))")
    finally:
        machine.run(*compose, "down", "--volumes")
