"""Every verdict about files on two real HDFS clusters of different layouts, and what happens when servers fail."""

from __future__ import annotations

import random
import shlex
import time
from collections import Counter
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import pytest

from status_tool.clients.webhdfs import Load, WebHdfs, webhdfs
from status_tool.explain.advice import FILESYSTEM_PLACEHOLDER, SLAVE_FILESYSTEM_PLACEHOLDER
from status_tool.sources.crc import Layout
from status_tool.sources.hdfs_files import HdfsSource, content_crc
from status_tool.sources.local import LocalSource
from status_tool.sources.state_table import now_ms
from status_tool.vocabulary.selection import Exclusions
from tests.files import Check, checksums, details, endpoint, kinds, rows
from tests.lab import Cluster, ClusterSpec, Lab, wait_until

pytestmark = pytest.mark.cluster

BLOCK = 4096
MASTER_HDFS = {"dfs.replication": "2", "dfs.blocksize": str(BLOCK), "dfs.bytes-per-checksum": "512"}
SLAVE_HDFS = {"dfs.blocksize": str(2 * BLOCK), "dfs.bytes-per-checksum": "1024", "dfs.checksum.type": "CRC32"}
PERMISSIONS = {"dfs.permissions.enabled": "true", "dfs.permissions.superusergroup": "nobody-at-all"}


@pytest.fixture(scope="module")
def hdfs() -> Iterator[tuple[Cluster, Cluster]]:
    """HDFS alone, twice: small blocks, CRC32C; larger blocks, larger chunks, CRC32."""
    with Lab() as lab:
        master, slave = lab.start_clusters(
            ClusterSpec("m", 0, 2, hdfs_site=MASTER_HDFS | PERMISSIONS, hbase=False),
            ClusterSpec("s", 0, 1, hdfs_site=SLAVE_HDFS, hbase=False),
        )
        yield master, slave


@pytest.mark.usefixtures("warm_spark")
def test_layouts_are_incomparable_until_read(hdfs: tuple[Cluster, Cluster], tmp_path: Path) -> None:
    """Same bytes in another layout are incomparable, exit 3; `--deep` separates them from others, exit 0 or 1."""
    master, slave = (cluster.admin for cluster in hdfs)
    content = random.Random(1).randbytes(5 * BLOCK + 77)
    flipped = bytearray(content)
    flipped[3 * BLOCK] ^= 1
    layout: dict[str, Any] = {"block_size": BLOCK, "bytes_per_checksum": 512, "checksum_type": "CRC32C"}
    for path in ("same", "other"):
        master.hdfs_put(f"/layout/{path}", content, **layout)
    slave.hdfs_put("/layout/same", content)
    slave.hdfs_put("/layout/other", content, block_size=BLOCK)
    for admin in (master, slave):
        admin.hdfs_put("/layout/alike", content, **layout)
        admin.hdfs_put("/layout/empty", 0)
    check = Check(hdfs, tmp_path, "/layout")
    result = check()
    assert result.exit_code == 3, result
    assert result.json["hdfs"]["files"] | {"match": 2, "incomparable": 2} == result.json["hdfs"]["files"]
    assert "CRC32C on the master" in details(result)["/layout/same"]
    check.write("--deep")
    assert check.verify().exit_code == 3
    assert (settled := check.verify("--deep")).exit_code == 0, settled
    slave.hdfs_put("/layout/other", bytes(flipped))
    result = check.verify("--deep")
    assert (result.exit_code, kinds(result)) == (1, {"/layout/other": "mismatch"}), result
    assert "content differs" in details(result)["/layout/other"]
    assert check.verify("--deep=all").exit_code == 1
    slave.hdfs_put("/layout/alike", bytes(flipped), **layout)
    result = check.verify()
    assert kinds(result)["/layout/alike"] == "mismatch"
    assert "checksum differs" in details(result)["/layout/alike"]


def test_crc_is_hadoops_composite_crc(hdfs: tuple[Cluster, Cluster], monkeypatch: pytest.MonkeyPatch) -> None:
    """`--deep`'s value, also when combined of ranges, is what Hadoop's own client computes."""
    admin = hdfs[0].admin
    sizes = (1, 511, 512, 513, BLOCK - 1, BLOCK, BLOCK + 1, 5 * BLOCK + 3)
    for size in sizes:
        admin.hdfs_put(f"/crc/{size}", size, seed=size, checksum_type="CRC32C")
    theirs = [text.rpartition("0x")[2] for text in admin.hdfs_checksums([f"/crc/{size}" for size in sizes])]
    client = WebHdfs(endpoint(hdfs[0]))
    assert [content_crc(client, f"/crc/{size}", size) for size in sizes] == theirs
    monkeypatch.setattr("status_tool.sources.hdfs_files.RANGE_BYTES", 1000)
    assert [content_crc(client, f"/crc/{size}", size) for size in sizes] == theirs


