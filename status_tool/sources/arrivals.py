"""Arrivals at a witness: the files of its folder, which `io.github.statustool.witness.ArrivalStore` writes."""

from __future__ import annotations

import operator
import re
import struct
import uuid
import zlib
from array import array
from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from itertools import accumulate, islice
from pathlib import Path
from typing import NamedTuple

import pyarrow as pa

from status_tool.errors import ConfigurationError
from status_tool.rules.tables import META_FAMILY
from status_tool.rules.witnessed import SETTLED_MS
from status_tool.sources import codec
from status_tool.sources.crc import crc32c
from status_tool.sources.interface import Source
from status_tool.sources.witness_folders import WitnessStores
from status_tool.vocabulary.header import SKEW_MS
from status_tool.vocabulary.ids import origin_id, via_id
from status_tool.vocabulary.schema import NewRow
from status_tool.vocabulary.scope import TableFilter
from status_tool.vocabulary.state_rows import WRITER
from status_tool.vocabulary.states import FactState
from status_tool.vocabulary.varint import varint

LOCAL_LOAD = f"{META_FAMILY}/local"
"""Name by which a witness keeps markers of loads that their client did not want to be replicated
(`WitnessService.LOCAL_LOAD`)."""


@dataclass(frozen=True, order=True, slots=True)
class Mark:
    """Extent of a folder that its witness has acknowledged, by ZooKeeper: a file's number, and its length then."""

    number: int = 0
    length: int = 0

    @classmethod
    def of(cls, znode: bytes) -> Mark:
        """Parse `HOST:PORT NUMBER LENGTH`. Raises ValueError."""
        _, number, length = znode.decode().split()
        return cls(int(number), int(length))


@dataclass(frozen=True)
class WitnessSource(Source):
    """`stream` and `segment` rows of a master as its witnesses were sent them.

    All entries of a region that passed the same clusters and have cells of a family are one stream, whatever server
    wrote them. A `segment` row, which a master's status has only then, says that no entry is between `prev` and `seq`.
    """

    folders: Mapping[Path, Mark]
    """With what their witnesses had acknowledged when that was last asked."""
    sender: str
    """The master's cluster id: entries that another cluster sent are none of its."""
    only: TableFilter
    stores: WitnessStores | None = None
    """The witnesses; None: nobody has to be told."""
    is_second: bool = False
    """True beside trackers, which know more of the regions."""

    def partitions(self) -> Sequence[int]:
        """One part."""
        return [0]

    def read(self, partition: int) -> Iterator[pa.RecordBatch]:
        """Yield all rows."""
        events = () if self.is_second else self._found.events
        yield from codec.batches((*events, *(row for one in self._found.streams.items() for row in self._rows(*one))))

    def small_rows(self) -> Iterator[NewRow]:
        """The one origin that all streams have."""
        yield {
            "kind": "server",
            "server": f"any of cluster {self.sender}",
            "origin": origin_id(self.sender),
            "role": WRITER,
            "live": True,
            "tracked": True,
            "echoed": True,
        }

    def arrivals(self) -> Iterator[Arrivals]:
        """Yield what each folder holds. Raises `ConfigurationError`."""
        yield from (read_arrivals(folder, mark) for folder, mark in self.folders.items())

    def prune(self, cut_ms: int) -> None:
        """Let the witnesses prune what was read, if they were sent everything that was written by the cut."""
        if self.stores is not None:
            self.stores.prune(cut_ms - SETTLED_MS, self.sender, self.single_lives())

    def single_lives(self) -> list[str]:
        """Return the regions that did not begin again, of those that are read."""
        return self._found.single_lives

    @cached_property
    def _found(self) -> _Found:
        streams: dict[_Stream, Entries] = {}
        regions: dict[tuple[str, str], Entries] = defaultdict(Entries)
        loads: dict[str, dict[tuple[str, str], int]] = {META_FAMILY: {}, LOCAL_LOAD: {}}
        for arrivals in self.arrivals():
            for key, entries in arrivals.items():
                if key.clusters[-1:] != (self.sender,) or not self.only.holds(key.table):
                    continue
                regions[key.table, key.region].extend(entries)
                clusters = tuple(sorted(uuid.UUID(one).bytes for one in key.clusters))
                for family in key.families:
                    if family in loads:
                        newest = max(entries.highs)
                        loaded = loads[family]
                        loaded[key.table, key.region] = max(newest, loaded.get((key.table, key.region), newest))
                    else:
                        streams.setdefault((key.table, key.region, clusters, family), Entries()).extend(entries)
        lives = {key: again_ms for key, entries in regions.items() if (again_ms := began_again(entries)) is not None}
        events = [
            *_events(loads[META_FAMILY], FactState.BULK_LOAD),
            *_events(loads[LOCAL_LOAD], FactState.LOCAL_LOAD),
            *_events(lives, FactState.CHANGED),
        ]
        # Only write times tell the lives of a region apart, and pruning drops them: it leaves out regions that live
        # again.
        single = [region for table, region in regions if (table, region) not in lives]
        return _Found({stream: entries.as_set() for stream, entries in streams.items()}, events, single)

    def _rows(self, stream: _Stream, entries: Entries) -> Iterator[NewRow]:
        table, region, clusters, family = stream
        base = {
            "table": table,
            "region": region,
            "origin": origin_id(self.sender),
            "via": via_id(clusters, family),
            "family": family,
        }
        passed = b"".join(one for one in clusters if one != uuid.UUID(self.sender).bytes)
        yield {
            "kind": "stream",
            **base,
            "via_ids": passed or None,
            "seq": max(entries.lasts),
            "first_ms": entries.lows[0],
            "write_ms": max(entries.highs),
            "entries": entries.count(),
        }
        before, highest = 0, 0
        for first, last, _, high in entries.runs():
            if first > before + 1:
                yield {"kind": "segment", **base, "prev": before, "seq": first, "started_ms": highest}
            before, highest = max(before, last), max(highest, high)


