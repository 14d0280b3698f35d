"""The HTML report, readable without its script, light or dark as the reader's system.

Its content is prepared here for the template: words, cells, and the pictures' coordinates.
"""

from __future__ import annotations

import time
from collections import Counter, defaultdict
from collections.abc import Iterable, Iterator, Sequence
from typing import Any

from status_tool.explain.advice import SYNC_DELETES, UNDER_REPAIRS
from status_tool.printable import counted, duration, iso, printable_key, safe
from status_tool.report.picture import picture
from status_tool.report.summary import EVIDENCE_WORDS, file_counts, in_total, region_counts, span
from status_tool.report.templates import asset, page_parts
from status_tool.report.text import NUMBERED, accepted_line, headline, not_replicated_line, notices
from status_tool.report.timeline import timeline
from status_tool.vocabulary.outcome import (
    LAG_BOUNDS_MS,
    Drawing,
    Folder,
    Group,
    Moment,
    Outcome,
    Problem,
    ServerState,
    TableLine,
    TableRepair,
)
from status_tool.vocabulary.state_rows import REPLICATOR, WRITER
from status_tool.vocabulary.verdicts import SEVERITY, FileStatus, Status

COMPACT_FROM = 3_000
"""From this many problems on, their rows are abbreviated: servers by number, times only as far as they
differ, no row keys (the complete lists have them)."""
LINKED_BELOW = 20_000
"""From so many problems on, the squares of regions do not lead to them."""
CHUNK = 250
"""Rows per chunk: a browser lays out only the chunks that are on the screen."""
LANES = 30
CELL = 3
"""Resolution of the time axis, in units."""
AXIS = 750
"""Length of the time axis, in the drawing's units."""
OPEN_UP_TO = 10
"""Number of rows of a cause that are shown at once; more are folded."""
PRINTED_UP_TO = CHUNK
"""More rows of a cause are not unfolded on paper."""

_KEYS: dict[str, str] = {
    **{Status.COMPLETE: "c", FileStatus.MATCH: "c", Status.BEHIND: "b", FileStatus.EXTRA: "b", Status.GAP: "g"},
    **{Status.MISSING: "m", Status.DIFFERS: "d", FileStatus.MISMATCH: "d"},
}
"""The page's styles by status; any other is `u`."""
_SEVERITY = {str(status): rank for status, rank in SEVERITY.items()}
_ROLES = {WRITER: "write-time", REPLICATOR: "replicate-time"}
_COLUMNS: dict[str, Sequence[str]] = {
    "folders": ("folder", "files", "not the same", "by status"),
    "lags": ("server", "problems", "behind by", "compared with the slowest"),
    "servers": ("no.", "cluster", "server", "tracker", "live", "tracked", "answered", "last flush", "detail"),
}
"""The columns of the page's tables by their class."""


def html_report(outcome: Outcome, run_ms: int | None = None, history: Sequence[Moment] = ()) -> Iterator[str]:
    """Yield the page part by part.

    `run_ms` is when the check ran (None: now), `history` what earlier ones have found, oldest first.
    """
    ran_ms = int(time.time() * 1000) if run_ms is None else run_ms
    content = _content(outcome, ran_ms) | {"timeline": timeline(history)}
    title = f"Replication status: {content['verdict']}: {content['share']}"
    return page_parts("report.html.j2", content, title, asset("report.js"))


