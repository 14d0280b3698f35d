"""The report that an operator reads on a terminal."""

from __future__ import annotations

import shlex
import textwrap
from collections.abc import Callable, Iterator, Sequence

from status_tool.explain.advice import SYNC_DELETES
from status_tool.printable import counted, duration, few, iso, printable_key, safe
from status_tool.report.summary import (
    EVIDENCE_WORDS,
    VERDICT_WORDS,
    file_counts,
    in_parts,
    in_total,
    region_counts,
    span,
)
from status_tool.vocabulary.header import BY_CHECK, BY_OPTION, RECORDED
from status_tool.vocabulary.outcome import Group, HBaseOutcome, Outcome, Problem, TableLine, TableRepair
from status_tool.vocabulary.verdicts import Evidence, FileStatus, Status, Verdict

_INDENT = "   "
WIDTH = 80
"""Columns of a terminal: text is wrapped there, commands continue with a backslash."""
MAX_TABLES = 50
MAX_REPAIRS = 10
"""Number of tables of which the repairs are printed; the script and the JSON document have them all."""
MAX_NAME = 40
NO_SHUTDOWN = "no shutdown time was recorded"
"""Beginning of a notice about a side whose cut is the moment of its dump."""
MAX_LISTED_NAMES = 20
"""Number of tables that a line names; the JSON document has them all."""
NUMBERED = ("gap", "behind", "may-fill", "missing")
"""Codes whose detail names the sequence ids."""
SHUTDOWN_WORDS = {
    RECORDED: " recorded on the master",
    BY_OPTION: " given by -s when FILE was written",
    BY_CHECK: " given by -s of this check",
}


def text_report(outcome: Outcome, script: str | None = None, *, quiet: bool = False) -> Iterator[str]:
    """Yield the lines of the verdict, problems by cause, tables, repairs, notes, and last the verdict of each half.

    `script` is where the repairs are written besides: then they are only named here. `quiet`: the verdict alone.
    """
    yield from (f"{line}\n" for line in hanging("", headline(outcome)))
    if not quiet:
        yield from (f"{line}\n" for line in _lines(outcome, script))
    yield from (f"{line}\n" for line in verdict_lines(outcome))


def _lines(outcome: Outcome, script: str | None) -> Iterator[str]:
    """Yield what stands between the verdicts.

    Little comes before the problems: whoever is woken by them sees them without scrolling.
    """
    yield ""
    yield from summary_lines(outcome)
    overview = outcome.overview
    if overview.groups:
        yield ""
        yield from _group_lines(overview.groups, outcome.max_problems)
    # Without a problem the counts above say as much.
    if overview.tables and overview.groups:
        yield ""
        yield from _tables(overview.tables)
    if overview.repairs:
        yield ""
        yield from _repair_lines(overview.repairs) if script is None else _named_repairs(overview.repairs, script)
    if notes := list(_note_lines(outcome)):
        yield ""
        yield from notes
    yield ""


def headline(outcome: Outcome) -> str:
    """Return the verdict of the whole run in words."""
    parts = []
    if outcome.hbase is not None:
        counts = region_counts(outcome)
        parts.append(_share(sum(counts.values()), counts[Status.COMPLETE], "region"))
    if outcome.hdfs is not None:
        # Files that only the slave has count in neither number, unless they are a fault (`--strict-extra`).
        good = outcome.hdfs.files.get(FileStatus.MATCH, 0)
        parts.append(_share(good + outcome.hdfs.at_fault, good, "file"))
    # However early the shutdown time is: what came after it is in no question.
    later = ["not what was written after the shutdown time"] if outcome.hbase and outcome.hbase.later else []
    verdict = f"{HEADLINES[outcome.verdict]}: {', '.join(parts) or 'nothing was checked'}"
    return "; ".join((verdict, *map(safe, outcome.limits), *later))


HEADLINES = {
    Verdict.COMPLETE: "COMPLETE",
    Verdict.INCOMPLETE: "NOT COMPLETE",
    Verdict.UNVERIFIABLE: "COULD NOT BE VERIFIED",
}


def _share(total: int, good: int, noun: str) -> str:
    if not total:
        return f"no {noun} to check"
    return f"{good} of {counted(total, noun)} {'is' if total == 1 else 'are'} complete"


