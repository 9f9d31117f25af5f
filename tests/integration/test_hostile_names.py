"""Names of receivers whose name servers never answer."""
import contextlib
import os
import random
import shutil
import socket
import subprocess
import tempfile
import threading

import pytest

from client import wait_for
from server import passed_on, write
from tenants import Tenant
from test_webhooks import ON, add, deliveries, numbers, wait_taken

AWAY = "its host cannot be reached, or may not be (WEBHOOK_ALLOW)"
A, ADDRESS = 1, bytes((127, 0, 0, 1))


class NameServer:
    """Says that names which begin with "well" are 127.0.0.1, and nothing of
    others.  Programs below .build ask it, and wait for long."""

    def __init__(self, build):
        self.asked, self.lock = [], threading.Lock()
        self.socket, address = self.bind()
        self.build = tempfile.mkdtemp(prefix="mcp-sandboxd-names-")
        os.chmod(self.build, 0o755)
        self.config = os.path.join(self.build, "resolv.conf")
        write(self.config, f"nameserver {address}\n"
              "options timeout:30 attempts:5\n")
        self.wrap(build)
        self.thread = threading.Thread(target=self.serve, daemon=True)
        self.thread.start()

    @staticmethod
    def bind():
        s = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
        while True:
            address = f"127.{random.randrange(16, 255)}." \
                      f"{random.randrange(256)}.{random.randrange(1, 255)}"
            with contextlib.suppress(OSError):
                s.bind((address, 53))
                return s, address

    def wrap(self, build):
        for name in ("mcp-sandboxd", "mcp-sandboxd-keys"):
            program = os.path.join(self.build, name)
            write(program, "#!/bin/sh\n"
                  "exec unshare -m --propagation private sh -ec '"
                  f"mount --bind {self.config} /etc/resolv.conf\n"
                  f'exec {build}/{name} "$@"\' sh "$@"\n', 0o755)
        os.symlink(os.path.join(build, "sandboxctl"),
                   os.path.join(self.build, "sandboxctl"))

    def serve(self):
        with contextlib.suppress(OSError):
            while True:
                query, peer = self.socket.recvfrom(512)
                if not query:  # close
                    return
                self.answer(query, peer)

    def answer(self, query, peer):
        at, labels = 12, []
        while query[at]:
            labels.append(query[at + 1:at + 1 + query[at]].decode())
            at += 1 + query[at]
        kind = int.from_bytes(query[at + 1:at + 3], "big")
        with self.lock:
            self.asked.append((".".join(labels), kind))
        if not labels[0].startswith("well"):
            return
        found = b"" if kind != A else \
            b"\xc0\x0c\0\1\0\1\0\0\0\x3c\0\4" + ADDRESS
        self.socket.sendto(
            query[:2] + b"\x81\x80\0\1" + (b"\0\1" if found else b"\0\0")
            + bytes(4) + query[12:at + 5] + found, peer)

    def names(self):
        with self.lock:
            return [name for name, _ in self.asked]

    def close(self):
        # Closing alone does not wake who receives.
        with contextlib.suppress(OSError):
            self.socket.shutdown(socket.SHUT_RDWR)
        self.socket.close()
        self.thread.join()
        shutil.rmtree(self.build)


@pytest.fixture
def names(build):
    if os.geteuid() != 0:
        pytest.skip("a name server of its own needs root")
    made = NameServer(build)
    yield made
    made.close()


def test_names_that_nobody_answers_for_delay_only_their_tenant(
        names, make_server, receiver):
    server = make_server(build=names.build, env=ON)
    mine, theirs = Tenant(server, "acme").client, Tenant(server, "beta").client
    courier = server.pids("courier")
    hooks = [add(theirs, f"http://sleepy-{i}.example/") for i in range(8)]
    well = add(mine, f"http://well.example:{receiver.port}/hook")
    theirs.run("box", "true")
    wait_for(lambda: [n for n in names.names() if n.startswith("sleepy")],
             60, "a question")
    mine.run("box-0", "true")
    assert numbers(wait_taken(receiver, 1)) == ["box-0"]
    for hook in hooks:
        wait_for(lambda h=hook: deliveries(theirs, h)["attempts"], 120,
                 "an attempt")
        assert deliveries(theirs, hook)["last_error"] == AWAY
    mine.run("box-1", "true")
    assert numbers(wait_taken(receiver, 2)) == ["box-0", "box-1"]
    assert deliveries(mine, well)["attempts"] == 0
    assert server.pids("courier") == courier
    # Those that hang are not asked for by ever more threads.
    assert len(os.listdir(f"/proc/{courier[0]}/task")) <= 8


def test_a_name_is_looked_up_by_us_alone_and_is_known_for_a_while(
        names, make_server, receiver):
    server = make_server(build=names.build, env=ON)
    client = server.client()
    add(client, f"http://well.example:{receiver.port}/hook")
    for i in range(3):
        client.run(f"box-{i}", "true")
        wait_taken(receiver, i + 1)
    # Once for each family.
    assert names.names().count("well.example") == 2


def test_an_issuers_name_that_nobody_answers_for_is_given_up(names):
    done = subprocess.run(
        [os.path.join(names.build, "mcp-sandboxd-keys"), "check"],
        env=passed_on(OAUTH_ISSUER="https://sleepy.example",
                      OAUTH_AUDIENCE="https://mcp.example/"),
        capture_output=True, text=True, timeout=90, check=False)
    assert "sleepy.example" in done.stderr, done
    assert "Sanitizer" not in done.stderr
    assert "sleepy.example" in names.names()
