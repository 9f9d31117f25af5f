"""The server's image, on a machine of its own.

Environment: as for tests/integration; MCP_SANDBOXD_BUILD must be a build
without sanitizers, whose libraries no image has.
"""
import os
import sys

import pytest

HERE = os.path.dirname(os.path.abspath(__file__))
for folder in (HERE, os.path.join(os.path.dirname(HERE), "integration"),
               os.path.join(os.path.dirname(HERE), "docs")):
    sys.path.insert(0, folder)

from machine import Machine  # noqa: E402


@pytest.fixture(scope="session")
def build():
    path = os.environ.get("MCP_SANDBOXD_BUILD")
    assert path, "MCP_SANDBOXD_BUILD is not set: run ./bootstrap check"
    return path


@pytest.fixture(scope="session")
def machine(build):
    m = Machine()
    try:
        m.start()
        m.take_image(os.environ["SANDBOX_IMAGE"])
        m.make_server_image(build)
        yield m
    finally:
        m.close()


@pytest.fixture(autouse=True)
def clean(request):
    """What a test leaves on the machine goes."""
    yield
    if "machine" in request.fixturenames:
        request.getfixturevalue("machine").clean()
