"""Options of the test suite."""

from __future__ import annotations

import os

import pytest

# Nothing is written to the user's cache; test_class_archive.py has one of its own.
os.environ.setdefault("STATUS_TOOL_CACHE", "off")


def pytest_addoption(parser: pytest.Parser) -> None:
    """`--lab`, see CONTRIBUTING.md."""
    text = "take the pair of clusters that `python -m tests.lab up --tracked` keeps ready"
    parser.addoption("--lab", action="store_true", help=text)
