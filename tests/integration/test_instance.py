"""Nothing is destroyed on a doubt: whose sandboxes are whose, and when a start
is refused."""
import os
import shutil
import subprocess
import uuid

import pytest

from client import wait_for


def remove_database(server):
    for name in os.listdir(server.front_dir):
        if name.startswith("mcp-sandboxd.db"):
            os.unlink(os.path.join(server.front_dir, name))


def truncate_database(server):
    for end in ("-wal", "-shm"):
        if os.path.exists(server.database + end):
            os.unlink(server.database + end)
    os.truncate(server.database, 0)


def refuses(server, *words):
    """It does not start, with status 78, and says why once."""
    server.log.clear()
    server.start(wait=False)
    assert server.proc.wait(60) == 78
    try:
        wait_for(lambda: all(w in server.tail() for w in words), 10,
                 f"{words} in the log")
    except AssertionError as e:
        raise AssertionError(f"{e}:\n{server.tail()}") from e


def purge(server, *args):
    return subprocess.run(
        [os.path.join(server.build, "mcp-sandboxd"), "purge", *args],
        env=server.environment(), stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True,
        cwd=server.dir, timeout=60)


def with_file(server, identifier="keep"):
    """A stopped server whose sandbox has a file."""
    client = server.client()
    client.run(identifier, "echo precious > /workspace/file")
    client.close()
    server.stop()


def states(engine, server):
    return [c["State"] for c in engine.containers(server.instance)]


@pytest.mark.parametrize("lose", [remove_database, truncate_database])
def test_a_lost_database_stops_the_start_until_someone_decides(
        make_server, engine, lose):
    server = make_server()
    with_file(server)
    lose(server)
    for _ in range(2):  # the second start meets the first one's database
        refuses(server, "--adopt", "--forget", "put the database back",
                "1 sandboxes", "mcp-sbx-keep-")
        assert states(engine, server) == ["running"]

    server.args = ["--adopt"]
    server.start()
    client = server.client()
    again = client.run("keep", "cat /workspace/file")
    assert again["commands"][0]["stdout"] == "precious\n"
    server.stop()

    server.args = []  # it is settled: nobody is asked any more
    server.start()
    client = server.client()
    again = client.run("keep", "cat /workspace/file")
    assert again["commands"][0]["stdout"] == "precious\n"
    client.call("delete_sandbox", identifier="keep")
    wait_for(lambda: states(engine, server) == [], 30, "the end")


def test_what_is_given_up_is_stopped_and_kept(make_server, engine):
    server = make_server()
    with_file(server)
    remove_database(server)
    server.args = ["--forget"]
    server.start()
    wait_for(lambda: states(engine, server) == ["exited"], 60, "the stop")
    kept = engine.containers(server.instance)[0]
    links = server.links_dir
    assert os.path.isdir(os.path.join(links, kept["Labels"]["mcp.sandbox"]))
    # Over a restart, and beside a new sandbox of the same name.
    server.stop()
    server.args = []
    server.start()
    client = server.client()
    new = client.run("keep", "cat /workspace/file")
    assert new["commands"][0]["exit_code"] != 0
    assert sorted(states(engine, server)) == ["exited", "running"]
    server.stop()

    server.args = ["UNKNOWN_KEEP_SECONDS=1"]
    server.start()
    wait_for(lambda: states(engine, server) == ["running"], 60,
             "the removal")
    wait_for(lambda: os.listdir(links).count(
        kept["Labels"]["mcp.sandbox"]) == 0, 60, "its link directory's end")


def test_servers_of_one_name_leave_each_other_alone(make_server, engine):
    one = make_server()
    client = one.client()
    client.run("keep", "echo precious > /workspace/file")
    two = make_server(env={"INSTANCE": one.instance})
    two.client().run("other", "true")
    # Whatever the second does at its start and in its first sweep.
    two.stop()
    two.start()
    other = two.client()
    wait_for(lambda: "recovering 1 sandboxes" in two.tail(), 30, "recovery")
    assert other.run("other", "true")["state"] == "completed"
    assert len(engine.containers(one.instance)) == 2
    again = client.run("keep", "cat /workspace/file")
    assert again["commands"][0]["stdout"] == "precious\n"
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
    refuses(two, "is a copy of " + one.data, "--adopt", "--forget")
    assert states(engine, one) == ["running"]

    two.args = ["--forget"]
    two.start()
    wait_for(lambda: "is lost" in two.tail(), 60, "what it knew is lost")
    assert states(engine, one) == ["running"]
    assert "where no other server uses it: docker rm -f" in two.tail()
    two.stop()
    one.start()
    again = one.client().run("keep", "cat /workspace/file")
    assert again["commands"][0]["stdout"] == "precious\n"


def test_a_data_dir_that_was_renamed_goes_on(make_server, engine):
    server = make_server()
    with_file(server)
    os.rename(server.data, server.data + "-2")
    server.data += "-2"
    server.start()
    again = server.client().run("keep", "cat /workspace/file")
    assert again["commands"][0]["stdout"] == "precious\n"


def test_an_id_that_is_damaged_stops_the_start(make_server, engine):
    server = make_server()
    with_file(server)
    path = os.path.join(server.data, "instance")
    assert uuid.UUID([line[3:] for line in open(path).read().split("\n")
                      if line.startswith("id=")][0])
    with open(path, "w", encoding="ascii") as f:
        f.write("id=../../x\n")
    refuses(server, "instance is damaged")
    assert states(engine, server) == ["running"]


def test_purge_removes_what_this_instance_left(make_server, engine):
    other = make_server()
    other.client().run("other", "true")
    server = make_server(env={"INSTANCE": other.instance})
    client = server.client()
    client.run("a", "true")
    client.run("b", "true")
    busy = purge(server, "--yes")
    assert busy.returncode == 75 and "in use" in busy.stdout
    server.stop()
    asked = purge(server)
    assert asked.returncode == 1 and "remove these 2 sandboxes" in asked.stdout
    assert len(engine.containers(other.instance)) == 3
    done = purge(server, "--yes")
    assert done.returncode == 0, done.stdout
    assert "2 sandboxes removed" in done.stdout
    assert len(engine.containers(other.instance)) == 1
    assert [n for n in os.listdir(server.links_dir) if n[0] != "."] == []
    again = purge(server, "--yes")
    assert again.returncode == 0 and "0 sandboxes removed" in again.stdout
    server.start()  # and goes on, without them
    assert server.client().run("a", "echo new")["commands"][0]["stdout"] == \
        "new\n"


def test_purge_where_no_server_ran_says_so(server):
    done = subprocess.run(
        [os.path.join(server.build, "mcp-sandboxd"), "purge", "--yes",
         "DATA_DIR=" + server.dir], env=server.environment(),
        stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True)
    assert done.returncode == 78 and "no server ever ran" in done.stdout
