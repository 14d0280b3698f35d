"""`status-tool topology`: which clusters replicate to which, and which links are broken."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Annotated

import typer

from status_tool.atomic import atomic_write, check_target
from status_tool.cli.options import ConfDirs, ZooKeeperOption, settings_of
from status_tool.printable import safe
from status_tool.report.html_report import topology_page
from status_tool.topology import Link, Topology, explore, what_is_shipped


def topology(
    as_json: Annotated[bool, typer.Option("--json", help="One JSON document on stdout, nothing else there.")] = False,
    report: Annotated[
        Path | None, typer.Option("--report", metavar="FILE.html", help="Also write it as a picture.")
    ] = None,
    conf_dir: ConfDirs = None,
    zookeeper: ZooKeeperOption = None,
) -> int:
    """Show this cluster, its peers and theirs as a tree: exit code 0, 1 if a link is broken, 2 error."""
    if report is not None:
        check_target(report)
    found = explore(settings_of(conf_dir, None, None, zookeeper).zookeeper())
    text = json.dumps(found.to_json()) if as_json else "\n".join(safe(line) for line in _lines(found))
    typer.echo(text)
    if report is not None:
        with atomic_write(report) as stream:
            topology_page(found.to_map(), found.problems, stream)
    return 1 if found.problems else 0


def _lines(found: Topology) -> Iterator[str]:
    root = found.nodes[found.root]
    yield f"{root.id} ({root.key}), {_servers(root.live_servers)}: this cluster"
    yield from _branches(found, found.root, "", {found.root})
    yield ""
    yield f"Shape: {found.shape}, {len(found.nodes)} clusters reached"
    yield from (f"Problem: {problem}" for problem in found.problems)


def _branches(found: Topology, node_id: str, indent: str, shown: set[str]) -> Iterator[str]:
    """A cluster that has been shown already is only named again."""
    links = found.nodes[node_id].links
    for number, link in enumerate(links, 1):
        last = number == len(links)
        yield f"{indent}{'└─' if last else '├─'} peer {link.peer.id} → {_target(found, link, shown)}"
        if link.to in found.nodes and link.to not in shown:
            shown.add(link.to)
            yield from _branches(found, link.to, indent + ("   " if last else "│  "), shown)


def _target(found: Topology, link: Link, shown: set[str]) -> str:
    peer, node = link.peer, found.nodes.get(link.to or "")
    again = ", see above" if link.to in shown else ""
    where = f"{node.id} ({node.key}), {_servers(node.live_servers)}" if node else peer.endpoint or peer.cluster_key
    flags = "".join(f", {word}" for word, holds in (("serial", peer.serial), ("DISABLED", not peer.enabled)) if holds)
    return f"{where}{again}{flags}, ships {what_is_shipped(peer)}"


def _servers(count: int) -> str:
    return f"{count} live region server{'' if count == 1 else 's'}"
