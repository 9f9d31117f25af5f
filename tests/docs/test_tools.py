"""docs/tools.md is what a server says and does."""
import difflib
import json
import os

import pytest

import tools_page
from pages import blocks_of, plain, read
from server import Engine, Server

STALE = ("docs/tools.md is not what a server says any more; with the engine's "
         "DOCKER_HOST and SANDBOX_IMAGE: tests/docs/update\n")


@pytest.fixture(scope="module")
def page(build):
    """Made by a server of its own, on which nothing else is."""
    s = Server(build)
    yield tools_page.generate(s.client())
    s.destroy(Engine(os.environ["DOCKER_HOST"]))


def differences(old, new):
    return "".join(difflib.unified_diff(
        old.splitlines(keepends=True), new.splitlines(keepends=True),
        "docs/tools.md", "what a server says", n=2))


def test_the_page_is_what_a_server_says_and_does(page):
    found = differences(read(tools_page.PAGE), page)
    assert found == "", STALE + found


def test_every_call_of_the_page_is_one_that_was_played():
    calls = [json.loads(b.text) for b in blocks_of("", read(tools_page.PAGE))
             if b.language == "json" and '"arguments"' in b.text]
    played = [name for _, name, _ in tools_page.CALLS]
    assert sorted(c["name"] for c in calls) == sorted(played)


def test_what_is_longer_than_a_reader_wants_is_refused():
    with pytest.raises(AssertionError):
        tools_page.block("text", "line\n" * (tools_page.BLOCK_LINES_MAX + 1))


@pytest.mark.parametrize("value", [
    {}, [], {"a": []}, {"a": "x" * 200}, [1] * 60, {"a": {"b": ["c" * 90] * 3}},
    {f"k{i}": {"n": i, "t": "y" * 40} for i in range(9)}, "text\n", None])
def test_json_stays_what_it_was(value):
    assert json.loads(tools_page.dump(value)) == value


def test_ids_are_numbered_over_all_texts():
    one, two = ("01a203f6-70a9-753e-a627-7d4e8b78218f",
                "01a203f6-70a9-753e-a627-7d4e8b782190")
    seen = []
    assert [plain(t, seen)[-1] for t in (one, two, "\n" + one)] == \
        ["1", "2", "1"]
