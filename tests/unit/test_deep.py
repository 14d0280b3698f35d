"""`run -i --deep` against a small NameNode of each side: which files it reads, how often, and what becomes of them."""

from __future__ import annotations

import json
from collections.abc import Iterator
from contextlib import ExitStack
from dataclasses import dataclass
from http.server import BaseHTTPRequestHandler
from pathlib import Path
from typing import Any, NoReturn
from urllib.parse import parse_qs, unquote, urlsplit

import pytest

from status_tool.cli.main import main
from status_tool.clients import patience
from status_tool.errors import EXIT_ERROR, ConnectionFailed
from tests.http_server import Answer, ended, serve, url_of
from tests.unit.test_webhdfs import ALGORITHM, FakeHdfs

OTHER_LAYOUT = ("MD5-of-0MD5-of-512CRC32", bytes(32))
NO_SUM = "PathIOException: `/data/f': Fail to get block MD5 for LocatedBlock{…}"
FORBIDDEN = "AccessControlException: Permission denied by the key provider"


@dataclass
class Pair:
    """Two file systems of the same files, and FILE of the first."""

    master: FakeHdfs
    slave: FakeHdfs
    folder: Path
    capsys: pytest.CaptureFixture[str]

    def write(self, *paths: str, alike: bool = True) -> None:
        """Write FILE with the content's CRC32C; then let the slave's checksums be comparable, or not."""
        if not alike:
            self.slave.checksum = lambda length: OTHER_LAYOUT
        (self.folder / "paths").write_text("\n".join(paths))
        assert self._run("-m", "-o", "-f", str(self.folder / "paths"), at=self.master) == 0

    def check(self, *options: str) -> tuple[int, dict[str, Any]]:
        """The exit code, and what is printed."""
        code = self._run("-i", "--json", *options, at=self.slave)
        document: dict[str, Any] = json.loads(self.capsys.readouterr().out)
        return code, document

    def files(self, *options: str) -> tuple[int, dict[str, int]]:
        """The exit code, and the number of files of each status that any has."""
        code, document = self.check(*options)
        return code, {status: count for status, count in document["hdfs"]["files"].items() if count}

    def _run(self, mode: str, *options: str, at: FakeHdfs) -> int:
        self.capsys.readouterr()
        status, here = str(self.folder / "status"), ("--conf-dir", str(self.folder), "--webhdfs", at.url)
        before = [mode, *options[:1], status, *options[1:]] if mode == "-m" else [mode, status, *options]
        return main(["run", *before, "--deep", "--only", "hdfs", *here])


