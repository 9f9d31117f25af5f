"""What is offered beside tools: resources, prompts and completion."""
import base64
import itertools
import json
import uuid

import pytest

from client import McpError, python
from test_resume import Stream
from tenants import Tenant


def left(client, sandbox, name, data):
    """A run that left these bytes below that name."""
    code = (f"import os; p = '/artifacts/' + {name!r};"
            " os.makedirs(os.path.dirname(p), exist_ok=True);"
            f" open(p, 'wb').write({data!r})")
    return client.run(sandbox, python(code))["run_id"]


def read(client, uri):
    content, = client.rpc("resources/read", {"uri": uri})["contents"]
    assert content["uri"] == uri
    return content


def complete(client, ref, name, value, **chosen):
    params = {"ref": ref, "argument": {"name": name, "value": value}}
    if chosen:
        params["context"] = {"arguments": chosen}
    return client.rpc("completion/complete", params)["completion"]


@pytest.fixture(autouse=True)
def session(client):
    client.initialize()


def test_they_are_announced(client):
    client.session = None
    capabilities = client.initialize()["capabilities"]
    assert {"resources", "prompts", "completions"} <= set(capabilities)
    assert capabilities["resources"]["subscribe"] is True


def test_a_run_is_read_with_its_output(client, sandbox):
    run = client.run(sandbox, "echo to be read; exit 3")["run_id"]
    record = read(client, f"sandbox://runs/{run}")
    assert record["mimeType"] == "application/json"
    record = json.loads(record["text"])
    assert record["run_id"] == run and record["state"] == "failed"
    assert not {"address", "session", "request_id"} & set(record)
    output = read(client, f"sandbox://runs/{run}/output")
    assert output["mimeType"] == "text/plain"
    assert "to be read" in output["text"] and run in output["text"]


@pytest.mark.parametrize("name, data, member", [
    ("plain.txt", "gr\u00fc\u00df dich\n".encode(), "text"),
    ("deep/er/a b+c%d?.bin", b"\xff\x00\xfe", "blob"),
    ("empty", b"", "text")])
def test_an_artifact_is_read(client, sandbox, name, data, member):
    run = left(client, sandbox, name, data)
    coded = name.replace("%", "%25").replace(" ", "%20").replace("?", "%3F")
    got = read(client, f"sandbox://runs/{run}/artifacts/{coded}")
    assert (got["text"].encode() if member == "text"
            else base64.b64decode(got["blob"])) == data


def test_a_large_artifact_is_refused_with_its_address(client, sandbox):
    run = client.run(sandbox, "head -c 2M /dev/zero > /artifacts/large.bin")
    run = run["run_id"]
    with pytest.raises(McpError) as why:
        read(client, f"sandbox://runs/{run}/artifacts/large.bin")
    path = f"/artifacts/{sandbox}/{run}/large.bin"
    assert path in why.value.message and why.value.code == -32602
    assert client.request("GET", path)[0] == 200


def test_what_is_not_there_is_not_found(client, sandbox):
    run = client.run(sandbox, "true")["run_id"]
    for uri in ("sandbox://", "sandbox://runs/", "file:///etc/passwd",
                f"sandbox://runs/{uuid.uuid4()}", f"sandbox://runs/{run}/",
                f"sandbox://runs/{run}/output/", f"sandbox://runs/{run}x",
                f"sandbox://runs/{run}/artifacts/",
                f"sandbox://runs/{run}/artifacts/none",
                f"sandbox://runs/{run}/artifacts/../../x",
                f"sandbox://runs/{run}/artifacts/%00",
                f"sandbox://runs/{run}/artifacts/%zz",
                f"sandbox://runs/{run}/artifacts/" + "d/" * 5000):
        with pytest.raises(McpError) as why:
            read(client, uri)
        assert why.value.code == -32002, uri
        assert why.value.data == {"uri": uri}


def test_who_subscribes_hears_of_output_and_of_the_end(client, sandbox):
    run = client.start(sandbox, "read -r line; echo $line", "sleep 1000")
    run = run["run_id"]
    uri = f"sandbox://runs/{run}"
    for wanted in (uri, f"{uri}/output"):
        assert client.rpc("resources/subscribe", {"uri": wanted}) == {}
    listening = Stream(client, "GET")
    assert listening.status == 200
    client.wait_state(run)
    client.cancel(run)
    told = set()
    for message in listening.messages():
        assert message["method"] == "notifications/resources/updated"
        told.add(message["params"]["uri"])
        if told == {uri, f"{uri}/output"}:
            break
    listening.close()
    for wanted in (f"sandbox://runs/{uuid.uuid4()}", "file:///etc/passwd"):
        with pytest.raises(McpError) as why:
            client.rpc("resources/subscribe", {"uri": wanted})
        assert why.value.code == -32002
    assert client.rpc("resources/unsubscribe", {"uri": uri}) == {}


def test_runs_are_listed_in_pages(client, sandbox):
    runs = [client.run(sandbox, "true")["run_id"] for _ in range(3)]
    listed, cursor = [], {}
    while cursor is not None:
        page = client.rpc("resources/list", cursor)
        listed += page["resources"]
        cursor = {"cursor": page["nextCursor"]} if "nextCursor" in page \
            else None
    uris = [r["uri"] for r in listed]
    mine = [f"sandbox://runs/{r}" for r in runs[::-1]]
    assert [u for u in uris if u in mine] == mine
    assert len(set(uris)) == len(uris)
    with pytest.raises(McpError) as why:
        client.rpc("resources/list", {"cursor": "none of ours"})
    assert why.value.code == -32602


