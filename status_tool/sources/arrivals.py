"""What a witness was sent: the files of its folder, which `io.github.statustool.witness.ArrivalStore` writes."""

from __future__ import annotations

import json
import struct
import uuid
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path

import google_crc32c
import pyarrow as pa

from status_tool.errors import ConfigurationError
from status_tool.sources import codec
from status_tool.sources.interface import Source
from status_tool.vocabulary.ids import origin_id, via_id
from status_tool.vocabulary.schema import NewRow
from status_tool.vocabulary.scope import TableFilter
from status_tool.vocabulary.state_rows import WRITER


@dataclass(frozen=True, slots=True)
class WitnessStores:
    """The folders of one peer's witnesses."""

    cluster_id: str
    """Of the cluster that they pose as."""
    ids: frozenset[str]
    """Of the folders."""


def witness_stores(folders: Sequence[Path]) -> WitnessStores:
    """Whose folders these are. Raises `ConfigurationError`, also where they are of several peers."""
    peers = {_id(folder, "cluster.id") for folder in folders}
    if len(peers) > 1:
        raise ConfigurationError(f"the folders are those of {len(peers)} different witnesses' peers: name one peer's")
    return WitnessStores(peers.pop(), frozenset(_id(folder, "store.id") for folder in folders))


def _id(folder: Path, name: str) -> str:
    try:
        return (folder / name).read_text().strip()
    except OSError as error:
        raise ConfigurationError(f"{folder} is no folder of a witness ({name}: {error.strerror})") from None


@dataclass(frozen=True)
class WitnessSource(Source):
    """`stream` and `segment` rows of a master as its witnesses were sent them.

    All entries of a region that passed the same clusters and have cells of a family are one stream, whatever server
    wrote them. A `segment` row, which a master's status has only then, says that no entry is between `prev` and `seq`.
    """

    folders: tuple[Path, ...]
    sender: str
    """The master's cluster id: entries that another cluster sent are none of its."""
    only: TableFilter

    def partitions(self) -> Sequence[int]:
        """One part."""
        return [0]

    def read(self, partition: int) -> Iterator[pa.RecordBatch]:
        """All rows."""
        yield from codec.batches(row for stream in self._streams.items() for row in self._rows(*stream))

    def small_rows(self) -> Iterator[NewRow]:
        """The one origin that all streams have, and of each table the families that were sent."""
        if not self._streams:
            return
        yield {
            "kind": "server",
            "server": f"any of cluster {self.sender}",
            "origin": origin_id(self.sender),
            "role": WRITER,
            "live": True,
            "tracked": True,
            "echoed": True,
        }
        families: dict[str, set[str]] = {}
        for table, _, _, family in self._streams:
            families.setdefault(table, set()).add(family)
        for table, names in sorted(families.items()):
            yield {
                "kind": "table",
                "table": table,
                "detail": json.dumps({"families": {name: {"scope": 1} for name in sorted(names)}}),
            }

    @cached_property
    def _streams(self) -> dict[tuple[str, str, tuple[bytes, ...], str], dict[int, int]]:
        """Write times by sequence id, by table, region, clusters and family."""
        found: dict[tuple[str, str, tuple[bytes, ...], str], dict[int, int]] = {}
        for folder in self.folders:
            for key, entries in read_arrivals(folder).items():
                if key.clusters[-1:] == (self.sender,) and self.only.holds(key.table):
                    clusters = tuple(sorted(uuid.UUID(one).bytes for one in key.clusters))
                    for family in key.families:
                        found.setdefault((key.table, key.region, clusters, family), {}).update(entries)
        return found

    def _rows(self, stream: tuple[str, str, tuple[bytes, ...], str], entries: dict[int, int]) -> Iterator[NewRow]:
        table, region, clusters, family = stream
        base = {
            "table": table,
            "region": region,
            "origin": origin_id(self.sender),
            "via": via_id(clusters, family),
            "family": family,
        }
        written = sorted(entries.items())
        passed = b"".join(one for one in clusters if one != uuid.UUID(self.sender).bytes)
        yield {
            "kind": "stream",
            **base,
            "via_ids": passed or None,
            "seq": written[-1][0],
            "first_ms": written[0][1],
            "write_ms": max(entries.values()),
            "entries": len(entries),
        }
        before, highest = 0, 0
        for sequence_id, write_ms in written:
            if sequence_id > before + 1:
                yield {"kind": "segment", **base, "prev": before, "seq": sequence_id, "started_ms": highest}
            before, highest = sequence_id, max(highest, write_ms)


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


Arrivals = dict[ArrivalKey, dict[int, int]]
"""Write times (epoch ms, the origin's clock) by sequence id."""


def read_arrivals(folder: Path) -> Arrivals:
    """Everything that the witness with this folder has acknowledged, and maybe more; it may be running.

    Raises `ConfigurationError` where the folder is none, or damaged.
    """
    if not (folder / "store.id").is_file():
        raise ConfigurationError(f"{folder} is no folder of a witness")
    for _ in range(_ATTEMPTS):
        try:
            return _read(folder)
        except FileNotFoundError:
            continue  # a full log has just become a set
    raise ConfigurationError(f"{folder} changes too fast to be read")


def _read(folder: Path) -> Arrivals:
    found: Arrivals = {}
    for path in sorted(folder.iterdir()):
        if path.suffix in (".log", ".set"):
            for key, entries in _records(path):
                found.setdefault(key, {}).update(entries)
    return found


def _records(path: Path) -> Iterator[tuple[ArrivalKey, dict[int, int]]]:
    """A record at the end that is not whole was not acknowledged."""
    data, at = path.read_bytes(), 0
    keys: list[ArrivalKey] = []
    while (body := _body(data, at)) is not None:
        yield from _Record(body, keys).sets()
        at += _HEAD.size + len(body)
    if at + _HEAD.size < len(data):
        (length, _) = _HEAD.unpack_from(data, at)
        if _body(data, at + _HEAD.size + max(0, length)) is not None:
            raise ConfigurationError(f"{path} is damaged at byte {at}: entries that were acknowledged are lost")


def _body(data: bytes, at: int) -> bytes | None:
    if at + _HEAD.size > len(data):
        return None
    length, crc = _HEAD.unpack_from(data, at)
    body = data[at + _HEAD.size : at + _HEAD.size + length] if length > 0 else b""
    is_whole = len(body) == length > 0 and google_crc32c.value(body) == crc & 0xFFFFFFFF
    return body if is_whole else None


class _Record:
    """Protobuf's varints, as `ArrivalCodec` writes them."""

    def __init__(self, data: bytes, keys: list[ArrivalKey]) -> None:
        self._data, self._at, self._keys = data, 0, keys

    def sets(self) -> Iterator[tuple[ArrivalKey, dict[int, int]]]:
        while self._at < len(self._data):
            key, entries = self._key(), {}
            sequence_id = write_time = 0
            for _ in range(self._number()):
                sequence_id += self._signed()
                write_time += self._signed()
                entries[sequence_id] = write_time
            yield key, entries

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

    def _signed(self) -> int:
        """Zigzag."""
        value = self._number()
        return (value >> 1) ^ -(value & 1)

    def _text(self) -> str:
        length = self._number()
        self._at += length
        return self._data[self._at - length : self._at].decode("utf-8", "replace")

    def _uuid(self) -> str:
        most, least = _UUID.unpack_from(self._data, self._at)
        self._at += _UUID.size
        return str(uuid.UUID(int=most << 64 | least))
