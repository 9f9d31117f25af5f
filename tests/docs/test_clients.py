"""What docs/clients.md and "mcp-sandboxd clients" say."""
import json
import os
import re

import pytest

from pages import SHOWN_AT, TOP, blocks_of, check_form, read, run
from server import Engine, Server

NAMES = ["any", "claude-code", "claude-desktop", "cursor", "vscode", "zed",
         "opencode", "goose", "codex", "gemini-cli", "copilot-cli",
         "langchain", "langchain-js", "openai-agents", "openai-agents-js",
         "ai-sdk"]
PAGE = "docs/clients.md"


def clients(shell_env, *args, **env):
    return run("mcp-sandboxd", "clients", *args, env={**shell_env, **env})


def blocks():
    return [b for b in blocks_of(PAGE, read(PAGE)) if b.language != "text"]


def section(name):
    """The parsed blocks of the client of that title."""
    text = read(PAGE).split(f"\n## {name}\n")[1].split("\n## ")[0]
    return [check_form(b) for b in blocks_of(PAGE, text)
            if b.language not in ("sh", "text")]


def urls(value):
    """All URLs in a parsed block."""
    if isinstance(value, dict):
        return [u for v in value.values() for u in urls(v)]
    if isinstance(value, list):
        return [u for v in value for u in urls(v)]
    return [value] if isinstance(value, str) and "/mcp" in value else []


def test_all_are_printed_with_each_block_of_the_page(shell_env):
    done = clients(shell_env)
    assert done.returncode == 0 and done.stderr == ""
    assert len(blocks()) >= len(NAMES)
    program = os.path.join(os.environ["MCP_SANDBOXD_BUILD"], "mcp-sandboxd")
    for block in blocks():
        text = block.text.replace('"mcp-sandboxd"', f'"{program}"')
        assert f"\n{text}" in done.stdout, block
    for name in NAMES:
        assert f"({name}), by " in done.stdout


@pytest.mark.parametrize("name", NAMES)
def test_one_is_printed_alone_and_as_among_all(name, shell_env):
    one = clients(shell_env, name).stdout
    assert one in clients(shell_env).stdout
    assert "@URL@" not in one and f"{SHOWN_AT}/mcp" in one
    assert max(map(len, one.splitlines())) < 100


@pytest.mark.parametrize("settings, url", [
    ({"PORT": "9"}, "http://127.0.0.1:9/mcp"),
    ({"BIND": "::1"}, "http://[::1]:8080/mcp"),
    ({"MCP_PATH": "/a/b"}, "http://127.0.0.1:8080/a/b"),
])
def test_the_url_is_that_of_the_configuration(settings, url, shell_env,
                                              tmp_path):
    path = tmp_path / "conf"
    path.write_text("".join(f"{k}={v}\n" for k, v in settings.items()))
    arguments = [f"{k}={v}" for k, v in settings.items()]
    for done in (clients(shell_env, "zed", *arguments),
                 clients(shell_env, "zed", **settings),
                 clients(shell_env, "zed", "--config", str(path))):
        assert done.returncode == 0, done.stderr
        assert f'{{"url": "{url}"}}' in done.stdout


@pytest.mark.parametrize("arguments, status, says", [
    (["emacs"], 64, "\"emacs\" is none of any, claude-code"),
    (["zed", "goose"], 64, "\"goose\" is neither"),
    (["zed", "PORT=0"], 78, "listening on"),
    (["zed", "BIND=none"], 78, "mcp-sandboxd stdio"),
    (["zed", "PORT=x"], 78, "PORT"),
])
def test_what_cannot_be_printed_is_refused(arguments, status, says,
                                           shell_env):
    done = clients(shell_env, *arguments)
    assert (done.returncode, done.stdout) == (status, "")
    assert says in done.stderr


# ---- a server that wants a token

def with_tokens():
    """The page's blocks as a server that wants a token prints them."""
    text = read("schema/clients.txt").split("\n@client ", 1)[1]
    text = re.sub(r"@[][]", "", text).replace("@URL@", f"{SHOWN_AT}/mcp")
    return [b for b in blocks_of(PAGE, text) if b.language != "text"]


@pytest.mark.parametrize("setting", [
    {"REQUIRE_TOKEN": "true"}, {"TENANTS_FILE": "/etc/tenants.json"}])
