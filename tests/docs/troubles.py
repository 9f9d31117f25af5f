"""What a user can be told, taken from the sources; docs/troubleshooting.md
explains it.

Texts stand in calls of a few functions; what is filled in is "…" here.  Those
of an errno (ERR_SYS) and of a protocol between our own processes (ERR_PROTO)
explain themselves, or nobody but us can act on them.
"""
import glob
import os
import re

from pages import TOP, read

PAGE = "docs/troubleshooting.md"
# Functions whose argument is a text, in which files.
SAYING = {
    "err_set": (
        "supervisor/tools/*.c", "supervisor/front/*.c", "supervisor/mcp/*.c",
        "supervisor/core/*.c", "supervisor/store/*.c",
        "supervisor/ctl/ctl_audit.c",
        "supervisor/master/*.c", "common/conf*.c", "worker/*.c",
        "supervisor/keys/*.c", "supervisor/courier/*.c",
        "supervisor/stdio/*.c", "common/envoy.c",
        "common/engine_host.c",
        "common/outside.c", "common/tenant_lines.c", "common/weburl.c",
        "worker/docker/*.c", "worker/kubernetes/*.c", "worker/link/*.c",
        "common/runtimes.c"),
    "note": ("worker/copy.c",),
    "copy_stop": ("worker/copy.c",),
    "front_mcp_error": ("supervisor/front/mcp_endpoint.c",),
    "ask_fail": ("supervisor/core/asks.c",),
    "run_sandbox_gone": ("supervisor/core/run.c",),
    "http_error": ("supervisor/*/*.c",),
    "refuse": ("supervisor/front/*.c", "supervisor/mcp/*.c"),
    "request_error": ("supervisor/mcp/*.c",),
    "mcp_call_error": ("supervisor/mcp/*.c",),
    "call_refuse": ("supervisor/mcp/mcp_call.c",),
    "rpc_error": ("supervisor/mcp/*.c",),
    "path_fail": ("supervisor/mcp/*.c",),
    "snprintf": ("supervisor/front/check.c", "supervisor/front/mcp_endpoint.c",
                 "supervisor/front/spans.c", "supervisor/stdio/bridge.c",
                 "supervisor/stdio/relay.c", "supervisor/stdio/main.c"),
    "answer_errors": ("supervisor/stdio/bridge.c",),
    "log_warn": ("supervisor/front/spans.c",),
    "drop": ("supervisor/front/spans.c",),
    "xasprintf": ("supervisor/core/run_row.c",),
    "xstrdup": ("supervisor/core/run_row.c",),
}
# What a function puts before its text.
BEFORE = {"note": "artifact extraction: "}
NOT_FOR_USERS = ("ERR_SYS", "ERR_PROTO")
# Texts that no user is told, and why.
INTERNAL = {
    "supervisor/mcp/registry.c": "a tool's definition, at the build",
    "supervisor/mcp/schema.c": "a tool's schema, at the build",
    "supervisor/core/follow.c": "a place that was checked before",
    "supervisor/core/logs.c": "tried again",
    "supervisor/store/runs.c": "what the core asks of the database",
    "supervisor/store/sandboxes.c": "what the core asks of the database",
    "supervisor/store/trim.c": "what the core asks of the database",
    "supervisor/store/evict.c": "what the core asks of the database",
    "supervisor/store/history_index.c": "the log says it; it is made anew",
    "supervisor/store/writer.c": "said with what made it so",
    "supervisor/stdio/sse_reader.c": "told as an answer that is too large",
    "worker/link/link.c": "told as a lost sandbox",
}
INTERNAL_TEXTS = (
    "no event base",
    "a path or header for the API server has a blank or a control character",
    "no such task",
    "there is no stream for this batch",
    "tool … has no definition", "…: its name must be …",
    "… tool definitions for … functions", "languages.json: …",
    "no definition may name the setting …",
    "a reader is in the way", "database: no row",
    "the sandbox is gone", "the sandbox has no such thing", "not found",
    "the run is over", "a file of … bytes", "no such resource",
    "the engine has not answered yet",
    "… sandboxes are being made already: try again",
    "the sandbox is not wanted any more", "the worker is ending",
    "the supervisor named no instance: restart the server",
    "the engine cannot do what the link … needs",
    "database: a run of no known state", "database: \"…\" is no …",
    "prompt …: …", "more than … prompts", "prompt … is there twice",
    "a prompt's name must have 1 to … bytes",
    "questions to a client are an object of at most …",
    "question … is none that a client is asked",
    "the client has not declared what question … needs",
    "there is nothing to ask, or the method asks no questions",
    "internal error",
    "too many files at a time", "database: a sandbox of no known state",
)


def arguments(source, at):
    """The arguments of the call that opens before at, as they stand."""
    out, depth, begin, n = [], 1, at, at
    while depth:
        c = source[n]
        if c == '"':
            n = re.compile(r'"(?:[^"\\]|\\.)*"').match(source, n).end() - 1
        elif c in "([{":
            depth += 1
        elif c in ")]}":
            depth -= 1
        if (c == "," and depth == 1) or depth == 0:
            out.append(source[begin:n])
            begin = n + 1
        n += 1
    return out


