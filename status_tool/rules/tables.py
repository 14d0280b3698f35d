"""The table rule: what may be wrong with a table regardless of its streams."""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, fields, replace
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc

from status_tool.printable import iso
from status_tool.rules import witnessed
from status_tool.rules.custody import Unattended, custody_findings
from status_tool.rules.descriptors import Compared, compare_descriptors
from status_tool.rules.kept_proofs import BY_WORD, MARGIN_MS, NOTHING_SEEN, KeptBaseline, Seen
from status_tool.rules.origins import ShownTwice, repeated_times
from status_tool.rules.peers import PeerFacts, family_filter, own_shipping
from status_tool.rules.pruning import unproven_ms
from status_tool.rules.segments import earliest, is_later, latest
from status_tool.rules.words import is_past
from status_tool.vocabulary.codes import CODES, TABLE_CODES
from status_tool.vocabulary.details import fits, is_number, is_text, list_of, map_of, object_in, optional
from status_tool.vocabulary.findings import Finding
from status_tool.vocabulary.header import SKEW_MS, SLAVE, Header
from status_tool.vocabulary.schema import Row
from status_tool.vocabulary.scope import NOTHING_ACCEPTED, Baseline
from status_tool.vocabulary.states import LINEAGE, FactState, RegionState
from status_tool.vocabulary.verdicts import Status, worst

META_FAMILY = "METAFAMILY"
"""Name that HBase gives the family of its WAL markers (`WALEdit.METAFAMILY`)."""
_NO_UTF_8 = "\ufffd"
"""What Java and Python read for bytes that are no UTF-8, whichever they are."""


AGE_COLUMNS = pa.schema(
    [("kind", pa.string()), ("table", pa.string()), ("state", pa.string()), ("region_id", pa.int64())]
)


@dataclass(frozen=True, slots=True)
class TableAge:
    """Ages of a table by the region ids (creation times, epoch ms) of its regions and their parents."""

    table: str
    regions: int
    """Number of regions that the master has; 0: none was recorded."""
    oldest: int | None
    newest: int | None
    """Newest of the regions that exist now."""
    unknown: bool
    """True if some region's or parent's creation time is not known."""

    @property
    def created_ms(self) -> int | None:
        """The time at or after which the table was certainly created; None: not known."""
        return None if self.unknown else self.oldest

    def is_younger_than(self, since_ms: int) -> bool:
        """Return True if the table was certainly created after a time: then it held nothing to accept."""
        return self.created_ms is not None and self.created_ms > since_ms


@dataclass(frozen=True, slots=True)
class TableFacts:
    """Facts of one table of the master."""

    table: str
    described: bool
    """True if its descriptor was recorded."""
    replicated: bool
    families: tuple[str, ...] = ()
    """Its replicated families."""
    findings: tuple[Finding, ...] = field(default=())
    gone_accepted: bool = False
    """True if a region that is gone belongs to the accepted baseline."""
    loads_shipped: bool = False
    """True if all bulk loads into the table that are not of the baseline have been shipped."""
    notices: tuple[str, ...] = ()
    """Notices about it that are not problems."""
    is_compared: bool = True
    """True if both sides' descriptors record what they keep."""
    written_ms: int | None = None
    """When others than this master last wrote to it on the slave; None: never, not known, or accepted."""
    deleted_ms: int | None = None
    """When deletes were last among that."""
    writers: tuple[str, ...] = ()
    """The ways by which that came, as the ids of the clusters that it had passed; empty: the slave's own clients."""
    tagged_ms: int | None = None
    """When cells with tags were last written on the master."""
    observers: tuple[str, ...] = ()
    """Coprocessors that are not HBase's and that it has on both sides."""
    seen: Seen = NOTHING_SEEN
    """Events that the slave's trackers have seen of its content by now."""
    is_unrecorded: bool = False
    """True if the slave may have applied entries of it that it has no record of."""
    accepts: KeptBaseline | None = None
    """Return what the operator's word of this run makes of what is kept of a table; None for nothing new."""
    is_pruned: bool = False
    """True if heads of it have ever been pruned on the master."""
    is_settling: bool = False
    """True if a wait may settle who vouches for its regions on the slave."""

    @property
    def status(self) -> Status:
        """The worst finding of the table as such."""
        return worst(TABLE_CODES[finding.code] for finding in self.findings)


def proven(table: TableFacts) -> TableFacts:
    """Return the table without doubts about its rows: these are equal on both sides."""
    return replace(table, findings=tuple(found for found in table.findings if not CODES[found.code].is_about_rows))


