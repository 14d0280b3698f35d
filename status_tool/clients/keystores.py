"""Java's keystores that the site files name, read by Java once and kept as PEM.

For HDFS they are those of `ssl-client.xml` (Hadoop's `FileBasedKeyStoresFactory`), for ZooKeeper those of
`hbase.zookeeper.property.ssl.…` (HBASE-28038), for HBase's own RPC those of `hbase.rpc.tls.…` (HBase 2.6). What
`--cacert` and `--cert` name goes before them.
"""

from __future__ import annotations

import subprocess
from collections.abc import Mapping, Sequence
from functools import lru_cache
from pathlib import Path

from status_tool.clients.java import hadoop_class_path, java
from status_tool.clients.sitefiles import SITE_FILES, SiteConfig, read_file
from status_tool.clients.tls import Trust
from status_tool.errors import ConfigurationError

_MAIN = "io.github.statustool.hdfs.KeyStores"
_JVM_OPTIONS = ("-Xmx64m", "-XX:+UseSerialGC", "-XX:TieredStopAtLevel=1")
_CLIENT_FILE = "ssl-client.xml"
_TIMEOUT_S = 60.0
AUTHORITIES, CERTIFICATE = "authorities", "certificate"
OF_ZOOKEEPER = {
    AUTHORITIES: "hbase.zookeeper.property.ssl.trustStore",
    CERTIFICATE: "hbase.zookeeper.property.ssl.keyStore",
}
OF_RPC = {AUTHORITIES: "hbase.rpc.tls.truststore", CERTIFICATE: "hbase.rpc.tls.keystore"}


def hdfs_trust(site: SiteConfig, given: Trust) -> Trust:
    """Return `given`, completed from the keystores of `ssl-client.xml`. Takes a key only if Hadoop's client shows one.

    Raises `ConfigurationError` if a store cannot be read.
    """
    name = site.get("hadoop.ssl.client.conf", _CLIENT_FILE).strip()
    file = next((folder / name for folder in site.folders if (folder / name).is_file()), None)
    if file is None:
        return given
    shows = site.flag("hadoop.ssl.require.client.cert")
    prefixes = {AUTHORITIES: "ssl.client.truststore", **({CERTIFICATE: "ssl.client.keystore"} if shows else {})}
    return _completed(given, read_file(file), prefixes, [*_files(site), file])


def hbase_trust(site: SiteConfig, given: Trust, prefixes: Mapping[str, str]) -> Trust:
    """Return `given`, completed from the keystores of ZooKeeper's client, or of HBase's RPC, in `hbase-site.xml`.

    Raises `ConfigurationError` if a store cannot be read.
    """
    return _completed(given, site, prefixes, _files(site))


def _files(site: SiteConfig) -> list[Path]:
    """Return the site files in Hadoop's order: a later file wins. They also name the credential providers."""
    return [folder / name for folder in reversed(site.folders) for name in reversed(SITE_FILES)]


def _completed(given: Trust, known: Mapping[str, str], prefixes: Mapping[str, str], files: Sequence[Path]) -> Trust:
    has = {AUTHORITIES: given.authorities, CERTIFICATE: given.certificate}
    open_ones = tuple(
        (kind, prefix) for kind, prefix in prefixes.items() if not has[kind] and f"{prefix}.location" in known
    )
    if not open_ones:
        return given
    there = tuple(str(file) for file in files if file.is_file())
    return Trust(**{**has, **_read(there, open_ones)})


@lru_cache
def _read(files: tuple[str, ...], prefixes: tuple[tuple[str, str], ...]) -> dict[str, str]:
    """Return contents of stores (PEM) by their kind, each with the prefix of its properties in some site files."""
    asked = [word for pair in prefixes for word in pair]
    launch = [str(java("a Java keystore")), *_JVM_OPTIONS, "-cp", hadoop_class_path(), _MAIN]
    # Java reads the passwords itself: in arguments they would show in the process list.
    command = [*launch, *files, "--", *asked]
    try:
        done = subprocess.run(command, capture_output=True, text=True, timeout=_TIMEOUT_S, check=False)
    except subprocess.TimeoutExpired:
        raise _unreadable(prefixes, f"Java has not read it within {_TIMEOUT_S:g} s") from None
    if done.returncode != 0:
        raise _unreadable(prefixes, (done.stderr.strip().splitlines() or ["no reason given"])[-1])
    parts = [part.partition("\n") for part in done.stdout.split("== ")[1:]]
    return {kind: text for kind, _, text in parts}


def _unreadable(prefixes: tuple[tuple[str, str], ...], why: str) -> ConfigurationError:
    names = ", ".join(f"{prefix}.location" for _, prefix in prefixes)
    return ConfigurationError(
        f"cannot read the Java keystore that {names} names in the site files: {why}; correct it, or give --cacert and "
        "--cert (PEM)"
    )
