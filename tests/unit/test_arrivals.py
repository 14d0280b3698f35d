"""What a witness was sent, from its folder to a verdict: gaps are found exactly, and complete needs every proof."""

from __future__ import annotations

import json
import shutil
import struct
import zlib
from collections.abc import Collection
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from status_tool.errors import ConfigurationError, StatusFileError
from status_tool.rules.peer_versions import REFRESHED_MS
from status_tool.rules.queue_proofs import QueueFacts
from status_tool.rules.witnessed import REOPENED_MS, WitnessFacts, covered_since, witness_facts
from status_tool.sources.arrivals import ArrivalKey, Entries, Mark, WitnessSource, began_again, read_arrivals
from status_tool.sources.codec import Witnessed, following
from status_tool.sources.crc import crc32c
from status_tool.sources.witness_folders import witness_stores
from status_tool.status_file.reader import open_status
from status_tool.status_file.writer import StatusWriter
from status_tool.vocabulary.header import SKEW_MS, Header
from status_tool.vocabulary.ids import origin_id, via_id
from status_tool.vocabulary.outcome import Outcome
from status_tool.vocabulary.scope import NOTHING_ACCEPTED, Baseline, Scope, TableFilter
from status_tool.vocabulary.verdicts import Evidence, Verdict
from tests.judgement import verify_rows
from tests.pair import REPOSITORY
from tests.unit.test_evidence_reference import hbase
from tests.witness import sequence_ids

FOLDER = REPOSITORY / "coprocessor_stubs/src/test/resources/witness"
"""As `ArrivalStoreTest` writes it."""
PRUNED = FOLDER.with_name("witness-pruned")
SENDER = "00000000-0000-0001-0000-000000000002"
OTHER = "00000000-0000-0003-ffff-fffffffffffc"
MS = 1_700_000_000_000
LOCAL = ArrivalKey("ns:t", "r1", (SENDER,), ("f",))
BIG = 1 << 40
WRITTEN = (4, 5, 6, 9, 10, 12, 300, BIG)
"""Entries of the master itself with cells of f."""
MASTER = Header(
    "master",
    SENDER,
    MS * 2,
    MS * 2,
    barrier_issued_ms=MS * 2,
    coverage_ms=1,
    evidence="witnessed",
    witnesses=("one",),
    witness_peer="w",
)
SLAVE = Header("slave", "00000000-0000-4000-8000-000000000002", MS * 2 + 9, MS * 2 + 9)

Row = dict[str, Any]


def source() -> WitnessSource:
    return WitnessSource({FOLDER: Mark()}, SENDER, TableFilter())


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


TABLE = {"families": {"f": {"scope": 1}, "gé": {"scope": 1}}}
OF_R1 = {"table": "ns:t", "region": "r1"}
REGION: Row = {"kind": "region", **OF_R1, "state": "unhosted", "server": "a,1,1", "region_id": 2}
SERVED = QueueFacts(witness=WitnessFacts())
ALL_OTHERS = [*arrived([10], "gé"), *arrived([7], "f", OTHER, SENDER)]
CREATED: Row = {"kind": "fact", "table": "ns:t", "region": "", "state": "split", "region_id": 2}
LOADED, CHANGED = (
    [CREATED, {"kind": "fact", **OF_R1, "state": one, "write_ms": MS}] for one in ("bulkload", "changed")
)


def check(
    theirs: list[Row],
    master: Header = MASTER,
    facts: QueueFacts = SERVED,
    table: Row | None = TABLE,
    more: Collection[Row] = (CREATED,),
    since: Baseline = NOTHING_ACCEPTED,
    region: Row = REGION,
) -> Outcome:
    """The verdict, where the slave has everything of the other streams."""
    server = {"kind": "server", "origin": 9, "server": "b,1,1", "role": "r", "live": True, "tracked": True}
    described = [{"kind": "table", "table": "ns:t", "detail": json.dumps(table)}] if table else []
    held = {"kind": "table", "table": "ns:t", "detail": json.dumps({"families": {"f": {}, "gé": {}}, "regions": 1})}
    unstamped = {"kind": "unstamped", "table": "ns:t", "region": "r1", "write_ms": MS, "via_ids": None}
    theirs = [*theirs, *ALL_OTHERS, held, unstamped, {**server, "echoed": True}]
    ours = [*rows("stream", "server", "fact"), region, *described, *more]
    return verify_rows(ours, theirs, master, SLAVE, Scope(check_hdfs=False, since=since), facts)


def codes(outcome: Outcome) -> set[str]:
    return {problem.code for problem in outcome.problems}


