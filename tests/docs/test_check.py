"""What ./bootstrap check runs when it is given arguments."""
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


def jobs(run, tmp_path, *args):
    """{name: command} of what it would run."""
    return {j.name: j.command for j in run.all_jobs(str(tmp_path), list(args))}


def test_a_file_is_run_by_its_suite_alone(run, tmp_path):
    file = "tests/integration/test_run.py"
    found = jobs(run, tmp_path, file, "-x")
    assert set(found) == {
        "build gcc -Werror", "build clang, sanitizers", "clients: packages",
        "integration (gcc)", "integration (sanitizers)"}
    command = found["integration (gcc)"]
    assert command[-2:] == ["-x", os.path.join(TOP, file)]


def test_what_no_chosen_suite_needs_is_not_made(run, tmp_path):
    found = jobs(run, tmp_path, "tests/docs/test_check.py")
    assert set(found) == {"build gcc -Werror", "clients: packages",
                          "docs (gcc)"}


def test_a_file_is_meant_from_where_the_caller_is(run, tmp_path, monkeypatch):
    monkeypatch.chdir(os.path.join(TOP, "tests/master"))
    name = "test_supervisor.py::test_x"
    found = jobs(run, tmp_path, name, "tests/agent")
    assert found["master (gcc)"][-1] == os.path.join(TOP, "tests/master", name)
    assert found["agent (gcc)"][-1] == os.path.join(TOP, "tests/agent")
    assert "docs (gcc)" not in found


@pytest.mark.parametrize("name", ["a_name", "agent"])
def test_options_alone_are_for_every_suite(run, tmp_path, monkeypatch, name):
    monkeypatch.chdir(os.path.join(TOP, "tests"))  # where "agent" is a folder
    found = jobs(run, tmp_path, "-k", name)
    for suite, _ in run.SUITES:
        assert found[f"{suite} (gcc)"][-3:] == [
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
        count = next(j.count for j in run.all_jobs(str(tmp_path), args)
                     if j.name == "docs (gcc)")
        assert count(5, "").failed == failed
