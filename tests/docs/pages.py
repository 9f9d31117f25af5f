"""The blocks of the project's pages: found, played, compared.

A block's language says what becomes of it:

    sh                  played by bash, all of a page in one shell, against a
                        server; where a block of text follows at once, that is
                        what it prints
    sh (not played: R)  not playable here, for reason R
    json, yaml, ...     parsed
    text                shown

Lines that are indented by four are commands of ./bootstrap and the like,
which other jobs of the check run: ELSEWHERE says which.
"""
import ast
import json
import os
import re
import shutil
import socket
import subprocess
import tempfile
import tomllib

import yaml

TOP = os.path.dirname(os.path.dirname(os.path.dirname(
    os.path.abspath(__file__))))
PAGES = ("README.md", "docs/clients.md", "docs/tools.md",
         "docs/troubleshooting.md", "docs/security.md", "docs/operations.md",
         "docs/sandboxctl.md", "docs/sqlite.md", "docs/events.md",
         "docs/api.md", "docs/history.md", "docs/metrics.md", "docs/logging.md",
         "docs/tasks.md", "docs/prometheus/README.md", "docs/containers.md")
# Played by tests/forms, on a machine of its own.
IN_CONTAINERS = ("docs/containers.md",)
SHOWN_AT = "http://127.0.0.1:8080"
# Of a server that a page starts itself: its places and port.
SHOWN_PLACES = ("/etc/mcp-sandboxd", "/var/lib/mcp-", "/var/log/mcp-",
                "/var/backups/mcp-")
SHOWN_PORT = "8443"
SHOWN_IMAGE = "localhost/mcp-sandboxd/sandbox:latest"
LIMIT_S = 60
TRACE_LINES = 30
# Commands by their beginnings, and what plays them.
ELSEWHERE = {
    "./bootstrap run": 'job "bootstrap run --once"',
    "./bootstrap check": "the check itself",
    "./bootstrap bench": "measures, and wants the machine for itself",
    "./bootstrap image": "tests/forms",
    "./bootstrap deps": "tests/fresh: installs packages",
    "./bootstrap stop": "stops the engine that the check needs",
    "rm -rf build data": "removes the build",
    "autoreconf -i": "tests/fresh",
    "./configure": 'job "build gcc -Werror"',
    "make": 'job "release (make distcheck)"',
}


class Block:
    """One fenced block, or one run of indented lines (language None)."""

    def __init__(self, page, line, info, lines):
        self.page = page
        self.line = line
        self.info = info
        self.text = "\n".join(lines) + "\n"
        self.language = info.split()[0] if info else ""
        found = re.search(r"\(not played: (.+)\)$", info or "")
        self.reason = found[1] if found else None
        self.prints = None  # text that is to come out

    def __repr__(self):
        return f"{self.page}:{self.line}"


def blocks_of(page, text):
    """All blocks of a page, in order."""
    out, lines, n = [], text.split("\n"), 0
    after = None  # a played block, until something else than blanks comes
    while n < len(lines):
        line, at = lines[n], n + 1
        n += 1
        if line.lstrip().startswith("```"):
            mark = line[:len(line) - len(line.lstrip())] + "```"
            body = []
            while lines[n] != mark:
                body.append(lines[n].removeprefix(mark[:-3]))
                n += 1
            n += 1
            block = Block(page, at, line.lstrip()[3:].strip(), body)
            if block.language == "text" and after is not None:
                after.prints = block.text
            after = block if block.language == "sh" and \
                block.reason is None else None
            out.append(block)
        elif line.startswith("    ") and (at == 1 or lines[at - 2] == ""):
            body = [line]
            while lines[n].startswith("    "):
                body.append(lines[n])
                n += 1
            out.append(Block(page, at, None, [b[4:] for b in body]))
            after = None
        elif line != "":
            after = None
    return out


def run(*argv, **more):
    """What a program came to, with its words as text."""
    return subprocess.run(argv, text=True, **{
        "capture_output": True, "check": False, "timeout": 120, **more})


def read(page):
    with open(os.path.join(TOP, page), encoding="utf-8") as f:
        return f.read()


def check_indented(block):
    """Each command is one that something else plays."""
    for line in block.text.splitlines():
        command = re.sub(r"\s+#.*", "", line).strip()
        if command and not any(command.startswith(e) for e in ELSEWHERE):
            raise AssertionError(
                f"{block}: nothing plays \"{command}\": put it into a block "
                "of sh, or into ELSEWHERE of tests/docs/pages.py")


def unique(pairs):
    keys = [k for k, _ in pairs]
    assert len(keys) == len(set(keys)), f"a key twice in {keys}"
    return dict(pairs)


def check_js(text):
    """Only whether it parses: its packages are not here."""
    done = run("node", "--input-type=module", "--check", "-", input=text)
    if done.returncode != 0:
        raise SyntaxError(done.stderr)