def literal(argument):
    """The text of an argument that begins with a literal, else None."""
    if not argument.lstrip().startswith('"'):
        return None
    parts = re.findall(r'"((?:[^"\\]|\\.)*)"|([A-Za-z_]\w*)', argument)
    text = "".join("…" if word else part for part, word in parts)
    text = re.sub(
        r"%(?:%|[-+0 #]*[\d.*]*(?:…|(?:hh|h|ll|l|z|j)?[a-zA-Z]))",
        lambda f: "%" if f[0] == "%%" else "…", text)
    text = re.sub(r"\\x?(.)", lambda f: {"n": "\n"}.get(f[1], f[1]), text)
    return re.sub("…+", "…", text)


def texts_of(arguments_):
    """The first text; where it is only filled in, what it is filled with."""
    found = [literal(a) for a in arguments_]
    for at, text in enumerate(found):
        if text is None or re.fullmatch(r"[a-z_]*", text):
            continue
        if text != "…":
            return [text]
        choices = ",".join(arguments_[at + 1:])
        return [literal(c) for c in re.split(r"[?:](?=\s*\")", choices)
                if c.lstrip().startswith('"')]
    return []


def without_comments(source):
    """The same lines; what opens a comment within a text opens none."""
    return re.sub(r'"(?:[^"\\\n]|\\.)*"|/\*.*?\*/', lambda f: f[0]
                  if f[0][0] == '"' else re.sub(r"[^\n]", " ", f[0]),
                  source, flags=re.S)


def said():
    """{text: where} of all that a user can be told."""
    out = {}
    for function, patterns in SAYING.items():
        for path in sorted(p for one in patterns
                           for p in glob.glob(os.path.join(TOP, one))):
            name = os.path.relpath(path, TOP)
            if name in INTERNAL:
                continue
            source = without_comments(read(name))
            for call in re.finditer(rf"\b{function}\(", source):
                given = arguments(source, call.end())
                if any(code in a for a in given[:2]
                       for code in NOT_FOR_USERS):
                    continue
                line = source.count("\n", 0, call.start()) + 1
                for text in texts_of(given):
                    text = BEFORE.get(function, "") + text
                    if re.search("[a-z]{2}|[A-Z]{2}", text) and \
                            " " in text and \
                            not is_one(text, INTERNAL_TEXTS):
                        out.setdefault(text, f"{name}:{line}")
    return out


def is_one(text, patterns):
    return any(covers(p, text) for p in patterns)


def covers(pattern, text):
    """An entry with … for what is filled in, or for more."""
    return re.fullmatch(".*".join(map(re.escape, pattern.split("…"))), text,
                        re.S) is not None


# ---- codes, by kind

def matches(path, pattern):
    return set(re.findall(pattern, read(path)))


def codes():
    """{heading of the page: the codes that the sources have}"""
    http = set()
    for path in glob.glob(os.path.join(TOP, "supervisor/*/*.c")):
        source = read(os.path.relpath(path, TOP))
        for function, at in (("http_error", 2), ("refuse", 3)):
            for call in re.finditer(rf"\b{function}\(", source):
                given = arguments(source, call.end())
                code = literal(given[at]) if len(given) > at else None
                if code and re.fullmatch("[a-z_]+", code):
                    http.add(code)
        http |= set(re.findall(
            r'struct check_refusal\)\{\d+, "([a-z_]+)"', source))
    http |= matches("supervisor/http/http_refuse.c",
                    r'\{\d{3}, "[A-Za-z -]+", "([a-z_]+)",')
    http |= matches("supervisor/http/http_reply.c",
                    r'(?:ERR_\w+, \d+|error_text\(x, 500), "([a-z_]+)"')
    tools = matches("supervisor/tools/tools.c", r'return "([A-Z_]+)"')
    names = dict(re.findall(r'\{(ERR_\w+), "([a-z_]+)"\}',
                            read("common/err.c")))
    tools |= {names[c] for c in matches(
        "supervisor/tools/tools.c", r"code == (ERR_\w+)")} - {"backend"}
    for path in glob.glob(os.path.join(TOP, "supervisor/tools/*.c")):
        tools |= matches(os.path.relpath(path, TOP),
                         r'\.failed = "([a-z_]+)"')
    tools |= matches("supervisor/mcp/methods_tools.c", r'"([a-z_]+): ')
    words = read("schema/words.txt").split("enum runlog_reason")[1].split(
        "\nenum ")[0]
    return {
        "A tool answers with isError": tools,
        "Why a run ended": set(re.findall(r"^([a-z_]+)\b", words, re.M)),
        "HTTP": http,
        "MCP": matches("supervisor/mcp/mcp.h", r"= (-32\d{3})\b"),
        "The server does not start, or ends":
            matches("schema/usage.txt", r"(?m)^status\|(\d+)\|"),
    }


def explained_codes():
    """The same, from the first table below each heading."""
    out = {}
    for part in read(PAGE).split("\n## ")[1:]:
        heading, _, text = part.partition("\n")
        table = re.search(r"^\| (?:word|status|code|exit status) \|.*?"
                          r"(?=\n[^|]|\n\n|\Z)", text, re.M | re.S)
        if table is None:
            continue
        rows = [row.split(" | ") for row in table[0].split("\n")[2:]]
        column = 1 if heading == "HTTP" else 0
        out[heading] = [row[column].strip("| `") for row in rows if row[0]]
    return out


def explained_texts():
    """All texts of the page, … and all."""
    rows = [line for line in read(PAGE).split("\n") if line.startswith("|")]
    spans = [s for row in rows for s in re.findall(r"`([^`]+)`", row)]
    return [s for s in spans if " " in s or "…" in s]
