"""HBase's state in ZooKeeper, read only: cluster id, live region servers, replication peers.

Znodes hold HBase's `RecoverableZooKeeper` envelope: 0xFF, int32 length, that many bytes of the
writer's name, `PBUF`, then a protobuf message (see `hbase.proto`).
"""

from __future__ import annotations

import contextlib
import json
import socket
import ssl
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass, replace
from typing import Any, TypeVar

from google.protobuf.message import DecodeError
from kazoo.client import KazooClient, KazooState
from kazoo.exceptions import AuthFailedError, KazooException, NoAuthError, NoNodeError
from kazoo.handlers.threading import KazooTimeoutError, SequentialThreadingHandler
from kazoo.hosts import collect_hosts
from kazoo.protocol.states import ZnodeStat
from kazoo.retry import KazooRetry

from status_tool.clients import hbase_pb2
from status_tool.clients.config import ZooKeeperEndpoint, with_ports
from status_tool.clients.sasl import SaslLogin
from status_tool.clients.tls import distrust, tls_context
from status_tool.errors import ConfigurationError, ConnectionFailed
from status_tool.vocabulary.names import CODEC_KEY, DROPS_LOADS_KEY, full_name

TIMEOUT_S = 10.0
PEER_TIMEOUT_S = 3.0
REFUSED_S = 1.0
"""Time that kazoo may try before hosts that all refuse the connection are taken to be down."""
Read = TypeVar("Read")
_MAGIC = b"PBUF"
_TLS_HINT = "; if it expects TLS there, set hbase.zookeeper.property.client.secure=true in the site files"
_ENTRY_FILTERS = "hbase.replication.source.custom.walentryfilters"


@dataclass(frozen=True, slots=True)
class Peer:
    """A replication peer. Filters are as HBase has them: empty means none."""

    id: str
    cluster_key: str
    enabled: bool
    created_ms: int
    cluster_id: str | None = None
    """The id that the peer's own ZooKeeper gives; None if it could not be queried."""
    endpoint: str | None = None
    """A custom ReplicationEndpoint: not an HBase cluster, or not shipped in HBase's own way."""
    replicate_all: bool = True
    namespaces: tuple[str, ...] = ()
    exclude_namespaces: tuple[str, ...] = ()
    table_cfs: dict[str, list[str]] | None = None
    exclude_table_cfs: dict[str, list[str]] | None = None
    serial: bool = False
    bandwidth: int = 0
    """Bytes a second and region server; 0: unlimited."""
    entry_filters: str | None = None
    """WAL entry filters of the user's own: what they drop is unknown."""
    codec: str | None = None
    """The codec of its own configuration, in which it ships cells."""
    drops_loads: bool = False
    """Its configuration, which overrides the servers', lets its source drop markers of bulk loads."""
    modified_ms: int | None = None
    """When its configuration was last changed (its state does not count), on ZooKeeper's clock as `created_ms`."""
    incarnation: int | None = None
    """The transaction that added it."""
    version: int | None = None
    """Number of times that its znode was written since: by a change, and by every HBase master that starts."""

    def to_json(self) -> str:
        """Return the `detail` column of a `peer` row."""
        return json.dumps(asdict(self), sort_keys=True)


class _TlsHandler(SequentialThreadingHandler):  # type: ignore[misc]
    """Connections by a context of ours: kazoo's own trusts the system's authorities in addition to those named."""

    def __init__(self, context: ssl.SSLContext) -> None:
        super().__init__()
        self._context = context

    def create_connection(
        self, address: tuple[str, int], hostname: str | None = None, timeout: float | None = None, **_: Any
    ) -> ssl.SSLSocket:
        """Open a connection with our TLS context, in place of kazoo's own settings."""
        plain = socket.create_connection(address, timeout)
        try:
            plain.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
            return self._context.wrap_socket(plain, server_hostname=hostname or address[0])
        except OSError:
            plain.close()
            raise


