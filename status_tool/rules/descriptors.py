"""Two clusters' descriptors of one table: does the slave keep what replication applies there?

Replication carries cells, never a table's own settings: cells that the slave is configured to keep for less time or in
fewer versions go away there, although they were applied. The trackers of both clusters record their descriptors
(docs/formats.md, `t` rows).
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from status_tool.vocabulary.details import is_flag, is_number, is_text, list_of

TTL_FOREVER = 2**31 - 1
"""HBase's TTL, in seconds, for cells that never expire."""
_KEPT_DELETES = ("FALSE", "TTL", "TRUE")
_TIES = "a delete and a put of one timestamp that replication applies in one batch count as deleted on the slave"
_MARKERS = "markers of deletes that the master has compacted away stay on the slave, and hide what comes later"
_LOSSY = ("SKIP_WAL", "ASYNC_WAL")
_DURABLE, _MOB = 5, 6
"""Places in what a family keeps."""


@dataclass(frozen=True, slots=True)
class Compared:
    """Differences of a slave's table from the master's."""

    less: tuple[str, ...] = ()
    """Settings by which it keeps less, each in words with both values."""
    other: tuple[str, ...] = ()
    """Differences that lose nothing by themselves."""
    known: bool = True
    """True if both sides recorded more than the replication scope."""


def time_to_live(ttl: int) -> int:
    """Return a TTL in seconds, FOREVER for -1: HBase takes both for that (`HStore.determineTTLFromFamily`).

    It lets -1 in where `hbase.table.sanity.checks` is off.
    """
    return TTL_FOREVER if ttl == -1 else ttl


@dataclass(frozen=True, slots=True)
class _Setting:
    key: str
    name: str
    is_valid: Callable[[Any], bool]
    rank: Callable[[Any], int]
    """The lower the value, the less is kept."""

    def of(self, family: Any) -> Any:
        """Its value in a family's descriptor; None if it is not recorded."""
        value: Any = family.get(self.key) if isinstance(family, dict) else None
        if not self.is_valid(value):
            return None
        return time_to_live(value) if self.key == "ttl" else value

    def shown(self, value: Any) -> str:
        return "FOREVER" if self.key == "ttl" and value >= TTL_FOREVER else str(value)


_TTL = _Setting("ttl", "TTL", is_number, int)
_SETTINGS = (
    _Setting("versions", "VERSIONS", is_number, int),
    _Setting("min_versions", "MIN_VERSIONS", is_number, int),
    _TTL,
    _Setting("keep_deleted", "KEEP_DELETED_CELLS", lambda value: value in _KEPT_DELETES, _KEPT_DELETES.index),
    _Setting("new_version_behavior", "NEW_VERSION_BEHAVIOR", is_flag, int),
    _Setting("mob", "IS_MOB", is_flag, int),
)


def compare_descriptors(master: Mapping[str, Any], slave: Mapping[str, Any], families: Iterable[str]) -> Compared:
    """Compare two descriptors for the families in scope; what one side does not record is not compared."""
    ours, theirs = _families(master), _families(slave)
    # A family that a side lacks has a finding of its own (`family-absent`).
    common = [family for family in families if family in ours and family in theirs]
    less = [text for family in common for text in _kept_less(family, ours[family], theirs[family])]
    other = [text for family in common for text in _different(family, ours[family], theirs[family])]
    less += [f"NEW_VERSION_BEHAVIOR of family {f}: {_TIES}" for f in common if _counts_ties(ours[f], theirs[f])]
    durability = slave.get("durability")
    if durability in _LOSSY:
        less.append(f"durability {durability} on the slave, where a crash may lose applied cells")
    classes = [one.get("coprocessors") for one in (master, slave)]
    if all(list_of(is_text)(names) for names in classes) and (classes[0] != classes[1]):
        other.append(f"coprocessors {_names(classes[1])} on the slave, {_names(classes[0])} on the master")
    return Compared(
        tuple(less), tuple(other), isinstance(slave.get("families"), dict) and _is_recorded(common, ours, theirs)
    )


def keeps_more(before: Sequence[int], after: Sequence[int]) -> bool:
    """Return True if a family kept less before, so that cells may be gone that it would keep now.

    Or so that HBase shows references to MOB files in place of values: nothing but a MOB family resolves them. Both are
    numbers, as the trackers' `Retention` has them.
    """
    earlier, later = (
        {
            "versions": versions,
            "min_versions": least,
            "ttl": ttl,
            "keep_deleted": _KEPT_DELETES[deleted],
            # `is_flag` takes nothing but a bool, and tenures have a number.
            "new_version_behavior": bool(ties),
        }
        for versions, least, ttl, deleted, ties, *_ in (before, after)
    )
    was_durable, is_durable = before[_DURABLE], after[_DURABLE]
    was_mob, is_mob = (any(kept[_MOB:]) for kept in (before, after))
    # `_DURABLE` is 0 where a crash may have lost cells. Earlier trackers did not record `_MOB`.
    shows_references = was_mob and not is_mob and len(after) > _MOB
    return was_durable < is_durable or shows_references or next(_kept_less("", later, earlier), None) is not None


