"""One cluster: NameNode, DataNodes, HMaster, region servers, Thrift server and an admin."""

from __future__ import annotations

import contextlib
import os
import shlex
import subprocess
import time
import urllib.error
import urllib.request
from collections.abc import Callable, Iterable, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field, replace
from functools import partial
from pathlib import Path
from typing import TypeVar

from kazoo.client import KazooClient
from kazoo.exceptions import NoNodeError

from . import config
from .admin import Admin, AdminProcess
from .config import LOOPBACK, Addresses
from .errors import AdminError, LabError
from .ports import Drawn, accepts
from .process import Java, RegionServer, Server
from .secure import Security
from .waiting import wait_until

START_TIMEOUT = 240.0  # seconds; a machine that does other work besides is slow

_Kind = TypeVar("_Kind", bound=Server)
_HBASE = "org.apache.hadoop.hbase"
_HDFS = "org.apache.hadoop.hdfs.server"
_LAB = "io.github.statustool.lab"


@dataclass(frozen=True)
class ClusterSpec:
    """What a cluster is to be.

    `site` goes to every HBase server and to the clients, `rs_site[i]` to region server i alone,
    `extra_classpath` to every HBase server.
    """

    name: str
    region_servers: int = 2
    datanodes: int = 1
    site: Mapping[str, str] = field(default_factory=dict)
    hdfs_site: Mapping[str, str] = field(default_factory=dict)
    rs_site: Sequence[Mapping[str, str]] = ()
    rs_options: Sequence[str] = ()
    """More of the JVM's options for every region server; a later one replaces an earlier one."""
    extra_classpath: Sequence[Path] = ()
    thrift: bool = True
    hbase: bool = True
    """False: HDFS alone."""
    standby: bool = False
    """Two NameNodes with shared edits, the first one active. Only for HDFS alone."""
    one_hdfs_process: bool = False
    """The NameNode's process is the only DataNode, too: one JVM less. Not with Kerberos, where their logins differ."""