def summary_lines(outcome: Outcome) -> Iterator[str]:
    """Yield what was compared, how strong the evidence is, and the counts; every line is sanitised."""
    peer = "" if outcome.peer_id is None else f"peer {safe(outcome.peer_id)}"
    taken = "" if outcome.slave_taken_ms is None else f"FILE2 of {iso(outcome.slave_taken_ms)}"
    yield from _side("Master ", outcome.master_cluster_id, outcome.master_address, peer)
    yield from _side("Slave  ", outcome.slave_cluster_id, outcome.slave_address, taken)
    yield from hanging("Cut    ", f"{iso(outcome.cut_ms)} ({outcome.cut_ms}), {_cut_origin(outcome)}")
    if outcome.hbase is not None:
        counts = region_counts(outcome)
        lag_ms = outcome.hbase.worst_lag_ms
        lag = f"; worst lag {duration(lag_ms)}" if lag_ms else ""
        yield from hanging("HBase  ", f"{in_total(counts, 'region')}{lag}")
        if sum(counts.values()):
            yield from (line for text in _evidence(outcome.hbase) for line in hanging("       ", text))
    if outcome.hdfs is not None:
        yield from hanging("HDFS   ", in_total(file_counts(outcome), "file"))


def _side(word: str, cluster_id: str, address: str, more: str) -> Iterator[str]:
    """Yield a cluster's id, and its address, which a reader knows."""
    facts = [safe(cluster_id) or "unknown"]
    facts += [safe(address)] if address and address != cluster_id else []
    facts += [more] if more else []
    yield from hanging(word, ", ".join(facts))


def _note_lines(outcome: Outcome) -> Iterator[str]:
    """Yield the lines that are neither counts nor problems. A missing shutdown time is told beside the cut instead."""
    about_cut = outcome.shutdown_ms is None
    hbase = outcome.hbase
    if hbase is not None and hbase.accepted_tables:
        yield from hanging("Note   ", f"accepted: {accepted_line(hbase)}")
    if hbase is not None and (left_out := not_replicated_line(hbase)):
        yield from hanging("Note   ", left_out)
    for notice in notices(outcome):
        if not (about_cut and notice.startswith(NO_SHUTDOWN)):
            yield from hanging("Note   ", safe(notice))


def _tables(tables: Sequence[TableLine]) -> Iterator[str]:
    yield "Tables, worst first:"
    # One long name moves its own line only, not the column of all tables.
    width = min(max(len(safe(line.table)) for line in tables[:MAX_TABLES]), MAX_NAME)
    for line in tables[:MAX_TABLES]:
        counts = {str(status): line.regions[status] for status in reversed(Status)}
        behind = f"; behind by {duration(line.lag_ms)}" if line.lag_ms else ""
        yield f"{_INDENT}{safe(line.table):{width}}  {in_parts(counts)}{behind}"
    if len(tables) > MAX_TABLES:
        yield f"{_INDENT}and {counted(len(tables) - MAX_TABLES, 'more table')}, none worse"


def _group_lines(groups: Sequence[Group], most: int) -> Iterator[str]:
    total = sum(group.count for group in groups)
    causes = "" if total == len(groups) else f", {counted(len(groups), 'cause')}"
    shown = groups[: max(most, 0)]
    yield f"{counted(total, 'problem')}{causes}, worst first:"
    for number, group in enumerate(shown, 1):
        yield ""
        yield from _one_group(number, group)
    if rest := groups[len(shown) :]:
        yield ""
        left = sum(group.count for group in rest)
        yield f"{counted(left, 'problem')} of {counted(len(rest), 'cause')} more not listed here"
        yield "(see --max-problems, --missing, --differ and --unverifiable)."


def _one_group(number: int, group: Group) -> Iterator[str]:
    problem = group.example
    of_table = f": table {safe(group.table)}" if group.table else ""
    many = "" if group.count == 1 else f"{',' if of_table else ':'} {group.count} times"
    yield f"{number}. {safe(group.kind)}{of_table}{many}"
    if group.count > 1:
        yield f"{_INDENT}one of them, the worst:"
    yield from _facts(problem)
    yield from hanging(_INDENT, safe(problem.detail.removeprefix(f"{problem.kind}: ")))
    if group.todo:
        yield from hanging(f"{_INDENT}What to do: ", safe(group.todo), _INDENT * 2)
    if group.command:
        yield from shell_lines(group.command)


