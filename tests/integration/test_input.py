"""Bad input: a clear answer that names what is wrong, and nothing happens."""
import json

import pytest

from client import McpError


def test_a_body_that_is_not_json(client):
    client.initialize()
    status, _, data = client.post(b"not json")
    assert status == 400
    assert json.loads(data)["error"]["code"] == -32700


def test_a_body_that_is_too_large(server):
    c = server.client()
    c.initialize()
    status, _, data = c.post(b'"' + b"x" * (3 << 20) + b'"')
    assert status == 413
    c.close()
    assert server.get("/healthz")[0] == 200


def test_a_body_that_is_too_deep(client):
    client.initialize()
    status, _, data = client.post(b"[" * 100000)
    assert status == 400
    assert json.loads(data)["error"]["code"] in (-32700, -32600)


@pytest.mark.parametrize("arguments, words", [
    ({}, ["identifier"]),
    ({"identifier": "a"}, ["commands"]),
    ({"identifier": "a", "commands": []}, ["commands"]),
    ({"identifier": 5, "commands": [{"shell": "x"}]}, ["identifier"]),
    ({"identifier": "a", "commands": [{}]},
     ["command 0", "shell or argv"]),
    ({"identifier": "a", "commands": [{"shell": "x", "cwd": "rel"}]},
     ["commands[0].cwd", "cwd must be absolute"]),
    ({"identifier": "a", "commands": [{"shell": "x", "timeout_ms": "1"}]},
     ["commands[0].timeout_ms"]),
    ({"identifier": "a", "commands": [{"shell": "x",
                                       "timeout_ms": 86400001}]},
     ["timeout_ms"]),
    ({"identifier": "a", "commands": [{"shell": "x"}], "extra": 1},
     ["extra"]),
    ({"identifier": "a", "commands": [{"shell": "x"}],
      "options": {"as_user": "admin"}}, ["options.as_user"]),
    ({"identifier": "a", "commands": [{"shell": "x"}],
      "options": {"nope": True}}, ["nope"]),
    ({"identifier": "a", "commands": [{"shell": "x", "env": ["novalue"]}]},
     ["commands[0].env"]),
    ({"identifier": "a", "commands": [{"shell": "x"}],
      "options": {"default_cwd": "rel"}}, ["cwd must be absolute"]),
])
def test_wrong_arguments_are_named(client, arguments, words):
    text = client.fail("run_sandbox", **arguments)
    for word in words:
        assert word in text


@pytest.mark.parametrize("identifier", ["../x", "a b", "a.b", "x" * 37])
@pytest.mark.parametrize("tool", ["run_sandbox", "delete_sandbox",
                                  "restart_sandbox", "execute_code"])
def test_bad_identifiers_are_refused_everywhere(client, tool, identifier):
    arguments = {"identifier": identifier}
    if tool == "run_sandbox":
        arguments["commands"] = [{"shell": "true"}]
    if tool == "execute_code":
        arguments["code"] = "1"
    assert "identifier" in client.fail(tool, **arguments)


@pytest.mark.parametrize("tool, more", [
    ("run_sandbox", {"commands": [{"shell": "true"}]}),
    ("delete_sandbox", {}), ("restart_sandbox", {})])
def test_an_empty_identifier_is_refused_where_one_is_needed(
        client, tool, more):
    assert "identifier" in client.fail(tool, identifier="", **more)


def test_empty_arguments_that_are_optional_are_not_given(client, sandbox):
    """Some clients fill in every argument."""
    run = client.call("run_sandbox", identifier=sandbox, commands=[
        {"shell": "pwd; echo $USER", "argv": [], "cwd": "", "timeout_ms": 0}],
        options={"ttl_seconds": 0, "default_cwd": "", "as_user": "",
                 "await_completion": True, "await_timeout_ms": 0})
    assert run["final"]["commands"][0]["exit_code"] == 0
    assert run["final"]["commands"][0]["stdout"].startswith("/workspace\n")
    client.call("initialize_sandbox", image="", identifier=sandbox)
    assert client.call("execute_code", code="print(6 * 7)", language="",
                       identifier=sandbox)["output"] == "42\n"
    runs = client.call(
        "list_runs", identifier=sandbox, sandbox="", principal="", tool="",
        language="", state="", end_reason="", since="", until="",
        min_duration_ms=0, max_duration_ms=0, q="", artifact="", sort="",
        limit=0, cursor="")["runs"]
    assert len(runs) == 2
    boxes = client.call("list_sandboxes", identifier=sandbox, state="",
                        limit=0, cursor="")["sandboxes"]
    assert [b["identifier"] for b in boxes] == [sandbox]
    assert client.call("get_run", run_id=run["run_id"], wait_ms=0, cursor="",
                       artifacts_from=0)["state"] == "completed"


def test_an_unknown_tool_is_named(client):
    client.initialize()
    with pytest.raises(McpError) as info:
        client.rpc("tools/call", {"name": "nope", "arguments": {}})
    assert info.value.code == -32602
    assert "nope" in info.value.message + json.dumps(info.value.data)


def test_an_unknown_method_is_refused(client):
    client.initialize()
    with pytest.raises(McpError) as info:
        client.rpc("nope/nope")
    assert info.value.code == -32601


def test_an_unknown_run_is_not_found(server):
    uuid = "00000000-0000-4000-8000-000000000000"
    for path in (f"/mcp/runs/{uuid}", f"/mcp/events?run_id={uuid}"):
        status, _, data = server.get(path)
        assert status == 404
        assert json.loads(data)["error"]["code"] == "not_found"


def test_foreign_origins_and_hosts_are_refused(server):
    assert server.get("/mcp", {"Origin": "http://evil.test"})[0] == 403
    assert server.get("/metrics", {"Host": "evil.test"})[0] == 403
