"""Wrong inputs, what the tool says of each, and what to do: tested by `tests/unit/test_wrong_inputs.py`.

`python -m tests.wrong_inputs` prints those rows of docs/troubleshooting.md whose line does not say what to do.
"""

from __future__ import annotations

import dataclasses
import http.server
import os
import shutil
import socket
import socketserver
import threading
from collections.abc import Callable, Iterable
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path

from status_tool.status_file.reader import open_status
from status_tool.status_file.writer import StatusWriter
from tests.pair import REPOSITORY

SAMPLES = REPOSITORY / "sample_status"
MASTER, SLAVE = SAMPLES / "complete" / "master.status", SAMPLES / "complete" / "slave.status"
CHECK = f"run -i {MASTER} --slave-status {SLAVE}"
Prepare = Callable[[Path], None]
SAYS = ""
"""The line itself says what to do, so the page leaves it out."""


def _content(name: str, content: bytes, mode: int = 0o600) -> Prepare:
    def prepare(folder: Path) -> None:
        (folder / name).write_bytes(content)
        (folder / name).chmod(mode)

    return prepare


def _both(one: Prepare, other: Prepare) -> Prepare:
    def prepare(folder: Path) -> None:
        one(folder)
        other(folder)

    return prepare


def _cut_short(folder: Path) -> None:
    whole = MASTER.read_bytes()
    (folder / "f").write_bytes(whole[: len(whole) // 2])


def _changed(folder: Path) -> None:
    whole = MASTER.read_bytes()
    middle = len(whole) // 3
    (folder / "f").write_bytes(whole[:middle] + bytes([whole[middle] ^ 1]) + whole[middle + 1 :])


def _parquet(folder: Path) -> None:
    import pyarrow as pa
    import pyarrow.parquet as pq

    pq.write_table(pa.table({"a": [1]}), folder / "f")


def _huge(folder: Path) -> None:
    """Without taking the room."""
    with (folder / "f").open("wb") as file:
        file.truncate(1 << 40)


def _socket(folder: Path) -> None:
    here = Path.cwd()
    os.chdir(folder)  # the path of a socket is short
    with socket.socket(socket.AF_UNIX) as held:
        held.bind("f")
    os.chdir(here)


def _nothing(_: Path) -> None:
    pass


def _copied(folder: Path) -> None:
    shutil.copy(MASTER, folder / "f")


def _answers_http(folder: Path) -> None:
    """What is no HTTP either."""

    class Handler(socketserver.BaseRequestHandler):
        def handle(self) -> None:
            self.request.recv(1000)
            self.request.sendall(b"HTTP/1.1 400 Bad Request\r\nConnection: close\r\n\r\n")

    _serve(folder, socketserver.ThreadingTCPServer(("127.0.0.1", 0), Handler))


def _safe_mode(folder: Path) -> None:
    """A NameNode that has just started and refuses: shown by any path."""
    answer = (
        b'{"RemoteException":{"exception":"SafeModeException","javaClassName":'
        b'"org.apache.hadoop.hdfs.server.namenode.SafeModeException","message":"Name node is in safe mode."}}'
    )

    class Handler(http.server.BaseHTTPRequestHandler):
        def do_GET(self) -> None:
            self.send_response(403)
            self.send_header("Content-Type", "application/json")
            self.end_headers()
            self.wfile.write(answer)

        def log_message(self, *_: object) -> None:
            pass

    _serve(folder, http.server.ThreadingHTTPServer(("127.0.0.1", 0), Handler))


def _thrift_2(folder: Path) -> None:
    """What a server of version 2 says of a method that only version 1 has."""

    class Handler(socketserver.BaseRequestHandler):
        def handle(self) -> None:
            call = self.request.recv(1000)
            size = int.from_bytes(call[4:8])
            name, number = call[8 : 8 + size], call[8 + size : 12 + size]
            words = b"Invalid method name: '" + name + b"'"
            exception = b"\x0b\x00\x01" + len(words).to_bytes(4) + words + b"\x08\x00\x02\x00\x00\x00\x01\x00"
            self.request.sendall(b"\x80\x01\x00\x03" + call[4:8] + name + number + exception)

    _serve(folder, socketserver.ThreadingTCPServer(("127.0.0.1", 0), Handler))


def _one_cluster(folder: Path) -> None:
    """The slave's status as if it were of the master's cluster."""
    with open_status(MASTER) as master, open_status(SLAVE) as slave:
        header = dataclasses.replace(slave.header, cluster_id=master.header.cluster_id)
        with StatusWriter(folder / "f", header) as writer:
            for batch in slave.rows():
                writer.write(batch)


def _serve(folder: Path, server: socketserver.TCPServer) -> None:
    threading.Thread(target=server.serve_forever, daemon=True).start()
    (folder / "PORT").write_text(str(server.server_address[1]))


def _silent_port(folder: Path) -> None:
    with socket.socket() as held:
        held.bind(("127.0.0.1", 0))
        (folder / "PORT").write_text(str(held.getsockname()[1]))


@dataclass(frozen=True)
class Wrong:
    """A wrong input."""

    what: str
    line: str
    """The command line; PORT stands for a server's, files are in the working directory."""
    said: str
    """What the one line on stderr has, with … for what varies."""
    todo: str
    prepare: Prepare = _nothing


WRONG: tuple[Wrong, ...] = (
    Wrong("FILE is not there", "run -i f", "there is no status file …", "create it, or correct the name"),
    Wrong("FILE is empty", "run -i f", "… is empty", "copy it again", _content("f", b"")),
    Wrong("FILE is cut short", "run -i f", "f is truncated: copy it again", SAYS, _cut_short),
    Wrong("a byte of FILE has changed", "run -i f", "… has been altered or damaged", "copy it again", _changed),
    Wrong(
        "FILE is another tool's Parquet",
        "run -i f",
        "… is not a status file: another program wrote this Parquet file",
        "give what `run -m -o` wrote",
        _parquet,
    ),
    Wrong(
        "FILE is some text",
        "run -i f",
        "… is not a status file",
        "give what `run -m -o` wrote",
        _content("f", b"hello\n"),
    ),
    Wrong("FILE is huge, and none", "run -i f", "… is not a status file", "give what `run -m -o` wrote", _huge),
    Wrong(
        "FILE is a folder",
        "run -i .",
        "… is a folder, not a status file",
        "name a file; save what comes through a pipe",
    ),
    Wrong(
        "FILE is a pipe",
        "run -i f",
        "… is not a regular file",
        "name a file; save what comes through a pipe",
        lambda at: os.mkfifo(at / "f"),
    ),
    Wrong(
        "FILE is a socket",
        "run -i f",
        "… is not a regular file",
        "name a file; save what comes through a pipe",
        _socket,
    ),
    Wrong(
        "FILE is a device", "run -i /dev/zero", "… is not a regular file", "name a file; save what comes through a pipe"
    ),
    Wrong(
        "the two sides exchanged",
        f"run -i {SLAVE} --slave-status {MASTER}",
        "… is a slave's status, but a master's is needed here",
        SAYS,
    ),
    Wrong(
        "the same side twice",
        f"run -i {MASTER} --slave-status {MASTER}",
        "… is a master's status, but a slave's is needed here",
        SAYS,
    ),
    Wrong(
        "the same cluster twice", f"run -i {MASTER} --slave-status f", "FILE is this cluster's own", SAYS, _one_cluster
    ),
    Wrong("letters that contradict each other", "run -m -o f -i g", "-i checks FILE on the slave", SAYS),
    Wrong("no letter", "run", "nothing to do: -m -o FILE on the master", SAYS),
    Wrong("an option of another form", "run -m -o f --report r", "--report does not go with -m -o FILE", SAYS),
    Wrong("a word that is no number", "run -i f --wait soon", "Invalid value for '--wait'", SAYS),
    Wrong(
        "a number beyond all measure",
        "run -i f --max-problems 99999999999999999999",
        "Invalid value for '--max-problems'",
        SAYS,
    ),
    Wrong("a time in seconds", "run -i f -s 1700000000", "looks like seconds", SAYS),
    Wrong("an output that is an input", "run -i f --report f", "--report f is what -i reads", SAYS, _copied),
    Wrong("two outputs in one file", "run -i f --report x --metrics ./x", "name the same file", SAYS),
    Wrong(
        "an output's folder is not there",
        "run -i f --report no/r",
        "there is no folder",
        "create it, or correct the name",
    ),
    Wrong(
        "an output that is a device",
        "run -i f --report /dev/full",
        "… is not a regular file",
        "name a file; save what comes through a pipe",
    ),
    Wrong(
        "-f without a path",
        "run -m -o o -f f",
        "no path in it",
        "absolute paths, one a line, in UTF-8",
        _content("f", b"# none\n"),
    ),
    Wrong(
        "-f that is no text",
        "run -m -o o -f f",
        "is not UTF-8 text",
        "absolute paths, one a line, in UTF-8",
        _content("f", b"\xff\xfe"),
    ),
    Wrong(
        "-f with a relative path",
        "run -m -o o -f f",
        "is not an absolute HDFS path",
        "absolute paths, one a line, in UTF-8",
        _content("f", b"x"),
    ),
    Wrong(
        "no such --conf-dir", "config --conf-dir no", "--conf-dir …: no such folder", "create it, or correct the name"
    ),
    Wrong(
        "a site file that is no XML",
        "config --conf-dir .",
        "… is not valid XML",
        "copy it again",
        _content("hbase-site.xml", b"<configuration>"),
    ),
    Wrong(
        "a site file of something else",
        "config --conf-dir .",
        "… is not a site file: its outermost element is",
        "copy it again",
        _content("core-site.xml", b"<html/>"),
    ),
    Wrong(
        "a key that others may read",
        "run -i f --sign-key key",
        "must belong to you and be readable by you only: chmod 600 it",
        SAYS,
        _content("key", b"k" * 40, 0o644),
    ),
    Wrong("a key that is too short", "run -i f --sign-key key", "holds no key of", SAYS, _content("key", b"k")),
    Wrong(
        "FILE is not signed",
        "run -i f --sign-key key",
        "f is not signed: write it with --sign-key FILE",
        SAYS,
        _both(_copied, _content("key", b"k" * 40)),
    ),
    Wrong(
        "a host that nobody knows",
        "shutdown-time show --thrift host.invalid:9090",
        "cannot reach the HBase Thrift server at host.invalid:9090",
        SAYS,
    ),
    Wrong(
        "a port without a server",
        "topology --thrift 127.0.0.1:PORT --zookeeper 127.0.0.1:PORT/hbase",
        "cannot reach ZooKeeper at 127.0.0.1:…",
        SAYS,
        _silent_port,
    ),
    Wrong(
        "a web server instead of Thrift",
        "shutdown-time show --thrift 127.0.0.1:PORT",
        "does not answer as the binary protocol",
        SAYS,
        _answers_http,
    ),
    Wrong(
        "a Thrift server of version 2",
        "shutdown-time show --thrift 127.0.0.1:PORT",
        "is not an HBase Thrift server of version 1 (Invalid method name: …): start `hbase thrift`, not",
        SAYS,
        _thrift_2,
    ),
    Wrong(
        "a NameNode in safe mode",
        "run -m -o o --only hdfs -f paths --webhdfs http://127.0.0.1:PORT --hdfs-client webhdfs",
        "cannot reach the NameNode at … (SafeModeException: …",
        SAYS,
        _both(_safe_mode, _content("paths", b"/data\n")),
    ),
    Wrong(
        "too little memory for Spark",
        f"{CHECK} --spark-conf spark.driver.memory=1k",
        "Spark cannot start: Too small maximum heap",
        SAYS,
    ),
    Wrong(
        "a profile that no file has",
        "--profile no run -i f",
        "--profile …: there is no … that could have it",
        "create it, or correct the name",
    ),
)


EXPIRED = Wrong("an expired Kerberos ticket", "run -m -o FILE", "the Kerberos ticket has expired (klist): kinit", SAYS)
"""Tested by `tests/cluster/test_secure.py`, as it takes a KDC."""


def line_of(wrong: Wrong, folder: Path) -> list[str]:
    """The command line, once everything that it names is there."""
    wrong.prepare(folder)
    port = ""
    with suppress(FileNotFoundError):
        port = (folder / "PORT").read_text()
        (folder / "PORT").unlink()
    return wrong.line.replace("PORT", port).split()


def table() -> str:
    """Rows of docs/troubleshooting.md: inputs that are mended in the same way share one."""
    by_todo: dict[str, list[Wrong]] = {}
    for wrong in WRONG:
        by_todo.setdefault(wrong.todo, []).append(wrong)
    by_todo.pop(SAYS)
    return "".join(
        f"| {_said(alike)} | {_listed('; ', (one.what for one in alike))} | {todo} |\n"
        for todo, alike in by_todo.items()
    )


def _said(alike: list[Wrong]) -> str:
    return _listed(", ", (f"`{one.said}`" for one in alike))


def _listed(separator: str, parts: Iterable[str]) -> str:
    """Each part once."""
    return separator.join(dict.fromkeys(parts))


if __name__ == "__main__":
    print(table(), end="")
