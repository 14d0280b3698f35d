"""Context of a whole run: judged by the few small rows (servers, tables) and the two headers."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import NamedTuple

from status_tool.printable import counted, few, iso
from status_tool.rules.custody import unattended
from status_tool.rules.kept_proofs import (
    BY_ROWS,
    BY_WORD,
    KeptBaseline,
    baseline_with,
    kept_baselines,
    servers_since,
    still_holding,
    told,
)
from status_tool.rules.origins import (
    Origin,
    judge_origins,
    origin_name,
    read_by_ms,
    repeated_times,
    slave_doubts,
    slave_flushed_ms,
)
from status_tool.rules.peers import PeerFacts, parse_peer
from status_tool.rules.queue_proofs import QueueFacts, with_older_proofs
from status_tool.rules.second_proof import SecondProof, second_notices, second_proof
from status_tool.rules.segments import is_later
from status_tool.rules.server_settings import ServerSettings, judge_settings, peers_elsewhere
from status_tool.rules.sides import asked_filter, identity_notice, in_scope, older_notice, recorded_filter
from status_tool.rules.streams import StreamRule, came_through
from status_tool.rules.tables import (
    TableAge,
    TableFacts,
    TableQuestion,
    families_in_scope,
    judge_tables,
    newest_changes,
    proven,
)
from status_tool.rules.witnessed import unwitnessed
from status_tool.rules.words import Word, covers_file, is_past, known_until_ms
from status_tool.vocabulary.codes import CODES
from status_tool.vocabulary.findings import NO_PROOFS, Finding, RowProofs
from status_tool.vocabulary.header import HALF_NAMES, Header
from status_tool.vocabulary.ids import cluster_names
from status_tool.vocabulary.names import namespace_of
from status_tool.vocabulary.schema import Row
from status_tool.vocabulary.scope import NOTHING_ACCEPTED, Baseline, Scope, TableFilter
from status_tool.vocabulary.verdicts import Evidence

_Rows = Mapping[str, list[Row]]
"""Rows by kind; none for a kind that there is not."""
MAX_NAMES = 10
"""Number of tables, or of other clusters, that a notice names."""
SMALL_KINDS = ("server", "table", "peer")
"""Kinds with one row per server or table: these are judged in plain Python, on the driver."""


class OriginRule(NamedTuple):
    """Facts by which the streams of an origin are judged."""

    settled: bool
    after_ms: int | None
    """A write time beyond this is after the cut; None: not known."""


UNKNOWN_ORIGIN = OriginRule(False, None)


@dataclass(frozen=True, slots=True)
class RunContext:
    """The rules and facts that every stream, region and file of a run shares."""

    master: Header
    slave: Header
    scope: Scope
    evidence: Evidence
    """That of the master's file."""
    filters: tuple[TableFilter, ...]
    rule: StreamRule
    origins: tuple[Origin, ...] = ()
    tables: tuple[TableFacts, ...] = ()
    queues: QueueFacts = field(default_factory=QueueFacts)
    run_findings: tuple[Finding, ...] = ()
    """Findings that make the HBase half unverifiable, or incomplete, regardless of the regions."""
    rows: RowProofs = NO_PROOFS
    kept: frozenset[str] = frozenset()
    """Tables of which the past rests on an earlier proof by rows."""
    accepted: Baseline = NOTHING_ACCEPTED
    """Times up to which only the operator's word vouches, of this run or as recorded; not what rows have proven."""
    word: Baseline = NOTHING_ACCEPTED
    """The operator's word of this run alone."""
    unaffected: frozenset[str] = frozenset()
    """Tables of which the operator's word accepts nothing: they are younger, or their rows were proven."""
    is_settled_by_rows: bool = False
    """True if something was in doubt for the whole run that only the rows of all tables have settled."""
    settled_tables: frozenset[str] = frozenset()
    """Tables that were in doubt as such, which only their rows have settled."""
    second: SecondProof | None = None
    """What a witness is asked beside the trackers; None: FILE has no such witness."""
    slave_tables: frozenset[str] | None = None
    """Names of the slave's tables; None: not known."""
    notices: tuple[str, ...] = ()
    facts: Mapping[str | None, TableFacts] = field(init=False, repr=False, compare=False)
    """`tables` by name. This and what follows is made once, because every region or finding asks for it."""
    tracked_servers: frozenset[str] = field(init=False, repr=False, compare=False)
    """Names of the master's live servers that run the tracker."""
    origin_rules: Mapping[int, OriginRule] = field(init=False, repr=False, compare=False)
    """Rule of each known origin."""
    barriers: Mapping[int | None, int] = field(init=False, repr=False, compare=False)
    """`Origin.barrier_ms` of those of which it is known."""
    _names: Mapping[int, str] = field(init=False, repr=False, compare=False)
    _reasons: Mapping[int | None, str] = field(init=False, repr=False, compare=False)

    def __post_init__(self) -> None:
        made = {
            "facts": {known.table: known for known in reversed(self.tables)},
            "tracked_servers": frozenset(known.name for known in self.origins if known.live and known.tracked),
            "origin_rules": _origin_rules(self.origins),
            "barriers": {known.id: known.barrier_ms for known in self.origins if known.barrier_ms is not None},
            "_names": {known.id: known.name for known in self.origins if known.id is not None},
            "_reasons": {known.id: known.reason for known in reversed(self.origins) if known.reason},
        }
        for name, value in made.items():
            object.__setattr__(self, name, value)

    @property
    def check_hbase(self) -> bool:
        """Return True if the HBase half is in scope and recorded on both sides."""
        return self.scope.check_hbase and _holds("hbase", self.master, self.slave)

    @property
    def check_hdfs(self) -> bool:
        """Return True if the HDFS half is in scope and recorded on both sides."""
        return self.scope.check_hdfs and _holds("hdfs", self.master, self.slave)

    @property
    def table_findings(self) -> tuple[Finding, ...]:
        """Return the findings about tables as such."""
        return tuple(finding for table in self.tables for finding in table.findings)

    @property
    def accepted_tables(self) -> tuple[str, ...]:
        """The tables in scope of which the past rests on the operator's word."""
        proven = self.unaffected | self.rows.equal
        return tuple(
            table.table
            for table in self.tables
            if table.replicated and self.accepted.of(table.table) is not None and table.table not in proven
        )

    def origin_name(self, origin: int | None) -> str | None:
        """Return the server name of an origin, or its id in hex."""
        return origin_name(origin, self._names)

    def origin_rule(self, origin: int | None) -> OriginRule:
        """Return the facts by which an origin's streams are judged. An unknown origin is not settled."""
        return UNKNOWN_ORIGIN if origin is None else self.origin_rules.get(origin, UNKNOWN_ORIGIN)

    def unsettled_reason(self, origin: int | None) -> str | None:
        """Return why an origin is not settled; None if it is, or is not known."""
        return self._reasons.get(origin)

    def families_of(self, table: str | None) -> tuple[str, ...]:
        """Return the replicated families of a table, as far as they are known."""
        known = self.facts.get(table)
        return () if known is None else known.families

    def is_past(self, table: str | None, moment_ms: int | None) -> bool:
        """Return True if a change of a table lies in the past that is accepted."""
        return is_past(moment_ms, self.scope.since.of(table), self.word.of(table), self.master)

    def in_scope(self, table: str | None) -> bool:
        """Return True if a table is in the scope of the run and of both files, and the peer ships some of it."""
        return in_scope(table, self.filters) and self.queues.families.ships(table, None)