def _refusal(hosts: str, context: ssl.SSLContext | None) -> Exception | None:
    """Return why no host of a quorum can be there, or accepts TLS; None if one accepts, or still may."""
    reasons: list[Exception] = []
    for host, port in collect_hosts(hosts)[0]:
        try:
            with socket.create_connection((host, port), REFUSED_S) as plain:
                if context is not None:
                    with context.wrap_socket(plain, server_hostname=host) as secured:
                        # With TLS 1.3 servers look at a client's certificate after the client's part of the handshake:
                        # their answer is read.
                        secured.recv(1)
        except (ConnectionRefusedError, socket.gaierror) as error:
            reasons.append(KazooTimeoutError(error.strerror))
        except OSError as error:
            if (why := distrust(error)) is None:
                return None  # such as a timeout: a slow host gets kazoo's own time
            reasons.append(ConnectionFailed(f"ZooKeeper at {hosts} cannot be reached by TLS: {why}"))
        else:
            return None
    return reasons[0] if reasons else None


def content(data: bytes) -> bytes:
    """Return what HBase's client wrote to a znode, without its own name in front of it."""
    return data[5 + int.from_bytes(data[1:5], "big") :] if data[:1] == b"\xff" else data


def unwrap(data: bytes) -> bytes:
    """Return the protobuf inside a znode or `info:` cell; raises ValueError for anything else."""
    data = content(data)
    if data[:4] != _MAGIC:
        raise ValueError("not a PBUF value")
    return data[4:]


