"""Mount tables of `viewfs://`: which paths are whose, what is refused, and how two views are known to be one HDFS."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest

from status_tool.cli.main import main
from status_tool.clients.config import SPOOL_DIR_KEY, HdfsClient, Settings
from status_tool.clients.hdfs_native import RpcEndpoint
from status_tool.clients.mount_table import mount_table, mounts_below, seen_at, view_name
from status_tool.clients.sitefiles import SiteConfig
from status_tool.clients.webhdfs import Load
from status_tool.errors import EXIT_ERROR, ConfigurationError
from status_tool.gather.hdfs_side import exclusions_of, files_endpoint
from status_tool.rules.sides import identity_notice, same_hdfs
from status_tool.vocabulary.header import MASTER, SLAVE, Header
from status_tool.vocabulary.selection import Exclusions
from tests.lab.config import write_site

TABLE = "fs.viewfs.mounttable"
SITE = {
    "fs.defaultFS": "viewfs://all/",
    f"{TABLE}.all.link./data": "hdfs://one/d",
    f"{TABLE}.all.link./data/in": "hdfs://two/",
    f"{TABLE}.all.link./logs/": " s3a://bucket ",
    f"{TABLE}.all.linkFallback": "hdfs://one/rest",
    f"{TABLE}.all.homedir": "/home",
    f"{TABLE}.other.link./else": "hdfs://other",
    "hbase.rootdir": "hdfs://one/d/apps/hbase",
}
MOUNTS = (("/", "hdfs://one/rest"), ("/data", "hdfs://one/d"), ("/data/in", "hdfs://two/"), ("/logs", "s3a://bucket"))


def test_the_table_of_the_default_file_system() -> None:
    """By its name, by the default's name, or none."""
    assert view_name(SITE, "viewfs://all/") == "all"
    assert mount_table(SITE, "all") == MOUNTS
    assert view_name(SITE, "viewfs://unknown") is None
    assert view_name(SITE, "hdfs://all") is None
    assert view_name(SITE, "viewfs:///") is None
    assert view_name(SITE | {f"{TABLE}.default.name.key": "other"}, "viewfs:///") == "other"
    assert view_name({f"{TABLE}.default.name.key": "other"}, "viewfs://default") is None
    assert mount_table({f"{TABLE}.default.linkMergeSlash": "hdfs://n/"}, "default") == (("/", "hdfs://n/"),)


@pytest.mark.parametrize("link", ["linkNfly.minReplication=2./a", "linkMerge./a", "linkRegx.^/b", "link.a", "new"])
def test_links_that_are_not_read(link: str) -> None:
    """They are named: what they lead to would be missed."""
    with pytest.raises(ConfigurationError, match="only link, linkFallback and linkMergeSlash are read"):
        mount_table(SITE | {f"{TABLE}.all.{link}": "hdfs://one/a,hdfs://two/a"}, "all")


def test_what_files_are_mounted_from() -> None:
    """The mount point that a path is in, and those in it."""
    assert mounts_below(MOUNTS, "/") == MOUNTS
    assert mounts_below(MOUNTS, "/data") == MOUNTS[1:3]
    assert mounts_below(MOUNTS, "/data/in/side") == MOUNTS[2:3]
    assert mounts_below(MOUNTS, "/database") == MOUNTS[:1]
    assert mounts_below(MOUNTS[1:], "/elsewhere") == ()


def test_where_a_view_shows_a_folder() -> None:
    """HBase's own files are left out where they are seen, and only there."""
    assert seen_at(MOUNTS, "hdfs://one/d/apps/hbase") == ("/data/apps/hbase",)
    assert seen_at(MOUNTS, "hdfs://one/d") == ("/data",)
    assert seen_at(MOUNTS, "hdfs://one/") == ("/", "/data")
    assert seen_at(MOUNTS, "hdfs://three/d") == ()
    assert seen_at(MOUNTS, "hdfs://one/rest/apps/hbase") == ("/apps/hbase",)
    assert seen_at(MOUNTS, "hdfs://one/rest/data/hbase") == (), "there /data/hbase is a user's folder, of hdfs://one/d"
    assert Settings(SiteConfig(SITE)).hbase_folders == ("/data/apps/hbase",)
    assert Settings(SiteConfig(SITE), webhdfs_option=("http://n:1",)).hbase_folders == ("/d/apps/hbase",)
    assert Settings(SiteConfig({})).hbase_folders == ()
    folders = Settings(SiteConfig(SITE | {"hbase.wal.dir": "hdfs://one/d/wals"})).hbase_folders
    assert folders[:2] == ("/data/apps/hbase", "/data/wals/WALs")
    (spools,) = Settings(SiteConfig(SITE | {SPOOL_DIR_KEY: "hdfs://one/d/spool"})).spool_globs
    assert spools.startswith("/data/spool/????????-")
    above = Settings(SiteConfig(SITE | {SPOOL_DIR_KEY: "hdfs://one/"}))
    assert above.spool_globs == (), "/data leads into that folder, and to no spool"


