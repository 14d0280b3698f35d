"""HDFS by Hadoop's own client, in a Java process beside this one that many requests go to at once.

WebHDFS makes a DataNode open a client of its own for each checksum; Hadoop's asks the NameNode
over one kept connection and the DataNode by one short stream. `io.github.statustool.hdfs.HdfsReader` is the other end
of the pipe, with the jars that Spark ships. It is given the site files' properties, so that name services, failover,
Kerberos and encryption are what Hadoop makes of them; and it ends when this process does, however that ends.
"""

from __future__ import annotations

import atexit
import getpass
import itertools
import os
import struct
import subprocess
import tempfile
import threading
import time
from collections.abc import Iterator, Mapping, Sequence
from concurrent.futures import Future
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from status_tool.clients.class_archive import NewArchive, jvm_option
from status_tool.clients.config import Settings
from status_tool.clients.file_client import FileClient, SharedClients
from status_tool.clients.hdfscli import Refused, refused
from status_tool.clients.java import hadoop_class_path, java, last_words, realms_option
from status_tool.clients.kerberos import make_ready
from status_tool.clients.mount_table import Mounts
from status_tool.clients.patience import PATIENCE_S, is_cut_off
from status_tool.clients.webhdfs import Load, WebHdfs
from status_tool.errors import ConnectionFailed, StatusToolError

WHOSE = "Hadoop's own client"
_MAIN = "io.github.statustool.hdfs.HdfsReader"
_JVM_OPTIONS = (
    *("-Xmx256m", "-XX:+UseSerialGC", "-XX:TieredStopAtLevel=1", "-XX:+ExitOnOutOfMemoryError"),
    "-Xlog:disable",  # what a JVM says of an archive of classes goes to stdout, among the answers
)
"""It waits rather than computes, so compiling less pays at any number of files (docs/performance.md)."""
_ENTRY = struct.Struct(">cqqq?")
_TYPES = {b"F": "FILE", b"D": "DIRECTORY", b"S": "SYMLINK"}
FILES_AT_ONCE = 64


@dataclass(frozen=True, slots=True)
class RpcEndpoint:
    """A file system by its RPC addresses: `hdfs://` and a name service or a NameNode, and what Hadoop needs to know.

    Or a view of several, `viewfs://` and its name.
    """

    filesystem: str
    user: str
    site: tuple[tuple[str, str], ...] = field(default=(), repr=False)
    """The properties of the site files, which may name secrets."""
    mounts: Mounts = field(default=(), repr=False)
    """Mount points of a view."""

    def __str__(self) -> str:
        return self.filesystem


def hdfs_user() -> str:
    """Return the user by Hadoop's rule without Kerberos: `$HADOOP_USER_NAME`, else the login name."""
    return os.environ.get("HADOOP_USER_NAME") or getpass.getuser()


def rpc_endpoint_of(settings: Settings) -> RpcEndpoint | None:
    """Return the RPC endpoint of the HDFS to check, for this process's user; None if its RPC addresses are not known.

    Raises `ConfigurationError` for a mount table that cannot be read.
    """
    rpc = settings.rpc()
    return None if rpc is None else RpcEndpoint(rpc[0], hdfs_user(), rpc[1], settings.mounts())


