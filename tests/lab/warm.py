"""Learn which classes the servers load, so that later JVMs map them ready-made and start faster."""

from __future__ import annotations

import tempfile
from pathlib import Path

from .classpath import archive_classes
from .cluster import Cluster
from .lab import Lab


def warm(hbase_version: str) -> Path:
    """Run one small cluster, end it cleanly (the JVMs write their lists then), make the archive; its path."""
    with tempfile.TemporaryDirectory() as folder:
        options = ["-Xshare:auto", f"-XX:DumpLoadedClassList={folder}/%p.lst"]
        with Lab(hbase_version=hbase_version, jvm_options=options) as lab:
            cluster = lab.cluster("warm", region_servers=1)
            _use(cluster)
            cluster.admin.process.finish()
            cluster.stop()
        return archive_classes(hbase_version, Path(folder).glob("*.lst"))


def _use(cluster: Cluster) -> None:
    """What most tests do."""
    cluster.admin.create_table("t", {"f": 1})
    cluster.admin.add_peer("self", cluster.cluster_key + "-other", enabled=False)
    cluster.admin.put_rows("t", "f", 10)
    cluster.admin.flush("t")
    cluster.admin.digest("t")
    cluster.admin.replication_lag()
    cluster.admin.hdfs_put("/file", 1000)
