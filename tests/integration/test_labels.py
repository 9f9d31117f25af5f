"""Labels of a container that operators' scripts look for, as the engine shows
them."""
import re
import time

import pytest


@pytest.fixture(name="labels")
def labels_fixture(server, engine):
    """labels(identifier) - of its container"""
    def find(identifier):
        found, = [c["Labels"] for c in engine.containers(server.instance)
                  if c["Labels"]["mcp.identifier"] == identifier]
        return found

    return find


def test_a_sandbox_bears_what_scripts_look_for(client, sandbox, labels):
    before = int(time.time() * 1000)
    client.out(sandbox, "true", ttl_seconds=600)
    image = client.get(f"/api/v1/sandboxes/{sandbox}")["image"]
    after = int(time.time() * 1000)
    found = labels(sandbox)
    assert found["mcp.role"] == "sandbox"
    assert found["mcp.identifier"] == sandbox
    assert found["mcp.image"] == image
    assert re.fullmatch("[0-9a-f]{16}", found["mcp.policy_fingerprint"])
    created = int(found["mcp.created_at_unix_ms"])
    assert before <= created <= after
    assert int(found["mcp.expires_at_unix_ms"]) == created + 600 * 1000


def test_a_later_ttl_is_not_in_the_labels(client, sandbox, labels):
    client.out(sandbox, "true", ttl_seconds=600)
    before = labels(sandbox)
    client.out(sandbox, "true", ttl_seconds=1200)
    assert labels(sandbox) == before


def test_sandboxes_of_one_policy_have_one_fingerprint(client, sandbox, labels):
    other = sandbox + "-2"
    client.out(sandbox, "true")
    client.out(other, "true")
    assert labels(sandbox)["mcp.policy_fingerprint"] == \
        labels(other)["mcp.policy_fingerprint"]
    client.delete(other)


@pytest.mark.parametrize("identifier", ["a" * 36, "_-_", "A-b_9"])
def test_an_identifier_is_a_label_as_it_is(client, labels, identifier):
    client.out(identifier, "true")
    assert labels(identifier)["mcp.identifier"] == identifier
    client.delete(identifier)


@pytest.mark.parametrize("identifier", [
    "a" * 37, 'x","mcp.role":"y', "a\nb", "a=b,c", "\u00e9"])
def test_what_would_be_no_word_of_a_label_is_refused_or_shown_whole(
        server, client, engine, identifier):
    result = client.tool("initialize_sandbox", identifier=identifier)
    boxes = [c["Labels"] for c in engine.containers(server.instance)]
    assert all(b["mcp.role"] == "sandbox" for b in boxes)
    found = [b for b in boxes if b["mcp.identifier"] == identifier]
    assert bool(result.get("isError")) != bool(found)