def test_the_folder_is_read_as_the_witness_writes_it() -> None:
    """Of the first set and the log that was being written."""
    found = read_arrivals(FOLDER)
    assert {key: list(sequence_ids(entries)) for key, entries in found.items()} == {
        LOCAL: [4, 5, 6, 9, 12, 300, BIG],
        ArrivalKey("ns:t", "r1", (OTHER, SENDER), ("f",)): [7],
        ArrivalKey("ns:t", "r1", (SENDER,), ("f", "gé")): [10],
    }
    assert list(found[LOCAL].lows) == list(found[LOCAL].highs) == [MS + one for one in sequence_ids(found[LOCAL])]


def test_a_load_that_is_not_to_be_replicated_never_counts_as_shipped(monkeypatch: pytest.MonkeyPatch) -> None:
    """The witness keeps its marker under another name."""
    loads = {
        ArrivalKey("ns:t", region, (SENDER,), (family,)): Entries.of([(4, 4, MS, MS)])
        for region, family in (("r1", "METAFAMILY"), ("r2", "METAFAMILY/local"))
    }
    monkeypatch.setattr(WitnessSource, "arrivals", lambda _: iter([loads]))
    assert {(row["region"], row["state"]) for row in rows("fact")} == {("r1", "bulkload"), ("r2", "localload")}
    assert rows("stream") == []


def test_each_family_is_a_stream_and_says_what_lies_between_its_entries() -> None:
    """By the clusters that the entries passed, without the sender as in a head."""
    streams = {(row["family"], row["via_ids"]): (row["seq"], row["entries"]) for row in rows("stream")}
    passed = bytes.fromhex(OTHER.replace("-", ""))
    assert streams == {("f", None): (BIG, 8), ("f", passed): (7, 1), ("gé", None): (10, 1)}
    between = [(row["prev"], row["seq"]) for row in rows("segment") if row["via"] == via("f", SENDER)]
    assert between == [(0, 4), (6, 9), (10, 12), (12, 300), (300, BIG)]


def test_complete_if_nothing_is_in_doubt() -> None:
    """The evidence says on what it rests."""
    outcome = check(arrived(WRITTEN))
    assert outcome.verdict is Verdict.COMPLETE, outcome.problems
    assert hbase(outcome).evidence is Evidence.WITNESSED


LESS = QueueFacts(witness=WitnessFacts(withheld={"ns:t": ("f",)}))
DOUBTS: dict[str, tuple[str, dict[str, Any]]] = {
    "its queue is not drained": ("witnessed", {"master": replace(MASTER, unwitnessed="about 7 bytes of WALs")}),
    "FILE does not say which peer it is": ("witnessed", {"facts": QueueFacts()}),
    "its peer has code of its own": ("witnessed", {"facts": QueueFacts(witness=WitnessFacts("its peer w has"))}),
    "its peer ships less": ("not-witnessed", {"facts": LESS}),
    "writes that are acknowledged early": ("not-witnessed", {"table": {**TABLE, "durability": "ASYNC_WAL"}}),
    "a table that was altered": ("not-witnessed", {"table": {**TABLE, "altered_ms": MS}}),
    "a region that has not read its table's descriptor": (
        "not-witnessed",
        {
            "table": TABLE | {"altered_ms": MS, "opened_ms": MS - 30_001},
            "since": Baseline(None, {"ns:t": MS + 600_000}),
        },
    ),
    "a table without a descriptor": ("not-described", {"table": None}),
    "the table may be older than the peer": ("older-than-tracker", {"more": [{**CREATED, "region_id": 0}]}),
    "nobody knows how old the table is": ("older-than-tracker", {"more": [{**CREATED, "region_id": None}]}),
    "since when it is sent is not known": ("older-than-tracker", {"master": replace(MASTER, coverage_ms=None)}),
    "a bulk load": ("bulkload", {"more": LOADED}),
    "a region that lived again": ("content-changed", {"more": CHANGED}),
    "one that was merged since": ("content-changed", {"more": CHANGED, "region": {**REGION, "region": "r2"}}),
}


@pytest.mark.parametrize(("code", "doubt"), DOUBTS.values(), ids=DOUBTS)
def test_each_doubt_alone_keeps_it_from_being_complete(code: str, doubt: dict[str, Any]) -> None:
    """Although the slave has every entry that the witness was sent."""
    outcome = check(arrived(WRITTEN), **doubt)
    assert outcome.verdict is Verdict.UNVERIFIABLE, outcome.problems
    assert code in codes(outcome)


