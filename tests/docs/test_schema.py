"""A table of schema/ with a fault ends schema/gen.py, and so the build, with
the file, the line and what is wrong."""
import os

import pytest

from pages import TOP, run

LIST = "list messages\nversion 1\nchannel c\ndirection d\n"
FRAMES = "list frames\nversion 1\ndirection up max 100\n"

FAULTS = (
    ("conf keys", "A|int|1|0|2|m|no\n", ":1: 7 columns, want 8"),
    ("conf keys", "# x\n\na|int|1|0|2|m|no|t\n", ':3: key "a"'),
    ("conf keys", "A|int|3|0|2|m|no|t\n", ":1: A: default 3 is not in 0..2"),
    ("conf keys", "A|int|1|0x0|2|m|no|t\n", "must be numbers"),
    ("conf keys", "A|bool|yes|||m|no|t\n", "must be true or false"),
    ("conf keys", "A|bool|true|0|1|m|no|t\n", "only an int has min and max"),
    ("conf keys", "A|enum:a,b|c|||m|no|t\n", "default c is none of a,b"),
    ("conf keys", "A|text|a|||m|no|t\n", "unknown type text"),
    ("conf keys", "A|str|a|||x|no|t\n", "want some of mfw"),
    ("conf keys", "A|str|a |||m|no|t\n", "starts or ends with a blank"),
    ("conf keys", "A|str|\u00e9|||m|no|t\n", "ASCII"),
    ("conf keys", "A|str||||m|no|t\nA|str||||m|no|t\n",
     ":2: key A was on line 1"),
    ("conf keys", "# nothing\n", "the table is empty"),
    ("quota keys", "a|b|1|2|3|text\n", ":1: a: its default is none"),
    ("words header", "enum a A 0 -- x\nb\nb\n", ":3: b again"),
    ("events header", "\n\ta text -- x\n", ":2: want: <tab>FIELD"),
    ("rows header", "row a 0 -- x\nb u31; key\n", ":2: want: FIELD TYPE"),
    ("metrics list", "mcp_x_total gauge - -- X.\n", ":1: counters, and only"),
    ("seccomp json", "allow: read\nallow: read\n", ":2: read again"),
    ("usage source", "program|a|1|b\noption|-x||c\n", ':2: "-x" is no option'),
    ("clients header", "@page\nx\n@client a | b\n", ":3: want @client"),
    ("msg header", "", ":0: a list has a version and a message"),
    ("msg header", "version 1\n", ':1: begins with "list messages"'),
    ("msg header", "# nothing\n  u8 a\n", ":2: continues no message"),
    ("msg header", LIST + "what is this\n", ":5: what is what?"),
    ("msg header", LIST + "1 A\n\n1 B\n", ":7: number 1 is A already"),
    ("msg header", LIST + "1 A when UP\n", ":5: UP is no state of this"),
    ("msg header", LIST + "enum e A=255 B\n", ":5: B is 256, more than"),
    ("msg header", LIST + "1 A: u31 a\n", ":5: a: unknown type u31"),
    ("msg header", LIST + "1 A: str a\n", ":5: a: str needs a bound"),
    ("msg header", LIST + "1 A: u8<3..2> a\n", ":5: a: u8 is not <3..2>"),
    ("msg header", LIST + "1 A:\n  u8 a,\n  u8 a\n2 B\n",
     ":5: a is no new name of a field"),
    ("msg header", LIST + "1 A: fd? a, fd b\n",
     ":5: only the last descriptor may be missing"),
    ("msg header", LIST + "1 A: bytes<65536> a\n",
     ":5: A may have 65556 bytes, more than 65536"),
    ("msg header", FRAMES + "1 A: rest a, u8 b\n",
     ":4: rest is the last field"),
    ("msg header", FRAMES + "1 A: fd a\n", ":4: a: fd is only for messages"),
)


@pytest.mark.parametrize("what, text, why", FAULTS)
def test_a_fault_is_told_with_its_line(tmp_path, what, text, why):
    table, out = tmp_path / "table.txt", tmp_path / "out"
    table.write_text(text, encoding="utf-8")
    done = run("/usr/bin/python3", "-B", os.path.join(TOP, "schema/gen.py"),
               *what.split(), table, out)
    assert done.returncode == 1
    assert done.stderr.startswith(str(table)) and why in done.stderr
    assert not out.exists()
