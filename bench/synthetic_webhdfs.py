"""WebHDFS of `/data/NNNNNN/fNNNN`, just enough of it, made up as it is asked for: NameNode and DataNode in one.

`python -m bench.synthetic_webhdfs FILES` prints its port, and ends with its standard input.
"""

from __future__ import annotations

import asyncio
import json
import os
import sys
import threading
from urllib.parse import parse_qs, urlsplit

PER_FOLDER = 2_500
PAGE = 1_000
_PREFIX = "/webhdfs/v1"


def main() -> None:
    """Serve."""
    threading.Thread(target=_await_end, daemon=True).start()
    asyncio.run(_Server(int(sys.argv[1])).run())


def _await_end() -> None:
    sys.stdin.read()
    os._exit(0)


class _Server:
    def __init__(self, files: int) -> None:
        self._files = files
        self._folders = -(-files // PER_FOLDER)
        self._port = 0

    async def run(self) -> None:
        """Serve; the port is printed."""
        server = await asyncio.start_server(self._client, "127.0.0.1", 0)
        self._port = server.sockets[0].getsockname()[1]
        print(self._port, flush=True)
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
