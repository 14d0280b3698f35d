"""Every verdict about files, on real HDFS clusters of different layouts: whatever kind of file it is, whichever client
reads, and whatever server fails. Hadoop's own client and WebHDFS have the same rows.
"""

from __future__ import annotations

import random
import shlex
import shutil
import time
from collections import Counter
from collections.abc import Callable, Iterator
from concurrent.futures import Future, ThreadPoolExecutor
from dataclasses import replace
from functools import partial
from itertools import product
from pathlib import Path
from typing import Any

import pytest
import requests

from status_tool.clients import patience
from status_tool.clients.config import Settings
from status_tool.clients.hdfs_native import NativeHdfs, RpcEndpoint, native_hdfs, no_process_left, rpc_endpoint_of
from status_tool.clients.sitefiles import load_site
from status_tool.clients.webhdfs import HdfsEndpoint, Load, RateLimit, WebHdfs, webhdfs
from status_tool.explain.advice import FILESYSTEM_PLACEHOLDER, SLAVE_FILESYSTEM_PLACEHOLDER
from status_tool.sources.crc import Layout, crc32c
from status_tool.sources.hdfs_files import LARGE_FILES, HdfsSource, content_crc, pool_of
from status_tool.sources.local import LocalSource
from status_tool.sources.state_table import now_ms
from status_tool.vocabulary.selection import Exclusions
from tests.files import Check, checksums, details, endpoint, kinds, rows, rpc_endpoint
from tests.lab import Cluster, ClusterSpec, Lab, wait_until
from tests.lab.config import write_site
from tests.pair import Result, tool_here

pytestmark = pytest.mark.cluster

BLOCK = 4096
PAGE = 100
"""Entries of a folder that the master's and the slave's NameNodes list at once."""
MASTER_HDFS = {
    "dfs.replication": "2",
    "dfs.blocksize": str(BLOCK),
    "dfs.bytes-per-checksum": "512",
    "dfs.ls.limit": str(PAGE),
}
SLAVE_HDFS = {
    "dfs.blocksize": str(2 * BLOCK),
    "dfs.bytes-per-checksum": "1024",
    "dfs.checksum.type": "CRC32",
    "dfs.ls.limit": str(PAGE),
}
PERMISSIONS = {"dfs.permissions.enabled": "true", "dfs.permissions.superusergroup": "nobody-at-all"}
CRYPTO, CODING = "org.apache.hadoop.hdfs.tools.CryptoAdmin", "org.apache.hadoop.hdfs.tools.ECAdmin"
KEYS = "org.apache.hadoop.crypto.key.KeyShell"
SHELL, DFSADMIN = "org.apache.hadoop.fs.FsShell", "org.apache.hadoop.hdfs.tools.DFSAdmin"
POLICY = "XOR-2-1-1024k"
"""The one built-in policy that three DataNodes suffice for."""
CELL = 1 << 20
"""Of the policy: no block may be smaller."""
UNDER_WAY = 40
"""After so many requests a run over WebHDFS is in the middle: at most 16 of them still wait for their turn."""


@pytest.fixture(scope="module")
def three() -> Iterator[tuple[Cluster, Cluster, Cluster]]:
    """The master: two NameNodes, permissions, a key provider, three DataNodes, small blocks, CRC32C; the slave: one of
    each in one process, no keys, larger blocks and chunks, CRC32; and a plain one that is mounted beside the master's.
    """
    with Lab() as lab:
        store = f"jceks://file{lab.root}/keys.jceks"
        keys = {"hadoop.security.key.provider.path": store, "lab.keys": "key,lost"}
        master, slave, beside = lab.start_clusters(
            ClusterSpec("m", 0, 3, hdfs_site=MASTER_HDFS | PERMISSIONS | keys, hbase=False, standby=True),
            ClusterSpec("s", 0, 1, hdfs_site=SLAVE_HDFS, hbase=False, one_hdfs_process=True),
            ClusterSpec("b", 0, 1, hbase=False),  # its NameNode alone is restarted
        )
        admin = master.admin
        for key, folder in (("key", "/kinds/zone"), ("lost", "/lost")):
            admin.hdfs_mkdir(folder)
            assert admin.hadoop_tool(CRYPTO, "-createZone", "-keyName", key, "-path", folder) == 0
        admin.hdfs_put("/lost/file", 100)
        # The NameNode has read the key store, the DataNodes do so at the first encrypted file that they send.
        assert admin.hadoop_tool(KEYS, "delete", "lost", "-f", "-provider", store) == 0
        admin.hdfs_mkdir("/kinds/coded")
        assert admin.hadoop_tool(CODING, "-enablePolicy", "-policy", POLICY) == 0
        assert admin.hadoop_tool(CODING, "-setPolicy", "-policy", POLICY, "-path", "/kinds/coded") == 0
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


