"""Arrivals at a witness: the files of its folder, which `io.github.statustool.witness.ArrivalStore` writes."""

from __future__ import annotations

import operator
import struct
import uuid
from array import array
from collections import defaultdict
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from itertools import accumulate, islice
from pathlib import Path

import pyarrow as pa

from status_tool.errors import ConfigurationError
from status_tool.rules.content import SKEW_MS
from status_tool.rules.tables import META_FAMILY
from status_tool.sources import codec
from status_tool.sources.crc import crc32c
from status_tool.sources.interface import Source
from status_tool.vocabulary.ids import origin_id, via_id
from status_tool.vocabulary.schema import NewRow
from status_tool.vocabulary.scope import TableFilter
from status_tool.vocabulary.state_rows import WRITER
from status_tool.vocabulary.states import FactState


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
    is_second: bool = False
    """True beside trackers, which know more of the regions."""

    def partitions(self) -> Sequence[int]:
        """One part."""
        return [0]

    def read(self, partition: int) -> Iterator[pa.RecordBatch]:
        """Yield all rows."""
        streams, events = self._found
        yield from codec.batches(
            (*(() if self.is_second else events), *(row for stream in streams.items() for row in self._rows(*stream)))
        )

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

    @cached_property
    def _found(self) -> tuple[dict[_Stream, Entries], list[NewRow]]:
        """The streams, and the regions' events."""
        streams: dict[_Stream, Entries] = {}
        regions: dict[tuple[str, str], Entries] = defaultdict(Entries)
        loads: dict[tuple[str, str], int] = {}
        for arrivals in self.arrivals():
            for key, entries in arrivals.items():
                if key.clusters[-1:] != (self.sender,) or not self.only.holds(key.table):
                    continue
                regions[key.table, key.region].extend(entries)
                clusters = tuple(sorted(uuid.UUID(one).bytes for one in key.clusters))
                for family in key.families:
                    if family == META_FAMILY:
                        newest = max(entries.write_times)
                        loads[key.table, key.region] = max(newest, loads.get((key.table, key.region), newest))
                    else:
                        streams.setdefault((key.table, key.region, clusters, family), Entries()).extend(entries)
        lives = {key: again_ms for key, entries in regions.items() if (again_ms := began_again(entries)) is not None}
        events = [*_events(loads, FactState.BULK_LOAD), *_events(lives, FactState.CHANGED)]
        return {stream: entries.as_set() for stream, entries in streams.items()}, events

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
            "seq": entries.sequence_ids[-1],
            "first_ms": entries.write_times[0],
            "write_ms": max(entries.write_times),
            "entries": len(entries.sequence_ids),
        }
        before, highest = 0, 0
        for sequence_id, write_ms in zip(entries.sequence_ids, entries.write_times, strict=True):
            if sequence_id > before + 1:
                yield {"kind": "segment", **base, "prev": before, "seq": sequence_id, "started_ms": highest}
            before, highest = sequence_id, max(highest, write_ms)


def _events(newest: Mapping[tuple[str, str], int], state: FactState) -> Iterator[NewRow]:
    for (table, region), write_ms in newest.items():
        yield {"kind": "fact", "table": table, "region": region, "state": state, "write_ms": write_ms}


def began_again(entries: Entries) -> int | None:
    """Return the newest write time of entries that a region wrote with sequence ids that it had passed; None: it never
    went back.

    It was truncated, or dropped and cloned, and an entry of its new life may have the sequence id of one of the old.
    """
    ordered = entries.as_set()
    found: int | None = None
    last = highest = 0
    for sequence_id, write_ms in zip(ordered.sequence_ids, ordered.write_times, strict=True):
        if sequence_id == last or highest > write_ms + 2 * SKEW_MS:
            found = max(found or 0, highest, write_ms)
        last, highest = sequence_id, max(highest, write_ms)
    return found


