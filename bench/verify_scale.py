"""One million streams: write both sides, verify, and say how long it took and how much memory it held.

    python -m bench.verify_scale [STREAMS]

Resident sizes are the peaks (VmHWM) of this process and of its JVM; the target is 2 GiB together.
"""

from __future__ import annotations

import hashlib
import json
import os
import sys
import tempfile
import time
from collections.abc import Callable, Iterator
from contextlib import closing, contextmanager, suppress
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq

from status_tool.spark.session import spark_session
from status_tool.spark.verify import Verification
from status_tool.vocabulary.header import Header
from status_tool.vocabulary.schema import STATUS_SCHEMA
from status_tool.vocabulary.scope import Scope

BATCH = 50_000
NOW = 1_790_000_000_000
GAP_EVERY = 100_003
HEAD = 400
MASTER = Header(
    "master",
    "00000000-0000-4000-8000-000000000001",
    created_ms=NOW,
    cut_ms=NOW,
    barrier_issued_ms=NOW,
    coverage_ms=NOW - 10**9,
)
SLAVE = Header("slave", "00000000-0000-4000-8000-000000000002", NOW, NOW)
ORIGINS = 200
TABLES = 50


def main() -> int:
    """Run the benchmark; returns 0."""
    count = int(sys.argv[1]) if len(sys.argv) > 1 else 1_000_000
    with tempfile.TemporaryDirectory() as folder:
        ours, theirs = Path(folder, "master.parquet"), Path(folder, "slave.parquet")
        with _timed("written"):
            write_inputs(Path(folder), count)
        sizes = f"{ours.stat().st_size / 2**20:.0f} + {theirs.stat().st_size / 2**20:.0f} MiB"
        print(f"{count} streams, {count} regions, {2 * count} segments: {sizes}")
        with _timed("session"):
            context = spark_session(small=False)
            session = context.__enter__()
        ours_df, theirs_df = (session.read.parquet(str(path)) for path in (ours, theirs))
        for _ in range(2):
            with (
                _timed("verified"),
                closing(Verification(session, ours_df, theirs_df, MASTER, SLAVE, Scope())) as check,
            ):
                outcome = check.outcome()
        print({str(status): number for status, number in outcome.hbase.regions.items()} if outcome.hbase else None)
        _print_memory()
        context.__exit__(None, None, None)
    return 0


def write_inputs(folder: Path, count: int) -> None:
    """Write `master.parquet` and `slave.parquet` with so many streams, each in a region of its own."""
    _write(folder / "master.parquet", _small("master"), _master_rows, count)
    _write(folder / "slave.parquet", _small("slave"), _slave_rows, count)


@contextmanager
def _timed(what: str) -> Iterator[None]:
    start = time.perf_counter()
    yield
    print(f"{what}: {time.perf_counter() - start:.1f} s", flush=True)


def _write(path: Path, small: list[dict[str, Any]], rows: Callable[[str, pa.Array], pa.Table], count: int) -> None:
    with pq.ParquetWriter(path, STATUS_SCHEMA, compression="zstd") as writer:
        writer.write_table(pa.Table.from_pylist(small, schema=STATUS_SCHEMA))
        for kind in ("region", "stream") if "master" in path.name else ("segment", "replicated"):
            for start in range(0, count, BATCH):
                ids = pa.array(range(start, min(count, start + BATCH)), pa.int64())
                writer.write_table(rows(kind, ids))


def _small(side: str) -> list[dict[str, Any]]:
    role = "w" if side == "master" else "r"
    live = {"kind": "server", "role": role, "live": True, "tracked": True, "echoed": True, "read_ms": NOW}
    servers = [{**live, "origin": n, "server": f"host{n},16020,{n}"} for n in range(ORIGINS)]
    detail = json.dumps({"families": {"f": {"scope": 1}}, "durability": "USE_DEFAULT"})
    return servers + [{"kind": "table", "table": f"ns:t{n}", "detail": detail} for n in range(TABLES)]


