"""Advice for problems: where to look, and the command that copies missing rows."""

from __future__ import annotations

import re
import shlex
from collections.abc import Callable, Sequence

from status_tool.printable import iso, printable_key
from status_tool.rules.context import RunContext
from status_tool.rules.segments import SINCE_MARGIN_MS
from status_tool.rules.sides import LOCAL_POOL
from status_tool.rules.words import since_option
from status_tool.vocabulary.codes import CODES, REGIONS, Copy, repaired_by
from status_tool.vocabulary.findings import Finding
from status_tool.vocabulary.header import Header
from status_tool.vocabulary.outcome import Repair
from status_tool.vocabulary.selection import LOCAL

PEER_PLACEHOLDER = "<slave quorum:port:/znode>"
MASTER_PLACEHOLDER = "<master quorum:port:/znode>"
FILESYSTEM_PLACEHOLDER = "hdfs://<master NameNode>"
SLAVE_FILESYSTEM_PLACEHOLDER = "hdfs://<slave NameNode>"
_MAPREDUCE = "org.apache.hadoop.hbase.mapreduce"
_GLOB = re.compile(r"[*?\[\]{}\\]")
COPY_TABLE = f"{_MAPREDUCE}.CopyTable"
HASH_TABLE = f"{_MAPREDUCE}.HashTable"
SYNC_TABLE = f"{_MAPREDUCE}.SyncTable"
# HBase's own number for all versions (`HConstants.ALL_VERSIONS`).
ALL_VERSIONS = 2**31 - 1
HOLES = repaired_by(Copy.HOLE)
TABLE_COPIES, CONTENTS, FILE_COPIES = map(repaired_by, (Copy.TABLE, Copy.CONTENT, Copy.FILE))
UNDER_REPAIRS = "the commands are under Repairs"
"""In the words of `todo`."""
UNDRAINED = (
    "waiting here does not help: its queue was not drained when FILE was written, and FILE does not change."
    " Write a new FILE on the master, `run -m -o FILE --wait 300 --drained`, and check against that"
)
"""Advice about an origin whose queue was not drained when FILE was written."""

ROWS = "--rows --master-conf DIR"
"""The option that proves a table row by row; DIR is the master's configuration."""
SYNC_DELETES = "SyncTable deletes what only the slave has: --doDeletes=false keeps what others wrote"
"""Stands beside each such command: other masters may write to the slave, or the application after a failover."""
_MARKERS = (
    ". Where clients set their own timestamps, `flush` and `major_compact` the table on the slave first: what was"
    " deleted there hides what comes later with older timestamps"
)
"""Rows are equal with and without such delete markers."""


def anew_option(table: str | None, time_ms: int | None, cut_ms: int | None = None) -> str:
    """Return the options that accept a table's past, and with it what has happened to the table on the slave by now.

    With a `cut_ms`, they accept all writes up to FILE's cut: no later time is taken for a baseline of its streams, and
    the event's is of the slave's clock.
    """
    name = "TABLE" if table is None else table
    until_ms = time_ms if time_ms is None or cut_ms is None else cut_ms
    return f"--forget {shlex.quote(name)} {since_option(name, until_ms)}"


def text_of(code: str, table: str | None = None, time_ms: int | None = None, master: Header | None = None) -> str:
    """Return the advice for a code, before any command; empty if its words say all."""
    anew, known = anew_option(table, time_ms, master.cut_ms if master else None), CODES.get(code)
    text = (known.advice if known else None) or ""
    # Not `format`: advice may show commands of HBase's shell, with braces of its own.
    return text.replace("{since}", since_option(table, time_ms, master)).replace("{anew}", anew)


def advise(finding: Finding, context: RunContext, *, in_words: bool = False) -> str | None:
    """Return the advice for a finding; None if nothing helps or is needed.

    `in_words`: without commands. Those of its table's repair stand elsewhere.
    """
    advice = _advice(finding, context, in_words)
    if advice is None or "--rows" not in advice or not context.master.is_witnessed:
        return advice
    # The master has no trackers, which would digest rows.
    word = anew_option(finding.table, context.master.cut_ms)
    return f"{advice} (a FILE from a witness takes no --rows: compare by HashTable and SyncTable, then {word})"


