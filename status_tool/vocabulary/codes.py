"""Every code of a finding: what it means for the verdict, what it says, and what to do about it. One entry a code.

`words` and `advice` are text with fields in braces. Those of `words` are `explain.problems.fields`; a finding's note
follows them where they do not name it. Those of `advice` are {since}, the option that accepts the past of the finding's
table, and {anew}, which also accepts what happened to it.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from enum import Enum, auto
from functools import partial
from typing import Generic, TypeVar

from status_tool.vocabulary.verdicts import FileStatus, Status

_S = TypeVar("_S", Status, FileStatus)


class Copy(Enum):
    """Rows or files to copy or compare for the repair of a finding."""

    HOLE = auto()
    """The rows of a region that were written in a time range: entries that have not arrived."""
    TABLE = auto()
    """A whole table, or its families."""
    CONTENT = auto()
    """All rows of a region or table are compared: they may be missing or left over."""
    FILE = auto()


@dataclass(frozen=True, slots=True)
class Code(Generic[_S]):
    """Meaning of a code."""

    status: _S
    words: str = ""
    """Empty where nothing is wrong."""
    advice: str | None = None
    """None if the code says all, or `explain.advice` decides by the finding."""
    repair: Copy | None = None
    is_by_hand: bool = False
    """True if a step by hand comes before copying helps."""
    is_about_rows: bool = False
    """True if equal rows refute what it says of a table, or equal rows of every table what it says of a run: entries
    may have gone unseen, or been changed. They do not where it is about a table's form, or about what digests do not
    compare."""


_doubt = partial(Code, Status.UNVERIFIABLE)
"""A code that names a doubt, as most do."""

STREAMS: dict[str, Code[Status]] = {
    # Everything up to the head has arrived.
    "covered": Code(Status.COMPLETE),
    # What has not arrived was written after the cut.
    "after-cut": Code(Status.COMPLETE),
    # All of it was written before the accepted baseline (`--since`) ends.
    "baseline": Code(Status.COMPLETE),
    # Everything that is known has arrived, but the origin may have appended more.
    "unsettled": _doubt(
        "unsettled: everything known of this stream has arrived, but origin {origin} {reason}",
        advice="see the problem of this origin",
    ),
    # The head has no sequence id, no origin, or no family.
    "unreadable-head": _doubt(
        "unreadable: the stream's head could not be read",
        advice="the stream's row in the master's state table is damaged: check the region server's log, or compare the"
        " table once (--rows --master-conf DIR)",
    ),
    # Entries may have been applied without a record of it.
    "unrecorded": _doubt(
        "not recorded: the slave has no record of entries after sequence id {from_seq} up to {to_seq}, but may have"
        " applied them: since the table's first entry, the slave's state table lost rows or went back to an earlier"
        " state, or one of its servers ran without the tracker",
        advice="compare the table once (--rows --master-conf DIR), which proves it anew; where the master is gone,"
        " {anew} takes your word for it",
    ),
    # The tail has not arrived.
    "behind": Code(Status.BEHIND, "behind: {reached}", repair=Copy.HOLE),
    # A hole that the slave's next flushes may still fill.
    "may-fill": Code(
        Status.BEHIND,
        "behind: entries after sequence id {from_seq} up to {to_seq} are not recorded although later ones are;"
        " this may still be filled",
        repair=Copy.HOLE,
    ),
    # Nothing has arrived.
    "missing": Code(Status.MISSING, "missing: nothing has arrived{upto}", repair=Copy.HOLE),
    # A hole that stays, although something later has arrived.
    "gap": Code(
        Status.GAP,
        "gap: entries after sequence id {from_seq} up to {to_seq} have not arrived although later ones have{more}",
        repair=Copy.HOLE,
    ),
}
"""Codes of a stream's status."""

