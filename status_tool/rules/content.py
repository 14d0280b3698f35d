"""Content ledger of a region: whether it always opened with the store files that it was closed with.

A tenure is a region's time from one opening to a later close, with its store files at both ends (docs/formats.md, `f`).
Tenures are facts: they come in any order, late, or twice.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import pairwise

from status_tool.rules.descriptors import as_if_durable, is_retention, keeps_more
from status_tool.rules.segments import latest
from status_tool.vocabulary.details import fits, is_number, list_of, map_of, object_in, optional
from status_tool.vocabulary.header import SKEW_MS


@dataclass(frozen=True, slots=True)
class Files:
    """The store files of a family: their number, the sum of their names' hashes, and how many are links."""

    count: int
    sum: int
    links: int
    loaded: int
    """The sum of the hashes of those that were bulk loaded."""

    def same(self, other: Files) -> bool:
        """Return True if it is the same set."""
        return (self.count, self.sum) == (other.count, other.sum)


NONE = Files(0, 0, 0, 0)


@dataclass(frozen=True, slots=True)
class Tenure:
    """Times are epoch ms of the clock of the region's server."""

    open: int
    """Sequence id of the opening."""
    began_ms: int
    seq: int
    """Sequence id of the last marker."""
    before: Mapping[str, Files]
    """By family, at the opening."""
    after: Mapping[str, Files]
    """At the close; if not closed, at the last flush."""
    closed_ms: int | None = None
    """None: the region is open, or was until its server crashed."""
    durable: int = 0
    """The highest sequence id known to be in a store file or, on a slave, durable in the WAL."""
    elsewhere_ms: int | None = None
    """When it opened with links that no split or merge explains."""
    replicated: tuple[str, ...] = ()
    """Families with the replication scope 1."""
    unseen_ms: int | None = None
    """When it opened although nobody is known to have had it before: neither new nor of a split or merge."""
    again_ms: int | None = None
    """When it opened although it had been split or merged before."""
    kept: Mapping[str, Sequence[int]] | None = None
    """By family, what its table keeps (`descriptors.keeps_more`); None: not known."""
    origin: int = 0
    """The server that had it."""

    @property
    def holds_replicated(self) -> bool:
        """Return True if a replicated family has a store file."""
        return any(self.after.get(family, NONE).count for family in self.replicated)

    @property
    def hides(self) -> dict[str, Sequence[int]]:
        """Return how much its table keeps, without what hides no later cell: unshipped families, and durability."""
        kept = self.kept or {}
        return {family: as_if_durable(kept[family]) for family in kept.keys() & self.replicated}

    def may_hold(self, families: Iterable[str]) -> bool:
        """Return True unless nothing was written to it, then or before.

        HBase numbers the markers of the opening and of the close as well. Files at the opening are older: of before the
        trackers, or of the parent that a region was split from.
        """
        has_files = any(self.before.get(family, NONE).count for family in families)
        return has_files or self.closed_ms is None or self.seq > self.open + 2

    @property
    def until_ms(self) -> int:
        """Time when it is last known to have had its files."""
        return self.began_ms if self.closed_ms is None else self.closed_ms


@dataclass(frozen=True, slots=True)
class Tail:
    """Entries that a crashed server had written to a region since its last marker, by what was replayed."""

    origin: int
    last: int
    """The highest sequence id."""
    found_ms: int
    """When the next server opened the region."""


@dataclass(frozen=True, slots=True)
class Life:
    """Facts that the tenures of a region show together."""

    changed_ms: int | None = None
    """When it last opened with other files than before, with some whose origin nobody saw, after it had been split or
    merged, or, on a slave, with a table that keeps more than before; None: never.
    """
    loaded_ms: int | None = None
    """When it last opened, after a crash, with bulk-loaded files that had not been recorded; None: never."""
    last: Tenure | None = None
    tails: tuple[Tail, ...] = ()
    """A master's, of regions all of whose families are replicated."""
    dropped: frozenset[str] = frozenset()
    """A master's: families that it had before its last tenure. They may be back in what it was split or merged into."""