@pytest.mark.parametrize("root", [{}, {"hbase.rootdir": "/disk"}])
def test_a_mount_point_of_a_disk_is_refused_where_hbases_root_has_no_host(root: dict[str, str]) -> None:
    """Neither has an authority, so that the mount point was taken for HBase's root and left out."""
    site = {name: value for name, value in SITE.items() if name != "hbase.rootdir"}
    settings = Settings(SiteConfig(site | root | {f"{TABLE}.all.link./disk": "file:///disk"}))
    assert settings.hbase_folders == ()
    with pytest.raises(ConfigurationError, match="/disk is mounted from file:///disk"):
        files_endpoint(settings, HdfsClient.AUTO, Load(), ("/disk",), exclusions_of(settings, ()), lambda _: None)


def chosen(client: HdfsClient, *roots: str, excluded: tuple[str, ...] = ()) -> object:
    return files_endpoint(
        Settings(SiteConfig(SITE)), client, Load(), roots, Exclusions().also(excluded), lambda _: None
    )


@pytest.mark.parametrize("client", [HdfsClient.AUTO, HdfsClient.NATIVE])
def test_hadoops_client_reads_a_view(client: HdfsClient) -> None:
    """However many files there are; what is not HDFS must not be among them."""
    endpoint = chosen(client, "/data")
    assert isinstance(endpoint, RpcEndpoint)
    assert (endpoint.filesystem, endpoint.mounts) == ("viewfs://all", MOUNTS)
    for root in ("/", "/logs/today", "/l*"):
        with pytest.raises(ConfigurationError, match="/logs is mounted from s3a://bucket by the site files"):
            chosen(client, root)
    assert chosen(client, "/", excluded=("/logs",)) == endpoint


def test_webhdfs_does_not_read_a_view(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """One line that says what to do: its paths would be others."""
    write_site(tmp_path / "core-site.xml", SITE | {"dfs.internal.nameservices": "one"})
    arguments = ["-o", str(tmp_path / "out"), "--only", "hdfs", "--conf-dir", str(tmp_path)]
    assert main(["run", *arguments, "--hdfs-client", "webhdfs"]) == EXIT_ERROR
    (line,) = capsys.readouterr().err.splitlines()
    assert "leave --hdfs-client webhdfs out, or name the HDFS behind it by --webhdfs" in line


def test_views_that_share_an_hdfs() -> None:
    """Files that are compared with themselves prove nothing."""
    master, slave = Header(MASTER, "", 1, 1), Header(SLAVE, "", 1, 1)
    assert same_hdfs(replace(master, hdfs_pool_id="A,B"), replace(slave, hdfs_pool_id="B,C"))
    assert not same_hdfs(replace(master, hdfs_pool_id="A,B"), replace(slave, hdfs_pool_id="C"))
    assert not same_hdfs(master, slave)
    assert same_hdfs(replace(master, hdfs_pool_id="A,?"), replace(slave, hdfs_pool_id="A"))


def test_a_part_that_nobody_knows_is_told() -> None:
    """It is no HDFS that both sides share, but may be one."""
    master, slave = Header(MASTER, "", 1, 1, hdfs_pool_id="A,?"), Header(SLAVE, "", 1, 1, hdfs_pool_id="B,?")
    assert not same_hdfs(master, slave)
    for other, whose in ((slave, "the master's and the slave's"), (replace(slave, hdfs_pool_id="B"), "the master's")):
        notice = identity_notice(master, other) or ""
        assert notice.startswith(f"HDFS: {whose} status does not identify all of its HDFS")
    assert "the slave's status does not identify its HDFS" in (
        identity_notice(master, replace(slave, hdfs_pool_id="")) or ""
    )
    assert identity_notice(replace(master, hdfs_pool_id="A"), replace(slave, hdfs_pool_id="B")) is None