def as_if_durable(kept: Sequence[int]) -> Sequence[int]:
    """Return what a family keeps where no crash loses cells: durability hides none that come later."""
    return (*kept[:_DURABLE], 1, *kept[_MOB:])


def retention_of(descriptor: Mapping[str, Any]) -> dict[str, Sequence[int]]:
    """Return what a table keeps, by family, as the trackers' `Retention` has it.

    Families of which not all is recorded are left out.
    """
    is_durable = int(descriptor.get("durability") not in _LOSSY)
    found: dict[str, Sequence[int]] = {}
    for name, family in sorted(_families(descriptor).items()):
        values = [setting.of(family) for setting in _SETTINGS if setting.key != "mob"]
        if None not in values:
            # `mob` is the last of `_SETTINGS`, so the values without it keep their places.
            ranks = (setting.rank(value) for setting, value in zip(_SETTINGS, values, strict=False))
            found[name] = (*ranks, is_durable, int(_SETTINGS[-1].of(family) is True))
    return found


def is_retention(value: Any) -> bool:
    """Return True for numbers that `keeps_more` can compare: seven, or the first six, as earlier trackers have them."""
    return list_of(is_number)(value) and len(value) in (_MOB, _MOB + 1) and 0 <= value[3] < len(_KEPT_DELETES)


def _counts_ties(ours: Any, theirs: Any) -> bool:
    """Return True if both sides have NEW_VERSION_BEHAVIOR (one alone is a difference).

    `NewVersionBehaviorTracker.isDeleted` goes by sequence ids, and those of one batch have the same.
    """
    return all(isinstance(family, dict) and family.get("new_version_behavior") is True for family in (ours, theirs))


def _is_recorded(families: Iterable[str], *sides: Mapping[str, Any]) -> bool:
    """Return True if every side records more of each family than its scope."""
    return all(_SETTINGS[0].of(side[family]) is not None for family in families for side in sides)


def _families(descriptor: Mapping[str, Any]) -> Mapping[str, Any]:
    families = descriptor.get("families")
    return families if isinstance(families, dict) else {}


def _kept_less(family: str, ours: Any, theirs: Any) -> Iterator[str]:
    for setting, master, slave in _known(ours, theirs):
        if _is_less(setting, master, slave, theirs):
            has_markers = setting.key == "keep_deleted" and setting.rank(slave) > setting.rank(master)
            yield _both(family, setting, master, slave) + (f": {_MARKERS}" if has_markers else "")


def _different(family: str, ours: Any, theirs: Any) -> Iterator[str]:
    for setting, master, slave in _known(ours, theirs):
        if master != slave and not _is_less(setting, master, slave, theirs):
            yield _both(family, setting, master, slave)


def _known(ours: Any, theirs: Any) -> Iterator[tuple[_Setting, Any, Any]]:
    for setting in _SETTINGS:
        master, slave = setting.of(ours), setting.of(theirs)
        if master is not None and slave is not None:
            yield setting, master, slave


def _is_less(setting: _Setting, master: Any, slave: Any, theirs: Any) -> bool:
    """Return True if a difference takes cells away on the slave. MIN_VERSIONS counts only where cells expire at all."""
    # IS_MOB decides where a large value is stored, and not whether it is. A family that no longer has it is another
    # matter (`keeps_more`).
    if setting.key == "mob":
        return False
    if setting.key in ("new_version_behavior", "keep_deleted"):
        # Any difference may show. The first decides which puts a delete hides (`NewVersionBehaviorTracker`), the second
        # for how long: compactions keep the markers as well (`DropDeletesCompactionScanQueryMatcher`).
        return bool(master != slave)
    ttl = _TTL.of(theirs)
    never_expires = ttl is not None and ttl >= TTL_FOREVER
    return setting.rank(slave) < setting.rank(master) and not (setting.key == "min_versions" and never_expires)


def _both(family: str, setting: _Setting, master: Any, slave: Any) -> str:
    values = f"{setting.shown(slave)} on the slave, {setting.shown(master)} on the master"
    return f"{setting.name} of family {family} is {values}"


def _names(classes: Any) -> str:
    return ", ".join(classes) or "none"
