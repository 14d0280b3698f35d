"""`status-tool rows` and `run --rows`: what region servers digest where the rows live, held against what was done."""

from __future__ import annotations

import contextlib
import threading
import time
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import happybase
import pytest

from status_tool.rules.kept_proofs import MARGIN_MS
from status_tool.runs import compare_rows
from tests.lab.cluster import Cluster
from tests.lab.waiting import wait_until
from tests.pair import PEER, Pair, Result, tool_here, wait_lasting

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
    pair.create_filled("tamper", 2000, [b"row00001000"], [b"row00000500", b"row00001500"])
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


def test_several_tables_are_compared_at_once(pair: Pair) -> None:
    """Each has its own verdict: an equal one, one with a row less, one that the slave does not have."""
    tables = ("several1", "several2", "several3")
    for table in tables[:2]:
        pair.create_table(table, {"f": 1})
        pair.master.admin.put_rows(table, "f", 100)
    pair.master.admin.create_table(tables[2], {"f": 1})
    pair.wait_same(tables[0])
    pair.wait_same(tables[1])
    with thrift(pair.slave) as client:
        client.table(tables[1]).delete(b"row00000007")
    result = rows(pair, tables[0], "--table", tables[1], "--table", tables[2])
    pair.master.admin.drop_table(tables[2])
    found = {one["table"]: (one["verdict"], one["rows"], len(one["differences"])) for one in result.json["tables"]}
    expected = {tables[0]: ("equal", 100, 0), tables[1]: ("differs", 100, 1), tables[2]: ("differs", 0, 0)}
    assert (result.exit_code, found) == (1, expected), result


def test_regions_that_move_and_split_meanwhile(pair: Pair) -> None:
    """Digests of regions that were moved or split while they were read are requested again, and nothing is lost."""
    pair.create_filled("roaming", 4000, [b"row00001500"], value="v" * 500)
    results: list[Result] = []
    # Slow enough for regions to go in the middle of it: two megabytes.
    worker = threading.Thread(target=lambda: results.append(rows(pair, "roaming", "--rate", "0.2")))
    worker.start()
    pair.slave.admin.split("roaming", b"row00003000")
    region = pair.master.admin.regions("roaming")[0]
    elsewhere = next(name for name in pair.master.admin.live_servers() if name != region.server)
    pair.master.admin.move(region.encoded, elsewhere)
    worker.join()
    (result,) = results
    assert (result.exit_code, result.json["tables"][0]["rows"]) == (0, 4000), result


def settled(pair: Pair, status: Path, table: str, exit_code: int, option: str = "--rows", *more: str) -> dict[str, Any]:
    """`run -m`, then `run -i FILE --rows`; the document, after the exit code has been checked."""
    pair.write_master(status, "--table", table)
    result = pair.check(status, "--table", table, option, *more, "--master-conf", str(pair.master.conf_dir))
    assert result.exit_code == exit_code, result
    return result.json


def regions(document: dict[str, Any]) -> dict[str, int]:
    """Only the statuses that occur."""
    return {status: count for status, count in document["hbase"]["regions"].items() if count}


@dataclass(frozen=True)
class Repaired:
    """When rows of the table `gapped` were lost, later ones written, and the lost ones copied by hand (seconds)."""

    lost_s: float
    newest_s: float
    repaired_s: float
    proof: dict[str, Any]
    """What the check by rows said then."""

    @property
    def proven_s(self) -> float:
        """Up to when that proof reaches."""
        return float(self.proof["cut_ms"] - MARGIN_MS) / 1000


