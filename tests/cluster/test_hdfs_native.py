"""Hadoop's own client against WebHDFS on real clusters: the same rows, file by file, whatever kind of file it is."""

from __future__ import annotations

import random
import shutil
import time
from collections import Counter
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import Any

import pytest

from status_tool.clients.config import Settings, load_site
from status_tool.clients.hdfs_native import RpcEndpoint, native_hdfs, no_process_left, rpc_endpoint_of
from status_tool.clients.webhdfs import HdfsEndpoint, Load
from status_tool.sources.hdfs_files import HdfsSource, content_crc, pool_of
from status_tool.vocabulary.selection import Exclusions
from tests.cluster.test_hdfs_depth import BLOCK, MASTER_HDFS, NAMES, PERMISSIONS, SLAVE_HDFS, lose_blocks
from tests.cluster.test_hdfs_kinds import CODING, CRYPTO, POLICY
from tests.files import Check, checksums, details, kinds, rows, rpc_endpoint
from tests.lab import Cluster, ClusterSpec, Lab, wait_until
from tests.lab.config import write_site
from tests.pair import Result, tool_here

pytestmark = pytest.mark.cluster

CELL = 1 << 20
"""Of the policy: no block may be smaller."""
NATIVE = ("--hdfs-client", "native")
SHELL, DFSADMIN = "org.apache.hadoop.fs.FsShell", "org.apache.hadoop.hdfs.tools.DFSAdmin"


@pytest.fixture(scope="module")
def three() -> Iterator[tuple[Cluster, Cluster, Cluster]]:
    """The master: two NameNodes, permissions, a key provider, three DataNodes; the slave: one of each, other layout;
    and a plain one that is mounted beside the master's.
    """
    with Lab() as lab:
        store = f"jceks://file{lab.root}/keys.jceks"
        keys = {"hadoop.security.key.provider.path": store, "lab.keys": "key"}
        master, slave, beside = lab.start_clusters(
            ClusterSpec("m", 0, 3, hdfs_site=MASTER_HDFS | PERMISSIONS | keys, hbase=False, standby=True),
            ClusterSpec("s", 0, 1, hdfs_site=SLAVE_HDFS, hbase=False),
            ClusterSpec("b", 0, 1, hbase=False),
        )
        yield master, slave, beside


@pytest.fixture(scope="module")
def hdfs(three: tuple[Cluster, Cluster, Cluster]) -> tuple[Cluster, Cluster]:
    """Master and slave."""
    return three[:2]


@pytest.fixture(autouse=True)
def clean() -> Iterator[None]:
    """No Java process outlives a test."""
    with no_process_left():
        yield


def read(endpoint: HdfsEndpoint | RpcEndpoint, roots: tuple[str, ...], **options: Any) -> list[dict[str, Any]]:
    """The files in one order, and a last row of what was counted, over all parts."""
    source = HdfsSource(endpoint, roots, Exclusions(), **options)
    found = [row for part in source.partitions() for batch in source.read(part) for row in batch.to_pylist()]
    counts = Counter[str]()
    for row in found:
        counts[str(row["name"])] += row["entries"] or 0
    files = sorted((row for row in found if row["kind"] == "file"), key=lambda row: str(row["path"]))
    return [*files, {name: count for name, count in sorted(counts.items()) if count}]


def both(cluster: Cluster, user: str, *roots: str, **options: Any) -> tuple[list[dict[str, Any]], list[dict[str, Any]]]:
    """All rows of some roots, over WebHDFS and by Hadoop's own client."""
    urls = Settings(load_site([cluster.conf_dir], environ={})).webhdfs()
    web, rpc = HdfsEndpoint(urls, user), rpc_endpoint(cluster, user)
    return read(web, roots, **options), read(rpc, roots, **options)