def _events(newest: Mapping[tuple[str, str], int], state: FactState) -> Iterator[NewRow]:
    for (table, region), write_ms in newest.items():
        yield {"kind": "fact", "table": table, "region": region, "state": state, "write_ms": write_ms}


def began_again(entries: Entries) -> int | None:
    """Return the newest write time of entries that a region wrote with sequence ids that it had passed; None: it never
    went back.

    It was truncated, or dropped and cloned, and an entry of its new life may have the sequence id of one of the old.
    A run of several entries was made when nothing of it had gone back: an entry within is one of them if it was
    written within its time, as any later life is later (`SETTLED_MS`).
    """
    found: int | None = None
    highest, reach, reaching = 0, 0, list[_Run]()
    for run in entries.as_set().runs():
        first, last, low, _ = run
        ended, around = reaching, list[_Run]()
        if first <= reach:
            ended = [one for one in reaching if one[1] < first]
            around = [one for one in reaching if one[1] >= first]
        for one in ended:
            highest = max(highest, one[3])
        is_again = bool(around) and first == last and not any(one[2] <= low <= one[3] for one in around)
        reaching = [*around, run]
        reach = max(reach, last)
        # HBase admits a region server whose clock is up to `SKEW_MS` off the HMaster's: two servers of one region may
        # differ by twice that.
        if is_again or highest > low + 2 * SKEW_MS:
            found = max(found or 0, highest, *(one[3] for one in reaching))
    return found


_HEAD = struct.Struct(">ii")
_UUID = struct.Struct("<QQ")
_ATTEMPTS = 10
_LOG, _RUNS = ".log", ".runs"
_MALFORMED = (AssertionError, IndexError, OverflowError, ValueError, struct.error, zlib.error)
"""Raised for a record with the right CRC that no witness has written."""
_KINDS = (_LOG, ".set", _RUNS)
_NAME = re.compile(r"([0-9]+)(?:-([0-9]+))?(?:\.log|\.set|\.runs)")
"""Of a file with arrivals: the number of its first log, and of its last if it has several. A folder may have others."""


