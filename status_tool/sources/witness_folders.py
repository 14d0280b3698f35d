"""Folders of witnesses: those of this machine, and copies of those that a running witness sends."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path

from status_tool.clients.config import PLAIN_RPC, RpcAccess, host_port
from status_tool.clients.hbase_rpc import CallRefused, HBaseRpc, coprocessor_call
from status_tool.errors import ConfigurationError, ConnectionFailed, OutputError
from status_tool.printable import safe

STORE_ID, CLUSTER_ID = "store.id", "cluster.id"
_SERVICE = "Witness"
"""As `io.github.statustool.witness.FolderService` has it."""
_FILE = re.compile(r"[0-9]+\.(log|set)|[0-9]+-[0-9]+\.runs|(store|cluster)\.id")
_GONE = "FileNotFoundException"
_ATTEMPTS = 10


@dataclass(frozen=True, slots=True)
class WitnessAddress:
    """`HOST:PORT` of a witness that runs."""

    host: str
    port: int

    def __str__(self) -> str:
        return f"{self.host}:{self.port}"


WitnessPlace = Path | WitnessAddress


def witness_place(text: str) -> WitnessPlace:
    """Parse a value of `--witness`: HOST:PORT, or a folder. Raises `ConfigurationError`."""
    if "/" in text or not re.search(r":[0-9]+$", text):
        return Path(text)
    return WitnessAddress(*host_port(text, "--witness"))


@dataclass(frozen=True, slots=True)
class WitnessStores:
    """The folders of one peer's witnesses."""

    cluster_id: str
    """Of the cluster that they pose as."""
    places: Mapping[str, WitnessPlace]
    """By the folders' ids."""
    access: RpcAccess = PLAIN_RPC

    def folders(self, copies: Path) -> dict[str, Path]:
        """Return a folder for each, by its id; those of running witnesses are copied to `copies` now.

        Raises `ConfigurationError`, `ConnectionFailed` and `OutputError`.
        """
        return {
            store: self._copied(place, store, copies / str(number)) if isinstance(place, WitnessAddress) else place
            for number, (store, place) in enumerate(self.places.items())
        }

    def _copied(self, address: WitnessAddress, store: str, to: Path) -> Path:
        """Copy the folder that a witness has now: what it had acknowledged before is in it."""
        try:
            to.mkdir(mode=0o700)
            with _remote(address, self.access) as remote:
                remote.copy(to)
            # Of the copy itself: since `witness_stores` asked, another witness may have taken over the address.
            found = _id(to, STORE_ID)
        except OSError as error:
            raise OutputError(f"cannot copy the folder of the witness at {address} to {to}: {error.strerror}") from None
        if found != store:
            raise ConnectionFailed(f"another witness has begun to answer at {address} meanwhile: run it again")
        return to

    def prune(self, until_ms: int, sender: str, regions: Sequence[str]) -> None:
        """Let the running witnesses drop what decides nothing any more of entries of some regions.

        All that the cluster `sender` wrote there by a time must have been sent, and no region have begun again.
        """
        for store, place in self.places.items():
            if isinstance(place, WitnessAddress):
                # It does without, also where that takes longer than the answer is waited for: its folder stays longer,
                # and the next run asks again.
                with suppress(ConnectionFailed, _Gone), _remote(place, self.access) as remote:
                    remote.call("prune", " ".join((store, str(until_ms), sender, *regions)))


def witness_stores(places: Sequence[WitnessPlace], access: RpcAccess = PLAIN_RPC) -> WitnessStores:
    """Whose folders these are. Raises `ConfigurationError`, also where they are of several peers."""
    ids = [(_ids(place, access), place) for place in places]
    peers = {cluster for (_, cluster), _ in ids}
    if len(peers) > 1:
        raise ConfigurationError(f"the folders are those of {len(peers)} different witnesses' peers: name one peer's")
    return WitnessStores(peers.pop(), {store: place for (store, _), place in ids}, access)


def _ids(place: WitnessPlace, access: RpcAccess) -> tuple[str, str]:
    """Return the id of the folder and that of the cluster as which its witness poses."""
    if isinstance(place, Path):
        return _id(place, STORE_ID), _id(place, CLUSTER_ID)
    with _remote(place, access) as remote:
        return remote.ids()


