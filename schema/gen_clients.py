#!/usr/bin/python3
"""gen_clients.py header|markdown FILE - what is made of schema/clients.txt

header    supervisor/master/clients_gen.h: texts for a terminal
markdown  docs/clients.md
"""
import re
import sys
import textwrap

URL = "http://127.0.0.1:8080/mcp"


class Client:
    """One section: texts are lists of lines."""

    def __init__(self, name, title, speaks):
        self.name = name
        self.title = title
        self.speaks = speaks
        self.lines = []


def fail(path, number, why):
    sys.exit(f"{path}:{number}: {why}")


def parse(path):
    """The head of the page, and the clients."""
    head, clients = None, []
    fenced = False
    with open(path, encoding="ascii") as f:
        for number, line in enumerate(f, 1):
            line = line.rstrip("\n")
            if line.startswith("@client "):
                part = [p.strip() for p in line[8:].split("|")]
                if fenced or len(part) != 3 or "" in part:
                    fail(path, number, "want @client NAME | TITLE | SPEAKS")
                if not re.fullmatch(r"[a-z][a-z0-9-]*", part[0]) or \
                        part[0] in [c.name for c in clients]:
                    fail(path, number, f"{part[0]} is no name, or not new")
                clients.append(Client(*part))
            elif clients:
                if line.startswith("```"):
                    if fenced == (line != "```"):
                        fail(path, number, "a block opens with its "
                             "language and ends with ```")
                    fenced = not fenced
                clients[-1].lines.append(line)
            elif line == "@page":
                head = []
            elif head is not None:
                head.append(line)
            elif line and not line.startswith("#"):
                fail(path, number, "text before @page")
    if fenced or not clients or not head:
        fail(path, number, "a block without end, or no page or client")
    return head, clients


def put_markdown(head, clients):
    out = "\n".join(head).strip("\n").replace("@URL@", URL)
    out += "\n\n| client | speaks | name |\n| --- | --- | --- |\n"
    for c in clients:
        out += f"| [{c.title}](#{anchor(c.title)}) | {c.speaks} " \
               f"| `{c.name}` |\n"
    for c in clients:
        text = "\n".join(c.lines).strip("\n").replace("@URL@", URL)
        out += f"\n## {c.title}\n\n{text}\n"
    sys.stdout.write(out)


def anchor(title):
    return title.lower().replace(" ", "-")


def terminal(c):
    """Without the marks of Markdown; blocks stand as they are to be pasted."""
    out = [f"{c.title} ({c.name}), by {c.speaks}", ""]
    text = "\n".join(c.lines).strip("\n")
    for n, part in enumerate(re.split(r"^```.*\n?", text, flags=re.M)):
        if n % 2:
            out.append(part)
            continue
        for paragraph in part.strip("\n").split("\n\n"):
            words = paragraph.replace("`", "")
            out += textwrap.wrap(words, 78, break_on_hyphens=False) + [""]
    return "\n".join(out).strip("\n") + "\n"


def cstr(s):
    return '"' + s.replace("\\", "\\\\").replace('"', '\\"') + '\\n"'


def put_header(clients):
    print("/* Made of schema/clients.txt; for supervisor/master/clients.c. */")
    for c in clients:
        lines = "\n    ".join(cstr(n) for n in terminal(c).splitlines())
        print(f'{{"{c.name}",\n    {lines}}},')


def main():
    if len(sys.argv) != 3 or sys.argv[1] not in ("header", "markdown"):
        sys.exit(f"usage: {__doc__.splitlines()[0]}")
    head, clients = parse(sys.argv[2])
    if sys.argv[1] == "header":
        put_header(clients)
    else:
        put_markdown(head, clients)


if __name__ == "__main__":
    main()
