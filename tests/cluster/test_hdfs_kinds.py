"""Files that HDFS stores otherwise, and a pair of NameNodes: one real cluster with an encryption zone, erasure coding
and a standby, against a plain one.
"""

from __future__ import annotations

import random
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from functools import partial
from pathlib import Path

import pytest

from status_tool.clients.config import Settings, load_site
from status_tool.clients.webhdfs import HdfsEndpoint, Load, RateLimit, webhdfs
from status_tool.sources.hdfs_files import HdfsSource
from status_tool.vocabulary.selection import Exclusions
from tests.files import Check, checksums, details, kinds, rows, where
from tests.lab import Cluster, ClusterSpec, Lab, wait_until

pytestmark = pytest.mark.cluster

CRYPTO, CODING = "org.apache.hadoop.hdfs.tools.CryptoAdmin", "org.apache.hadoop.hdfs.tools.ECAdmin"
KEYS = "org.apache.hadoop.crypto.key.KeyShell"
POLICY = "XOR-2-1-1024k"
"""The one built-in policy that three DataNodes suffice for."""


@pytest.fixture(scope="module")
def hdfs() -> Iterator[tuple[Cluster, Cluster]]:
    """The master: two NameNodes, a key provider, three DataNodes; the slave: one of each and no keys."""
    with Lab() as lab:
        store = f"jceks://file{lab.root}/keys.jceks"
        site = {"dfs.replication": "2", "hadoop.security.key.provider.path": store, "lab.keys": "key,lost"}
        master, slave = lab.start_clusters(
            ClusterSpec("m", 0, 3, hdfs_site=site, hbase=False, standby=True), ClusterSpec("s", 0, 1, hbase=False)
        )
        admin = master.admin
        for folder in ("/kinds/zone", "/kinds/coded", "/lost"):
            admin.hdfs_mkdir(folder)
        for key, folder in (("key", "/kinds/zone"), ("lost", "/lost")):
            assert admin.hadoop_tool(CRYPTO, "-createZone", "-keyName", key, "-path", folder) == 0
        assert admin.hadoop_tool(CODING, "-enablePolicy", "-policy", POLICY) == 0
        assert admin.hadoop_tool(CODING, "-setPolicy", "-policy", POLICY, "-path", "/kinds/coded") == 0
        admin.hdfs_put("/lost/file", 100)
        # The NameNode has read the key store, the DataNodes do so at the first encrypted file.
        assert admin.hadoop_tool(KEYS, "delete", "lost", "-f", "-provider", store) == 0
        yield master, slave


@pytest.mark.usefixtures("warm_spark")
def test_encrypted_and_erasure_coded_files(hdfs: tuple[Cluster, Cluster], tmp_path: Path) -> None:
    """Against a plain copy: incomparable, exit 3, with the reason; `--deep` separates equal from different content."""
    content = random.Random(4).randbytes(5_000_001)
    flipped = content[:-1] + bytes([content[-1] ^ 1])
    for kind in ("zone", "coded", "plain"):
        for cluster in hdfs:
            cluster.admin.hdfs_put(f"/kinds/{kind}/file", content)
    check = Check(hdfs, tmp_path, "/kinds")
    check.write("--deep")
    result = check.verify()
    assert result.exit_code == 3, result
    assert result.json["hdfs"]["files"] | {"match": 1, "incomparable": 2} == result.json["hdfs"]["files"]
    assert "CRC32C encrypted on the master" in details(result)["/kinds/zone/file"]
    assert f"CRC32C {POLICY} on the master" in details(result)["/kinds/coded/file"]
    settled = check.verify("--deep")
    assert (settled.exit_code, settled.json["hdfs"]["files"]["match"]) == (0, 3), settled
    for kind in ("zone", "coded"):
        hdfs[1].admin.hdfs_put(f"/kinds/{kind}/file", flipped)
    result = check.verify("--deep")
    assert result.exit_code == 1, result
    assert kinds(result) == {"/kinds/zone/file": "mismatch", "/kinds/coded/file": "mismatch"}


@pytest.mark.usefixtures("warm_spark")
def test_a_file_that_cannot_be_decrypted(hdfs: tuple[Cluster, Cluster], tmp_path: Path) -> None:
    """Where the DataNodes do not get at the key, `--deep` settles nothing: unverifiable, and it is said why."""
    hdfs[1].admin.hdfs_put("/lost/file", 100)
    check = Check(hdfs, tmp_path, "/lost")
    check.write("--deep")
    result = check.verify("--deep")
    assert (result.exit_code, kinds(result)) == (3, {"/lost/file": "unverifiable"}), result
    assert "unreadable: master: KeyVersion name 'lost@0' does not exist" in details(result)["/lost/file"]


def test_failover_in_the_middle_of_a_run(hdfs: tuple[Cluster, Cluster], monkeypatch: pytest.MonkeyPatch) -> None:
    """A standby's answer is understood; when the roles change, and when the active one is killed, no file is lost."""
    master, _ = hdfs
    assert master.standby is not None
    master.admin.hdfs_put_many("/many", 300, b"content")
    urls = Settings(load_site([Path(where(master)[1])])).webhdfs()
    assert len(urls) == 2
    endpoint = HdfsEndpoint(urls, "lab")
    before = checksums(rows(HdfsSource(endpoint, ("/many",), Exclusions())))
    assert len(before) == 300
    requests = counted(monkeypatch)
    with ThreadPoolExecutor(1) as pool:
        for rate, change in ((100, "roles"), (101, "death")):
            slow, start = Load(rate=rate), requests()
            reading = pool.submit(rows, HdfsSource(endpoint, ("/many",), Exclusions(), slow))
            wait_until(partial(under_way, requests, start), 60, "the run is under way")
            at = webhdfs(endpoint, slow).active
            if change == "roles":
                master.admin.hdfs_make_active("nn1", "nn0")
            else:
                master.standby.kill9()
                master.admin.hdfs_make_active("nn0")
            assert not reading.done()
            assert checksums(reading.result(120)) == before
            assert webhdfs(endpoint, slow).active != at


def under_way(requests: Callable[[], int], start: int) -> bool:
    """Whether a run that began at so many requests has made some."""
    return requests() > start + 50


def counted(monkeypatch: pytest.MonkeyPatch) -> Callable[[], int]:
    """How many requests any client has made to a NameNode."""
    count, wait = [0], RateLimit.wait

    def counting(limit: RateLimit) -> None:
        count[0] += 1
        wait(limit)

    monkeypatch.setattr(RateLimit, "wait", counting)
    return lambda: count[0]
