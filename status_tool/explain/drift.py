"""Drift: where master and slave differ in ways that replication never carries, found without comparing rows."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field

from status_tool.explain.advice import repair, text_of
from status_tool.printable import counted
from status_tool.rules.origins import is_younger
from status_tool.rules.peers import PeerFacts, ships, withheld
from status_tool.rules.regions import explains_end
from status_tool.rules.segments import is_later, latest
from status_tool.rules.tables import replicated_families
from status_tool.vocabulary.details import object_in
from status_tool.vocabulary.header import Header
from status_tool.vocabulary.outcome import Repair
from status_tool.vocabulary.schema import Row
from status_tool.vocabulary.scope import NOTHING_ACCEPTED, Baseline
from status_tool.vocabulary.states import LINEAGE

Tables = Mapping[str, frozenset[str] | None]
"""A slave's families by table; None if they are not known."""


@dataclass(frozen=True, slots=True)
class DriftTarget:
    """A peer of the master and what is known of the cluster behind it."""

    peer: PeerFacts
    cluster: str
    tables: Tables | None
    """None: its tables are not known."""


@dataclass(frozen=True, slots=True)
class Drift:
    """One difference that replication will not resolve, as `topology --json` has it.

    `kind` is the verdict's code for the same.
    """

    kind: str
    table: str
    detail: str
    advice: str
    peer: str | None = None
    """The peer whose slave differs; None: the master, for all its slaves."""
    repair: Repair | None = None


@dataclass(slots=True)
class Lost:
    """Regions that have streams but no longer exist, by table: collected from a master's rows as they arrive."""

    since: Baseline = NOTHING_ACCEPTED
    barriers: Mapping[int, int] = field(default_factory=dict)
    """As `RunContext.barriers`: a region whose streams all began later was made after the regions were read."""
    _streams: dict[str, tuple[str, int | None]] = field(default_factory=dict)
    """By region: its table, and when it was last written to."""
    _existing: set[str] = field(default_factory=set)
    _parents: dict[str, int | None] = field(default_factory=dict)
    """By region, when it was split or merged."""

    def add(self, rows: Iterable[Row]) -> None:
        """Take `stream`, `fact` and `region` rows, in any order."""
        for row in rows:
            region, table, written_ms = row.get("region") or "", row.get("table"), row.get("write_ms")
            if row["kind"] == "stream":
                if table is None or not is_later(written_ms, self.since.of(table)) or self._is_younger(row):
                    continue
                self._streams[region] = (table, latest(written_ms, self._streams.get(region, (table, None))[1]))
            elif row["kind"] == "region":
                self._existing.add(region)
            elif row["kind"] == "fact" and row.get("state") in LINEAGE:
                self._parents[region] = written_ms

    def _is_younger(self, stream: Row) -> bool:
        return is_younger(stream.get("first_ms"), self.barriers.get(stream.get("origin") or 0))

    @property
    def by_table(self) -> dict[str, int]:
        """Return the number of regions that each table has lost other than by a split or merge."""
        lost: dict[str, int] = {}
        for region, (table, written_ms) in self._streams.items():
            is_parent = region in self._parents and explains_end(self._parents[region], written_ms)
            if region not in self._existing and not is_parent:
                lost[table] = lost.get(table, 0) + 1
        return dict(sorted(lost.items()))


def find_drift(
    master: Header, rows: Sequence[Row], lost: Mapping[str, int], targets: Sequence[DriftTarget]
) -> list[Drift]:
    """Return the drift between a master and the clusters of its peers.

    `rows` are the master's `table` and `region` rows, `lost` what `Lost` gathered.
    """
    # `meta.regions` leaves the state table out, so this does, too; `table_families` has it.
    existing = {row["table"] for row in rows if row["kind"] == "region"}
    details = {row["table"]: row.get("detail") for row in rows if row["kind"] == "table" and row["table"] in existing}
    families = {table: replicated_families(detail) or () for table, detail in details.items()}
    replicated = {table: known for table, known in families.items() if known}
    found = [drift for target in targets for drift in _target_drift(master, replicated, target)]
    for table in sorted(replicated):
        if (object_in(details[table]) or {}).get("durability") == "SKIP_WAL" and _shipped(table, targets):
            detail = "has durability SKIP_WAL: its writes bypass the WAL, and therefore replication"
            found.append(_drift("skip-wal", master, table, detail, families=replicated[table]))
    for table, regions in lost.items():
        # A table that both sides have dropped leaves no rows behind.
        if _shipped(table, [target for target in targets if target.tables is None or table in target.tables]):
            detail = (
                f"was truncated, dropped or recreated ({counted(regions, 'region')} without a successor), which"
                " replication does not carry: their rows remain on the slave"
            )
            found.append(_drift("truncated", master, table, detail))
    return found


def _target_drift(master: Header, replicated: Mapping[str, Sequence[str]], target: DriftTarget) -> Iterable[Drift]:
    if target.tables is None:
        return
    left_out = withheld(target.peer, replicated)
    for table, families in sorted(replicated.items()):
        if not ships(target.peer, table):
            continue
        if table not in target.tables:
            detail = f"is replicated by peer {target.peer['id']}, but absent on cluster {target.cluster}"
            yield _drift("absent", master, table, detail, target)
            continue
        present = target.tables[table]
        missing = [f for f in families if present is not None and f not in present and f not in left_out.get(table, ())]
        if missing:
            names = ", ".join(missing)
            detail = f"has no family {names} on cluster {target.cluster}, although peer {target.peer['id']} ships it"
            yield _drift("family-absent", master, table, detail, target, missing)


def _shipped(table: str, targets: Sequence[DriftTarget]) -> bool:
    return any(ships(target.peer, table) for target in targets)


def _drift(
    kind: str, master: Header, table: str, detail: str, target: DriftTarget | None = None, families: Sequence[str] = ()
) -> Drift:
    key = str(target.peer.get("cluster_key") or "") if target else ""
    commands = repair(table, (None, None), (None, None), families, master, key, f"{master.cut_ms}-table")
    advice = f"{text_of(kind, table)}: {commands.copy_table}"
    return Drift(kind, table, detail, advice, str(target.peer["id"]) if target else None, commands)
