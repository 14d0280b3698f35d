"""A witness's folder over HBase's RPC: what is copied, and each way in which it cannot be, by real sockets."""

from __future__ import annotations

import contextlib
import shutil
import socket
import struct
import threading
from collections.abc import Callable, Iterator
from dataclasses import replace
from pathlib import Path

import pytest

from status_tool.cli import witness
from status_tool.cli.main import main
from status_tool.clients import hbase_rpc
from status_tool.clients.config import RpcAccess, Settings
from status_tool.clients.hbase_pb2 import (
    CoprocessorServiceRequest,
    CoprocessorServiceResponse,
    ExceptionResponse,
    NameBytesPair,
    RequestHeader,
    ResponseHeader,
)
from status_tool.clients.sitefiles import SiteConfig
from status_tool.errors import ConfigurationError, ConnectionFailed
from status_tool.gather.snapshot import Snapshot
from status_tool.rules.witnessed import SETTLED_MS
from status_tool.runs.write import prune_witnesses
from status_tool.sources import arrivals
from status_tool.sources.arrivals import Mark, WitnessSource, read_arrivals
from status_tool.sources.witness_folders import WitnessAddress, WitnessStores, witness_place, witness_stores
from status_tool.vocabulary.header import Header
from status_tool.vocabulary.scope import TableFilter
from tests.pair import REPOSITORY

FOLDER = REPOSITORY / "coprocessor_stubs/src/test/resources/witness"
SENDER = "00000000-0000-0001-0000-000000000002"
MS = 1_700_000_000_000
STORE = (FOLDER / "store.id").read_text().strip()
PART = 100
Answer = Callable[[str, str], bytes | ExceptionResponse | None]
"""Of a method and its request; None: the connection ends."""


@contextlib.contextmanager
def listening(serve: Callable[[socket.socket], None]) -> Iterator[WitnessAddress]:
    """A server that does this with each connection."""

    def accept() -> None:
        with contextlib.suppress(OSError):
            while True:
                connection, _ = server.accept()
                with connection, contextlib.suppress(OSError, EOFError):
                    serve(connection)

    with socket.create_server(("127.0.0.1", 0)) as server:
        thread = threading.Thread(target=accept, daemon=True)
        thread.start()
        yield WitnessAddress("127.0.0.1", server.getsockname()[1])
        server.shutdown(socket.SHUT_RDWR)
        thread.join(10)


def take(connection: socket.socket, length: int) -> bytes:
    data = b""
    while len(data) < length:
        part = connection.recv(length - len(data))
        if not part:
            raise EOFError
        data += part
    return data


def answering(answer: Answer) -> Callable[[socket.socket], None]:
    """A server of HBase's RPC, as far as these calls need one."""

    def serve(connection: socket.socket) -> None:
        assert take(connection, 6) == b"HBas\x00\x50"
        take(connection, int.from_bytes(take(connection, 4), "big"))
        while True:
            data = take(connection, int.from_bytes(take(connection, 4), "big"))
            header, at = hbase_rpc._message(data, 0, RequestHeader)
            request, _ = hbase_rpc._message(data, at, CoprocessorServiceRequest)
            found = answer(request.call.method_name, request.call.request.decode())
            if found is None:
                return
            if isinstance(found, ExceptionResponse):
                reply = hbase_rpc._delimited(ResponseHeader(call_id=header.call_id, exception=found))
            else:
                value = NameBytesPair(name="", value=found)
                reply = hbase_rpc._delimited(ResponseHeader(call_id=header.call_id)) + hbase_rpc._delimited(
                    CoprocessorServiceResponse(region=request.region, value=value)
                )
            connection.sendall(len(reply).to_bytes(4, "big") + reply)

    return serve


def folder_of(folder: Path) -> Answer:
    def answer(method: str, request: str) -> bytes | ExceptionResponse:
        if method == "list":
            files = [one for one in folder.iterdir() if one.suffix in (".log", ".set", ".runs", ".id")]
            return "".join(f"{one.name} {one.stat().st_size}\n" for one in files).encode()
        name, at = request.split(" ")
        if not (folder / name).exists():
            return raising("java.io.FileNotFoundException", name)
        return (folder / name).read_bytes()[int(at) :][:PART]

    return answer


def copied(address: WitnessAddress, to: Path) -> Path:
    """The copy of one witness's folder."""
    (folder,) = witness_stores([address]).folders(to).values()
    return folder


