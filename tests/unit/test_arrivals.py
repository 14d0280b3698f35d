"""What a witness was sent, from its folder to a verdict: gaps are found exactly, and nothing is ever complete."""

from __future__ import annotations

import shutil
from collections.abc import Collection
from pathlib import Path
from typing import Any

import pytest

from status_tool.errors import ConfigurationError, StatusFileError
from status_tool.sources.arrivals import ArrivalKey, WitnessSource, read_arrivals, witness_stores
from status_tool.sources.codec import Witnessed, following
from status_tool.status_file.reader import open_status
from status_tool.status_file.writer import StatusWriter
from status_tool.vocabulary.header import Header
from status_tool.vocabulary.ids import origin_id, via_id
from status_tool.vocabulary.outcome import Outcome
from status_tool.vocabulary.scope import Scope, TableFilter
from status_tool.vocabulary.verdicts import Status, Verdict
from tests.judgement import verify_rows
from tests.pair import REPOSITORY

FOLDER = REPOSITORY / "coprocessor_stubs/src/test/resources/witness"
"""As `ArrivalStoreTest` writes it."""
SENDER = "00000000-0000-0001-0000-000000000002"
OTHER = "00000000-0000-0003-ffff-fffffffffffc"
MS = 1_700_000_000_000
LOCAL = ArrivalKey("ns:t", "r1", (SENDER,), ("f",))
BIG = 1 << 40
WRITTEN = (4, 5, 6, 9, 10, 12, 300, BIG)
"""Entries of the master itself with cells of f."""
MASTER = Header("master", SENDER, MS * 2, MS * 2, witnesses=("one",))
SLAVE = Header("slave", "00000000-0000-4000-8000-000000000002", MS * 2 + 9, MS * 2 + 9)

Row = dict[str, Any]


def source() -> WitnessSource:
    return WitnessSource((FOLDER,), SENDER, TableFilter())


def rows(*kinds: str) -> list[Row]:
    """What a master's status has of the folder."""
    found = [row for batch in source().read(0) for row in batch.to_pylist()] + list(source().small_rows())
    return [row for row in found if row["kind"] in kinds]


def via(family: str, *clusters: str) -> int:
    return via_id([bytes.fromhex(one.replace("-", "")) for one in clusters], family)


def arrived(entries: Collection[int], family: str = "f", *clusters: str) -> list[Row]:
    """The slave's segments of these entries, as its tracker records entries without a stamp and FILE joins them."""
    base = {"kind": "segment", "table": "ns:t", "region": "r1", "origin": origin_id(SENDER)}
    singly: list[Row] = [
        {**base, "via": via(family, *(clusters or (SENDER,))), "prev": one - 1, "seq": one, "family": family}
        | {"first_ms": MS + one, "write_ms": MS + one, "recorded_ms": MS + one, "started_ms": None}
        for one in entries
    ]
    return list(following(singly, witnessed()))


def witnessed() -> Witnessed:
    found: dict[tuple[str, int, int], dict[int, tuple[int, int]]] = {}
    for row in rows("segment"):
        found.setdefault((row["region"], row["origin"], row["via"]), {})[row["seq"]] = (row["prev"], row["started_ms"])
    return found


def check(theirs: list[Row]) -> Outcome:
    """The verdict, where the slave has everything of the other streams."""
    region = {"kind": "region", "table": "ns:t", "region": "r1", "state": "hosted", "server": "a,1,1", "region_id": 2}
    server = {"kind": "server", "origin": 9, "server": "b,1,1", "role": "r", "live": True, "tracked": True}
    (table,) = rows("table")
    theirs = [*theirs, *arrived([10], "gé"), *arrived([7], "f", OTHER, SENDER), table, {**server, "echoed": True}]
    ours = [*rows("stream", "server", "table"), region]
    return verify_rows(ours, theirs, MASTER, SLAVE, Scope(check_hdfs=False))


def test_the_folder_is_read_as_the_witness_writes_it() -> None:
    """Of the first set and the log that was being written."""
    found = read_arrivals(FOLDER)
    assert {key: list(entries.sequence_ids) for key, entries in found.items()} == {
        LOCAL: [4, 5, 6, 9, 12, 300, BIG],
        ArrivalKey("ns:t", "r1", (OTHER, SENDER), ("f",)): [7],
        ArrivalKey("ns:t", "r1", (SENDER,), ("f", "gé")): [10],
    }
    assert list(found[LOCAL].write_times) == [MS + one for one in found[LOCAL].sequence_ids]