@pytest.mark.parametrize("layout", [Layout(BLOCK, 512, "CRC32C"), Layout(8192, 1024, "CRC32")])
def test_local_checksums_are_those_of_hdfs(hdfs: tuple[Cluster, Cluster], tmp_path: Path, layout: Layout) -> None:
    """Algorithm and value, byte for byte, around every boundary."""
    block = layout.block_size
    sizes = (0, 1, 511, 512, 513, block - 1, block, block + 1, 2 * block, 2 * block + 1, 3 * block, 5 * block + 9)
    for size in sizes:
        content = random.Random(size).randbytes(size)
        (tmp_path / str(size)).write_bytes(content)
        hdfs[0].admin.hdfs_put(
            f"/local{block}/{size}",
            content,
            block_size=block,
            bytes_per_checksum=layout.bytes_per_crc,
            checksum_type=layout.crc_type,
        )
    remote = rows(HdfsSource(endpoint(hdfs[0]), (f"/local{block}",), Exclusions()))
    local = rows(LocalSource((str(tmp_path),), Exclusions(), layout))
    for size in sizes:
        there, here = remote[f"/local{block}/{size}"], local[f"{tmp_path}/{size}"]
        same = ("length", "algorithm", "checksum")
        assert [here[name] for name in same] == [there[name] for name in same], size


