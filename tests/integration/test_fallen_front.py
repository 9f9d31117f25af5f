"""A front that was taken over: what its user may do, and what it may not.

tests/unit/common/helpers/fallen_front.c takes the front's place beside the
real supervisor, real workers and the real engine; the attack that gave root
on the host by exchanging links/ is among what it tries.
"""
import ctypes
import filecmp
import json
import os
import pathlib
import pwd
import shutil
import subprocess
import uuid

import pytest

from client import wait_for
from server import Server

pytestmark = [
    pytest.mark.skipif(
        os.geteuid() != 0, reason="users of their own need root"),
    pytest.mark.unix("directories in links/ are what it exchanges")]

HELPER = "tests/unit/common/helpers/fallen_front"
# Two accounts that every Debian has.
FRONT, WORKER = "games", "daemon"
# What any user may do; Landlock keeps the front from it.
BY_LANDLOCK_ALONE = ("link_of_others", "read_of_others", "passwd", "tmp",
                     "shared_memory")


def uid(name):
    return pwd.getpwnam(name).pw_uid


@pytest.fixture
def ground(build, engine, request):
    """A server with a sandbox, whose front then falls; and its facts."""
    front, worker = getattr(request, "param", (FRONT, WORKER))
    helper = os.path.join(build, HELPER)
    assert os.path.exists(helper), f"{helper} is not built"
    server = Server(build, env={"RUN_AS_FRONT": front,
                                "RUN_AS_WORKER": worker}, wait=None)
    server.bin = os.path.join(server.dir, "bin")
    os.mkdir(server.bin)
    for name in ("mcp-sandboxd", "mcp-sandboxd-front", "mcp-sandboxd-worker",
                 "sandbox-agent"):
        shutil.copy(os.path.join(build, name), server.bin)
    server.build = server.bin
    foreign = foreign_container(engine)
    try:
        server.start()
        server.client().run("lives-on", "true")
        server.stop()
        shutil.copy(helper, os.path.join(server.bin, "mcp-sandboxd-front"))
        server.log.clear()
        server.start(wait=False)
        wait_for(lambda: any(n.endswith("] ready") for n in server.log), 30,
                 "the crew")
        yield server, facts_of(server, engine, foreign), foreign
    finally:
        server.destroy(engine)
        engine.request("DELETE", f"/containers/{foreign['id']}?force=1")


def foreign_container(engine):
    """Of another instance; labelled in all else as one of ours."""
    name, box = f"mcp-foreign-{os.getpid()}", str(uuid.uuid4())
    status, data = engine.request(
        "POST", f"/containers/create?name={name}", json.dumps({
            "Image": os.environ["SANDBOX_IMAGE"], "Cmd": ["true"],
            "Labels": {"mcp.instance": f"other-{os.getpid()}",
                       "mcp.role": "sandbox", "mcp.sandbox": box,
                       "mcp.created_at_unix_ms": "1"}}),
        {"Content-Type": "application/json"})
    assert status == 201, data
    return {"id": json.loads(data)["Id"], "name": name, "uuid": box}


def facts_of(server, engine, foreign):
    secret = os.path.join(server.dir, "secret")
    readable = os.path.join(server.dir, "readable")
    for path, mode in ((secret, 0o600), (readable, 0o644)):
        pathlib.Path(path).write_text("of root\n")
        os.chmod(path, mode)
    box = next(n for n in os.listdir(server.links_dir) if n[0] != ".")
    return {
        "parent": server.dir, "data": server.data, "front": server.front_dir,
        "links": server.links_dir,
        "box": os.path.join(server.links_dir, box),
        "uuid": str(uuid.uuid4()), "name": f"mcp-fallen-{os.getpid()}",
        "report": os.path.join(server.front_dir, "report"),
        "engine": engine.path, "engine_gid": os.stat(engine.path).st_gid,
        "secret": secret, "readable": readable,
        "worker": server.pids("worker")[0], "worker_uid": uid(WORKER),
        "worker_program": os.path.join(server.bin, "mcp-sandboxd-worker"),
        "agent_program": os.path.join(server.bin, "sandbox-agent"),
        "supervisor": server.proc.pid, "tcp": server.find_port(),
        "foreign": foreign["name"], "foreign_id": foreign["id"],
        "foreign_uuid": foreign["uuid"]}


def write_facts(path, facts):
    new = pathlib.Path(path + ".new")
    new.write_text("".join(f"{k} {v}\n" for k, v in facts.items()))
    new.chmod(0o644)
    new.rename(path)


def read(path):
    path = pathlib.Path(path)
    return path.read_text().splitlines() if path.exists() else []


def has_landlock():
    """Version 2 or later: landlock_create_ruleset(NULL, 0, VERSION)."""
    return ctypes.CDLL(None).syscall(444, None, 0, 1) >= 2


def check_held(lines, least):
    broke = [n for n in lines if n.startswith("BROKE")]
    if not has_landlock():
        broke = [n for n in broke if n[6:] not in BY_LANDLOCK_ALONE]
        least -= len(BY_LANDLOCK_ALONE)
    assert not broke, broke
    assert len([n for n in lines if n.startswith("held")]) >= least, lines


def test_its_user_alone_gets_nothing(ground):
    """Without any filter: users, modes and owners of directories."""
    server, facts, _ = ground
    path = os.path.join(server.dir, "facts")
    report = os.path.join(server.front_dir, "bare")
    write_facts(path, facts)
    subprocess.run(
        [os.path.join(server.bin, "mcp-sandboxd-front"), "--bare", path,
         report], user=FRONT, group=FRONT, extra_groups=[], check=True,
        timeout=60, env={}, cwd="/")
    check_held(read(report), 43)
    assert set(os.listdir(server.data)) == {
        "admin.sock", "front", "instance", "links", "secrets.key"}


@pytest.mark.parametrize("ground", [(FRONT, WORKER), ("", "")], indirect=True,
                         ids=["two users", "one user"])
def test_in_its_place_it_gets_no_more_than_a_sandbox(ground, engine):
    server, facts, foreign = ground
    if server.extra["RUN_AS_FRONT"] == "" and not has_landlock():
        pytest.skip("as one user nothing but Landlock would hold it")
    report = facts["report"]
    write_facts(os.path.join(server.front_dir, "facts"), facts)
    for answer in ("ready 1 ", "lost 2 ", "removed 3 "):
        wait_for(lambda a=answer: any(
            n.startswith(a) for n in read(report)), 60, answer)
    lines = read(report)
    check_held(lines, 62)
    assert "tried 0 " in lines

    # The sandbox that it may have is one as all are.
    host = engine.inspect(facts["name"])
    box = os.path.join(server.links_dir, facts["uuid"])
    assert host["HostConfig"]["Mounts"] == [
        {"Type": "bind", "Source": box, "Target": "/.mcp-sandbox",
         "ReadOnly": True}]
    assert not host["HostConfig"]["Privileged"]
    assert os.lstat(box).st_uid == os.stat(server.links_dir).st_uid
    assert filecmp.cmp(os.path.join(box, "agent"), facts["agent_program"],
                       shallow=False)

    # What is another instance's it can neither use nor remove.
    assert any(n.startswith("lost 2") for n in lines), lines
    status, _ = engine.request("GET", f"/containers/{foreign['id']}/json")
    assert status == 200

    # To execute anything is its end.
    pathlib.Path(server.front_dir, "exec").touch()
    server.wait_log("front died: signal 31")
    assert not any(n.startswith("BROKE") for n in read(report))
