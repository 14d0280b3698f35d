"""`status-tool setup`: what it prints before it looks at a cluster."""

from __future__ import annotations

import pytest

from status_tool.cli.setup import STEPS
from tests.pair import REPOSITORY


@pytest.mark.parametrize("text", [STEPS, (REPOSITORY / "README.md").read_text()], ids=["setup", "README"])
def test_the_hbase_that_is_needed_is_named(text: str) -> None:
    """HBase before 2.5.4 has no hook that sees what the sink has applied: nothing would ever be recorded."""
    assert "2.5.4" in text
    assert "HBASE-27529" in text
