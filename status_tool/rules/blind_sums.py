"""HDFS checksums that say nothing about a file's content: each record in it ends with its own CRC.

The CRC of what ends with its own CRC, as Zarr's chunks do, is a constant. To COMPOSITE-CRC the file is one record, to
the MD5 of CRCs each chunk (`bytes per checksum`) is.
"""

from __future__ import annotations

import hashlib
import re
import threading
from functools import cache

_COMPOSITE = "COMPOSITE-"
_MD5_OF = re.compile(r"MD5-of-([0-9]{1,9})MD5-of-([0-9]{1,9})(CRC32C?)\b")
"""Begins the name of HDFS's default checksum: chunks of a block (0: it is the only one), and bytes of a chunk."""
_STRIPED = re.compile(r"([0-9]{1,3})-[0-9]+-([0-9]{1,9})k\b")
"""In the name of an erasure coding policy: data blocks of a group, and KiB of a cell."""
_OWN_CRC = {"CRC32C": bytes.fromhex("48674bc7"), "CRC32": bytes.fromhex("2144df1c")}
"""The CRC of any content that ends with its own CRC, by the kind of CRC."""
_MOST_CHUNKS = 1 << 20
"""Chunks of the largest block that is looked at. HDFS's defaults make 2^18."""
_MOST_BLOCKS = 1 << 20
"""Blocks of the largest file that is looked at: a file may state any length. HDFS's defaults make 2^47 bytes."""
_SIZE = 16  # bytes of an MD5
_GROWING = threading.Lock()


def is_blind_sum(algorithm: str | None, length: int | None, checksum: str | None) -> bool:
    """Return True if a checksum (hex) is that of all contents of its length whose records end with their own CRC."""
    if not algorithm:
        return False
    if algorithm.startswith(_COMPOSITE):
        # What follows the name, as an erasure coding policy, does not change this sum.
        own = _OWN_CRC.get(algorithm.removeprefix(_COMPOSITE).partition(" ")[0])
        return own is not None and own.hex() == checksum
    if not length or (layout := _layout(algorithm)) is None:
        return False
    per_block, chunk, kind, striped = layout
    chunks = -(-length // chunk)
    if striped is not None:
        return _md5_of_striped(chunks, per_block, kind, *striped).hex() == checksum
    blocks, rest = divmod(chunks, per_block) if per_block else (0, chunks)
    if rest > _MOST_CHUNKS or blocks > _MOST_BLOCKS:
        return False
    joined = _md5_of_own(kind, per_block) * blocks + (_md5_of_own(kind, rest) if rest else b"")
    return md5_of(joined).hex() == checksum


def _md5_of_striped(chunks: int, per_block: int, kind: str, blocks: int, per_cell: int) -> bytes:
    """Return the MD5 of a striped file: of those of its groups, each of those of its data blocks that hold anything.

    `per_cell` is the number of chunks of a cell; cells go to the blocks of a group by turns.
    """
    groups, rest = divmod(chunks, per_block * blocks) if per_block else (0, chunks)
    if groups > _MOST_BLOCKS:
        return b""
    whole = md5_of(_md5_of_own(kind, per_block) * blocks) if groups else b""
    cells, last = divmod(rest, per_cell)
    turns, more = divmod(cells, blocks)
    held = [turns * per_cell + (per_cell if at < more else last if at == more else 0) for at in range(blocks)]
    if max(held) > _MOST_CHUNKS:
        return b""
    partial = md5_of(b"".join(_md5_of_own(kind, one) for one in held if one)) if rest else b""
    return md5_of(whole * groups + partial)


def md5_of(blocks: bytes) -> bytes:
    """Return the MD5 of a file by those of its blocks, as HDFS computes it (`FileChecksumHelper`)."""
    # HDFS digests a whole DataOutputBuffer, whose array grows by doubling from 32 bytes: its rest is zeros.
    return _md5(blocks.ljust(1 << max(5, (len(blocks) - 1).bit_length()), b"\0")).digest()


@cache
def _layout(algorithm: str) -> tuple[int, int, str, tuple[int, int] | None] | None:
    """Return the chunks of a block (0: of the only one), the bytes of a chunk, and the kind of CRC.

    Of a striped file also the data blocks of a group, and the chunks of a cell.
    """
    if (found := _MD5_OF.match(algorithm)) is None:
        return None
    per_block, chunk = int(found[1]), int(found[2])
    if not chunk or per_block > _MOST_CHUNKS:
        return None
    policy = _STRIPED.search(algorithm, found.end())
    striped = None if policy is None else (int(policy[1]), (int(policy[2]) << 10) // chunk)
    return per_block, chunk, found[3], striped if striped is not None and all(striped) else None


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