REGIONS: dict[str, Code[Status]] = {
    # No region server hosts it, so that what it appended last may not be known.
    "unhosted": _doubt(
        "unhosted: the region is not hosted by any region server",
        advice="bring the region online on the master (hbase shell: `assign`), then run `run -m` again",
    ),
    # Its region server runs without the tracker, or is not known to run.
    "untracked": _doubt(
        "untracked: the region's server runs without the tracker, or is not known to be running",
        advice="start that server with the tracker (`status-tool setup`) and run `run -m` again",
    ),
    # It is gone from the master without split or merge.
    "truncated": _doubt(
        "truncated: the region is gone from the master without split or merge: the table was truncated, dropped"
        " or recreated, which replication does not carry",
        advice="once `status-tool queues` shows that the peer is drained (entries of a table that is gone block it),"
        " and if it was meant, truncate the table on the slave likewise (hbase shell: `truncate`; `disable` and `drop`"
        " if the master has dropped it), copy what the master has now, and accept the past with {anew}; if it was not"
        " meant, the slave has the rows",
        repair=Copy.TABLE,
        is_by_hand=True,
    ),
    # It opened with other store files than it was closed with.
    "content-changed": _doubt(
        "content changed: at {written_to} the region opened with store files that no stream tells of: a snapshot"
        " was restored or cloned, the region was truncated, files were placed or removed by hand, a family is"
        " replicated only since then, or was dropped and added again, or the table had kept less before (VERSIONS,"
        " TTL, KEEP_DELETED_CELLS, durability); replication carries none of these. It is not replicated at all before"
        " the region is opened anew, where its table was altered without that (REOPEN_REGIONS)",
        repair=Copy.CONTENT,
    ),
    # Files were bulk loaded that the queues do not prove to have been shipped, or with replication switched off.
    "bulkload": _doubt(
        "bulk load: files were loaded at {written_to}, {note}",
        advice="if hbase.replication.bulkload.enabled is on, wait until the peer's queue is drained (`status-tool"
        " queues`) and run `run -m` again; if the files were loaded on the slave as well, or it never drains (HBase"
        " keeps in hfile-refs what was loaded into families without scope), compare the rows (--rows --master-conf"
        " DIR); otherwise load the same files on the slave, or copy the rows (CopyTable, ExportSnapshot), and accept"
        " the past with {since}",
    ),
    # The trackers' streams and what a witness was sent cannot both be right.
    "contradiction": _doubt(
        "contradiction between trackers and witness: {note}; one of them is wrong, which is an error of this tool",
        advice="check again; if it stays, compare the table's rows, which decide it (--rows --master-conf DIR), and"
        " report a bug with FILE, the output of `run -i FILE -d`, and that of `run -d` on both clusters",
    ),
    # The queues settle a server that crashed, and nothing shows the last entries that it wrote to the region.
    "lost-tail": _doubt(
        "last entries unknown: {note} when it crashed, which neither its tracker nor the slave has recorded",
        advice="they may be markers of its last second, or lost with a replication queue that somebody removed; compare"
        " the region's rows (--rows --master-conf DIR), or accept the past with {since}",
        repair=Copy.CONTENT,
    ),
    # Entries of this master arrived without a valid stamp, so that it is not known which.
    "unstamped": _doubt(
        "unstamped: entries written up to {written_to} arrived without a valid stamp",
        advice="some entries came from a server without the tracker; compare the region's rows (--rows) and accept the"
        " past with {since}",
    ),
}
"""Codes of regions that are unverifiable as such."""

