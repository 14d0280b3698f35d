"""Options of the test suite."""

from __future__ import annotations

import os
from collections.abc import Iterator
from typing import TYPE_CHECKING

import pytest
from hypothesis import settings

from tests import spark_classes

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

spark_classes.use()
# A busy machine is no fault of the code.
settings.register_profile("suite", deadline=None)
settings.load_profile("suite")
# What this machine's user has configured is not what is tested.
os.environ["STATUS_TOOL_CONFIG"] = "off"
for folder in ("HBASE_CONF_DIR", "HADOOP_CONF_DIR"):
    os.environ.pop(folder, None)
WITH_CLUSTERS = {"cluster", "one_pair", "lab"}
"""Folders of tests on clusters. `make test-clusters` collects no others: each of its workers reads what it collects."""


def pytest_addoption(parser: pytest.Parser) -> None:
    """`--lab`, see CONTRIBUTING.md."""
    text = "take the pair of clusters that `python -m tests.lab up --tracked` keeps ready"
    parser.addoption("--lab", action="store_true", help=text)


def pytest_itemcollected(item: pytest.Item) -> None:
    """Refuse a test that `make test-clusters` would not find."""
    if item.get_closest_marker("cluster") and item.path.parent.name not in WITH_CLUSTERS:
        raise pytest.UsageError(f"{item.nodeid}: a test on clusters stands in one of {sorted(WITH_CLUSTERS)}")


@pytest.fixture(scope="session")
def shared_spark() -> Iterator[SparkSession]:
    """The session of all tests that need no other: a JVM and its Python workers cost as much as some ten checks."""
    from status_tool.spark.session import spark_session

    with spark_session("local[2]") as session:
        yield session
        assert session.getActiveSession() is session, "a test has ended it: each check after it started its own"


@pytest.fixture(scope="session")
def warm_spark(shared_spark: SparkSession) -> None:
    """Let in-process runs find a session, and leave it running."""


@pytest.fixture(autouse=True)
def _shown_as_ever() -> Iterator[None]:
    """What a test asked of progress (-q, --log-file) holds for its process, and not for the tests after it."""
    yield
    from status_tool.report.progress import Shown, set_shown

    set_shown(Shown())
