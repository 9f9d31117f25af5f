"""delete_sandbox asks whoever sits before the client when runs would end."""
import json

import pytest

from client import wait_for
from test_resume import Stream

MODERN = "2026-07-28"
YES = {"action": "accept", "content": {"delete": True}}
NO = [{"action": "decline"}, {"action": "cancel"},
      {"action": "accept", "content": {"delete": False}},
      {"action": "accept"}]


def delete(client, sandbox, revision, answer, can=True):
    """The result of the tool, and the question that was asked, or None."""
    capabilities = {"elicitation": {}} if can else {}
    params = {"name": "delete_sandbox", "arguments": {"identifier": sandbox}}
    if revision == MODERN:
        return delete_modern(client, params, capabilities, answer)
    client.session, client.revision = None, revision
    client.rpc("initialize", {
        "protocolVersion": revision, "capabilities": capabilities,
        "clientInfo": {"name": "test", "version": "1"}})
    stream = Stream(client, "POST", {
        "jsonrpc": "2.0", "id": 99, "method": "tools/call", "params": params})
    if stream.answer.headers["Content-Type"] == "application/json":
        return json.loads(stream.answer.read())["result"], None
    asked = None
    for message in stream.messages():
        if message.get("id") == 99:
            return message["result"], asked
        assert message["method"] == "elicitation/create" and asked is None
        asked = message["params"]
        assert client.post({"jsonrpc": "2.0", "id": message["id"],
                            "result": answer})[0] == 202
    raise AssertionError("the stream ended without the answer")


def delete_modern(client, params, capabilities, answer):
    params["_meta"] = {
        "io.modelcontextprotocol/protocolVersion": MODERN,
        "io.modelcontextprotocol/clientCapabilities": capabilities}
    client.session = None
    head = {"MCP-Protocol-Version": MODERN, "Mcp-Method": "tools/call",
            "Mcp-Name": "delete_sandbox"}
    asked = None
    for number in (1, 2):
        status, _, body = client.post(
            {"jsonrpc": "2.0", "id": number, "method": "tools/call",
             "params": params}, head)
        assert status == 200, body
        result = json.loads(body)["result"]
        if result["resultType"] == "complete":
            return result, asked
        (key, question), = result["inputRequests"].items()
        assert question["method"] == "elicitation/create" and asked is None
        asked = question["params"]
        params["inputResponses"] = {key: answer}
        if "requestState" in result:
            params["requestState"] = result["requestState"]
    raise AssertionError("it was asked twice")


def is_there(server, sandbox):
    boxes = server.client().call("list_sandboxes")["sandboxes"]
    return sandbox in [b["identifier"] for b in boxes]


@pytest.fixture
def busy(client, sandbox):
    """A sandbox in which a run goes on."""
    run = client.start(sandbox, "sleep 1000")["run_id"]
    client.wait_state(run)
    return sandbox


@pytest.mark.parametrize("revision", ["2025-06-18", "2025-11-25", MODERN])
def test_who_agrees_has_it_deleted(server, busy, revision):
    result, asked = delete(server.client(), busy, revision, YES)
    assert busy in asked["message"] and "1 run" in asked["message"]
    assert asked["requestedSchema"]["required"] == ["delete"]
    assert not result.get("isError")
    wait_for(lambda: not is_there(server, busy), 60, "the sandbox to be gone")


@pytest.mark.parametrize("answer", NO)
@pytest.mark.parametrize("revision", ["2025-11-25", MODERN])
def test_who_does_not_agree_keeps_it(server, busy, revision, answer):
    result, asked = delete(server.client(), busy, revision, answer)
    assert asked is not None and result["isError"]
    assert "did not agree" in result["content"][0]["text"]
    assert is_there(server, busy)


@pytest.mark.parametrize("revision", ["2025-11-25", MODERN])
def test_who_cannot_be_asked_is_not(server, busy, revision):
    result, asked = delete(server.client(), busy, revision, YES, can=False)
    assert asked is None and not result.get("isError")
    assert not is_there(server, busy)


def test_nobody_is_asked_where_nothing_ends(server, client, sandbox):
    client.run(sandbox, "true")
    result, asked = delete(server.client(), sandbox, MODERN, YES)
    assert asked is None and not result.get("isError")
    assert not is_there(server, sandbox)


@pytest.mark.own(CONFIRM_DELETE="false")
def test_nobody_is_asked_where_the_operator_does_not_want_it(
        server, busy):
    result, asked = delete(server.client(), busy, MODERN, YES)
    assert asked is None and not result.get("isError")
    assert not is_there(server, busy)