class NativeHdfs(FileClient):
    """Hadoop's client for many threads, with the methods of `WebHdfs` that listing and checking files need.

    Every call raises `ConnectionFailed` when no NameNode has answered for `patience_s`, and `Refused` for what
    concerns the path alone.
    """

    files_at_once = FILES_AT_ONCE
    """Number of checksums in one request."""

    def __init__(self, endpoint: RpcEndpoint, load: Load = Load(), patience_s: float = PATIENCE_S) -> None:
        super().__init__(load.concurrency, patience_s)
        self.endpoint, self._load = endpoint, load

    def stop(self) -> None:
        """Abort all waits, and end the Java process."""
        super().stop()
        _end(self.endpoint, self._load)

    def _status(self, path: str) -> dict[str, Any]:
        return self._ask(b"S", _text(path)).entry()

    def summary(self, path: str) -> tuple[int, int]:
        """Return files and bytes below a path, as the NameNode counts them."""
        answer = self._ask(b"N", _text(path))
        return answer.long(), answer.long()

    def _page(self, path: str, after: str) -> tuple[list[dict[str, Any]], int]:
        answer = self._ask(b"L", _text(path), _text(after))
        remaining = answer.number()
        return [answer.entry() for _ in range(answer.number())], remaining

    def checksums(self, paths: Sequence[str]) -> list[tuple[str, bytes] | Refused]:
        """Return the algorithm's name and the raw bytes of each file's checksum, or why there is none."""
        found, deadline, turn = self._checksums(paths), self._patience.deadline(), 0
        while again := [
            at for at, one in enumerate(found) if isinstance(one, Refused) and self._is_open(one, deadline)
        ]:
            self._patience.pause(turn)
            turn += 1
            for at, one in zip(again, self._checksums([paths[at] for at in again]), strict=True):
                found[at] = one
        if any(isinstance(one, Refused) and is_cut_off(one) for one in found):
            self.status("/")  # no row where no NameNode answers
        return found

    def crc(self, path: str, offset: int, length: int) -> int:
        """Return both CRCs of a range of the content. Raises `Refused`, also where the file ends before."""
        return self._ask(b"C", _text(path), struct.pack(">qq", offset, length)).long() & 0xFFFFFFFF_FFFFFFFF

    def pool_id(self, path: str) -> str:
        """Return the id of the block pool that a file's content is in; empty for a file without any."""
        return self._ask(b"P", _text(path)).text()

    def _is_open(self, refusal: Refused, deadline: float) -> bool:
        """Return True if the request is to be retried."""
        return (is_cut_off(refusal) and time.monotonic() < deadline) or self._patience.may_settle(refusal)

    def _checksums(self, paths: Sequence[str]) -> list[tuple[str, bytes] | Refused]:
        answer = _process(self.endpoint, self._load).ask(b"K", struct.pack(">i", len(paths)), *map(_text, paths))
        return [answer.refusal() or (answer.text(), answer.data()) for _ in paths]

    def _ask(self, operation: bytes, *fields: bytes) -> _Answer:
        """Return the answer of the NameNode (or of DataNodes). Retries while no NameNode can be reached.

        Raises `Refused`, `ConnectionFailed`.
        """
        deadline, turn = self._patience.deadline(), 0
        while True:
            answer = _process(self.endpoint, self._load).ask(operation, *fields)
            refusal = answer.refusal()
            if refusal is None:
                return answer
            if is_cut_off(refusal) and time.monotonic() >= deadline:
                raise ConnectionFailed(
                    f"cannot reach the NameNode at {self.endpoint} ({refusal}): is it running, and is its RPC port "
                    "open here? --hdfs-client webhdfs reads by HTTP"
                )
            if not (is_cut_off(refusal) or self._patience.may_settle(refusal)):
                raise refusal
            self._patience.pause(turn)
            turn += 1


Hdfs = WebHdfs | NativeHdfs
"""Either client."""


class _Answer:
    """The body of an answer, read from its start; see `Answer.java`."""

    def __init__(self, data: bytes) -> None:
        self._data, self._at = data, 0

    def refusal(self) -> Refused | None:
        """Return why the answer holds nothing else to read; None if it does."""
        self._at += 1
        if self._data[self._at - 1 : self._at] == b"A":
            return None
        name = self.text()
        return refused(name, self.text())

    def number(self) -> int:
        (number,) = struct.unpack_from(">i", self._data, self._at)
        self._at += 4
        return int(number)

    def long(self) -> int:
        (number,) = struct.unpack_from(">q", self._data, self._at)
        self._at += 8
        return int(number)

    def data(self) -> bytes:
        length = self.number()
        self._at += length
        return self._data[self._at - length : self._at]

    def text(self) -> str:
        return self.data().decode("utf-8", "replace")

    def entry(self) -> dict[str, Any]:
        """Return a file's status under WebHDFS's names."""
        name = self.text()
        kind, length, modified, block_size, encrypted = _ENTRY.unpack_from(self._data, self._at)
        self._at += _ENTRY.size
        return {
            "pathSuffix": name,
            "type": _TYPES[kind],
            "length": length,
            "modificationTime": modified,
            "blockSize": block_size,
            "encBit": encrypted,
            "ecPolicy": self.text(),
        }


