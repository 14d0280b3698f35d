"""`status-tool prune`: drop rows of the state table that no verdict needs any more."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from status_tool.cli.options import on_cluster, print_answer, sign_key_of
from status_tool.cli.run_options import MOST, SIGNED, with_options
from status_tool.clients.config import Settings

if TYPE_CHECKING:
    from status_tool.runs.prune_rows import Pruned

DAY_MS = 86_400_000
DEFAULT_DAYS = 7.0
_NAMES = {"heads": "heads of streams", "segments": "rows of segments", "servers": "rows of servers"}


@on_cluster("thrift", "webhdfs", "zookeeper")
@with_options("as_json", **SIGNED)
def prune(
    settings: Settings,
    files: Annotated[
        list[Path],
        typer.Argument(
            metavar="FILE",
            help="On a master: `run -o FILE` of each of its slaves. On a slave: `run -m -o FILE` of its master.",
            show_default=False,
        ),
    ],
    gone_for: Annotated[
        float,
        typer.Option(
            "--gone-for", metavar="DAYS", min=0, max=MOST, help="Keep rows of servers that ended later than this."
        ),
    ] = DEFAULT_DAYS,
    dry_run: Annotated[bool, typer.Option("--dry-run", help="Only show what would be dropped.")] = False,
    *,
    as_json: bool,
    sign_key: Path | None,
    require_signature: bool,
) -> None:
    """Drop rows of long-gone region servers from this cluster's state table, as far as the other side's status files
    prove that no verdict needs them.
    """
    key = sign_key_of(sign_key, required=require_signature)
    from status_tool.runs.prune_rows import PruneRequest, prune_rows

    done = prune_rows(settings, PruneRequest(tuple(files), int(gone_for * DAY_MS), dry_run, key))
    found = {"dropped": done.dropped, "rows": done.rows, "notices": done.notices}
    print_answer({"side": done.side, "dry_run": dry_run, **found}, _lines(done, dry_run), as_json=as_json)


def _lines(done: Pruned, dry_run: bool) -> list[str]:
    verb = "would be dropped" if dry_run else "dropped"
    lines = [f"{done.dropped[kind]} of {rows} {_NAMES[kind]} {verb}" for kind, rows in done.rows.items() if rows]
    return [f"As {done.side}: {'; '.join(lines) or 'nothing to prune'}", *done.notices]
