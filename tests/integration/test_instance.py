"""Nothing is destroyed on a doubt: whose sandboxes are whose, and when a start
is refused."""
import os
import pathlib
import re
import shutil
import subprocess

import pytest

from client import wait_for
from server import CARRIER

pytestmark = pytest.mark.own


def remove_database(server):
    for name in os.listdir(server.front_dir):
        if name.startswith("mcp-sandboxd.db"):
            os.unlink(os.path.join(server.front_dir, name))


def truncate_database(server):
    for end in ("-wal", "-shm"):
        if os.path.exists(server.database + end):
            os.unlink(server.database + end)
    os.truncate(server.database, 0)


def starts_not(server, *words):
    """And says why."""
    server.log.clear()
    server.start(wait=False)
    server.refuses(*words)


def purge(server, *args, **env):
    done = subprocess.run(
        [os.path.join(server.build, "mcp-sandboxd"), "purge", *args],
        env=server.environment() | env, stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True,
        cwd=server.dir, timeout=60)
    return done.returncode, done.stdout


def with_file(server):
    """A stopped server whose sandbox has a file."""
    server.client().run("keep", "echo precious > /workspace/file")
    server.stop()


def check_file(server):
    assert server.client().out("keep", "cat /workspace/file") == "precious\n"


def links(server):
    """Boxes that have a directory of this host, as all on one carrier have."""
    return [n for n in os.listdir(server.links_dir) if n[0] != "."]


def states(engine, server):
    return [c["State"] for c in engine.containers(server.instance)]


@pytest.mark.parametrize("lose", [remove_database, truncate_database])
def test_a_lost_database_stops_the_start_until_someone_decides(server, engine,
                                                               lose):
    with_file(server)
    lose(server)
    for _ in range(2):  # the second start meets the first one's database
        starts_not(server, "--adopt", "--forget", "put the database back",
                   "1 sandboxes", "mcp-sbx-keep-")
        assert states(engine, server) == ["running"]
    server.restart(args=["--adopt"])
    check_file(server)
    server.restart(args=[])  # it is settled: nobody is asked any more
    check_file(server)
    server.client().delete("keep")
    wait_for(lambda: states(engine, server) == [], 30, "the end")


def test_what_is_given_up_is_stopped_and_kept(server, engine):
    with_file(server)
    remove_database(server)
    server.restart(args=["--forget"])
    wait_for(lambda: states(engine, server) == ["exited"], 60, "the stop")
    kept = engine.containers(server.instance)[0]["Labels"]["mcp.sandbox"]
    assert (kept in links(server)) == (CARRIER == "unix")
    # Over a restart, and beside a new sandbox of the same name.
    server.restart(args=[])
    new = server.client().run("keep", "cat /workspace/file")
    assert new["commands"][0]["exit_code"] != 0
    assert sorted(states(engine, server)) == ["exited", "running"]
    server.restart(args=["UNKNOWN_KEEP_SECONDS=1"])
    wait_for(lambda: states(engine, server) == ["running"], 60, "the removal")
    wait_for(lambda: kept not in links(server), 60,
             "its link directory's end")


def test_servers_of_one_name_leave_each_other_alone(make_server, engine):
    one = make_server()
    client = one.client()
    client.run("keep", "echo precious > /workspace/file")
    two = make_server(env={"INSTANCE": one.instance})
    two.client().run("other", "true")
    # Whatever the second does at its start and in its first sweep.
    two.restart()
    two.wait_log("recovering 1 sandboxes")
    assert two.client().run("other", "true")["state"] == "completed"
    assert len(engine.containers(one.instance)) == 2
    assert client.out("keep", "cat /workspace/file") == "precious\n"
    ids = {c["Labels"]["mcp.instance_id"]
           for c in engine.containers(one.instance)}
    assert len(ids) == 2


def test_a_copy_of_a_data_dir_takes_nothing_over(make_server, engine):
    one = make_server()
    with_file(one)
    two = make_server()
    two.stop()
    shutil.rmtree(two.data)
    subprocess.run(["cp", "-a", one.data, two.data], check=True)
    starts_not(two, "is a copy of " + one.data, "--adopt", "--forget")
    assert states(engine, one) == ["running"]

    two.restart(args=["--forget"])
    two.wait_log("is lost")
    assert states(engine, one) == ["running"]
    assert "where no other server uses it: docker rm -f" in two.tail()
    two.stop()
    one.start()
    check_file(one)


def test_a_data_dir_that_was_renamed_goes_on(server, engine):
    with_file(server)
    os.rename(server.data, server.data + "-2")
    server.data += "-2"
    server.start()
    check_file(server)


def test_an_id_that_is_damaged_stops_the_start(server, engine):
    with_file(server)
    path = pathlib.Path(server.data, "instance")
    assert re.search("^id=[0-9a-f-]{32,36}$", path.read_text(), re.M)
    path.write_text("id=../../x\n")
    starts_not(server, "instance is damaged")
    assert states(engine, server) == ["running"]


def test_purge_removes_what_this_instance_left(make_server, engine):
    other = make_server()
    other.client().run("other", "true")
    server = make_server(env={"INSTANCE": other.instance})
    client = server.client()
    client.run("a", "true")
    client.run("b", "true")
    status, said = purge(server, "--yes")
    assert status == 75 and "in use" in said
    server.stop()
    status, said = purge(server)
    assert status == 1 and "remove these 2 sandboxes" in said
    assert len(engine.containers(other.instance)) == 3
    status, said = purge(server, "--yes")
    assert status == 0 and "2 sandboxes removed" in said
    assert len(engine.containers(other.instance)) == 1
    assert links(server) == []
    status, said = purge(server, "--yes")
    assert status == 0 and "0 sandboxes removed" in said
    server.start()  # and goes on, without them
    assert server.client().out("a", "echo new") == "new\n"


def test_purge_where_no_server_ran_says_so(server):
    status, said = purge(server, "--yes", DATA_DIR=server.dir)
    assert status == 78 and "no server ever ran" in said