def _content(outcome: Outcome, run_ms: int) -> dict[str, Any]:
    overview = outcome.overview
    drawing = overview.drawing or Drawing()
    problems = drawing.problems or outcome.problems
    compact = len(problems) >= COMPACT_FROM
    server_rows = _servers(drawing, problems if compact else ())
    # A server with both trackers has two rows: reversed, the first one's number wins.
    numbers = {row[2]: row[0] for row in reversed(server_rows)}
    placed = _numbered(problems) if len(problems) < LINKED_BELOW else {}
    repairs = {repair.table: repair for repair in overview.repairs}
    clusters = outcome.clusters if outcome.clusters is not None and outcome.clusters.links else None
    # Before `repairs` below: each group takes its table's repair out (`_mended`), and the others are listed at the end.
    groups = [
        _group(group, own, numbers if compact else None, placed) | _mended(group, repairs)
        for group, own in _with_problems(overview.groups, problems)
    ]
    shown = [status for status in reversed(Status) if any(line.regions[status] for line in overview.tables)]
    columns = {
        **_COLUMNS,
        "tables": ["table", *map(str, shown), "behind by", "regions"],
        **{group["columns_class"]: [name for _, name in group["columns"]] for group in groups},
    }
    verdict, _, share = headline(outcome).partition(": ")
    return {
        "columns": columns,
        "run_time": iso(run_ms),
        "outcome": outcome,
        "verdict": verdict,
        "share": share,
        "notes": notices(outcome),
        "facts": _facts(outcome),
        "counts": list(_counts(outcome)),
        "tables": [_table_line(line, shown) for line in overview.tables],
        "tiles": _tiles(drawing, problems, placed),
        "most_regions": max((tile.regions for tile in drawing.tiles), default=1),
        "axis": _axis(outcome, problems),
        "lags": _lags(drawing),
        "server_lags": _server_lags(problems),
        "folders": [_folder(folder) for folder in drawing.folders],
        "more_folders": drawing.more_folders,
        "links": clusters.links if clusters else (),
        "topology": picture(clusters) if clusters else None,
        "repairs": repairs.values(),
        "sync_deletes": SYNC_DELETES,
        "groups": groups,
        "total": sum(group.count for group in overview.groups),
        "listed": len(problems),
        "compact": compact,
        "servers": server_rows,
    }


def _facts(outcome: Outcome) -> list[tuple[str, str]]:
    facts = [
        ("Master cluster", _cluster(outcome.master_cluster_id, outcome.master_address)),
        ("Slave cluster", _cluster(outcome.slave_cluster_id, outcome.slave_address)),
        ("Peer", "" if outcome.peer_id is None else outcome.peer_id),
        ("Cut", f"{iso(outcome.cut_ms)} ({outcome.cut_ms})"),
    ]
    if outcome.slave_taken_ms is not None:
        facts.append(("Slave's side", f"FILE2 of {iso(outcome.slave_taken_ms)}"))
    if outcome.shutdown_ms is not None:
        facts.append(("Shutdown time", f"{iso(outcome.shutdown_ms)} ({outcome.shutdown_ms})"))
    if outcome.hbase is not None:
        evidence = outcome.hbase.evidence
        facts.append(("Evidence", f"{evidence.value}: {EVIDENCE_WORDS[evidence]}"))
        if outcome.hbase.accepted_tables:
            facts.append(("Accepted", accepted_line(outcome.hbase)))
        if left_out := not_replicated_line(outcome.hbase):
            facts.append(("Left out", left_out))
        if outcome.hbase.worst_lag_ms is not None:
            facts.append(("Worst lag", duration(outcome.hbase.worst_lag_ms)))
    return facts


def _cluster(cluster_id: str, address: str) -> str:
    return ", ".join(dict.fromkeys(filter(None, (cluster_id or "unknown", address))))


def _counts(outcome: Outcome) -> Iterator[tuple[str, str, list[tuple[str, float, float]], list[tuple[str, str, int]]]]:
    halves = [("region", region_counts(outcome))] * (outcome.hbase is not None)
    halves += [("file", file_counts(outcome))] * (outcome.hdfs is not None)
    for noun, counts in halves:
        cells = [(_KEYS.get(status, "u"), status, count) for status, count in counts.items()]
        yield f"{noun.capitalize()}s", in_total(counts, noun), _parts(counts), cells


def _parts(counts: dict[str, int]) -> list[tuple[str, float, float]]:
    """Return the parts of a bar of 100 units. A count of one stays visible."""
    present = {status: count for status, count in counts.items() if count}
    total, least = sum(present.values()), 1.0
    free = 100.0 - least * len(present)
    parts, x = [], 0.0
    for status, count in present.items():
        width = least + free * count / total
        parts.append((_KEYS.get(status, "u"), round(x, 2), round(width, 2)))
        x += width
    return parts


def _table_line(line: TableLine, shown: Sequence[Status]) -> dict[str, Any]:
    counts = {str(status): line.regions[status] for status in shown}
    return {
        "name": line.table,
        "counts": list(counts.values()),
        "lag_ms": line.lag_ms or 0,
        "lag": duration(line.lag_ms) if line.lag_ms else "",
        "parts": _parts(counts),
        "words": f"{line.table}: {in_total(counts, 'region')}",
    }