def _master_rows(kind: str, ids: pa.Array) -> pa.Table:
    columns = {**_identity(kind, ids), "start_key": _text("row{}", ids).cast(pa.binary())}
    if kind == "region":
        server = pc.binary_join_element_wise("host", _modulo(ids), ",16020,", _modulo(ids), "")
        return _table(ids, columns | {"server": server, "state": "hosted", "region_id": NOW - 10**6})
    times = {"first_ms": NOW - 10**6, "write_ms": NOW - 1000}
    return _table(ids, columns | {"origin": _origin(ids), "via": 0, "seq": HEAD, "entries": HEAD} | times)


def _slave_rows(kind: str, ids: pa.Array) -> pa.Table:
    """Two segments a stream, and a hole between them in one of `GAP_EVERY` streams."""
    if kind == "replicated":
        return _table(ids, _identity(kind, ids) | {"write_ms": NOW - 1000})
    holed = pc.equal(pc.subtract(ids, pc.multiply(pc.divide(ids, GAP_EVERY), GAP_EVERY)), 0)
    same = _identity(kind, ids) | {"origin": _origin(ids), "via": 0, "recorded_ms": NOW - 500}
    first = _table(ids, same | {"prev": 0, "seq": HEAD // 2, "first_ms": NOW - 10**6, "write_ms": NOW - 2000})
    start = pc.if_else(holed, HEAD // 2 + 10, HEAD // 2)
    second = _table(ids, same | {"prev": start, "seq": HEAD, "first_ms": NOW - 1900, "write_ms": NOW - 1000})
    return pa.concat_tables([first, second])


def _identity(kind: str, ids: pa.Array) -> dict[str, Any]:
    tables = pc.subtract(ids, pc.multiply(pc.divide(ids, TABLES), TABLES))
    # As HBase's encoded names: sorting looks at the first bytes.
    names = [hashlib.md5(str(number).encode(), usedforsecurity=False).hexdigest() for number in ids.to_pylist()]
    return {"kind": kind, "table": _text("ns:t{}", tables), "region": pa.array(names)}


def _origin(ids: pa.Array) -> pa.Array:
    return pc.subtract(ids, pc.multiply(pc.divide(ids, ORIGINS), ORIGINS))


def _modulo(ids: pa.Array) -> pa.Array:
    return pc.cast(_origin(ids), pa.string())


def _text(pattern: str, ids: pa.Array) -> pa.Array:
    return pc.binary_join_element_wise(pattern.replace("{}", ""), pc.cast(ids, pa.string()), "")


def _table(ids: pa.Array, columns: dict[str, Any]) -> pa.Table:
    """Constants are repeated; columns that are not named are null."""
    arrays = []
    for field in STATUS_SCHEMA:
        value = columns.get(field.name)
        if not isinstance(value, pa.Array | pa.ChunkedArray):
            value = pa.repeat(pa.scalar(value, field.type), len(ids))
        arrays.append(value)
    return pa.table(arrays, schema=STATUS_SCHEMA)


def _print_memory() -> None:
    jvms = [pid for pid in _children(os.getpid()) if "java" in Path(f"/proc/{pid}/comm").read_text()]
    peaks = {"python": _peak_mib(os.getpid()), "jvm": sum(_peak_mib(pid) for pid in jvms)}
    print(f"peak resident: {peaks}, together {sum(peaks.values())} MiB")


def _children(pid: int) -> list[int]:
    found = []
    for task in Path(f"/proc/{pid}/task").iterdir():
        with suppress(OSError):  # a thread may end meanwhile
            for child in (task / "children").read_text().split():
                found += [int(child), *_children(int(child))]
    return found


def _peak_mib(pid: int) -> int:
    lines = Path(f"/proc/{pid}/status").read_text().splitlines()
    return next(int(line.split()[1]) // 1024 for line in lines if line.startswith("VmHWM"))


if __name__ == "__main__":
    sys.exit(main())