class ZooKeeper:
    """A read-only session; use as a context manager."""

    def __init__(self, endpoint: ZooKeeperEndpoint, timeout_s: float = TIMEOUT_S) -> None:
        self.endpoint = endpoint
        self._timeout = timeout_s
        self._sasl = SaslLogin(f"ZooKeeper at {endpoint.hosts}") if endpoint.sasl else None
        self._context = tls_context(endpoint.trust) if endpoint.tls else None
        retry = KazooRetry(max_tries=3, delay=0.1, max_delay=2.0)
        self._client = KazooClient(
            hosts=endpoint.hosts,
            timeout=timeout_s,
            # A server without a quorum may answer then (`readonlymode.enabled`), by an old state. It refuses `sync`
            # (ZooKeeper's ReadOnlyRequestProcessor), with which all reads for a verdict begin.
            read_only=True,
            connection_retry=retry,
            command_retry=retry,
            sasl_options=self._sasl.options(endpoint.sasl) if self._sasl else None,
            handler=_TlsHandler(self._context) if self._context else None,
        )
        self._is_lost = False
        """True if the session has expired since the last `sync`: the next one may be at a server that is behind."""
        self._client.add_listener(self._note_loss)

    def __enter__(self) -> ZooKeeper:
        try:
            self._start()
        except ConnectionFailed:
            self._close()
            raise
        except (KazooTimeoutError, KazooException, OSError) as error:
            self._close()
            self._refuse_login(error)
            raise ConnectionFailed(
                f"cannot reach ZooKeeper at {self.endpoint.hosts} ({error}): is it running? "
                "--zookeeper HOST:PORT[,…]/ZNODE names another"
            ) from None
        return self

    def __exit__(self, *_: object) -> None:
        self._close()

    def _start(self) -> None:
        """Connect, and fail as soon as every host refuses."""
        # `KazooClient.start` would wait until its timeout.
        connected, deadline = self._client.start_async(), time.monotonic() + self._timeout
        while not connected.wait(REFUSED_S):
            if refusal := _refusal(self.endpoint.hosts, self._context):
                raise refusal
            if (self._sasl and self._sasl.refusal) or time.monotonic() >= deadline:
                raise KazooTimeoutError(f"no answer in time{'' if self._context else _TLS_HINT}")

    def _refuse_login(self, error: BaseException) -> None:
        """Raise what kept this user from logging in, where that is the cause."""
        if self._sasl is not None and (self._sasl.refusal or isinstance(error, AuthFailedError)):
            raise (self._sasl.refusal or self._sasl.rejected()) from None

    def _close(self) -> None:
        with contextlib.suppress(Exception):
            self._client.stop()
            self._client.close()

    @contextlib.contextmanager
    def _asking(self, path: str) -> Iterator[None]:
        try:
            yield
        except NoAuthError:
            raise self._forbidden(path) from None
        except (KazooException, KazooTimeoutError, OSError) as error:
            self._refuse_login(error)
            raise ConnectionFailed(f"ZooKeeper at {self.endpoint.hosts} stopped answering ({error})") from None
        # A session that expires during the request has been noted by now.
        if self._is_lost:
            raise ConnectionFailed(f"the session at ZooKeeper {self.endpoint.hosts} expired meanwhile: run again")

    def _note_loss(self, state: str) -> None:
        # kazoo opens a new session by itself, and no call fails if none is under way. SUSPENDED does not count: a
        # server refuses a session that has seen a newer transaction than it has (`lastZxidSeen`).
        self._is_lost = self._is_lost or state == KazooState.LOST

    def _forbidden(self, path: str) -> ConnectionFailed:
        where = f"ZooKeeper at {self.endpoint.hosts}"
        if self._sasl is None:
            return ConnectionFailed(
                f"{where} does not let a user without Kerberos read {path}: set "
                "hbase.security.authentication=kerberos in the site files, as HBase there has it"
            )
        return ConnectionFailed(
            f"{where} does not let {self._sasl.user or 'this user'} read {path}: HBase shows it to its own user and to "
            "those in hbase.superuser; run as one of them (--principal, --keytab), or extend the znode's ACL"
        )

    def _path(self, *parts: str) -> str:
        """Return the path of a znode below HBase's own; `parts` are HBase's default names."""
        return "/".join([self.endpoint.znode.rstrip("/"), *_named(parts, dict(self.endpoint.names))])

    def cluster_id(self) -> str:
        """Return HBase's cluster id; raises `ConfigurationError` if the znode is not HBase's."""
        found = self._get("hbaseid")
        if found is None:
            raise ConfigurationError(
                f"no HBase cluster under {self.endpoint}: is the znode right (zookeeper.znode.parent)?"
            )
        data, _ = found
        try:
            return str(hbase_pb2.ClusterId.FromString(unwrap(data)).cluster_id)
        except (ValueError, DecodeError):
            # HBase's ClusterId.parseFrom, too, takes anything else for the bare text of an old version.
            return bytes(data).decode(errors="replace")

    def live_servers(self) -> list[str]:
        """Return the names `host,port,startcode` of the region servers that are up."""
        return sorted(self.children("rs"))

    def read(self, *parts: str) -> tuple[bytes, int] | None:
        """Return a znode's content and when it was created (epoch ms); None if it does not exist."""
        found = self._get(*parts)
        return None if found is None else (found[0], int(found[1].ctime))

    def _get(self, *parts: str) -> tuple[bytes, ZnodeStat] | None:
        path = self._path(*parts)
        with self._asking(path):
            try:
                found: tuple[bytes, ZnodeStat] = self._client.get(path)
            except NoNodeError:
                return None
        return found

    def sync(self) -> None:
        """Catch up with what the quorum had agreed on when this was called: a follower may be behind."""
        path = self._path()
        # A session that expires during `sync` counts, so this comes first.
        self._is_lost = False
        with self._asking(path):
            self._client.sync(path)

    def children_version(self, *parts: str) -> int | None:
        """Return a number that grows whenever a child is added or removed; None if the znode is not there."""
        path = self._path(*parts)
        with self._asking(path):
            stat = self._client.exists(path)
        return None if stat is None else int(stat.cversion)

    def children(self, *parts: str) -> list[str]:
        """Return the names of a znode's children, in no order; none if it does not exist."""
        path = self._path(*parts)
        with self._asking(path):
            try:
                return [str(child) for child in self._client.get_children(path)]
            except NoNodeError:
                return []

    def peers(self) -> list[Peer]:
        """Return the replication peers, without contacting the peers themselves."""
        found = [self._peer(peer_id) for peer_id in sorted(self.children("replication", "peers"))]
        return [peer for peer in found if peer is not None]

    def _peer(self, peer_id: str) -> Peer | None:
        base = ("replication", "peers", peer_id)
        found, state = self._get(*base), self._get(*base, "peer-state")
        if found is None or state is None:
            return None  # Removed while it was read.
        data, stat = found
        try:
            config = hbase_pb2.ReplicationPeer.FromString(unwrap(data))
            enabled = hbase_pb2.ReplicationState.FromString(unwrap(state[0])).state == 0
        except (ValueError, DecodeError):
            where = self._path(*base)
            raise ConnectionFailed(f"cannot parse replication peer {peer_id} in ZooKeeper ({where})") from None
        # Peers from before `replicate_all` existed ship all tables by no filter (ReplicationPeerConfigUtil.convert).
        has_filter = bool(config.table_cfs or config.namespaces)
        settings = {pair.name: pair.value for pair in config.configuration}
        return Peer(
            id=peer_id,
            cluster_key=config.clusterkey,
            enabled=enabled,
            created_ms=stat.ctime,
            endpoint=config.replicationEndpointImpl or None,
            replicate_all=config.replicate_all if config.HasField("replicate_all") else not has_filter,
            namespaces=tuple(n.decode() for n in config.namespaces),
            exclude_namespaces=tuple(n.decode() for n in config.exclude_namespaces),
            table_cfs=_table_cfs(config.table_cfs),
            exclude_table_cfs=_table_cfs(config.exclude_table_cfs),
            serial=config.serial,
            bandwidth=config.bandwidth,
            entry_filters=settings.get(_ENTRY_FILTERS),
            drops_loads=settings.get(DROPS_LOADS_KEY, "").strip().lower() == "true",
            codec=settings.get(CODEC_KEY),
            modified_ms=stat.mtime,
            incarnation=stat.czxid,
            version=stat.version,
        )