def table_ages(rows: Iterable[Row]) -> list[TableAge]:
    """Fold `region` and `fact` rows into one age per table, by name."""
    held = [{name: row.get(name) for name in AGE_COLUMNS.names} for row in rows if row["kind"] in ("region", "fact")]
    return merged_ages(ages_of(pa.RecordBatch.from_pylist(held, AGE_COLUMNS)))


def ages_of(rows: pa.RecordBatch) -> list[TableAge]:
    """Fold the `region` and `fact` rows of a batch into one age per table, in any order."""
    kind, table, state, region_id = (rows.column(name) for name in AGE_COLUMNS.names)
    kind, state = kind.cast(pa.string()), state.cast(pa.string())
    is_region = pc.equal(kind, "region")
    is_lineage = pc.and_(pc.equal(kind, "fact"), pc.is_in(state, value_set=pa.array(map(str, LINEAGE))))
    exists = pc.and_not(is_region, pc.fill_null(pc.equal(state, str(RegionState.SPLIT)), False))
    newest = pc.if_else(exists, region_id, None)
    columns = {"table": table, "exists": exists, "id": region_id, "newest": newest, "unknown": region_id.is_null()}
    aged = pa.table(columns).filter(pc.and_(pc.or_(is_region, is_lineage), table.is_valid()))
    sums = [("exists", "sum"), ("id", "min"), ("newest", "max"), ("unknown", "any")]
    ages = aged.group_by("table", use_threads=False).aggregate(sums).select(["table", *("_".join(one) for one in sums)])
    return [TableAge(*age.values()) for age in ages.to_pylist()]


def merged_ages(ages: Iterable[TableAge]) -> list[TableAge]:
    """Return one age per table, of those of parts of its rows."""
    merged: dict[str, TableAge] = {}
    for age in ages:
        known = merged.get(age.table, TableAge(age.table, 0, None, None, False))
        oldest, newest = earliest(known.oldest, age.oldest), latest(known.newest, age.newest)
        unknown = known.unknown or age.unknown
        merged[age.table] = TableAge(age.table, known.regions + age.regions, oldest, newest, unknown)
    return [age for _, age in sorted(merged.items())]


@dataclass(frozen=True, slots=True)
class TableQuestion:
    """Question of a run about tables, with what it knows of all of them."""

    master: Header
    in_scope: Callable[[str | None], bool]
    read_by_ms: int | None = None
    """When the master's servers had read the barrier (`origins.read_by_ms`); None: there was none."""
    since: Baseline = NOTHING_ACCEPTED
    loads_from_ms: int | None = None
    """Bulk loads since then are known to have been shipped."""
    withheld: Mapping[str, tuple[str, ...]] = field(default_factory=dict)
    """By table, families that are not replicated to this slave."""
    unwitnessed: Mapping[str, Collection[str]] = field(default_factory=dict)
    """By table, families that the witnesses of FILE are not sent."""
    accepted_drift: Collection[str] = ()
    """Tables for which the user accepts that the slave keeps less, or that its own clients write to them."""
    changed: Mapping[str, int] = field(default_factory=dict)
    """By table, when store files last changed beside the WAL on the slave."""
    unattended: Mapping[str, Unattended] = field(default_factory=dict)
    """By table, the regions of the slave that no tracker vouches for."""
    slave_id: str = ""
    slave_back_ms: int | None = None
    """When the slave's state table was last found to have gone back."""
    slave_coverage_ms: int | None = None
    """Until when a region server of the slave ran without the replicate-time tracker; None: never, or not known."""
    accepted: Baseline = NOTHING_ACCEPTED
    """The operator's word of this run alone, without what is kept (`since` has both)."""
    kept: Mapping[str, KeptBaseline] = field(default_factory=dict)
    """By table, what the slave keeps of its past, of whatever families."""
    forgotten: Collection[str] = ()
    """Tables of which the operator's word accepts what has happened to them on the slave, too."""
    has_descriptors: bool = False
    """True if the trackers have recorded the descriptor of some table in scope."""
    slave_peers: Sequence[PeerFacts] = ()
    """Peers to which the slave ships."""
    slave_again: ShownTwice | None = None
    """Times that clocks of the slave have shown twice."""

    def is_passed_on(self, table: str, family: str, from_ms: int | None) -> bool:
        """Return True if a peer of the slave ships, or will once it is enabled, what a family has got since a time.

        One with code of its own, as HBase's for region replicas, tells nobody.
        """
        return any(
            not own_shipping(peer)
            and family_filter(peer).ships(table, family)
            and not is_later(peer.get("created_ms"), from_ms)
            for peer in self.slave_peers
        )


