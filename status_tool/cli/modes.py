"""Rules for the options of `status-tool run`: which go with which form, and which with each other.

An option is obeyed or refused, never ignored.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from status_tool.cli.run_options import CHECKS, OPTIONS, READS_MASTER, Mode
from status_tool.errors import UsageError
from status_tool.vocabulary.header import HALF_NAMES

PAIRS: tuple[tuple[str, Mode, str, str], ...] = (
    *((name, Mode.LIVE, "rows", READS_MASTER) for name in ("master_conf", "master_thrift", "master_zookeeper")),
    ("peer", Mode.MASTER, "drained", "-m writes every peer's side; it names whose queues --drained waits for"),
)
"""Options that are obeyed in a mode only together with another one: parameter, mode, the other, why."""

MADE_BY_CHECKS = frozenset({"debug", "report", "metrics", "repair_script", "differ", "missing", "unverifiable"})
"""Options that make a check write files."""
BARRIER_MODES = frozenset({Mode.MASTER, Mode.SLAVE, Mode.DUMP})
"""Where --wait only waits for region servers to flush."""


def mode_of(given: frozenset[str]) -> Mode:
    """Return the mode of the given letters. Raises `UsageError` if they do not go together."""
    checks, writes = bool(given & {"status_file", "published"}), bool(given & {"master", "output"})
    if {"status_file", "published"} <= given:
        raise UsageError("-i FILE names a file, --published takes the newest that was published here: give either")
    if checks and writes:
        raise UsageError("-i checks FILE on the slave; -m and -o write one: give either")
    for name, flag in (("slave_status", "--slave-status FILE2"), ("follow", "--follow")):
        if name in given and not checks:
            raise UsageError(f"{flag} goes with -i FILE")
    if {"slave_status", "published"} <= given:
        raise UsageError("--published reads a table of the slave, --slave-status FILE2 no cluster: give either")
    if {"slave_status", "follow"} <= given:
        raise UsageError("--follow reads both clusters again, --slave-status FILE2 none: give either")
    if checks:
        return Mode.FOLLOW if "follow" in given else Mode.OFFLINE if "slave_status" in given else Mode.LIVE
    if "master" in given and "output" not in given:
        raise UsageError("-m needs -o FILE: where to write the master's status")
    if writes:
        return Mode.MASTER if "master" in given else Mode.SLAVE
    if "debug" not in given:
        raise UsageError("nothing to do: -m -o FILE on the master, -i FILE on the slave, or -d to dump")
    return Mode.DUMP


def given_of(values: Mapping[str, Any]) -> frozenset[str]:
    """Return the names of the parameters that have a value."""
    # `--wait 0` is given, too: its truth does not tell. Typer has an empty tuple for an empty list.
    return frozenset(name for name, value in values.items() if value not in (None, [], ()) and value is not False)


def check_options(given: frozenset[str], half: str | None, known: frozenset[str] = frozenset()) -> Mode:
    """Return the mode; `half` is that of `--only`.

    Raises `UsageError`, in one line that names both, for options without effect.

    `known` are those that have a value, by a default as well: one that another option requires.
    """
    mode = mode_of(given)
    for name, option in OPTIONS.items():
        if name in given and (reason := refusal(name, mode, given | known, half)):
            raise UsageError(f"{option.flag} {reason}")
    return mode


def refusal(name: str, mode: Mode, given: frozenset[str], half: str | None) -> str | None:
    """Return why an option is refused; None if it is obeyed."""
    option = OPTIONS[name]
    if mode is Mode.FOLLOW and name in ("shutdown", "ignore_later_writes"):
        return f"does not go with {mode}: it covers everything written up to its last look at the master"
    if mode not in option.modes:
        return f"does not go with {mode}: {option.why}"
    if option.needs is not None and option.needs not in given:
        return f"goes with {OPTIONS[option.needs].flag}"
    for one, where, other, why in PAIRS:
        if (one, where) == (name, mode) and other not in given:
            return f"goes with {OPTIONS[other].flag} in {mode}: {why}"
    if name == "mode" and mode in CHECKS and not given & MADE_BY_CHECKS:
        return f"goes with {mode} only where that writes a file: -d, --report, --metrics, --repair-script or a list"
    if option.half is not None and half not in (None, option.half):
        return f"does not go with --only {half}: it is about the {HALF_NAMES[option.half]} half"
    if name == "wait" and half == "hdfs" and mode in BARRIER_MODES:
        return f"does not go with --only hdfs in {mode}: it waits for HBase's region servers"
    return None