class _Process:
    """The Java process; its answers are awaited by number. Ends with `end`, or with this process."""

    def __init__(
        self, command: Sequence[str], environment: Mapping[str, str], archive: NewArchive | None = None
    ) -> None:
        self._archive = archive
        # Nobody reads it while the process runs: a JVM that says much would stop at a full pipe.
        self._console = tempfile.TemporaryFile()  # noqa: SIM115 as long as the process
        try:
            self._process = subprocess.Popen(
                command,
                stdin=subprocess.PIPE,
                stdout=subprocess.PIPE,
                stderr=self._console,
                env=environment,
                process_group=0,  # Ctrl-C is this process's business
            )
        except OSError as error:
            raise ConnectionFailed(f"{WHOSE} cannot start: {command[0]}: {error.strerror}") from None
        self._lock = threading.Lock()
        self._numbers = itertools.count(1)
        self._waiting: dict[int, Future[_Answer]] = {}
        self._over: str | None = None
        threading.Thread(target=self._listen, name="hdfs-answers", daemon=True).start()

    @property
    def has_ended(self) -> bool:
        return self._over is not None

    def ask(self, operation: bytes, *fields: bytes) -> _Answer:
        """Send a request and return the answer. Raises `ConnectionFailed` if the process has ended."""
        task = Future[_Answer]()
        body = b"".join(fields)
        with self._lock:
            if self._over is not None:
                raise ConnectionFailed(self._over)
            number = next(self._numbers)
            self._waiting[number] = task
            # A write may block here while `_listen` needs the lock. That ends by itself: the Java side queues every
            # request at once (`Requests.serve`) and never waits for its answers to be read.
            with suppress(OSError):  # It has ended: `_listen` says why.
                assert self._process.stdin is not None
                self._process.stdin.write(struct.pack(">iic", len(body) + 5, number, operation) + body)
                self._process.stdin.flush()
        return task.result()

    def end(self, *, at_once: bool = True) -> None:
        """Kill the process; if there is time, wait until one that archives its classes has done so."""
        if self._archive is not None and not at_once:
            # Later runs start in less time; this one does not need it.
            with suppress(OSError, subprocess.TimeoutExpired):
                self._archive.finish(self._process)
        self._process.kill()
        self._process.wait()

    def _listen(self) -> None:
        stream = self._process.stdout
        assert stream is not None
        while len(head := stream.read(8)) == 8:
            length, number = struct.unpack(">ii", head)
            with self._lock:
                task = self._waiting.get(number)
            # A JVM that runs out of memory says so on stdout.
            if task is None or length < 4 or len(data := stream.read(length - 4)) < length - 4:
                break
            with self._lock:
                del self._waiting[number]  # not before: a task whose answer is cut short still has to fail
            task.set_result(_Answer(data))
        self._process.kill()
        code = self._process.wait()
        why = last_words(self._console) or f"its Java process ended with {code}; is JAVA_HOME a JDK 17?"
        with self._lock:
            self._over = f"Hadoop's own client has ended: {why[:300]}"
            left = list(self._waiting.values())
        for task in left:
            task.set_exception(ConnectionFailed(self._over))


_SHARED: SharedClients[NativeHdfs] = SharedClients()
_PROCESSES: dict[tuple[RpcEndpoint, Load], _Process] = {}
# `_end_all` calls `_end`, which takes it again.
_LOCK = threading.RLock()