def _origin_rules(origins: Iterable[Origin]) -> dict[int, OriginRule]:
    rules: dict[int, OriginRule] = {}
    for origin in origins:
        if origin.id is not None:
            # Several rows of one origin settle it only together.
            known = rules.get(origin.id, OriginRule(True, origin.after_ms))
            # A time is after the cut only if it is so by every row. One unknown bound leaves that unknown.
            bounds = [one.after_ms for one in (known, origin) if one.after_ms is not None]
            rules[origin.id] = OriginRule(known.settled and origin.reason is None, max(bounds) if bounds[1:] else None)
    return rules


@dataclass(frozen=True, slots=True)
class _Past:
    """Vouchers for the past of the tables in scope: the operator's word of this run, and what the slave keeps."""

    word: Baseline
    families: Mapping[str, tuple[str, ...] | None]
    """Families that the peer ships, by table in scope; None: not known."""
    recorded: Mapping[str, KeptBaseline]

    @property
    def holding(self) -> dict[str, KeptBaseline]:
        """Records that the slave keeps of all families of a table."""
        return still_holding(self.recorded, self.families)

    def kept(self, by: str) -> dict[str, KeptBaseline]:
        """Return the part of `holding` that was proven by rows, or that rests on an earlier word."""
        return {name: one for name, one in self.holding.items() if one.by == by}

    @property
    def accepted(self) -> Baseline:
        """Times up to which only the operator's word vouches."""
        return baseline_with(self.word, self.kept(BY_WORD))

    def servers_ms(self, created_ms: Mapping[str, int | None]) -> int | None:
        """Return up to when everything that servers have written is accepted.

        `created_ms`: when tables were certainly not there yet; none for a slave, whose table may be older.
        """
        return servers_since(self.word, self.families, self.kept(BY_ROWS), created_ms)

    def word_on_servers(self, master: Header, forgotten: Collection[str]) -> Word:
        """Return the part of the word that covers servers of either side, whenever they did what is in doubt."""
        anew = [table in forgotten and self.word.of(table) is not None for table in self.families]
        return Word(
            covers_file(self.word.everything_ms, master),
            # The empty set of tables says nothing.
            bool(anew) and all(anew),
            known_until_ms(master),
        )


