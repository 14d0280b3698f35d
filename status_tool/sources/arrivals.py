"""What a witness was sent: the files of its folder, which `io.github.statustool.witness.ArrivalStore` writes."""

from __future__ import annotations

import struct
import uuid
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import google_crc32c

from status_tool.errors import ConfigurationError

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