def _numbered(problems: Sequence[Problem]) -> dict[str, int]:
    """Return the number of each region's first problem, for the tiles' links."""
    numbers: dict[str, int] = {}
    for number, problem in enumerate(problems, 1):
        if problem.region:
            numbers.setdefault(problem.region, number)
    return numbers


def _tiles(drawing: Drawing, problems: Sequence[Problem], placed: dict[str, int]) -> list[tuple[str, str, list[Any]]]:
    # Reversed: of a region's problems the first one wins, which is the worst.
    details = {problem.region: problem.detail for problem in reversed(problems)} if placed else {}
    by_table: dict[str, list[Any]] = defaultdict(list)
    counts: dict[str, Counter[str]] = defaultdict(Counter)
    for tile in drawing.tiles:
        bad = tile.worst is not Status.COMPLETE
        title = ""
        if bad and (placed or tile.regions > 1):
            several = f"{tile.at_fault} of {tile.regions} regions; " if tile.regions > 1 else ""
            title = f"{several}{tile.region}: {details.get(tile.region, tile.worst)}"
        number = placed.get(tile.region or "") if bad else None
        by_table[tile.table].append((_KEYS.get(tile.worst, "u"), number, title))
        counts[tile.table][tile.worst] += tile.at_fault
        counts[tile.table][Status.COMPLETE] += tile.regions - tile.at_fault
    # Tables without a problem come last; otherwise their order stays, as `sorted` is stable.
    order = sorted(by_table, key=lambda table: all(key == "c" for key, _, _ in by_table[table]))
    return [(table, in_total(counts[table], "region"), by_table[table]) for table in order]


