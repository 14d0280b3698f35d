"""A self-contained HTML report: no network, readable without its script, light or dark as the reader's system.

Its content is prepared here for the template: words, cells, and the pictures' coordinates.
"""

from __future__ import annotations

import base64
import hashlib
import time
from collections import defaultdict
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from functools import cache
from importlib.resources import files
from typing import Any, TextIO

from status_tool.explain.advice import SYNC_DELETES, UNDER_REPAIRS
from status_tool.printable import counted, duration, iso, printable_key, safe
from status_tool.report.picture import picture
from status_tool.report.reporter import EVIDENCE_WORDS, Reporter, file_counts, region_counts, span
from status_tool.report.text import (
    NUMBERED,
    accepted_line,
    headline,
    not_replicated_line,
    notices,
    proof_words,
    shell_lines,
)
from status_tool.report.timeline import timeline
from status_tool.vocabulary.outcome import (
    LAG_BOUNDS_MS,
    Drawing,
    Group,
    Moment,
    Outcome,
    Problem,
    ServerState,
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

_KEYS = {
    **{str(Status.COMPLETE): "c", str(Status.BEHIND): "b", str(Status.GAP): "g", str(Status.MISSING): "m"},
    **{
        str(Status.UNVERIFIABLE): "u",
        str(FileStatus.MATCH): "c",
        str(FileStatus.MISMATCH): "d",
        str(Status.DIFFERS): "d",
    },
    **{str(FileStatus.INCOMPARABLE): "u", str(FileStatus.EXTRA): "b"},
}
_ROLES = {WRITER: "write-time", REPLICATOR: "replicate-time"}
_LABELS: dict[str, Sequence[str]] = {
    "folders": ("folder", "files", "not the same", "by status"),
    "lags": ("server", "problems", "behind by", "compared with the slowest"),
    "servers": ("no.", "cluster", "server", "tracker", "live", "tracked", "answered", "last flush", "detail"),
}
"""The columns of the page's tables by their class."""
_REPAIRS_NOTE = "What is copied twice does no harm. --repair-script FILE.sh writes all repairs as one script."


class HtmlReporter(Reporter):
    """Writes one page; `run_ms` is when the check ran (now), `history` what earlier ones have found, oldest first."""

    def __init__(self, run_ms: int | None = None, history: Sequence[Moment] = ()) -> None:
        self._run_ms = int(time.time() * 1000) if run_ms is None else run_ms
        self._history = history

    def write(self, outcome: Outcome, stream: TextIO) -> None:
        # `render` would hold the whole page as one text.
        for part in _template().generate(**_content(outcome, self._run_ms), timeline=timeline(self._history)):
            stream.write(part)


@cache
def _template() -> Any:
    # Imported here: most runs write no page.
    from jinja2 import Environment, StrictUndefined

    # A name that `_content` lacks is an error (`StrictUndefined`): by default it would be blank on the page.
    environment = Environment(
        autoescape=True, trim_blocks=True, lstrip_blocks=True, undefined=StrictUndefined, finalize=_finalized
    )
    return environment.from_string(_asset("report.html.j2"))


def style() -> str:
    """Return the style of every page, in CSS."""
    return _asset("report.css")


@cache
def _asset(name: str) -> str:
    return (files("status_tool.report") / "assets" / name).read_text(encoding="utf-8")


def _finalized(value: Any) -> Any:
    """Sanitise and escape names from outside. Our own markup passes."""
    return value if hasattr(value, "__html__") or not isinstance(value, str) else safe(value)


def _content(outcome: Outcome, run_ms: int) -> dict[str, Any]:
    from markupsafe import Markup

    overview = outcome.overview
    drawing = overview.drawing or Drawing()
    problems = drawing.problems or outcome.problems
    compact = len(problems) >= COMPACT_FROM
    server_rows = _servers(drawing, problems if compact else ())
    # A server with both trackers has two rows: reversed, the first one's number wins.
    numbers = {row[2]: row[0] for row in reversed(server_rows)}
    placed = _numbered(problems) if len(problems) < LINKED_BELOW else {}
    repairs = {repair.table: _repair(repair) for repair in overview.repairs}
    # The page's policy lets this script run by its hash, and no other.
    script = _asset("report.js")
    digest = base64.b64encode(hashlib.sha256(script.encode()).digest()).decode()
    clusters = outcome.clusters if outcome.clusters is not None and outcome.clusters.links else None
    # Before `repairs` below: each group takes its table's repair out (`_mended`), and the others are listed at the end.
    groups = [
        _group(group, own, numbers if compact else None, placed) | _mended(group, repairs)
        for group, own in _with_problems(overview.groups, problems)
    ]
    shown = [status for status in reversed(Status) if any(line.regions[status] for line in overview.tables)]
    table_columns = ["table", *map(str, shown), "behind by", "regions"]
    verdict, _, share = " ".join(headline(outcome)).partition(": ")
    return {
        "labels": _LABELS,
        "script": Markup(script),
        "script_hash": f"sha256-{digest}",
        "css": Markup(style() + _labels({**_LABELS, "tables": table_columns}, groups)),
        "title": f"Replication status: {verdict}: {share}",
        "run_time": iso(run_ms),
        "style": outcome.verdict.value,
        "verdict": verdict,
        "share": f"{share}.",
        "question": _question(outcome),
        "notes": notices(outcome),
        "facts": _facts(outcome),
        "counts": list(_counts(outcome)),
        "table_columns": table_columns,
        "tables": [_table_line(line, shown) for line in overview.tables],
        "tiles": _tiles(drawing, problems, placed),
        "tiles_text": _tiles_text(drawing),
        "axis": _axis(outcome, problems),
        "lags": _lags(drawing),
        "server_lags": _server_lags(problems),
        "server_lags_text": _of_listed(overview.groups, problems),
        "folders": [_folder(folder) for folder in drawing.folders],
        "more_folders": drawing.more_folders,
        "topology": [Markup(line) for line in picture(clusters)] if clusters else [],
        "topology_words": "; ".join(
            f"{link.source} replicates to {link.target} as peer {link.peer}{f' ({link.note})' if link.note else ''}"
            for link in (clusters.links if clusters else ())
        ),
        "repairs_note": _REPAIRS_NOTE if overview.repairs else "",
        "repairs": list(repairs.values()),
        "groups": groups,
        "total": sum(group.count for group in overview.groups),
        "compact": compact,
        "servers": server_rows,
    }


def _question(outcome: Outcome) -> str:
    """Return the question that the page answers: between which clusters, and up to when."""
    master = outcome.master_address or outcome.master_cluster_id or "unknown"
    slave = outcome.slave_address or outcome.slave_cluster_id or "unknown"
    return f"From {master} to {slave}; everything that was written up to {iso(outcome.cut_ms)}."


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
    halves = [("Regions", region_counts(outcome))] * (outcome.hbase is not None)
    halves += [("Files", file_counts(outcome))] * (outcome.hdfs is not None)
    for name, counts in halves:
        cells = [(_KEYS.get(status, "u"), status, count) for status, count in counts.items()]
        yield name, _words(counts, name.lower()), _parts(counts), cells


def _words(counts: dict[str, int], noun: str) -> str:
    known = ", ".join(f"{count} {status}" for status, count in counts.items() if count)
    return f"{sum(counts.values())} {noun}: {known or 'none'}"


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


def _table_line(line: Any, shown: Sequence[Status]) -> dict[str, Any]:
    counts = {str(status): line.regions[status] for status in shown}
    return {
        "name": line.table,
        "counts": list(counts.values()),
        "lag_ms": line.lag_ms or 0,
        "lag": duration(line.lag_ms) if line.lag_ms else "",
        "parts": _parts(counts),
        "words": f"{line.table}: {_words(counts, 'regions')}",
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
    counts: dict[str, dict[str, int]] = defaultdict(lambda: defaultdict(int))
    for tile in drawing.tiles:
        bad = tile.worst is not Status.COMPLETE
        title = ""
        if bad and (placed or tile.regions > 1):
            several = f"{tile.at_fault} of {tile.regions} regions; " if tile.regions > 1 else ""
            title = f"{several}{tile.region}: {details.get(tile.region, tile.worst)}"
        number = placed.get(tile.region or "") if bad else None
        by_table[tile.table].append((_KEYS[str(tile.worst)], number, title))
        counts[tile.table][str(tile.worst)] += 1 if tile.regions == 1 else tile.at_fault
        counts[tile.table][str(Status.COMPLETE)] += tile.regions - tile.at_fault if tile.regions > 1 else 0
    # Tables without a problem come last; otherwise their order stays, as `sorted` is stable.
    order = sorted(by_table, key=lambda table: all(key == "c" for key, _, _ in by_table[table]))
    return [
        (table, _words({s: n for s, n in counts[table].items() if n}, "regions"), by_table[table]) for table in order
    ]


def _tiles_text(drawing: Drawing) -> str:
    most = max((tile.regions for tile in drawing.tiles), default=1)
    each = "one region" if most == 1 else f"up to {most} neighbouring regions, coloured by the worst of them"
    return f"Every square is {each}, from the first row key to the last. A marked one leads to its problem."


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
        "lanes": [
            (name, [(key, CELL * at, CELL * wide, title) for key, at, wide, title in _runs(cells[lane])])
            for lane, name in enumerate(names)
        ],
        "first": iso(first),
        "last": iso(last),
        "cut": x_of(outcome.cut_ms) if first <= outcome.cut_ms else None,
    }


def _runs(cells: dict[int, list[str]]) -> Iterator[tuple[str, int, int, str]]:
    """Yield neighbouring cells of the same worst kind as one mark, at most as many as a lane has cells."""
    runs: list[tuple[str, int, int, int]] = []
    for at, kinds in sorted(cells.items()):
        worst = max(kinds, key=lambda kind: (SEVERITY.get(Status(kind), 0) if kind in set(Status) else 0, kind))
        if runs and runs[-1][0] == worst and runs[-1][1] + runs[-1][2] == at:
            runs[-1] = (worst, runs[-1][1], runs[-1][2] + 1, max(runs[-1][3], len(kinds)))
        else:
            runs.append((worst, at, 1, len(kinds)))
    for kind, at, wide, most in runs:
        yield _KEYS.get(kind, "u"), at, wide, f"{kind}: {most} at a time"


def _lags(drawing: Drawing) -> list[tuple[str, int, float]]:
    if not any(drawing.lags):
        return []
    names = [f"less than {_bound(bound)}" for bound in LAG_BOUNDS_MS] + [f"{_bound(LAG_BOUNDS_MS[-1])} or more"]
    most = max(drawing.lags)
    return [(name, count, round(100 * count / most, 1)) for name, count in zip(names, drawing.lags, strict=True)]


def _bound(ms: int) -> str:
    for unit, size in (("day", 86_400_000), ("hour", 3_600_000), ("minute", 60_000), ("second", 1_000)):
        if ms >= size:
            return counted(ms // size, unit)
    return f"{ms} ms"


def _server_lags(problems: Iterable[Problem]) -> list[tuple[str, int, int, str, float]]:
    found: dict[str, list[int]] = defaultdict(list)
    for problem in problems:
        if problem.origin and problem.lag_ms is not None:
            found[problem.origin].append(problem.lag_ms)
    most = max((max(lags) for lags in found.values()), default=0) or 1
    order = sorted(found, key=lambda name: -max(found[name]))
    return [
        (name, len(found[name]), max(found[name]), duration(max(found[name])), round(100 * max(found[name]) / most, 1))
        for name in order
    ]


def _of_listed(groups: Sequence[Group], problems: Sequence[Problem]) -> str:
    total = sum(group.count for group in groups)
    return f"Of the {len(problems)} worst problems of {total}." if total > len(problems) else ""


def _folder(folder: Any) -> tuple[str, int, int, list[tuple[str, float, float]], str]:
    total = sum(folder.files.values())
    bad = total - folder.files.get(str(FileStatus.MATCH), 0)
    return folder.path, total, bad, _parts(folder.files), f"{folder.path}: {_words(folder.files, 'files')}"


def _repair(repair: Any) -> dict[str, Any]:
    return {
        "table": repair.table,
        "reasons": ", ".join(repair.reasons),
        "stuck": repair.stuck,
        "first": repair.first,
        "copying": ("On the master:", _command(repair.commands.copy_table)),
        "proof": (f"{proof_words(repair)}:", _command(repair.check)),
        "compare": [
            ("On the master:", _command(repair.commands.hash_table)),
            (
                f"Then on the slave (first with --dryrun=true: it compares and changes nothing; {SYNC_DELETES}):",
                repair.commands.sync_table,
            ),
        ],
    }


def _command(command: str) -> Any:
    """Return a command in lines of a terminal's width, sanitised and escaped.

    Narrow screens break it only between words.
    """
    from markupsafe import Markup

    word = Markup("<span>{}</span>")
    lines = (Markup(" ").join(word.format(part) for part in line.split(" ")) for line in shell_lines(command))
    return Markup("\n").join(lines) if command else ""


def _mended(group: Group, repairs: dict[str, Any]) -> dict[str, Any]:
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


def _labels(tables: dict[str, Sequence[str]], groups: Sequence[dict[str, Any]]) -> str:
    """Return the style that puts each cell below its column's name on a narrow screen. The names are our own."""
    columns = {**tables, **{group["columns_class"]: [one.name for one in group["columns"]] for group in groups}}
    rules = (
        f'.{table} td:nth-child({number})::before {{ content: "{name}"; }}'
        for table, names in columns.items()
        for number, name in enumerate(names, 1)
    )
    return f"@media (max-width: 640px) {{ {' '.join(rules)} }}"


# -- problems ----------------------------------------------------------------------------------------------


@dataclass(frozen=True)
class _Column:
    name: str
    style: str


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
        "command": _command(group.command),
        "open": len(own) <= OPEN_UP_TO,
        "big": len(own) > PRINTED_UP_TO,
        "summary": f"{listed} of them, the worst first" if listed < group.count else whole,
        "todo": group.todo,
        "more": " ".join(more),
        "columns_class": "-".join(["of", *(name.partition(" ")[0] for name in names)]),
        "columns": [_Column(titles.get(name, name), kinds[name][0]) for name in names],
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
