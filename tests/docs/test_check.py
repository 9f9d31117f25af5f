"""What ./bootstrap check runs, with --more and with arguments."""
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


def test_check_and_more_run_every_suite_once(run, tmp_path, build):
    """What is chosen for the one is left out by the other."""
    check, more = jobs(run, tmp_path), jobs(run, tmp_path, more=True)
    for suite in run.SUITES:
        here, there = (words_of(found, suite, build) for found in (check, more))
        folder = os.path.join("tests", suite)
        if run.NOT_ON.get(suite) == build:
            assert here + there == []
        elif here and there:
            part, = here
            assert part.startswith(folder)
            assert os.path.exists(os.path.join(TOP, part.split("::")[0]))
            assert f"--deselect={part}" in there
            assert whole([w for w in there if "=" not in w], folder)
        else:
            assert whole(here or there, folder)


def words_of(found, suite, build):
    """What its jobs name to pytest."""
    return [word for name, command in found.items()
            if name.startswith(suite) and name.endswith(f"({build})")
            for word in command if word.startswith(("tests/", "--deselect"))]


def whole(words, folder):
    """The folder, or each of its files once."""
    return words == [folder] or sorted(words) == sorted(
        os.path.join(folder, f) for f in os.listdir(os.path.join(TOP, folder))
        if f.startswith("test_") and f.endswith(".py"))


def test_check_and_more_run_each_test_by_the_bridge_once_at_most(
        run, tmp_path):
    """A file is left out by its name alone: a new one is run."""
    check, more = jobs(run, tmp_path), jobs(run, tmp_path, more=True)
    for suite, tests in run.ON_BRIDGE.items():
        folder, left_out = os.path.join("tests", suite), \
            {os.path.join("tests", suite, f) for f in run.NOT_ON_BRIDGE[suite]}
        tests = [os.path.join(folder, test) for test in tests]
        assert words_of(check, f"bridge: {suite}", "sanitizers") == tests
        words = words_of(more, f"bridge: {suite}", "gcc")
        assert {f"--deselect={test}" for test in tests} == {
            w for w in words if "=" in w}
        files = [w for w in words if "=" not in w]
        assert not left_out & set(files)
        assert whole([*files, *left_out], folder)


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