def raising(name: str, words: str) -> ExceptionResponse:
    return ExceptionResponse(exception_class_name=name, stack_trace=words)


GONE = raising("java.io.FileNotFoundException", "store.id")


def failure(serve: Callable[[socket.socket], None], to: Path) -> str:
    with listening(serve) as address, pytest.raises(ConnectionFailed) as error:
        copied(address, to)
    assert str(address) in str(error.value)
    assert "\n" not in str(error.value)
    return str(error.value)


@pytest.mark.parametrize(
    ("text", "place"),
    [
        ("/var/lib/witness", Path("/var/lib/witness")),
        ("witness", Path("witness")),
        ("./host:12505", Path("./host:12505")),
        ("host:", Path("host:")),
        ("host:12505", WitnessAddress("host", 12505)),
        ("127.0.0.1:1", WitnessAddress("127.0.0.1", 1)),
    ],
)
def test_a_place_is_an_address_or_a_folder_by_its_form(text: str, place: Path | WitnessAddress) -> None:
    assert witness_place(text) == place


@pytest.mark.parametrize("text", ["host:0", "host:65536", ":12505"])
def test_a_port_that_cannot_be_is_refused(text: str) -> None:
    with pytest.raises(ConfigurationError, match="expected HOST:PORT"):
        witness_place(text)


@pytest.mark.parametrize("folder", [FOLDER, FOLDER.with_name("witness-pruned")])
def test_a_copy_has_what_the_folder_has(folder: Path, tmp_path: Path) -> None:
    """By the same files, in parts."""
    with listening(answering(folder_of(folder))) as address:
        assert read_arrivals(copied(address, tmp_path)) == read_arrivals(folder)
    assert max(one.stat().st_size for one in FOLDER.iterdir()) > PART


class _Pruned:
    """A witness that notes what it is told to prune."""

    def __init__(self, answer: bytes | ExceptionResponse = b"") -> None:
        self.told: list[str] = []
        self._answer = answer

    def __call__(self, method: str, request: str) -> bytes | ExceptionResponse | None:
        if method != "prune":
            return folder_of(FOLDER)(method, request)
        self.told.append(request)
        return self._answer


def snapshot_of(address: WitnessAddress, unwitnessed: str) -> Snapshot:
    """What `run -m` has gathered from one witness."""
    stores = witness_stores([address])
    header = Header("master", SENDER, MS, MS, barrier_issued_ms=MS, unwitnessed=unwitnessed)
    return Snapshot(header, (), (WitnessSource({FOLDER: Mark()}, SENDER, TableFilter(), stores),))


def test_the_witnesses_prune_what_was_sent_well_before_the_cut() -> None:
    """Only where nothing may be missing; a witness that cannot is asked again by the next run."""
    for answer in (b"", raising("java.io.IOException", "java.io.IOException: full")):
        witness, said = _Pruned(answer), list[str]()
        with listening(answering(witness)) as address:
            gathered = snapshot_of(address, "")
            prune_witnesses(snapshot_of(address, "it lags"), said.append)
            prune_witnesses(replace(gathered, header=replace(gathered.header, tables=("t",))), said.append)
            assert (witness.told, said) == ([], [])
            prune_witnesses(gathered, said.append)
        assert witness.told == [f"{STORE} {MS - SETTLED_MS} {SENDER} r1"]
        assert len(said) == 1