def test_the_operators_word_is_a_way_out_of_what_was_before() -> None:
    """For tables that are older than the witness, or that were altered."""
    altered = {"table": {**TABLE, "altered_ms": MS}}
    old = {"more": [{**CREATED, "region_id": 0}]}
    for doubt, until_ms in ((altered, MS + REOPENED_MS), (old, 1)):
        outcome = check(arrived(WRITTEN), **doubt, since=Baseline(by_table={"ns:t": until_ms}))
        assert outcome.verdict is Verdict.COMPLETE, outcome.problems
        assert hbase(outcome).evidence is Evidence.ACCEPTED
        earlier = check(arrived(WRITTEN), **doubt, since=Baseline(by_table={"ns:t": until_ms - 1}))
        assert earlier.verdict is Verdict.UNVERIFIABLE


def test_the_operators_word_covers_an_alter_of_the_last_minutes_before_the_cut() -> None:
    """The regions are known to have been opened anew only after the cut, for which no word is taken."""
    cut_ms = MS + REOPENED_MS // 2
    master = replace(MASTER, cut_ms=cut_ms, barrier_issued_ms=cut_ms)
    doubt: dict[str, Any] = {"table": {**TABLE, "altered_ms": MS}, "master": master}
    (problem,) = check(arrived(WRITTEN), **doubt).problems
    assert f"with --since ns:t={cut_ms};" in (problem.advice or "")
    for until_ms, verdict in ((cut_ms, Verdict.COMPLETE), (cut_ms - 1, Verdict.UNVERIFIABLE)):
        given = check(arrived(WRITTEN), **doubt, since=Baseline(by_table={"ns:t": until_ms}))
        assert given.verdict is verdict, given.problems


def test_any_change_of_the_peer_begins_anew() -> None:
    """It may have shipped less before; and nobody knows of folders that were there before what names them."""
    peer = {"created_ms": MS, "modified_ms": MS}
    assert covered_since(peer, 0) == MS + REFRESHED_MS
    assert covered_since({**peer, "modified_ms": MS + 7}, 0) == MS + 7 + REFRESHED_MS
    assert covered_since(peer, MS * 2) == MS * 2


def test_the_peer_must_ship_what_the_slaves_ships() -> None:
    """By table and family."""
    peer = {"id": "w", "created_ms": MS, "modified_ms": MS}
    facts = witness_facts(peer, {"t": ("f", "g"), "u": ("f",)}, {"t": ("f",)})
    assert facts == WitnessFacts(since_ms=MS + REFRESHED_MS)
    assert witness_facts(peer, {"t": ("f",)}, {"t": ("f", "g"), "u": ("f",)}).withheld == {"t": ["g"], "u": ["f"]}
    assert "filters" in (witness_facts({**peer, "entry_filters": "Mine"}, {}, {}).doubt or "")


def test_a_region_that_lived_again_is_told_by_its_write_times() -> None:
    """A sequence id of two entries, or one that was written long after a higher one; not by clocks that differ."""

    def of(*pairs: tuple[int, int]) -> int | None:
        return began_again(Entries.of((one, one, MS + ms, MS + ms) for one, ms in pairs))

    assert of((4, 0), (5, 10), (5, 10), (7, 5), (4, 0)) is None
    assert of((4, 2 * SKEW_MS), (5, 0)) is None
    assert of((4, 0), (5, 10), (5, 90)) == MS + 90
    assert of((4, 2 * SKEW_MS + 1), (5, 0)) == MS + 2 * SKEW_MS + 1


def test_what_a_witness_has_pruned_is_read_as_runs() -> None:
    """Of each run the sequence ids are known, and the bounds of its write times."""
    found = read_arrivals(PRUNED)
    runs = [(first, last, MS + first, MS + last) for first, last in ((4, 12), (300, 300), (BIG, BIG))]
    assert list(found[LOCAL].runs()) == runs
    assert found[LOCAL].count() == 11
    assert list(sequence_ids(found[LOCAL])) == [*range(4, 13), 300, BIG]
    two = ArrivalKey("ns:t", "r1", (OTHER, SENDER), ("f", "gé"))
    assert list(found[two].runs()) == [(7, 7, MS - 1000, MS - 1000)]
    pruned = WitnessSource({PRUNED: Mark()}, SENDER, TableFilter())
    found_rows = [row for batch in pruned.read(0) for row in batch.to_pylist() if row["via"] == via("f", SENDER)]
    (stream,) = [row for row in found_rows if row["kind"] == "stream"]
    assert (stream["seq"], stream["first_ms"], stream["write_ms"], stream["entries"]) == (BIG, MS + 4, MS + BIG, 11)
    gaps = [(row["prev"], row["seq"], row["started_ms"]) for row in found_rows if row["kind"] == "segment"]
    assert gaps == [(0, 4, 0), (12, 300, MS + 12), (300, BIG, MS + 300)]


