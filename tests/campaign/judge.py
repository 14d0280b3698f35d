"""One look: the tool's verdict, what others say at the same time, and the truth."""

from __future__ import annotations

import json
import time
from collections.abc import Sequence
from contextlib import ExitStack, contextmanager, suppress
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any

from status_tool.sources.state_table import now_ms
from tests.campaign.arena import PATIENCE_S, Arena
from tests.campaign.schedule import TABLES, WITNESSED
from tests.campaign.truth import Cells, newest, stored
from tests.lab.cluster import Cluster
from tests.lab.errors import AdminError, LabError
from tests.pair import PEER, Result, tool_here

BAD = ("gap", "behind", "missing")
COMPLETE = "complete"
SETTLED = "the replication queues settled it"
END_WAIT_S = 5
"""What has arrived is flushed by then."""
LIST_LENGTH = 5
"""How many missing cells a record names."""


class ToolFailed(Exception):
    """It ended with none of its exit codes."""


@dataclass
class Look:
    """What was seen at one moment."""

    when: str
    """`mid` or `end`."""
    verdict: str
    """complete, incomplete, unverifiable; or `refused` where the tool left with 2."""
    told: str = ""
    """Why it was refused, or the reasons of the problems."""
    regions: dict[str, int] = field(default_factory=dict)
    acknowledged: int = 0
    missing: int | None = None
    """Cells that had been acknowledged before the cut and were not on the slave after the verdict; None: not looked."""
    missing_cells: list[str] = field(default_factory=list)
    false_complete: bool = False
    false_regions: list[str] = field(default_factory=list)
    """Regions called complete although cells of theirs are missing, in a run that could see all origins."""
    alarms: list[str] = field(default_factory=list)
    """At the end only: regions called incomplete of which nothing is missing, with the reasons."""
    contradictions: list[str] = field(default_factory=list)
    """Regions of which the two proofs say different things: an error of the tool."""
    unverified: int = 0
    settled: int = 0
    """Crashed servers that the replication queues settled, by the tool's own notices."""
    timestamps: str | None = None
    """What the original's rules alone would say of the same regions."""
    lag: str | None = None
    """What HBase's replication lag metric says: complete where it is 0 for the peer on every server."""
    verify: str | None = None
    """What VerifyReplication says (at some ends only: it takes as long as everything else)."""
    rows: str | None = None
    """The verdict with `--rows=all` (at the end only); `refused` where the tool left with 2."""
    rows_told: str = ""
    rows_same: bool | None = None
    """Whether both sides show the same cells of replicated families, by scans of the judge's own."""
    accepted: list[str] = field(default_factory=list)
    """Tables of which `--accept-drift` let the slave keep less: their older versions count neither as missing nor as
    different."""
    rows_missing: int | None = None
    """Missing cells, without those of `accepted` tables."""

    def wrong(self) -> bool:
        """Whether the tool broke its promise."""
        return self.false_complete or bool(self.false_regions) or bool(self.contradictions) or self.rows_wrong()

    def rows_wrong(self) -> bool:
        """Whether rows were called equal that are not, or different that are the same."""
        if self.rows not in (COMPLETE, "incomplete"):
            return False
        is_same = False if self.rows_missing else self.rows_same
        return is_same is not None and (self.rows == COMPLETE) != is_same

    def as_dict(self) -> dict[str, Any]:
        """For the record."""
        return asdict(self)