TABLES: dict[str, Code[Status]] = {
    # The slave does not have it.
    "absent": Code(
        Status.MISSING,
        "table absent on the slave",
        advice="create the table on the slave, then copy its rows",
        repair=Copy.TABLE,
        is_by_hand=True,
    ),
    # The slave's table lacks replicated families.
    "family-absent": Code(
        Status.MISSING,
        "family absent on the slave: {note}",
        advice="add the family on the slave (`alter`), then copy its rows",
        repair=Copy.TABLE,
        is_by_hand=True,
    ),
    # Its writes bypass the WAL by its descriptor.
    "skip-wal": _doubt(
        "SKIP_WAL: the table's writes bypass the WAL, and therefore replication",
        advice="change the durability on the master (hbase shell: `alter 'TABLE', DURABILITY => 'USE_DEFAULT'`), then"
        " copy the table's rows",
        repair=Copy.TABLE,
        is_by_hand=True,
        is_about_rows=True,
    ),
    # A family was not replicated at first; its older rows stay on the master.
    "scope-raised": _doubt(
        "replicated only since {written_to}: until then family {note} had replication scope 0, and its older"
        " rows were never shipped",
        advice="copy the family's older rows, then accept the past with {since}",
        repair=Copy.TABLE,
        is_about_rows=True,
    ),
    # Mutations that bypass the WAL were seen.
    "skipped-wal": _doubt(
        "SKIP_WAL: up to {written_to} some of the table's mutations bypassed the WAL, and therefore replication",
        advice="copy the rows that these mutations wrote, then accept the past with {since}",
        repair=Copy.TABLE,
        is_about_rows=True,
    ),
    # The slave's was created anew, truncated or lost a family after entries had arrived.
    "emptied": _doubt(
        "emptied: on the slave the table, part of it or a family was recreated, truncated or dropped at"
        " {written_to}, after replicated entries had arrived or its past was accepted: its earlier rows are gone",
        advice="copy what is missing and compare the table once (--rows --master-conf DIR), which proves it anew; where"
        " the master is gone, {anew} takes your word for it",
        repair=Copy.TABLE,
        is_about_rows=True,
    ),
    # The slave's state table lost rows or went back: what it says of the slave's content proves nothing any more.
    "slave-state-lost": _doubt(
        "slave state lost: at {written_to} the slave's state table had lost rows or gone back to an earlier"
        " state (restored, cloned, truncated): what it recorded before proves nothing about the slave's content",
        advice="compare the table once (--rows --master-conf DIR), which proves it anew; where the master is gone,"
        " {anew} takes your word for it",
        is_about_rows=True,
    ),
    # A server of the slave ran without the tracker, unseen by it.
    "slave-uncovered": _doubt(
        "not watched on the slave: until {written_to}, after replicated entries had arrived or the table's past was"
        " accepted, a region server of the slave ran without the tracker: nobody recorded what was deleted,"
        " restored or truncated there",
        advice="compare the table once (--rows --master-conf DIR), which proves it anew; where the master is gone,"
        " {anew} takes your word for it",
        is_about_rows=True,
    ),
    # No tracker vouches for one of the slave's regions, or its regions do not cover every key once.
    "unattended": _doubt(
        "unattended: no tracker vouches for the rows of the slave's table",
        advice="open every region of the table on a server with the tracker (`status-tool setup`; hbase shell:"
        " `assign`, `move`, `enable`), and check again with --wait; if a server without the tracker had one of them,"
        " compare the table once (--rows --master-conf DIR), because nobody recorded changes there",
        is_about_rows=True,
    ),
    # The slave's descriptor keeps less, so that what was applied may be gone.
    "keeps-less": _doubt("drift: the slave keeps less than the master, so applied cells may be gone there"),
    # A replicated family has the name by which HBase marks entries that it does not ship.
    "meta-family": _doubt(
        "a family is named METAFAMILY: HBase treats its cells as WAL markers and does not ship them",
        advice="move the rows to a family of another name: a region server crash would lose its cells as well",
        is_about_rows=True,
    ),
    # Store files of the slave's changed beside the WAL, or its table kept less, after entries had arrived.
    "slave-changed": _doubt(
        "content changed on the slave: at {written_to}, after replicated entries had arrived, a region of the"
        " table opened with store files other than those that it was closed with (a snapshot restored or cloned,"
        " a region truncated, files placed or removed by hand), or after a crash without entries that were in the"
        " write-ahead logs of its server (lost, damaged, put aside), or with settings that keep more than those before"
        " (VERSIONS, TTL, KEEP_DELETED_CELLS, durability), or it is still open with those before, as its table was"
        " altered without reopening it (REOPEN_REGIONS): what had arrived may be gone",
        repair=Copy.CONTENT,
        is_about_rows=True,
    ),
    # A client deleted or overwrote what had arrived, and nobody is there to be told.
    "slave-written": _doubt(
        "written to on the slave: clients of the slave itself last wrote to the table at {written_to}, and no peer"
        " of the slave ships it, or did when they began; what they deleted or overwrote may have been replicated"
        " before",
        repair=Copy.CONTENT,
        is_about_rows=True,
    ),
    # Heads of it were pruned that this slave was not proven to have.
    "pruned": _doubt(
        "pruned: `status-tool prune` on the master dropped the heads of streams written until {written_to}, which"
        " other slaves had; nobody can tell any more whether this slave has them",
        advice="compare the table once (--rows), copy what is missing, and accept the past with {since}",
        repair=Copy.TABLE,
        is_about_rows=True,
    ),
    # It may hold rows from before every region server was tracked.
    "older-than-tracker": _doubt(
        "older than the {recorder}: {coverage}, the table may hold rows from before",
        is_about_rows=True,
    ),
    # The witness may not have been sent all its entries.
    "not-witnessed": _doubt(
        "not witnessed: {note}",
        advice="compare the table by other means (HashTable and SyncTable), and accept what was written before with"
        " {since}; from then on the witness has all, as long as the reason is gone",
    ),
    # A side's descriptor cannot be read.
    "descriptor-unreadable": _doubt(
        "descriptor unreadable: the table's families on the {side} are unknown",
        advice="write that side's status again; if this persists, check the lines of `status-tool` in its region"
        " servers' logs",
    ),
    # It has regions, but no descriptor, or nothing has: nobody knows what is replicated.
    "not-described": _doubt(
        "not described: the trackers recorded no descriptor",
        advice="run `run -m` again with --wait (for a slave's table, this check), so that a tracker records all tables;"
        " if this persists, check the lines of `status-tool` in the region servers' logs",
        is_about_rows=True,
    ),
    # It is described, but none of its regions was recorded.
    "no-regions": _doubt(
        "no regions: none of the table's regions was recorded",
        advice="run `run -m` again when the table's regions are in hbase:meta",
    ),
    # Rows of both sides were compared, and differ for good.
    "differs": Code(Status.DIFFERS, "differs", repair=Copy.CONTENT, is_about_rows=True),
}
"""Codes of tables of which every region is affected."""

