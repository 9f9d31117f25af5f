"""Options of the chaos, and the fixtures of the integration tests.

pytest tests/chaos --seconds 60 --seed 1234
"""
import importlib.util
import os
import time

INTEGRATION = os.path.join(
    os.path.dirname(os.path.dirname(os.path.abspath(__file__))),
    "integration")
_spec = importlib.util.spec_from_file_location(
    "integration_conftest", os.path.join(INTEGRATION, "conftest.py"))
_there = importlib.util.module_from_spec(_spec)
_spec.loader.exec_module(_there)  # puts its folder on the path, too
build = _there.build
engine = _there.engine
make_server = _there.make_server
pytest_runtest_makereport = _there.pytest_runtest_makereport
pytest_collection_modifyitems = _there.pytest_collection_modifyitems
pytest_configure = _there.pytest_configure


def pytest_addoption(parser):
    parser.addoption("--seconds", type=float, default=5,
                     help="how long each chaos lasts")
    parser.addoption("--seed", type=int, default=None,
                     help="of what happens; without it one is made")


def pytest_generate_tests(metafunc):
    """The seed is in the test's name, so that a report always has it."""
    if "seed" in metafunc.fixturenames:
        seed = metafunc.config.getoption("seed")
        if seed is None:
            seed = time.time_ns() // 1000 % 1000000
        metafunc.parametrize("seed", [seed])
    if "seconds" in metafunc.fixturenames:
        metafunc.parametrize("seconds",
                             [metafunc.config.getoption("seconds")])