@pytest.mark.usefixtures("warm_spark")
def test_open_changed_and_unreadable_files(
    hdfs: tuple[Cluster, Cluster], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """None is fine, none is a mismatch: exit 3, each with its reason."""
    master, slave = (cluster.admin for cluster in hdfs)
    layout: dict[str, Any] = {"block_size": BLOCK, "bytes_per_checksum": 512, "checksum_type": "CRC32C"}
    for admin in (master, slave):
        for name in ("denied", "lost", "changed", "good", "closed/inside"):
            admin.hdfs_put(f"/states/{name}", f"this is {name}".encode(), **layout)
    slave.hdfs_put("/states/open", b"half", **layout)
    master.hdfs_open("/states/open", b"half written")
    master.hdfs_chmod("/states/denied", "600")
    master.hdfs_chmod("/states/closed", "700")
    lose_blocks(hdfs[0], b"this is lost")
    shutdown = now_ms()
    time.sleep(0.1)
    master.hdfs_put("/states/changed", 200, seed=2, **layout)
    monkeypatch.setenv("HADOOP_USER_NAME", "somebody")
    check = Check(hdfs, tmp_path, "/states")
    check.write("-s", str(shutdown))
    result = check.verify()
    master.hdfs_close("/states/open")
    found = details(result)
    assert result.exit_code == 3, result
    assert result.json["hdfs"]["files"] == {
        "match": 1, "mismatch": 0, "missing": 0, "extra": 1, "incomparable": 0, "unverifiable": 5
    }  # fmt: skip
    assert "Permission denied" in found["/states/denied"]
    assert "Permission denied" in found["/states/closed"]
    assert "unreadable: master" in found["/states/lost"]
    assert "changed on the master after the cut" in found["/states/changed"]
    assert found["/states/open"] == "still open for writing: master"
    assert check.verify("--strict-extra").exit_code == 1


def lose_blocks(cluster: Cluster, content: bytes) -> None:
    """Delete every replica of the block with this content, behind HDFS's back."""
    lost = 0
    for datanode in cluster.datanodes:
        for block in datanode.folder.rglob("blk_*"):
            if block.suffix != ".meta" and block.is_file() and block.read_bytes() == content:
                for file in block.parent.glob(block.name + "*"):
                    file.unlink()
                lost += 1
    assert lost


NAMES = ["with space", "100%25+1", "a+b&c=d;e", "line\nbreak", "größe-名前-🐘", "x" * 255, "#1?2", "[braced]*"]


@pytest.mark.usefixtures("warm_spark")
def test_names_globs_exclusions_and_moved_trees(hdfs: tuple[Cluster, Cluster], tmp_path: Path) -> None:
    """Whatever HDFS takes as a name is checked; a tree is found where --map-path says; what is left out is said."""
    master, slave = (cluster.admin for cluster in hdfs)
    layout: dict[str, Any] = {"block_size": BLOCK, "bytes_per_checksum": 512, "checksum_type": "CRC32C"}
    for number, name in enumerate(NAMES):
        master.hdfs_put(f"/names/one/{name}", b"%d" % number, **layout)
        slave.hdfs_put(f"/elsewhere/one/{name}", b"%d" % number, **layout)
    slave.hdfs_put("/names/one/with space", b"not the counterpart", **layout)
    for folder in ("/names/one/_temporary/0", "/names/one/logs", "/names/two"):
        master.hdfs_put(f"{folder}/left-out", 10, **layout)
    master.hdfs_mkdir("/names/one/hollow")
    check = Check(hdfs, tmp_path, f"hdfs://nameservice{'/names/o*'}")
    said = check.write("--exclude", "logs").stderr
    assert "staging and temporary files" in said
    assert "logs" in said
    moved = check.verify("--map-path", "/names=/elsewhere", "--exclude", "logs")
    assert moved.exit_code == 0, moved
    assert moved.json["hdfs"]["files"]["match"] == len(NAMES)
    assert any("1 empty folder on the master" in notice for notice in moved.json["notices"])
    away = check.verify()
    assert (away.exit_code, away.json["hdfs"]["files"]["missing"]) == (1, len(NAMES) - 1), away


@pytest.mark.usefixtures("warm_spark")
def test_a_path_that_does_not_exist_is_not_fine(hdfs: tuple[Cluster, Cluster], tmp_path: Path) -> None:
    """One of two named paths is not there: exit 3, and named."""
    for cluster in hdfs:
        cluster.admin.hdfs_put("/there/file", 0)
    result = Check(hdfs, tmp_path, "/there", "/not-there")()
    assert result.exit_code == 3, result
    assert "does not exist" in details(result)["/not-there"]


@pytest.mark.usefixtures("warm_spark")
def test_copies_by_distcp(hdfs: tuple[Cluster, Cluster], tmp_path: Path) -> None:
    """With block size and checksum type preserved they match; without they are incomparable until read."""
    master, slave = hdfs
    for size in (0, 100, BLOCK, 3 * BLOCK + 5):
        master.admin.hdfs_put(f"/distcp/{size}", size, seed=size)
    source, target = f"{filesystem(master)}/distcp", f"{filesystem(slave)}/distcp"
    assert master.admin.hdfs_distcp("-pbc", source, target) == 0
    check = Check(hdfs, tmp_path, "/distcp")
    check.write("--deep")
    result = check.verify()
    assert (result.exit_code, result.json["hdfs"]["files"]["match"]) == (0, 4), result
    slave.admin.hdfs_delete("/distcp")
    # The client's settings decide then, and the admin's are the slave's.
    assert slave.admin.hdfs_distcp("-skipcrccheck", "-update", source, target) == 0
    result = check.verify()
    assert (result.exit_code, result.json["hdfs"]["files"]["incomparable"]) == (3, 3), result
    assert check.verify("--deep").exit_code == 0
    for problem in result.json["problems"]:
        command = shlex.split(problem["advice"].rpartition(": ")[2].replace(FILESYSTEM_PLACEHOLDER, filesystem(master)))
        command[-1] = command[-1].replace(SLAVE_FILESYSTEM_PLACEHOLDER, filesystem(slave))
        assert command[:2] == ["hadoop", "distcp"], problem
        assert slave.admin.hdfs_distcp(*command[2:]) == 0
    result = check.verify()
    assert (result.exit_code, result.json["hdfs"]["files"]["match"]) == (0, 4), "the advice is a command that repairs"


def filesystem(cluster: Cluster) -> str:
    return f"hdfs://127.0.0.1:{cluster.namenode.port}"


def test_servers_that_fail_in_the_middle(hdfs: tuple[Cluster, Cluster]) -> None:
    """A DataNode is killed, then the NameNode restarted: every file still gets its checksum, and the same."""
    master, _ = hdfs
    master.admin.hdfs_put_many("/many", 400, b"content")
    source = HdfsSource(endpoint(master), ("/many",), Exclusions())
    before = rows(source)
    assert len(before) == 400
    slow = HdfsSource(endpoint(master), ("/many",), Exclusions(), Load(rate=100))
    with ThreadPoolExecutor(1) as pool:
        reading = pool.submit(rows, slow)
        time.sleep(1)
        master.datanodes[0].kill9()
        during = reading.result(120)
        assert checksums(during) == checksums(before)
        master.datanodes[0].start()
        reading = pool.submit(rows, slow)
        time.sleep(1)
        master.namenode.kill9()
        time.sleep(1)
        master.namenode.start()
        assert checksums(reading.result(180)) == checksums(before)
    wait_until(lambda: master.admin.live_datanodes() == 2, 60, "both DataNodes are back")


def test_twenty_thousand_small_files(hdfs: tuple[Cluster, Cluster]) -> None:
    """Listed in pages and parts, each file once."""
    admin = hdfs[1].admin
    admin.hdfs_put_many("/small", 20_000)
    source = HdfsSource(endpoint(hdfs[1]), ("/small",), Exclusions())
    parts = source.partitions()
    assert len(parts) > 20
    listed = [row["path"] for part in parts for row in source._listed(webhdfs(endpoint(hdfs[1])), part, Counter())]
    assert len(listed) == len(set(listed)) == 20_000