def _facts(problem: Problem) -> Iterator[str]:
    """Yield one fact per line: place, entries, times."""
    named = (("region", problem.region), ("server", problem.origin), ("file", problem.path))
    for word, value in named:
        if value:
            yield f"{_INDENT}{word} {safe(value)}"
    for fact in extents(problem):
        yield f"{_INDENT}{fact}"


def _repair_lines(repairs: Sequence[TableRepair]) -> Iterator[str]:
    shown = repairs[:MAX_REPAIRS]
    yield f"Repairs, one per table ({counted(len(repairs), 'table')}; --repair-script FILE writes a script):"
    for repair in shown:
        yield ""
        yield from hanging(_INDENT, f"table {safe(repair.table)} ({', '.join(repair.reasons)})")
        if not repair.stuck:
            yield from hanging(_INDENT, "This may still arrive by itself: check again with --wait first.")
        for first in repair.first:
            yield from hanging(_INDENT, safe(first) + ".")
        yield f"{_INDENT}On the master:"
        yield from shell_lines(repair.commands.copy_table)
        yield f"{_INDENT}Or compare by hashes, which finds what else differs; on the master:"
        yield from shell_lines(repair.commands.hash_table)
        yield from hanging(_INDENT, f"then on the slave ({SYNC_DELETES}):")
        yield from shell_lines(repair.commands.sync_table)
        yield f"{_INDENT}{proof_words(repair)}:"
        yield from shell_lines(repair.check)
    if len(repairs) > len(shown):
        yield ""
        rest = counted(len(repairs) - len(shown), "table")
        yield from hanging("", f"The repairs of {rest} more are in --repair-script and --json.")


def _named_repairs(repairs: Sequence[TableRepair], script: str) -> Iterator[str]:
    """Yield the names of the repairs. The script has their commands, with the checks that prove them."""
    tables = counted(len(repairs), "table")
    yield from hanging("", f"Repairs, one per table ({tables}), with their proofs in {safe(script)}:")
    for repair in repairs[:MAX_REPAIRS]:
        waits = "" if repair.stuck else "; may still arrive by itself: check again with --wait first"
        yield from hanging(_INDENT, f"table {safe(repair.table)} ({', '.join(repair.reasons)}){waits}")
    if len(repairs) > MAX_REPAIRS:
        yield f"{_INDENT}and {counted(len(repairs) - MAX_REPAIRS, 'more table')}"
    yield f"bash {shlex.quote(safe(script))}"


def proof_words(repair: TableRepair) -> str:
    """Return what `repair.check` does, in words."""
    if repair.is_proof:
        return "Then prove it (DIR: the master's configuration)"
    return "Then accept it: with a master without trackers no rows are compared"


def shell_lines(command: str) -> Iterator[str]:
    """Yield a command over several lines that can be copied as they are; no word is broken, every line is sanitised."""
    line = ""
    for word in shlex.split(command):
        quoted = safe(shlex.quote(word))
        # Three more: a space before the word, and a space and a backslash at the end.
        if line and len(line) + len(quoted) + 3 > WIDTH:
            yield f"{line} \\"
            line = "  " + quoted
        else:
            line = f"{line} {quoted}" if line.strip() else quoted
    yield line


def hanging(first: str, text: str, rest: str | None = None) -> Iterator[str]:
    """Return words in lines of at most 80 columns, those after the first below where the text began.

    A longer word gets a line of its own.
    """
    # Options and paths have hyphens, and have to be copied whole.
    yield from textwrap.wrap(
        text,
        WIDTH,
        initial_indent=first,
        subsequent_indent=" " * len(first) if rest is None else rest,
        break_long_words=False,
        break_on_hyphens=False,
    ) or [first.rstrip()]