@dataclass(frozen=True)
class Judge:
    """Runs the tool in an arena for the tables of a schedule, and holds its verdict against the truth."""

    arena: Arena
    tables: Sequence[str]
    folder: Path
    since_ms: int | None
    is_verified: bool = False
    """Whether VerifyReplication is asked, too."""

    def in_scope(self) -> list[str]:
        """Tables that the peer replicates now."""
        return [table for table in self.tables if self.arena.in_scope is None or table in self.arena.in_scope]

    def look(self, acknowledged: Cells, pick: int) -> Look:
        """A look in the middle, after all of `acknowledged` was.

        Of two looks one is frozen: the master's region servers stand still from FILE to the truth. Of four, one
        has a shutdown time: now, which is the clock of the application's host.
        """
        tables, shutdown = self.in_scope(), ("-s", str(now_ms())) if pick // 2 % 4 == 0 else ()
        wanted = frozenset(cell for cell in acknowledged if self._ships(cell)) - self._at_risk()
        lag = self._lag()
        written = self._write([witness.store for witness in self.arena.witnesses], "--wait", "6", *shutdown)
        if written.exit_code != 0:
            return Look("mid", "refused", _last_line(written))
        with self._frozen() if pick % 2 else ExitStack():
            result = self._check(0)
            if result.exit_code == 2:
                return Look("mid", "refused", _last_line(result))
            look = self._described("mid", result, len(wanted), lag)
            if look.verdict == COMPLETE or look.regions.get(COMPLETE) or COMPLETE in (look.timestamps, look.lag):
                with suppress(AdminError, LabError):
                    self._hold_against(look, wanted - stored(self.arena.slave, tables), result)
        return look

    def last_look(self, lost: Cells, acknowledged: int) -> Look:
        """The look at the end, when nothing moves any more and the truth is known."""
        lag = self._lag()
        # Witnesses may have to be sent what a crashed server left.
        wait_s = "30" if self.arena.witnesses else "6"
        written = self._write([witness.address for witness in self.arena.witnesses], "--wait", wait_s)
        if written.exit_code != 0:
            return Look("end", "refused", _last_line(written))
        result = self._check(END_WAIT_S)
        if result.exit_code == 2:
            return Look("end", "refused", _last_line(result))
        look = self._described("end", result, acknowledged, lag)
        self._hold_against(look, lost, result)
        # An operation that its client gave up may have been done after the truth was taken.
        late = stored(self.arena.master, self.tables) - stored(self.arena.slave, self.tables)
        look.alarms = self._alarms(lost | late, result)
        look.verify = self._verify() if self.is_verified else None
        if self.arena.kind != WITNESSED:
            self._ask_rows(look, lost)
        return look

    def _ask_rows(self, look: Look, lost: Cells) -> None:
        """The same question once more, settled by the rows themselves."""
        rows = ("--rows=all", "--master-conf", str(self.arena.master.conf_dir))
        result = self._check(END_WAIT_S, *rows)
        look.accepted = [] if result.exit_code == 2 else _drifted(result)
        if look.accepted:
            result = self._check(END_WAIT_S, *rows, *(f"--accept-drift={table}" for table in look.accepted))
        look.rows_missing = sum(table not in look.accepted for table, _ in lost)
        if result.exit_code == 2:
            look.rows, look.rows_told = "refused", _last_line(result)
            return
        look.rows, look.rows_told = result.json["verdict"], _reasons(result.json)
        with suppress(AdminError, LabError):
            look.rows_same = self._shown(self.arena.master, look) == self._shown(self.arena.slave, look)

    def _shown(self, side: Cluster, look: Look) -> Cells:
        whole = [table for table in self.in_scope() if table not in look.accepted]
        shown = stored(side, whole, visible=True) | newest(side, look.accepted)
        return frozenset(cell for cell in shown if self._ships(cell))

    def _ships(self, cell: tuple[str, str]) -> bool:
        return self.arena.ships(cell[0], cell[1].split("\t")[1])

    def _at_risk(self) -> Cells:
        """Cells that a crash may have lost on the master as well; for witnesses what may not be in a WAL yet."""
        return frozenset(self.arena.fragile if self.arena.crashed or self.arena.kind == WITNESSED else ())

    # -- the tool

    def _write(self, witnesses: Sequence[str | Path], *more: str) -> Result:
        # A table that is named and not replicated is a doubt.
        replicated = [table for table in self.in_scope() if any(TABLES[table.split("_")[0]].values())]
        limits = [word for table in replicated for word in ("--table", table)]
        asked = [word for place in witnesses for word in ("--witness", str(place))]
        out = ("-o", str(self._file), "--only", "hbase", *more)
        return _ended(tool_here("run", "-m", *out, *limits, *asked, conf=self.arena.master))

    def _check(self, wait_s: int, *more: str) -> Result:
        since = () if self.since_ms is None else ("--since", str(self.since_ms))
        how = ("--json", "--only", "hbase", "--wait", str(wait_s), "-d", "--debug-dir", str(self._dump))
        return _ended(tool_here("run", "-i", str(self._file), *how, *since, *more, conf=self.arena.slave))

    @property
    def _file(self) -> Path:
        return self.folder / "master.status"

    @property
    def _dump(self) -> Path:
        return self.folder / "debug"

    def _dumped(self) -> list[dict[str, Any]]:
        lines = (self._dump / "regions.jsonl").read_text().splitlines()
        return [region for region in map(json.loads, lines) if region["table"] in self.tables]

    # -- the others

    def _lag(self) -> str | None:
        try:
            rows = self.arena.master.admin.call("replication_lag", PATIENCE_S)
        except (AdminError, LabError):
            return None
        lags = [row["replication_lag_ms"] for row in rows if row["peer"] == PEER]
        return COMPLETE if lags and not any(lags) else "incomplete"

    def _verify(self) -> str | None:
        bad = 0
        for table in self.in_scope():
            families = [name for name, scope in TABLES[table.split("_")[0]].items() if scope]
            if not families:
                continue
            try:
                counters = self.arena.master.admin.verify_replication(table, families, PEER, self.folder / "verify")
            except (AdminError, LabError):
                return None
            bad += counters["badrows"]
        return COMPLETE if not bad else "incomplete"

    # -- the comparison

    def _described(self, when: str, result: Result, acknowledged: int, lag: str | None) -> Look:
        document = result.json
        return Look(
            when,
            document["verdict"],
            told=_reasons(document),
            regions={name: count for name, count in document["hbase"]["regions"].items() if count},
            acknowledged=acknowledged,
            timestamps=_by_timestamps(self._dumped()),
            lag=lag,
            contradictions=result.contradictions,
            unverified=document["hbase"]["regions"]["unverifiable"],
            settled=sum(SETTLED in notice for notice in document["notices"]),
        )

    def _hold_against(self, look: Look, missing: Cells, result: Result) -> None:
        look.missing = len(missing)
        look.missing_cells = sorted(f"{table} {cell}"[:120] for table, cell in missing)[:LIST_LENGTH]
        look.false_complete = bool(missing) and look.verdict == COMPLETE
        if not missing or _blind(result):
            return
        dumped = self._dumped()
        for table, cell in sorted(missing):
            holding = [one for one in dumped if one["table"] == table and _holds(one, cell)]
            if holding and all(_fine(one) for one in holding):
                names = ", ".join(one["region"] for one in holding)
                if names not in look.false_regions:
                    look.false_regions.append(names)

    def _alarms(self, lost: Cells, result: Result) -> list[str]:
        alarms = []
        for region in self._dumped():
            if region["status"] in BAD and not any(
                table == region["table"] and _holds(region, cell) for table, cell in lost
            ):
                alarms.append(f"{region['table']} {region['region']} {region['status']} {region['decision']}")
        return alarms

    @contextmanager
    def _frozen(self) -> Any:
        paused = [server for server in self.arena.master.region_servers if server.running]
        for server in paused:
            server.pause()
        try:
            time.sleep(0.3)  # what was on its way to the slave is applied
            yield
        finally:
            for server in paused:
                server.resume()


