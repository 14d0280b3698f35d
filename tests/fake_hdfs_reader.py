"""The other end of `clients/hdfs_native.py` without Hadoop: `python -m tests.fake_hdfs_reader FOLDER`.

It serves a local folder, whose file's texts say what else happens: `refuse NAME MESSAGE`; `away NAME N`, no NameNode is
reached for so many times; `die`; `cut`, the same in the middle of an answer; `babble`, what a JVM prints that is out of
memory; `crc32`, a checksum of that kind.
FOLDER.log has its process id and the requests.
"""

from __future__ import annotations

import os
import struct
import sys
from collections import Counter
from pathlib import Path
from typing import Any

PAGE = 3
ALGORITHM = "MD5-of-0MD5-of-512CRC32C"
_asked: Counter[str] = Counter()


class Request:
    """The body of a request, read from its start."""

    def __init__(self, data: bytes) -> None:
        self.data, self.at = data, 0

    def number(self, kind: str = "i") -> Any:
        (number,) = struct.unpack_from(f">{kind}", self.data, self.at)
        self.at += struct.calcsize(f">{kind}")
        return number

    def text(self) -> str:
        length = self.number()
        self.at += length
        return self.data[self.at - length : self.at].decode()


def text(value: str) -> bytes:
    return struct.pack(">i", len(value.encode())) + value.encode()


def refused(name: str, message: str) -> bytes:
    return b"R" + text(name) + text(message)


def entry(path: Path, name: str) -> bytes:
    kind = b"S" if path.is_symlink() else b"D" if path.is_dir() else b"F"
    length = path.stat().st_size if kind == b"F" else 0
    coded = "XOR-2-1-1024k" if "coded" in path.name else ""
    return text(name) + struct.pack(">cqqq?", kind, length, 7, 1024, "zone" in path.name) + text(coded)


def listing(path: Path, after: str) -> bytes:
    if not path.exists():
        return refused("FileNotFoundException", f"File {path} does not exist.")
    if path.is_file():
        return b"A" + struct.pack(">ii", 0, 1) + entry(path, "")
    if "closed" in path.name:
        return refused("AccessControlException", "Permission denied: user=me\n\tat org.apache.hadoop")
    left = sorted((one for one in path.iterdir() if one.name > after), key=lambda one: one.name.encode())
    entries = b"".join(entry(one, one.name) for one in left[:PAGE])
    return b"A" + struct.pack(">ii", max(0, len(left) - PAGE), len(left[:PAGE])) + entries


class CutShort(Exception):
    """The process ends in the middle of this answer."""


def checksum(path: Path) -> bytes:
    if not path.exists():
        return refused("FileNotFoundException", f"File does not exist: {path}")
    what, _, rest = path.read_text().partition(" ")
    name, _, more = rest.partition(" ")
    if what == "refuse":
        return refused(name, more)
    if what == "away" and _asked[str(path)] < int(more):
        _asked[str(path)] += 1
        return refused(name, "Call From here to there failed")
    if what == "die":
        sys.exit("java.lang.IllegalStateException: the end")
    if what == "cut":
        raise CutShort
    if what == "babble":
        sys.stdout.write("Terminating due to java.lang.OutOfMemoryError: Java heap space\n")
        sys.stdout.flush()
    data = bytes(12) + b"%16d" % path.stat().st_size + bytes(4)
    return b"A" + text(ALGORITHM.removesuffix("C" if what == "crc32" else "")) + struct.pack(">i", len(data)) + data


def answer(operation: str, request: Request, root: Path) -> bytes:
    def at(path: str) -> Path:
        return root / path.lstrip("/")

    match operation:
        case "S":
            path = at(request.text())
            return b"A" + entry(path, "") if path.exists() else refused("FileNotFoundException", "not there")
        case "L":
            return listing(at(request.text()), request.text())
        case "K":
            return b"".join(checksum(at(request.text())) for _ in range(request.number()))
        case "C":
            path, offset, length = at(request.text()), request.number("q"), request.number("q")
            if offset + length > path.stat().st_size:
                return refused("IOException", "the file is shorter than it was listed")
            return b"A" + struct.pack(">Q", 0xFFFFFFF0_FFFFFFF0 + length)
        case "P":
            return b"A" + text(f"BP-{root.name}")
    return b"A"


def main() -> None:
    root = Path(sys.argv[1])
    with root.with_suffix(".log").open("a") as log:
        print("pid", os.getpid(), file=log, flush=True)
        while head := sys.stdin.buffer.read(9):
            length, number, operation = struct.unpack(">iic", head)
            request = Request(sys.stdin.buffer.read(length - 5))
            print(operation.decode(), request.data, file=log, flush=True)
            if operation == b"O" and (root / "cannot-open").exists():
                body = refused("IllegalArgumentException", "java.net.UnknownHostException: nowhere")
            else:
                try:
                    body = answer(operation.decode(), request, root)
                except CutShort:
                    sys.stdout.buffer.write(struct.pack(">ii", 100, number) + b"A")
                    sys.exit("java.lang.IllegalStateException: cut short")
            sys.stdout.buffer.write(struct.pack(">ii", len(body) + 4, number) + body)
            sys.stdout.buffer.flush()


if __name__ == "__main__":
    main()
