"""The report that an operator reads on a terminal."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from typing import TextIO

from status_tool.evidence.model import HBaseOutcome, Outcome, Problem
from status_tool.printable import duration, iso_time, printable_key, safe
from status_tool.report.interface import (
    DEFAULT_ADVICE,
    EVIDENCE_WORDS,
    VERDICT_WORDS,
    Reporter,
    counted,
    file_counts,
    left_out,
    region_counts,
    timestamps_notice,
)

_INDENT = "   "
MAX_NAMES = 20
"""How many tables a line names; the JSON document has them all."""


class TextReporter(Reporter):
    """Writes summary, problems with advice, and as last lines the verdict of each half."""

    def write(self, outcome: Outcome, stream: TextIO) -> None:
        text = "".join(f"{line}\n" for line in _lines(outcome))
        encoding = getattr(stream, "encoding", None) or "utf-8"
        # A terminal that cannot show a letter of a table's name must not end the report.
        stream.write(text.encode(encoding, "backslashreplace").decode(encoding))


def _lines(outcome: Outcome) -> Iterator[str]:
    yield from summary_lines(outcome)
    if outcome.problems:
        yield ""
        yield f"{counted(len(outcome.problems), 'problem')}, worst first:"
        for number, problem in enumerate(outcome.problems, 1):
            yield from _problem_lines(number, problem)
    if rest := unlisted(outcome):
        yield ""
        yield rest
    yield ""
    yield from verdict_lines(outcome)


def summary_lines(outcome: Outcome) -> Iterator[str]:
    """Yield what was compared, how strong the evidence is, and the counts; every line is harmless."""
    peer = f", peer {safe(outcome.peer_id)}" if outcome.peer_id is not None else ""
    master, slave = safe(outcome.master_cluster_id), safe(outcome.slave_cluster_id)
    yield f"Master {master or 'unknown'}, slave {slave or 'unknown'}{peer}"
    yield f"Cut    {iso_time(outcome.cut_ms)} ({outcome.cut_ms}), {_cut_origin(outcome)}"
    if outcome.hbase is not None:
        yield f"HBase  {_counts(region_counts(outcome), 'region')}{_lag(outcome.hbase.worst_lag_ms)}"
        yield from _evidence(outcome.hbase)
    if outcome.hdfs is not None:
        yield f"HDFS   {_counts(file_counts(outcome), 'file')}"
    for notice in notices(outcome):
        yield f"Note   {safe(notice)}"


def _evidence(hbase: HBaseOutcome) -> Iterator[str]:
    """The weakest evidence first; then, where regions rest on different ones, how many on which."""
    yield f"       evidence {hbase.evidence.value}: {EVIDENCE_WORDS[hbase.evidence]}"
    if hbase.ordered_tables:
        yield f"       ordered: {ordered_tables(hbase)}: the peer ships only some of their replicated families"
    if left_out := not_replicated(hbase):
        yield f"       {left_out}"
    counts = {level.value: count for level, count in hbase.evidence_by.items() if count}
    if len(counts) > 1:
        yield f"       {_counts(counts, 'region')}"


def ordered_tables(hbase: HBaseOutcome) -> str:
    """Name the tables with evidence ordered, made harmless; a few of many."""
    return _few(hbase.ordered_tables)


def not_replicated(hbase: HBaseOutcome) -> str:
    """Say what of the master is not asked of this slave as replication does not carry it; empty where nothing is."""
    left_out = hbase.not_replicated
    if left_out is None or not (left_out.tables or left_out.families):
        return ""
    families = [f"{family} of {table}" for table, family in left_out.families]
    parts = [f"{_counted(len(left_out.tables), 'table', 'tables')} ({_few(left_out.tables)})"] * bool(left_out.tables)
    parts += [f"{_counted(len(families), 'family', 'families')} ({_few(families)})"] * bool(families)
    return f"not replicated to this slave, and so not asked: {' and '.join(parts)}"


def _counted(number: int, one: str, several: str) -> str:
    return f"{number} {one if number == 1 else several}"


def _few(names: Sequence[str]) -> str:
    """Names, made harmless; of many only the first."""
    shown = ", ".join(safe(name) for name in names[:MAX_NAMES])
    more = len(names) - MAX_NAMES
    return f"{shown} and {more} more" if more > 0 else shown


def notices(outcome: Outcome) -> list[str]:
    """Return the outcome's notices and what is to be said of the timestamps."""
    about_timestamps = timestamps_notice(outcome)
    return [*outcome.notices, *([about_timestamps] if about_timestamps else [])]


