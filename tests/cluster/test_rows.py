"""`status-tool rows`: what region servers digest where the rows live, against rows that were tampered with."""

from __future__ import annotations

import contextlib
import threading
from typing import Any

import happybase
import pytest

from tests.lab.cluster import Cluster
from tests.pair import Pair, Result, tool_here

pytestmark = [pytest.mark.cluster, pytest.mark.spark]


def rows(pair: Pair, table: str, *arguments: str) -> Result:
    """`status-tool rows --table T` on the slave."""
    options = ("--master-conf", str(pair.master.conf_dir), "--json", *arguments)
    return tool_here("rows", "--table", table, *options, conf=pair.slave)


def compared(pair: Pair, table: str, exit_code: int, *arguments: str) -> dict[str, Any]:
    """The one table of the document, after the exit code has been checked."""
    result = rows(pair, table, *arguments)
    assert result.exit_code == exit_code, result
    (document,) = result.json["tables"]
    assert isinstance(document, dict)
    return document


def thrift(cluster: Cluster) -> contextlib.closing[happybase.Connection]:
    """Writing past replication: to one side only."""
    return contextlib.closing(happybase.Connection("127.0.0.1", cluster.thrift_port))


def test_equal_whatever_the_regions(pair: Pair) -> None:
    """Other region boundaries on the slave, two families of which one is not replicated, thousands of rows."""
    pair.create_table("dig", {"f": 1, "local": 0}, [b"row00001000"], [b"row00000300", b"row00002500"])
    pair.master.admin.put_rows("dig", "f", 3000)
    pair.master.admin.put_rows("dig", "local", 50)
    pair.wait_same("dig", ["f"])
    document = compared(pair, "dig", 0)
    assert (document["rows"], document["cells"], document["families"]) == (3000, 3000, ["f"])
    assert document["differences"] == []


def test_tampered_rows_are_named(pair: Pair) -> None:
    """One value flipped, one row missing, one too many, one deleted on one side only: all named, values on demand."""
    pair.create_table("tamper", {"f": 1}, [b"row00001000"], [b"row00000500", b"row00001500"])
    pair.master.admin.put_rows("tamper", "f", 2000)
    pair.wait_same("tamper")
    compared(pair, "tamper", 0)
    with thrift(pair.slave) as client:
        table = client.table("tamper")
        (_, timestamp) = table.row(b"row00000007", include_timestamp=True)[b"f:q"]
        table.put(b"row00000007", {b"f:q": b"w"}, timestamp=timestamp)
        table.delete(b"row00000700")
        table.put(b"row00001200x", {b"f:q": b"secret"})
    document = compared(pair, "tamper", 1)
    found = {(one["row"], one["kind"]) for one in document["differences"]}
    assert found == {("row00000007", "other value"), ("row00000700", "missing"), ("row00001200x", "extra")}
    assert "secret" not in str(document)
    assert document["all_listed"]
    document = compared(pair, "tamper", 1, "--show-values", "--max-problems", "1")
    assert [(one["master_value"], one["slave_value"]) for one in document["differences"]] == [("v", "w")]
    assert not document["all_listed"]


def test_regions_that_move_and_split_meanwhile(pair: Pair) -> None:
    """Digests of regions that were moved or split while they were read are requested again, and nothing is lost."""
    pair.create_table("moving", {"f": 1}, [b"row00001500"])
    pair.master.admin.put_rows("moving", "f", 4000, value="v" * 500)
    pair.wait_same("moving")
    results: list[Result] = []
    # Slow enough for regions to go in the middle of it: two megabytes.
    worker = threading.Thread(target=lambda: results.append(rows(pair, "moving", "--rate", "0.2")))
    worker.start()
    pair.slave.admin.split("moving", b"row00003000")
    region = pair.master.admin.regions("moving")[0]
    elsewhere = next(name for name in pair.master.admin.live_servers() if name != region.server)
    pair.master.admin.move(region.encoded, elsewhere)
    worker.join()
    (result,) = results
    assert (result.exit_code, result.json["tables"][0]["rows"]) == (0, 4000), result
