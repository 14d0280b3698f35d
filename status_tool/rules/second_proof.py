"""A witness beside trackers: a second proof of each region, and contradictions between the two."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator, Mapping
from dataclasses import dataclass, field, replace

from status_tool.rules.segments import Hole, Segment, is_later, latest
from status_tool.rules.server_settings import lacking_all_entries
from status_tool.rules.streams import Head, StreamRule, StreamVerdict, head_of, judge_stream, missing_from_ms
from status_tool.rules.witnessed import WitnessFacts, unwitnessed
from status_tool.vocabulary.header import SKEW_MS, Header
from status_tool.vocabulary.ids import origin_id
from status_tool.vocabulary.schema import Row
from status_tool.vocabulary.state_rows import WRITER
from status_tool.vocabulary.verdicts import INCOMPLETE_REGIONS

_Stream = tuple[int | None, int]
_Judged = tuple[Head, StreamVerdict]


@dataclass(frozen=True, slots=True)
class SecondProof:
    """The witness that FILE has beside the master's trackers."""

    origin: int
    """Of all its streams: these are of any server of the master."""
    reason: str | None = None
    """Why it cannot be asked; None: it is."""
    recorded_ms: int | None = None
    """Entries written until then may have been applied without a record of each one; None: none was."""
    all_since_ms: int | None = None
    """Whatever was written later by the barrier, the witness was sent; None: that is not known."""
    barrier_ms: int = 0
    withheld: Mapping[str, Collection[str]] = field(default_factory=dict)
    """By table, families that the witness is not sent."""


def second_proof(master: Header, facts: WitnessFacts | None, slave_servers: Iterable[Row]) -> SecondProof | None:
    """Return what the witness of a FILE from trackers proves; None if FILE has none."""
    if not master.witnesses or master.is_witnessed:
        return None
    live, until_ms = lacking_all_entries(row for row in slave_servers if row.get("role") != WRITER)
    doubts = [*unwitnessed(master, facts)]
    return SecondProof(
        origin_id(master.cluster_id),
        f"the slave's trackers do not record each entry by itself ({live})" if live else None,
        # A clock of the slave gives this end, the origin's clock the write times that it is compared with.
        None if until_ms is None else until_ms + SKEW_MS,
        None if doubts or facts is None else facts.since_ms,
        master.barrier_issued_ms or 0,
        {} if facts is None else facts.withheld,
    )


def second_notices(second: SecondProof | None) -> Iterator[str]:
    """Yield the notice that a witness was asked beside the trackers, or why not."""
    if second is None:
        return
    if second.reason:
        yield f"the trackers alone were asked, not the witness that FILE has beside them: {second.reason}"
    else:
        yield "a witness was asked beside the trackers: what it was sent is compared with the streams of each region"


def contradictions(
    region: str,
    streams: Iterable[_Judged],
    witnessed: Mapping[_Stream, list[Row]],
    segments: Mapping[_Stream, list[Segment]],
    rule: StreamRule,
    second: SecondProof,
) -> Iterator[str]:
    """Yield in words what the trackers and the witness cannot both be right about.

    They are compared up to an entry that both know: what one of them has beyond was read at another moment. Where the
    trackers find something missing or doubtful, that stands as well.
    """
    ours, theirs = _by_family(streams), _by_family_of_rows(witnessed)
    rule = replace(rule, since=replace(rule.since, everything_ms=latest(rule.since.everything_ms, second.recorded_ms)))
    for family, judged in sorted(ours.items()):
        others = theirs.get(family, {})
        # The trackers have a stream for each server, the witness one for all of them: only the highest ids compare.
        newest = max((head for head, _ in judged), key=lambda head: head.seq or 0)
        sent = max((row["seq"] or 0 for rows in others.values() for row in rows), default=0)
        both = min(newest.seq or 0, sent)
        found = [
            _judged(head_of(region, *key, rows), segments.get(key, ()), both, rule) for key, rows in others.items()
        ]
        if all(verdict.code == "covered" for _, verdict in judged):
            yield from (_lacks(family, both, hole) for one in found if (hole := _certain_hole(*one, both)))
            if _was_not_sent(newest, sent, family, rule, second):
                yield (
                    f"family {family}: by the trackers entry {newest.seq} was written, and has arrived; the witness was"
                    f" sent none after {sent}"
                )
        elif found and all(verdict.code == "covered" for _, verdict in found):
            yield from (words for one in judged if (words := _excess(family, both, *one, second)))


def _judged(head: Head, segments: Iterable[Segment], both: int, rule: StreamRule) -> _Judged:
    """Judge a witness's stream as far as both know it; the head stays what it is."""
    # Only entries that both know are in question: the origin counts as settled, and there is no cut.
    return head, judge_stream(replace(head, seq=min(head.seq or 0, both)), segments, rule, True, None)


def _certain_hole(head: Head, verdict: StreamVerdict, both: int) -> Hole | None:
    """Return what the slave lacks of a witness's stream, if an entry up to `both` is among it."""
    if verdict.status not in INCOMPLETE_REGIONS or verdict.hole is None:
        return None
    # The last entry up to `both` is not known of a stream that goes on beyond.
    is_known = (head.seq or 0) <= both or (verdict.code in ("gap", "may-fill") and verdict.hole.to_seq <= both)
    return verdict.hole if is_known else None


def _lacks(family: str, both: int, hole: Hole) -> str:
    return (
        f"family {family}: by the trackers all entries up to sequence id {both} have arrived; of those that the witness"
        f" was sent, the slave has no record of any after {hole.from_seq} up to {hole.to_seq}"
    )


def _excess(family: str, both: int, head: Head, verdict: StreamVerdict, second: SecondProof) -> str | None:
    """Return a loss that the trackers find among entries of which the witness, which was sent all, finds none lost."""
    hole = verdict.hole
    if verdict.code not in ("gap", "missing") or hole is None or hole.to_seq > both or second.all_since_ms is None:
        return None
    from_ms = missing_from_ms(head, hole)
    # Of an unknown time it may be older than the witness.
    if from_ms is None or from_ms <= max(second.all_since_ms, second.recorded_ms or 0):
        return None
    return (
        f"family {family}: by the trackers entries after sequence id {hole.from_seq} up to {hole.to_seq} have not"
        f" arrived; of those that the witness was sent up to {both}, the slave has recorded each"
    )


def _was_not_sent(newest: Head, sent: int, family: str, rule: StreamRule, second: SecondProof) -> bool:
    """Return True if the witness lacks an entry that it must have been sent by the barrier."""
    if second.all_since_ms is None or newest.write_ms is None or (newest.seq or 0) <= sent:
        return False
    is_asked = is_later(newest.write_ms, latest(second.all_since_ms, rule.since.of(newest.table)))
    is_sent = family not in second.withheld.get(newest.table or "", ())
    # The origin's clock gives the write time, the tool's clock the barrier.
    return is_asked and is_sent and newest.write_ms <= second.barrier_ms - SKEW_MS


def _by_family(streams: Iterable[_Judged]) -> dict[str, list[_Judged]]:
    """Return the streams by family; several families that share one are left out."""
    found: dict[str, list[_Judged]] = {}
    for head, verdict in streams:
        if head.family:
            found.setdefault(head.family, []).append((head, verdict))
    return found


def _by_family_of_rows(witnessed: Mapping[_Stream, list[Row]]) -> dict[str, dict[_Stream, list[Row]]]:
    found: dict[str, dict[_Stream, list[Row]]] = {}
    for key, rows in witnessed.items():
        found.setdefault(str(rows[0].get("family")), {})[key] = rows
    return found