@pytest.fixture
def pair(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> Iterator[Pair]:
    """`/data/f` and `/data/g` on both sides."""
    with ExitStack() as stack:
        master, slave = (FakeHdfs({"/data/f": b"abc", "/data/g": b"12345"}) for _ in range(2))
        serve_it(master, stack)
        serve_it(slave, stack)
        yield Pair(master, slave, tmp_path, capsys)


def serve_it(hdfs: FakeHdfs, stack: ExitStack) -> None:
    def answer(request: BaseHTTPRequestHandler) -> Answer:
        parts = urlsplit(request.path)
        query = parse_qs(parts.query)
        path = unquote(parts.path.removeprefix("/webhdfs/v1"))
        status, found = hdfs.answer(query["op"][0], path, query) if "op" in query else (404, b"")
        return status, {}, found if isinstance(found, bytes) else json.dumps(found).encode()

    server = serve(answer, keeps_alive=True)
    hdfs.url = url_of(server)
    stack.enter_context(ended(server))


@pytest.mark.spark
@pytest.mark.usefixtures("warm_spark")
@pytest.mark.parametrize("rate", [(), ("--rate", "1000")])
@pytest.mark.parametrize("changes", [False, True])
def test_a_file_refused_or_changed_while_read_is_unverifiable(pair: Pair, rate: tuple[str, ...], changes: bool) -> None:
    """Whether executors read it or this process."""
    pair.write("/data", alike=False)
    if changes:
        pair.slave.after["CONTENT"] = lambda: pair.slave.files.update({"/data/g": b"123456"})
    else:
        pair.slave.trouble["CONTENT"] = [(403, FORBIDDEN)]
    assert pair.files(*rate) == (3, {"match": 1, "unverifiable": 1})


@pytest.mark.spark
@pytest.mark.usefixtures("warm_spark")
def test_an_error_of_an_executor_that_reads_is_the_tools_own(pair: Pair, monkeypatch: pytest.MonkeyPatch) -> None:
    """An outage, say, ends the run as it does elsewhere: by one line that tells it."""

    def down(*_: object) -> NoReturn:
        raise ConnectionFailed("no NameNode answers")

    pair.write("/data", alike=False)
    monkeypatch.setattr("status_tool.spark.deep._read_rows", down)
    code, document = pair.check()
    assert (code, document["error"]) == (EXIT_ERROR, "no NameNode answers")


@pytest.mark.spark
@pytest.mark.usefixtures("warm_spark")
@pytest.mark.parametrize(
    ("content", "expected"), [(b"12345", (0, {"match": 2})), (b"1234X", (1, {"match": 1, "mismatch": 1}))]
)
def test_content_settles_differing_checksums(pair: Pair, content: bytes, expected: tuple[int, dict[str, int]]) -> None:
    """`concat` gives a file other blocks, and so another checksum. All others match."""
    pair.write("/data")
    pair.slave.files["/data/g"] = content
    pair.slave.checksum = lambda length: (ALGORITHM, bytes(12) + b"%16d" % (99 if length == 5 else length) + bytes(4))
    assert pair.files() == expected
    assert pair.slave.requests["CONTENT"] == 1, "only what differs is read"


@pytest.mark.spark
@pytest.mark.usefixtures("warm_spark")
@pytest.mark.parametrize(
    ("refused", "expected"), [((), (0, {"match": 2})), ((403, FORBIDDEN), (3, {"match": 1, "unverifiable": 1}))]
)
def test_content_settles_a_file_of_the_slave_with_blocks_of_unlike_checksums(
    pair: Pair,
    monkeypatch: pytest.MonkeyPatch,
    refused: tuple[int, str] | tuple[()],
    expected: tuple[int, dict[str, int]],
) -> None:
    """Its listing says that it is unreadable, in the words for a lost block."""
    monkeypatch.setattr(patience, "SETTLING_S", 0.2)
    pair.write("/data")
    answer = pair.slave.answer

    def without_sum(op: str, path: str, query: dict[str, list[str]]) -> tuple[int, Any]:
        if op == "DATA" and path == "/data/g":
            name, _, words = NO_SUM.partition(": ")
            return 500, {"RemoteException": {"exception": name, "message": words}}
        return answer(op, path, query)

    monkeypatch.setattr(pair.slave, "answer", without_sum)
    pair.slave.trouble["CONTENT"] = [refused] if refused else []
    assert pair.files() == expected


@pytest.mark.spark
@pytest.mark.usefixtures("warm_spark")
def test_a_local_file_that_differs_stays_a_mismatch_beside_what_is_read_in_hdfs(pair: Pair) -> None:
    """It has been read, and in HDFS its path is nobody's or another file's."""
    pair.master.files["/local/h"] = b"12345"
    pair.write("/data", "/local", alike=False)
    (pair.folder / "local").mkdir()
    (pair.folder / "local" / "h").write_bytes(b"1234X")
    moved = ("--map-path", f"/local=file://{pair.folder}/local")
    assert pair.files(*moved) == (1, {"match": 2, "mismatch": 1})


@pytest.mark.spark
@pytest.mark.usefixtures("warm_spark")
@pytest.mark.parametrize("most", [0, 50_000])
def test_content_is_read_once(pair: Pair, monkeypatch: pytest.MonkeyPatch, most: int) -> None:
    """Whether this process holds the slave's rows or Spark reads them from a file, and whatever is made of them."""
    monkeypatch.setattr("status_tool.runs.slave_side.MOST_ROWS", most)
    pair.write("/data", alike=False)
    assert pair.files("-d", "--debug-dir", str(pair.folder / "dump")) == (0, {"match": 2})
    assert pair.slave.requests["CONTENT"] == 2


@pytest.mark.parametrize("content", [b"123456", None])
def test_only_what_content_settles_is_read(pair: Pair, monkeypatch: pytest.MonkeyPatch, content: bytes | None) -> None:
    """Nor is Spark started: a file of another size is a mismatch, and one that cannot be read is told."""

    def started(*_: object) -> NoReturn:
        raise AssertionError

    monkeypatch.setattr("status_tool.spark.session.spark_session", started)
    monkeypatch.setattr("status_tool.spark.deep.map_in_arrow", started)
    pair.write("/data")
    if content is None:
        pair.slave.trouble["DATA"] = [(403, FORBIDDEN)]
    else:
        pair.slave.files["/data/g"] = content
    status = "unverifiable" if content is None else "mismatch"
    assert pair.files() == (3 if content is None else 1, {"match": 1, status: 1})
    assert not pair.slave.requests["CONTENT"]
