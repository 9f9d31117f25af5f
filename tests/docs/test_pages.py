"""Every block of every page is played, parsed, or says why not."""
import os
import re
import tempfile

import pytest

from pages import (ELSEWHERE, IN_CONTAINERS, PAGES, TOP, blocks_of, check_form,
                   check_indented, plain, play, read)

NOT_PLAYED_MAX = 12  # of all pages together: it is the exception


@pytest.mark.parametrize("page", PAGES)
def test_blocks_are_what_they_say(page):
    for block in blocks_of(page, read(page)):
        if block.info is None:
            check_indented(block)
        else:
            check_form(block)


@pytest.mark.parametrize("page", sorted(set(PAGES) - set(IN_CONTAINERS)))
def test_commands_do_what_the_page_says(page, shown, shell_env, tmp_path):
    play(blocks_of(page, read(page)), shown, shell_env, tmp_path)


def test_readme_holds_where_the_first_call_takes_its_time(
        shown, shell_env, tmp_path):
    """What takes more than a second may be answered as an event stream."""
    text, quick = read("README.md"), "echo hello > /artifacts"
    assert quick in text
    slow = text.replace(quick, "sleep 3; " + quick)
    played = [b for b in blocks_of("README.md", slow) if quick in b.text]
    assert play(played, shown, shell_env, tmp_path) == 1


def test_readme_holds_where_bootstrap_has_an_engine_of_its_own(
        shown, shell_env, tmp_path):
    """Nothing is installed and no engine is where a server looks for one."""
    programs, _, path = shell_env["PATH"].partition(":")
    lines = [f"PATH={programs}:$PATH"] + [
        f"export {k}={shell_env[k]}" for k in ("DOCKER_HOST", "SANDBOX_IMAGE")]
    (tmp_path / "build").mkdir()
    (tmp_path / "build/env").write_text("\n".join(lines) + "\n")
    env = {k: v for k, v in shell_env.items()
           if k not in ("DOCKER_HOST", "SANDBOX_IMAGE")}
    play(blocks_of("README.md", read("README.md")), shown,
         {**env, "PATH": path}, tmp_path)


def test_readmes_server_that_does_not_get_ready_is_given_up(
        shown, shell_env, tmp_path):
    text, patience = read("README.md"), "+ 30))"
    assert patience in text
    with tempfile.TemporaryDirectory() as top:  # what it leaves there
        os.chmod(top, 0o755)
        with pytest.raises(AssertionError) as failed:
            play(blocks_of("README.md", text.replace(patience, "+ 0))")),
                 shown, {**shell_env, "TMPDIR": top,
                         "DOCKER_HOST": f"unix://{top}/none.sock"}, tmp_path)
    assert re.search(r"^\+ cat .*/log$", str(failed.value), re.M)


def test_a_reader_of_readme_has_a_first_answer_in_three_minutes():
    """At 150 words a minute, commands as well."""
    before, found, _ = read("README.md").partition("### Kill it")
    assert found and len(before.split()) <= 3 * 150


def test_few_blocks_are_not_played():
    skipped = [b for page in PAGES for b in blocks_of(page, read(page))
               if b.reason is not None]
    assert len(skipped) <= NOT_PLAYED_MAX, skipped


def test_what_is_played_elsewhere_is_named_somewhere():
    lines = "".join(b.text for page in PAGES
                    for b in blocks_of(page, read(page)) if b.info is None)
    assert [e for e in ELSEWHERE if e not in lines] == []


def broken_links(page, text):
    """Relative ones whose file, or whose heading, is not there."""
    bad = []
    for target in re.findall(r"\]\(([^)\s]+)\)", text):
        if "://" in target:
            continue
        path, _, heading = target.partition("#")
        path = os.path.normpath(os.path.join(os.path.dirname(page), path)) \
            if path else page
        if not os.path.exists(os.path.join(TOP, path)):
            bad.append(target)
        elif heading and heading not in headings(
                text if path == page else read(path)):
            bad.append(target)
    return bad


def headings(text):
    return [re.sub(r"[^a-z0-9_ -]", "", h.lower()).replace(" ", "-")
            for h in re.findall(r"^#+ (.*)$", text, re.M)]


