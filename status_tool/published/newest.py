"""The newest status file that replication has brought, as a file."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

from status_tool.clients.config import Settings
from status_tool.clients.zookeeper import ZooKeeper
from status_tool.errors import StatusFileError, UsageError
from status_tool.printable import duration, few, iso
from status_tool.published.layout import Closing
from status_tool.published.table import Published, PublishedTable
from status_tool.rules.peers import normal_key
from status_tool.rules.sides import recorded_filter
from status_tool.sources.state_table import now_ms
from status_tool.status_file.signature import SignKey
from status_tool.vocabulary.outcome import AHEAD_MS
from status_tool.vocabulary.scope import TableFilter

TRIED = 50
"""So many of the newest are tried: those that are still arriving are few, and those that refer to parts which this
cluster has lost end after `PUT_AGAIN_S`, twenty rounds of a publisher."""


def own_cluster_id(settings: Settings) -> str:
    """Return the id of this cluster: its own published files say nothing of what has arrived."""
    with ZooKeeper(settings.zookeeper()) as zookeeper:
        return zookeeper.cluster_id()


def of_one_master(published: Published, own_id: str, wanted: str | None, option: str) -> list[Closing]:
    """Return the files of the master that is meant, newest first.

    Raises `UsageError` if several could be, which names the `option` that says which.
    """
    files = [one for one in published.closings if one.cluster_id != own_id]
    if wanted is not None:
        return _of_one_place([one for one in files if one.cluster_id == wanted])
    masters = sorted({one.cluster_id for one in files})
    if len(masters) > 1:
        raise UsageError(
            f"{len(masters)} clusters have published to this one ({', '.join(masters)}): name the master by {option}"
        )
    return _of_one_place(files)


def _of_one_place(files: list[Closing]) -> list[Closing]:
    """Return the files of one id. Raises `UsageError` if they are of two clusters: one proves nothing of the other."""
    keys = {normal_key(one.cluster_key): one.cluster_key for one in files if one.cluster_key}
    if len(keys) > 1:
        raise UsageError(
            f"clusters at {few(sorted(keys.values()), 3)} have published as {files[0].cluster_id}: one may have been "
            "made of a copy of the other's HBase root, and nobody can tell their files apart; create it anew, or, if "
            "it is one cluster, let all publishers have one hbase.zookeeper.quorum and wait a day; `run -i FILE` "
            "checks against a file that was copied here"
        )
    return files


def fetch_newest(
    settings: Settings,
    wanted: str | None,
    path: Path,
    key: SignKey | None = None,
    *,
    with_files: bool,
    asked: TableFilter = TableFilter(),
) -> Sequence[str]:
    """Write the newest file that is here in whole to `path`; returns notices about newer ones that are not.

    `with_files`: the newest with checksums of HDFS files. With a `key`, the newest that is signed with it. One of fewer
    tables than `asked` only where no other is here. Raises `StatusFileError` where there is none.
    """
    table = PublishedTable(settings.thrift(), settings.status_table)
    table.require()
    published = table.published()
    files = of_one_master(published, own_cluster_id(settings), wanted, "--published=CLUSTER")
    files = [one for one in files if not with_files or one.half != "hbase"]
    notices = [f"published status files that are not counted: {why}" for why in published.unreadable]
    errors, narrow = list[str](), list[Closing]()
    for closing in files[:TRIED]:
        try:
            held = recorded_filter(table.fetch(closing, path, key))
        except StatusFileError as error:
            errors.append(str(error))
        else:
            if with_files or held.covers(asked):
                return [*notices, *errors, _which(closing)]
            errors.append(f"the status file published at {iso(closing.barrier_ms)} holds only {held}")
            narrow.append(closing)
    if narrow:
        table.fetch(narrow[0], path, key)
        return [*notices, *errors, _which(narrow[0])]
    what = "status file with HDFS files" if with_files else "status file"
    # The newest file's reason alone: that one should be here.
    why = f" ({[*errors, *notices][0]})" if errors or notices else ""
    raise StatusFileError(
        f"no {what} of {'a master' if wanted is None else f'the master {wanted}'} that was published to this cluster "
        f"is here in whole{why}: run `status-tool publish` on the master"
    )


def _which(closing: Closing) -> str:
    return f"checking against the status file published at {iso(closing.barrier_ms)}{_ahead_words(closing)}"


def _ahead_words(closing: Closing) -> str:
    ahead_ms = closing.barrier_ms - now_ms()
    if ahead_ms <= AHEAD_MS:
        return ""
    return (
        f", which is {duration(ahead_ms)} AHEAD of this host's clock: set right the clock of the host that runs "
        "`publish`, or this one's"
    )