def test_a_region_that_began_again_is_not_pruned(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(arrivals, "began_again", lambda _: MS)
    witness = _Pruned()
    with listening(answering(witness)) as address:
        prune_witnesses(snapshot_of(address, ""), lambda _: None)
    assert witness.told == [f"{STORE} {MS - SETTLED_MS} {SENDER}"]


def test_a_log_that_becomes_a_set_meanwhile_is_copied_as_that(tmp_path: Path) -> None:
    """The log was listed and is gone: the folder is listed anew."""
    changing = Path(shutil.copytree(FOLDER, tmp_path / "changing"))
    (log,) = changing.glob("*.log")
    as_usual = folder_of(changing)

    def answer(method: str, request: str) -> bytes | ExceptionResponse | None:
        if request.startswith(log.name) and log.exists():
            log.rename(log.with_suffix(".set"))
        return as_usual(method, request)

    (tmp_path / "copies").mkdir()
    with listening(answering(answer)) as address:
        copy = copied(address, tmp_path / "copies")
    assert read_arrivals(copy) == read_arrivals(FOLDER)
    assert (copy / log.with_suffix(".set").name).exists()


def test_nobody_there(tmp_path: Path) -> None:
    with listening(lambda _: None) as address:
        pass
    with pytest.raises(ConnectionFailed, match=r"cannot reach the witness at .*Connection refused"):
        copied(address, tmp_path)
    with pytest.raises(ConnectionFailed, match=r"cannot reach the witness at no-such-host\.invalid:1"):
        copied(WitnessAddress("no-such-host.invalid", 1), tmp_path)


@pytest.mark.parametrize(
    "greeting", [b"", b"SSH-2.0-OpenSSH_9.2\r\n", b"HTTP/1.1 400 Bad Request\r\n\r\n", b"\0\0\0\1\x7f"]
)
def test_another_kind_of_server(greeting: bytes, tmp_path: Path) -> None:
    def serve(connection: socket.socket) -> None:
        connection.sendall(greeting)
        connection.recv(1)
        connection.shutdown(socket.SHUT_WR)
        while connection.recv(1000):
            pass

    assert "does not answer by HBase's RPC" in failure(serve, tmp_path)


def test_a_server_that_is_silent(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(hbase_rpc, "ANSWER_S", 0.2)

    def serve(connection: socket.socket) -> None:
        while connection.recv(1000):
            pass

    assert "has not answered within" in failure(serve, tmp_path)


def test_a_witness_that_ends_in_the_middle(tmp_path: Path) -> None:
    """After its ids were read, while a file is."""
    as_usual = folder_of(FOLDER)
    cut = answering(lambda method, request: None if ".log" in request else as_usual(method, request))
    assert "ended while it was read" in failure(cut, tmp_path)


def test_another_witness_in_its_place(tmp_path: Path) -> None:
    """Between the first look and the copy: the entries of the first would be missing."""
    other = Path(shutil.copytree(FOLDER, tmp_path / "other"))
    with listening(answering(folder_of(other))) as address:
        stores = witness_stores([address])
        (other / "store.id").write_text("another\n")
        with pytest.raises(ConnectionFailed, match="another witness"):
            stores.folders(tmp_path)


@pytest.mark.parametrize("listed", [b"../../etc/passwd 5\n", b"1.log\n", b"1.log x\n", b"\xff\xfe 5", b"/1.log 4\n"])
def test_a_list_that_is_none(listed: bytes, tmp_path: Path) -> None:
    """No name of another's choice becomes a file here."""
    assert "its list of files is none" in failure(answering(lambda *_: listed), tmp_path)
    assert not list(tmp_path.iterdir())


def test_an_id_that_is_a_path_leads_nowhere(tmp_path: Path) -> None:
    other = Path(shutil.copytree(FOLDER, tmp_path / "other"))
    (other / "store.id").write_text("../../elsewhere\n")
    (tmp_path / "copies").mkdir()
    with listening(answering(folder_of(other))) as address:
        assert copied(address, tmp_path / "copies").parent == tmp_path / "copies"


@pytest.mark.parametrize(
    ("exception", "words"),
    [
        ("org.apache.hadoop.hbase.exceptions.UnknownProtocolException", "is no witness that sends its folder"),
        ("org.apache.hadoop.hbase.CallQueueTooBigException", "has no room for a call"),
    ],
)
def test_an_answer_that_is_an_exception(exception: str, words: str, tmp_path: Path) -> None:
    said = raising(exception, f"{exception}: why\n\tat Somewhere")
    assert words in failure(answering(lambda *_: said), tmp_path)


def test_a_witness_that_has_no_id_yet(tmp_path: Path) -> None:
    with (
        listening(answering(lambda *_: b"1.log 0\n")) as address,
        pytest.raises(ConfigurationError, match="is not registered yet"),
    ):
        copied(address, tmp_path)


def test_the_ids_are_looked_up_in_one_list(tmp_path: Path) -> None:
    """An id that has gone since is told, too."""
    asked, as_usual = list[str](), folder_of(FOLDER)

    def answer(method: str, request: str) -> bytes | ExceptionResponse | None:
        asked.append(method)
        return as_usual(method, request)

    with listening(answering(answer)) as address:
        assert list(witness_stores([address]).places) == [STORE]
    assert asked == ["list", "read", "read"]
    listed = answering(lambda method, request: as_usual(method, request) if method == "list" else GONE)
    for lost in (listed, answering(lambda *_: GONE)):
        with listening(lost) as address, pytest.raises(ConfigurationError, match="has lost its folder"):
            witness_stores([address])


def test_a_witness_that_has_lost_its_folder_prunes_nothing() -> None:
    """`run -m` has its status by then: the next one tells."""
    with listening(answering(lambda *_: GONE)) as address:
        WitnessStores("w", {STORE: address}).prune(5, "c", ["r"])


class _Ticket:
    """A SASL client whose first message is its last, without a KDC; `tests/cluster/test_secure.py` has the real one."""

    complete, qop = False, "auth"

    def __init__(self, *_: object) -> None:
        pass

    def step(self, challenge: bytes | None) -> bytes:
        self.complete = challenge is not None
        return b"token"


def replying(reply: bytes) -> Callable[[socket.socket], None]:
    """A server that says this after the first token."""

    def serve(connection: socket.socket) -> None:
        assert take(connection, 6) == b"HBas\x00\x51"
        assert take(connection, 9) == b"\x00\x00\x00\x05token"
        connection.sendall(reply)
        if reply:
            connection.recv(1)

    return serve


@pytest.mark.parametrize(
    ("reply", "said"),
    [
        (struct.pack(">ii", 0, -88), "is without Kerberos, which the site files here demand"),
        (struct.pack(">ii3si6s", 1, 3, b"a.B", 6, b"no\nway"), r"rejected the Kerberos ticket for .* \(no\): its key"),
        (struct.pack(">ii", 0, 1 << 24), "does not answer by HBase's RPC"),
        (b"", "does not answer by HBase's RPC"),
    ],
)
def test_a_server_that_takes_no_ticket(reply: bytes, said: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(hbase_rpc, "GssapiClient", _Ticket)
    monkeypatch.setattr(hbase_rpc, "canonical", str)
    access = RpcAccess("hbase/_HOST@R")
    with listening(replying(reply)) as address, pytest.raises(ConnectionFailed, match=said) as error:
        witness_stores([address], access)
    assert "\n" not in str(error.value)


def test_site_files_say_how_hbase_is_called() -> None:
    secured = {"hbase.security.authentication": "kerberos"}
    principal = {"hbase.regionserver.kerberos.principal": "hbase/_HOST@R"}
    assert Settings(SiteConfig(principal)).hbase_rpc() == RpcAccess()
    assert Settings(SiteConfig(secured | principal)).hbase_rpc() == RpcAccess("hbase/_HOST@R", ("auth",))
    private = {"hbase.rpc.protection": "privacy,authentication", "hbase.client.netty.tls.enabled": "true"}
    access = Settings(SiteConfig(secured | principal | private)).hbase_rpc()
    assert (access.qops, access.tls) == (("auth-conf", "auth"), True)
    for site, said in (
        (secured, "set hbase.regionserver.kerberos.principal as they have it"),
        (secured | principal | {"hbase.rpc.protection": "much"}, "hbase.rpc.protection is 'much'"),
    ):
        with pytest.raises(ConfigurationError, match=said):
            Settings(SiteConfig(site)).hbase_rpc()


def test_a_user_without_rights_is_told_so(tmp_path: Path) -> None:
    name, words = "AccessDeniedException", "AccessDeniedException: u@R may not call a witness\n at"
    said = failure(answering(lambda *_: raising(f"org.apache.hadoop.hbase.security.{name}", words)), tmp_path)
    assert "does not take this user's calls (u@R may not call a witness)" in said
    assert "hbase.superuser" in said


@pytest.mark.parametrize(
    ("given", "has_ours"),
    [("", True), ("-Djava.security.auth.login.config=/jaas", True), ("-Xmx4g", False), ("-XX:MaxHeapSize=4g", False)],
)
def test_the_heap_is_ours_unless_another_is_given(given: str, has_ours: bool, monkeypatch: pytest.MonkeyPatch) -> None:
    """Java takes the command line's heap before that of JAVA_TOOL_OPTIONS."""
    started: list[list[str]] = []
    monkeypatch.setattr(witness, "java", lambda _: Path("java"))
    monkeypatch.setattr(witness, "hbase_class_path", lambda _: "")
    monkeypatch.setattr("os.execve", lambda _, command, __: started.append(command))
    monkeypatch.setenv("JAVA_TOOL_OPTIONS", given)
    place = ("--register=zk:2181/witness", "--listen=here:1", "--store=folder")
    assert main(["witness", *place]) == 0
    (command,) = started
    assert any(option.startswith("-Xmx") for option in command) == has_ours
    assert "-XX:+ExitOnOutOfMemoryError" in command