def test_each_family_is_a_stream_and_says_what_lies_between_its_entries() -> None:
    """By the clusters that the entries passed, without the sender as in a head."""
    streams = {(row["family"], row["via_ids"]): row for row in rows("stream")}
    passed = bytes.fromhex(OTHER.replace("-", ""))
    assert {key: (row["seq"], row["entries"]) for key, row in streams.items()} == {
        ("f", None): (BIG, 8),
        ("f", passed): (7, 1),
        ("gé", None): (10, 1),
    }
    between = [(row["prev"], row["seq"]) for row in rows("segment") if row["via"] == via("f", SENDER)]
    assert between == [(0, 4), (6, 9), (10, 12), (12, 300), (300, BIG)]


def test_what_a_witness_has_is_never_complete() -> None:
    """Also where the slave has every entry: the witness cannot know what it was not sent."""
    outcome = check(arrived(WRITTEN))
    assert outcome.verdict is Verdict.UNVERIFIABLE
    assert "witnessed" in {problem.code for problem in outcome.problems}
    assert outcome.hbase is not None
    assert not outcome.hbase.regions.get(Status.GAP)
    assert not outcome.hbase.regions.get(Status.BEHIND)


@pytest.mark.parametrize("lost", [(4,), (5,), (9,), (10, 12), (12, 300)])
def test_a_gap_holds_exactly_the_entries_that_are_lost(lost: tuple[int, ...]) -> None:
    """From the last entry that arrived before to the last one that did not."""
    outcome = check(arrived([one for one in WRITTEN if one not in lost]))
    assert outcome.verdict is Verdict.INCOMPLETE
    (gap,) = [problem for problem in outcome.problems if problem.kind == "gap"]
    before = max((one for one in WRITTEN if one < lost[0]), default=0)
    assert (gap.from_seq, gap.to_seq) == (before, lost[-1])
    assert [one for one in WRITTEN if before < one <= lost[-1]] == list(lost)
    after = min(one for one in WRITTEN if one > lost[-1])
    assert gap.written_to_ms in (MS + lost[-1], MS + after)  # where the next sequence id is an entry, its time bounds


def test_what_has_not_arrived_yet_is_behind() -> None:
    """Nothing later has arrived."""
    outcome = check(arrived([one for one in WRITTEN if one != BIG]))
    (behind,) = [problem for problem in outcome.problems if problem.kind == "behind"]
    assert (behind.from_seq, behind.to_seq) == (300, BIG)


def test_what_the_witness_was_not_sent_is_no_gap() -> None:
    """A peer that was added later, or a witness that lags."""
    outcome = check(arrived([2, *WRITTEN, BIG + 1]))
    assert outcome.verdict is Verdict.UNVERIFIABLE


def test_a_status_from_a_witness_is_refused_by_whoever_is_not_ready_for_it(tmp_path: Path) -> None:
    """It would look like one from trackers."""
    with StatusWriter(tmp_path / "f", MASTER) as writer:
        for batch in source().read(0):
            writer.write(batch)
    with pytest.raises(StatusFileError, match="comes from a witness"):
        open_status(tmp_path / "f")
    with open_status(tmp_path / "f", witnessed=True) as file:
        assert file.header.witnesses == ("one",)


def test_a_folder_that_is_none_or_damaged_is_refused(tmp_path: Path) -> None:
    """Entries that were acknowledged would be missing."""
    with pytest.raises(ConfigurationError, match=r"is no folder of a witness \(cluster.id: No such file"):
        witness_stores([tmp_path])
    with pytest.raises(ConfigurationError, match="is no folder of a witness"):
        read_arrivals(tmp_path)
    copy = Path(shutil.copytree(FOLDER, tmp_path / "copy"))
    log = bytearray((copy / "2.log").read_bytes())
    log[-1] ^= 1
    (copy / "2.log").write_bytes(log)
    assert list(read_arrivals(copy)[LOCAL].sequence_ids) == [4, 5, 6, 9, 12]  # the end was not written whole
    log[10] ^= 1
    (copy / "2.log").write_bytes(log)
    with pytest.raises(ConfigurationError, match="is damaged at byte 0"):
        read_arrivals(copy)


def test_folders_of_several_witnesses_are_those_of_one_peer(tmp_path: Path) -> None:
    """Others have been sent something else."""
    assert witness_stores([FOLDER, FOLDER]).ids == {(FOLDER / "store.id").read_text().strip()}
    copy = Path(shutil.copytree(FOLDER, tmp_path / "copy"))
    (copy / "cluster.id").write_text(OTHER)
    with pytest.raises(ConfigurationError, match="2 different witnesses"):
        witness_stores([FOLDER, copy])
