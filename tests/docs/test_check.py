"""What ./bootstrap check runs, with --more and with arguments."""
import argparse
import importlib.machinery
import importlib.util
import os

import pytest

from pages import TOP


@pytest.fixture(scope="module")
def run():
    """tests/run as a module."""
    path = os.path.join(TOP, "tests/run")
    loader = importlib.machinery.SourceFileLoader("tests_run", path)
    spec = importlib.util.spec_from_loader("tests_run", loader)
    module = importlib.util.module_from_spec(spec)
    loader.exec_module(module)
    return module


def jobs(run, tmp_path, *args, more=False):
    """{name: command} of what it would run."""
    return {j.name: j.command
            for j in run.all_jobs(str(tmp_path), more, list(args))}


@pytest.fixture(params=["sanitizers", "gcc"])
def build(request):
    return request.param


def files_of(suite):
    return {os.path.join("tests", suite, f) for f in os.listdir(
        os.path.join(TOP, "tests", suite))
        if f.startswith("test_") and f.endswith(".py")}


def words_of(found, name, build):
    """What the jobs of that name give to pytest: what is run, and what of it
    is left out."""
    words = [word for job, command in found.items()
             if job.startswith(name) and job.endswith(f"({build})")
             for word in command if word.startswith(("tests/", "--deselect="))]
    left = {w.split("=", 1)[1] for w in words if "=" in w}
    return [w for w in words if "=" not in w], left


def run_whole(run, tmp_path, suite, build):
    """The files that check and --more run whole on that build; none twice in
    one way, and a test that the one has chosen is left out by the other."""
    every = set()
    for name in (suite, f"apart: {suite}", *(
            f"{c.name}: {suite}" for c in run.COLUMNS if suite in c.tests)):
        (here, out), (there, left) = (
            words_of(jobs(run, tmp_path, more=more), name, build)
            for more in (False, True))
        files = [f for word in [*here, *there] for f in (
            files_of(suite) - left if word == f"tests/{suite}" else [word])]
        chosen = {f for f in files if "::" in f}
        assert not out
        assert all(os.path.exists(os.path.join(TOP, test.split("::")[0]))
                   for test in chosen)
        assert not there or chosen <= left
        assert len(files) == len(set(files)), name
        every |= set(files) - chosen
    return every


def test_check_and_more_run_every_file(run, tmp_path):
    """On both builds, unless its suite is of none; what is apart on one."""
    for suite in run.SUITES:
        on = {b: run_whole(run, tmp_path, suite, b)
              for b in ("sanitizers", "gcc")}
        apart = {f"tests/{suite}/{f}" for f in run.APART.get(suite, ())}
        if suite in run.NOT_ON:
            assert on.pop(run.NOT_ON[suite]) == set()
            assert on.popitem()[1] == files_of(suite)
        else:
            assert on["gcc"] == files_of(suite) - apart
            assert on["sanitizers"] == files_of(suite) - set(run.ON_GCC_ALONE)


def test_a_column_has_all_that_is_of_a_carrier(run, tmp_path):
    """A file is left out by its name alone: a new one is run."""
    more = jobs(run, tmp_path, more=True)
    for column in run.COLUMNS:
        for suite, tests in column.tests.items():
            files, left = words_of(more, f"{column.name}: {suite}", "gcc")
            assert left == {f"tests/{suite}/{test}" for test in tests}
            out = {f"tests/{suite}/{f}" for f in column.left_out(suite)}
            assert out <= files_of(suite)
            assert set(files) == files_of(suite) - out


def test_the_shares_are_all_of_it(run, tmp_path):
    whole = run.all_jobs(str(tmp_path), True, [])
    parts = [run.all_jobs(str(tmp_path), True, [], (k, 4))
             for k in (1, 2, 3, 4)]
    waited_for = {j.name for job in whole for j in job.after}
    found = [j.name for part in parts for j in part
             if j.name not in waited_for]
    assert sorted(found) == sorted(
        j.name for j in whole if j.name not in waited_for)
    assert {j.name for part in parts for j in part} == {
        j.name for j in whole}


@pytest.mark.parametrize("text", ["0/4", "5/4", "1", "1/0", "a/b", "1/4/2"])
def test_a_share_that_is_none_is_an_error(run, text):
    with pytest.raises(argparse.ArgumentTypeError):
        run.as_share(text)


def test_check_and_more_run_every_lint_once(run, tmp_path):
    lints = [name for more in (False, True)
             for name in jobs(run, tmp_path, more=more) if "lint " in name]
    files = os.listdir(os.path.join(TOP, "tests/lint"))
    assert sorted(lints) == sorted(
        f"lint {f[:-3]}" for f in files if f.endswith(".sh") and f != "lib.sh")


def test_a_file_is_run_by_its_suite_alone(run, tmp_path, build):
    file = "tests/integration/test_run.py"
    found = jobs(run, tmp_path, file, "-x", more=build == "gcc")
    assert set(found) == {
        "build gcc -Werror" if build == "gcc" else "build clang, sanitizers",
        "clients: packages", f"integration ({build})"}
    command = found[f"integration ({build})"]
    assert command[-2:] == ["-x", os.path.join(TOP, file)]


def test_what_no_chosen_suite_needs_is_not_made(run, tmp_path):
    found = jobs(run, tmp_path, "tests/docs/test_check.py")
    assert set(found) == {"build clang, sanitizers", "clients: packages",
                          "docs (sanitizers)"}


def test_the_cluster_has_its_packages(run, tmp_path):
    found = jobs(run, tmp_path, "tests/cluster/test_cluster.py")
    assert {"cluster: packages", "cluster (sanitizers)"} <= set(found)


def test_a_file_is_meant_from_where_the_caller_is(run, tmp_path, monkeypatch):
    monkeypatch.chdir(os.path.join(TOP, "tests/master"))
    name = "test_supervisor.py::test_x"
    found = jobs(run, tmp_path, name, "tests/agent")
    assert found["master (sanitizers)"][-1] == \
        os.path.join(TOP, "tests/master", name)
    assert found["agent (sanitizers)"][-1] == os.path.join(TOP, "tests/agent")
    assert "docs (sanitizers)" not in found


@pytest.mark.parametrize("name", ["a_name", "agent"])
def test_options_alone_are_for_every_suite(run, tmp_path, monkeypatch, name):
    monkeypatch.chdir(os.path.join(TOP, "tests"))  # where "agent" is a folder
    found = jobs(run, tmp_path, "-k", name)
    for suite in run.SUITES:
        assert found[f"{suite} (sanitizers)"][-3:] == [
            "-k", name, os.path.join(TOP, "tests", suite)]


@pytest.mark.parametrize("name", [
    "tests/integration/test_gone.py", "test_gone.py::test_x",
    "tests/lists.py"])
def test_a_file_of_no_suite_is_an_error(run, tmp_path, name):
    with pytest.raises(SystemExit, match="no file of a suite"):
        jobs(run, tmp_path, name)


def test_a_file_without_the_test_has_failed(run, tmp_path):
    """Nothing chosen by a name's part is fine: another suite has it."""
    for args, failed in ((["tests/docs/test_check.py"], 1),
                         (["-k", "part"], 0)):
        count = next(j.count for j in run.all_jobs(str(tmp_path), False, args)
                     if j.name == "docs (sanitizers)")
        assert count(5, "").failed == failed
