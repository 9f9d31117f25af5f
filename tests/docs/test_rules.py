"""Each test that docs/mcp-rules.md names is there."""
import glob
import os
import re

import pytest

from pages import TOP, read

FILES = {os.path.basename(path).rpartition(".")[0]: path
         for path in glob.glob(os.path.join(TOP, "tests/**/test_*.[cp]*"),
                               recursive=True)
         if path.endswith((".c", ".py"))}


def named():
    """(rule, file, test) of each test of each row"""
    for line in read("docs/mcp-rules.md").split("\n"):
        if not line.startswith("|") or line.startswith(("| rule", "| ---")):
            continue
        rule, tests = [cell.strip() for cell in line.strip("|").split(" | ")]
        file = None
        for word in re.findall(r"`([^`]*)`", tests):
            if word.startswith("test_"):
                file = word
            else:
                yield rule, file, word


@pytest.mark.parametrize("rule,file,test", named())
def test_a_rule_has_its_test(rule, file, test):
    with open(FILES[file], encoding="utf-8") as f:
        text = f.read()
    assert re.search(rf"\b(test_)?{test}\b", text), (rule, file)


def test_every_raw_test_is_of_a_rule():
    for name in ("test_mcp_raw", "test_mcp_bounds"):
        with open(FILES[name], encoding="utf-8") as f:
            tests = re.findall(r"^def test_(\w+)", f.read(), re.M)
        listed = {test for _, file, test in named() if file == name}
        # What is another side of a rule that is listed.
        assert set(tests) - listed <= {
            "two_hosts_or_lengths_are_refused",
            "sessions_that_were_left_cost_nothing"}