def build_context(
    master_rows: Iterable[Row],
    slave_rows: Iterable[Row],
    ages: Iterable[TableAge],
    master: Header,
    slave: Header,
    scope: Scope,
    queues: QueueFacts | None = None,
    rows: RowProofs = NO_PROOFS,
) -> RunContext:
    """Judge servers and tables, by the rows of `SMALL_KINDS` and a slave's `fact` rows; other rows are ignored."""
    queues, level = queues or QueueFacts(), Evidence(master.evidence)
    is_asked = scope.check_hbase and level is not Evidence.TIMESTAMPS
    ours, theirs = (_by_kind(side if is_asked else ()) for side in (master_rows, slave_rows))
    families = _families(ours["table"], asked_filter(scope), queues)
    past = _Past(scope.since, families, kept_baselines(theirs["table"], ours["table"], master.cluster_id))
    widened = replace(scope, since=baseline_with(scope.since, past.holding))
    bare = RunContext(
        master=master,
        slave=slave,
        scope=widened,
        evidence=level,
        filters=(asked_filter(scope), recorded_filter(master), recorded_filter(slave)),
        rule=StreamRule.of(slave, widened.since, slave_flushed_ms(theirs["server"])),
    )
    notices = (
        *_half_notices(master, slave, scope),
        *_side_notices(bare),
        # `told` has lines about what is kept: these are about the word that was given.
        *_notices(replace(bare, scope=scope)),
        *told(past.holding),
        *queues.notices,
    )
    if level is Evidence.TIMESTAMPS:
        return replace(bare, filters=(), notices=notices)
    strangers = _strangers(master, theirs["unstamped"]) if bare.check_hbase else []
    second = second_proof(master, queues.witness, theirs["server"]) if bare.check_hbase else None
    notices = (*notices, *strangers, *second_notices(second))
    bare = replace(bare, queues=queues, rows=rows, second=second, notices=notices)
    return _judged(bare, ours, theirs, list(ages) if is_asked else [], past)