FILES: dict[str, Code[FileStatus]] = {
    # Both sides have it, with the same content according to the checksums, or it is empty on both.
    "match": Code(FileStatus.MATCH),
    # Only the slave has it.
    "file-extra": Code(
        FileStatus.EXTRA,
        "only on the slave",
        advice="nothing is lost; remove it on the slave if it should not be there",
    ),
    # A side could not read it; its `detail` says why.
    "file-unreadable": Code(
        FileStatus.UNVERIFIABLE,
        "unreadable: {unread}",
        advice="check permissions and missing blocks (hdfs fsck) on that side; --deep on both sides reads a file whose"
        " blocks differ in bytes per checksum (concat, an append)",
    ),
    # It was open for writing, changed on the master after the cut, or listed twice with different contents: what it was
    # at the cut is not known.
    "file-written": Code(
        FileStatus.UNVERIFIABLE,
        "{note}",
        advice="let its writer close it (hdfs debug recoverLease when the writer is gone), record the master's status"
        " again, and check again",
    ),
    # The lengths agree, or one is not known, and a side has no checksum.
    "no-checksum": Code(
        FileStatus.INCOMPARABLE,
        "HDFS has no checksum of it",
        advice="compare the content with --deep, or copy the file with a dfs.checksum.type that is not NULL",
    ),
    # Both checksums are known but of different algorithms or block layouts.
    "algorithm": Code(
        FileStatus.INCOMPARABLE,
        "not comparable: checksum algorithm or block layout differs",
        advice="compare the content with --deep, or copy the file with its block size and checksum type",
        repair=Copy.FILE,
    ),
    # Only the master has it.
    "file-missing": Code(
        FileStatus.MISSING,
        "absent on the slave",
        advice="copy the file; write FILE again if the master has deleted it since",
        repair=Copy.FILE,
    ),
    # Lengths, checksums of one algorithm, or what was read of both contents differ.
    "file-differs": Code(
        FileStatus.MISMATCH,
        "{note}",
        advice="compare the content with --deep if `concat` or an append may have ended a block early; else check that"
        " nobody writes the file any more, then copy it again; write FILE again if the master has changed it since",
        repair=Copy.FILE,
    ),
}
"""Codes of a file's status."""