_HEAD = struct.Struct(">ii")
_UUID = struct.Struct("<QQ")
_ATTEMPTS = 10


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
    """Sequence ids and write times (epoch ms, the origin's clock), in 16 bytes an entry."""

    sequence_ids: array[int] = field(default_factory=lambda: array("q"))
    write_times: array[int] = field(default_factory=lambda: array("q"))

    def extend(self, more: Entries) -> None:
        """Add others, in any order."""
        self.sequence_ids.extend(more.sequence_ids)
        self.write_times.extend(more.write_times)

    def as_set(self) -> Entries:
        """The same by sequence id, each once; of one id several only where the region lived several times."""
        ids = self.sequence_ids
        if all(map(operator.lt, ids, islice(ids, 1, None))):
            return self
        ordered = sorted(set(zip(ids, self.write_times, strict=True)))
        return Entries(array("q", (one for one, _ in ordered)), array("q", (ms for _, ms in ordered)))


Arrivals = dict[ArrivalKey, Entries]
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
    raise ConfigurationError(f"{folder} changes too fast to be read")


def _read(folder: Path, acknowledged: Mark) -> Arrivals:
    found: Arrivals = {}
    paths = sorted((one for one in folder.iterdir() if one.suffix in (".log", ".set")), key=lambda one: int(one.stem))
    reach = Mark()
    for path in paths:
        file = _File(path.read_bytes())
        for key, entries in file.sets():
            found.setdefault(key, Entries()).extend(entries)
        file.refuse_damage(path)
        # A set is made of a whole log.
        reach = max(reach, Mark(int(path.stem), file.end) if path.suffix == ".log" else Mark(int(path.stem) + 1))
    missing = set(range(1, acknowledged.number)) - {int(path.stem) for path in paths}
    if missing or reach < acknowledged:
        raise ConfigurationError(
            f"{folder} has less than its witness has acknowledged: if it is a copy, copy it again; if it was restored"
            " from a backup, remove the witness's peer, and begin anew with another folder, znode and peer"
        )
    return {key: entries.as_set() for key, entries in found.items()}


class _File:
    """The whole records of a file. One at the end that is not whole was not acknowledged."""

    def __init__(self, data: bytes) -> None:
        self._data, self.end = data, 0

    def sets(self) -> Iterator[tuple[ArrivalKey, Entries]]:
        """Yield what the records hold."""
        keys: list[ArrivalKey] = []
        while (body := _body(self._data, self.end)) is not None:
            yield from _Record(body, keys).sets()
            self.end += _HEAD.size + len(body)

    def refuse_damage(self, path: Path) -> None:
        """Raise `ConfigurationError` if a whole record follows one that is not."""
        if self.end + _HEAD.size < len(self._data):
            (length, _) = _HEAD.unpack_from(self._data, self.end)
            if _body(self._data, self.end + _HEAD.size + max(0, length)) is not None:
                raise ConfigurationError(
                    f"{path} is damaged at byte {self.end}: entries that were acknowledged are lost"
                )


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
            differences = self._differences(2 * self._number())
            yield key, Entries(array("q", accumulate(differences[::2])), array("q", accumulate(differences[1::2])))

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
        value = shift = 0
        while True:
            byte = self._data[self._at]
            self._at += 1
            value |= (byte & 0x7F) << shift
            if byte < 0x80:
                return value
            shift += 7

    def _differences(self, count: int) -> array[int]:
        """Zigzag; nearly all have one byte."""
        found = array("q")
        for _ in range(count):
            value = self._data[self._at]
            if value < 0x80:
                self._at += 1
            else:
                value = self._number()
            found.append((value >> 1) ^ -(value & 1))
        return found

    def _text(self) -> str:
        length = self._number()
        self._at += length
        return self._data[self._at - length : self._at].decode("utf-8", "replace")

    def _uuid(self) -> str:
        most, least = _UUID.unpack_from(self._data, self._at)
        self._at += _UUID.size
        return str(uuid.UUID(int=most << 64 | least))