def _judged(bare: RunContext, ours: _Rows, theirs: _Rows, ages: list[TableAge], past: _Past) -> RunContext:
    """Return the context with its servers and tables judged."""
    # Of a table that is gone, and had been split, there is an age as well.
    created = {age.table: age.created_ms for age in ages if age.regions and bare.in_scope(age.table)}
    # `past` leaves out tables of which nothing is shipped.
    families = {**dict.fromkeys((row["table"] for row in ours["table"] if row.get("table")), ()), **past.families}
    queues = with_older_proofs(bare.queues, families, created)
    settled = queues.notices[len(bare.queues.notices) :]
    bare = replace(bare, queues=queues, notices=(*bare.notices, *settled))
    equal, servers_ms = bare.rows.equal, past.servers_ms({})
    accepted = {bare.scope.since.of(table) for table in (None, *past.families)}
    baselines = [moment for moment in accepted if moment is not None]
    word = past.word_on_servers(bare.master, bare.scope.forgotten)
    gone_ms = past.servers_ms(created)
    origins = judge_origins(ours["server"], bare.master, gone_ms, queues.drained, queues.left, baselines, word)
    settings = judge_settings(ours["server"], theirs["server"], servers_ms, queues.codec, word)
    # The peers in ZooKeeper are not in force then: nobody knows to whom the slave passes on the writes of its clients.
    is_elsewhere = any(peers_elsewhere(theirs["server"]))
    peers = [] if is_elsewhere else [parse_peer(row.get("detail")) for row in theirs["peer"]]
    read_ms = read_by_ms(ours["server"], bare.master.barrier_issued_ms)
    question = _question(bare, theirs, peers, past, read_ms, drops_loads=settings.drops_loads)
    judged = judge_tables(ours["table"], theirs["table"], ages, question)
    tables = tuple(proven(table) if table.table in equal else table for table in judged)
    found = (
        *_origin_findings(origins),
        *(
            Finding("slave-server", note=doubt)
            for doubt in slave_doubts(theirs["server"], servers_ms, bare.master, word)
        ),
        *_run_findings(bare),
        *settings.findings,
        *_table_gaps(ours["table"], theirs["table"]),
        *_scope_findings(bare.filters, tables, queues.left_out),
    )
    compared = {table.table for table in tables if table.replicated}
    # The empty set is a part of every set, and rows of no table settle nothing.
    is_settled = bool(compared) and compared <= equal
    by_rows = {name for name, code in CODES.items() if code.is_about_rows}
    # Nobody knows which tables a peer ships that nobody has read: only the rows of all of them tell.
    if any(in_scope(table, bare.filters) for table in (*queues.withheld, *queues.unshipped)):
        by_rows.discard("peers-elsewhere")
    certain = tuple(one for one in found if not (is_settled and one.code in by_rows))
    return replace(
        bare,
        rule=replace(bare.rule, unrecorded=frozenset(table.table for table in judged if table.is_unrecorded)),
        origins=origins,
        tables=tables,
        run_findings=(*certain, *bare.rows.findings),
        kept=frozenset(past.kept(BY_ROWS)),
        accepted=past.accepted,
        word=past.word,
        unaffected=_unaffected(past, ages, bare.master),
        is_settled_by_rows=len(certain) < len(found),
        # Without any `table` row nobody knows them: an empty set would say that the slave has none of them.
        slave_tables=frozenset(row["table"] for row in theirs["table"] if row.get("table")) or None,
        settled_tables=frozenset(
            one.table for one, other in zip(judged, tables, strict=True) if one.findings != other.findings
        ),
        notices=(
            *bare.notices,
            *settings.notices,
            *_table_notices(tables, replace(bare.scope, since=past.word), bool(theirs["table"]), settings),
            *bare.rows.notices,
        ),
    )


def _question(
    bare: RunContext,
    theirs: _Rows,
    peers: Sequence[PeerFacts],
    past: _Past,
    read_ms: int | None,
    *,
    drops_loads: bool,
) -> TableQuestion:
    return TableQuestion(
        master=bare.master,
        in_scope=bare.in_scope,
        read_by_ms=read_ms,
        since=bare.scope.since,
        loads_from_ms=None if drops_loads else bare.queues.loads_from_ms,
        withheld=bare.queues.withheld,
        unwitnessed=bare.queues.witness.withheld if bare.queues.witness else {},
        accepted_drift=bare.scope.accepted_drift,
        changed=newest_changes(theirs["fact"]),
        unattended=unattended(theirs["fact"]),
        slave_id=bare.slave.cluster_id,
        slave_back_ms=bare.slave.state_back_ms,
        slave_coverage_ms=_interrupted_ms(bare.slave),
        accepted=past.word,
        kept=past.recorded,
        forgotten=bare.scope.forgotten,
        slave_peers=peers,
        slave_again=repeated_times(theirs["server"]),
    )


def _interrupted_ms(slave: Header) -> int | None:
    """Return until when a server of the slave ran without the tracker; None: never since its state table was made.

    A table that went back has the moment for both, and a finding of its own.
    """
    is_whole = slave.coverage_ms in (slave.state_since_ms, slave.state_back_ms)
    return None if is_whole else slave.coverage_ms


