"""docs/troubleshooting.md has what the sources can say, and no more."""
import pytest

import troubles
from troubles import codes, covers, explained_codes, explained_texts, said

# Said by a program that is named there, not by us.
NOT_OURS = ("systemctl …", "usermod …", "docker …", "mcp-sandboxd --help",
            "Content-Type: …", "Accept: …", "Authorization: …",
            "make install", "GET /", "DELETE /mcp…", "journalctl -u",
            "sandboxctl …", "kubectl …")


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
