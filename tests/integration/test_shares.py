"""Whose the processors are when all want them."""
import json

from client import wait_for
from test_tenants import Ctl


def shares(engine, container):
    _, body = engine.request("GET", f"/containers/{container}/json")
    return json.loads(body)["HostConfig"]["CpuShares"]


def test_a_tenants_weight_is_divided_among_its_sandboxes(build, engine):
    from server import Server
    server = Server(build)
    try:
        ctl = Ctl(server)
        made = {}
        for name, sandboxes in (("a", 4), ("b", 1)):
            ctl("tenant", "add", name)
            client = server.client(token=ctl.token(name))
            made[name] = [
                client.run(f"box-{i}", "true")["sandbox_container_id"]
                for i in range(sandboxes)]

        def are(name, each):
            wait_for(lambda: all(shares(engine, c) == each
                                 for c in made[name]), 60,
                     f"{each} shares of {name}'s sandboxes")

        are("a", 64)
        are("b", 256)
        ctl("tenant", "set", "a", "quota.weight=400")
        are("a", 256)
        server.client(token=ctl.token("a")).call(
            "delete_sandbox", identifier="box-3")
        server.client(token=ctl.token("a")).call(
            "delete_sandbox", identifier="box-2")
        made["a"] = made["a"][:2]
        are("a", 512)
    finally:
        server.destroy(engine)
