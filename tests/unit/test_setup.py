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


def test_the_doctor_names_one_next_step() -> None:
    """The first of all that is to be mended."""
    from status_tool.cli.setup import next_step
    from status_tool.gather.installation import Checked

    found = [Checked("a", None), Checked("b", "mend b"), Checked("c", "mend c")]
    assert next_step(found) == "Next: mend b"
    assert next_step(found[:1]) == "ready"
