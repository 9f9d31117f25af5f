"""docs/tools.md: what tools/list says, and calls that are really made.

Its prose, before the table of tools and between that and the first tool, stays.
Arguments come from the schemas that a running server gives, answers from that
server; ids, times and durations are made equal (pages.plain).
"""
import json
import re

from pages import plain, read, with_shown_image

PAGE = "docs/tools.md"
WIDTH = 100
BLOCK_LINES_MAX = 60
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
            "memory_peak_bytes": 4194304, "elapsed_ms": 1000,
            "killed_in_ms": 119000,
            "trace_id": "0123456789abcdef0123456789abcdef"}


def all_plain(value, seen):
    """pages.plain of every text in it."""
    if isinstance(value, dict):
        return {k: MEASURED.get(k, all_plain(v, seen))
                for k, v in value.items()}
    if isinstance(value, (list, tuple)):
        return [all_plain(v, seen) for v in value]
    return as_shown(plain(value, seen)) if isinstance(value, str) else value


def as_shown(text):
    """The server's port and seconds of a text as the page has them."""
    text = re.sub(r"\bhttp://127\.0\.0\.1:\d+/", "http://127.0.0.1:8080/", text)
    return re.sub(r"(has run for|ends within) \d+ s\b", lambda m: {
        "has run for": "has run for 1 s",
        "ends within": "ends within 119 s"}[m[1]], text)


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
        part += "\nStructured, where it is asked for" + (
            ", with `isError`" if bad else "") + ":\n\n"
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
    head, rest = read(PAGE).split("\n| tool | |\n")
    page = head + "\n| tool | |\n| --- | --- |\n"
    for tool in tools:
        page += f"| [`{tool['name']}`](#{tool['name']}) | {tool['title']} |\n"
    page += rest[rest.index("\n## "):rest.index(f"\n## {tools[0]['name']}\n")]
    for tool in tools:
        page += f"\n## {tool['name']}\n\n{tool['description']}\n\n"
        page += arguments(tool) + "\n" + calls[tool["name"]]
    return page