def _advice(finding: Finding, context: RunContext, in_words: bool) -> str | None:
    if finding.code in HOLES:
        return _repair(finding, context, in_words)
    if finding.code == "keeps-less":
        return (
            "alter the slave's table to match the master's, then compare it once (--rows) and copy what is"
            f" already gone; or accept that it keeps less with --accept-drift {finding.table}"
        )
    if finding.code == "own-code" and finding.written_to_ms is not None:
        option = since_option(None, finding.written_to_ms, context.master)
        return f"compare the tables (--rows), then accept what was written with {option}"
    if finding.code == "origin" and finding.origin in context.queues.undrained:
        return UNDRAINED
    if finding.code in CONTENTS:
        return _compare(finding, context)
    if finding.code == "older-than-tracker":
        return _baseline(finding.table, context.master)
    text = text_of(finding.code, finding.table, finding.written_to_ms, context.master)
    if (repair := repair_of(finding, context)) is not None:
        return f"{text}: {UNDER_REPAIRS if in_words else repair.copy_table}"
    command = "" if in_words else copy_of_file(finding, context)
    return f"{text}: {command}" if command else text or None


def copy_of_file(finding: Finding, context: RunContext) -> str:
    """Return the command that replaces the slave's file by the master's, quoted for a shell; empty if none helps."""
    if finding.path is None or finding.code not in FILE_COPIES:
        return ""
    there = context.scope.path_map.to_slave(finding.path)
    is_local = there.startswith(LOCAL)
    # DistCp's tasks run on other hosts, which do not have the local folders of this one.
    if context.master.hdfs_pool_id == LOCAL_POOL or (context.slave.hdfs_pool_id == LOCAL_POOL and not is_local):
        return ""
    ours, theirs = context.master.filesystem, context.slave.filesystem
    # A nameservice that both clusters call by one name says nothing: placeholders stand for it.
    if ours == theirs:
        ours = theirs = ""
    # Both commands take the source for a glob.
    source = (ours or FILESYSTEM_PLACEHOLDER) + _GLOB.sub(r"\\\g<0>", finding.path)
    if is_local:
        command, target = "hadoop fs -get -f", there.removeprefix(LOCAL)
    else:
        # `-pbc` keeps block size and checksum type: otherwise the checksums could not be compared afterwards.
        command, target = "hadoop distcp -overwrite -pbc", (theirs or SLAVE_FILESYSTEM_PLACEHOLDER) + there
    return f"{command} {shlex.quote(source)} {shlex.quote(target)}"


def check_of_copy(table: str, copied_to_ms: int, master: Header) -> str:
    """Return the check that follows the copy of a table, quoted for a shell. DIR is the master's configuration.

    With a master without trackers no rows are compared: there it takes the operator's word for the copy.
    """
    proof = word_for_copy(table, copied_to_ms, master.cut_ms) if master.is_witnessed else ROWS
    return f"status-tool run -i FILE --table {shlex.quote(table)} {proof}"


def word_for_copy(table: str | None, copied_to_ms: int, cut_ms: int) -> str:
    """Return the options that accept a table whose entries up to a time have been copied, quoted for a shell."""
    since = copied_to_ms + SINCE_MARGIN_MS
    anew = anew_option(table, min(since, cut_ms))
    # No later baseline is taken, and what was written after a shutdown time is not asked for.
    return anew if since <= cut_ms else f"-s {cut_ms} {anew}"


def _command(main: str, options: Sequence[str]) -> str:
    return " ".join(["hbase", main, *(shlex.quote(option) for option in options)])


def _span(
    times: tuple[int | None, int | None], keys: tuple[bytes | None, bytes | None], shown: Callable[[bytes], str]
) -> list[str]:
    """Return the options for rows and times, with margins for entries appended out of the order of their write times.

    `shown` is how the command takes row keys.
    """
    # HBase's `TimeRange` refuses a negative start, and leaves its end out.
    options = [] if times[0] is None else [f"--starttime={max(0, times[0] - SINCE_MARGIN_MS)}"]
    options += [] if times[1] is None else [f"--endtime={times[1] + SINCE_MARGIN_MS + 1}"]
    options += [f"--startrow={shown(keys[0])}"] if keys[0] else []
    return options + ([f"--stoprow={shown(keys[1])}"] if keys[1] else [])


def _repair(finding: Finding, context: RunContext, in_words: bool) -> str:
    if (commands := repair_of(finding, context)) is None:
        return (
            f"check the region server's log for region {finding.region}, and at"
            " `status 'replication'` in the master's hbase shell; FILE does not name its table"
        )
    copy = UNDER_REPAIRS if in_words else f"{commands.copy_table}{_afterwards(finding, context.master)}"
    return f"{_look(finding, context)}{copy}"


def _look(finding: Finding, context: RunContext) -> str:
    server, disabled_peer = context.origin_name(finding.origin), context.queues.disabled_peer
    if finding.code == "gap":
        return "replication will not resend these entries; copy them from the master: "
    if disabled_peer is not None:
        return (
            f"peer {disabled_peer} is disabled on the master: `enable_peer '{disabled_peer}'` there, then check again"
            " with --wait; or copy: "
        )
    return (
        "check again with --wait; if it does not shrink, check `status 'replication'` and the log of"
        f" {server or 'the region servers'} on the master, or copy: "
    )


