"""docs/troubleshooting.md has what the sources can say, and no more."""
import pytest

import troubles
from troubles import codes, covers, explained_codes, explained_texts, said

# Said by a program that is named there, not by us.
NOT_OURS = ("systemctl …", "usermod …", "docker …", "mcp-sandboxd --help",
            "Content-Type: …", "Accept: …", "Authorization: …",
            "make install", "GET /", "DELETE /mcp…", "journalctl -u",
            "sandboxctl …")


@pytest.mark.parametrize("kind", codes())
def test_every_code_is_explained_once_and_no_other(kind):
    known = codes()[kind]
    assert len(known) > 3
    found = explained_codes()[kind]
    assert sorted(found) == sorted(known)


def test_every_text_is_explained():
    entries = explained_texts()
    missing = [f"{where}: {text}" for text, where in said().items()
               if not any(covers(e, text) for e in entries)]
    assert missing == [], (
        "docs/troubleshooting.md lacks them: add each to a row of a table, or "
        "to INTERNAL of tests/docs/troubles.py if no user is told")


def test_every_entry_is_said_by_something():
    texts = list(said())
    idle = [e for e in explained_texts()
            if not any(covers(e, text) for text in texts)
            and not troubles.is_one(e, NOT_OURS)]
    assert idle == []


def test_internal_texts_are_there_to_be_left_out():
    assert all(troubles.read(path) for path in troubles.INTERNAL)


@pytest.mark.parametrize("old, new", [
    ("| `memory` |", "| `memories` |"), ("| 75 |", "| 76 |"),
    ("| `-32001` |", "| `-32002` |"), ("`busy`", "`buzy`"),
    ("`BACKEND_UNAVAILABLE`", "`BACKEND`"),
])
def test_a_code_that_is_wrong_on_the_page_is_found(old, new, monkeypatch):
    page = troubles.read(troubles.PAGE)
    assert old in page
    monkeypatch.setattr(troubles, "read", lambda path: page.replace(old, new))
    found = explained_codes()
    monkeypatch.undo()
    assert any(sorted(found[k]) != sorted(v) for k, v in codes().items())


def test_a_text_that_is_not_on_the_page_is_found():
    entries = [e for e in explained_texts() if "limit reached" not in e]
    assert any("limit reached" in text for text in said()
               if not any(covers(e, text) for e in entries))


# What is taken from a source.

@pytest.mark.parametrize("call, texts", [
    ('e, ERR_INVAL, "plain words")', ["plain words"]),
    ('e, ERR_INVAL, "%s: want %zu, got \\"%.80s\\"", a, b, c)',
     ['…: want …, got "…"']),
    ('e, ERR_LIMIT, "over %" PRIu64 " bytes of "\n LAYOUT_X ".db", n)',
     ["over … bytes of ….db"]),
    ('e, ERR_BACKEND, "%s", x ? "one thing" : "another thing")',
     ["one thing", "another thing"]),
    ('e, ERR_BACKEND, "%s", w->detail)', []),
    ('x, 404, "not_found", "there is %d%% nothing")', ["there is …% nothing"]),
])
def test_texts_are_taken_from_calls(call, texts):
    assert troubles.texts_of(troubles.arguments(call, 0)) == texts


@pytest.mark.parametrize("pattern, text, fits", [
    ("limit reached: …", "limit reached: … runs", True),
    ("… want …", "x is …, want more", True),
    ("limit reached: …", "no limit reached: x", False),
    ("a.b", "axb", False),
])
def test_a_pattern_covers(pattern, text, fits):
    assert covers(pattern, text) == fits