def test_every_kind_of_file(hdfs: tuple[Cluster, Cluster]) -> None:
    """Names, sizes around blocks, links, empty folders, snapshots, encryption, erasure coding, open and unreadable."""
    admin = hdfs[0].admin
    for folder in ("zone", "coded", "hollow", "closed", "kept"):
        admin.hdfs_mkdir(f"/all/{folder}")
    assert admin.hadoop_tool(CRYPTO, "-createZone", "-keyName", "key", "-path", "/all/zone") == 0
    assert admin.hadoop_tool(CODING, "-enablePolicy", "-policy", POLICY) == 0
    assert admin.hadoop_tool(CODING, "-setPolicy", "-policy", POLICY, "-path", "/all/coded") == 0
    sizes = (0, 1, 511, 512, 513, BLOCK - 1, BLOCK, BLOCK + 1, 12 * BLOCK + 5)
    for size in sizes:
        for folder in ("plain", "zone", "kept"):
            admin.hdfs_put(f"/all/{folder}/{size}", size, seed=size)
        admin.hdfs_put(f"/all/coded/{size}", 77 * size, seed=size, block_size=CELL)
        admin.hdfs_put(f"/all/crc32/{size}", size, seed=size, checksum_type="CRC32", bytes_per_checksum=1024)
    for number, name in enumerate(NAMES):
        admin.hdfs_put(f"/all/names/{name}", b"%d" % number)
        admin.hdfs_put(f"/all/folders/{name}/f", b"%d" % number)
    assert admin.hadoop_tool(DFSADMIN, "-allowSnapshot", "/all/kept") == 0
    assert admin.hadoop_tool(SHELL, "-createSnapshot", "/all/kept", "then") == 0
    admin.hdfs_put("/all/kept/0", b"changed since")
    admin.hdfs_link("/all/link", "/all/plain/1")
    admin.hdfs_link("/all/dangling", "/nowhere")
    admin.hdfs_open("/all/open", b"half written")
    for path in ("lost", "denied", "closed/inside", "_temporary/0/left-out"):
        admin.hdfs_put(f"/all/{path}", f"this is {path}".encode())
    admin.hdfs_chmod("/all/denied", "600")
    admin.hdfs_chmod("/all/closed", "700")
    admin.hdfs_put_many("/all/many", 1_500)
    try:
        for user in ("lab", "somebody"):
            roots = ("/all", "/all/kept/.snapshot/then", "/all/plain/513", "/all/names/[[]*", "/absent")
            web, native = both(hdfs[0], user, *roots)
            assert native == web
            assert len(native) > 5 * len(sizes) + 2 * len(NAMES) + 1_500
            states = {row["path"]: row["state"] for row in native[:-1] if row["state"]}
            assert states["/all/open"] == "open"
            assert ("/all/closed" in states, "/all/denied" in states) == (user != "lab",) * 2
            assert native[-1]["symbolic link"] == 2
    finally:
        admin.hdfs_close("/all/open")
    lose_blocks(hdfs[0], b"this is lost")
    for row, _ in both(hdfs[0], "lab", "/all/lost"):
        assert row["state"] == "unreadable"
        assert "Fail to get block" in row["detail"]


def test_content(hdfs: tuple[Cluster, Cluster]) -> None:
    """`--deep` reads the same: decrypted, reconstructed, and in ranges."""
    admin = hdfs[0].admin
    admin.hdfs_mkdir("/content/coded")
    admin.hdfs_mkdir("/content/zone")
    assert admin.hadoop_tool(CRYPTO, "-createZone", "-keyName", "key", "-path", "/content/zone") == 0
    assert admin.hadoop_tool(CODING, "-enablePolicy", "-policy", POLICY) == 0
    assert admin.hadoop_tool(CODING, "-setPolicy", "-policy", POLICY, "-path", "/content/coded") == 0
    data = random.Random(3).randbytes(3_000_001)
    for folder in ("plain", "zone", "coded"):
        admin.hdfs_put(f"/content/{folder}/f", data, block_size=CELL)
        admin.hdfs_put(f"/content/{folder}/empty", 0, block_size=CELL)
    web, native = both(hdfs[0], "lab", "/content", deep=True)
    assert native == web
    assert len({row["crc32c"] for row in native[:-1] if row["length"]}) == 1
    client = native_hdfs(rpc_endpoint(hdfs[0]))
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr("status_tool.sources.hdfs_files.RANGE_BYTES", 1_000_000)
        for folder in ("plain", "zone", "coded"):
            assert content_crc(client, f"/content/{folder}/f", len(data)) == native[1]["crc32c"], folder
    assert pool_of(client, ("/content",), Exclusions()).startswith("BP-")


