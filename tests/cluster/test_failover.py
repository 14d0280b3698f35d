"""docs/failover.md, followed word for word on two real clusters that replicate to each other."""

from __future__ import annotations

import re
import shlex
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.pair import PEER, REPOSITORY, Pair, tool_here

pytestmark = [pytest.mark.cluster, pytest.mark.spark]

PAGE = REPOSITORY / "docs" / "failover.md"
NOT_RUN = re.compile(r"^<!-- not run: .*? -->\n```.*?^```", re.M | re.S)
BLOCK = re.compile(r"^ *```sh\n *# (A|B)\n(.*?)^ *```", re.M | re.S)


@pytest.fixture
def both_ways(pair: Pair) -> Iterator[None]:
    """Peers in both directions, as the page has them."""
    pair.reversed().connect()
    yield
    pair.slave.admin.remove_peer(PEER)


def follow(pair: Pair, section: str) -> None:
    """Run the blocks of a section, each on its cluster; every command has to leave with 0."""
    text = re.split(r"^## ", PAGE.read_text(), flags=re.M)
    (found,) = (part for part in text if part.startswith(section))
    blocks = BLOCK.findall(found)
    assert blocks, section
    for side, commands in blocks:
        for command in commands.strip().splitlines():
            program, *arguments = shlex.split(command)
            assert program == "status-tool", command
            result = tool_here(*arguments, conf=pair.master if side == "A" else pair.slave)
            assert result.exit_code == 0, (side, command, result)


@pytest.mark.usefixtures("both_ways")
def test_over_and_back(pair: Pair, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A quiet day, the planned way, what a lost A leaves, and back; each time with rows that the last check proved."""
    monkeypatch.chdir(tmp_path)
    Path("paths.txt").write_text("/application\n")
    for side in (pair.master, pair.slave):
        side.admin.hdfs_put("/application/file", 1000)
    pair.create_table("orders", {"f": 1})
    pair.slave.admin.set_scope("orders", "f", 1)
    pair.master.admin.put_rows("orders", "f", 20)
    follow(pair, "On a quiet day")
    pair.master.admin.put_rows("orders", "f", 20, prefix="more")
    follow(pair, "Planned")
    assert pair.same("orders")
    assert "complete" in Path("failover.html").read_text()
    follow(pair, "Unplanned")
    pair.slave.admin.put_rows("orders", "f", 20, prefix="there")
    follow(pair, "Failing back")
    assert pair.same("orders")
    assert len(pair.master.admin.rows("orders")) == 60
    for side in (pair.master, pair.slave):
        assert tool_here("shutdown-time", "show", "--json", conf=side).json == {"shutdown_ms": None}


def test_every_command_of_the_page_is_followed() -> None:
    """None stands in a block that the test above would pass over, unless the page says that it is not run, and why."""
    text = NOT_RUN.sub("", PAGE.read_text())
    fenced = "".join(re.findall(r"^ *```.*?^ *```", text, re.M | re.S))
    followed = "".join(commands for _, commands in BLOCK.findall(text))
    assert fenced.count("status-tool ") == followed.count("status-tool ") > 0
