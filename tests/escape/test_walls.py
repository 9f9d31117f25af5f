"""The short form of tests/escape/run: nothing is open but the residuals that
docs/security.md explains."""
import os

import walls

TOP = os.path.dirname(os.path.dirname(walls.HERE))


def test_from_inside_nothing_is_open(client, user):
    name = f"walls-{user}"
    probes = walls.inside(client, name, user)
    assert len(probes) >= 320
    assert walls.wrong(probes) == []
    # They also tried to end its agent.
    final = client.run(name, "echo still here")
    assert final["commands"][0]["stdout"] == "still here\n"


def test_two_sandboxes_do_not_meet(client, server, user):
    probes = walls.across(client, server.port, f"{user}-1", f"{user}-2", user,
                          os.urandom(8).hex())
    assert walls.wrong(probes) == []


def test_artifacts_are_files_of_the_sandbox(client, server, user):
    assert walls.wrong(walls.artifacts(client, server, user, user)) == []


def test_every_residual_has_its_explanation():
    with open(os.path.join(TOP, "docs/security.md"), encoding="utf-8") as f:
        text = f.read()
    for _, name in walls.RESIDUALS.values():
        assert f"`{name}`" in text, name