RUNS: dict[str, Code[Status]] = {
    "own-code": _doubt(
        "replicated by other code: {note}, which may drop or change entries, or single cells of entries that count"
        " as applied",
        advice="remove it (add the peer again, restart those servers), compare the tables (--rows), and accept what was"
        " written until then with --since (of servers of the slave that ended after the cut with --forget TABLE --since"
        " TABLE=TIME for each table); while it is there, only --rows can prove a table complete",
        is_about_rows=True,
    ),
    "peers-elsewhere": _doubt(
        "peers kept elsewhere: on the master {note}, so that the peers in ZooKeeper, by which FILE tells what is"
        " shipped, may be those of before",
        advice="keep the peers in ZooKeeper (HBase's CopyReplicationPeers moves them), restart the servers and write a"
        " new FILE; until then only --rows can prove tables complete, if the peer in ZooKeeper leaves none out",
        is_about_rows=True,
    ),
    "not-compared": _doubt(
        "not compared: the table's rows could not settle it",
        advice="remove the reason, or wait until the rows stop changing (--wait), and check again with --rows; without"
        " --rows the streams decide alone",
    ),
    "origin": _doubt(
        "origin",
        advice="check the server's log and its region server page. If it lives, start it with the tracker (`status-tool"
        " setup`) and run `run -m` again with a longer --wait; if it is gone, run `run -m` again when its queue"
        " has drained (`status-tool queues`), or compare the tables once (--rows, SyncTable) and then accept what"
        " was written until then with --since",
        is_about_rows=True,
    ),
    # A server of the slave may have seen more than it has recorded.
    "slave-server": _doubt(
        "slave's region server: {note}, so that what its clients changed may not be recorded",
        advice="check again with --wait; if it stays, check that server's log, start it with the tracker (`status-tool"
        " setup`), and compare the tables once (--rows --master-conf DIR)",
        is_about_rows=True,
    ),
    "no-tracker": _doubt(
        "no tracker has ever flushed on the master",
        advice="set hbase.coprocessor.wal.classes on the master's region servers (`status-tool setup` prints how)",
        is_about_rows=True,
    ),
    "witnessed": _doubt(
        "not witnessed: the witness may lack entries from before the cut: {note}",
        advice="write a new FILE (`run -m --witness`) with a longer --wait, once `status-tool queues` shows the"
        " witness's queues drained; a gap in this one is a gap all the same",
    ),
    "slave-tables-unknown": _doubt(
        "slave tables unknown",
        advice="record the slave's status again, with its Thrift server reachable",
    ),
    "not-recorded": _doubt(
        "not recorded: the {side}'s status was recorded only for {on_side}",
        advice="record that side again with the same --table and --namespace",
    ),
    "not-replicated": _doubt(
        "nothing to check: {selected} has no replicated region on the master",
        advice="check --table and --namespace; `alter 'TABLE', {NAME => 'FAMILY', REPLICATION_SCOPE => 1}` replicates a"
        " family",
    ),
    "no-files": _doubt(
        "nothing to check: the master's status lists no files: the path does not exist or is empty, --exclude leaves"
        " out all of it, or FILE does not cover it",
        advice="correct the -f file, the configured paths or --exclude, and record the master's status again if it"
        " lacks the files",
    ),
    "slave-older": _doubt(
        "the slave's status is older than the cut: it was written at {written_from}, {age} before the cut at"
        " {written_to} (or the clocks of the two hosts differ): it cannot show what had arrived by then, nor what"
        " has changed on the slave since",
        advice="write the slave's status again with `run -o FILE2` on the slave, now that FILE is there, or check on"
        " the slave without --slave-status",
    ),
    "later-writes": _doubt(
        "later writes: {streams} written to after the recorded shutdown time {written_from}, the"
        " newest write at {written_to}; these writes are not in scope: either the recorded time is outdated, or"
        " something still writes",
        advice="if the application has run since, record the shutdown time again on the master (`shutdown-time record`;"
        " `shutdown-time clear` removes it) and run `run -m` again; if these writes do not matter, check with -s"
        " MILLIS or --ignore-later-writes, or leave the table out (--table, --namespace)",
    ),
}
"""Codes of runs that are unverifiable as a whole."""


def _statuses(codes: Mapping[str, Code[_S]]) -> dict[str, _S]:
    return {name: code.status for name, code in codes.items()}


STREAM_CODES = _statuses(STREAMS)
TABLE_CODES = _statuses(TABLES)
FILE_CODES = _statuses(FILES)
CODES: dict[str, Code[Status] | Code[FileStatus]] = {**FILES, **STREAMS, **REGIONS, **TABLES, **RUNS}


def repaired_by(copy: Copy) -> tuple[str, ...]:
    """Return the codes that a copy repairs."""
    return tuple(name for name, code in CODES.items() if code.repair is copy)