def test_entries_that_come_again_after_pruning_change_nothing() -> None:
    """In whatever files and folders they are."""
    run, again = (4, 12, MS + 4, MS + 12), [(one, one, MS + one, MS + one) for one in (4, 9, 12)]
    entries = Entries.of([(9, 9, MS + 9, MS + 9), run, *again, (11, 14, MS + 11, MS + 14)]).as_set()
    assert began_again(entries) is None
    assert entries.count() == 11
    streams = WitnessSource({}, SENDER, TableFilter())._rows(("t", "r", (b"",), "f"), entries)
    assert [(row["kind"], row["seq"]) for row in streams] == [("stream", 14), ("segment", 4)]


@pytest.mark.parametrize(
    ("later", "again_ms"),
    [
        ((4, 4, 13, 13), 13),  # at the run's first id
        ((9, 9, 13, 13), 13),  # within
        ((12, 12, 13, 13), 13),
        ((9, 9, 3, 3), 12),
        ((3, 3, 5 + 2 * SKEW_MS, 5 + 2 * SKEW_MS), 5 + 2 * SKEW_MS),  # below it, and long after it
        ((3, 3, 4, 4), None),
        ((13, 13, 4, 4), None),
    ],
)
def test_a_later_life_is_told_after_pruning(later: tuple[int, int, int, int], again_ms: int | None) -> None:
    """Its entries were written after all of a run that have their sequence ids."""
    assert began_again(Entries.of([(4, 12, 4, 12), later])) == again_ms
    assert began_again(Entries.of([later, (4, 12, 4, 12)])) == again_ms


def test_a_folder_of_which_a_crash_has_left_more_is_read_once(tmp_path: Path) -> None:
    """Of two files with the same numbers the later one counts; numbers below it are not missing."""
    copy = Path(shutil.copytree(FOLDER, tmp_path / "copy"))
    shutil.copy(PRUNED / "1-2.runs", copy)
    assert read_arrivals(copy, Mark(3, 0)) == read_arrivals(PRUNED, Mark(3, 0))
    (copy / "1-2.runs").rename(copy / "1-1.runs")
    found = read_arrivals(copy, Mark(2, (copy / "2.log").stat().st_size))
    assert {*sequence_ids(found[LOCAL])} == {*range(4, 13), 300, BIG}
    with pytest.raises(ConfigurationError, match="has less than"):
        read_arrivals(PRUNED, Mark(3, 1))


def test_files_of_others_in_a_folder_are_left_alone(tmp_path: Path) -> None:
    """Its disk may be a file system of its own, and somebody may have put a note there."""
    copy = Path(shutil.copytree(FOLDER, tmp_path / "copy"))
    for name in ("notes.log", "before.set", "1-.runs", "lost+found"):
        (copy / name).write_bytes(b"x")
    assert read_arrivals(copy) == read_arrivals(FOLDER)


def test_a_log_that_became_a_set_while_the_folder_was_listed_is_missed_by_nobody(tmp_path: Path) -> None:
    """A listing may have neither, and the next log, which reaches further than what was acknowledged."""
    copy = Path(shutil.copytree(FOLDER, tmp_path / "copy"))
    (copy / "1.set").unlink()
    with pytest.raises(ConfigurationError, match="has less than"):
        read_arrivals(copy, Mark(1, 7))


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
    outcome = check(arrived([2, *WRITTEN, BIG + 1]), master=replace(MASTER, unwitnessed="it lags"))
    assert codes(outcome) == {"witnessed"}


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
    with pytest.raises(ConfigurationError, match=r"is no folder of a witness \(store.id: No such file"):
        witness_stores([tmp_path])
    with pytest.raises(ConfigurationError, match="is no folder of a witness"):
        read_arrivals(tmp_path)
    (tmp_path / "store.id").write_bytes(b"\xff")
    with pytest.raises(ConfigurationError, match=r"is no folder of a witness \(store.id: it is no text"):
        witness_stores([tmp_path])
    copy = Path(shutil.copytree(FOLDER, tmp_path / "copy"))
    log = bytearray((copy / "2.log").read_bytes())
    log[-1] ^= 1
    (copy / "2.log").write_bytes(log)
    assert list(sequence_ids(read_arrivals(copy)[LOCAL])) == [4, 5, 6, 9, 12]  # the end was not written whole
    log[10] ^= 1
    (copy / "2.log").write_bytes(log)
    with pytest.raises(ConfigurationError, match="is damaged at byte 0"):
        read_arrivals(copy)