def _axis(outcome: Outcome, problems: Sequence[Problem]) -> dict[str, Any] | None:
    """Return lanes by server. A hole is drawn from its first missing write to its last, a lag up to its end."""
    drawn = [p for p in problems if p.written_from_ms is not None and p.written_to_ms is not None]
    if not drawn:
        return None
    first = min(p.written_from_ms or 0 for p in drawn)
    # The cut is on the axis, too, although what is missing may be much older.
    last = max(outcome.cut_ms, max(p.written_to_ms or 0 for p in drawn))
    span = max(last - first, 1)

    def x_of(ms: int) -> float:
        return round(AXIS * (ms - first) / span, 1)

    by_server: dict[str, list[Problem]] = defaultdict(list)
    for problem in drawn:
        by_server[problem.origin or "no server named"].append(problem)
    servers = sorted(by_server, key=lambda name: -max(p.lag_ms or 0 for p in by_server[name]))
    cells: dict[int, dict[int, list[str]]] = defaultdict(lambda: defaultdict(list))
    for number, name in enumerate(servers):
        # All servers beyond `LANES` share one more lane.
        lane = min(number, LANES)
        for problem in by_server[name]:
            start, end = (int(x_of(ms or 0)) // CELL for ms in (problem.written_from_ms, problem.written_to_ms))
            for cell in range(start, max(end, start) + 1):
                cells[lane][cell].append(str(problem.kind))
    names = servers[:LANES] + [counted(len(servers) - LANES, "more server")] * (len(servers) > LANES)
    return {
        "words": (
            f"{counted(len(drawn), 'problem')} of {counted(len(servers), 'server')}: what is missing was written"
            f" between {iso(first)} and {iso(max(p.written_to_ms or 0 for p in drawn))}; the dashed line is"
            f" the cut, {iso(outcome.cut_ms)}: everything before it is in scope."
        ),
        "width": AXIS,
        "lanes": [(name, list(_runs(cells[lane]))) for lane, name in enumerate(names)],
        "first": iso(first),
        "last": iso(last),
        "cut": x_of(outcome.cut_ms) if first <= outcome.cut_ms else None,
    }


def _runs(cells: dict[int, list[str]]) -> Iterator[tuple[str, int, int, str]]:
    """Yield neighbouring cells of the same worst kind as one mark, at most as many as a lane has cells."""
    runs: list[tuple[str, int, int, int]] = []
    for at, kinds in sorted(cells.items()):
        worst = max(kinds, key=lambda kind: (_SEVERITY.get(kind, 0), kind))
        if runs and runs[-1][0] == worst and runs[-1][1] + runs[-1][2] == at:
            runs[-1] = (worst, runs[-1][1], runs[-1][2] + 1, max(runs[-1][3], len(kinds)))
        else:
            runs.append((worst, at, 1, len(kinds)))
    for kind, at, wide, most in runs:
        yield _KEYS.get(kind, "u"), CELL * at, CELL * wide, f"{kind}: {most} at a time"


def _lags(drawing: Drawing) -> list[tuple[str, int, float]]:
    if not any(drawing.lags):
        return []
    names = [*(f"less than {words}" for words in LAG_BOUNDS_MS.values()), "1 day or more"]
    most = max(drawing.lags)
    return [(name, count, round(100 * count / most, 1)) for name, count in zip(names, drawing.lags, strict=True)]


def _server_lags(problems: Iterable[Problem]) -> list[tuple[str, int, int, str, float]]:
    found: dict[str, list[int]] = defaultdict(list)
    for problem in problems:
        if problem.origin and problem.lag_ms is not None:
            found[problem.origin].append(problem.lag_ms)
    slowest = sorted(((max(lags), len(lags), name) for name, lags in found.items()), key=lambda one: -one[0])
    most = slowest[0][0] if slowest else 0
    return [(name, count, lag, duration(lag), round(100 * lag / (most or 1), 1)) for lag, count, name in slowest]


def _folder(folder: Folder) -> tuple[str, int, int, list[tuple[str, float, float]], str]:
    total = sum(folder.files.values())
    bad = total - folder.files.get(str(FileStatus.MATCH), 0)
    return folder.path, total, bad, _parts(folder.files), f"{folder.path}: {in_total(folder.files, 'file')}"


def _mended(group: Group, repairs: dict[str, TableRepair]) -> dict[str, Any]:
    """Return the repair of a table for its worst problem, which is the first shown; later ones refer to it."""
    if UNDER_REPAIRS not in group.todo:
        return {"repair": None}
    repair = repairs.pop(group.table or "", None)
    where = "the commands are below" if repair else "the commands are those of its first problem"
    return {"repair": repair, "todo": group.todo.replace(UNDER_REPAIRS, where)}


def _servers(drawing: Drawing, problems: Sequence[Problem]) -> list[tuple[str, ...]]:
    """Return the rows of all servers, also of those that only problems name: other rows refer to them by number."""
    known, rows = [*drawing.servers], []
    names = {line.server for line in known}
    others = dict.fromkeys(p.origin for p in problems if p.origin and p.origin not in names)
    # A problem's origin is the server that wrote the entries, so it is the master's.
    known += [ServerState("master", name) for name in others]
    for number, line in enumerate(known, 1):
        flags = [{None: "", True: "yes", False: "no"}[flag] for flag in (line.live, line.tracked, line.echoed)]
        flush = "" if line.flush_ms is None else iso(line.flush_ms)
        rows.append(
            (f"{number}", line.cluster, line.server, _ROLES.get(line.role, line.role), *flags, flush, line.detail)
        )
    return rows


def _with_problems(
    groups: Sequence[Group], problems: Sequence[Problem]
) -> Iterator[tuple[Group, list[tuple[int, Problem]]]]:
    """Yield each group with its problems that are listed."""
    own: dict[tuple[str | None, str, str], list[tuple[int, Problem]]] = defaultdict(list)
    for number, problem in enumerate(problems, 1):
        own[problem.table, str(problem.kind), problem.code or problem.detail].append((number, problem))
    for group in groups:
        key = (group.table, group.kind, group.code or group.example.detail)
        yield group, own.get(key) or [(0, group.example)]


def _group(
    group: Group, own: list[tuple[int, Problem]], numbers: dict[str, str] | None, placed: dict[str, int]
) -> dict[str, Any]:
    compact = numbers is not None
    problems = [problem for _, problem in own]
    details = {problem.detail for problem in problems}
    same_detail = len(details) == 1 or group.code in NUMBERED
    day = _common_day(problems) if compact else ""
    kinds = {
        "region": ("r", any(p.region for p in problems)),
        "server": ("s", any(p.origin for p in problems)),
        "file": ("r", any(p.path for p in problems)),
        "sequence ids": ("q", any(p.to_seq is not None or p.from_seq is not None for p in problems)),
        "written": ("w", any(p.written_from_ms is not None or p.written_to_ms is not None for p in problems)),
        "behind by": ("l", any(p.lag_ms for p in problems)),
        "rows": ("k", not compact and any(p.start_key or p.end_key for p in problems)),
        "what": ("d", not same_detail),
    }
    names = [name for name, (_, shown) in kinds.items() if shown]
    titles = {"behind by": "behind by, s"} if compact else {}
    # A compact page saves bytes: only rows that a square leads to have an id.
    rows = [
        (number if not compact or placed.get(problem.region or "") == number else 0,
         [_cell(name, problem, numbers, day) for name in names])
        for number, problem in own
    ]  # fmt: skip
    # Number 0 marks the example of a group of which no problem is listed.
    listed = len(own) if own[0][0] else 1
    whole = "Where it is" if listed == 1 else f"All {listed}, the worst first"
    more = []
    if listed < group.count:
        more.append(f"{group.count - listed} more are not listed here: --missing, --differ, --unverifiable do.")
    if compact:
        more.append(
            f"{f'Times are of {day}, UTC. ' if day else ''}Servers are the numbers of the table of region servers;"
            " row keys are in the complete lists (--missing, --unverifiable)."
        )
    return {
        "title": f"{group.kind}{f': table {group.table}' if group.table else ''}"
        f"{f', {group.count} times' if group.count > 1 else ''}",
        "key": _KEYS.get(group.kind, "u"),
        "detail": group.example.detail.removeprefix(f"{group.kind}: ") if same_detail else "",
        "command": group.command,
        "open": len(own) <= OPEN_UP_TO,
        "big": len(own) > PRINTED_UP_TO,
        "summary": f"{listed} of them, the worst first" if listed < group.count else whole,
        "todo": group.todo,
        "more": " ".join(more),
        "columns_class": "-".join(["of", *(name.partition(" ")[0] for name in names)]),
        "columns": [(kinds[name][0], titles.get(name, name)) for name in names],
        "chunks": [rows[start : start + CHUNK] for start in range(0, len(rows), CHUNK)],
        "server_column": names.index("server") if "server" in names else -1,
    }


def _common_day(problems: Iterable[Problem]) -> str:
    """Return the date that all times share; empty if they do not."""
    times = [ms for p in problems for ms in (p.written_from_ms, p.written_to_ms) if ms is not None]
    days = {iso(ms)[:10] for ms in times}
    return days.pop() if len(days) == 1 else ""


def _cell(name: str, problem: Problem, numbers: dict[str, str] | None, day: str) -> tuple[int | None, str]:
    """Return a cell's sort key, if its text does not sort, and the text."""
    compact = numbers is not None
    if name == "server":
        return None, (numbers or {}).get(problem.origin or "", problem.origin or "")
    if name == "sequence ids":
        # A dash takes three bytes in UTF-8, in each of many rows.
        return None, span(problem.from_seq, problem.to_seq, str, "-" if compact else "–")
    if name == "written":
        first, last = problem.written_from_ms, problem.written_to_ms
        return None, _written(problem, day) if compact else span(first, last, iso, "–")
    if name == "behind by":
        if problem.lag_ms is None:
            return None, ""
        return (None, f"{problem.lag_ms / 1000:g}") if compact else (problem.lag_ms, duration(problem.lag_ms))
    if name == "rows":
        start, end = (safe(printable_key(key or b""), 80) for key in (problem.start_key, problem.end_key))
        return None, f"{start or 'first'} to {end or 'end'}"
    texts = {"region": problem.region, "file": problem.path, "what": problem.detail}
    return None, texts[name] or ""


def _written(problem: Problem, day: str) -> str:
    """Start and duration, abbreviated."""
    first, last = problem.written_from_ms, problem.written_to_ms
    at = first if first is not None else last
    if at is None:
        return ""
    start = iso(at).removeprefix(f"{day}T").removesuffix("Z")
    return start if first is None or last is None or first == last else f"{start} +{(last - first) / 1000:g}"