def judge_tables(
    master_rows: Iterable[Row], slave_rows: Iterable[Row], ages: Iterable[TableAge], question: TableQuestion
) -> tuple[TableFacts, ...]:
    """Judge every table in scope that has a descriptor or a region on the master, by name.

    `master_rows` and `slave_rows` are the `table` rows of either side.
    """
    named = (row for row in master_rows if row.get("table") and question.in_scope(row["table"]))
    descriptors = {row["table"]: row.get("detail") for row in named}
    slave = {row["table"]: _SlaveTable.of(row.get("detail")) for row in slave_rows if row.get("table")}
    by_name = {age.table: age for age in ages if question.in_scope(age.table)}
    question = replace(question, has_descriptors=bool(descriptors))
    return tuple(
        _facts(
            _Table(
                name=table,
                question=question,
                age=by_name.get(table),
                described=table in descriptors,
                descriptor=_descriptor(descriptors.get(table)),
                families=families_in_scope(descriptors.get(table), question.withheld.get(table, ())) or (),
                slave=slave,
            )
        )
        for table in sorted(descriptors.keys() | by_name.keys())
        if table is not None
    )


def replicated_families(detail: str | None) -> tuple[str, ...] | None:
    """Return families with replication scope 1 in a master's descriptor; None when it cannot be read."""
    descriptor = _descriptor(detail)
    if descriptor is None:
        return None
    return tuple(sorted(name for name, options in descriptor["families"].items() if _scope(options) == 1))


def families_in_scope(detail: str | None, withheld: Iterable[str]) -> tuple[str, ...] | None:
    """Return the replicated families of a master's descriptor without those that the peer withholds; None as above."""
    ours, left_out = replicated_families(detail), set(withheld)
    return None if ours is None else tuple(family for family in ours if family not in left_out)


def local_families(detail: str | None) -> tuple[str, ...] | None:
    """Return families that are not replicated in a master's descriptor; None when it cannot be read."""
    descriptor, replicated = _descriptor(detail), replicated_families(detail)
    if descriptor is None or replicated is None:
        return None
    return tuple(sorted(set(descriptor["families"]) - set(replicated)))


