"""`status-tool topology`: which clusters replicate to which, and which links are broken."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import asdict
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from status_tool.atomic import check_targets
from status_tool.cli.options import cluster_named, on_cluster, parse_baseline, print_answer
from status_tool.cli.run_options import with_options
from status_tool.clients.config import Settings
from status_tool.errors import ConfigurationError
from status_tool.printable import counted
from status_tool.vocabulary.scope import TableFilter

if TYPE_CHECKING:
    from status_tool.gather.cluster_drift import Found
    from status_tool.gather.peer_topology import Link, Topology


@on_cluster("thrift", "zookeeper")
@with_options(
    "as_json",
    report="Also draw it as a page.",
    since="Accept tables that were truncated or dropped up to this time (epoch ms or ISO 8601): one table "
    "(repeatable) or all.",
)
def topology(
    settings: Settings,
    peer_conf: Annotated[
        list[Path] | None,
        typer.Option("--peer-conf", metavar="DIR", help="Site files of a peer's cluster, to compare its families."),
    ] = None,
    *,
    as_json: bool,
    report: Path | None,
    since: list[str] | None,
) -> int:
    """Show this cluster, its peers and theirs as a tree, and tables that drift. Exit code 0 nothing was found (notes
    name what could not be looked at), 1 a link is broken or a table drifts, 2 error.
    """
    accepted = parse_baseline(since or (), TableFilter())
    check_targets(report)
    if elsewhere := settings.peers_elsewhere:
        raise ConfigurationError(f"{elsewhere}: `list_peers` in the HBase shell shows them")
    from status_tool.gather.cluster_drift import cluster_drift
    from status_tool.gather.peer_topology import explore

    peers = [cluster_named([folder], settings.trust) for folder in peer_conf or ()]
    found = explore(settings.zookeeper())
    drift = cluster_drift(settings, found, peers, accepted)
    if report is not None:
        from status_tool.report.small_pages import topology_page
        from status_tool.report.summary import write_report

        problems = [*found.problems, *(f"table {one.table} {one.detail}. {one.advice}" for one in drift.drift)]
        write_report(report, topology_page(found.to_map(), problems, drift.unchecked))
    document = {**found.to_json(), "drift": list(map(asdict, drift.drift)), "unchecked": list(drift.unchecked)}
    print_answer(document, _lines(found, drift), as_json=as_json)
    return 1 if found.problems or drift.drift else 0


def _lines(found: Topology, drift: Found) -> Iterator[str]:
    root = found.nodes[found.root]
    yield f"{root.id} ({root.key}), {counted(root.live_servers, 'live region server')}: this cluster"
    yield from _branches(found, found.root, "", {found.root})
    yield ""
    yield f"Shape: {found.shape}, {counted(len(found.nodes), 'cluster')} reached"
    yield from (f"Problem: {problem}" for problem in found.problems)
    for one in drift.drift:
        yield f"Drift: table {one.table} {one.detail}"
        yield f"   What to do: {one.advice}"
    yield from (f"Note: {words}" for words in drift.unchecked)


def _branches(found: Topology, node_id: str, indent: str, shown: set[str]) -> Iterator[str]:
    """Yield the lines of a cluster's links. A cluster that was shown before is only named again."""
    links = found.nodes[node_id].links
    for number, link in enumerate(links, 1):
        last = number == len(links)
        yield f"{indent}{'└─' if last else '├─'} peer {link.peer.id} → {_target(found, link, shown)}"
        if link.to in found.nodes and link.to not in shown:
            shown.add(link.to)
            yield from _branches(found, link.to, indent + ("   " if last else "│  "), shown)


def _target(found: Topology, link: Link, shown: set[str]) -> str:
    from status_tool.gather.peer_topology import what_is_shipped

    peer, node = link.peer, found.nodes.get(link.to or "")
    again = ", see above" if link.to in shown else ""
    where = (
        f"{node.id} ({node.key}), {counted(node.live_servers, 'live region server')}"
        if node
        else peer.endpoint or peer.cluster_key
    )
    flags = "".join(f", {word}" for word, holds in (("serial", peer.serial), ("DISABLED", not peer.enabled)) if holds)
    return f"{where}{again}{flags}, ships {what_is_shipped(peer)}"