@pytest.mark.usefixtures("warm_spark")
def test_both_runs(hdfs: tuple[Cluster, Cluster], tmp_path: Path) -> None:
    """`run -m` and `run -i`, `--deep` included: the same verdicts whichever client reads which side."""
    content = random.Random(1).randbytes(5 * BLOCK + 77)
    flipped = content[:-1] + bytes([content[-1] ^ 1])
    layout: dict[str, Any] = {"block_size": BLOCK, "bytes_per_checksum": 512, "checksum_type": "CRC32C"}
    for name in ("alike", "same", "other", "gone", "differs"):
        hdfs[0].admin.hdfs_put(f"/runs/{name}", content, **layout)
    for name, found in (("alike", content), ("differs", flipped)):
        hdfs[1].admin.hdfs_put(f"/runs/{name}", found, **layout)
    for name, found in (("same", content), ("other", flipped)):
        hdfs[1].admin.hdfs_put(f"/runs/{name}", found)
    check = Check(hdfs, tmp_path, "/runs")
    seen = []
    for master in ((), NATIVE):
        check.write("--deep", *master)
        for slave in ((), NATIVE):
            plain, deep = check.verify(*slave), check.verify("--deep", *slave)
            assert (plain.exit_code, deep.exit_code) == (1, 1), (plain, deep)
            seen.append((kinds(plain), details(plain), kinds(deep), details(deep)))
    assert all(one == seen[0] for one in seen)
    known = {"/runs/gone": "missing", "/runs/differs": "mismatch"}
    assert seen[0][0] == known | {"/runs/same": "incomparable", "/runs/other": "incomparable"}
    assert seen[0][2] == {**known, "/runs/other": "mismatch"}


@pytest.mark.usefixtures("warm_spark")
def test_many_files_choose_it(hdfs: tuple[Cluster, Cluster], tmp_path: Path) -> None:
    """From some thousand on without being told; `--explain` says which it will be."""
    for cluster in hdfs:
        cluster.admin.hdfs_put_many("/large", 2_500)
    check = Check(hdfs, tmp_path, "/large")
    plan = check.write("--explain").stdout
    assert "by Hadoop's own client" in plan
    assert "2500 files" in plan
    check.write()
    result = check.verify()
    assert (result.exit_code, result.json["hdfs"]["files"]["match"]) == (0, 2_500), result


def view(folder: Path, cluster: Cluster, name: str, mounts: dict[str, str]) -> dict[str, str]:
    """Site files of a client whose file system is a mount table; returns that table."""
    shutil.copytree(cluster.conf_dir, folder, ignore=shutil.ignore_patterns("core-site.xml", "hbase-site.xml"))
    table = {f"fs.viewfs.mounttable.{name}.{link}": target for link, target in mounts.items()}
    write_site(folder / "core-site.xml", {"fs.defaultFS": f"viewfs://{name}", **table})
    return table


def shown_by_hadoop(cluster: Cluster, name: str, table: dict[str, str]) -> set[str]:
    """Paths of the files of a view, as `hdfs dfs -ls -R` lists them; it fails where a mount point leads to nothing."""
    settings = {key: target for key, target in table.items() if not key.endswith("/nothing")}
    settings |= {"fs.viewfs.mount.links.as.symlinks": "false", "hadoop.user.group.static.mapping.overrides": "lab=lab"}
    options = [word for key, target in settings.items() for word in ("-D", f"{key}={target}")]
    lines = cluster.run_main(SHELL, [*options, "-ls", "-R", f"viewfs://{name}/"]).splitlines()
    return {line[line.index("viewfs:") :].removeprefix(f"viewfs://{name}") for line in lines if line.startswith("-")}


