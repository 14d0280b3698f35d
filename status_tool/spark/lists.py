"""`--differ`, `--missing`, `--unverifiable`: every finding of a kind, streamed, however many there are."""

from __future__ import annotations

import json
import sys
from collections.abc import Iterator
from contextlib import nullcontext
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from pyspark.sql import functions as F

from status_tool.atomic import atomic_write
from status_tool.explain.problems import kind_of, to_problem
from status_tool.printable import counted, print_beside, safe
from status_tool.spark.judge import to_finding
from status_tool.spark.verify import Verification
from status_tool.vocabulary.codes import CODES
from status_tool.vocabulary.findings import Finding
from status_tool.vocabulary.scope import Scope
from status_tool.vocabulary.selection import is_glob
from status_tool.vocabulary.verdicts import FileStatus, Status

LIST_KINDS: dict[str, frozenset[str]] = {
    "differ": frozenset({str(FileStatus.MISMATCH), "differs"}),
    "missing": frozenset({str(Status.MISSING), str(Status.GAP), str(Status.BEHIND), str(FileStatus.MISSING)}),
    "unverifiable": frozenset({str(Status.UNVERIFIABLE), str(FileStatus.INCOMPARABLE)}),
}
"""The kinds of problems that a list holds: differing content; missing in whole or in part; and unverifiable."""


@dataclass(frozen=True)
class FullList:
    """One of the lists, and where it goes; `to` None is stdout."""

    name: str
    to: Path | None

    @property
    def paths_only(self) -> bool:
        """One path per line for a name that ends in `.txt`, as `-f` and distcp read it; else JSON lines."""
        return self.to is not None and self.to.suffix == ".txt"


def write_lists(check: Verification, lists: tuple[FullList, ...]) -> None:
    """Write each list atomically (stdout: streamed); raises `OutputError`."""
    for one in lists:
        others = odd = 0
        with nullcontext(sys.stdout) if one.to is None else atomic_write(one.to) as stream:
            for finding in _findings(check, one):
                if not one.paths_only:
                    stream.write(json.dumps(_document(finding, check)) + "\n")
                elif finding.path is None:
                    others += 1
                else:
                    stream.write(safe(finding.path) + "\n")
                    odd += not reads_back(finding.path)
        if odd:
            print_beside(
                f"{safe(str(one.to))} lists {counted(odd, 'path')} with *, ?, [ or white space, which -f and distcp"
                " take for others: name them there by their folders"
            )
        if others:
            where = safe(str(one.to))
            print_beside(
                f"{where} lists paths, without {counted(others, 'finding')} about regions, tables or servers: name it"
                " .jsonl to have them all"
            )


def reads_back(path: str) -> bool:
    """Return True if a line with the path stands for it alone where `-f` reads it."""
    return not is_glob(path) and safe(path).strip() == path


def listed_kinds(name: str, scope: Scope) -> frozenset[str]:
    """Return the kinds of a list. A file that only the slave has differs where it is a failure (`--strict-extra`)."""
    extra = {str(FileStatus.EXTRA)} if name == "differ" and scope.strict_extra else set[str]()
    return LIST_KINDS[name] | extra


def _findings(check: Verification, one: FullList) -> Iterator[Finding]:
    """Yield the findings a partition at a time: nothing is collected."""
    kinds = listed_kinds(one.name, check.context.scope)
    # An unknown code is unverifiable, as in `problems.kind_of`.
    wanted = [name for name, code in CODES.items() if str(code.status) in kinds]
    others = [name for name in CODES if name not in wanted]
    chosen = ~F.col("code").isin(others) if str(Status.UNVERIFIABLE) in kinds else F.col("code").isin(wanted)
    yield from (finding for finding in check.beside_rows if kind_of(finding.code) in kinds)
    for rows in check.findings:
        yield from (to_finding(row) for row in rows.where(chosen).toLocalIterator(prefetchPartitions=True))


def _document(finding: Finding, check: Verification) -> dict[str, Any]:
    known = to_problem(finding, check.context).to_json()
    return {name: value for name, value in known.items() if value is not None and name not in ("advice", "repair")}
