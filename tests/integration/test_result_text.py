"""The text of a result: what a program printed reaches whoever asked."""
import base64
import hashlib
import json
import re

import pytest

from server import serving

TEXT_MAX = 65536


@pytest.fixture(scope="module", params=["transcript", "json"])
def form(request):
    return request.param


@pytest.fixture(scope="module")
def asked(form, build, engine):
    """A server with that form of texts, and a client of it."""
    with serving(build, engine, env={"TOOL_TEXT": form}) as s:
        yield s.client()


def exact(piece):
    if "base64" in piece:
        return base64.b64decode(piece["base64"])
    return piece["text"].encode()


def pages(client, run):
    """Each page: its text, what it holds, and where the next one begins."""
    cursor = "0"
    while cursor is not None:
        result = client.tool("get_run", run_id=run, cursor=cursor)
        view = result["structuredContent"]
        text = result["content"][0]["text"]
        assert len(text.encode()) <= TEXT_MAX
        yield text, view["output"]
        cursor = view.get("next_cursor")


def shown_output(text, form):
    """The output in a page's text, without the words around it."""
    _, _, rest = text.partition("\n")
    if form == "json":
        return [(p["stream"], p["text"])
                for p in json.loads(rest)["output"]]
    found = []
    for line in rest.splitlines():
        if line.startswith("[more: get_run with cursor "):
            continue
        head = re.fullmatch(r"(stdout|stderr) of command \d+:", line)
        if head:
            found.append((head[1], ""))
        else:
            found[-1] = (found[-1][0], found[-1][1] + line)
    return found


COMMANDS = {
    "one line": "base64 -w0 </dev/urandom | head -c 348894",
    "dd": "base64 -w0 </dev/urandom | dd bs=65536 count=4 iflag=fullblock",
    "tr": "head -c 200000 /dev/zero | tr '\\0' x",
    "print": "python3 -c 'print(\"\\u20ac\" * 100000)'",
    "two streams": "for i in 1 2 3; do head -c 50000 /dev/zero | tr '\\0' a; "
                   "head -c 50000 /dev/zero | tr '\\0' b >&2; done",
}


@pytest.mark.parametrize("what", COMMANDS)
def test_texts_of_pages_show_all_that_their_cursors_pass_over(
        asked, form, what):
    run = asked.run("pages", COMMANDS[what])
    told = {"stdout": "", "stderr": ""}
    held = {"stdout": b"", "stderr": b""}
    for text, output in pages(asked, run["run_id"]):
        for stream, shown in shown_output(text, form):
            told[stream] += shown
        for piece in output:
            held[piece["stream"]] += exact(piece)
    for stream in ("stdout", "stderr"):
        assert len(held[stream]) == run["commands"][0][f"{stream}_bytes"]
        assert told[stream].replace("\n", "") == \
            held[stream].decode().replace("\n", "")


def test_pages_of_bytes_that_are_no_text_are_exact(asked, form):
    run = asked.run("pages", "head -c 100000 /dev/urandom | "
                    "tee /tmp/sent; sha256sum </tmp/sent >&2")
    held = b""
    for text, output in pages(asked, run["run_id"]):
        if form == "json":
            output = json.loads(text.partition("\n")[2])["output"]
        held += b"".join(exact(p) for p in output if p["stream"] == "stdout")
    want = run["commands"][0]["stderr"].split()[0]
    assert hashlib.sha256(held).hexdigest() == want


def test_no_command_is_missing_in_the_text_of_a_run(client, sandbox):
    much = "head -c 5000 /dev/zero | tr '\\0' x"
    result = client.tool(
        "run_sandbox", identifier=sandbox,
        commands=[{"shell": f"{much}; {much} >&2"}] * 64,
        options={"await_timeout_ms": 60000})
    text = result["content"][0]["text"]
    assert text.count(": exit code 0\n") == 64
    assert text.count("bytes left out") == 128


BAR = "printf ' 50%%\\r\\033[32m100%%\\033[0m \\b\\n'"


def test_a_text_shows_what_a_terminal_would_and_the_structure_the_bytes(
        client, sandbox):
    result = client.tool("run_sandbox", identifier=sandbox,
                         commands=[{"shell": BAR}])
    text = result["content"][0]["text"]
    assert text.endswith("\nexit code 0\n100%\n")
    final = result["structuredContent"]["final"]
    printed = " 50%\r\x1b[32m100%\x1b[0m \b\n"
    assert final["commands"][0]["stdout"] == printed
    (text, output), = pages(client, final["run_id"])
    assert "\nstdout of command 0:\n100%\n" in text
    assert [p["text"] for p in output] == [printed]


def test_the_text_of_code_shows_what_a_terminal_would(client, sandbox):
    client.call("initialize_sandbox", identifier=sandbox)
    result = client.tool("execute_code", language="bash", code=BAR,
                         identifier=sandbox)
    assert result["content"][0]["text"] == "exit code 0\n100%\n"
    assert result["structuredContent"]["output"].startswith(" 50%\r\x1b[32m")
