"""Options of the test suite."""

from __future__ import annotations

import os

import pytest

from tests import spark_classes

spark_classes.use()
# What this machine's user has configured is not what is tested.
os.environ["STATUS_TOOL_CONFIG"] = "off"


def pytest_addoption(parser: pytest.Parser) -> None:
    """`--lab`, see CONTRIBUTING.md."""
    text = "take the pair of clusters that `python -m tests.lab up --tracked` keeps ready"
    parser.addoption("--lab", action="store_true", help=text)