@pytest.mark.parametrize("page", PAGES)
def test_links_lead_somewhere(page):
    assert broken_links(page, read(page)) == []


def lost_files(text):
    """Files of the tree that it names with a folder, and that are not there."""
    return [path for path in re.findall(
        r"`((?:common|docs|images|schema|supervisor|tests|worker)/"
        r"[\w./-]*[a-z/])`",
        text) if not os.path.exists(os.path.join(TOP, path))]


@pytest.mark.parametrize("page", PAGES)
def test_files_that_are_named_are_there(page):
    assert lost_files(read(page)) == []


def test_a_file_that_is_gone_is_found():
    assert lost_files("`worker/gone.c`, `worker/task.c`") == ["worker/gone.c"]


# What is wrong in a page is found.

@pytest.mark.parametrize("link", ["nowhere.md", "#nowhere", "words.md#none"])
def test_a_broken_link_is_found(link):
    assert broken_links("docs/page.md", f"# Page\n[a]({link})\n") == [link]


@pytest.mark.parametrize("text", [
    "```sh\nfalse\n```\n",
    "```sh\ncurl -sf http://127.0.0.1:8080/nowhere\n```\n",
    "```sh\nmcp-sandboxd clients nobody\n```\n",
    "```sh\necho 1\n```\n\n```text\n2\n```\n",
    "```sh\necho 1\n```\n\n```text\n1\n2\n```\n",
    "```sh\nexit 0\n```\n\n```sh\necho never\n```\n",
])
def test_a_wrong_command_fails(text, shown, shell_env, tmp_path):
    with pytest.raises(AssertionError):
        play(blocks_of("page", text), shown, shell_env, tmp_path)


def test_what_a_failed_page_started_is_ended(shown, shell_env, tmp_path):
    text = "```sh\nsleep 300 & echo $! >pid; false\n```\n"
    with pytest.raises(AssertionError):
        play(blocks_of("page", text), shown, shell_env, tmp_path)
    assert not os.path.exists("/proc/" + (tmp_path / "pid").read_text().strip())


@pytest.mark.parametrize("text", [
    '```json\n{"a": 1,}\n```\n',
    '```json\n{"a": 1, "a": 2}\n```\n',
    "```yaml\na: b: c\n```\n",
    "```toml\n[a\n```\n",
    "```python\nif:\n```\n",
    "```sh\nif\n```\n",
    "```sh (not played: no reason)\nif\n```\n",
    "```klingon\n```\n",
])
def test_a_wrong_block_fails(text):
    with pytest.raises(AssertionError):
        check_form(blocks_of("page", text)[0])


def test_a_command_that_nobody_plays_fails():
    blocks = blocks_of("page", "Do\n\n    ./bootstrap run\n    ls\n\nso.\n")
    with pytest.raises(AssertionError, match="ls"):
        check_indented(blocks[0])


def test_what_is_right_is_let_through(shown, shell_env, tmp_path):
    text = ("```sh\nX=$(curl -s http://127.0.0.1:8080/healthz)\n```\n"
            "```sh\ntest -n \"$X\"; echo it took 17 ms\n```\n\n"
            "```text\nit took 3 ms\n```\n")
    assert play(blocks_of("page", text), shown, shell_env, tmp_path) == 2


def test_ids_and_times_are_made_equal():
    one = "run 01a203f6-70a9-753e-a627-7d4e8b78218f of 01a203f6-70a9-753e-" \
          "a627-7d4e8b782190 at 2026-11-22T15:53:32.074Z took 3.4 ms"
    assert plain(one) == (
        "run 00000000-0000-4000-8000-000000000001 of 00000000-0000-4000-8000-"
        "000000000002 at 2026-01-01T12:00:00.000Z took 1 ms")


def test_the_checks_image_has_the_name_that_is_shown(monkeypatch):
    monkeypatch.setenv("SANDBOX_IMAGE", "elsewhere/it:2")
    assert plain("ready, image elsewhere/it:2, not elsewhere/it:3") == (
        "ready, image localhost/mcp-sandboxd/sandbox:latest, "
        "not elsewhere/it:3")
    monkeypatch.delenv("SANDBOX_IMAGE")
    assert plain("image elsewhere/it:2") == "image elsewhere/it:2"