@pytest.mark.parametrize(("folder", "name"), [(FOLDER, "1.set"), (PRUNED, "1-2.runs")])
def test_a_file_that_no_longer_grows_has_to_be_whole(folder: Path, name: str, tmp_path: Path) -> None:
    """Cut short or altered at any byte: its entries were acknowledged, and would be missing."""
    copy = Path(shutil.copytree(folder, tmp_path / "copy"))
    whole = (copy / name).read_bytes()
    damaged = [whole[:end] for end in range(len(whole))]
    damaged += [whole[:at] + bytes([whole[at] ^ 1]) + whole[at + 1 :] for at in range(len(whole))]
    for content in (*damaged, whole + b"\0"):
        (copy / name).write_bytes(content)
        with pytest.raises(ConfigurationError, match=r"is damaged at byte .* copy it again; else remove"):
            read_arrivals(copy)


def _record(body: bytes) -> bytes:
    return struct.pack(">iI", len(body), crc32c(body)) + body


@pytest.mark.parametrize(
    ("name", "body"),
    [
        *(("9.log", body) for body in (b"\x80", b"\x63\x01", b"\0\1t\1r\1ab")),
        ("9.log", b"\0\1t\1r\0\0\1" + 2 * (b"\xff" * 9 + b"\x7f")),
        *(("9-9.runs", body) for body in (b"zz", zlib.compress(b"\x80"))),
    ],
)
def test_a_record_that_no_witness_has_written_is_refused(name: str, body: bytes, tmp_path: Path) -> None:
    """Although its CRC is right."""
    copy = Path(shutil.copytree(FOLDER, tmp_path / "copy"))
    (copy / name).write_bytes(_record(body))
    with pytest.raises(ConfigurationError, match="a record cannot be parsed"):
        read_arrivals(copy)


@pytest.mark.parametrize(
    ("name", "content"), [("20261201120000.log", b""), ("9-999999999999.runs", _record(zlib.compress(b"")))]
)
def test_the_number_of_a_file_may_be_anything(name: str, content: bytes, tmp_path: Path) -> None:
    """As a log of somebody's own, named by its date: the numbers up to it took all memory."""
    copy = Path(shutil.copytree(FOLDER, tmp_path / "copy"))
    (copy / name).write_bytes(content)
    with pytest.raises(ConfigurationError, match="has less than its witness has acknowledged"):
        read_arrivals(copy)


def test_a_file_that_cannot_be_read_is_named(tmp_path: Path) -> None:
    """As one of another user's."""
    copy = Path(shutil.copytree(FOLDER, tmp_path / "copy"))
    (copy / "3.log").mkdir()
    with pytest.raises(ConfigurationError, match=r"cannot read .*3\.log: Is a directory"):
        read_arrivals(copy)


def test_a_folder_with_less_than_was_acknowledged_is_refused(tmp_path: Path) -> None:
    """As one that was restored from a backup; a set is made of a whole log."""
    whole = (FOLDER / "2.log").stat().st_size
    copy = Path(shutil.copytree(FOLDER, tmp_path / "copy"))
    for mark in (Mark(1, 10**9), Mark(2, whole - 1), Mark(2, whole), Mark.of(f"host:1 2 {whole}".encode())):
        assert len(read_arrivals(copy, mark)) == 3
    for mark in (Mark(2, whole + 1), Mark(3, 1)):
        with pytest.raises(ConfigurationError, match="has less than its witness has acknowledged"):
            read_arrivals(copy, mark)
    # A log that is cut short, and a set that is not there.
    for name, content in (("2.log", (FOLDER / "2.log").read_bytes()[:-1]), ("1.set", None)):
        folder = Path(shutil.copytree(FOLDER, tmp_path / name))
        (folder / name).unlink()
        if content is not None:
            (folder / name).write_bytes(content)
        with pytest.raises(ConfigurationError, match="has less than"):
            read_arrivals(folder, Mark(2, whole))
    with pytest.raises(ValueError, match="unpack"):
        Mark.of(b"host:1")


def test_folders_of_several_witnesses_are_those_of_one_peer(tmp_path: Path) -> None:
    """Others have been sent something else."""
    assert witness_stores([FOLDER, FOLDER]).places == {(FOLDER / "store.id").read_text().strip(): FOLDER}
    copy = Path(shutil.copytree(FOLDER, tmp_path / "copy"))
    (copy / "cluster.id").write_text(OTHER)
    with pytest.raises(ConfigurationError, match="2 different witnesses"):
        witness_stores([FOLDER, copy])
