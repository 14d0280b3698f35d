"""The laboratory: one ZooKeeper and any number of clusters, all on loopback, all gone at the end."""

from __future__ import annotations

import atexit
import os
import shutil
import subprocess
import sys
import tempfile
import threading
import time
import uuid
from collections.abc import Callable, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from pathlib import Path
from typing import Self

from . import config, watchdog
from .classpath import HOME, servers_classpath, shared_classes
from .cluster import Cluster, ClusterSpec
from .errors import LabError
from .kdc import Kdc
from .ports import Drawn, Ports
from .process import Java, Server
from .secure import Security
from .stores import make_stores


def server_java(hbase_version: str, root: Path, mark: str, jvm_options: Sequence[str] | None = None) -> Java:
    """How the servers of the lab with this folder and mark are started. See `Lab` for the options."""
    archive = shared_classes(hbase_version)
    # At its own address the archive is shared by all JVMs; moved elsewhere it would be a copy of 100 MB in each.
    in_place = ("-XX:+UnlockDiagnosticVMOptions", "-XX:ArchiveRelocationMode=0")
    shared = (f"-XX:SharedArchiveFile={archive}", *in_place) if archive else ()
    # Jetty and the native libraries unpack into it; a killed server never removes what it unpacked.
    scratch = root / "tmp"
    scratch.mkdir(exist_ok=True)
    options = (f"-Djava.io.tmpdir={scratch}", *(shared if jvm_options is None else jvm_options))
    return Java(mark, servers_classpath(hbase_version), HOME / "conf" / "log4j.properties", options)


class Lab:
    """Owns a temporary folder, a ZooKeeper and all clusters; a context manager.

    `close` kills every process that it started. If nobody can call it (kill -9), the watchdog does it.
    """

    def __init__(
        self,
        *,
        hbase_version: str = "2.6.1",
        keep: bool | None = None,
        say: Callable[[str], None] | None = None,
        jvm_options: Sequence[str] | None = None,
        secure: bool = False,
        zookeeper: Mapping[str, object] | None = None,
    ) -> None:
        """Starts ZooKeeper only. `keep` (or LAB_KEEP=1) leaves the folder with the logs behind.

        `jvm_options` replace the default, which is the shared archive of classes if there is one. `secure`: a KDC comes
        first (`security`), and every server authenticates by it. `zookeeper`: more of its zoo.cfg.
        """
        self.hbase_version = hbase_version
        self.keep = os.environ.get("LAB_KEEP") == "1" if keep is None else keep
        self.clusters: dict[str, Cluster] = {}
        self._say = say or (lambda text: None)
        self.mark = uuid.uuid4().hex
        self._closing = threading.Lock()
        self._closed = False
        self.root = Path(tempfile.mkdtemp(prefix="status-tool-lab-"))
        self._watchdog = self._start_watchdog()
        atexit.register(self.close)
        self._ports = Ports()
        try:
            self._java = server_java(hbase_version, self.root, self.mark, jvm_options)
            self.security = self._start_kdc() if secure else None
            self.zk_port = self._ports.take()
            self.zookeeper = self._start_zookeeper(zookeeper or {})
        except BaseException:
            self.close()
            raise

    def _start_watchdog(self) -> subprocess.Popen[bytes]:
        folder = "" if self.keep else str(self.root)
        script = [sys.executable, "-S", "-E", watchdog.__file__]
        return subprocess.Popen(
            [*script, str(os.getpid()), self.mark, folder],
            stdin=subprocess.PIPE,
            start_new_session=True,  # it must outlive a Ctrl-C
        )

    def _start_kdc(self) -> Security:
        kdc = Kdc(self._java, self.root / "kdc", self._ports.take())
        stores = make_stores(self.root / "stores")
        kdc.start()
        self._java = kdc.client(self._java)
        return Security(kdc, stores)

    def _start_zookeeper(self, settings: Mapping[str, object]) -> Server:
        folder = self.root / "zookeeper"
        folder.mkdir()
        file, java = folder / "zoo.cfg", self._java
        more = dict(settings)
        if self.security:
            more |= self.security.zookeeper()
            jaas = folder / "jaas.conf"
            jaas.write_text(self.security.zookeeper_jaas())
            java = replace(java, options=(*java.options, *self.security.zookeeper_options(jaas)))
        file.write_text(config.zookeeper(self.zk_port, folder / "data", more))
        main = "org.apache.zookeeper.server.quorum.QuorumPeerMain"
        server = Server(java, "zookeeper", folder, main, (str(file),), 128, self.zk_port)
        server.start()
        return server

    def cluster(
        self, name: str, *, region_servers: int = 2, site: Mapping[str, str] | None = None, thrift: bool = True
    ) -> Cluster:
        """Define and start one cluster; returns when real calls work. `start_clusters` takes all of `ClusterSpec`."""
        return self.start_clusters(ClusterSpec(name, region_servers, site=site or {}, thrift=thrift))[0]

    def start_clusters(self, *specs: ClusterSpec) -> list[Cluster]:
        """Start several side by side; if one fails, its error is raised and all that was started stays up."""
        began = time.monotonic()
        clusters = [self._define(spec) for spec in specs]
        self._say(f"starting {', '.join(spec.name for spec in specs)} (HBase {self.hbase_version}) in {self.root}")
        with ThreadPoolExecutor(max_workers=max(1, len(clusters))) as pool:
            starting = [pool.submit(cluster.start) for cluster in clusters]
            try:
                for start in starting:
                    start.result()
            except (KeyboardInterrupt, SystemExit):
                # The pool would wait for clusters that nobody wants any more.
                self.close()
                raise
        self._say(f"up after {time.monotonic() - began:.0f} s")
        return clusters

    def _define(self, spec: ClusterSpec) -> Cluster:
        if self._closed:
            raise LabError("the lab is closed")
        if spec.name in self.clusters:
            raise LabError(f"there is a cluster {spec.name} already")
        cluster = Cluster(
            spec,
            root=self.root,
            java=self._java,
            ports=Drawn(self._ports),
            zk_port=self.zk_port,
            security=self.security,
        )
        self.clusters[spec.name] = cluster
        return cluster

    def pids(self) -> list[int]:
        """Every living server and admin process of this lab, as the system knows them."""
        return watchdog.marked(self.mark)

    def close(self) -> None:
        """Kill all, remove the folder unless it is to be kept. May be called again."""
        with self._closing:
            if self._closed:
                return
            self._closed = True
        atexit.unregister(self.close)
        for cluster in self.clusters.values():
            cluster.kill()
        if hasattr(self, "zookeeper"):
            self.zookeeper.kill9()
        # Also catches what is missing above: a server that was just being started.
        watchdog.kill_marked(self.mark)
        self._ports.release()
        if self.keep:
            self._say(f"kept {self.root}")
        else:
            shutil.rmtree(self.root, ignore_errors=True)
        self._watchdog.communicate()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()
