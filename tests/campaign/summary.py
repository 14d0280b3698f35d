"""The campaign's records as one table, and as the text of docs/campaign.md."""

from __future__ import annotations

import json
import re
import sys
import textwrap
from collections import Counter
from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import Any

COMPLETE = "complete"
_SERVER = re.compile(r"\b[\w.-]+,\d+,\d+")
_MOMENT = re.compile(r"\d{4}-\d\d-\d\dT[\d:.+]+")


def read(paths: Iterable[Path]) -> list[dict[str, Any]]:
    """Records of several files."""
    return [json.loads(line) for path in paths for line in path.read_text().splitlines()]


def undecided(records: Iterable[dict[str, Any]]) -> list[dict[str, Any]]:
    """Records at whose end nothing was lost, and which the tool did not call complete."""
    return [record for record in records if any(map(_is_undecided, record["looks"]))]


def _is_undecided(look: dict[str, Any]) -> bool:
    return bool(look["when"] == "end" and look["missing"] == 0 and look["verdict"] != COMPLETE)


def table(paths: Sequence[Path]) -> str:
    """Everything that is counted, as Markdown."""
    records = read(paths)
    looks = [look for record in records for look in record["looks"]]
    ends = [look for look in looks if look["when"] == "end"]
    drained = [look for look in ends if look["missing"] == 0]
    regions = sum(sum(look["regions"].values()) for look in drained)
    settled = sum(look["verdict"] == COMPLETE and bool(look.get("settled")) for look in drained)
    rows = [
        ("schedules", len(records)),
        ("… brought to their end", sum(record["lost"] is not None for record in records)),
        ("… in which data was lost for good", sum(bool(record["lost"]) for record in records)),
        ("verdicts asked for", len(looks)),
        *((f"… {verdict}", count) for verdict, count in sorted(Counter(look["verdict"] for look in looks).items())),
        ("verdicts held against the truth", sum(look["missing"] is not None for look in looks)),
        ("**false complete** (verdicts)", sum(look["false_complete"] for look in looks)),
        ("**false complete** (regions)", sum(len(look["false_regions"]) for look in looks)),
        ("contradictions of the two proofs", sum(len(look.get("contradictions", ())) for look in looks)),
        ("false complete by the original's timestamp rule", _false(looks, "timestamps")),
        ("false complete by HBase's replication lag", _false(looks, "lag")),
        ("ends asked VerifyReplication", sum(look["verify"] is not None for look in ends)),
        ("… false complete by it", _false(looks, "verify")),
        ("ends with nothing lost", len(drained)),
        ("… called complete", sum(look["verdict"] == COMPLETE for look in drained)),
        ("… … although a server had been killed, which the queues settled", settled),
        ("… regions in them", regions),
        ("… regions with a false alarm", sum(len(look["alarms"]) for look in drained)),
        ("… regions unverifiable", sum(look["unverified"] for look in drained)),
        ("… ends unverifiable, with reason", sum(look["verdict"] == "unverifiable" for look in drained)),
        ("… ends called incomplete by VerifyReplication", sum(look["verify"] == "incomplete" for look in drained)),
        *_by_rows(ends),
    ]
    return "\n".join(["| what | count |", "|---|---:|", *(f"| {name} | {count} |" for name, count in rows)])


def _by_rows(ends: Sequence[dict[str, Any]]) -> list[tuple[str, int]]:
    asked = [look for look in ends if look.get("rows") is not None]
    if not asked:
        return []
    same = [look for look in asked if not _rows_missing(look) and look["rows_same"]]
    other = [look for look in asked if _rows_missing(look) or look["rows_same"] is False]
    return [
        ("ends asked with `--rows=all`", len(asked)),
        ("… at which both sides show the same rows", len(same)),
        ("… … called complete", sum(look["rows"] == COMPLETE for look in same)),
        ("… … called incomplete", sum(look["rows"] == "incomplete" for look in same)),
        ("… at which something is missing, or shows on one side only", len(other)),
        ("… … called incomplete", sum(look["rows"] == "incomplete" for look in other)),
        ("… … **called complete**", sum(look["rows"] == COMPLETE for look in other)),
        ("… undecided, with reason", sum(look["rows"] not in (COMPLETE, "incomplete") for look in asked)),
    ]


def _rows_missing(look: dict[str, Any]) -> int:
    """Missing cells that count for the rows; records before 2026-11-25 know no accepted tables."""
    missing: int = look["missing"] if look.get("rows_missing") is None else look["rows_missing"]
    return missing


def _false(looks: Iterable[dict[str, Any]], who: str) -> int:
    return sum(bool(look["missing"]) and look[who] == COMPLETE for look in looks)


def reasons(paths: Sequence[Path]) -> str:
    """Why ends with nothing lost were not called complete, by their first reason's kind, with the seeds."""
    seeds: dict[str, list[int]] = {}
    for record in read(paths):
        for look in record["looks"]:
            if _is_undecided(look):
                kind = f"{look['verdict']}: {_kind(look['told'].split(' | ')[0])}"
                seeds.setdefault(kind, []).append(record["schedule"]["seed"])
    ordered = sorted(seeds.items(), key=lambda found: -len(found[1]))
    items = (f"- {len(found)} × {kind}. Seeds {', '.join(map(str, found))}" for kind, found in ordered)
    return "\n".join(textwrap.fill(item, 120, subsequent_indent="  ", break_on_hyphens=False) for item in items)


def _kind(reason: str) -> str:
    """A reason without what differs each time: servers, moments, numbers."""
    plain = _MOMENT.sub("…", _SERVER.sub("a server", reason.removeprefix("unverifiable: ")))
    return textwrap.shorten(re.sub(r"\b\d+\b", "n", plain), 260, placeholder=" …")


if __name__ == "__main__":
    files = [Path(name) for name in sys.argv[1:]]
    print(table(files), reasons(files), sep="\n\n")
