"""`python -m tests.lab up --clusters a,b`: clusters to play with, until Ctrl-C. `warm`: faster starts.

`up --tracked`: a fresh pair with the trackers stands ready for `pytest --lab`.
"""

from __future__ import annotations

import argparse
import contextlib
import itertools
import signal
import sys
from functools import partial
from pathlib import Path

from .classpath import PROFILES
from .cluster import Cluster, ClusterSpec
from .errors import LabError
from .lab import Lab
from .secure import Security
from .warm import warm


def _arguments() -> argparse.Namespace:
    parser = argparse.ArgumentParser(prog="python -m tests.lab", description="Real clusters on loopback.")
    commands = parser.add_subparsers(required=True, dest="command")
    up = commands.add_parser("up", help="start clusters, end them at Ctrl-C")
    up.add_argument("--clusters", default="a,b", help="names, separated by commas (default: a,b)")
    up.add_argument("--region-servers", type=int, default=2, metavar="N", help="for each cluster (default: 2)")
    up.add_argument("--site", action="append", default=[], metavar="KEY=VALUE", help="for hbase-site.xml")
    up.add_argument("--jar", action="append", default=[], type=Path, help="for the servers' class path")
    up.add_argument("--chain", action="store_true", help="add a peer from each cluster to the next one")
    up.add_argument("--tracked", action="store_true", help="keep a fresh pair with the trackers for `pytest --lab`")
    up.add_argument("--secure", action="store_true", help="with Kerberos, SASL, HTTPS and access control")
    up.add_argument("--keep", action="store_true", help="keep the folder with the logs")
    ready = commands.add_parser("warm", help="make the shared archive of classes")
    for command in (up, ready):
        command.add_argument("--hbase", default="2.6.1", choices=PROFILES, help="version (default: 2.6.1)")
    return parser.parse_args()


def _describe(cluster: Cluster) -> str:
    facts = {
        "conf dir": cluster.conf_dir,
        "zookeeper": cluster.zookeeper,
        "cluster key": cluster.cluster_key,
        "thrift": f"127.0.0.1:{cluster.thrift_port}",
        "webhdfs": cluster.webhdfs_url,
        "pids": " ".join(f"{server.name}={server.pid}" for server in cluster.servers),
    }
    return "\n".join([f"\n{cluster.name}", *(f"  {name:12} {fact}" for name, fact in facts.items())])


def _describe_realm(security: Security) -> str:
    """For a shell: whose ticket the tool gets by `--principal admin --keytab FILE`."""
    environment = {**security.kdc.environment, "REQUESTS_CA_BUNDLE": str(security.stores.ca)}
    return "\n".join(
        [*(f"export {name}={value}" for name, value in environment.items()), f"# {security.kdc.folder}/*.keytab"]
    )


def _up(arguments: argparse.Namespace) -> None:
    site = dict(setting.split("=", 1) for setting in arguments.site)
    jars = [jar.resolve() for jar in arguments.jar]
    keep = arguments.keep or None
    with Lab(hbase_version=arguments.hbase, keep=keep, say=print, secure=arguments.secure) as lab:
        names = arguments.clusters.split(",")
        specs = [ClusterSpec(name, arguments.region_servers, site=site, extra_classpath=jars) for name in names]
        clusters = lab.start_clusters(*specs)
        if arguments.chain:
            for source, sink in itertools.pairwise(clusters):
                source.admin.add_peer(sink.name, sink.cluster_key)
        if lab.security:
            print(_describe_realm(lab.security))
        print(*map(_describe, clusters), "\nCtrl-C ends them all.", sep="\n", flush=True)
        with contextlib.suppress(KeyboardInterrupt):
            signal.pause()


def _stand() -> None:
    from tests.standing import stand  # knows the trackers, which the lab itself does not

    try:
        stand(partial(print, flush=True))
    except LabError as error:
        sys.exit(f"lab: {error}")


def _interrupt(number: int, frame: object) -> None:
    raise KeyboardInterrupt


def main() -> None:
    arguments = _arguments()
    if arguments.command == "warm":
        print(warm(arguments.hbase))
    elif arguments.tracked:
        _stand()
    else:
        _up(arguments)


if __name__ == "__main__":
    signal.signal(signal.SIGTERM, _interrupt)
    try:
        main()
    except KeyboardInterrupt:
        sys.exit(130)
