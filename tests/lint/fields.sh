#!/bin/sh
# fields.sh - every field of a message or frame is read by somebody
#
# A function that takes a "struct msg_x *m" or "struct frame_x *m" reads the
# fields that it names as m->field, and one that calls msg_get_x(..., &m, ...)
# those that it names as m.field; together they must name each field.
# tests/lint/fields.txt has the exceptions, with reasons.
set -eu
cd "$(dirname "$0")/../.."
. tests/lint/lib.sh

files '^(common|supervisor|worker|images/agent)/.*\.c$' |
    /usr/bin/python3 -c '
import fnmatch
import re
import sys

sys.dont_write_bytecode = True
sys.path.insert(0, "schema")
import gen  # noqa: E402

TAKES = re.compile(r"struct (msg|frame)_(\w+) \*(\w+)")
GETS = re.compile(r"\b(msg|frame)_get_(\w+)\(\w+, &(\w+)")
read = set()
for path in sys.stdin.read().split():
    with open(path, encoding="utf-8") as f:
        functions = f.read().split("\n}\n")
    for text in functions:
        for how, sign in ((TAKES, "->"), (GETS, r"\.")):
            for prefix, message, name in how.findall(text):
                for field in re.findall(rf"\b{name}{sign}(\w+)", text):
                    read.add((prefix, message, field))
with open("tests/lint/fields.txt", encoding="utf-8") as f:
    excepted = {tuple(line.split()[:3]): False
                for line in f if line.strip() and line[0] != "#"}
for path, prefix in (("ipc", "msg"), ("frame", "frame")):
    for m in gen.load("msg", gen.Table(f"schema/{path}.txt")).messages:
        for name in [f.name for f in m.fields] + (["id"] if m.id else []):
            if (prefix, m.low, name) in read:
                continue
            known = [e for e in excepted if e[:2] == (path, m.name)
                     and fnmatch.fnmatchcase(name, e[2])]
            for e in known:
                excepted[e] = True
            if not known:
                print(f"schema/{path}.txt: {m.name}: nobody reads {name}")
for e, used in excepted.items():
    if not used:
        print("tests/lint/fields.txt: not needed any more:", *e)
' | verdict 'read it where it arrives, or take it out of the list'