def _run_findings(context: RunContext) -> Iterator[Finding]:
    """Yield what the queues, the peer and the kind of FILE say against the run as a whole."""
    yield from (Finding("origin", note=stray) for stray in context.queues.strays)
    found = unwitnessed(context.master, context.queues.witness) if context.master.is_witnessed else ()
    yield from (Finding("witnessed", note=why) for why in found)
    if context.queues.own_shipping:
        yield Finding("own-code", note=f"the peer has {context.queues.own_shipping}")


def _unaffected(past: _Past, ages: Iterable[TableAge], master: Header) -> frozenset[str]:
    """Return tables that were created after what is accepted, or whose rows were proven up to then or later.

    A word for all of FILE accepts of them, too, what FILE stamps later.
    """
    kept, found = past.kept(BY_ROWS), set()
    for age in ages:
        accepted_ms = past.accepted.of(age.table)
        is_proven = age.table in kept and not is_later(accepted_ms, kept[age.table].until_ms)
        is_later_made = accepted_ms is not None and age.is_younger_than(accepted_ms)
        is_whole = covers_file(past.word.of(age.table), master)
        if accepted_ms is not None and (is_later_made or is_proven) and not is_whole:
            found.add(age.table)
    return frozenset(found)


def _families(
    master_tables: Iterable[Row], chosen: TableFilter, queues: QueueFacts
) -> dict[str, tuple[str, ...] | None]:
    """Return by table in scope the families that the peer ships, None if its descriptor cannot be read."""
    known: dict[str, tuple[str, ...] | None] = {}
    for row in master_tables:
        name = row.get("table")
        if name is not None and chosen.holds(name) and queues.families.ships(name, None):
            known[name] = families_in_scope(row.get("detail"), queues.withheld.get(name, ()))
    # A table of unknown families stays: no proof covers it, so that proofs of all others accept no server.
    return {name: ours for name, ours in known.items() if ours != ()}


def _table_notices(
    tables: tuple[TableFacts, ...], scope: Scope, slave_is_known: bool, settings: ServerSettings
) -> Iterator[str]:
    for table in tables:
        yield from table.notices
    yield from _beside(tables, settings.keeps_tags)
    compared = {table.table for table in tables if table.replicated}
    if scope.offline and any(table.accepts for table in tables):
        yield (
            "the word (--since) covers what has happened to the slave's tables until FILE2 was written; it is recorded"
            " only by a check on the slave, without --slave-status"
        )
    for name in sorted(scope.accepted_drift - compared):
        yield f"table {name}: nothing to accept (--accept-drift): it is not in scope for this slave"
    for name in sorted(scope.since.by_table.keys() - compared):
        yield (
            f"table {name} (--since): no such table is replicated to this slave; only what was left of a table that has"
            " been dropped was accepted"
        )
    unknown = [table.table for table in tables if table.replicated and not table.is_compared]
    if unknown and slave_is_known:
        yield (
            f"VERSIONS, TTL and similar settings of {counted(len(unknown), 'table')} were not compared: a side's"
            " descriptors are of an earlier tracker or missing"
            f" ({', '.join(unknown[:3])}{', …' if len(unknown) > 3 else ''})"
        )


def _strangers(master: Header, unstamped: list[Row]) -> list[str]:
    """Return what is left out of the entries without a valid stamp. Of these rows only `via_ids` counts."""
    strange = {row.get("via_ids") for row in unstamped if not came_through(row.get("via_ids"), master.cluster_id)}
    clusters = {name for ids in strange for name in cluster_names(ids)}
    if not clusters:
        return []
    named = sorted(clusters)
    return [
        "entries without a valid stamp were left out that came from another cluster than the master:"
        f" {few(named, MAX_NAMES)}"
    ]


def _beside(tables: tuple[TableFacts, ...], keeps_tags: bool) -> Iterator[str]:
    """Yield what trackers observed but no stream records, newest first."""
    written = [(table.written_ms, table) for table in tables if table.written_ms is not None]
    if written:
        named = few([_written(*one) for one in sorted(written, key=lambda w: (-w[0], w[1].table))], MAX_NAMES)
        yield (
            f"written to on the slave by others than this master: {named}. No stream records what they changed there;"
            " --rows=all or VerifyReplication compares it"
        )
    observed = [f"{table.table} ({', '.join(table.observers)})" for table in tables if table.observers]
    if observed:
        yield (
            f"tables with coprocessors of their own: {few(observed, MAX_NAMES)}. On the slave they intercept what"
            " replication writes, and may drop or change it without a trace in the streams"
        )
    tagged = [(table.tagged_ms, table.table) for table in tables if table.tagged_ms is not None]
    if tagged and not keeps_tags:
        named = few(
            [f"{name} (last {iso(moment)})" for moment, name in sorted(tagged, key=lambda t: (-t[0], t[1]))], MAX_NAMES
        )
        yield (
            f"cells with tags (a TTL, ACL or visibility label of their own) were written on the master: {named}."
            " Replication leaves tags out unless hbase.replication.rpc.codec keeps them on both sides"
            " (KeyValueCodecWithTags, which is HBase's default), and labels need VisibilityController on both, and"
            " VisibilityReplication on the master, or they may be other ones on the slave; not every server reported it"
        )