def life_of(tenures: Iterable[Tenure], *, replicated_only: bool, is_seen: bool) -> Life:
    """Judge a region's tenures. `replicated_only`, for a master, ignores families that are not replicated.

    `is_seen`: the first tenure must have begun where a tracker saw it, as on a slave. On a master that holds for a
    region that was created when all servers were tracked, if it began with files; of others coverage tells.
    """
    ordered = _in_order(tenures)
    if not ordered:
        return Life()
    first = ordered[0]
    counts = is_seen and (not replicated_only or any(files.count for files in first.before.values()))
    beginnings = (first.elsewhere_ms, first.unseen_ms if counts else None)
    returns = (tenure.again_ms for tenure in ordered)
    changed = [moment for moment in (*beginnings, *returns) if moment is not None]
    loaded, tails = list[int](), list[Tail]()
    for earlier, later in pairwise(ordered):
        # Two servers' clocks may differ: a word that accepts the change has to cover both times.
        moment = max(earlier.began_ms, later.began_ms)
        if replicated_only and (last := _tail(earlier, later)) is not None:
            tails.append(Tail(earlier.origin, last, moment))
        families = {*earlier.replicated, *later.replicated} if replicated_only else None
        if not _follows(earlier, later, families) or (replicated_only and _has_unshipped(earlier, later)):
            changed.append(moment)
        # Only a crash hides a load: after a close the files are those that were recorded, loaded ones among them.
        elif earlier.closed_ms is None and _has_others_loaded(earlier, later, families):
            loaded.append(moment)
    changed += _raised(ordered, replicated_only=replicated_only)
    if replicated_only:
        changed += _returned(ordered)
    if (restarted_ms := _began_anew(ordered)) is not None:
        changed.append(restarted_ms)
    # Ids may have begun anew (`_began_anew`), and the highest ones are then of an older tenure: clocks tell the newest.
    newest = max(ordered, key=lambda tenure: (tenure.began_ms, tenure.seq))
    had = {family for tenure in ordered for family in (*tenure.before, *tenure.after)} if replicated_only else set()
    dropped = frozenset(had - {*newest.before, *newest.after})
    return Life(latest(*changed), latest(*loaded), newest, tuple(tails), dropped)


def _in_order(tenures: Iterable[Tenure]) -> list[Tenure]:
    """Sort the tenures by sequence ids. Keeps the longest of those with the same start, which includes the others.

    Two tenures open with the same id where the first one's server crashed before any write: it has fewer markers.
    """
    longest: dict[tuple[int, int], Tenure] = {}
    for tenure in tenures:
        known = longest.get((tenure.open, tenure.began_ms))
        if known is None or (known.seq, known.closed_ms or 0) < (tenure.seq, tenure.closed_ms or 0):
            longest[tenure.open, tenure.began_ms] = tenure
    # HBase raises the sequence ids of a region from one server to the next. The servers' clocks may show the reverse.
    return sorted(longest.values(), key=lambda tenure: (tenure.open, tenure.seq, tenure.began_ms))


def _follows(earlier: Tenure, later: Tenure, families: set[str] | None) -> bool:
    """Return True if the later tenure may have opened with what the earlier one had left.

    After a clean close the sets are the same, whatever was opened and closed in between without having been recorded.
    On a slave the families are part of it: one that is gone took its cells along, also where it is there again later.
    (What a master drops does not make anything incomplete that has arrived; `_returned` has what it adds again.)
    After a crash the edits that were replayed have been flushed without a marker, and the last markers may not have
    been recorded: then no link may have come, and no sequence id be used again that was durable. HBase opens a region
    above all that it has replayed, so lower ids show that store files were replaced or, on a slave, WALs lost.
    """
    # Clocks do not differ by that much: the tenure with the lower ids is the newer one, whose ids began anew.
    if later.began_ms < earlier.began_ms - SKEW_MS:
        return False
    if families is None and earlier.after.keys() - later.before.keys():
        return False
    if earlier.closed_ms is None:
        return later.open > earlier.durable and not _has_more_links(earlier, later, families)
    if later.open <= earlier.seq:
        return False
    return all(
        earlier.after.get(family, NONE).same(files)
        for family, files in later.before.items()
        if families is None or family in families
    )


def _tail(earlier: Tenure, later: Tenure) -> int | None:
    """Return the highest sequence id that was replayed when a server had crashed, if it had not recorded it.

    HBase opens a region one above that.
    """
    last = later.open - 1
    if earlier.closed_ms is not None or last <= max(earlier.seq, earlier.durable):
        return None
    # Entries of families that are not replicated have sequence ids as well, and no stream has them: nothing is said of
    # a region that has such a family.
    is_mixed = {*earlier.before, *earlier.after, *later.before} - {*earlier.replicated}
    return None if is_mixed else last


