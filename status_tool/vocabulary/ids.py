"""The 64-bit ids of origins and vias (docs/formats.md, Ids)."""

from __future__ import annotations

import hashlib
import uuid
from collections.abc import Iterable

import google_crc32c

CLUSTER_ID_BYTES = 16


def family_id(family: str) -> str:
    """Return 8 hex digits for a family's name, as the trackers' `FamilyCells.id` makes them: its CRC32C, never 0."""
    return f"{google_crc32c.value(family.encode(errors='surrogatepass')) or 1:08x}"


def origin_id(server_name: str) -> int:
    """Return the origin of a region server incarnation `host,port,startcode`."""
    return _first_eight(server_name.encode())


def cluster_bytes(cluster_id: str) -> bytes | None:
    """Return the 16 bytes that a WALKey holds for a cluster id; None if that is not a UUID."""
    try:
        return uuid.UUID(cluster_id).bytes
    except ValueError:
        return None


def cluster_ids(packed: bytes | None) -> tuple[bytes, ...]:
    """Return the cluster ids in a row's `via_ids`, 16 bytes each; an incomplete one at the end is left out."""
    ids = packed or b""
    starts = range(0, len(ids) - CLUSTER_ID_BYTES + 1, CLUSTER_ID_BYTES)
    return tuple(ids[at : at + CLUSTER_ID_BYTES] for at in starts)


def cluster_names(packed: bytes | None) -> tuple[str, ...]:
    """Return the same in words."""
    return tuple(str(uuid.UUID(bytes=one)) for one in cluster_ids(packed))


def as_hex(number: int) -> str:
    """Return a signed 64-bit id as the 16 hex digits of the state table's row keys."""
    return f"{number & 0xFFFFFFFFFFFFFFFF:016x}"


def from_hex(digits: str | bytes) -> int:
    """Return the inverse of `as_hex`; raises ValueError for anything else."""
    number = int(digits, 16)
    return number - (1 << 64) if number >= 1 << 63 else number


def via_id(clusters: Iterable[bytes], family: str) -> int:
    """The via of a family's stream of entries that passed these clusters (16 bytes each)."""
    base = _first_eight(b"".join(sorted(clusters)))
    return _first_eight(base.to_bytes(8, "big", signed=True) + bytes.fromhex(family_id(family)))


def _first_eight(data: bytes) -> int:
    return int.from_bytes(hashlib.sha256(data).digest()[:8], "big", signed=True)