@dataclass(frozen=True, slots=True)
class ArrivalKey:
    """Entries of one region that passed the same clusters and have cells of the same families."""

    table: str
    region: str
    clusters: tuple[str, ...]
    """Ids, the entries' origin first and the sender last."""
    families: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class Entries:
    """Runs of entries: sequence ids from one to another, with the lowest and the highest of their write times (epoch
    ms, the origin's clock), in 32 bytes a run. Unless a witness has pruned it, each is a run of its own.
    """

    firsts: array[int] = field(default_factory=lambda: array("q"))
    lasts: array[int] = field(default_factory=lambda: array("q"))
    lows: array[int] = field(default_factory=lambda: array("q"))
    highs: array[int] = field(default_factory=lambda: array("q"))

    @classmethod
    def singly(cls, sequence_ids: array[int], write_times: array[int]) -> Entries:
        """Return entries of which each has its own write time."""
        return cls(sequence_ids, sequence_ids[:], write_times, write_times[:])

    @classmethod
    def of(cls, runs: Iterable[_Run]) -> Entries:
        """Return entries by their runs, as `runs` yields them."""
        found = cls()
        for first, last, low, high in runs:
            found.firsts.append(first)
            found.lasts.append(last)
            found.lows.append(low)
            found.highs.append(high)
        return found

    def extend(self, more: Entries) -> None:
        """Add others, in any order."""
        self.firsts.extend(more.firsts)
        self.lasts.extend(more.lasts)
        self.lows.extend(more.lows)
        self.highs.extend(more.highs)

    def runs(self) -> Iterator[_Run]:
        """Yield first and last sequence id, lowest and highest write time of each run."""
        return zip(self.firsts, self.lasts, self.lows, self.highs, strict=True)

    def count(self) -> int:
        """Return the number of entries of a set."""
        entries = before = 0
        for first, last, _, _ in self.runs():
            entries += max(0, last - max(first - 1, before))
            before = max(before, last)
        return entries

    def as_set(self) -> Entries:
        """The same by sequence id, each run once, the longest first; of one id several only where the region lived
        several times, or where it was sent again.
        """
        firsts = self.firsts
        if all(map(operator.lt, firsts, islice(firsts, 1, None))):
            return self
        return Entries.of(sorted(set(self.runs()), key=lambda run: (run[0], -run[1], run[2], run[3])))


class _Found(NamedTuple):
    """Entries of one sender, as the folders hold them."""

    streams: dict[_Stream, Entries]
    events: list[NewRow]
    """Of regions."""
    single_lives: list[str]
    """Regions that did not begin again."""


Arrivals = dict[ArrivalKey, Entries]
_Run = tuple[int, int, int, int]
_Stream = tuple[str, str, tuple[bytes, ...], str]
"""Table, region, clusters (sorted) and family."""


def read_arrivals(folder: Path, acknowledged: Mark = Mark()) -> Arrivals:
    """Read everything that the witness with this folder has acknowledged, and maybe more; it may be running.

    Raises `ConfigurationError` where the folder is none, or damaged, or has less than was `acknowledged`.
    """
    if not (folder / "store.id").is_file():
        raise ConfigurationError(f"{folder} is no folder of a witness")
    for _ in range(_ATTEMPTS):
        try:
            return _read(folder, acknowledged)
        except FileNotFoundError:
            continue  # a full log has just become a set
        except OSError as error:
            raise ConfigurationError(f"cannot read {error.filename or folder}: {error.strerror}") from None
    raise ConfigurationError(f"{folder} changes too fast to be read")


def _read(folder: Path, acknowledged: Mark) -> Arrivals:
    found: Arrivals = {}
    reach = Mark()
    # All, not only what was acknowledged by name: a listing may have missed a log and the set that it became meanwhile.
    next_number, is_lacking = 1, False
    for path, first, last in _current(folder):
        file = _File(path.read_bytes(), are_runs=path.suffix == _RUNS)
        try:
            for key, entries in file.sets():
                found.setdefault(key, Entries()).extend(entries)
        except _MALFORMED:
            raise ConfigurationError(f"{path} is no file of a witness: a record cannot be parsed") from None
        # After `sets`, which moves `end` to the first record that is not whole.
        file.refuse_damage(path)
        # A set is made of a whole log.
        reach = max(reach, Mark(last, file.end) if path.suffix == _LOG else Mark(last + 1))
        # Files come by their first numbers, and none within another.
        is_lacking |= first > next_number
        next_number = last + 1
    if is_lacking or reach < acknowledged:
        raise ConfigurationError(
            f"{folder} has less than its witness has acknowledged: if it is a copy, copy it again; if it was restored"
            " from a backup, remove the witness's peer, and begin anew with another folder, znode and peer"
        )
    return {key: entries.as_set() for key, entries in found.items()}


