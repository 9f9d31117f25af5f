"""docs/tools.md: what tools/list says, and calls that are really made.

Arguments come from the schemas that a running server gives, answers from that
server; ids, times and durations are made equal (pages.plain).
"""
import json

from pages import plain, with_shown_image

WIDTH = 100
BLOCK_LINES_MAX = 60
HEAD = """# Tools

What each tool is for, what it takes, and a call with its answer: a line of
text first, then what a terminal would show, which is all that a model needs:
of a progress bar the last state, no colours, no control character but tab and
line feed ([decision 89](decisions/0089-text-as-a-terminal-shows-it.md)).
`structuredContent` has the same for programs, with the bytes as they were
printed (base64 beside what is no UTF-8). The calls were made, in this order,
on a fresh server; ids, times and durations are made equal here. An error is a
result with `isError` and a text that says what to do
([troubleshooting.md](troubleshooting.md)).

For an argument that need not be there `null` means that it is not there, and so
do an empty text, and 0 where the least is more. An unknown argument is an error
that names it; only `description`, `reason`, `explanation` and `thought`, by
which models explain a call, are ignored.

This page is written by `tests/docs/update`; a test says when it is stale.
"""
GIVEN = """
## What a command is given

**Environment**, the later one wins: what the image sets (`ENV`), for both
users and for shell, `argv` and code alike; then `USER`, `LOGNAME` and `PWD`;
then `default_env` of the call, then `env`. Where the image sets none, `LANG` is
`C.UTF-8`, `PYTHONUNBUFFERED` is `1`, `PATH` the usual one, and `HOME`
`/home/sandbox` (without one `/workspace`) or root's `/root`; an image's own
`HOME` counts for both users. Shell text is run by a login shell, and profiles
set `PATH` anew: one that the call says is set once more before the text, one
that the image says is put before theirs.

**Text** is run as it was said, blanks at its ends and all; a shell text of
nothing but blanks is none. Where a line of shell text, or of code in bash or
sh, ends with CRLF, that is taken as LF, also inside quotes and here-documents,
and the answer says so; `printf '\\r\\n'` prints a CRLF. `argv` and other code
are taken byte by byte.

**Sizes**: a shell text, a word of `argv` and a variable with its name have
131,071 bytes at most, which is what the kernel takes; a command has 512
variables at most, and a run 2 MiB in all. `execute_code` takes programs of
1 MiB; what is longer is read from a file.

**What is printed is there when the program is killed**, where the program
does not keep it to itself. Programs that print to a pipe often do, and lose it
when they are killed:

| language | |
| --- | --- |
| Python | writes at once, since `PYTHONUNBUFFERED` is set; the value `""` in \
`env` has it buffer, which is faster for a program with a million prints |
| bash, sh, Node.js | write at once |
| Perl | buffers: `$\\| = 1;` |
| awk, sed, grep, C (stdio) | buffer: `mawk -W interactive`, `sed -u`, \
`grep --line-buffered`, else `stdbuf -oL PROGRAM`; nothing in the environment \
does it, and no library is put into programs for it |
"""
# A title, the tool, its arguments.  RUN stands for the id of the latest run.
RUN = "<run>"
CALLS = (
    ("Two commands, one after another", "run_sandbox", {
        "identifier": "demo",
        "commands": [
            {"shell": "echo hello > /artifacts/hello.txt"},
            {"argv": ["python3", "-c", "print(6 * 7)"]}]}),
    ("One that fails, with what it printed", "run_sandbox", {
        "identifier": "demo",
        "commands": [{"shell": "seq 3; cat /nowhere"}]}),
    ("Without waiting", "run_sandbox", {
        "identifier": "demo",
        "commands": [{"shell": "echo started; sleep 1000"}],
        "options": {"await_completion": False}}),
    ("The run that was started last, after at most a second", "get_run",
     {"run_id": RUN, "wait_ms": 1000}),
    ("The two newest of a sandbox", "list_runs",
     {"identifier": "demo", "limit": 2}),
    ("All there are", "list_sandboxes", {}),
    ("Enough", "control_run", {"run_id": RUN, "action": "cancel"}),
    ("A fresh one by the same name", "restart_sandbox",
     {"identifier": "demo"}),
    ("Gone, with its files; runs and artifacts stay in the history",
     "delete_sandbox", {"identifier": "demo"}),
    ("One for code", "initialize_sandbox", {}),
    ("A program", "execute_code",
     {"code": "import sys\nprint(sys.version_info.major)",
      "language": "python"}),
    ("And gone", "stop_sandbox", {}),
)
# What an answer has to show, where that takes a moment.
SHOWS = {"get_run": lambda content: content["commands"][0]["stdout"]}
PATIENCE = 60