def _table_cfs(entries: object) -> dict[str, list[str]] | None:
    tables: dict[str, list[str]] = {}
    for entry in entries:  # type: ignore[attr-defined]
        namespace, name = entry.table_name.namespace.decode(), entry.table_name.qualifier.decode()
        tables[full_name(namespace, name)] = [f.decode() for f in entry.families]
    return tables or None


def _named(parts: Sequence[str], names: Mapping[str, str]) -> Iterator[str]:
    """Yield the parts under the names of a cluster that renames znodes (`ZNODE_KEYS`)."""
    if not names:
        yield from parts
        return
    for number, part in enumerate(parts):
        above = ["*" if at == 2 else one for at, one in enumerate(parts[:number])]  # under replication/peers: the ids
        yield names.get("/".join([*above, part]), part)


def parse_cluster_key(key: str, of: ZooKeeperEndpoint) -> ZooKeeperEndpoint | None:
    """Parse `quorum:port:/znode` as an endpoint; None if it is something else (HBase's ZKConfig.transformClusterKey).

    `of` is the cluster that has the peer: HBase uses its znodes' names, its Kerberos and its TLS for the peer, too
    (`HBaseConfiguration.createClusterConf`).
    """
    quorum, _, rest = key.partition(":/")
    hosts, _, port = quorum.rpartition(":")
    if not hosts or not port.isdigit() or not rest:
        return None
    try:
        return replace(of, hosts=with_ports(hosts.split(","), port, "peer"), znode="/" + rest)
    except ConfigurationError:
        return None


def peer_cluster_id(peer: Peer, of: ZooKeeperEndpoint) -> str | None:
    """Return the cluster id from the peer's ZooKeeper; None if it does not answer soon."""
    return _of_peer(peer, of, ZooKeeper.cluster_id)


def peer_tables(peer: Peer, of: ZooKeeperEndpoint) -> list[str] | None:
    """Return the tables that the peer's HBase 2 mirrors to its ZooKeeper (`MirroringTableStateManager`).

    None if that does not answer soon; empty if it mirrors none.
    """
    return _of_peer(peer, of, lambda session: session.children("table"))


def is_witness(peer: Peer, of: ZooKeeperEndpoint) -> bool:
    """Return True if the peer is a witness's, which registers its folders there; False also if nobody answers."""
    return _of_peer(peer, of, lambda session: session.read("stores")) is not None


def _of_peer(peer: Peer, of: ZooKeeperEndpoint, read: Callable[[ZooKeeper], Read]) -> Read | None:
    endpoint = parse_cluster_key(peer.cluster_key, of)
    if endpoint is None:
        return None
    try:
        with ZooKeeper(endpoint, PEER_TIMEOUT_S) as session:
            return read(session)
    except (ConnectionFailed, ConfigurationError):
        return None