@pytest.fixture(scope="module")
def repaired(pair: Pair, tmp_path_factory: pytest.TempPathFactory) -> Repaired:
    """Rows that were written while there was no peer, and one that was deleted: they differ, until they are copied."""
    status = tmp_path_factory.mktemp("gapped") / "master.status"
    pair.create_table("gapped", {"f": 1}, [b"m"])
    for prefix in ("a", "z"):
        pair.master.admin.put_rows("gapped", "f", 20, prefix=prefix)
    pair.wait_same("gapped")
    pair.master.admin.remove_peer(PEER)
    lost_s = time.time()
    pair.master.admin.put_rows("gapped", "f", 5, start=100, prefix="a")
    pair.master.admin.delete_rows("gapped", 1, prefix="a")
    pair.master.admin.roll_wal()
    pair.connect()
    pair.master.admin.put_rows("gapped", "f", 5, start=200, prefix="a")
    wait_until(lambda: b"a00000204" in pair.slave.admin.rows("gapped"), 60, "later rows have arrived")
    newest_s = time.time()
    wait_lasting()
    assert regions(pair.verdict(status, "gapped").json) == {"complete": 1, "gap": 1}
    document = settled(pair, status, "gapped", 1)
    assert regions(document) == {"complete": 1, "differs": 1}
    cells = [problem["detail"] for problem in document["problems"] if problem["kind"] == "differs"]
    assert len(cells) == 6
    assert ["only on the slave" in cell for cell in cells] == [True, *[False] * 5]
    assert "a00000100" in cells[1]
    repaired_s = time.time()
    with thrift(pair.master) as ours, thrift(pair.slave) as theirs:
        copy = theirs.table("gapped")
        copy.delete(b"a00000000")
        for key, row in ours.table("gapped").scan(include_timestamp=True):
            for column, (value, moment) in row.items():
                copy.put(key, {column: value}, timestamp=moment)
    return Repaired(lost_s, newest_s, repaired_s, settled(pair, status, "gapped", 0))


def test_a_gap_that_was_copied_by_hand_is_closed_by_proof(repaired: Repaired) -> None:
    """How long that lasts the last test asks, as other ones may run until a minute has passed."""
    document = repaired.proof
    assert (regions(document), document["hbase"]["evidence"]) == ({"complete": 2}, "rows")
    assert any(notice.startswith("49 rows of 1 table compared") for notice in document["notices"])


def test_sound_streams_hide_no_row_that_was_changed_on_the_slave(pair: Pair, status: Path) -> None:
    """With --rows=all: every entry has arrived, one value is not the same, and a row that came with them is gone. The
    regions that hold them differ.
    """
    pair.create_filled("flipped", 50, [b"row00000020", b"row00000040"])
    assert settled(pair, status, "flipped", 0, "--rows=all")["hbase"]["evidence"] == "exact"
    with thrift(pair.slave) as client:
        table = client.table("flipped")
        (_, timestamp) = table.row(b"row00000007", include_timestamp=True)[b"f:q"]
        table.put(b"row00000007", {b"f:q": b"w"}, timestamp=timestamp)
    pair.slave.admin.delete_rows("flipped", 1, start=30)
    accepted = "--accept-drift=flipped"  # that a client wrote there is a doubt by itself
    assert settled(pair, status, "flipped", 0, "--rows", accepted)["hbase"]["evidence"] == "exact"
    document = settled(pair, status, "flipped", 1, "--rows=all", accepted)
    assert regions(document) == {"complete": 1, "differs": 2}
    assert (document["verdict"], document["hbase"]["verdict"]) == ("incomplete", "incomplete")
    assert {(problem["kind"], problem["table"]) for problem in document["problems"]} == {("differs", "flipped")}
    flipped, gone = sorted(problem["detail"] for problem in document["problems"])
    assert all(words in flipped for words in ("row00000007", "another value on the slave"))
    assert "row row00000030, column f:q: missing on the slave" in gone


