"""Memory of `run -m -o FILE --only hdfs` against the number of files: peak resident size of the tool's process.

`python -m bench.hdfs_memory [FILES ...]` (default 200000 500000: up to 131,072 rows are gathered for a row group of
FILE, from there on memory is flat). NameNode and DataNode are a synthetic HTTP server in a process of its own that
makes listings and checksums up as they are requested: real ones would need gigabytes for the same. What is requested,
parsed, kept and written is what a real cluster would cause.
"""

from __future__ import annotations

import asyncio
import json
import multiprocessing
import os
import subprocess
import sys
import tempfile
import time
from multiprocessing.connection import Connection
from pathlib import Path
from urllib.parse import parse_qs, urlsplit

import pyarrow.parquet as pq

PER_FOLDER = 2_500
PAGE = 1_000
_PREFIX = "/webhdfs/v1"


def main() -> None:
    """Measure each size and print them with the ratio to the first."""
    sizes = [int(text) for text in sys.argv[1:]] or [200_000, 500_000]
    first = 0.0
    for files in sizes:
        mebibytes, seconds, rows = _measure(files)
        first = first or mebibytes
        ratio = f"{mebibytes / first:.2f} times the first"
        print(f"{files:9d} files: peak {mebibytes:6.0f} MiB, {ratio}, {files / seconds:.0f} files/s", flush=True)
        assert rows == files, f"{rows} rows for {files} files"


def _measure(files: int) -> tuple[float, float, int]:
    """Peak resident size in MiB, seconds, and files in the status file."""
    here, there = multiprocessing.Pipe()
    server = multiprocessing.Process(target=_serve, args=(files, there), daemon=True)
    server.start()
    try:
        with tempfile.TemporaryDirectory() as folder:
            paths, output = Path(folder, "paths"), Path(folder, "master.status")
            paths.write_text("/data\n")
            where = ("-f", str(paths), "--webhdfs", f"http://127.0.0.1:{here.recv()}")
            command = [sys.executable, "-m", "status_tool", "run", "-m", "-o", str(output), "--only", "hdfs", *where]
            began = time.perf_counter()
            tool = subprocess.Popen(command, stdout=subprocess.DEVNULL)
            _, status, usage = os.wait4(tool.pid, 0)
            seconds = time.perf_counter() - began
            if status:
                raise SystemExit(f"the run failed with wait status {status}")
            counts = pq.read_table(output, columns=["kind"]).column("kind").to_pylist().count("file")
            return usage.ru_maxrss / 1024, seconds, counts
    finally:
        server.terminate()
        server.join()


def _serve(files: int, ready: Connection) -> None:
    asyncio.run(_Server(files).run(ready))


class _Server:
    """WebHDFS of `/data/NNNNNN/fNNNN`, just enough of it."""

    def __init__(self, files: int) -> None:
        self._files = files
        self._folders = -(-files // PER_FOLDER)
        self._port = 0

    async def run(self, ready: Connection) -> None:
        """Serve until killed; the port is sent through `ready`."""
        server = await asyncio.start_server(self._client, "127.0.0.1", 0)
        self._port = server.sockets[0].getsockname()[1]
        ready.send(self._port)
        await server.serve_forever()

    async def _client(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        try:
            while True:
                head = await reader.readuntil(b"\r\n\r\n")
                body = json.dumps(self._answer(head.split(b" ", 2)[1].decode())).encode()
                writer.write(b"HTTP/1.1 200 OK\r\nContent-Length: %d\r\n\r\n%s" % (len(body), body))
                await writer.drain()
        except (asyncio.IncompleteReadError, ConnectionError):
            writer.close()

    def _answer(self, target: str) -> object:
        parts = urlsplit(target)
        query, path = parse_qs(parts.query), parts.path.removeprefix(_PREFIX)
        op = query["op"][0]
        if op == "GETFILESTATUS":
            return {"FileStatus": _status("", "DIRECTORY")}
        if op == "GETFILECHECKSUM" and "noredirect" in query:
            return {"Location": f"http://127.0.0.1:{self._port}{_PREFIX}{path}?op=GETFILECHECKSUM"}
        if op == "GETFILECHECKSUM":
            digest = f"{'0' * 24}{hash(path) & (1 << 64) - 1:032x}00000000"
            return {"FileChecksum": {"algorithm": "MD5-of-0MD5-of-512CRC32C", "bytes": digest, "length": 28}}
        names, kind = self._names(path)
        after = query.get("startAfter", [""])[0]
        left = [name for name in names if name > after]
        page = {"FileStatuses": {"FileStatus": [_status(name, kind) for name in left[:PAGE]]}}
        return {"DirectoryListing": {"partialListing": page, "remainingEntries": max(0, len(left) - PAGE)}}

    def _names(self, path: str) -> tuple[list[str], str]:
        if path == "/data":
            return [f"{number:06d}" for number in range(self._folders)], "DIRECTORY"
        number = int(path.rpartition("/")[2])
        count = min(PER_FOLDER, self._files - number * PER_FOLDER)
        return [f"f{file:04d}" for file in range(count)], "FILE"


def _status(name: str, kind: str) -> dict[str, object]:
    length = 1000 if kind == "FILE" else 0
    return {"pathSuffix": name, "type": kind, "length": length, "modificationTime": 1, "blockSize": 134217728}


if __name__ == "__main__":
    main()