@dataclass(frozen=True, slots=True)
class _Table:
    """A table of the master, with what both sides record of it."""

    name: str
    question: TableQuestion
    age: TableAge | None
    described: bool
    descriptor: dict[str, Any] | None
    """None: there is none, or it cannot be read."""
    families: tuple[str, ...]
    """Those that the peer ships, as far as they are known."""
    slave: Mapping[str, _SlaveTable]

    @property
    def here(self) -> _SlaveTable:
        """The slave's table."""
        return self.slave.get(self.name, _SlaveTable(None))

    @property
    def since_ms(self) -> int | None:
        """Time up to which its past is accepted."""
        return self.question.since.of(self.name)

    def is_past(self, moment_ms: int) -> bool:
        """Return True if a change on the master lies in the past that is accepted."""
        return is_past(moment_ms, self.since_ms, self.question.accepted.of(self.name), self.question.master)

    def is_asked(self, moment_ms: int | None) -> bool:
        """Return True if something has happened on the master that is not accepted."""
        return moment_ms is not None and not self.is_past(moment_ms)

    @property
    def seen(self) -> Seen:
        """Events that the slave's trackers have seen of it by now."""
        return self.here.seen(self.question, self.name)

    @property
    def replicated(self) -> bool:
        """True if the peer ships some of it, as far as is known."""
        # A descriptor that cannot be read may be of a replicated table, and only such a table gets a finding.
        return self.described and (self.descriptor is None or bool(self.families))

    @property
    def gone_accepted(self) -> bool:
        """True if all its regions are of the accepted baseline, and so is one that is gone.

        Of a table that is gone as a whole nothing is left to compare: the times of its regions decide alone.
        """
        age = self.age
        if age is not None and not age.regions and not self.described:
            return True
        return bool(age and age.regions and not age.unknown and self.is_past(age.newest or 0))

    @property
    def loads_shipped(self) -> bool:
        """True if all bulk loads in scope have been shipped, to the table that the slave has now."""
        loads_from_ms, here = self.question.loads_from_ms, self.here
        families = (self.descriptor or {}).get("families", {})
        # A loaded file may refer to MOB files of its master, which are not shipped with it.
        if any(isinstance(one := families.get(name), dict) and one.get("mob") for name in self.families):
            return False
        if loads_from_ms is None or not _begins_after(loads_from_ms, self.age, self.since_ms):
            return False
        first_ms = latest(self.age.created_ms if self.age else None, self.since_ms) or 0
        # The queues tell that loads went to the cluster at the peer's address, not to which: another slave may be there
        # since, or this table may be another one. A load that has arrived counts as an arrival.
        later = (here.born_ms, self.question.slave_back_ms)
        return here.arrived_ms is not None and all(is_later(first_ms + MARGIN_MS, one or 0) for one in later)

    @property
    def is_silent(self) -> bool:
        """True if it has no descriptor although the trackers have recorded those of other tables since it was made."""
        age, read_ms = self.age, self.question.read_by_ms
        if self.described or age is None or not age.regions or read_ms is None:
            return False
        # A tracker writes the descriptors at the barrier, and may miss a table that is made around then.
        return age.created_ms is None or age.created_ms < read_ms - MARGIN_MS

    @property
    def accepts(self) -> KeptBaseline | None:
        """Record that the operator's word of this run makes of what is kept of it; None for nothing new.

        It vouches for what was written, not for what has happened to the slave's table: only a word that is given
        together with `--forget` does that.
        """
        question, now = self.question, self.seen
        word_ms, kept, families = (
            question.accepted.of(self.name),
            question.kept.get(self.name),
            frozenset(self.families),
        )
        if word_ms is None or (self.age is not None and self.age.is_younger_than(word_ms)):
            return None
        if kept is not None and kept.families >= families:
            return KeptBaseline(word_ms, families, kept.seen, BY_WORD) if word_ms > kept.until_ms else None
        if self.name in question.forgotten:
            return KeptBaseline(word_ms, families, now, BY_WORD)
        # An earlier record may have gone with a state table that went back: nobody knows what has happened since it.
        events = {name: getattr(now, name) for name in ("covered_ms", "written_ms", "deleted_ms", "own_ms")}
        by_then = {name: moment for name, moment in events.items() if not is_later(moment or 0, word_ms)}
        # Own writes after that time may have deleted what was copied, even if nothing has arrived.
        known = replace(self.before_arrival(now), back_ms=None, **{"own_ms": 0} | by_then)
        if kept is not None:
            # The record vouches for other families: an event is expected only if a first word expects it as well.
            doubted = {one.name: getattr(known, one.name) for one in fields(known)}
            known = replace(kept.seen, **{n: value for n, value in doubted.items() if value != getattr(now, n)})
        return KeptBaseline(word_ms, families, known, BY_WORD)

    def before_arrival(self, now: Seen) -> Seen:
        """Return what `_SlaveTable.before_arrival` does, as long as no head was pruned on the master.

        Then no chain shows that what was pruned has arrived since the slave's state table went back.
        """
        first_ms = self.here.first_own_ms(self.question.slave_id)
        is_shipped = first_ms is not None and any(
            self.question.is_passed_on(self.name, family, first_ms) for family in self.families
        )
        relayed_ms = self.relayed_ms
        before = self.here.before_arrival(now, earliest(first_ms if is_shipped else None, relayed_ms))
        # What its clients have changed since came to the master as well, as long as the peer is there that brought it.
        if relayed_ms is not None and not all(
            self.question.is_passed_on(self.name, family, relayed_ms) for family in self.families
        ):
            before = replace(before, own_ms=0)
        return replace(before, back_ms=None) if self.is_pruned else before

    @property
    def expected(self) -> Seen:
        """The events of the slave that are no doubt: those of before the first entry, or that its voucher knows."""
        holding, again = self.holding, self.question.slave_again
        # Clocks that have passed all that they had shown hide nothing that comes then.
        if holding is not None and again is not None and holding.until_ms > again.until_ms:
            return holding.seen
        return self.here.in_order(self.before_arrival(self.seen) if holding is None else holding.seen, again)

    @property
    def relayed_ms(self) -> int | None:
        """Time of the first entries that had passed the slave: the master has them, and does not ship them back."""
        first: Mapping[str, int] = (self.descriptor or {}).get("first_written_by") or {}
        return earliest(*(moment for ids, moment in first.items() if self.question.slave_id in ids.split(",")))

    @property
    def is_pruned(self) -> bool:
        """True if heads of it have ever been pruned on the master."""
        return bool((self.descriptor or {}).get("pruned"))

    @property
    def holding(self) -> KeptBaseline | None:
        """Voucher for its past: the operator's word of this run, or what is kept of all its families."""
        kept = self.question.kept.get(self.name)
        return self.accepts or (kept if kept is not None and kept.families >= set(self.families) else None)


def _facts(table: _Table) -> TableFacts:
    facts = TableFacts(
        table.name,
        table.described,
        table.replicated,
        gone_accepted=table.gone_accepted,
        is_pruned=table.is_pruned,
    )
    if table.is_silent and table.question.has_descriptors:
        silent = Finding("not-described", table=table.name, note="of the table, which has regions")
        # It counts as replicated, so that equal rows of all other tables settle no server.
        return replace(facts, replicated=True, findings=(silent,))
    facts = replace(facts, loads_shipped=table.loads_shipped)
    return _compared_facts(table, facts) if table.replicated else facts


