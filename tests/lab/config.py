"""What the servers are configured with: plain mappings, and the XML files that Hadoop reads."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from xml.etree import ElementTree

LOOPBACK = "127.0.0.1"
Site = Mapping[str, str]
NAMENODES = ("nn0", "nn1")
"""The ids of the two NameNodes of a cluster with a standby."""

ZOOKEEPER_SUPER = "super:lab"
"""Name and password, by the scheme "digest", of whom no ACL of a secure lab holds."""

TICK_MS = 1000
SESSION_TIMEOUT_MS = 30_000  # a busy machine must not cost a server its life; `Cluster.crash` does not wait for it


@dataclass(frozen=True)
class Addresses:
    """Where a cluster is; `replication_conf` has every cluster's client configuration, for bulk loads.

    `standby` is the second NameNode's RPC and HTTP port; None: there is one NameNode only. `secure`: web servers speak
    HTTPS, and clients use the name that principals and certificates have.
    """

    name: str
    zk_port: int
    namenode_port: int
    namenode_http_port: int
    thrift_port: int
    replication_conf: Path
    standby: tuple[int, int] | None = None
    secure: bool = False

    @property
    def host(self) -> str:
        """What clients call every server."""
        return "localhost" if self.secure else LOOPBACK

    @property
    def scheme(self) -> str:
        """Of the web servers."""
        return "https" if self.secure else "http"

    @property
    def znode(self) -> str:
        return f"/{self.name}"

    @property
    def filesystem(self) -> str:
        return f"hdfs://{self.name}" if self.standby else f"hdfs://{self.host}:{self.namenode_port}"


def zookeeper(port: int, data: Path, more: Mapping[str, object]) -> str:
    """The text of a zoo.cfg."""
    settings = {
        "dataDir": data,
        "clientPort": port,
        "clientPortAddress": LOOPBACK,
        "tickTime": TICK_MS,
        "minSessionTimeout": 2 * TICK_MS,
        "maxSessionTimeout": 300_000,
        "maxClientCnxns": 0,
        "admin.enableServer": "false",
        "4lw.commands.whitelist": "*",
        **more,
    }
    return "".join(f"{key}={value}\n" for key, value in settings.items())


def core_site(at: Addresses, folder: Path) -> dict[str, str]:
    return {
        "fs.defaultFS": at.filesystem,
        "hadoop.tmp.dir": str(folder / "tmp"),
        # A client or server that is up before the NameNode should not sleep long.
        "ipc.client.connect.retry.interval": "200",
        "ipc.client.connect.max.retries": "300",
    }


def hdfs_site(at: Addresses, datanodes: int) -> dict[str, str]:
    """What HDFS's servers and clients share."""
    return {
        **_namenodes(at),
        "dfs.replication": "1",
        "dfs.permissions.enabled": "false",
        "dfs.namenode.fs-limits.min-block-size": "512",
        "dfs.namenode.datanode.registration.ip-hostname-check": "false",
        # Stay in safe mode until a block can be written: HBase waits for the end of safe mode.
        "dfs.namenode.safemode.min.datanodes": str(datanodes),
        "dfs.namenode.safemode.extension": "0",
        "dfs.namenode.edits.noeditlogchannelflush": "true",
        "dfs.namenode.handler.count": "5",
        "dfs.datanode.handler.count": "5",
        "dfs.heartbeat.interval": "1",
        "dfs.client.block.write.replace-datanode-on-failure.enable": "false",
        # A writer asks again after so many ms whether its last block has arrived; HDFS's 400 is most of a small file.
        "dfs.client.block.write.locateFollowingBlock.initial.delay.ms": "20",
        "dfs.client.block.write.locateFollowingBlock.retries": "10",
    }


def _namenodes(at: Addresses) -> dict[str, str]:
    """The one, or the name service of two."""
    active = (at.namenode_port, at.namenode_http_port)
    if at.standby is None:
        return {
            "dfs.namenode.rpc-address": f"{at.host}:{active[0]}",
            f"dfs.namenode.{at.scheme}-address": f"{at.host}:{active[1]}",
        }
    ports = dict(zip(NAMENODES, (active, at.standby), strict=True))
    rpc, web = (f"dfs.namenode.{kind}-address.{at.name}" for kind in ("rpc", at.scheme))
    proxy = "org.apache.hadoop.hdfs.server.namenode.ha.ConfiguredFailoverProxyProvider"
    return {
        "dfs.nameservices": at.name,
        f"dfs.ha.namenodes.{at.name}": ",".join(NAMENODES),
        f"dfs.client.failover.proxy.provider.{at.name}": proxy,
        "dfs.ha.fencing.methods": "shell(/bin/true)",
        "dfs.ha.tail-edits.period": "1",
        **{f"{rpc}.{node}": f"{at.host}:{port}" for node, (port, _) in ports.items()},
        **{f"{web}.{node}": f"{at.host}:{port}" for node, (_, port) in ports.items()},
    }


def namenode(folder: Path) -> dict[str, str]:
    return {"lab.namenode.dir": str(folder / "name"), "dfs.namenode.name.dir": f"file://{folder / 'name'}"}


