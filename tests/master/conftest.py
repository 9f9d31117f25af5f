import os
import sys

import pytest

sys.path.insert(0, os.path.dirname(__file__))

from supervisor import Supervisor  # noqa: E402


@pytest.fixture
def make():
    """make(...) is a Supervisor that is gone after the test."""
    made = []

    def make_one(**kwargs):
        made.append(Supervisor(**kwargs))
        return made[-1]

    yield make_one
    for s in made:
        s.close()