@pytest.mark.usefixtures("warm_spark")
def test_mount_tables(three: tuple[Cluster, Cluster, Cluster], tmp_path: Path) -> None:
    """Two NameNodes and a fallback on the master, folders of one on the slave: each file by its path in the view."""
    master, slave, beside = three
    layout: dict[str, Any] = {"block_size": BLOCK, "bytes_per_checksum": 512, "checksum_type": "CRC32C"}
    files = {"/data/same": "", "/data/sub/other": "flipped", "/far/away/same": "", "/far/away/gone": None}
    files |= {"/far/here": "", "/loose/same": "", "/one/file": ""}
    there = {"/data": "/v/d", "/far/away": "/v/a", "/one/file": "/v/single"}

    def put(cluster: Cluster, path: str, content: str, fallback: str) -> None:
        mount = next((mount for mount in there if path.startswith(mount)), None)
        at = f"{fallback}{path}" if mount is None else path.replace(mount, there[mount], 1)
        cluster.admin.hdfs_put(at, content.encode(), **layout)

    for path, other in files.items():
        put(beside if path.startswith("/far/away") else master, path, path, "/v/rest")
        if other is not None:
            put(slave, path, other or path, "/v/rest")
    for cluster in (master, slave):  # what a mount point hides
        cluster.admin.hdfs_put("/v/rest/data/hidden", cluster.name.encode())
    rpc = {cluster: rpc_endpoint(cluster).filesystem for cluster in three}
    source = {master: rpc[master], slave: rpc[slave]}
    tables = {}
    for cluster in (master, slave):
        away = rpc[beside] if cluster is master else rpc[slave]
        mounts = {f"link.{path}": f"{source[cluster]}{at}" for path, at in there.items()}
        mounts |= {"link./far/away": f"{away}/v/a", "link./nothing": f"{source[cluster]}/v/nowhere"}
        tables[cluster] = view(
            tmp_path / cluster.name, cluster, "all", mounts | {"linkFallback": f"{source[cluster]}/v/rest"}
        )
    (tmp_path / "paths").write_text("/\n")

    def run(cluster: Cluster, *options: str | Path) -> Result:
        return tool_here("run", *options, "--only", "hdfs", "--conf-dir", tmp_path / cluster.name)

    write = ("-m", "-o", tmp_path / "master.status", "-f", tmp_path / "paths")
    assert (written := run(master, *write)).exit_code == 0, written
    result = run(slave, "-i", tmp_path / "master.status", "--json")
    assert kinds(result) == {"/data/sub/other": "mismatch", "/far/away/gone": "missing"}, result
    assert result.json["hdfs"]["files"]["match"] == len(files) - 2
    listed = read(rpc_endpoint_of_view(tmp_path / "m"), ("/",))
    assert {row["path"] for row in listed[:-1]} == shown_by_hadoop(master, "all", tables[master]) == set(files)
    assert (
        "mount table (viewfs://), which Hadoop's own client alone reads"
        in run(master, *write, "--hdfs-client", "webhdfs").stderr
    )
    same = run(master, "-i", tmp_path / "master.status", "--json")
    assert same.exit_code == 2
    assert "FILE is this cluster's own" in same.stderr
    looked = tool_here("setup", "--check", "--conf-dir", tmp_path / "m").stdout
    assert f"HDFS viewfs://all/far/away, {rpc[beside]}/v/a: the NameNode answers" in looked
    assert "/v/nowhere: there is nothing yet" in looked


def rpc_endpoint_of_view(folder: Path) -> RpcEndpoint:
    found = rpc_endpoint_of(Settings(load_site([folder], environ={})))
    assert found is not None
    return replace(found, user="lab")


def test_servers_that_fail_in_the_middle(hdfs: tuple[Cluster, Cluster]) -> None:
    """NameNodes change roles, the active one is killed, a DataNode, too: every file still gets its checksum."""
    master, _ = hdfs
    assert master.standby is not None
    master.admin.hdfs_put_many("/many", 300, b"content")
    endpoint = rpc_endpoint(master)
    before = checksums(rows(HdfsSource(endpoint, ("/many",), Exclusions())))
    assert len(before) == 300
    with ThreadPoolExecutor(1) as pool:
        for rate, change in ((60, "roles"), (61, "datanode"), (62, "death")):
            slow = HdfsSource(endpoint, ("/many",), Exclusions(), Load(rate=rate))
            reading = pool.submit(rows, slow)
            time.sleep(2)
            if change == "roles":
                master.admin.hdfs_make_active("nn1", "nn0")
            elif change == "datanode":
                master.datanodes[0].kill9()
            else:
                master.standby.kill9()
                master.admin.hdfs_make_active("nn0")
            assert not reading.done()
            assert checksums(reading.result(180)) == before
    master.standby.start()
    master.datanodes[0].start()
    wait_until(partial(has_datanodes, master, 3), 60, "the DataNode is back")


def has_datanodes(cluster: Cluster, number: int) -> bool:
    return cluster.admin.live_datanodes() == number