def test_every_run_samples(pair: Pair, status: Path) -> None:
    """Two small tables fit whole; a value that was changed on the slave after the shutdown decides, with no option."""
    for name, rows in (("sampled1", 300), ("sampled2", 200)):
        pair.create_filled(name, rows, [b"row00000100"], [b"row00000050"])
    tables = [word for name in ("sampled1", "sampled2") for word in ("--table", name)]
    # The default's five seconds may be too short where other tests have the machine.
    patient = [*tables, "--sample", "60"]
    # The first one lets the trackers write the tables' descriptors down.
    pair.write_master(status, *tables)
    shutdown = ("-s", str(int(time.time() * 1000)))
    pair.write_master(status, *patient, *shutdown)
    document = pair.check(status, *patient).json
    assert document["verdict"] == "complete"
    (told,) = (notice for notice in document["notices"] if "random ranges" in notice)
    assert told == "500 rows in 4 random ranges of 2 tables compared as well: equal"
    without = pair.check(status, *tables, "--sample", "off").json
    assert not [notice for notice in without["notices"] if "random" in notice]
    with thrift(pair.slave) as client:
        table = client.table("sampled1")
        (_, timestamp) = table.row(b"row00000007", include_timestamp=True)[b"f:q"]
        table.put(b"row00000007", {b"f:q": b"w"}, timestamp=timestamp)
    patient.append("--accept-drift=sampled1")
    result = pair.check(status, *patient)
    assert (result.exit_code, regions(result.json)) == (1, {"complete": 3, "differs": 1}), result
    (problem,) = result.json["problems"]
    assert (problem["code"], problem["table"]) == ("differs", "sampled1")
    assert "a defect of the proof" in problem["detail"]
    # Without the word that nobody writes any more, it may be that somebody does.
    pair.write_master(status, *tables, "--sample", "60")
    document = pair.check(status, *patient).json
    assert document["verdict"] == "complete"
    assert any("1 range of sampled1 is not as FILE has it" in notice for notice in document["notices"])
    pair.write_master(status, *tables, "--sample", "off")
    refused = tool_here("run", "-i", status, "--sample", "3", "--only", "hbase", conf=pair.slave)
    assert (refused.exit_code, "FILE holds no samples" in refused.stderr) == (2, True), refused


def test_samples_find_what_all_entries_together_hide(pair: Pair, status: Path) -> None:
    """Delete markers that the master has compacted away hide older puts on the slave: every entry is there, no row is.

    No shutdown time is needed: the table has been at rest for seconds.
    """
    master, five = pair.master.admin, range(5)
    pair.create_table("overtaken", {"f": 1})
    master.put_rows("overtaken", "f", 20)
    master.delete_rows("overtaken", len(five))
    pair.wait_same("overtaken")
    master.flush("overtaken")
    master.major_compact("overtaken")
    wait_until(lambda: master.digest("overtaken", raw=True).cells == 20 - len(five), what="the markers are gone")
    master.put_rows("overtaken", "f", len(five), timestamp_ms=1)
    pair.wait_drained()

    def refuted() -> list[Result]:
        pair.write_master(status, "--table", "overtaken", "--sample", "60")
        result = pair.check(status, "--table", "overtaken", "--sample", "60")
        return [result] if result.exit_code else []

    (result,) = wait_until(refuted, what="the last write is seconds old")
    assert (result.exit_code, result.codes) == (1, {"differs"}), result
    assert (len(master.rows("overtaken")), len(pair.slave.admin.rows("overtaken"))) == (20, 15)


