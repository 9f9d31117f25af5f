"""The text of a result: what a program printed reaches whoever asked."""
import base64
import hashlib
import json
import re

import pytest

from server import serving

TEXT_MAX = {"transcript": 16000, "json": 65536}
LINES_MAX = 1900


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


def pages(client, run, form="transcript"):
    """Each page: its text, what it holds, and where the next one begins."""
    cursor = "0"
    while cursor is not None:
        result = client.tool("get_run", run_id=run, cursor=cursor)
        view = result["structuredContent"]
        text = result["content"][0]["text"]
        assert len(text.encode()) <= TEXT_MAX[form]
        assert form == "json" or text.count("\n") <= LINES_MAX
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
    "short lines": "seq 20000",
}


@pytest.mark.parametrize("what", COMMANDS)
def test_texts_of_pages_show_all_that_their_cursors_pass_over(
        asked, form, what):
    run = asked.run("pages", COMMANDS[what])
    told = {"stdout": "", "stderr": ""}
    held = {"stdout": b"", "stderr": b""}
    for text, output in pages(asked, run["run_id"], form):
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
    for text, output in pages(asked, run["run_id"], form):
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
    assert len(text.encode()) <= TEXT_MAX["transcript"]
    assert text.endswith("[output left out: call get_run with run_id "
                         f"{text.split()[1]} and cursor \"0\" for all of it, "
                         "in pages]\n")


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


# ---- what a model gets unless a program asks for more

def test_a_result_is_one_text_and_no_structure(client, sandbox):
    run = client.run(sandbox, "true")["run_id"]
    told = [client.shown("run_sandbox", identifier=sandbox,
                         commands=[{"shell": "echo hi; exit 3"}]),
            client.shown("initialize_sandbox", identifier=sandbox),
            client.shown("execute_code", identifier=sandbox, code="x"),
            client.shown("get_run", run_id=run),
            client.shown("get_run", run_id=run, cursor="0"),
            client.shown("list_runs"), client.shown("list_sandboxes"),
            client.shown("control_run", run_id=run, action="list"),
            client.shown("restart_sandbox", identifier=sandbox),
            client.shown("stop_sandbox", identifier=sandbox),
            client.shown("delete_sandbox", identifier=sandbox)]
    for result in told:
        assert set(result) == {"content", "isError"}, result
        assert [c["type"] for c in result["content"]] == ["text"]
        assert result["isError"] is False
    assert told[0]["content"][0]["text"].endswith(
        ": command 0 failed with exit 3\nexit code 3\nhi\n")
    tools = client.rpc("tools/list")["tools"]
    assert not any("outputSchema" in t for t in tools)


@pytest.mark.own(TOOL_STRUCTURED="true", TOOL_TEXT="json")
def test_a_server_may_give_what_programs_know(client):
    result = client.shown("run_sandbox", identifier="a", commands=[
        {"shell": "echo hi; cp /etc/hostname /artifacts/a.png"}])
    said = json.loads(result["content"][0]["text"].partition("\n")[2])
    assert said == result["structuredContent"]
    assert said["final"]["commands"][0]["stdout"] == "hi\n"
    assert len(result["content"]) == 1
    tools = client.rpc("tools/list")["tools"]
    assert all(t["outputSchema"]["type"] == "object" for t in tools)


def test_many_short_lines_keep_their_end(client, sandbox):
    text = client.text("run_sandbox", identifier=sandbox,
                       commands=[{"shell": "yes | head -n 5000; echo end"}])
    assert 1800 < text.count("\n") <= LINES_MAX
    assert "\nend\n[output left out: call get_run with run_id " in text


def test_a_run_that_goes_on_says_how_far_it_is(client, sandbox):
    commands = [{"shell": "true"},
                {"shell": "seq 5000; echo oops >&2; sleep 600",
                 "timeout_ms": 300000}]
    client.run(sandbox, "true")
    text = client.text("run_sandbox", identifier=sandbox, commands=commands,
                       options={"await_timeout_ms": 1500})
    run = re.match("run ([0-9a-f-]{36}) has not ended yet; call get_run with "
                   "this run_id ", text)[1]
    assert re.search(r"\nit has run for [12] s; its command 1 of 0 to 1 is "
                     r"killed unless it ends within 29\d s\n", text)
    assert re.search(r"\nstdout so far, 23893 bytes, the end of it:\n(\d+\n)+"
                     r"stderr so far, 5 bytes:\noops\n$", text)
    assert "\n5000\nstderr" in text
    assert len(text) < 2600
    text = client.text("get_run", run_id=run)
    assert text.startswith(f"run {run} running: call get_run again, with "
                           "wait_ms up to 45000, for its end\nit has run for ")
    text = client.text("control_run", run_id=run, action="cancel")
    assert text == f"run {run} is canceled\n"


def test_a_run_that_has_not_begun_says_why(client, sandbox):
    first = client.start(sandbox, "sleep 600", lock_sandbox=True)["run_id"]
    client.wait_state(first)
    text = client.text("run_sandbox", identifier=sandbox,
                       commands=[{"shell": "true"}],
                       options={"lock_sandbox": True, "await_timeout_ms": 100})
    assert "\nit has not begun for 0 s: it waits for lock\n" in text
    client.cancel(first)