@pytest.mark.usefixtures("warm_spark")
def test_files_that_concat_has_joined(
    hdfs: tuple[Cluster, Cluster], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A block ends early, or has other chunks than the first: no copy has that checksum, and `--deep` settles them."""
    monkeypatch.setattr(patience, "SETTLING_S", 2.0)
    master, slave = hdfs
    content = random.Random(2).randbytes(3 * BLOCK)
    layout: dict[str, Any] = {"block_size": BLOCK, "checksum_type": "CRC32C"}
    first, rest = content[: BLOCK + 512], content[BLOCK + 512 :]
    for name, chunk in (("early", 512), ("mixed", 1024)):
        path = f"/joined/{name}"
        master.admin.hdfs_put(path, first, bytes_per_checksum=512, **layout)
        master.admin.hdfs_put(f"{path}.rest", rest, bytes_per_checksum=chunk, **layout)
        asked = {"op": "CONCAT", "sources": f"{path}.rest", "user.name": "lab"}
        requests.post(f"{master.webhdfs_url}/webhdfs/v1{path}", params=asked, timeout=60).raise_for_status()
        slave.admin.hdfs_put(path, content, bytes_per_checksum=512, **layout)
    check = Check(hdfs, tmp_path, "/joined")
    assert kinds(check()) == {"/joined/early": "mismatch", "/joined/mixed": "unverifiable"}
    for client in ("webhdfs", "native"):
        check.write("--deep", "--hdfs-client", client)
        assert kinds(check.verify()) == {"/joined/early": "mismatch", "/joined/mixed": "incomparable"}
        settled = check.verify("--deep", "--hdfs-client", client)
        assert (settled.exit_code, settled.json["hdfs"]["files"]["match"]) == (0, 2), settled
    slave.admin.hdfs_put("/joined/early", content[:-1] + b"?", bytes_per_checksum=512, **layout)
    assert "content differs" in details(check.verify("--deep"))["/joined/early"]


@pytest.mark.usefixtures("warm_spark")
@pytest.mark.parametrize("client", ["webhdfs", "native"])
def test_contents_that_end_with_their_own_crc(hdfs: tuple[Cluster, Cluster], tmp_path: Path, client: str) -> None:
    """As Zarr's chunks do: CRC32C is the same for all of them. `--deep` took such files for equal."""
    layout: dict[str, Any] = {"block_size": BLOCK, "bytes_per_checksum": 512, "checksum_type": "CRC32C"}
    for cluster, letter in zip(hdfs, (b"A", b"B"), strict=True):
        for size, count in ((16, 1), (508, 20), (5_000, 1)):
            content = letter * size
            chunk = content + crc32c(content).to_bytes(4, "little")
            cluster.admin.hdfs_put(f"/framed/{size}", chunk * count, **layout)
    check = Check(hdfs, tmp_path, "/framed")
    check.write("--hdfs-client", client)
    result = check.verify("--hdfs-client", client)
    assert kinds(result) == {"/framed/16": "incomparable", "/framed/508": "incomparable", "/framed/5000": "mismatch"}
    check.write("--deep", "--hdfs-client", client)
    result = check.verify("--deep=all", "--hdfs-client", client)
    assert (result.exit_code, set(kinds(result).values())) == (1, {"mismatch"}), result
    assert len(kinds(result)) == 3


def test_crc_is_hadoops_composite_crc(hdfs: tuple[Cluster, Cluster], monkeypatch: pytest.MonkeyPatch) -> None:
    """`--deep`'s value, also when combined of ranges, is what Hadoop's own client computes."""
    admin = hdfs[0].admin
    sizes = (1, 511, 512, 513, BLOCK - 1, BLOCK, BLOCK + 1, 5 * BLOCK + 3)
    for size in sizes:
        admin.hdfs_put(f"/crc/{size}", size, seed=size, checksum_type="CRC32C")
    theirs = [text.rpartition("0x")[2] for text in admin.hdfs_checksums([f"/crc/{size}" for size in sizes])]
    client = WebHdfs(endpoint(hdfs[0]))
    assert [content_crc(client, f"/crc/{size}", size)[:8] for size in sizes] == theirs
    monkeypatch.setattr("status_tool.sources.hdfs_files.RANGE_BYTES", 1000)
    assert [content_crc(client, f"/crc/{size}", size)[:8] for size in sizes] == theirs


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
    monkeypatch.setattr(patience, "SETTLING_S", 2.0)
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
    check = Check(hdfs, tmp_path, "hdfs:///names/o*")
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


def test_many_small_files(hdfs: tuple[Cluster, Cluster], monkeypatch: pytest.MonkeyPatch) -> None:
    """Listed in pages, of which several make a part and a folder several parts: each file once."""
    monkeypatch.setattr("status_tool.sources.hdfs_files.PART_FILES", 2 * PAGE)
    admin = hdfs[1].admin
    admin.hdfs_put_many("/small", 2_000)
    source = HdfsSource(endpoint(hdfs[1]), ("/small",), Exclusions())
    parts = source.partitions()
    assert len(parts) >= 10
    listed = [row["path"] for part in parts for row in source._listed(webhdfs(endpoint(hdfs[1])), part, Counter())]
    assert len(listed) == len(set(listed)) == 2_000


def test_names_that_are_not_ascii_or_look_encoded(
    hdfs: tuple[Cluster, Cluster], monkeypatch: pytest.MonkeyPatch
) -> None:
    """HDFS sorts them by signed bytes: parts of a folder that end between two of them leave none out. Nor do pages that
    end with a name as Hive's partitions by time have it.
    """
    monkeypatch.setattr("status_tool.sources.hdfs_files.PART_FILES", PAGE)
    paths = {f"/scripts/{''.join(letters)}" for letters in product("aZé日😀", repeat=3)}
    paths |= {f"/scripts/t=10%3A{minute:02d}%3A00" for minute in range(3 * PAGE)}
    for path in paths:
        hdfs[1].admin.hdfs_put(path, 0)
    in_parts, whole = (HdfsSource(client(hdfs[1]), ("/scripts",), Exclusions()) for client in (endpoint, rpc_endpoint))
    assert len(in_parts.partitions()) > 1
    assert rows(in_parts).keys() == rows(whole).keys() == paths


@pytest.mark.usefixtures("warm_spark")
def test_encrypted_and_erasure_coded_files(hdfs: tuple[Cluster, Cluster], tmp_path: Path) -> None:
    """Against a plain copy: incomparable, exit 3, with the reason; `--deep` separates equal from different content."""
    content = random.Random(4).randbytes(2_500_001)
    flipped = content[:-1] + bytes([content[-1] ^ 1])
    layout: dict[str, Any] = {"block_size": CELL, "bytes_per_checksum": 512, "checksum_type": "CRC32C"}
    for kind in ("zone", "coded", "plain"):
        for cluster in hdfs:
            cluster.admin.hdfs_put(f"/kinds/{kind}/file", content, **layout)
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
        hdfs[1].admin.hdfs_put(f"/kinds/{kind}/file", flipped, **layout)
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


def test_every_kind_of_file(hdfs: tuple[Cluster, Cluster], monkeypatch: pytest.MonkeyPatch) -> None:
    """Names, sizes around blocks, links, empty folders, snapshots, encryption, erasure coding, open and unreadable.

    They are more than a page and more than a batch.
    """
    monkeypatch.setattr("status_tool.sources.hdfs_files.FILES_PER_BATCH", PAGE)
    admin, many = hdfs[0].admin, PAGE + 50
    for folder in ("zone", "coded", "hollow", "closed", "kept"):
        admin.hdfs_mkdir(f"/all/{folder}")
    assert admin.hadoop_tool(CRYPTO, "-createZone", "-keyName", "key", "-path", "/all/zone") == 0
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
    admin.hdfs_put_many("/all/many", many)
    try:
        for user in ("lab", "somebody"):
            roots = ("/all", "/all/kept/.snapshot/then", "/all/plain/513", "/all/names/[[]*", "/absent")
            web, native = both(hdfs[0], user, *roots)
            assert native == web
            assert len(native) > 5 * len(sizes) + 2 * len(NAMES) + many
            states = {row["path"]: row["state"] for row in native[:-1] if row["state"]}
            assert states["/all/open"] == "open"
            assert ("/all/closed" in states, "/all/denied" in states) == (user != "lab",) * 2
            assert native[-1]["symbolic link"] == 2
    finally:
        admin.hdfs_close("/all/open")
    lose_blocks(hdfs[0], b"this is lost")
    monkeypatch.setattr(patience, "SETTLING_S", 2.0)
    for row, _ in both(hdfs[0], "lab", "/all/lost"):
        assert row["state"] == "unreadable"
        assert "Fail to get block" in row["detail"]


def test_content(hdfs: tuple[Cluster, Cluster]) -> None:
    """`--deep` reads the same: decrypted, reconstructed, and in ranges."""
    admin = hdfs[0].admin
    admin.hdfs_mkdir("/content/coded")
    admin.hdfs_mkdir("/content/zone")
    assert admin.hadoop_tool(CRYPTO, "-createZone", "-keyName", "key", "-path", "/content/zone") == 0
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
    known = {"/runs/gone": "missing", "/runs/differs": "mismatch"}
    unread = known | {"/runs/same": "incomparable", "/runs/other": "incomparable"}
    seen = []
    for master, slave in (("webhdfs", "native"), ("native", "webhdfs")):
        check.write("--deep", "--hdfs-client", master)
        plain, deep = check.verify("--hdfs-client", slave), check.verify("--deep", "--hdfs-client", slave)
        assert (plain.exit_code, kinds(plain)) == (1, unread), plain
        assert (deep.exit_code, kinds(deep)) == (1, known | {"/runs/other": "mismatch"}), deep
        seen.append((details(plain), details(deep)))
    assert seen[0] == seen[1]


@pytest.mark.usefixtures("warm_spark")
def test_many_files_choose_it(hdfs: tuple[Cluster, Cluster], tmp_path: Path) -> None:
    """From some hundred on without being told; `--explain` says which it will be."""
    for cluster in hdfs:
        cluster.admin.hdfs_put_many("/large", LARGE_FILES)
    check = Check(hdfs, tmp_path, "/large")
    plan = check.write("--explain").stdout
    assert "by Hadoop's own client" in plan
    assert f"{LARGE_FILES} files" in plan
    check.write()
    result = check.verify()
    assert (result.exit_code, result.json["hdfs"]["files"]["match"]) == (0, LARGE_FILES), result


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


def test_servers_that_fail_in_the_middle(hdfs: tuple[Cluster, Cluster], monkeypatch: pytest.MonkeyPatch) -> None:
    """NameNodes change roles, a DataNode is killed, the active NameNode, too, while both clients read: every file still
    gets its checksum, and the same. A standby's answer is understood.
    """
    master, _ = hdfs
    assert master.standby is not None
    master.admin.hdfs_put_many("/many", 120, b"content")
    # A listing shows the blocks of files that all may read: Hadoop's own client would not need the NameNode any more.
    assert master.admin.hadoop_tool(SHELL, "-chmod", "-R", "go-rwx", "/many") == 0
    urls = Settings(load_site([master.conf_dir], environ={})).webhdfs()
    assert len(urls) == 2
    web, native = HdfsEndpoint(urls, "lab"), rpc_endpoint(master)
    before = checksums(rows(HdfsSource(web, ("/many",), Exclusions())))
    assert len(before) == 120
    asked, begun = counted(monkeypatch, RateLimit, "wait"), counted(monkeypatch, NativeHdfs, "checksums")
    with ThreadPoolExecutor(2) as pool:
        for rate, change in ((24, "roles"), (25, "datanode"), (26, "death")):
            slow, reading = Load(rate=rate), list[Future[dict[str, Any]]]()
            # A Java process starts as fast as the machine lets it; the other run begins once it reads.
            for client, count, number in ((native, begun, 0), (web, asked, UNDER_WAY)):
                reached = partial(is_beyond, count, count() + number)
                reading.append(pool.submit(rows, HdfsSource(client, ("/many",), Exclusions(), slow)))
                wait_until(reached, 60, f"the run over {client} is under way")
            at = webhdfs(web, slow).active
            if change == "roles":
                master.admin.hdfs_make_active("nn1", "nn0")
            elif change == "datanode":
                master.datanodes[0].kill9()
            else:
                master.standby.kill9()
                master.admin.hdfs_make_active("nn0")
            assert not any(one.done() for one in reading)
            for one in reading:
                assert checksums(one.result(180)) == before
            assert (webhdfs(web, slow).active == at) == (change == "datanode")
    master.standby.start()
    master.datanodes[0].start()
    wait_until(partial(has_datanodes, master, 3), 60, "the DataNode is back")


def has_datanodes(cluster: Cluster, number: int) -> bool:
    return cluster.admin.live_datanodes() == number


def is_beyond(count: Callable[[], int], number: int) -> bool:
    return count() > number


def counted(monkeypatch: pytest.MonkeyPatch, owner: type, name: str) -> Callable[[], int]:
    """How often any thread has called a method."""
    count, method = [0], getattr(owner, name)

    def counting(*arguments: Any) -> Any:
        count[0] += 1
        return method(*arguments)

    monkeypatch.setattr(owner, name, counting)
    return lambda: count[0]


def test_the_only_namenode_is_restarted_in_the_middle(
    three: tuple[Cluster, Cluster, Cluster], monkeypatch: pytest.MonkeyPatch
) -> None:
    """There is no other one to ask: every file still gets its checksum, and the same."""
    cluster = three[2]
    cluster.admin.hdfs_put_many("/many", 150, b"content")
    before = checksums(rows(HdfsSource(endpoint(cluster), ("/many",), Exclusions())))
    assert len(before) == 150
    asked = counted(monkeypatch, RateLimit, "wait")
    with ThreadPoolExecutor(1) as pool:
        reading = pool.submit(rows, HdfsSource(endpoint(cluster), ("/many",), Exclusions(), Load(rate=40)))
        wait_until(partial(is_beyond, asked, UNDER_WAY), 60, "the run is under way")
        cluster.namenode.kill9()
        assert not reading.done()
        time.sleep(1)
        cluster.namenode.start()
        assert checksums(reading.result(180)) == before