def test_templates_say_how_addresses_are_made(client):
    templates = client.rpc("resources/templates/list")["resourceTemplates"]
    assert [t["uriTemplate"] for t in templates] == [
        "sandbox://runs/{run_id}", "sandbox://runs/{run_id}/output",
        "sandbox://runs/{run_id}/artifacts/{+path}"]


def test_a_prompt_has_what_was_filled_in(client):
    prompts = client.rpc("prompts/list")["prompts"]
    assert {p["name"] for p in prompts} == {
        "run_code", "debug_run", "analyse_file"}
    code = "print('{language} %s \\u00fc')"
    got = client.rpc("prompts/get", {"name": "run_code", "arguments": {
        "language": "python", "code": code}})
    message, = got["messages"]
    assert message["role"] == "user"
    assert f"```python\n{code}\n```" in message["content"]["text"]
    assert "identifier" not in message["content"]["text"]
    got = client.rpc("prompts/get", {"name": "run_code", "arguments": {
        "language": "python", "code": code, "identifier": "home"}})
    assert "identifier home" in got["messages"][0]["content"]["text"]


@pytest.mark.parametrize("params", [
    {"name": "none"}, {}, {"name": 1},
    {"name": "run_code", "arguments": {"language": "python"}},
    {"name": "run_code", "arguments": {"language": "python", "code": 1}},
    {"name": "run_code", "arguments": []}])
def test_a_prompt_that_cannot_be_filled_in_is_refused(client, params):
    with pytest.raises(McpError) as why:
        client.rpc("prompts/get", params)
    assert why.value.code == -32602


def test_a_prompt_is_whole_or_refused(client):
    for size, is_whole in ((900000, True), (1100000, False)):
        ask = {"name": "run_code", "arguments": {
            "language": "sh", "code": "x" * size}}
        if is_whole:
            text = json.dumps(client.rpc("prompts/get", ask))
            assert "x" * size in text
            continue
        with pytest.raises(McpError) as why:
            client.rpc("prompts/get", ask)
        assert why.value.code == -32602 and "1 MiB" in str(why.value)


def test_values_are_completed(client, sandbox):
    run = left(client, sandbox, "one.txt", b"1")
    prompt = {"type": "ref/prompt", "name": "run_code"}
    file = {"type": "ref/resource",
            "uri": "sandbox://runs/{run_id}/artifacts/{+path}"}
    assert complete(client, prompt, "language", "PY")["values"] == ["python"]
    assert complete(client, prompt, "identifier", sandbox)["values"] == \
        [sandbox]
    assert run in complete(client, file, "run_id", run[:8])["values"]
    assert complete(client, file, "path", "o", run_id=run)["values"] == \
        ["one.txt"]
    assert complete(client, file, "path", "o")["values"] == []
    assert complete(client, prompt, "code", "p")["values"] == []


def test_who_cancels_or_leaves_ends_nothing_but_its_own(
        client, server, sandbox):
    run = client.run(
        sandbox, "head -c 1000000 /dev/zero > /artifacts/zero",
        "for i in 1 2 3 4 5 6 7 8 9; do head -c 100000 /dev/urandom >"
        " /artifacts/$i.png; done")["run_id"]
    uri = f"sandbox://runs/{run}"
    file = {"type": "ref/resource", "uri": "sandbox://runs/{run_id}"}
    asked = [("resources/read", {"uri": uri}),
             ("resources/read", {"uri": uri + "/output"}),
             ("resources/read", {"uri": uri + "/artifacts/zero"}),
             ("resources/list", {}), ("tasks/list", {}),
             ("completion/complete", {
                 "ref": file, "argument": {"name": "run_id", "value": "0"}}),
             ("tools/call", {"name": "get_run", "arguments": {
                 "run_id": run}}),
             ("tasks/get", {"taskId": run})] * 4
    ids = itertools.count(1000)
    for leave in (True, False):
        open_ones = []
        for method, params in asked:
            body = {"jsonrpc": "2.0", "id": next(ids), "method": method,
                    "params": params}
            sock = server.send(
                "POST /mcp", "Content-Type: application/json",
                "Accept: application/json, text/event-stream",
                f"Mcp-Session-Id: {client.session}",
                "MCP-Protocol-Version: 2025-11-25",
                body=json.dumps(body).encode())
            if leave:
                sock.close()
                continue
            open_ones.append(sock)
            client.post({"jsonrpc": "2.0", "method":
                         "notifications/cancelled",
                         "params": {"requestId": body["id"]}})
        for sock in open_ones:
            sock.close()
    # Its own bytes follow, and its run stands.
    content = read(client, uri + "/artifacts/zero")
    assert base64.b64decode(content["blob"]) == bytes(1000000)
    assert client.call("get_run", run_id=run)["state"] == "completed"


@pytest.mark.own
def test_nothing_of_another_tenant_is_offered(server):
    one, two = (Tenant(server, name).client for name in ("one", "two"))
    two.initialize()
    run = one.run("theirs", "mkdir -p /artifacts; echo 1 > /artifacts/x")
    run = run["run_id"]
    for path in ("", "/output", "/artifacts/x"):
        with pytest.raises(McpError) as why:
            two.rpc("resources/read", {"uri": f"sandbox://runs/{run}{path}"})
        assert why.value.code == -32002
    uris = [r["uri"] for r in two.rpc("resources/list")["resources"]]
    assert f"sandbox://runs/{run}" not in uris
    prompt = {"type": "ref/prompt", "name": "debug_run"}
    assert complete(two, prompt, "run_id", run)["values"] == []
    prompt = {"type": "ref/prompt", "name": "analyse_file"}
    assert complete(two, prompt, "identifier", "theirs")["values"] == []