def _current(folder: Path) -> list[tuple[Path, int, int]]:
    """Return the files with their first and last numbers, without those of which a crash has left a successor, too."""
    found = list[tuple[Path, int, int]]()
    for path in folder.iterdir():
        if (name := _NAME.fullmatch(path.name)) is not None:
            found.append((path, int(name[1]), int(name[2] or name[1])))
    # Of two with one number, the later kind has all that the other has.
    found.sort(key=lambda one: (one[1], -one[2], -_KINDS.index(one[0].suffix)))
    reach, current = 0, list[tuple[Path, int, int]]()
    for one in found:
        if one[2] > reach:
            current.append(one)
            reach = one[2]
    return current


class _File:
    """The whole records of a file. One at the end of a log that is not whole was not acknowledged."""

    def __init__(self, data: bytes, *, are_runs: bool) -> None:
        self._data, self._are_runs, self.end = data, are_runs, 0

    def sets(self) -> Iterator[tuple[ArrivalKey, Entries]]:
        """Yield what the records hold."""
        keys: list[ArrivalKey] = []
        while (body := _body(self._data, self.end)) is not None:
            if self._are_runs:
                yield from _Record(zlib.decompress(body), keys).runs()
            else:
                yield from _Record(body, keys).sets()
            self.end += _HEAD.size + len(body)

    def refuse_damage(self, path: Path) -> None:
        """Raise `ConfigurationError` if a whole record follows one that is not.

        Of any file but a log also if it does not end with a whole record: it was whole when it got its name.
        """
        is_damaged = self._is_followed() if path.suffix == _LOG else not 0 < self.end == len(self._data)
        if is_damaged:
            raise ConfigurationError(
                f"{path} is damaged at byte {self.end}: entries that were acknowledged are lost. If it is a copy, copy "
                "it again; else remove the witness's peer, and begin anew with another folder, znode and peer"
            )

    def _is_followed(self) -> bool:
        if self.end + _HEAD.size >= len(self._data):
            return False
        (length, _) = _HEAD.unpack_from(self._data, self.end)
        return _body(self._data, self.end + _HEAD.size + max(0, length)) is not None


def _body(data: bytes, at: int) -> bytes | None:
    if at + _HEAD.size > len(data):
        return None
    length, crc = _HEAD.unpack_from(data, at)
    body = data[at + _HEAD.size : at + _HEAD.size + length] if length > 0 else b""
    is_whole = len(body) == length > 0 and crc32c(body) == crc & 0xFFFFFFFF
    return body if is_whole else None


class _Record:
    """Protobuf's varints, as `ArrivalCodec` writes them."""

    def __init__(self, data: bytes, keys: list[ArrivalKey]) -> None:
        self._data, self._at, self._keys = data, 0, keys

    def sets(self) -> Iterator[tuple[ArrivalKey, Entries]]:
        while self._at < len(self._data):
            key = self._key()
            differences = array("q", (self._signed() for _ in range(2 * self._number())))
            ids, times = array("q", accumulate(differences[::2])), array("q", accumulate(differences[1::2]))
            yield key, Entries.singly(ids, times)

    def runs(self) -> Iterator[tuple[ArrivalKey, Entries]]:
        while self._at < len(self._data):
            key = self._key()
            yield key, Entries.of(self._runs(self._number()))

    def _runs(self, count: int) -> Iterator[_Run]:
        last = high = 0
        for _ in range(count):
            first = last + self._signed()
            last = first + self._number()
            low = high + self._signed()
            high = low + self._number()
            yield first, last, low, high

    def _key(self) -> ArrivalKey:
        number = self._number()
        if number:
            return self._keys[number - 1]
        table, region = self._text(), self._text()
        clusters = tuple(self._uuid() for _ in range(self._number()))
        key = ArrivalKey(table, region, clusters, tuple(self._text() for _ in range(self._number())))
        self._keys.append(key)
        return key

    def _number(self) -> int:
        found = varint(self._data, self._at)
        assert found is not None  # the record is whole
        value, self._at = found
        return value

    def _signed(self) -> int:
        """Return a number that is written zigzag."""
        zigzag = self._number()
        return (zigzag >> 1) ^ -(zigzag & 1)

    def _text(self) -> str:
        length = self._number()
        self._at += length
        return self._data[self._at - length : self._at].decode("utf-8", "replace")

    def _uuid(self) -> str:
        most, least = _UUID.unpack_from(self._data, self._at)
        self._at += _UUID.size
        return str(uuid.UUID(int=most << 64 | least))