def _written(moment_ms: int, table: TableFacts) -> str:
    deletes = "" if table.deleted_ms is None else f", deletes among them, last {iso(table.deleted_ms)}"
    ways = [f"through {' and '.join(ids.split(','))}" if ids else "by its own clients" for ids in table.writers]
    came = f"; {few(ways, MAX_NAMES)}" if ways else ""
    return f"{table.table} (last {iso(moment_ms)}{deletes}{came})"


def _by_kind(rows: Iterable[Row]) -> _Rows:
    kinds = defaultdict[str, list[Row]](list)
    for row in rows:
        kinds[row["kind"]].append(row)
    return kinds


def _holds(half: str, *headers: Header) -> bool:
    return all(header.half in ("both", half) for header in headers)


def _origin_findings(origins: tuple[Origin, ...]) -> list[Finding]:
    if not origins:
        return [Finding("no-tracker")]
    return [
        Finding("origin", origin=origin.id, note=f"{origin.name} {origin.reason}")
        for origin in origins
        if origin.reason
    ]


def _table_gaps(ours: list[Row], theirs: list[Row]) -> list[Finding]:
    found = [] if ours else [Finding("not-described", note="of any table")]
    return found if theirs else [*found, Finding("slave-tables-unknown")]


def _scope_findings(
    filters: tuple[TableFilter, ...], tables: tuple[TableFacts, ...], left_out: Collection[str]
) -> list[Finding]:
    """Return findings for a table in scope that a side's file does not hold, or that is not replicated.

    FILE may be for several slaves: `left_out` are tables that the peer to this one leaves out, which is told anyway.
    """
    user, master, slave = filters
    # Without --table FILE's own filter is the question, and FILE2 has to hold as much.
    wanted = master if user.everything else user
    replicated = {table.table for table in tables if table.replicated} | set(left_out if user.everything else ())
    spaces = {namespace_of(table) for table in replicated}
    found = [] if master.covers(wanted) else [Finding("not-recorded", note=f"master|{master}")]
    if not slave.covers(wanted):
        found.append(Finding("not-recorded", note=f"slave|{slave}"))
    found += [Finding("not-replicated", table=table) for table in sorted(wanted.tables - replicated)]
    return found + [Finding("not-replicated", note=space) for space in sorted(wanted.namespaces - spaces)]


def _half_notices(master: Header, slave: Header, scope: Scope) -> list[str]:
    wanted = [("hbase", scope.check_hbase), ("hdfs", scope.check_hdfs)]
    return [
        f"{HALF_NAMES[half]} was not checked: the {header.side}'s status holds only {HALF_NAMES[header.half]}"
        for half, asked in wanted
        for header in (master, slave)
        if asked and not _holds(half, header)
    ]


def _side_notices(context: RunContext) -> list[str]:
    sides = (context.master, context.slave)
    unknown = identity_notice(*sides) if context.check_hdfs else None
    return [notice for notice in (unknown, older_notice(*sides, context.scope)) if notice is not None]


def _notices(context: RunContext) -> list[str]:
    since, notices = context.scope.since, []
    if since.everything_ms is not None:
        notices.append(f"whatever was written up to {iso(since.everything_ms)} (--since) was accepted as a baseline")
    for table, time_ms in sorted(since.by_table.items()):
        notices.append(f"table {table}: what was written up to {iso(time_ms)} (--since) was accepted as a baseline")
    if context.evidence is Evidence.TIMESTAMPS and not context.filters[0].everything:
        notices.append("the master's file does not name tables: --table and --namespace had no effect")
    return notices
