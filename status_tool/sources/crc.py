"""CRCs of content, and the checksum that HDFS computes for a file, without HDFS.

HDFS keeps a CRC for every chunk (`bytes per checksum`) of a block. Its file checksum is the MD5 of the
blocks' MD5s, each the MD5 of that block's chunk CRCs. COMPOSITE-CRC is the plain CRC32C of all bytes.

Contents are compared by two CRCs of unlike polynomials, as one number: CRC32C, and CRC-32 in the lower half. What ends
with its own CRC32C (Zarr's chunks, other framed records) has the same CRC32C whatever it holds.
"""

from __future__ import annotations

import hashlib
import zlib
from collections.abc import Callable
from dataclasses import dataclass
from typing import BinaryIO

import google_crc32c

from status_tool.errors import ConfigurationError
from status_tool.rules.blind_sums import md5_of

_CRC32C, _CRC32 = 0x82F63B78, 0xEDB88320  # polynomials, bits reflected
_LOW = 0xFFFFFFFF
_READ_BYTES = 1 << 20


def crc32c(data: bytes, before: int = 0) -> int:
    """Return the CRC32C of `data`, continued from the CRC of the preceding data."""
    return int(google_crc32c.extend(before, data))


def crcs(data: bytes, before: int = 0) -> int:
    """Return both CRCs of `data`, continued from those of the preceding data."""
    return crc32c(data, before >> 32) << 32 | zlib.crc32(data, before & _LOW)


def combine(first: int, second: int, length: int) -> int:
    """Return both CRCs of two consecutive pieces from theirs; `length` is the second one's, in bytes."""
    moved = [
        _multiply(crc, _power_of_x(8 * length, polynomial), polynomial)
        for crc, polynomial in ((first >> 32, _CRC32C), (first & _LOW, _CRC32))
    ]
    return (moved[0] << 32 | moved[1]) ^ second


def crc_hex(crc: int) -> str:
    """Return both CRCs in 16 hex digits, of which the first 8 are those of COMPOSITE-CRC."""
    return f"{crc:016x}"


def _multiply(a: int, b: int, polynomial: int) -> int:
    """Return the product of two polynomials over GF(2), modulo the CRC's."""
    product = 0
    for bit in range(31, -1, -1):
        if a >> bit & 1:
            product ^= b
        b = b >> 1 ^ (polynomial if b & 1 else 0)
    return product


def _power_of_x(exponent: int, polynomial: int) -> int:
    result, square = 1 << 31, 1 << 30  # 1 and x
    while exponent:
        if exponent & 1:
            result = _multiply(result, square, polynomial)
        square = _multiply(square, square, polynomial)
        exponent >>= 1
    return result


@dataclass(frozen=True, slots=True)
class Layout:
    """A file's layout in HDFS: block size and bytes per chunk CRC, and the kind of CRC."""

    block_size: int = 128 << 20
    bytes_per_crc: int = 512
    crc_type: str = "CRC32C"

    @classmethod
    def parse(cls, text: str) -> Layout:
        """Parse `BLOCK[:BYTES_PER_CRC[:CRC32|CRC32C]]`. Raises `ConfigurationError`."""
        block, _, rest = text.partition(":")
        chunk, _, kind = rest.partition(":")
        try:
            layout = cls(int(block), int(chunk or 512), kind or "CRC32C")
        except ValueError:
            layout = cls(0)
        wrong = layout.block_size <= 0 or layout.bytes_per_crc <= 0 or layout.block_size % layout.bytes_per_crc
        if wrong or layout.crc_type not in ("CRC32", "CRC32C"):
            raise ConfigurationError(
                f"{text!r}: expected BLOCK_SIZE[:BYTES_PER_CHECKSUM[:CRC32|CRC32C]], the first a multiple of the second"
            )
        return layout


def hdfs_checksum(file: BinaryIO, layout: Layout) -> tuple[str, str, int]:
    """Return the algorithm, MD5 (hex) and length that HDFS reports for a file of this content and layout."""
    blocks: list[bytes] = []
    length = 0
    crc = zlib.crc32 if layout.crc_type == "CRC32" else crc32c
    while True:
        digest, read = _block(file, layout, crc)
        if read == 0:
            break
        blocks.append(digest)
        length += read
        if read < layout.block_size:
            break
    if not blocks:
        return "MD5-of-0MD5-of-0CRC32", md5_of(b"").hex(), 0
    # `FileChecksumHelper` sets crcPerBlock only for a file of several blocks.
    per_block = layout.block_size // layout.bytes_per_crc if len(blocks) > 1 else 0
    algorithm = f"MD5-of-{per_block}MD5-of-{layout.bytes_per_crc}{layout.crc_type}"
    return algorithm, md5_of(b"".join(blocks)).hex(), length


def _block(file: BinaryIO, layout: Layout, crc: Callable[[bytes], int]) -> tuple[bytes, int]:
    """Return the MD5 of a block's chunk CRCs, and their length in bytes."""
    digest = hashlib.md5(usedforsecurity=False)
    # In whole chunks: one that two reads divide has another CRC.
    step = max(layout.bytes_per_crc, _READ_BYTES // layout.bytes_per_crc * layout.bytes_per_crc)
    read = 0
    while read < layout.block_size:
        data = file.read(min(step, layout.block_size - read))
        if not data:
            break
        view = memoryview(data)
        chunks = range(0, len(data), layout.bytes_per_crc)
        digest.update(b"".join(crc(bytes(view[i : i + layout.bytes_per_crc])).to_bytes(4, "big") for i in chunks))
        read += len(data)
    return digest.digest(), read