def _compared_facts(table: _Table, facts: TableFacts) -> TableFacts:
    """Return the facts with what a comparison of both sides adds."""
    now, holding = table.seen, table.holding
    expected = table.expected
    compared = _compared(table)
    findings = tuple(_findings(table, compared, now, expected))
    is_accepted = table.name in table.question.accepted_drift
    tagged_ms = (table.descriptor or {}).get("tagged_ms")
    return replace(
        facts,
        families=table.families,
        findings=findings,
        notices=tuple(_drift_notices(table.name, compared, is_accepted, now.own_ms)),
        is_compared=compared.known,
        written_ms=None if now.written_ms == expected.written_ms else now.written_ms,
        deleted_ms=None if now.deleted_ms == expected.deleted_ms else now.deleted_ms,
        writers=table.here.writers(expected.written_ms, table.question.master.cluster_id),
        tagged_ms=tagged_ms if table.is_asked(tagged_ms) else None,
        observers=_observers(table.descriptor or {}, table.here.descriptor),
        seen=now,
        is_unrecorded=any(found.code == "slave-state-lost" for found in findings)
        or (holding is None and table.here.held_before(table.question.slave_coverage_ms)),
        accepts=table.accepts,
        is_settling=(broken := table.question.unattended.get(table.name)) is not None and broken.is_settling,
    )


def _findings(table: _Table, compared: Compared, now: Seen, expected: Seen) -> Iterator[Finding]:
    yield from _descriptor_findings(table)
    if table.question.master.is_witnessed:
        withheld = table.question.unwitnessed.get(table.name, ())
        yield from witnessed.table_findings(table.name, table.descriptor, withheld, table.is_past)
    yield from _slave_findings(table)
    if compared.less and table.name not in table.question.accepted_drift:
        yield Finding("keeps-less", table=table.name, note="; ".join(compared.less))
    yield from _later_events(table, now, expected)
    if table.name in table.slave:
        yield from custody_findings(table.name, table.here.descriptor, table.question.unattended.get(table.name))
    pruned_ms = unproven_ms((table.descriptor or {}).get("pruned", []), table.question.slave_id)
    # A table of this name that was dropped since may have had the pruned streams: they are not asked for.
    is_of_before = table.age and pruned_ms is not None and table.age.is_younger_than(pruned_ms + SKEW_MS)
    if table.is_asked(pruned_ms) and not is_of_before:
        yield Finding("pruned", table=table.name, written_to_ms=pruned_ms)
    yield from _age_findings(table)


def _observers(master: Mapping[str, Any], slave: Mapping[str, Any]) -> tuple[str, ...]:
    """Coprocessors of a table that both sides have; others are reported as a difference."""
    names: Any = slave.get("coprocessors")
    return tuple(names) if list_of(is_text)(names) and names == master.get("coprocessors") else ()


def _compared(table: _Table) -> Compared:
    """Compare the sides. Skips a side that is absent or unreadable, which has its own finding."""
    if table.descriptor is None or table.here.families is None:
        return Compared()
    return compare_descriptors(table.descriptor, table.here.descriptor, table.families)


def _drift_notices(table: str, compared: Compared, accepted: bool, own_ms: int | None) -> Iterator[str]:
    if accepted and compared.less:
        yield f"table {table}: the slave keeps less, which was accepted (--accept-drift): {'; '.join(compared.less)}"
    if accepted and own_ms:
        yield (
            f"table {table}: clients of the slave itself wrote to it, last at {iso(own_ms)}, which was accepted"
            " (--accept-drift)"
        )
    elif accepted and not compared.less:
        yield (
            f"table {table}: nothing to accept (--accept-drift): as far as known, the slave does not keep less there,"
            " and its own clients have not written to it"
        )
    if compared.other:
        yield f"table {table} differs, which loses nothing by itself: {'; '.join(compared.other)}"


def _begins_after(moment_ms: int, age: TableAge | None, since_ms: int | None) -> bool:
    """Return True if everything in scope of a table was written after a time.

    A region records only its newest bulk load, so an earlier one must be ruled out for the whole table.
    """
    if since_ms is not None and since_ms >= moment_ms:
        return True
    return age is not None and age.created_ms is not None and age.created_ms >= moment_ms