def _cut_origin(outcome: Outcome) -> str:
    if outcome.shutdown_ms is None:
        return "the moment of the dump (no shutdown time)"
    if outcome.shutdown_ms == outcome.cut_ms:
        return "the shutdown time"
    return f"shutdown time {iso_time(outcome.shutdown_ms)} ({outcome.shutdown_ms})"


def _counts(counts: dict[str, int], noun: str) -> str:
    parts = [f"{count} {status}" for status, count in counts.items() if count]
    total = counted(sum(counts.values()), noun)
    return f"{total}: {', '.join(parts)}" if parts else total


def _lag(worst_lag_ms: int | None) -> str:
    return f"; worst lag {duration(worst_lag_ms)}" if worst_lag_ms else ""


def _problem_lines(number: int, problem: Problem) -> Iterator[str]:
    yield ""
    yield f"{number}. {safe(str(problem.kind))}{': ' + subject(problem) if subject(problem) else ''}"
    yield f"{_INDENT}{safe(problem.detail.removeprefix(f'{problem.kind}: '))}"
    if extent := extent_of(problem):
        yield f"{_INDENT}{extent}"
    if advice := advice_for(problem):
        yield f"{_INDENT}What to do: {advice}"
    if sync := sync_for(problem):
        yield f"{_INDENT}{sync}"


def subject(problem: Problem) -> str:
    """Return what the problem is about: table, region, origin or path, made harmless."""
    named = (
        ("table", problem.table),
        ("region", problem.region),
        ("from server", problem.origin),
        ("file", problem.path),
    )
    return ", ".join(f"{word} {safe(value)}" for word, value in named if value)


def extent_of(problem: Problem) -> str:
    """Return sequence ids, write times, lag and row range in words; empty where nothing is known."""
    parts = [
        _range("sequence ids", problem.from_seq, problem.to_seq, str),
        _range("written", problem.written_from_ms, problem.written_to_ms, iso_time),
        f"behind by {duration(problem.lag_ms)}" if problem.lag_ms else "",
        _rows(problem),
    ]
    return "; ".join(part for part in parts if part)


def _range(word: str, first: int | None, last: int | None, show: Callable[[int], str]) -> str:
    if first is None and last is None:
        return ""
    if first == last and first is not None:
        return f"{word} {show(first)}"
    return f"{word} {'?' if first is None else show(first)} to {'?' if last is None else show(last)}"


def _rows(problem: Problem) -> str:
    if not problem.start_key and not problem.end_key:
        return ""
    start, end = (safe(printable_key(key or b""), 80) for key in (problem.start_key, problem.end_key))
    return f"rows from {start or 'the first'} to before {end or 'the end'}"


def advice_for(problem: Problem) -> str:
    """Return what to do about the problem, made harmless."""
    return safe(problem.advice or DEFAULT_ADVICE.get(str(problem.kind), ""))


def sync_for(problem: Problem) -> str:
    """Return the other way of repairing, made harmless; empty where there is none."""
    if problem.repair is None:
        return ""
    first, then = problem.repair.hash_table, problem.repair.sync_table
    return safe(f"Or compare and repair: on the master {first} and then on the slave {then}")


def unlisted(outcome: Outcome) -> str:
    """Say how many regions and files at fault are not among the problems; empty where none are."""
    regions, files = left_out(outcome)
    parts = [counted(regions, "region")] * bool(regions) + [counted(files, "file")] * bool(files)
    return f"{' and '.join(parts)} more not listed here (see --max-problems)." if parts else ""


def verdict_lines(outcome: Outcome) -> Iterator[str]:
    """Yield one line for each checked half, as operators of the original know them."""
    if outcome.hbase is not None:
        yield f"HBase Replication {VERDICT_WORDS[outcome.hbase.verdict]}."
    if outcome.hdfs is not None:
        yield f"HDFS Replication {VERDICT_WORDS[outcome.hdfs.verdict]}."