PARSERS = {
    "json": lambda text: json.loads(text, object_pairs_hook=unique),
    "yaml": yaml.safe_load,
    "toml": tomllib.loads,
    "python": ast.parse,
    "js": check_js,
}


def check_form(block):
    """It parses as what it says it is."""
    if block.language == "sh":
        done = run("bash", "-n", input=block.text)
        assert done.returncode == 0, f"{block}: {done.stderr}"
    elif block.language in PARSERS:
        try:
            return PARSERS[block.language](block.text)
        except (ValueError, SyntaxError, yaml.YAMLError,
                AssertionError) as e:
            raise AssertionError(f"{block}: {e}") from e
    else:
        assert block.language == "text", \
            f"{block}: a block of \"{block.info}\" is of no use to this test"
    return None


class Elsewhere:
    """A directory in the place of / and a port for a page's own server, held
    until it listens there."""

    def __init__(self):
        self.top = tempfile.mkdtemp(prefix="mcp-sandboxd-page-")
        os.chmod(self.top, 0o755)
        for parent in ("etc", "var/lib", "var/log", "var/backups"):
            os.makedirs(os.path.join(self.top, parent))
        self.socket = socket.socket()
        self.socket.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        self.socket.bind(("", 0))
        self.port = str(self.socket.getsockname()[1])

    def close(self):
        self.socket.close()
        shutil.rmtree(self.top)

    def shown(self):
        """[(as the page has it, as it is)]"""
        return [(p, self.top + p) for p in SHOWN_PLACES] + \
            [(SHOWN_PORT, self.port)]


def play(blocks, shown, env, directory, within=(), limit_s=LIMIT_S):
    """Run the blocks of sh of one page, in one shell; shown says what stands
    on the page for what, within are words before the shell.  Each must succeed,
    and print what stands below it; what a failed one leaves running is
    ended."""
    mine = [b for b in blocks if b.language == "sh" and b.reason is None]
    script = "set -eu -o pipefail\ntrap 'kill $(jobs -p) || :; wait' EXIT\n"
    for b in mine:
        script += replaced(b.text, shown) + "\nprintf '\\001'\n"
    with tempfile.TemporaryFile("w+", errors="replace") as trace:
        fd = trace.fileno()
        done = subprocess.run(
            [*within, "timeout", "-k", "20", str(limit_s), "bash", "-xc",
             script],
            env={**env, "BASH_XTRACEFD": str(fd), "PS4": "+ $SECONDS s: "},
            pass_fds=(fd,), cwd=directory, text=True, errors="replace",
            stdin=subprocess.DEVNULL, capture_output=True, check=False)
        trace.seek(0)
        steps = "".join(trace.readlines()[-TRACE_LINES:])
    said = done.stdout.split("\001")
    for b, out in zip(mine, said):
        if len(said) <= mine.index(b) + 1:
            raise AssertionError(
                f"{b} failed with status {done.returncode}:\n{out}"
                f"{done.stderr}\nits last steps:\n{steps}")
        out = replaced(out, [(is_, as_) for as_, is_ in shown])
        if b.prints is not None and plain(out) != plain(b.prints):
            raise AssertionError(f"{b} does not print what stands below it, "
                                 f"but:\n{plain(out)}")
    assert done.returncode == 0, done.stderr
    return len(mine)


def replaced(text, pairs):
    for old, new in pairs:
        text = text.replace(old, new)
    return text


# ---- what differs from one time to the next

UUID = re.compile(r"\b[0-9a-f]{8}(?:-[0-9a-f]{4}){3}-[0-9a-f]{12}\b")


def with_shown_image(text):
    """The image has the name that the pages show, whatever the check's has."""
    return text.replace(os.environ.get("SANDBOX_IMAGE") or SHOWN_IMAGE,
                        SHOWN_IMAGE)


def plain(text, seen=None):
    """The same for each playing: ids by their order, times, durations, image.
    seen, a list, numbers the ids of several texts together."""
    seen = [] if seen is None else seen

    def number(found):
        if found[0] not in seen:
            seen.append(found[0])
        return f"00000000-0000-4000-8000-{seen.index(found[0]) + 1:012d}"

    text = UUID.sub(number, with_shown_image(text))
    text = re.sub(r"\btoken \w{12} is", "token 0123456789ab is", text)
    text = re.sub(r"\b[0-9a-f]{64}\b", "0123456789ab" * 5 + "0123", text)
    text = re.sub(r"\b(mcp-sbx-\S*?-)[0-9a-f]{8}\b", r"\g<1>01234567", text)
    text = re.sub(r"\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\.\d{3}Z",
                  "2026-01-01T12:00:00.000Z", text)
    text = re.sub(r"\b(\d+)\.1\d{12}\b", r"\1.1767268800000", text)
    text = re.sub(r"\b\d+(\.\d+)? ms\b", "1 ms", text)
    text = re.sub(r"\b[0-9a-f]{50}\b", "0123456789" * 5, text)
    return re.sub(r"\b1\d{12}-", "1767268800000-", text)  # a page's cursor
