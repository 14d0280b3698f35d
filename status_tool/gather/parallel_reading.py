"""Reads a source's partitions side by side in threads, for runs that need no Spark."""

from __future__ import annotations

import queue
import threading
from collections.abc import Generator, Iterator
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import pyarrow as pa

from status_tool.sources.interface import Source

THREADS = 8
_WAITING_BATCHES = 16
_TICK_S = 0.2


def read_all(source: Source) -> Generator[pa.RecordBatch, None, None]:
    """Yield the batches of all partitions as they come; memory is bounded by a few batches.

    The first error of any partition ends the reading and is raised here.
    """
    parts = source.partitions()
    results: queue.Queue[pa.RecordBatch | BaseException | None] = queue.Queue(_WAITING_BATCHES)
    stop = threading.Event()
    with ThreadPoolExecutor(min(THREADS, max(1, len(parts))), thread_name_prefix="read") as pool:
        try:
            for part in parts:
                pool.submit(_read_part, source, part, results, stop)
            yield from _collect(results, len(parts))
        finally:
            # Threads that wait for room end by this, and those that wait for an answer by `close`. Otherwise the pool
            # would wait for them for ever.
            stop.set()
            source.close()


def _collect(results: queue.Queue[pa.RecordBatch | BaseException | None], parts: int) -> Iterator[pa.RecordBatch]:
    while parts:
        result = results.get()
        if isinstance(result, BaseException):
            raise result
        if result is None:
            parts -= 1
        else:
            yield result


def _read_part(source: Source, part: Any, results: queue.Queue[Any], stop: threading.Event) -> None:
    try:
        for batch in source.read(part):
            if not _put(results, batch, stop):
                return
        _put(results, None, stop)
    except BaseException as error:  # The reader must get a message in every case, or it would wait forever.
        _put(results, error, stop)


def _put(results: queue.Queue[Any], item: Any, stop: threading.Event) -> bool:
    while not stop.is_set():
        try:
            results.put(item, timeout=_TICK_S)
        except queue.Full:
            continue
        return True
    return False
