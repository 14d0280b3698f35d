"""HDFS checksums that say nothing about a file's content: each record in it ends with its own CRC.

The CRC of what ends with its own CRC, as Zarr's chunks do, is a constant. To COMPOSITE-CRC the file is one record, to
the MD5 of CRCs each chunk (`bytes per checksum`) is.
"""

from __future__ import annotations

import hashlib
import re
import threading
from functools import cache

SUMMED = ("algorithm", "length", "checksum")
"""Columns by which a checksum is known to be one of these."""
_COMPOSITE = "COMPOSITE-"
_MD5_OF = re.compile(r"MD5-of-(\d+)MD5-of-(\d+)(CRC32C?)\b")
"""Begins the name of HDFS's default checksum: chunks of a block (0: it is the only one), and bytes of a chunk."""
_OWN_CRC = {"CRC32C": bytes.fromhex("48674bc7"), "CRC32": bytes.fromhex("2144df1c")}
"""The CRC of any content that ends with its own CRC, by the kind of CRC."""
_MOST_CHUNKS = 1 << 20
"""Chunks of the largest block that is looked at. HDFS's defaults make 2^18."""
_SIZE = 16  # bytes of an MD5
_GROWING = threading.Lock()


def is_blind_sum(algorithm: str | None, length: int | None, checksum: str | None) -> bool:
    """Return True if a checksum (hex) is that of all contents of its length whose records end with their own CRC."""
    if not algorithm or not length:
        return False
    if algorithm.startswith(_COMPOSITE):
        own = _OWN_CRC.get(algorithm.removeprefix(_COMPOSITE))
        return own is not None and own.hex() == checksum
    if (layout := _layout(algorithm)) is None:
        return False
    per_block, chunk, kind = layout
    chunks = -(-length // chunk)
    blocks, rest = divmod(chunks, per_block) if per_block else (0, chunks)
    if rest > _MOST_CHUNKS:
        return False
    joined = _md5_of_own(kind, per_block) * blocks + (_md5_of_own(kind, rest) if rest else b"")
    return md5_of(joined).hex() == checksum


def md5_of(blocks: bytes) -> bytes:
    """Return the MD5 of a file by those of its blocks, as HDFS computes it (`FileChecksumHelper`)."""
    # HDFS digests a whole DataOutputBuffer, whose array grows by doubling from 32 bytes: its rest is zeros.
    return _md5(blocks.ljust(1 << max(5, (len(blocks) - 1).bit_length()), b"\0")).digest()


@cache
def _layout(algorithm: str) -> tuple[int, int, str] | None:
    """Return the chunks of a block (0: of the only one), the bytes of a chunk, and the kind of CRC."""
    if (found := _MD5_OF.match(algorithm)) is None:
        return None
    per_block, chunk = int(found[1]), int(found[2])
    return (per_block, chunk, found[3]) if chunk and per_block <= _MOST_CHUNKS else None


@cache
def _md5s_of_own(kind: str) -> bytearray:
    """Return the MD5s of 0, 1, 2, … chunks that each end with their own CRC, as far as they were needed."""
    return bytearray(_md5(b"").digest())


def _md5_of_own(kind: str, chunks: int) -> bytes:
    """Return the MD5 of the CRCs of a block of so many chunks that each end with their own CRC."""
    known, end = _md5s_of_own(kind), (chunks + 1) * _SIZE
    if len(known) < end:
        with _GROWING:
            count = len(known) // _SIZE
            digest = _md5(_OWN_CRC[kind] * (count - 1))
            for _ in range(count, chunks + 1):
                digest.update(_OWN_CRC[kind])
                known += digest.digest()
    return bytes(known[end - _SIZE : end])


def _md5(data: bytes) -> hashlib._Hash:
    # OpenSSL in FIPS mode refuses MD5 for security, and HDFS uses it as a mere checksum.
    return hashlib.md5(data, usedforsecurity=False)