def _descriptor_findings(table: _Table) -> list[Finding]:
    name, descriptor = table.name, table.descriptor
    if descriptor is None:
        return [Finding("descriptor-unreadable", table=name)]
    # HBase takes its cells for markers (`WALEdit.isMetaEdit`): nobody stamps them, and nobody ships them.
    if META_FAMILY in table.families:
        return [Finding("meta-family", table=name)]
    if descriptor.get("durability") == "SKIP_WAL":
        return [Finding("skip-wal", table=name)]
    found = []
    if table.is_asked(descriptor.get("skipped_ms")):
        found.append(Finding("skipped-wal", table=name, written_to_ms=descriptor["skipped_ms"]))
    raised = descriptor.get("raised_ms") or {}
    for family in table.families:
        if table.is_asked(raised.get(family)):
            found.append(Finding("scope-raised", table=name, note=family, written_to_ms=raised[family]))
    return found


_MASTER_EVENTS = {
    **dict.fromkeys(("skipped_ms", "tagged_ms", "altered_ms", "opened_ms"), optional(is_number)),
    **dict.fromkeys(("raised_ms", "first_written_by"), optional(map_of(is_number))),
}
_SLAVE_EVENTS = {
    **dict.fromkeys(("arrived_ms", "born_ms", "first_born_ms", "skipped_ms"), optional(is_number)),
    **dict.fromkeys(("written_by", "first_written_by", "deleted_by"), optional(map_of(is_number))),
    **dict.fromkeys(("dropped_ms", "raised_ms"), optional(map_of(is_number))),
}


@dataclass(frozen=True, slots=True)
class _SlaveTable:
    """Record of a slave's `table` row: `{"families": [...]}` or `{"families": {...}}`, and its events."""

    families: frozenset[str] | None
    """None: the row cannot be parsed."""
    arrived_ms: int | None = None
    """When its first replicated entry arrived; None: never, as far as known."""
    born_ms: int | None = None
    first_born_ms: int | None = None
    dropped_ms: Mapping[str, int] = field(default_factory=dict)
    descriptor: Mapping[str, Any] = field(default_factory=dict)
    """All that the row says."""

    @classmethod
    def of(cls, detail: str | None) -> _SlaveTable:
        row = object_in(detail) or {}
        # Events that cannot be read hide what has happened: with them the whole row counts as unreadable, which is a
        # finding.
        families = row.get("families") if fits(row, _SLAVE_EVENTS) else None
        if not isinstance(families, dict | list) or not all(isinstance(name, str) for name in families):
            return cls(None)
        births = (row.get("born_ms"), row.get("first_born_ms"))
        return cls(frozenset(families), row.get("arrived_ms"), *births, row.get("dropped_ms") or {}, row)

    @property
    def held_from_ms(self) -> int | None:
        """Time when it first held what a verdict may rely on, or its birth if nothing has arrived; None if unknown."""
        return self.born_ms if self.arrived_ms is None else self.arrived_ms

    def held_before(self, moment_ms: int | None) -> bool:
        """Return True if it is known to have held something before a time."""
        return moment_ms is not None and self.held_from_ms is not None and self.held_from_ms < moment_ms

    def replicates(self, family: str, from_ms: int | None) -> bool:
        """Return True if the family is known to have the replication scope 1 there, and to have had it since a time."""
        families: Any = self.descriptor.get("families")
        raised_ms = (self.descriptor.get("raised_ms") or {}).get(family, 0)
        is_known = isinstance(families, dict) and _scope(families.get(family), unknown=0) == 1
        return is_known and not is_later(raised_ms, from_ms)

    def seen(self, question: TableQuestion, table: str) -> Seen:
        """Return what the trackers have seen of the table, with what its regions' ledgers and its state table show."""
        master_id, slave_id = question.master.cluster_id, question.slave_id
        written_ms, deleted_ms = (
            _newest_of_others(self.descriptor.get(name), master_id) for name in ("written_by", "deleted_by")
        )
        return Seen(
            self.born_ms,
            self.dropped_ms,
            question.changed.get(table),
            question.slave_back_ms,
            written_ms,
            deleted_ms,
            own_writes_ms(self.descriptor, slave_id),
            question.slave_coverage_ms,
        )

    def first_own_ms(self, slave_id: str) -> int | None:
        """Return when clients of the slave itself first wrote to it; None if that is not known."""
        return min(_own(self.descriptor, "first_written_by", slave_id), default=None)

    def writers(self, after_ms: int | None, master_id: str) -> tuple[str, ...]:
        """Return the ways by which others than the master wrote to it after a time, sorted."""
        known: Mapping[str, int] = self.descriptor.get("written_by") or {}
        later = (ids for ids, moment in known.items() if after_ms is None or moment > after_ms)
        return tuple(sorted(ids for ids in later if _is_of_others(ids, master_id)))

    def before_arrival(self, now: Seen, shipped_ms: int | None) -> Seen:
        """Return the part of `now` that took nothing away, as it had happened before the first entry arrived.

        Nor before the first own write that it shipped (`shipped_ms`): the master has that, and does not ship it back.
        The slave's servers' clocks may differ. So what could have come first counts as later, but for the table's one
        birth, and a change of its store files.
        """
        # A state table that went back took nothing from a table that was created after that. The first arrival is no
        # such proof: segments of a server that has gone are taken over by another one, which writes them again and
        # knows nothing of their arrival.
        back_ms = None if self.born_ms is None else _until(now.back_ms, self.born_ms - MARGIN_MS - 1)
        held_ms = earliest(self.arrived_ms, shipped_ms)
        if held_ms is None:
            return replace(now, back_ms=back_ms, written_ms=None, deleted_ms=None)
        # A change in the ledger from before the birth shows that it is not the first one: the table's first regions may
        # be older than the trackers.
        is_reborn = earliest(self.first_born_ms, self.born_ms, now.changed_ms) != self.born_ms
        bound_ms = held_ms - SKEW_MS
        # Own writes from before the first arrival are not expected either: a delete masks what arrives later as well.
        return Seen(
            _until(now.born_ms, bound_ms if is_reborn else held_ms),
            {family: moment for family, moment in now.dropped_ms.items() if moment <= bound_ms},
            _until(now.changed_ms, held_ms),
            back_ms,
            own_ms=now.own_ms if self.arrived_ms is None else 0,
            covered_ms=now.covered_ms if self.arrived_ms is None else _until(now.covered_ms, bound_ms),
        )

    def in_order(self, expected: Seen, again: ShownTwice | None) -> Seen:
        """Return what is expected without events of times that clocks of the slave have shown twice.

        By these times they came before the first entry, or before what vouches for the table; they may have come later,
        or hide what has. A table's one birth is in order: what arrived in it came after that.
        """
        if again is None:
            return expected
        moments = ("born_ms", "changed_ms", "back_ms", "written_ms", "deleted_ms", "own_ms", "covered_ms")
        doubtful = {name for name in moments if again.has(getattr(expected, name))}
        if self.first_born_ms is not None and self.first_born_ms == self.born_ms == expected.born_ms:
            doubtful.discard("born_ms")
        dropped = {family: moment for family, moment in expected.dropped_ms.items() if not again.has(moment)}
        return replace(expected, dropped_ms=dropped, **dict.fromkeys(doubtful))


