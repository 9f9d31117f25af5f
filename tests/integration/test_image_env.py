"""What the image says of the environment, and what we add to it."""
import json
import os
import urllib.parse

import pytest

from client import TOO_MUCH, python

SETS = ("FROM_IMAGE=\"a b\"", "PYTHONPATH=/opt/lib", "LANG=C",
        "PYTHONUNBUFFERED=", "HOME=/tmp", "OURS=image", "USER=image",
        "PATH=/opt/go/bin:/usr/bin:/bin")
SHOW = ("import os\n"
        "for n in ('FROM_IMAGE', 'PYTHONPATH', 'LANG', 'PYTHONUNBUFFERED',"
        " 'HOME', 'OURS', 'USER'):\n"
        "    print(n, os.environ.get(n), sep='=')\n")


@pytest.fixture(scope="module")
def image(engine):
    """The sandbox image with an ENV of its own."""
    name = f"localhost/mcp-sandboxd/test-env:{os.getpid()}"
    body = json.dumps({"Image": os.environ["SANDBOX_IMAGE"]})
    status, data = engine.request(
        "POST", "/containers/create", body,
        {"Content-Type": "application/json"})
    assert status == 201, data
    box = json.loads(data)["Id"]
    try:
        query = urllib.parse.urlencode(
            [("container", box), ("repo", name.split(":")[0]),
             ("tag", str(os.getpid()))]
            + [("changes", f"ENV {v}") for v in SETS])
        status, data = engine.request("POST", f"/commit?{query}")
        assert status == 201, data
    finally:
        engine.request("DELETE", f"/containers/{box}?force=1")
    yield name
    engine.request("DELETE", f"/images/{name}?force=1")


@pytest.fixture(name="own")
def own_fixture(make_server, image):
    client = make_server(env={"SANDBOX_IMAGE": image}).client()
    yield client


def shown(text):
    return dict(line.split("=", 1) for line in text.splitlines())


@pytest.mark.parametrize("user", ["sandbox", "root"])
def test_commands_have_the_images_environment(own, user):
    final = own.run(
        "box", {"argv": ["python3", "-c", SHOW], "env": {"OURS": "call"}},
        {"shell": f"python3 - <<'EOF'\n{SHOW}EOF", "env": {"OURS": "call"}},
        as_user=user)
    for command in final["commands"]:
        assert shown(command["stdout"]) == {
            "FROM_IMAGE": "a b", "PYTHONPATH": "/opt/lib", "LANG": "C",
            "PYTHONUNBUFFERED": "", "HOME": "/tmp", "OURS": "call",
            "USER": user}, command


@pytest.mark.parametrize("user", ["sandbox", "root"])
def test_shell_text_has_the_path_that_was_said(own, user):
    final = own.run("box", "echo $PATH", {"argv": ["printenv", "PATH"]},
                    {"shell": "echo $PATH", "env": {"PATH": "/opt/x:/bin"}},
                    as_user=user)
    image, argv, call = [c["stdout"] for c in final["commands"]]
    assert image.startswith("/opt/go/bin:/usr/bin:/bin:")
    assert argv == "/opt/go/bin:/usr/bin:/bin\n"
    assert call == "/opt/x:/bin\n"
    assert final["commands"][0]["shell"] == "echo $PATH"


def test_code_has_the_images_environment(own):
    own.call("initialize_sandbox")
    result = own.call("execute_code", code=SHOW)
    assert shown(result["output"])["FROM_IMAGE"] == "a b"
    result = own.call("execute_code", language="bash",
                      code="echo \"$FROM_IMAGE $PYTHONPATH\"")
    assert result["output"] == "a b /opt/lib\n"


def test_an_image_that_says_nothing_has_ours(client, sandbox):
    final = client.run(sandbox, {"argv": ["env"]})
    env = shown(final["commands"][0]["stdout"])
    assert env["PYTHONUNBUFFERED"] == "1" and env["LANG"] == "C.UTF-8"
    assert env["HOME"] == "/home/sandbox" and env["USER"] == "sandbox"
    assert "MCP" not in "".join(env), "what is the server's own is not theirs"


def test_what_python_printed_is_there_however_it_ends(client, sandbox):
    final = client.run(sandbox, *[python(f"import os\nprint('a')\n{end}",
                                         timeout_ms=3000, allow_failure=True)
                                  for end in ("while True: pass",
                                              "os._exit(3)", "os.abort()")],
                       python("print('a')\n" + TOO_MUCH["argv"][2]))
    assert [(c["end_reason"], c["stdout"]) for c in final["commands"]] == [
        ("timeout", "a\n"), ("exit", "a\n"), ("signal", "a\n"),
        ("memory", "a\n")]


def test_what_python_printed_is_there_while_it_runs(client, sandbox):
    run = client.start(sandbox, python(
        "import time\nprint('a')\ntime.sleep(1000)"))["run_id"]
    assert client.wait_output(run) == "a\n"


def test_a_call_can_have_python_buffer(client, sandbox):
    assert client.out(sandbox, python("import os\nprint('a')\nos._exit(0)",
                                      env={"PYTHONUNBUFFERED": ""})) == ""