class Cluster:
    """A running cluster. Made by `Lab.cluster`, ended by the lab."""

    def __init__(
        self,
        spec: ClusterSpec,
        *,
        root: Path,
        java: Java,
        ports: Drawn,
        zk_port: int,
        security: Security | None = None,
    ) -> None:
        self.spec = spec
        self._security = security
        self.name = spec.name
        self.folder = root / spec.name
        self._java = java
        self.ports = ports
        self._at = Addresses(
            name=spec.name,
            zk_port=zk_port,
            namenode_port=ports.take(),
            namenode_http_port=ports.take(),
            thrift_port=ports.take(),
            replication_conf=root / "conf",
            standby=(ports.take(), ports.take()) if spec.standby else None,
            secure=security is not None,
        )
        self.conf_dir = root / "conf" / spec.name
        self._write_conf(self.conf_dir, hbase=self._hbase_client())
        self.namenode = self._define_namenode(0)
        self.standby = self._define_namenode(1) if spec.standby else None
        self.datanodes = [] if self._is_one else [self._define_datanode(number) for number in range(spec.datanodes)]
        self.master = self._define_master()
        self.region_servers: list[RegionServer] = []
        for number in range(spec.region_servers):
            overrides = spec.rs_site[number] if number < len(spec.rs_site) else {}
            self.region_servers.append(self._define_region_server(number, overrides))
        self.thrift = self._define_thrift()
        self._admin_process = AdminProcess(self._define_admin())
        self.admin = Admin(self._admin_process)

    # -- where it is

    @property
    def thrift_port(self) -> int:
        return self._at.thrift_port

    @property
    def webhdfs_url(self) -> str:
        return f"{self._at.scheme}://{self._at.host}:{self._at.namenode_http_port}"

    @property
    def zookeeper(self) -> str:
        """As `--zookeeper` takes it: host:port/znode."""
        return f"{self._at.host}:{self._at.zk_port}{self._at.znode}"

    @property
    def cluster_key(self) -> str:
        """As `add_peer` takes it: host:port:/znode."""
        return f"{self._at.host}:{self._at.zk_port}:{self._at.znode}"

    # -- definitions

    @property
    def _is_one(self) -> bool:
        return self.spec.one_hdfs_process and self._security is None

    def _write_conf(self, conf_dir: Path, *, hbase: Mapping[str, str], hdfs: Mapping[str, str] | None = None) -> None:
        shared = config.hdfs_site(self._at, self.spec.datanodes)
        core = config.core_site(self._at, conf_dir.parent)
        if self._security:
            core |= self._security.core_site()
            shared |= self._security.hdfs_site()
            config.write_site(conf_dir / "ssl-client.xml", self._security.ssl_client())
        config.write_conf(conf_dir, core=core, hdfs={**shared, **self.spec.hdfs_site, **(hdfs or {})}, hbase=hbase)

    def _write_hdfs_conf(self, server: Server, hdfs: Mapping[str, str]) -> None:
        """Of a NameNode or a DataNode."""
        if self._security:
            hdfs = {**self._security.hdfs_server(), **hdfs}
            config.write_site(server.conf_dir / "ssl-server.xml", self._security.ssl_server())
        self._write_conf(server.conf_dir, hbase={}, hdfs=hdfs)

    def _hbase_client(self) -> dict[str, str]:
        secure = self._security.hbase_client() if self._security else {}
        return {**config.hbase_client(self._at), **secure, **self.spec.site}

    def _define_namenode(self, number: int) -> Server:
        name = f"namenode{number or ''}"
        port = self._at.standby[0] if number and self._at.standby else self._at.namenode_port
        main = f"{_LAB}.FormattedNameNode"
        server = Server(self._java, f"{self.name}-{name}", self.folder / name, main, (), 256, port)
        hdfs = config.namenode(server.folder)
        if self.spec.standby:
            hdfs |= config.ha_namenode(config.NAMENODES[number], self.folder / "shared-edits")
        if self._is_one:
            hdfs |= self._datanode_site(server.folder, self.ports.take()) | {"lab.namenode.datanode": "true"}
        self._write_hdfs_conf(server, hdfs)
        return server

    def _define_datanode(self, number: int) -> Server:
        folder, port = self.folder / f"datanode{number}", self.ports.take()
        main = f"{_HDFS}.datanode.DataNode"
        server = Server(self._java, f"{self.name}-datanode{number}", folder, main, (), 256, port)
        self._write_hdfs_conf(server, self._datanode_site(folder, port))
        return server

    def _datanode_site(self, folder: Path, port: int) -> dict[str, str]:
        web_port, ipc_port = self.ports.take(), self.ports.take()
        return config.datanode(self._at, folder, port, web_port, ipc_port)

    def _hbase_conf(self, server: Server, overrides: Mapping[str, str]) -> None:
        own = {**self.spec.site, **overrides}
        if self._security:
            own = self._security.hbase_server(own)
        self._write_conf(server.conf_dir, hbase=config.hbase_server(self._at, self.spec.region_servers) | own)

    def _define_master(self) -> Server:
        port = self.ports.take()
        return self._define(Server, "master", "master.HMaster", 512, port, {"hbase.master.port": str(port)})

    def _define_region_server(self, number: int, overrides: Mapping[str, str]) -> RegionServer:
        port = self.ports.take()
        site, options = {"hbase.regionserver.port": str(port), **overrides}, self.spec.rs_options
        return self._define(RegionServer, f"rs{number}", "regionserver.HRegionServer", 768, port, site, options)

    def _define_thrift(self) -> Server:
        return self._define(Server, "thrift", "thrift.ThriftServer", 256, self._at.thrift_port, {})

    def _define(
        self,
        kind: type[_Kind],
        name: str,
        main: str,
        heap_mb: int,
        port: int,
        site: Mapping[str, str],
        options: Sequence[str] = (),
    ) -> _Kind:
        java, folder = replace(self._java, options=(*self._java.options, *options)), self.folder / name
        main, classpath = f"{_HBASE}.{main}", self.spec.extra_classpath
        server = kind(java, f"{self.name}-{name}", folder, main, ("start",), heap_mb, port, classpath)
        self._hbase_conf(server, site)
        return server

    def _define_admin(self) -> Server:
        name, folder = f"{self.name}-admin", self.folder / "admin"
        arguments = () if self.spec.hbase else ("hdfs",)
        server = Server(self._java, name, folder, f"{_LAB}.LabAdmin", arguments, 512, 0)
        login = self._security.admin() if self._security else {}
        self._write_conf(server.conf_dir, hbase=self._hbase_client() | config.hbase_admin() | login)
        return server

    def run_main(self, main: str, arguments: Sequence[str], timeout: float = 180) -> str:
        """Run a tool of HBase or Hadoop as a client of this cluster; its stdout. LabError if it fails."""
        command = self._java.command(512, main, arguments)
        environment = self._java.environment(self.conf_dir, ())
        done = subprocess.run(
            command, env=environment, cwd=self.folder, capture_output=True, text=True, timeout=timeout, check=False
        )
        if done.returncode != 0:
            raise LabError(f"{main} {' '.join(arguments)} ended with {done.returncode}:\n{done.stdout}{done.stderr}")
        return done.stdout

    def write_hbase(self, file: Path) -> None:
        """Write an `hbase CLASS …` for a shell: a client of this cluster, which goes with the lab."""
        *command, _ = self._java.command(512, "CLASS", ())
        environment = self._java.environment(self.conf_dir, ())
        own = [f"{name}={value}" for name, value in environment.items() if os.environ.get(name) != value]
        file.write_text(f'#!/bin/sh\nexec {shlex.join(["env", *own, *command])} "$@"\n')
        file.chmod(0o755)

    # -- life

    @property
    def servers(self) -> list[Server]:
        """All of them in the order of starting; the admin is not one."""
        if not self.spec.hbase:
            return [*self.namenodes, *self.datanodes]
        thrift = [self.thrift] if self.spec.thrift else []
        return [self.namenode, *self.datanodes, *self.region_servers, *thrift, self.master]

    @property
    def namenodes(self) -> list[Server]:
        """One, or the pair."""
        return [self.namenode, *([self.standby] if self.standby else [])]

    def launch(self) -> None:
        """Start every process that does not run. Each waits by itself for those that it needs, save one."""
        for server in self.servers:
            if server is self.master:
                # A master that finds no NameNode gives up at once.
                self._wait_for(lambda: accepts(self.namenode.port), [self.namenode], "the NameNode listens")
            if not server.running:
                server.start(wait=False)
        if not self._admin_process.server.running:
            self._admin_process.start()

    def wait_ready(self) -> None:
        """Return when real calls work everywhere; ServerDied, AdminError or LabTimeout otherwise."""
        if not self.spec.hbase:
            for namenode in self.namenodes:
                self._wait_for(partial(accepts, namenode.port), [namenode], "the NameNode listens")
            if self.standby:
                self._wait_for(self._first_is_active, self.namenodes, "the first NameNode is active")
            self._wait_datanodes()
            return
        self._wait_for(
            lambda: all(server.server_name for server in self.region_servers), self.servers, "region servers"
        )
        self._wait_for(self.has_master, self.servers, "the master has initialised")
        self._wait_live(self.region_servers)
        self._wait_datanodes()
        self.admin.balancer(False)
        if self.spec.thrift:
            self._wait_for(self._thrift_answers, [self.thrift], "the Thrift server answers")

    def has_master(self, timeout: float = START_TIMEOUT) -> bool:
        """Whether an HBase master is there and has initialised."""
        try:
            return bool(self.admin.call("ready", timeout))
        except AdminError:
            return False

    def _wait_for(self, condition: Callable[[], object], servers: Iterable[Server], what: str) -> None:
        def checked() -> object:
            for server in servers:
                server.check()
            return condition()

        wait_until(checked, START_TIMEOUT, f"{self.name}: {what}")

    def _wait_datanodes(self) -> None:
        def all_live() -> bool:
            try:
                return self.admin.live_datanodes() >= self.spec.datanodes
            except AdminError:
                return False  # the NameNode listens before it has started

        self._wait_for(all_live, [*self.namenodes, *self.datanodes], "all DataNodes live")

    def _wait_live(self, region_servers: Sequence[RegionServer]) -> None:
        def all_live() -> bool:
            live = self.admin.live_servers()
            return all(server.server_name in live for server in region_servers)

        self._wait_for(all_live, region_servers, "region servers live")

    def _first_is_active(self) -> bool:
        try:
            self.admin.hdfs_make_active(*config.NAMENODES)
        except AdminError:
            return False  # one of them listens, but does not serve yet
        return True

    def _thrift_answers(self) -> bool:
        if self._hbase_client().get("hbase.regionserver.thrift.http") == "true":
            return self._thrift_asks_for_a_ticket()
        try:
            self.admin.call("thrift_tables", port=self.thrift_port)
        except AdminError:
            return False
        return True

    def _thrift_asks_for_a_ticket(self) -> bool:
        """Over HTTP and with Kerberos."""
        try:
            urllib.request.urlopen(f"http://{self._at.host}:{self.thrift_port}/", data=b"", timeout=20)
        except urllib.error.HTTPError as error:
            return error.code == 401
        except OSError:
            return False
        return False

    def add_region_server(self, site: Mapping[str, str] | None = None) -> RegionServer:
        """One more, alive on return."""
        server = self._define_region_server(len(self.region_servers), site or {})
        self.region_servers.append(server)
        server.start()
        return server

    def crash(self, server: RegionServer) -> None:
        """Kill -9 of a region server, and its znode is taken away at once, as HBase's own start script does.

        Else it would be taken for alive until its session has timed out.
        """
        name = server.server_name
        server.kill9()
        self._delete_znodes(f"rs/{name}")

    def expire(self, server: RegionServer, seconds: float) -> None:
        """Stop it (SIGSTOP), take its znode away as if its session had timed out, and let it go on after a while."""
        name = server.server_name
        server.pause()
        try:
            self._delete_znodes(f"rs/{name}")
            time.sleep(seconds)
        finally:
            server.resume()

    def lose(self) -> int:
        """Kill -9 of every server, the admin excepted; returns when all were dead (epoch ms). `start` brings it back.

        Znodes are taken away, so that a start need not wait for sessions to time out.
        """
        names = [server.server_name for server in self.region_servers]
        for server in self.servers:
            server.kill9()
        killed_ms = int(time.time() * 1000)
        self._delete_znodes("master", *(f"rs/{name}" for name in names if name))
        return killed_ms

    def _delete_znodes(self, *names: str) -> None:
        super_user = [("digest", config.ZOOKEEPER_SUPER)]
        client = KazooClient(f"{LOOPBACK}:{self._at.zk_port}", timeout=30, auth_data=super_user)
        client.start(timeout=30)
        try:
            for name in names:
                with contextlib.suppress(NoNodeError):
                    client.delete(f"{self._at.znode}/{name}", recursive=True)
        finally:
            client.stop()
            client.close()

    def reconfigure(self, server: RegionServer, site: Mapping[str, str]) -> None:
        """Other settings of its own for a region server, from its next start on."""
        self._hbase_conf(server, {"hbase.regionserver.port": str(server.port), **site})

    def stop(self) -> None:
        """Stop everything cleanly, region servers while HDFS and master live; `start` brings it up again."""
        for group in ([self.thrift], self.region_servers, [self.master], self.datanodes, self.namenodes):
            stop_together(group)

    def start(self) -> None:
        """Start what does not run and wait until real calls work."""
        self.launch()
        self.wait_ready()

    def restart_all(self) -> None:
        """Stop everything cleanly, start it again on the same ports with the same data."""
        self.stop()
        self.start()

    def release(self) -> None:
        """End the admin, with its background writers; the servers stay."""
        self._admin_process.close()

    def kill(self) -> None:
        """Kill every process, the admin's included."""
        self.release()
        for server in self.servers:
            server.kill9()


def stop_together(servers: Sequence[Server]) -> None:
    """Stop them cleanly, at the same time."""
    with ThreadPoolExecutor(max_workers=max(1, len(servers))) as pool:
        list(pool.map(lambda server: server.stop(120), servers))