def test_artifacts_have_addresses_that_open(client, server, sandbox):
    client.call("initialize_sandbox", identifier=sandbox)
    asked = [("run_sandbox", {"commands": [
        {"shell": "echo a > '/artifacts/a b%.txt'"}]}),
        ("execute_code", {"code": "open('/artifacts/a b%.txt', 'w')"
                                  ".write('a\\n')"})]
    for tool, arguments in asked:
        text = client.text(tool, identifier=sandbox, **arguments)
        url, = re.findall(r"\nartifacts:\n(http://\S+) \(2 bytes\)\n$", text)
        base = f"http://127.0.0.1:{server.port}"
        assert url.startswith(f"{base}/artifacts/{sandbox}/")
        status, _, body = server.get(url.removeprefix(base))
        assert (status, body) == (200, b"a\n")


@pytest.mark.own(PUBLIC_URL="https://box.example/sub/")
def test_addresses_are_of_the_public_url(client):
    text = client.text("run_sandbox", identifier="a", commands=[
        {"shell": "touch /artifacts/f"}])
    assert "\nhttps://box.example/sub/artifacts/a/" in text


# ---- pictures

PICTURES = r"""
import struct, zlib
def chunk(kind, data):
    body = kind + data
    return struct.pack(">I", len(data)) + body + \
        struct.pack(">I", zlib.crc32(body))
def png(width, height, more=0):
    row = b"\0" + b"\xff\0\0" * width
    return b"\x89PNG\r\n\x1a\n" + chunk(b"IHDR", struct.pack(
        ">IIBBBBB", width, height, 8, 2, 0, 0, 0)) + \
        chunk(b"teXt", b"k\0" + b"x" * more) + \
        chunk(b"IDAT", zlib.compress(row * height)) + chunk(b"IEND", b"")
def put(name, data):
    open("/artifacts/" + name, "wb").write(data)
"""


def images_of(result):
    return [(c["mimeType"], base64.b64decode(c["data"]))
            for c in result["content"] if c["type"] == "image"]


@pytest.mark.parametrize("tool", ["run_sandbox", "execute_code"])
def test_pictures_that_a_run_left_follow_the_text(client, sandbox, tool):
    client.call("initialize_sandbox", identifier=sandbox)
    code = PICTURES + "put('a.png', png(3, 2))\n" \
        "put('no.png', b'no picture at all')\n" \
        "put('z.txt', png(3, 2))\nput('gif.png', b'GIF89a' + b'\\1\\0' * 2 " \
        "+ b'\\0' * 9 + b';')"
    arguments = {"code": code} if tool == "execute_code" else {
        "commands": [{"argv": ["python3", "-c", code]}]}
    result = client.shown(tool, identifier=sandbox, **arguments)
    assert [c["type"] for c in result["content"]] == ["text", "image", "image"]
    (first, data), (second, _) = images_of(result)
    assert (first, second) == ("image/png", "image/gif")
    assert data.startswith(b"\x89PNG\r\n\x1a\n") and data[16:24] == \
        b"\0\0\0\3\0\0\0\2"
    text = result["content"][0]["text"]
    assert text.endswith("\nimage 1: a.png\nimage 2: gif.png\n")
    assert text.count("http://") == 4
    run = re.search(f"/artifacts/{sandbox}/([0-9a-f-]+)/a.png", text)[1]
    assert client.shown("get_run", run_id=run)["content"][1:] == \
        result["content"][1:]
    assert images_of(client.tool("get_run", run_id=run)) == []


def test_pictures_are_few_and_small(client, sandbox):
    result = client.shown("run_sandbox", identifier=sandbox, commands=[
        {"argv": ["python3", "-c", PICTURES + """
put("a-large.png", png(3, 2, 1 << 20))
put("b-wide.png", png(8001, 1))
put("c.png", png(3, 2, 600 << 10))
put("d.png", png(3, 2, 600 << 10))
for i in range(5):
    put(f"e{i}.png", png(3, 2))
"""]}])
    text = result["content"][0]["text"]
    assert text.endswith("image 1: c.png\nimage 2: e0.png\nimage 3: e1.png\n"
                         "image 4: e2.png\n")
    assert text.count("http://") == 9
    assert sum(len(data) for _, data in images_of(result)) < 1 << 20


# ---- what is said first

def test_the_instructions_are_true(client, sandbox):
    said = client.initialize()["instructions"]
    assert len(said.encode()) < 1500 and "get_run" in said
    found = client.out(sandbox, ". /etc/os-release; echo $ID $VERSION_ID; "
                                "python3 -V; ls /sys/class/net").split("\n")
    assert found[0] == "debian 12" and "Debian 12" in said
    assert found[1].startswith("Python 3.11.") and "Python 3.11 " in said
    assert found[2:] == ["lo", ""] and "no network" in said
