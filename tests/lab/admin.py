"""What a test can do to one cluster: the Python end of the Java admin."""

from __future__ import annotations

import base64
import contextlib
import itertools
import json
import queue
import subprocess
import threading
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import IO, Any, cast

from .errors import AdminError, LabError, LabTimeout
from .process import Server
from .waiting import wait_until

PATIENCE = 300.0  # seconds for one command; HBase's own clients give up sooner, with a reason


@dataclass(frozen=True)
class Region:
    """One region and the server ("host,port,startcode") that has it, None if nobody has."""

    encoded: str
    name: str
    start_key: bytes
    end_key: bytes
    server: str | None


@dataclass(frozen=True)
class Digest:
    """What a table holds, whatever its regions: equal digests mean equal cells."""

    rows: int
    cells: int
    digest: str


@dataclass(frozen=True)
class Lag:
    """How far HBase itself thinks that one server is behind for one peer."""

    server: str
    peer: str
    age_of_last_shipped_ms: int
    size_of_log_queue: int
    replication_lag_ms: int
    timestamp_of_last_shipped_ms: int


@dataclass(frozen=True)
class Peer:
    id: str
    enabled: bool
    cluster_key: str
    serial: bool


class AdminProcess:
    """The long-lived JVM behind an `Admin`: one JSON line out, one in. One command at a time."""

    def __init__(self, server: Server) -> None:
        self.server = server
        self._lock = threading.Lock()
        self._ids = itertools.count(1)
        self._answers: queue.Queue[dict[str, Any] | None] = queue.Queue()
        self._stdin: IO[bytes] | None = None

    def start(self) -> None:
        process = self.server.launch(stdin=subprocess.PIPE, stdout=subprocess.PIPE)
        self._stdin = process.stdin
        self._answers = queue.Queue()
        assert process.stdout is not None
        reader = threading.Thread(target=self._read, args=(process.stdout, self._answers), daemon=True)
        reader.start()

    def _read(self, stdout: IO[bytes], answers: queue.Queue[dict[str, Any] | None]) -> None:
        with stdout:
            for line in stdout:
                try:
                    answers.put(json.loads(line))
                except ValueError:  # the last words of a JVM that is out of memory
                    with self.server.log.open("ab") as log:
                        log.write(line)
        answers.put(None)

    def call(self, command: str, arguments: Mapping[str, object], timeout: float) -> Any:
        """The command's result; AdminError if it failed, LabTimeout, LabError if the process is gone."""
        with self._lock:
            number = next(self._ids)
            self._send({"id": number, "command": command, "args": _encode(arguments)})
            answer = self._answer_to(number, command, timeout)
        if "error" in answer:
            raise AdminError(command, answer["error"], answer["message"])
        return answer["result"]

    def _send(self, request: Mapping[str, object]) -> None:
        if self._stdin is None:
            raise LabError("the admin was not started")
        try:
            self._stdin.write(json.dumps(request).encode() + b"\n")
            self._stdin.flush()
        except (OSError, ValueError):
            raise LabError(f"the admin is gone\n{self.server.log_tail()}") from None

    def _answer_to(self, number: int, command: str, timeout: float) -> dict[str, Any]:
        while True:
            try:
                answer = self._answers.get(timeout=timeout)
            except queue.Empty:
                raise LabTimeout(f"{command}: no answer in {timeout:g} s, see {self.server.log}") from None
            if answer is None:
                raise LabError(f"the admin ended during {command}\n{self.server.log_tail()}")
            # A late answer to a command that was given up is dropped.
            if answer["id"] == number:
                return answer

    def finish(self) -> None:
        """Let it end by itself; LabTimeout if it does not."""
        if self._stdin is not None:
            self._stdin.close()
        wait_until(lambda: not self.server.running, what="the admin ends")

    def close(self) -> None:
        """Kill it, its background writers included."""
        self.server.kill9()
        if self._stdin is not None:
            # What was still to be sent has no reader any more.
            with contextlib.suppress(OSError):
                self._stdin.close()


