"""Real clusters for the tests, and one Spark session that in-process runs of the tool share."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from status_tool.spark.session import spark_session
from tests.lab.lab import Lab
from tests.pair import JAR, Pair, start_pair


@pytest.fixture(scope="session", autouse=True)
def _own_configuration() -> Iterator[None]:
    """No test sees the user's own site files."""
    with pytest.MonkeyPatch.context() as patch:
        for name in ("HBASE_CONF_DIR", "HADOOP_CONF_DIR"):
            patch.delenv(name, raising=False)
        yield


@pytest.fixture(scope="session")
def warm_spark() -> Iterator[None]:
    """A session that in-process runs find and leave running; starting one takes longer than a small check."""
    with spark_session():
        yield


@pytest.fixture(scope="session")
def pair(warm_spark: None) -> Iterator[Pair]:
    """Two tracked clusters, two region servers each, asyncfs WALs. Tests use tables of their own."""
    assert JAR.is_file(), "build the trackers first: make setup"
    with Lab() as lab:
        _SHARED.append(lab)
        yield start_pair(lab)


HERE = Path(__file__).resolve().parent
_SHARED: list[Lab] = []
"""The lab of `pair` while it is needed: its memory is wanted by the labs of other modules afterwards."""


def _shares(item: pytest.Item | None) -> bool:
    return isinstance(item, pytest.Item) and item.path.parent == HERE and "pair" in getattr(item, "fixturenames", ())


@pytest.hookimpl(tryfirst=True)  # pytest-xdist reads the groups in the same hook
def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Who shares the pair runs together and first, other modules each by itself: the groups of `--dist loadgroup`.

    Modules with clusters of their own come next and unit tests last, so that two workers end at about the same time.
    """
    for item in items:
        item.add_marker(pytest.mark.xdist_group("pair" if _shares(item) else str(item.path)))
    items.sort(key=lambda item: (not _shares(item), item.get_closest_marker("cluster") is None))


@pytest.hookimpl(trylast=True)
def pytest_runtest_teardown(item: pytest.Item, nextitem: pytest.Item | None) -> None:
    """End the pair when its last user has."""
    if _shares(item) and not _shares(nextitem) and _SHARED:
        _SHARED.pop().close()


@pytest.fixture
def status(tmp_path: Path) -> Path:
    """Where a test's status file goes."""
    return tmp_path / "master.status"