def _ended(result: Result) -> Result:
    if result.exit_code not in range(4):
        raise ToolFailed(result)
    return result


def _reasons(document: dict[str, Any]) -> str:
    reasons = sorted({f"{problem['kind']}: {problem['detail']}" for problem in document["problems"]})
    return " | ".join(reasons)[:2000]


def _drifted(result: Result) -> list[str]:
    """Tables of which the slave keeps less: no rows refute that, only the operator's consent does."""
    return sorted({one["table"] for one in result.json["problems"] if one["detail"].startswith("drift: ")})


def _fine(region: dict[str, Any]) -> bool:
    return region["status"] == COMPLETE and region["table_status"] in (COMPLETE, None)


def _blind(result: Result) -> bool:
    """Whether the run said that it could not see all of the master: then no region's status stands for itself.

    A doubt about a table concerns that table alone (`_fine`).
    """
    return any(
        problem["kind"] == "unverifiable" and not (problem["region"] or problem["table"])
        for problem in result.json["problems"]
    )


def _holds(region: dict[str, Any], cell: str) -> bool:
    """Whether the cell's row is within the region's keys; a region whose keys are not known holds any."""
    row = cell.split("\t", 1)[0].encode()
    start, end = (bytes.fromhex(region[name] or "") for name in ("start_key", "end_key"))
    return start <= row and (not end or row < end)


def _by_timestamps(regions: Sequence[dict[str, Any]]) -> str | None:
    """The original's rule that needs no shutdown time: replicate time not before write time, for every region."""
    written = [region for region in regions if region["written_ms"]]
    behind = [r for r in written if r["replicated_ms"] is None or r["replicated_ms"] < r["written_ms"]]
    return "incomplete" if behind else COMPLETE


def _last_line(result: Result) -> str:
    return (result.stderr.strip().splitlines() or [""])[-1][:300]
