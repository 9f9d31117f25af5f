"""The interpreter's three tools."""
import re

import pytest


@pytest.fixture
def ready(client, sandbox):
    client.call("initialize_sandbox", identifier=sandbox)
    return sandbox


def test_code_needs_an_initialized_sandbox(client, sandbox):
    out = client.call("execute_code", code="print(1)", identifier=sandbox)
    assert out["status"] == "error"
    assert out["error_type"] == "StateError"
    assert out["message"] == \
        "Sandbox not initialized. Call 'initialize_sandbox' first."


def test_initialize_execute_stop(client, sandbox):
    first = client.call("initialize_sandbox", identifier=sandbox)
    assert first["status"] == "success"
    again = client.call("initialize_sandbox", identifier=sandbox,
                        image="something:else")
    assert again["container_id"] == first["container_id"]
    out = client.call("execute_code", code="print(6 * 7)", identifier=sandbox)
    assert (out["status"], out["exit_code"], out["output"]) == \
        ("success", 0, "42\n")
    out = client.call("stop_sandbox", identifier=sandbox)
    assert out == {"status": "success",
                   "message": "Sandbox stopped and removed."}
    out = client.call("execute_code", code="1", identifier=sandbox)
    assert out["error_type"] == "StateError"


def test_the_default_identifier_is_default(client):
    client.call("initialize_sandbox")
    out = client.call("execute_code", code="echo $0 $((1+1))", language="bash")
    assert out["output"].endswith("2\n")
    out = client.call("execute_code", code="exit 4", language="sh")
    assert (out["exit_code"], out["message"]) == \
        (4, "Execution failed with exit code 4")
    client.call("stop_sandbox")


def test_a_traceback_is_an_execution_error_with_output(client, ready):
    out = client.call("execute_code", identifier=ready,
                      code="print('before')\nraise ValueError('x')")
    assert out["error_type"] == "ExecutionError"
    assert out["exit_code"] == 1
    assert "before" in out["output"] and "ValueError" in out["output"]


def test_the_history_has_the_code_that_was_run(client, ready):
    code = "print('€' * 3)\n" + "#" * 20000
    out = client.call("execute_code", code=code, identifier=ready)
    command = client.status(out["run_id"])["commands"][0]
    assert command["shell"] == code[:len(command["shell"])]
    assert len(command["shell"].encode()) == 16384


def test_unsupported_languages_are_named(client, ready):
    out = client.call("execute_code", code="1", language="cobol",
                      identifier=ready)
    assert out["message"] == \
        "Unsupported language: cobol; this server runs: python, bash, sh"
    assert out["output"] is None and out["exit_code"] is None
    out = client.call("execute_code", code="1", language="JavaScript",
                      identifier=ready)
    assert out["message"].startswith(
        "JavaScript execution not supported in minimal container; ")


def test_an_image_outside_the_policy_is_refused(client, sandbox):
    out = client.call("initialize_sandbox", identifier=sandbox,
                      image="something:else")
    assert out["status"] == "error"
    assert out["error_type"] == "DockerException"
    assert "something:else" in out["message"]


def test_stopping_nothing_succeeds(client, sandbox):
    assert client.call("stop_sandbox", identifier=sandbox)["status"] == \
        "success"


def test_long_code_is_no_argument(client, ready):
    code = "x = '" + "y" * 300000 + "'\nprint(len(x))"
    out = client.call("execute_code", code=code, identifier=ready)
    assert out["output"] == "300000\n"
    assert client.out(ready, "ls -A /tmp | grep -c run- || true") == "0\n"


def test_crlf_ends_a_line_of_bash_and_sh(client, ready):
    for language in ("bash", "sh", "shell"):
        result = client.tool("execute_code", identifier=ready,
                             language=language,
                             code="x=1\r\necho $x | cat -A\r\nexit 0\r")
        out = result["structuredContent"]
        assert (out["exit_code"], out["output"]) == (0, "1$\n"), out
        assert "CRLF" in out["note"]
        assert out["note"] in result["content"][0]["text"]


def test_other_code_is_taken_byte_by_byte(client, ready):
    code = "import sys\r\nprint(len(open(sys.argv[0], 'rb').read()))\r\n"
    out = client.call("execute_code", identifier=ready, code=code)
    assert out["output"] == f"{len(code)}\n"
    assert "note" not in out
    view = client.call("get_run", run_id=out["run_id"])
    assert "note" not in view["commands"][0]


@pytest.fixture
def quick(make_server):
    """A server whose calls wait for a moment."""
    def make(**env):
        return make_server(env={"DEFAULT_AWAIT_TIMEOUT_MS": "700", **env})

    return make


def test_code_that_takes_longer_goes_on_and_get_run_has_the_rest(quick):
    client = quick().client()
    client.call("initialize_sandbox")
    text = client.text(
        "execute_code", language="bash",
        code="echo one; until [ -e go ]; do sleep 0.1; done; echo two")
    run = re.match("run ([0-9a-f-]{36}) has not ended yet; call get_run "
                   "with this run_id", text)[1]
    assert "\none\n" in text and "two" not in text
    client.run("default", "touch go")
    end = client.text("get_run", run_id=run, wait_ms=45000)
    assert end.startswith("run %s completed\n" % run)
    assert "one\ntwo\n" in end


@pytest.mark.parametrize("env", [{}, {"TOOL_TEXT": "json"},
                                 {"TOOL_STRUCTURED": "true"}])
def test_programs_get_the_end_alone(quick, env):
    client = quick(**env).client()
    ask = client.shown if env else client.tool
    ask("initialize_sandbox")
    result = ask("execute_code", language="bash",
                 code="echo one; sleep 2; echo two")
    text = result["content"][0]["text"]
    assert "two" in text and "not ended" not in text
    if "TOOL_TEXT" not in env:
        assert result["structuredContent"]["status"] == "success"
        assert result["structuredContent"]["output"] == "one\ntwo\n"