def native_hdfs(endpoint: RpcEndpoint, load: Load = Load()) -> NativeHdfs:
    """Return the process's one client for this endpoint and load."""
    return _SHARED.of((endpoint, load), lambda: NativeHdfs(endpoint, load))


class _Runs:
    """Counts the runs that may start Java processes. Once one of them was interrupted, no further process starts."""

    under_way = 0
    interrupted = False


@contextmanager
def no_process_left() -> Iterator[None]:
    """End all Java processes that any thread started inside the block, however the block ends.

    Where the block is interrupted, a thread that still works on it does not get another one.
    """
    with _LOCK:
        # An interruption counts until the last run that it hit has ended; the next round of a service may start
        # processes.
        _Runs.interrupted = _Runs.interrupted and _Runs.under_way > 0
        _Runs.under_way += 1
    try:
        yield
    except StatusToolError:
        # This is no interruption: other runs that are under way may still start Java.
        raise
    except BaseException:
        _Runs.interrupted = True
        raise
    finally:
        _Runs.under_way -= 1
        # An interruption ends them at once: threads that wait for an answer get an error.
        if _Runs.interrupted or not _Runs.under_way:
            _end_all()


@atexit.register
def _end_all() -> None:
    """End all Java processes. Threads that wait for an answer get an error."""
    with _LOCK:
        for key in list(_PROCESSES):
            _end(*key)


def _process(endpoint: RpcEndpoint, load: Load) -> _Process:
    """Return the process that serves all clients of this endpoint and load. Starts one if there is none.

    Raises `ConfigurationError` if it cannot be started, `ConnectionFailed` where it does not open the file system.
    """
    with _LOCK:
        found = _PROCESSES.get((endpoint, load))
        if found is None or found.has_ended:
            if _Runs.interrupted:
                raise ConnectionFailed(f"{WHOSE} is not started again: the run was interrupted")
            found = _PROCESSES[endpoint, load] = _started(endpoint, load)
        return found


def _command() -> tuple[Sequence[str], NewArchive | None]:
    """Return the command, and the archive of classes that the process writes at its end if there is none yet."""
    program, class_path = str(java(WHOSE)), hadoop_class_path()
    jars = [Path(jar) for jar in class_path.split(os.pathsep)]
    # A folder of classes cannot be archived.
    option, archive = jvm_option("hdfs", jars) if all(jar.is_file() for jar in jars) else ("", None)
    return (program, *filter(None, [option]), *_JVM_OPTIONS, *realms_option(), "-cp", class_path, _MAIN), archive


def _started(endpoint: RpcEndpoint, load: Load) -> _Process:
    if dict(endpoint.site).get("hadoop.security.authentication", "").strip().lower() == "kerberos":
        make_ready()
    # Hadoop takes the user from there, unless the site files ask for Kerberos.
    command, archive = _command()
    process = _Process(command, {**os.environ, "HADOOP_USER_NAME": endpoint.user}, archive)
    head = struct.pack(">id", load.concurrency, load.rate or 0.0) + _text(endpoint.filesystem)
    try:
        refusal = process.ask(b"O", head, _pairs(endpoint.site), _pairs(endpoint.mounts)).refusal()
    except BaseException:
        # Nobody else knows the process yet: `_PROCESSES` gets it only once it is open.
        process.end()
        raise
    if refusal is not None:
        process.end()
        raise ConnectionFailed(f"Hadoop's own client cannot open {endpoint}: {refusal.name}: {refusal}")
    return process


def _end(endpoint: RpcEndpoint, load: Load) -> None:
    with _LOCK:
        process = _PROCESSES.pop((endpoint, load), None)
    if process is not None:
        process.end(at_once=_Runs.interrupted)


def _pairs(pairs: Sequence[tuple[str, str]]) -> bytes:
    return struct.pack(">i", len(pairs)) + b"".join(_text(text) for pair in pairs for text in pair)


def _text(text: str) -> bytes:
    data = text.encode("utf-8", "surrogatepass")
    return struct.pack(">i", len(data)) + data