def _has_unshipped(earlier: Tenure, later: Tenure) -> bool:
    """Return True if a family that was not replicated before is now, and has files: no stream has what is in them."""
    return any(later.before.get(family, NONE).count for family in {*later.replicated} - {*earlier.replicated})


def _raised(ordered: list[Tenure], *, replicated_only: bool) -> Iterator[int]:
    """Yield when a table began to keep more: what had arrived before may be gone, and its settings tell nothing of it.

    A master that had been written to has forgotten cells that the slave still holds: they hide what it writes with
    older timestamps. A tenure whose settings are not known had those of the one before it, or others: neither is
    excused.
    """
    kept: dict[str, Sequence[int]] = {}
    counts = not replicated_only
    for tenure in ordered:
        now = tenure.hides if replicated_only else tenure.kept or {}
        if counts and any(keeps_more(kept[family], now[family]) for family in kept.keys() & now.keys()):
            yield tenure.began_ms
        kept.update(now)
        counts |= tenure.may_hold(now)


def _returned(ordered: list[Tenure]) -> Iterator[int]:
    """Yield when a family was there again that had been dropped: the slave still has what it held, deletes as well."""
    gone = set[str]()
    for earlier, later in pairwise(ordered):
        gone |= {*earlier.before, *earlier.after} - later.before.keys()
        # A tracker may have joined the tenure without the family and the one in which it came back.
        if back := gone & {*later.replicated} & {*later.before, *later.after}:
            yield later.began_ms
            gone -= back


def _began_anew(ordered: list[Tenure]) -> int | None:
    """Return when a region may have opened with sequence ids that began anew: after it was truncated or restored.

    The tenure with the highest ids is closed then, and the unclosed one below it is the newer one. Clocks cannot tell
    within what they may differ by, so a crash looks the same if the next tenure was closed that soon and none followed.
    """
    *below, last = ordered
    unclosed_ms = max((tenure.began_ms for tenure in below if tenure.closed_ms is None), default=None)
    if unclosed_ms is None or last.closed_ms is None or last.began_ms > unclosed_ms + SKEW_MS:
        return None
    return max(unclosed_ms, last.began_ms)


def _has_more_links(earlier: Tenure, later: Tenure, families: set[str] | None) -> bool:
    return any(had.links < has.links for had, has in _then_and_now(earlier, later, families))


def _has_others_loaded(earlier: Tenure, later: Tenure, families: set[str] | None) -> bool:
    """Return True if bulk-loaded files may be there that were not recorded.

    Fewer are no proof of the opposite: a compaction that was not recorded, either, may have taken others away.
    """
    return any(has.loaded not in (0, had.loaded) for had, has in _then_and_now(earlier, later, families))


def _then_and_now(earlier: Tenure, later: Tenure, families: set[str] | None) -> Iterator[tuple[Files, Files]]:
    for family, files in later.before.items():
        if families is None or family in families:
            yield earlier.after.get(family, NONE), files


def parse_tenure(value: bytes, origin: int = 0) -> Tenure | None:
    """Return a column of an `f` row, of a server; None if it cannot be parsed."""
    document = object_in(value.decode(errors="replace"))
    if document is None or not fits(document, _FIELDS):
        return None
    return Tenure(
        document["o"],
        document["t"],
        document["s"],
        dict(_files(document["a"])),
        dict(_files(document["b"])),
        document.get("c"),
        document.get("m") or 0,
        document.get("x"),
        tuple(document["r"]),
        document.get("u"),
        document.get("y"),
        document.get("k"),
        origin,
    )


def _files(families: Mapping[str, list[int]]) -> Iterator[tuple[str, Files]]:
    return ((family, Files(*numbers)) for family, numbers in families.items())


def _is_files(value: object) -> bool:
    return list_of(is_number)(value) and isinstance(value, list) and len(value) == 4


_FIELDS = {
    **dict.fromkeys("ots", is_number),
    **dict.fromkeys("cmxuy", optional(is_number)),
    **dict.fromkeys("ab", map_of(_is_files)),
    "k": optional(map_of(is_retention)),
    "r": list_of(lambda value: isinstance(value, str)),
}
