"""The pair."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from tests.cluster.conftest import a_pair
from tests.pair import Pair


@pytest.fixture(scope="package")
def pair(request: pytest.FixtureRequest, warm_spark: None) -> Iterator[Pair]:
    """Two region servers on the master, and one on the slave."""
    with a_pair(request.config) as started:
        yield started