def _evidence(hbase: HBaseOutcome) -> Iterator[str]:
    """Yield the weakest evidence, then the number of regions by evidence if it differs."""
    yield f"evidence {hbase.evidence.value}: {EVIDENCE_WORDS[hbase.evidence]}"
    counts = {level.value: count for level, count in hbase.evidence_by.items() if count}
    if len(counts) > 1:
        yield in_total(counts, "region")


def accepted_line(hbase: HBaseOutcome) -> str:
    """Name the tables with evidence `accepted`, sanitised; of many only the first."""
    regions, tables = hbase.evidence_by.get(Evidence.ACCEPTED, 0), hbase.accepted_tables
    return f"{counted(regions, 'region')} of {counted(len(tables), 'table')}: {_few(tables)}"


def not_replicated_line(hbase: HBaseOutcome) -> str:
    """Name what is not in scope because replication does not carry it to this slave; empty if there is nothing."""
    left_out = hbase.not_replicated
    if left_out is None or not (left_out.tables or left_out.families):
        return ""
    families = [f"{family} of {table}" for table, family in left_out.families]
    parts = [f"{counted(len(left_out.tables), 'table')} ({_few(left_out.tables)})"] * bool(left_out.tables)
    number = "1 family" if len(families) == 1 else f"{len(families)} families"
    parts += [f"{number} ({_few(families)})"] * bool(families)
    return f"not replicated to this slave, and so not in scope: {' and '.join(parts)}"


def not_covered(outcome: Outcome) -> tuple[str, ...]:
    """Return in words what a verdict does not cover, with what replication does not carry to the slave."""
    left_out = "" if outcome.hbase is None else not_replicated_line(outcome.hbase)
    return (*outcome.limits, left_out) if left_out else outcome.limits


def _few(names: Sequence[str]) -> str:
    """Return the names, sanitised; of many only the first."""
    return few([safe(name) for name in names], MAX_LISTED_NAMES)


def notices(outcome: Outcome) -> list[str]:
    """Return the outcome's notices, and one where timestamps alone would have been wrong."""
    hbase = outcome.hbase
    if hbase is None or hbase.evidence is Evidence.TIMESTAMPS:
        return list(outcome.notices)
    alone, proven = hbase.timestamps_complete, region_counts(outcome)[Status.COMPLETE]
    they = "it is" if proven == 1 else "they are"
    about = f"Timestamps alone would have called {counted(alone, 'region')} complete; by the evidence {they} {proven}."
    return [*outcome.notices, *([about] if alone > proven else [])]


def _cut_origin(outcome: Outcome) -> str:
    if outcome.shutdown_ms is None:
        return "the moment of the dump"
    if outcome.shutdown_ms == outcome.cut_ms:
        return f"the shutdown time{SHUTDOWN_WORDS.get(outcome.shutdown_from, '')}"
    return f"shutdown time {iso(outcome.shutdown_ms)} ({outcome.shutdown_ms})"


def extents(problem: Problem) -> list[str]:
    """Return sequence ids, write times, lag and row range in words, one fact each.

    What is unknown is left out, and so is what the problem's detail says.
    """
    parts = [
        "" if problem.code in NUMBERED else _range("sequence ids", problem.from_seq, problem.to_seq, str),
        _range("written", problem.written_from_ms, problem.written_to_ms, iso),
        f"behind by {duration(problem.lag_ms)}" if problem.lag_ms else "",
        _rows(problem),
    ]
    return [part for part in parts if part]


def _range(word: str, first: int | None, last: int | None, show: Callable[[int], str]) -> str:
    found = span(first, last, show, " to ")
    return found and f"{word} {found}"


def _rows(problem: Problem) -> str:
    if not problem.start_key and not problem.end_key:
        return ""
    start, end = (safe(printable_key(key or b""), 80) for key in (problem.start_key, problem.end_key))
    return f"rows from {start or 'the first'} to before {end or 'the end'}"


def verdict_lines(outcome: Outcome) -> Iterator[str]:
    """Yield one line for each checked half, as operators of the original know them."""
    if outcome.hbase is not None:
        yield f"HBase Replication {VERDICT_WORDS[outcome.hbase.verdict]}."
    if outcome.hdfs is not None:
        yield f"HDFS Replication {VERDICT_WORDS[outcome.hdfs.verdict]}."