def own_writes_ms(events: Mapping[str, Any], slave_id: str) -> int:
    """Return when clients of the slave itself last wrote to its table, by the table's events; 0: never."""
    # Replication bypasses no WAL.
    return max(events.get("skipped_ms") or 0, *_own(events, "written_by", slave_id), 0)


def _own(events: Mapping[str, Any], name: str, slave_id: str) -> list[int]:
    """Return times of writes of the slave's own clients. Those of HBase's Import name the cluster they write to."""
    by_clusters: Mapping[str, int] = events.get(name) or {}
    return [moment for ids, moment in by_clusters.items() if ids in ("", slave_id)]


def _newest_of_others(by_clusters: Mapping[str, int] | None, master_id: str) -> int | None:
    """Return the newest time of what has not passed the master; each by the ids of the clusters that it has passed."""
    known = (by_clusters or {}).items()
    return latest(*(moment for ids, moment in known if _is_of_others(ids, master_id)))


def _is_of_others(ids: str, master_id: str) -> bool:
    return not ids or master_id not in ids.split(",")


def _until(moment_ms: int | None, bound_ms: int) -> int | None:
    return moment_ms if moment_ms is not None and moment_ms <= bound_ms else None


def _slave_findings(table: _Table) -> list[Finding]:
    # A slave without any `table` row has one finding for all (`slave-tables-unknown`).
    if not table.slave:
        return []
    if table.name not in table.slave:
        return [Finding("absent", table=table.name)]
    present = table.here.families
    if present is None:
        return [Finding("descriptor-unreadable", table=table.name, note=SLAVE)]
    absent = [family for family in table.families if family not in present]
    found = [Finding("family-absent", table=table.name, note=", ".join(absent))] if absent else []
    # Thrift alone yields a list: no tracker of the slave has described the table.
    if not isinstance(table.here.descriptor.get("families"), dict):
        found.append(Finding("not-described", table=table.name, note="of the slave's table"))
    return found


