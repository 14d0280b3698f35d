"""Options of the test suite."""

from __future__ import annotations

import pytest

from tests import spark_classes

spark_classes.use()


def pytest_addoption(parser: pytest.Parser) -> None:
    """`--lab`, see CONTRIBUTING.md."""
    text = "take the pair of clusters that `python -m tests.lab up --tracked` keeps ready"
    parser.addoption("--lab", action="store_true", help=text)