def dump(value, indent=0):
    """JSON in lines of at most WIDTH where that can be."""
    flat = json.dumps(value, ensure_ascii=False)
    if len(flat) + indent <= WIDTH or not isinstance(value, (dict, list)):
        return flat
    pad = "\n" + " " * (indent + 2)
    if isinstance(value, dict):
        items = [f"{json.dumps(k)}: {dump(v, indent + len(k) + 6)}"
                 if not isinstance(v, (dict, list))
                 else f"{json.dumps(k)}: {dump(v, indent + 2)}"
                 for k, v in value.items()]
        lines, line = [], ""
        for item in items:  # several short ones share a line
            if line and ("\n" in item or "\n" in line or
                         len(line) + len(item) + indent + 4 > WIDTH):
                lines.append(line)
                line = ""
            line += (", " if line else "") + item
        lines.append(line)
        return "{" + pad + ("," + pad).join(lines) + pad[:-2] + "}"
    return "[" + pad + ("," + pad).join(
        dump(v, indent + 2) for v in value) + pad[:-2] + "]"


# What differs from one time to the next.
MEASURED = {"queue_ms": 1, "duration_ms": 30, "cpu_seconds": 0.01,
            "memory_peak_bytes": 4194304,
            "trace_id": "0123456789abcdef0123456789abcdef"}


def all_plain(value, seen):
    """pages.plain of every text in it."""
    if isinstance(value, dict):
        return {k: MEASURED.get(k, all_plain(v, seen))
                for k, v in value.items()}
    if isinstance(value, (list, tuple)):
        return [all_plain(v, seen) for v in value]
    return plain(value, seen) if isinstance(value, str) else value


# ---- arguments

def kind(schema):
    """A schema's type, with its bounds, in words."""
    if "enum" in schema:
        return "one of " + ", ".join(f"`{v}`" for v in schema["enum"])
    if "anyOf" in schema:
        return " or ".join(kind(s) for s in schema["anyOf"])
    name = {"string": "text", "integer": "integer", "boolean": "true, false",
            "number": "number", "array": "list", "object": "object"}[
                schema["type"]]
    if name == "list" and schema.get("items", {}).get("type") == "string":
        name = "list of texts"
    low, high = (schema.get(k) for k in ("minimum", "maximum"))
    if schema["type"] == "array":
        high = schema.get("maxItems")
    if schema["type"] == "string":
        high = schema.get("maxLength")
    if low is not None and high is not None:
        return f"{name}, {low} to {high}"
    if low is not None:
        return f"{name}, {low} or more"
    return f"{name}, at most {high}" if high is not None else name


def rows(schema, prefix=""):
    """(name, needed, schema) of all that can be given, depth first."""
    for name, what in schema.get("properties", {}).items():
        yield prefix + name, name in schema.get("required", []), what
        if what.get("type") == "object":
            yield from rows(what, f"{prefix}{name}.")
        elif what.get("items", {}).get("type") == "object":
            yield from rows(what["items"], f"{prefix}{name}[].")


def arguments(tool):
    lines = []
    for name, needed, what in rows(tool["inputSchema"]):
        text = what.get("description", "").replace("|", "\\|")
        default = what.get("default")
        if default not in (None, False):
            text += f"{'; ' if text else ''}default `{default}`" \
                if not isinstance(default, bool) \
                else f"{'; ' if text else ''}default `{str(default).lower()}`"
        lines.append(f"| `{name}`{' (needed)' if needed else ''} "
                     f"| {kind(what)} | {text} |")
    return "| argument | | |\n| --- | --- | --- |\n" + "\n".join(lines) + "\n"


# ---- calls

def block(language, text):
    assert text.count("\n") <= BLOCK_LINES_MAX, \
        f"a block of {text.count(chr(10))} lines: choose a shorter example"
    return f"```{language}\n{text.rstrip()}\n```\n"


def played(client):
    """{tool: Markdown of its calls}"""
    out, run, whole = {}, None, []
    for title, name, given in CALLS:
        sent = json.loads(json.dumps(given).replace(RUN, run or ""))
        for _ in range(PATIENCE):
            result = client.tool(name, **sent)
            content = result["structuredContent"]
            if name not in SHOWS or SHOWS[name](content):
                break
        run = content.get("run_id", run)
        whole.append((title, name, sent, result["content"][0]["text"],
                      content, result.get("isError", False)))
    # Ids are numbered over all calls, so that the reader can follow them.
    for title, name, sent, said, content, bad in all_plain(whole, []):
        part = f"{title}:\n\n"
        part += block("json", dump({"name": name, "arguments": sent}))
        part += "\n" + block("text", said)
        part += "\nStructured" + (", with `isError`" if bad else "") + ":\n\n"
        part += block("json", dump(content))
        out[name] = (out[name] + "\n" if name in out else "") + part
    return out


def generate(client):
    """The whole page."""
    client.initialize()
    tools = json.loads(with_shown_image(
        json.dumps(client.rpc("tools/list")["tools"])))
    calls = played(client)
    missing = [t["name"] for t in tools if t["name"] not in calls]
    assert not missing, f"no call for {missing}: add one to CALLS"
    page = HEAD + "\n| tool | |\n| --- | --- |\n"
    for tool in tools:
        page += f"| [`{tool['name']}`](#{tool['name']}) | {tool['title']} |\n"
    page += GIVEN
    for tool in tools:
        page += f"\n## {tool['name']}\n\n{tool['description']}\n\n"
        page += arguments(tool) + "\n" + calls[tool["name"]]
    return page