def test_many_tables_are_asked_at_once(pair: Pair, status: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """By the master's rows and by FILE's digests: those that are equal, and the one that is not, are told apart."""
    monkeypatch.setattr(compare_rows, "DRAIN_S", 2.0)
    names = [f"many{number}" for number in range(6)]
    for name in names:
        pair.create_table(name, {"f": 1}, [b"row00000010"])
        pair.master.admin.put_rows(name, "f", 20)
    for name in names:
        pair.wait_same(name)
    with thrift(pair.slave) as client:
        client.table("many3").delete(b"row00000003")
    tables = [word for name in names for word in ("--table", name)]
    pair.write_master(status, *tables, "--rows=all")
    tables.append("--accept-drift=many3")
    document = pair.check(status, *tables, "--rows=all").json
    assert (document["verdict"], regions(document)) == ("unverifiable", {"complete": 12})
    assert [problem["table"] for problem in document["problems"]] == ["many3"]
    assert any(notice.startswith("100 rows of 5 tables compared") for notice in document["notices"])
    master = ("--master-conf", str(pair.master.conf_dir))
    document = pair.check(status, *tables, "--rows=all", *master).json
    assert (document["verdict"], regions(document)) == ("incomplete", {"complete": 11, "differs": 1})
    assert [problem["table"] for problem in document["problems"]] == ["many3"]
    assert any(notice.startswith("100 rows of 5 tables compared") for notice in document["notices"])


def test_rows_of_which_more_waits_in_a_queue_are_not_compared(
    pair: Pair, status: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """They could be equal now and differ once it is shipped."""
    monkeypatch.setattr(compare_rows, "DRAIN_S", 2.0)
    pair.create_filled("waiting", 10)
    pair.master.admin.disable_peer(PEER)
    try:
        pair.master.admin.put_rows("waiting", "f", 10)
        document = settled(pair, status, "waiting", 1)
        assert regions(document) == {"behind": 1}
        assert any("were not compared" in notice for notice in document["notices"])
    finally:
        pair.master.admin.enable_peer(PEER)


def test_the_wrong_master_is_refused(pair: Pair, status: Path) -> None:
    """--master-conf that names the slave: one line."""
    pair.create_table("wrong", {"f": 1})
    pair.write_master(status, "--table", "wrong")
    options = ("--rows=all", "--master-conf", str(pair.slave.conf_dir), "--only", "hbase", "--table", "wrong")
    result = tool_here("run", "-i", status, *options, conf=pair.slave)
    assert result.exit_code == 2, result
    assert "check --master-conf" in result.stderr
    assert "Traceback" not in result.stderr


def test_the_master_is_gone_and_file_has_the_digests(pair: Pair, status: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A bulk load beside the streams: FILE's digests prove that it is there, and see that a value was changed."""
    pair.create_filled("filed", 60, [b"row00000030"], [b"row00000010"])
    pair.master.admin.bulk_load("filed", "f", 1)
    pair.master.admin.put_rows("filed", "f", 1, start=60)
    wait_until(lambda: b"row00000060" in pair.slave.admin.rows("filed"), 60, "the put replicated")
    assert len(pair.slave.admin.rows("filed")) == 61, "what was loaded before it is not: the setting is off"
    with thrift(pair.slave) as theirs, thrift(pair.master) as ours:
        ((loaded, row),) = ours.table("filed").scan(row_prefix=b"bulk", include_timestamp=True)
        ((column, (value, loaded_ms)),) = row.items()
        theirs.table("filed").put(loaded, {column: value}, timestamp=loaded_ms)
    pair.write_master(status, "--table", "filed")
    refused = tool_here("run", "-i", status, "--rows", "--only", "hbase", conf=pair.slave)
    assert refused.exit_code == 2, refused
    assert "FILE holds no row digests" in refused.stderr
    pair.write_master(status, "--table", "filed", "--rows")
    document = pair.check(status, "--table", "filed").json
    assert (document["verdict"], {p["code"] for p in document["problems"]}) == (
        "unverifiable",
        {"bulkload", "slave-written"},
    )
    result = pair.check(status, "--table", "filed", "--rows")
    assert (result.exit_code, result.json["hbase"]["evidence"]) == (0, "rows"), result
    with thrift(pair.slave) as theirs:
        theirs.table("filed").put(loaded, {column: b"other"}, timestamp=loaded_ms)
    monkeypatch.setattr(compare_rows, "DRAIN_S", 2.0)
    result = pair.check(status, "--table", "filed", "--rows=all")
    assert result.exit_code == 3, result
    (problem,) = (p for p in result.json["problems"] if p["code"] == "not-compared")
    assert "are not as FILE has them" in problem["detail"]


def test_what_was_proven_stays_so_until_the_slave_is_truncated(pair: Pair, repaired: Repaired, status: Path) -> None:
    """In later runs that do not compare rows. A proof reaches up to a minute before FILE, for clocks may differ."""
    time.sleep(max(0.0, repaired.repaired_s + MARGIN_MS / 1000 + 2 - time.time()))
    found = regions(pair.verdict(status, "gapped").json)
    # On a slow machine that FILE was written so late that the proof reaches over the gap.
    assert found == {"complete": 1, "gap": 1} or repaired.proven_s >= repaired.lost_s
    assert found == {"complete": 2} or repaired.proven_s < repaired.newest_s
    settled(pair, status, "gapped", 0)
    document = pair.verdict(status, "gapped").json
    assert (regions(document), document["hbase"]["evidence"]) == ({"complete": 2}, "rows")
    pair.slave.admin.disable_table("gapped")
    pair.slave.admin.truncate_table("gapped")
    document = pair.verdict(status, "gapped").json
    assert (document["verdict"], {problem["code"] for problem in document["problems"]}) == ("unverifiable", {"emptied"})