def _encode(value: object) -> object:
    if isinstance(value, bytes):
        return base64.b64encode(value).decode()
    if isinstance(value, Mapping):
        return {str(key): _encode(item) for key, item in value.items()}
    if isinstance(value, Sequence) and not isinstance(value, str):
        return [_encode(item) for item in value]
    return value


def _bytes(value: str | bytes) -> bytes:
    return value.encode() if isinstance(value, str) else value


class Admin:
    """Commands for one cluster. Every one may raise AdminError; they return when HBase says that it is done.

    Tables are "name" or "namespace:name". Rows written by number have the key f"{prefix}{number:08d}".
    """

    def __init__(self, process: AdminProcess) -> None:
        self.process = process

    def call(self, command: str, timeout: float = PATIENCE, **arguments: object) -> Any:
        """Any command of the Java admin by its name."""
        return self.process.call(command, arguments, timeout)

    # -- the cluster

    def live_servers(self) -> list[str]:
        """Region servers that the master takes for alive, by their server names."""
        return cast(list[str], self.call("live_servers"))

    def live_datanodes(self) -> int:
        return cast(int, self.call("live_datanodes"))

    def cluster_id(self) -> str:
        return cast(str, self.call("cluster_id"))

    def balancer(self, on: bool) -> None:
        self.call("balancer", on=on)

    def roll_wal(self, server_name: str | None = None) -> list[str]:
        """Roll the log of that or of every live server; returns whose logs were rolled."""
        return cast(list[str], self.call("roll_wal", server=server_name))

    def printed_wals(self, table: str) -> list[str]:
        """What HBase's own printer finds of a table in each WAL, as JSON objects among other words."""
        return cast(list[str], self.call("printed_wals", table=table))

    def replication_lag(self) -> list[Lag]:
        return [Lag(**lag) for lag in self.call("replication_lag")]

    # -- tables

    def create_namespace(self, name: str) -> None:
        self.call("create_namespace", name=name)

    def create_table(
        self,
        name: str,
        families: Mapping[str, int],
        splits: Sequence[bytes] = (),
        durability: str | None = None,
        keep_all: bool = False,
    ) -> None:
        """Families with their replication scopes; durability is one of HBase's, such as "SKIP_WAL".

        `keep_all`: every version of every cell stays, deleted ones too.
        """
        self.call(
            "create_table",
            table=name,
            families=families,
            splits=splits,
            durability=durability,
            keep_all=keep_all,
        )

    def table_exists(self, table: str) -> bool:
        return cast(bool, self.call("table_exists", table=table))

    def disable_table(self, table: str) -> None:
        self.call("disable_table", table=table)

    def enable_table(self, table: str) -> None:
        self.call("enable_table", table=table)

    def drop_table(self, table: str) -> None:
        """Disables it first if need be."""
        self.call("drop_table", table=table)

    def truncate_table(self, table: str, preserve_splits: bool = False) -> None:
        """Disables it first if need be; it is enabled afterwards."""
        self.call("truncate_table", table=table, preserve_splits=preserve_splits)

    def add_family(self, table: str, family: str, scope: int) -> None:
        self.call("add_family", table=table, family=family, scope=scope)

    def drop_family(self, table: str, family: str) -> None:
        self.call("drop_family", table=table, family=family)

    def set_scope(self, table: str, family: str, scope: int, *, reopen: bool = True) -> None:
        """Alter the table; `reopen` its regions, or leave them as they are, which HBase 2.6 can."""
        self.call("set_scope", table=table, family=family, scope=scope, reopen=reopen)

    def set_versions(self, table: str, family: str, versions: int) -> None:
        """Keep so many versions from now on, and no deleted cell."""
        self.call("set_versions", table=table, family=family, versions=versions)

    def set_ttl(self, table: str, family: str, seconds: int, *, reopen: bool = True) -> None:
        """Keep cells so long from now on; `reopen` as for `set_scope`."""
        self.call("set_ttl", table=table, family=family, seconds=seconds, reopen=reopen)

    def set_durability(self, table: str, durability: str) -> None:
        """One of HBase's, such as "SKIP_WAL" or "USE_DEFAULT"."""
        self.call("set_durability", table=table, durability=durability)

    # -- rights, where HBase's AccessController runs

    def grant(self, table: str, user: str, actions: Sequence[str]) -> None:
        """HBase's actions by name, such as "READ"; they replace what the user had there."""
        self.call("grant", table=table, user=user, actions=actions)

    def permissions(self, table: str) -> list[str]:
        """Who may do what with a table: "user: READ, WRITE" each."""
        return cast(list[str], self.call("permissions", table=table))

    # -- snapshots, and regions emptied

    def snapshot(self, name: str, table: str) -> None:
        """Flushes the table."""
        self.call("snapshot", name=name, table=table)

    def delete_snapshot(self, name: str) -> None:
        self.call("delete_snapshot", name=name)

    def restore_snapshot(self, name: str, table: str) -> None:
        """In place; an enabled table is disabled for it and enabled again, a disabled one stays disabled."""
        self.call("restore_snapshot", name=name, table=table)

    def clone_snapshot(self, name: str, table: str) -> None:
        """Into a table that does not exist."""
        self.call("clone_snapshot", name=name, table=table)

    def truncate_region(self, region_name: str) -> None:
        """By its full name; from HBase 2.6 on."""
        self.call("truncate_region", name=region_name)

    # -- peers

    def add_peer(
        self,
        id: str,
        cluster_key: str,
        *,
        table_cfs: Mapping[str, Sequence[str]] | None = None,
        namespaces: Sequence[str] | None = None,
        enabled: bool = True,
        serial: bool = False,
        config: Mapping[str, str] | None = None,
    ) -> None:
        """Replicate everything, or only these tables (no families named: all of them) and namespaces.

        `config`: settings of the master's region servers towards this peer alone.
        """
        self.call(
            "add_peer",
            peer=id,
            cluster_key=cluster_key,
            table_cfs=table_cfs,
            namespaces=namespaces,
            enabled=enabled,
            serial=serial,
            config=config,
        )

    def remove_peer(self, id: str) -> None:
        """HBase's client repeats a call whose answer is late, and then learns that there is no such peer."""
        was_there = id in {peer.id for peer in self.list_peers()}
        try:
            self.call("remove_peer", peer=id)
        except AdminError as error:
            if not (was_there and error.kind.endswith("ReplicationPeerNotFoundException")):
                raise

    def enable_peer(self, id: str) -> None:
        self.call("enable_peer", peer=id)

    def disable_peer(self, id: str) -> None:
        self.call("disable_peer", peer=id)

    def set_peer_filters(self, id: str, filters: str | None) -> None:
        """WAL entry filters of its own, by class names; None: HBase's alone."""
        self.call("set_peer_filters", peer=id, filters=filters)

    def set_peer_tables(self, id: str, table_cfs: Mapping[str, Sequence[str]] | None) -> None:
        """Only these tables and families (none named: all of them) from now on; None: everything."""
        self.call("set_peer_tables", peer=id, table_cfs=table_cfs)

    def set_peer_bandwidth(self, id: str, bandwidth: int) -> None:
        """Bytes a second, 0: no limit. Another configuration that replicates the same."""
        self.call("set_peer_bandwidth", peer=id, bandwidth=bandwidth)

    def list_peers(self) -> list[Peer]:
        return [Peer(**peer) for peer in self.call("list_peers")]

    # -- rows

    def put_rows(
        self,
        table: str,
        family: str,
        count: int,
        *,
        start: int = 0,
        prefix: str = "row",
        qualifier: str = "q",
        value: str = "v",
        durability: str | None = None,
        ttl_ms: int | None = None,
        timestamp_ms: int | None = None,
    ) -> int:
        """Write rows start … start+count-1 in batches; returns how many.

        `ttl_ms`: each cell has a TTL of its own; `timestamp_ms`: the client sets the cells' timestamps.
        """
        return cast(
            int,
            self.call(
                "put_rows",
                table=table,
                family=family,
                count=count,
                start=start,
                prefix=prefix,
                qualifier=qualifier,
                value=value,
                durability=durability,
                ttl_ms=ttl_ms,
                timestamp_ms=timestamp_ms,
            ),
        )

    def delete_rows(self, table: str, count: int, *, start: int = 0, prefix: str = "row") -> int:
        return cast(int, self.call("delete_rows", table=table, count=count, start=start, prefix=prefix))

    def mutate_row(self, table: str, row: str | bytes, values: Mapping[str, str]) -> None:
        """Put {"family:qualifier": value} into one row, as one WAL entry."""
        columns = {column: [value] for column, value in values.items()}
        self.call("mutate_row", table=table, row=_bytes(row), values=columns)

    def rows(self, table: str) -> list[bytes]:
        """All row keys of a small table, in order."""
        return [base64.b64decode(row) for row in self.call("rows", table=table)]

    def digest(self, table: str, *, families: Sequence[str] | None = None, raw: bool = False) -> Digest:
        """A full scan with all versions; raw: with delete markers and what they hide."""
        return Digest(**self.call("digest", table=table, families=families, raw=raw))

    def bulk_load(
        self, table: str, family: str, count: int, prefix: str = "bulk", *, not_replicated: bool = False
    ) -> int:
        """Write rows 0 … count-1 into an HFile and load it; the WAL sees only a marker.

        `not_replicated`: with replication switched off for this load (`disableReplication`).
        """
        options: dict[str, Any] = {"family": family, "count": count, "prefix": prefix}
        return cast(int, self.call("bulk_load", table=table, not_replicated=not_replicated, **options))

    # -- load in the background

    def load_start(self, table: str, family: str, rate_per_s: int = 50, prefix: str = "load") -> int:
        """Put rows 0, 1, 2, … one at a time until `load_stop`, each until it is acknowledged."""
        return cast(
            int,
            self.call("load_start", table=table, family=family, rate_per_s=rate_per_s, prefix=prefix),
        )

    def load_count(self, load: int) -> int:
        """Rows acknowledged so far."""
        return cast(int, self.call("load_count", load=load))

    def load_stop(self, load: int) -> int:
        """Rows acknowledged: 0 … count-1 are certain to be there, row `count` may be."""
        return cast(int, self.call("load_stop", load=load))

    # -- every kind of edit, with a journal

    def mix_start(self, tables: Mapping[str, Sequence[str]], *, seed: int, rate_per_s: int, mark: str) -> int:
        """Write every kind of edit into these families of these tables until `mix_stop`; `mark` makes cells unique."""
        return cast(int, self.call("mix_start", tables=tables, seed=seed, rate_per_s=rate_per_s, mark=mark))

    def mix_journal(self, mix: int, start: int = 0) -> list[str]:
        """Cells acknowledged so far, from the one of that number on: table, row, family, qualifier, type, value."""
        return cast(list[str], self.call("mix_journal", **{"mix": mix, "from": start})["cells"])

    def mix_stop(self, mix: int, patience_s: int = 20) -> None:
        """On return the writer has ended, interrupted if it did not by itself; its journal can still be read."""
        self.call("mix_stop", mix=mix, patience_s=patience_s)

    def cells(self, table: str, *, visible: bool = False) -> list[str]:
        """Every cell of a raw scan of all versions: row, family, qualifier, type, value.

        `visible`: only what a scan shows that is not raw.
        """
        return cast(list[str], self.call("cells", table=table, visible=visible))

    def verify_replication(self, table: str, families: Sequence[str], peer: str, folder: Path) -> dict[str, int]:
        """The counters of HBase's VerifyReplication, raw and with all versions; `folder` is for its local job."""
        counters = self.call("verify_replication", table=table, families=families, peer=peer, folder=str(folder))
        return cast(dict[str, int], counters)

    def space_quota(self, path: str, limit: int | None) -> None:
        """How many bytes, replicas included, may be under a path of HDFS; None: any number."""
        self.call("space_quota", path=path, bytes=limit)

    # -- regions

    def regions(self, table: str) -> list[Region]:
        """In key order."""
        return [_region(region) for region in self.call("regions", table=table)]

    def move(self, encoded: str, server_name: str) -> None:
        self.call("move", encoded=encoded, server=server_name)

    def split(self, table_or_encoded: str, split_key: bytes) -> None:
        """Split that region, or the table's region which holds the key."""
        self.call("split", table_or_encoded=table_or_encoded, split_key=split_key)

    def merge(self, encoded_a: str, encoded_b: str) -> None:
        self.call("merge", encoded_a=encoded_a, encoded_b=encoded_b)

    def flush(self, table: str) -> None:
        self.call("flush", table=table)

    def major_compact(self, table: str) -> None:
        """Also needed before a daughter region can be split or merged again."""
        self.call("major_compact", table=table)

    # -- files

    def hdfs_mkdir(self, path: str) -> None:
        self.call("hdfs_mkdir", path=path)

    def hdfs_delete(self, path: str) -> bool:
        """Recursively; False if there was nothing."""
        return cast(bool, self.call("hdfs_delete", path=path))

    def hdfs_put(
        self,
        path: str,
        content: bytes | int,
        *,
        block_size: int | None = None,
        seed: int = 0,
        bytes_per_checksum: int | None = None,
        checksum_type: str | None = None,
    ) -> int:
        """Write a file: these bytes, or that many made from the seed (the same everywhere). Its length.

        The block size is a multiple of 512; `checksum_type` is CRC32 or CRC32C.
        """
        given = content if isinstance(content, bytes) else None
        size = content if isinstance(content, int) else None
        layout: dict[str, Any] = {
            "bytes_per_checksum": bytes_per_checksum,
            "checksum_type": checksum_type,
            "block_size": block_size,
        }
        return cast(int, self.call("hdfs_put", path=path, content=given, size=size, seed=seed, **layout))

    def hdfs_put_many(self, path: str, count: int, content: bytes = b"") -> int:
        """Small files `NNN/fNNNNNNN` under a folder, each of these bytes and its number; or all empty."""
        return cast(int, self.call("hdfs_put_many", path=path, count=count, content=content))

    def hdfs_open(self, path: str, content: bytes) -> None:
        """Start a file and leave it open until `hdfs_close`."""
        self.call("hdfs_open", path=path, content=content)

    def hdfs_close(self, path: str) -> None:
        self.call("hdfs_close", path=path)

    def hdfs_chmod(self, path: str, mode: str) -> None:
        """Octal, as in "700"."""
        self.call("hdfs_chmod", path=path, mode=mode)

    def hdfs_link(self, path: str, target: str) -> None:
        """A symbolic link."""
        self.call("hdfs_link", path=path, target=target)

    def hdfs_checksums(self, paths: Sequence[str], mode: str = "COMPOSITE_CRC") -> list[str]:
        """What Hadoop's own client says, as `ALGORITHM:hex`."""
        return cast(list[str], self.call("hdfs_checksum", paths=list(paths), mode=mode))

    def hdfs_distcp(self, *arguments: str) -> int:
        """DistCp's exit code."""
        return cast(int, self.call("hdfs_distcp", args=list(arguments)))

    def hadoop_tool(self, name: str, *arguments: str) -> int:
        """The exit code of one of Hadoop's command line tools, named by its class (a `Tool`); output in the log."""
        return cast(int, self.call("hadoop_tool", name=name, args=list(arguments)))

    def hdfs_make_active(self, name: str, other: str | None = None) -> None:
        """`haadmin`: of two NameNodes `other` becomes the standby (None: it is dead), and `name` the active one."""
        haadmin = "org.apache.hadoop.hdfs.tools.DFSHAAdmin"
        forced = () if other else ("--forceactive",)
        changes = [("-transitionToStandby", other)] if other else []
        for change in (*changes, ("-transitionToActive", *forced, name)):
            if self.hadoop_tool(haadmin, *change):
                raise AdminError("hadoop_tool", haadmin, f"{' '.join(change)} failed")


def _region(json_region: Mapping[str, Any]) -> Region:
    keys = {key: base64.b64decode(json_region[key]) for key in ("start_key", "end_key")}
    return Region(**{**json_region, **keys})
