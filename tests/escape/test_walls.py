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


def test_two_tenants_do_not_meet(tenants, user):
    """All walls of a sandbox, and another tenant's beside it."""
    server, (a, b) = tenants
    word = os.urandom(8).hex()
    probes = walls.across(b, server.port, "same", "same", user, word, seeker=a)
    probes += walls.inside(a, "same", user)
    assert len(probes) >= 340
    assert walls.wrong(probes) == []
    # A writes where B does, and both have their own.
    a.run("same", f"echo a > /workspace/{word}", as_user=user)
    b.run("same", f"echo b > /workspace/{word}", as_user=user)
    for client, said in ((a, "a\n"), (b, "b\n")):
        final = client.run("same", f"cat /workspace/{word}", as_user=user)
        assert final["commands"][0]["stdout"] == said


def test_artifacts_are_files_of_the_sandbox(client, server, user):
    assert walls.wrong(walls.artifacts(client, server, user, user)) == []


def test_every_residual_has_its_explanation():
    with open(os.path.join(TOP, "docs/security.md"), encoding="utf-8") as f:
        text = f.read()
    for _, name in walls.RESIDUALS.values():
        assert f"`{name}`" in text, name
