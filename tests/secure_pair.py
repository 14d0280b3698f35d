"""A master and a slave with Kerberos, TLS, access control and protected WALs, and who runs the tool there."""

from __future__ import annotations

import contextlib
import subprocess
import threading
from collections.abc import Iterator
from dataclasses import dataclass, replace
from pathlib import Path

import pytest

from status_tool.clients.kerberos import forget_tickets
from tests.lab.classpath import java
from tests.lab.cluster import Cluster, ClusterSpec
from tests.lab.kdc import Kdc
from tests.lab.lab import Lab
from tests.lab.secure import Security
from tests.pair import Pair, Result, start_pair, tool_here, tracked_spec

TOOL_USER = "status"
"""A superuser of HBase, who may read the replication queues in ZooKeeper."""
_FS_SHELL = "org.apache.hadoop.fs.FsShell"
_KEY_STORE_PASSWORD = "lab-key-store"


@dataclass(frozen=True)
class SecurePair:
    """Both clusters, and the lab with their realm."""

    pair: Pair
    lab: Lab

    @property
    def security(self) -> Security:
        assert self.lab.security is not None
        return self.lab.security

    @property
    def kdc(self) -> Kdc:
        return self.security.kdc

    def keytab_of(self, user: str) -> tuple[str, ...]:
        """Options of the tool."""
        return ("--principal", self.kdc.principal(user), "--keytab", str(self.kdc.keytab(user)))


def run_here(*arguments: str | Path, conf: Cluster | Path) -> Result:
    """Run the tool in this process, then drop its login: the next run logs in anew, as a process of its own would."""
    with pytest.MonkeyPatch.context() as patch:
        # pytest keeps a thread's error to itself. The stderr of a process shows it, and a refusal is one line.
        patch.setattr(threading, "excepthook", threading.__excepthook__)
        try:
            return tool_here(*arguments, conf=conf)
        finally:
            # Restores KRB5CCNAME at once: later it would overwrite what a test has set in between.
            forget_tickets()


@contextlib.contextmanager
def a_secure_pair() -> Iterator[SecurePair]:
    """Two clusters that last as long as the context; the tool may read their WALs."""
    with Lab(secure=True) as lab:
        started = _started(lab)
        for cluster in (started.pair.master, started.pair.slave):
            let_read_wals(cluster, TOOL_USER)
        yield started


def _started(lab: Lab) -> SecurePair:
    """Start both, one region server each. The master: privacy everywhere, encrypted WALs; the slave: Thrift over HTTP,
    compressed WALs.
    """
    private = {
        "hbase.rpc.protection": "privacy",
        "hbase.thrift.security.qop": "auth-conf",
        **encrypted_wals(lab.root / "wal-keys"),
    }
    open_to_both = {
        "hbase.rpc.protection": "authentication,privacy",
        "hbase.regionserver.thrift.http": "true",
        "hbase.regionserver.wal.enablecompression": "true",
    }
    master = _spec("master", private, {"dfs.data.transfer.protection": "privacy"})
    slave = _spec("slave", open_to_both, {})
    return SecurePair(start_pair(lab, master, slave), lab)


def _spec(name: str, site: dict[str, str], hdfs_site: dict[str, str]) -> ClusterSpec:
    """Its folders of WALs can be opened to others: HBase takes an ACL away that is wider than this, at every start."""
    shown = {"hbase.rootdir.perms": "750"}
    return replace(tracked_spec(name, region_servers=1, site=shown | site), hdfs_site=hdfs_site)


def encrypted_wals(folder: Path) -> dict[str, str]:
    """Settings of servers with encrypted WALs, and the key store that they name."""
    folder.mkdir(parents=True)
    store = folder / "hbase.jceks"
    keytool = str(Path(java()).with_name("keytool"))
    key = ("-genseckey", "-alias", "hbase", "-keyalg", "AES", "-keysize", "128")
    where = ("-keystore", str(store), "-storetype", "JCEKS", "-storepass", _KEY_STORE_PASSWORD)
    subprocess.run([keytool, *key, *where], check=True, capture_output=True)
    return {
        "hbase.crypto.keyprovider": "org.apache.hadoop.hbase.io.crypto.KeyStoreKeyProvider",
        "hbase.crypto.keyprovider.parameters": f"jceks://{store}?password={_KEY_STORE_PASSWORD}",
        "hbase.crypto.master.key.name": "hbase",
        "hbase.regionserver.wal.encryption": "true",
    }


def fs_shell(cluster: Cluster, *arguments: str) -> None:
    """`hdfs dfs …` as the administrator; must succeed."""
    assert cluster.admin.call("hadoop_tool", name=_FS_SHELL, args=arguments) == 0


def let_read_wals(cluster: Cluster, user: str) -> None:
    """Do what an administrator does once for the tool's user."""
    for folder in ("/hbase/WALs", "/hbase/oldWALs"):
        fs_shell(cluster, "-setfacl", "-m", f"user:{user}:r-x", folder)
