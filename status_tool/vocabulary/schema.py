"""The one row schema of status files and of every source (see docs/formats.md).

Live sources and status files yield rows of this schema, so that the verification does not know
where its input came from.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import pyarrow as pa

FORMAT_VERSION = 1

Row = Mapping[str, Any]
"""A row of a status file by column; a column that is null may be left out."""
NewRow = dict[str, Any]
"""A row in the making."""

KINDS = (
    "server",
    "table",
    "region",
    "fact",
    "stream",
    "segment",
    "replicated",
    "unstamped",
    "peer",
    "queue",
    "digest",
    "sample",
    "count",
    "file",
)

STATUS_SCHEMA = pa.schema(
    [
        pa.field("kind", pa.string(), nullable=False),
        pa.field("table", pa.string()),
        pa.field("region", pa.string()),
        pa.field("origin", pa.int64()),
        pa.field("via", pa.int64()),
        pa.field("via_ids", pa.binary()),
        pa.field("prev", pa.int64()),
        pa.field("seq", pa.int64()),
        pa.field("first_ms", pa.int64()),
        pa.field("write_ms", pa.int64()),
        pa.field("entries", pa.int64()),
        pa.field("recorded_ms", pa.int64()),
        pa.field("start_key", pa.binary()),
        pa.field("end_key", pa.binary()),
        pa.field("region_id", pa.int64()),
        pa.field("state", pa.string()),
        pa.field("server", pa.string()),
        pa.field("role", pa.string()),
        pa.field("live", pa.bool_()),
        pa.field("tracked", pa.bool_()),
        pa.field("started_ms", pa.int64()),
        pa.field("flush_ms", pa.int64()),
        pa.field("echoed", pa.bool_()),
        pa.field("read_ms", pa.int64()),
        pa.field("final_ms", pa.int64()),
        pa.field("gone_ms", pa.int64()),
        pa.field("name", pa.string()),
        pa.field("path", pa.string()),
        pa.field("length", pa.int64()),
        pa.field("modified_ms", pa.int64()),
        pa.field("algorithm", pa.string()),
        pa.field("checksum", pa.string()),
        pa.field("crc32c", pa.string()),
        pa.field("block_size", pa.int64()),
        pa.field("detail", pa.string()),
        pa.field("family", pa.string()),
    ]
)
