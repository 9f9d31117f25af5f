"""What is made for shells and for man from the tables of command lines."""
import os

import pytest

from pages import run
from screens import Screen

PAGES = ("mcp-sandboxd.8", "sandboxctl.1", "mcp-sandboxd.conf.5")


@pytest.mark.parametrize("page", PAGES)
def test_a_man_page_is_good_man(build, page):
    done = run("mandoc", "-Tlint", "-Wwarning",
               os.path.join(build, "man", page))
    # They say which version they are of, and not which day.
    assert [n for n in done.stdout.splitlines()
            if "missing date" not in n] == []
    shown = run("mandoc", "-Tutf8", os.path.join(build, "man", page)).stdout
    assert shown.count("\n") > 30


# What is typed, and what may follow; "" stands for what is not begun.
TYPED = {
    "sandboxctl run t": ["tail"],
    "sandboxctl --data-dir /x tenant dis": ["disable"],
    "sandboxctl token add acme --role m": ["metrics"],
    "sandboxctl --off": ["--offline"],
    "sandboxctl audit ": ["list", "verify"],
    "sandboxctl whoami ": [],
    "mcp-sandboxd doc": ["doctor"],
    "mcp-sandboxd --che": ["--check-config"],
}


@pytest.mark.parametrize("line", TYPED)
def test_bash_completes(build, line):
    words = line.split(" ")
    function = "_" + words[0].replace("-", "_")
    done = run("bash", "-c",
               f'. "$0"; COMP_WORDS=("$@"); COMP_CWORD=$(($# - 1)); '
               f'{function}; printf "%s\\n" "${{COMPREPLY[@]}}"',
               os.path.join(build, "completion", words[0]), *words)
    assert (done.returncode, done.stderr) == (0, "")
    assert done.stdout.split() == TYPED[line]


def test_bash_completes_files(build, tmp_path):
    (tmp_path / "one.tar").touch()
    done = run("bash", "-c", '. "$0"; complete -p sandboxctl; '
               "COMP_WORDS=(sandboxctl restore o); COMP_CWORD=2; _sandboxctl; "
               'echo "${COMPREPLY[@]}"',
               os.path.join(build, "completion", "sandboxctl"), cwd=tmp_path)
    assert done.stdout.splitlines() == [
        "complete -F _sandboxctl sandboxctl", "one.tar"]


def test_zsh_completes(build):
    """As a person has it: typed, with the tabulator, on a terminal."""
    screen = Screen(["zsh", "-f", "-i"], env={"PS1": "> "})
    screen.press(
        f"fpath=({build}/completion $fpath); autoload -Uz compinit; "
        "compinit -D -u; echo be''gun\n".encode())
    screen.wait_for(b"begun")
    for typed, follows in (
            ("sandboxctl run t\t", b"ail"),
            ("sandboxctl --data-dir /tmp tenant dis\t", b"able"),
            ("sandboxctl token add acme --role m\t", b"etrics"),
            ("mcp-sandboxd doc\t", b"tor")):
        # What the shell shows of it is what it was asked, and what follows.
        screen.press(typed.encode())
        screen.wait_for(typed.strip().rsplit(" ", 1)[1].encode() + follows)
        screen.press(b"\x15")
    screen.press(b"exit\n")
    assert screen.finish()[0] == 0
