"""The disk and the database below a running server: full, gone, damaged."""
import os

from client import wait_for


def database(server, suffix=""):
    return os.path.join(server.dir, "data", "mcp-sandboxd.db" + suffix)


def test_a_database_removed_below_the_server_stops_it(make_server):
    server = make_server()
    client = server.client()
    client.run("a", "true")
    os.unlink(database(server))
    status, _, body = server.get("/readyz")
    assert status in (0, 200, 503), body
    assert wait_for(lambda: server.proc.poll(), 60, "the server's end") == 78
    assert "was removed below the running server" in server.tail()
    assert "put a backup" in server.tail()


def test_a_damaged_database_stops_the_start_with_what_to_do(make_server):
    server = make_server()
    server.client().run("a", "true")
    server.stop()
    with open(database(server), "r+b") as f:
        f.seek(4096)
        f.write(b"\x5a" * 40 * 4096)
    server.start(wait=False)
    assert wait_for(lambda: server.proc.poll(), 60, "the server's end") == 78
    assert "is damaged" in server.tail()
    assert "put a backup in its place" in server.tail()
    assert server.tail().count("is damaged") < 4, server.tail()
