"""Bad input: a clear answer that names what is wrong, and nothing happens."""
import pytest


def test_a_body_that_is_too_large(server, client):
    client.initialize()
    assert client.post(b'"' + b"x" * (3 << 20) + b'"')[0] == 413
    assert server.get("/healthz")[0] == 200


@pytest.mark.parametrize("arguments, words", [
    ({"identifier": "a", "commands": [{}]},
     ["command 0", "shell or argv"]),
    ({"identifier": "a", "commands": [{"shell": "x", "cwd": "rel"}]},
     ["commands[0].cwd", "cwd must be absolute"]),
    ({"identifier": "a", "commands": [{"shell": "x"}], "extra": 1},
     ["extra"]),
    ({"identifier": "a", "commands": [{"shell": "x", "env": ["novalue"]}]},
     ["commands[0].env"]),
    ({"identifier": "a", "commands": [{"shell": "x"}],
      "options": {"default_cwd": "rel"}}, ["cwd must be absolute"]),
])
def test_wrong_arguments_are_named(client, arguments, words):
    text = client.fail("run_sandbox", **arguments)
    for word in words:
        assert word in text


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