def test_a_token_has_its_place_where_one_is_wanted(setting, shell_env):
    done = clients(shell_env, **setting)
    assert done.returncode == 0, done.stderr
    assert "sandboxctl token add default" in done.stdout.split("----")[0]
    program = os.path.join(os.environ["MCP_SANDBOXD_BUILD"], "mcp-sandboxd")
    blocks_there = with_tokens()
    assert len(blocks_there) == len(blocks())
    for block in blocks_there:
        check_form(block)
        text = block.text.replace("@PROGRAM@", program)
        assert f"\n{text}" in done.stdout, block
        # Goose has no place for it in its command line.
        assert "TOKEN" in text or "goose session" in text, block
    for name in NAMES:
        one = clients(shell_env, name, **setting).stdout
        assert "sandboxctl token add default" in one and "@[" not in one
        assert max(map(len, one.splitlines())) < 100


def test_no_token_has_a_place_where_none_is_wanted(shell_env):
    done = clients(shell_env)
    assert "TOKEN" not in re.sub(r"MCP_SANDBOXD_TOKEN\w*", "", done.stdout)
    assert "token add" not in done.stdout


@pytest.fixture(name="shut", scope="module")
def shut_fixture(build):
    """A server that wants a token, and one that it knows."""
    s = Server(build, env={"REQUIRE_TOKEN": "true"})
    yield s, s.ctl("token", "add", "default").strip()
    s.destroy(Engine(os.environ["DOCKER_HOST"]))


@pytest.mark.parametrize("client", ["any", "claude-desktop"])
def test_the_official_client_connects_with_its_token(
        client, shut, shell_env):
    server, token = shut
    printed = clients(shell_env, client, REQUIRE_TOKEN="true",
                      PORT=str(server.port)).stdout
    at = re.search(r"^\{", printed, re.M).start()
    entry, _ = json.JSONDecoder().raw_decode(printed[at:])
    entry = json.loads(json.dumps(entry).replace(
        "Bearer TOKEN", f"Bearer {token}").replace('"TOKEN"', f'"{token}"'))
    connects(entry["mcpServers"]["sandbox"], server, shell_env)


def test_every_configuration_names_the_endpoint_once():
    for title in ("Any client", "Claude Code", "Cursor", "VS Code", "Zed",
                  "OpenCode", "Codex", "Goose", "Claude Desktop",
                  "Gemini CLI", "Copilot CLI"):
        for parsed in section(title):
            assert urls(parsed) == [f"{SHOWN_AT}/mcp"], title


def test_the_greeting_and_readme_say_what_the_list_says(server):
    known = section("Any client")[0]
    status, _, page = server.get("/mcp", {"Accept": "text/html"})
    shown = page.decode().split("<pre>")[2].split("</pre>")[0]
    assert status == 200
    known["mcpServers"]["sandbox"]["url"] = \
        f"http://127.0.0.1:{server.port}/mcp"
    assert json.loads(shown) == known
    assert "mcp-sandboxd clients" in read("README.md")


# Really connected: by what a client would start or call.

def connects(entry, server, shell_env):
    """The official client, by what an entry names or starts."""
    entry = json.dumps(entry).replace(
        SHOWN_AT, f"http://127.0.0.1:{server.port}")
    done = run("node", os.path.join(TOP, "tests/clients/bridge.mjs"), entry,
               cwd=os.environ["NODE_CLIENTS"], env=shell_env)
    assert done.returncode == 0, done.stdout + done.stderr
    assert done.stdout == "hello from there\n"


@pytest.mark.parametrize("client", ["Any client", "Claude Desktop"])
def test_the_official_client_connects(client, server, shell_env):
    """By HTTP and HTTP+SSE, and by mcp-sandboxd stdio for clients that start
    a command."""
    for parsed in section(client):
        connects(parsed["mcpServers"]["sandbox"], server, shell_env)


def test_the_path_of_http_sse_is_there(server, shell_env):
    assert "the one whose path is `/sse`" in read(PAGE)
    connects({"type": "sse", "url": f"{SHOWN_AT}/sse"}, server, shell_env)


def test_the_other_bridge_connects(server, shell_env):
    words = re.search(r"`(npx -y mcp-remote [^`]+)`", read(PAGE))[1].split()
    connects({"command": words[0], "args": words[1:]}, server, shell_env)