def _id(folder: Path, name: str) -> str:
    try:
        return (folder / name).read_text(encoding="utf-8").strip()
    except (OSError, UnicodeDecodeError) as error:
        why = getattr(error, "strerror", "it is no text")
        raise ConfigurationError(f"{folder} is no folder of a witness ({name}: {why})") from None


class _Gone(Exception):
    """A full log has just become a set."""


class _Remote:
    """A connection to a running witness."""

    def __init__(self, address: WitnessAddress, rpc: HBaseRpc) -> None:
        self._address, self._rpc = address, rpc

    def copy(self, to: Path) -> None:
        """Copy all files, each up to its length when they were listed."""
        for _ in range(_ATTEMPTS):
            try:
                # A log that has become a set meanwhile is gone: only a new list tells of the set.
                for name, length in self.lengths().items():
                    self._copy(to / name, length)
            except _Gone:
                continue
            return
        raise ConnectionFailed(f"the folder of the witness at {self._address} changes too fast to be copied")

    def _copy(self, file: Path, length: int) -> None:
        # Of an earlier attempt; a file only grows.
        known = file.stat().st_size if file.exists() else 0
        with file.open("ab") as copy:
            for part in self.parts(file.name, known, length):
                copy.write(part)

    def lengths(self) -> dict[str, int]:
        """Return the files and their lengths. What was kept before is within them."""
        lines = self.call("list", "").decode(errors="replace").splitlines()
        try:
            found = {name: int(length) for name, length in (line.split(" ") for line in lines)}
        except ValueError:
            found = {"": 0}
        # The names become paths below a folder here: an answer must not lead out of it.
        if not all(map(_FILE.fullmatch, found)):
            raise ConnectionFailed(f"the server at {self._address} is no witness: its list of files is none")
        return found

    def ids(self) -> tuple[str, str]:
        """Return the id of the folder and that of the cluster as which its witness poses."""
        try:
            lengths = self.lengths()
            return self._text(STORE_ID, lengths[STORE_ID]), self._text(CLUSTER_ID, lengths[CLUSTER_ID])
        except KeyError:
            raise ConfigurationError(
                f"the witness at {self._address} is not registered yet: see what it prints"
            ) from None
        except _Gone:
            raise ConfigurationError(
                f"the witness at {self._address} has lost its folder: see what it prints"
            ) from None

    def _text(self, name: str, length: int) -> str:
        return b"".join(self.parts(name, 0, length)).decode(errors="replace").strip()

    def parts(self, name: str, start: int, end: int) -> Iterator[bytes]:
        """Yield what a file has between two positions. Raises `_Gone`."""
        while start < end:
            part = self.call("read", f"{name} {start}")[: end - start]
            if not part:
                raise ConnectionFailed(f"the file {name} of the witness at {self._address} is shorter than it was")
            start += len(part)
            yield part

    def call(self, method: str, request: str) -> bytes:
        """Return the answer to a call. Raises `_Gone` and `ConnectionFailed`."""
        try:
            return coprocessor_call(self._rpc, _SERVICE, method, request.encode())
        except CallRefused as refusal:
            if refusal.name == _GONE:
                raise _Gone from None
            raise ConnectionFailed(_refused(self._address, refusal)) from None


@contextmanager
def _remote(address: WitnessAddress, access: RpcAccess) -> Iterator[_Remote]:
    with HBaseRpc(address.host, address.port, "ClientService", "witness", access) as rpc:
        yield _Remote(address, rpc)


def _refused(address: WitnessAddress, refusal: CallRefused) -> str:
    if refusal.name == "CallQueueTooBigException":
        return f"the witness at {address} has no room for a call: its disk is slow, or full; run it again later"
    if refusal.name == "AccessDeniedException":
        return (
            f"the witness at {address} does not take this user's calls ({safe(str(refusal))}): with Kerberos it "
            "takes those of hbase.superuser in its site files, and the site files here must demand Kerberos, too"
        )
    return (
        f"the HBase server at {address} is no witness that sends its folder ({refusal.name}: {refusal}): --witness "
        "takes what `status-tool witness --listen` was given, or a folder"
    )