def ha_namenode(node: str, shared_edits: Path) -> dict[str, str]:
    """For one of `NAMENODES`: both are on one host, so each needs to know which it is."""
    return {
        "dfs.ha.namenode.id": node,
        "dfs.namenode.shared.edits.dir": f"file://{shared_edits}",
        "lab.namenode.bootstrap": str(node != NAMENODES[0]).lower(),
    }


def datanode(at: Addresses, folder: Path, port: int, web_port: int, ipc_port: int) -> dict[str, str]:
    return {
        "dfs.datanode.data.dir": f"file://{folder / 'data'}",
        "dfs.datanode.hostname": at.host,
        "dfs.datanode.address": f"{LOOPBACK}:{port}",
        f"dfs.datanode.{at.scheme}.address": f"{LOOPBACK}:{web_port}",
        "dfs.datanode.ipc.address": f"{LOOPBACK}:{ipc_port}",
    }


def hbase_client(at: Addresses) -> dict[str, str]:
    """How to reach the cluster, its Thrift server included."""
    return {
        "hbase.rootdir": f"{at.filesystem}/hbase",
        "hbase.cluster.distributed": "true",
        "hbase.zookeeper.quorum": at.host,
        "hbase.zookeeper.property.clientPort": str(at.zk_port),
        "zookeeper.znode.parent": at.znode,
        "zookeeper.session.timeout": str(SESSION_TIMEOUT_MS),
        "hbase.regionserver.thrift.port": str(at.thrift_port),
        "hbase.regionserver.thrift.ipaddress": LOOPBACK,
        "hbase.regionserver.thrift.host": at.host,
        # As long as there are fewer, each request starts a thread: HBase lets it have 256.
        "hbase.hconnection.threads.max": "8",
    }


def hbase_admin() -> dict[str, str]:
    """Of a client that asks often whether a procedure has ended, and does not give up earlier for that.

    Each pause is longer than the one before, up to 200 times this: what takes a second would be noticed after 1.6 s.
    """
    return {"hbase.client.pause": "1", "hbase.client.retries.number": "1000"}


def hbase_server(at: Addresses, region_servers: int) -> dict[str, str]:
    """What master, region servers and Thrift server share. Waiting times are short: tests wait for them."""
    return {
        **hbase_client(at),
        "hbase.unsafe.stream.capability.enforce": "false",
        "hbase.thrift.info.port": "-1",
        "hbase.master.info.port": "-1",
        "hbase.regionserver.info.port": "-1",
        "hbase.master.hostname": "localhost",
        "hbase.master.ipc.address": LOOPBACK,
        "hbase.regionserver.hostname": "localhost",
        "hbase.regionserver.ipc.address": LOOPBACK,
        "hbase.master.wait.on.regionservers.mintostart": "1",
        "hbase.master.wait.on.regionservers.maxtostart": str(region_servers),
        "hbase.master.wait.on.regionservers.timeout": "20000",
        # A master collects requests to a region server for 150 ms, and looks once a second whether a move has ended.
        "hbase.procedure.remote.dispatcher.delay.msec": "10",
        "hbase.assignment.dispatch.wait.msec": "10",
        "hbase.master.event.waiting.time": "50",
        # A killed server's WAL is split once HDFS has closed it: in a DataNode's next heartbeat, here in a second.
        "hbase.lease.recovery.first.pause": "1000",
        "hbase.lease.recovery.pause": "100",
        "hbase.regionserver.msginterval": "1000",
        "hbase.regionserver.handler.count": "10",
        "hbase.server.thread.wakefrequency": "1000",
        # Until then compacted files count as references, and a region with references cannot be merged.
        "hbase.hfile.compaction.discharger.interval": "1000",
        "replication.source.sleepforretries": "200",
        # HBase waits up to 300 times as long; a peer that comes back should be noticed in a second or two.
        "replication.source.maxretriesmultiplier": "10",
        "replication.sleep.before.failover": "2000",
        # Only of use with hbase.replication.bulkload.enabled, which a test sets itself.
        "hbase.replication.cluster.id": at.name,
        "hbase.replication.conf.dir": str(at.replication_conf),
    }


def write_site(path: Path, settings: Site) -> None:
    """A Hadoop configuration file."""
    root = ElementTree.Element("configuration")
    for key, value in settings.items():
        entry = ElementTree.SubElement(root, "property")
        ElementTree.SubElement(entry, "name").text = key
        ElementTree.SubElement(entry, "value").text = value
    ElementTree.indent(root)
    path.parent.mkdir(parents=True, exist_ok=True)
    ElementTree.ElementTree(root).write(path, encoding="utf-8", xml_declaration=True)


def write_conf(folder: Path, *, core: Site, hdfs: Site, hbase: Site) -> None:
    """The three files that every server and client reads."""
    write_site(folder / "core-site.xml", core)
    write_site(folder / "hdfs-site.xml", hdfs)
    write_site(folder / "hbase-site.xml", hbase)