def repair_of(finding: Finding, context: RunContext) -> Repair | None:
    """Return the commands that repair a finding; None where copying repairs nothing, or the table is unknown."""
    if finding.table is None or finding.code not in (*HOLES, *TABLE_COPIES, *CONTENTS):
        return None
    # Cells that came or went beside the streams may have any timestamp, so no time bounds them.
    return repair(
        finding.table,
        (None, None) if finding.code in (*TABLE_COPIES, *CONTENTS) else (finding.written_from_ms, finding.repair_to_ms),
        (None, None) if finding.code in TABLE_COPIES else (finding.start_key, finding.end_key),
        families_of(finding, context),
        context.master,
        context.slave.cluster_key,
        f"{context.master.cut_ms}-{finding.region or 'table'}-{finding.from_seq or 0}",
    )


def repair(
    table: str,
    times: tuple[int | None, int | None],
    keys: tuple[bytes | None, bytes | None],
    families: Sequence[str],
    master: Header,
    slave_key: str,
    mark: str,
) -> Repair:
    """Return the commands for rows of a table within `keys`, written in `[start_ms, end_ms)`, deletes included.

    `mark` makes the name of the hashes' folder unique, which must not exist yet.
    """
    # HDFS refuses a colon in a path (`DFSUtilClient.isValidName`), and names with a namespace have one.
    name = "".join(char if char.isalnum() or char in "._-" else "_" for char in table)
    folder = f"{master.filesystem or FILESYSTEM_PLACEHOLDER}/tmp/status-tool-{name}-{mark}"
    chosen = [f"--families={','.join(families)}"] if families else []
    # HashTable takes row keys in hex (`HashTable.doCommandLine`), unlike CopyTable, and would hash the newest version
    # of each column only.
    copied = [*_span(times, keys, printable_key), *chosen, "--all.cells", f"--peer.adr={slave_key or PEER_PLACEHOLDER}"]
    hashed = [*_span(times, keys, bytes.hex), f"--versions={ALL_VERSIONS}", *chosen]
    # SyncTable must run on the slave: its mappers read the table of the cluster they run on (`--targetzkcluster` names
    # only where it writes to), so on the master it would compare the master with itself.
    source = f"--sourcezkcluster={master.cluster_key or MASTER_PLACEHOLDER}"
    return Repair(
        _command(COPY_TABLE, [*copied, table]),
        _command(HASH_TABLE, [*hashed, table, folder]),
        _command(SYNC_TABLE, [source, folder, table, table]),
    )


def families_of(finding: Finding | None, context: RunContext, table: str | None = None) -> Sequence[str]:
    """Return the families that a repair of the finding copies, or those of the whole `table`; empty for all of them."""
    if finding is not None and finding.code == "family-absent" and finding.note:
        return finding.note.split(", ")
    return context.families_of(table if finding is None else finding.table)


def _afterwards(finding: Finding, master: Header) -> str:
    if finding.repair_to_ms is None:
        return ""
    anew = word_for_copy(finding.table, finding.repair_to_ms, master.cut_ms)
    proof = f"check with {ROWS}, which proves the copy. Where the master is gone, "
    return (
        " (SyncTable, without --starttime and --endtime, where clients set their own timestamps); then"
        f" {'' if master.is_witnessed else proof}{anew} takes your word for it and leaves the copy unproven"
    )


def _compare(finding: Finding, context: RunContext) -> str:
    commands = repair_of(finding, context)
    how = ""
    if commands:
        how = f": {commands.hash_table} on the master, then {commands.sync_table} on the slave ({SYNC_DELETES})"
    since = finding.written_to_ms
    accept = f"; then check again with {ROWS}{_MARKERS}"
    table = context.facts.get(finding.table)
    if finding.code == "differs" and table is not None and table.written_ms is not None:
        accept += (
            ". Others than this master wrote to the table (see the notes), and what they put or deleted differs as"
            " well: without --rows the streams of this master are checked by themselves"
        )
    if since is not None and finding.code != "differs":
        anew = anew_option(finding.table, since, context.master.cut_ms)
        option = since_option(finding.table, since, context.master) if finding.code in REGIONS else anew
        accept += f". Where the master is gone, {option} takes your word for it"
    if finding.code == "slave-written":
        accept += f". Where these writes are meant to be, --accept-drift {finding.table} accepts them for good"
    return f"compare the rows of both sides, deletes included{how}{accept}"


def _baseline(table: str | None, master: Header) -> str:
    coverage_ms = master.coverage_ms
    if coverage_ms is None:
        return "install the tracker on every region server of the master (`status-tool setup`)"
    return (
        f"{since_option(table, coverage_ms, master)} accepts a baseline that was copied by snapshot after"
        f" {iso(coverage_ms)}; or compare the table once (--rows)"
    )