def _later_events(table: _Table, now: Seen, expected: Seen) -> Iterator[Finding]:
    """Yield what has happened to the slave's table beside what was expected, whatever the clocks show."""
    moments = _moments_of_loss(now, expected, table.families) | {
        "slave-written": _own_writes(table, now, expected),
        "slave-uncovered": None if now.covered_ms == expected.covered_ms else now.covered_ms,
    }
    for code, moment_ms in moments.items():
        if moment_ms is not None:
            yield Finding(code, table=table.name, written_to_ms=moment_ms)


def _own_writes(table: _Table, now: Seen, expected: Seen) -> int | None:
    """Return when clients of the slave itself last wrote to its table, which nobody told; None if that is in order.

    It is where the slave ships all of it itself, so that its clients are meant to write to it, and has done so since
    the first of these writes, or the newest one that is accepted: nobody was told of any before the peer was there, nor
    of those that bypass the WAL.
    """
    from_ms = latest(table.here.first_own_ms(table.question.slave_id), expected.own_ms)
    is_passed_on = (table.here.descriptor.get("skipped_ms") or 0) <= (expected.own_ms or 0) and all(
        table.here.replicates(family, from_ms) and table.question.is_passed_on(table.name, family, from_ms)
        for family in table.families
    )
    is_in_order = is_passed_on or table.name in table.question.accepted_drift
    return now.own_ms if now.own_ms and not is_in_order and now.own_ms != expected.own_ms else None


def taken_away(slave: Header, rows: Iterable[Row]) -> dict[str, Finding | None]:
    """Return by table of a slave what may have taken away what had arrived, whoever sent it; None: nothing is known to.

    `rows` are its `table`, `fact` and `server` rows. A table that is not there has no entry.
    """
    rows = list(rows)
    again = repeated_times(row for row in rows if row["kind"] == "server")
    changed = newest_changes(row for row in rows if row["kind"] == "fact")
    found: dict[str, Finding | None] = {}
    for row in rows:
        if row["kind"] == "table" and row["table"] is not None:
            here, table = _SlaveTable.of(row.get("detail")), row["table"]
            now = Seen(here.born_ms, here.dropped_ms, changed.get(table), slave.state_back_ms)
            expected = here.in_order(here.before_arrival(now, None), again)
            moments = _moments_of_loss(now, expected, now.dropped_ms)
            lost = (Finding(code, table=table, written_to_ms=moment) for code, moment in moments.items() if moment)
            found[table] = next(lost, None)
    return found


def _moments_of_loss(now: Seen, expected: Seen, families: Iterable[str]) -> dict[str, int | None]:
    """Return by code when a table last lost something that was not expected."""
    born_ms = None if now.born_ms == expected.born_ms else now.born_ms
    before = expected.dropped_ms
    drops = (now.dropped_ms.get(one) for one in families if now.dropped_ms.get(one) != before.get(one))
    return {
        "emptied": latest(born_ms, *drops),
        "slave-state-lost": None if now.back_ms == expected.back_ms else now.back_ms,
        "slave-changed": None if now.changed_ms == expected.changed_ms else now.changed_ms,
    }


def newest_changes(rows: Iterable[Row]) -> dict[str, int]:
    """Return when store files last changed beside the WAL, by table, from a slave's `fact` rows."""
    newest: dict[str, int] = {}
    for row in rows:
        table, moment = row.get("table"), row.get("write_ms")
        if row.get("state") == FactState.CHANGED and table is not None and moment is not None:
            newest[table] = max(moment, newest.get(table, moment))
    return newest


def _age_findings(table: _Table) -> list[Finding]:
    age, covered_from = table.age, table.question.master.coverage_ms
    if age is None or not age.regions:
        return [Finding("no-regions", table=table.name)]
    if covered_from is not None and table.is_past(covered_from):
        return []
    young = age.created_ms is not None and covered_from is not None and age.created_ms >= covered_from
    return [] if young else [Finding("older-than-tracker", table=table.name, written_to_ms=covered_from)]


def _descriptor(detail: str | None) -> dict[str, Any] | None:
    """Return the descriptor's JSON object; None when it cannot be read.

    Nor can one with a family whose name is no UTF-8: the trackers write one name for all of these, and so one family.
    Nor one with events that cannot be read, which would pass for none.
    """
    parsed = object_in(detail) or {}
    families: Any = parsed.get("families")
    is_known = isinstance(families, dict) and not any(_NO_UTF_8 in name for name in families)
    return parsed if is_known and fits(parsed, _MASTER_EVENTS) else None


def _scope(options: Any, unknown: int = 1) -> int:
    """Replication scope of a family, or what it counts as if it cannot be read: a master's as replicated."""
    try:
        return int(options["scope"])
    except (KeyError, TypeError, ValueError, OverflowError):
        return unknown
