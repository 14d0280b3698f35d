"""Which options go with which form of `status-tool run`, and with each other: one table, for refusals and docs.

An option is obeyed or refused, never ignored. `python -m status_tool.runs.modes` prints docs/options.md.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from enum import StrEnum
from typing import Any

from status_tool.errors import UsageError


class Mode(StrEnum):
    """The forms of `run`, by its letters."""

    MASTER = "-m -o FILE"
    SLAVE = "-o FILE"
    LIVE = "-i FILE"
    OFFLINE = "-i FILE --slave-status FILE2"
    FOLLOW = "-i FILE --follow"
    DUMP = "-d alone"


WRITES = frozenset({Mode.MASTER, Mode.SLAVE})
CHECKS = frozenset({Mode.LIVE, Mode.OFFLINE, Mode.FOLLOW})
CLUSTER = frozenset(Mode) - {Mode.OFFLINE}
"""Modes that read a live cluster."""
_OFFLINE = "both sides are files there"
_FOLLOWED = "it covers everything written up to its last look at the master"
_CHECK_ONLY = "it concerns a check: it goes with -i FILE"


@dataclass(frozen=True, slots=True)
class Option:
    """Where an option of `run` is obeyed."""

    flag: str
    modes: frozenset[Mode]
    half: str | None = None
    """The half without which it would have no effect."""
    needs: str | None = None
    """The parameter that it requires."""
    why: str = ""
    """Why it is refused elsewhere."""


_ALL = frozenset(Mode)
_WITH_MASTER = frozenset({Mode.FOLLOW, Mode.LIVE})
_READS_MASTER = "only --follow and --rows read the master"
_SAMPLES = "-m -o FILE samples rows, -i FILE compares a live slave's with them"
_DIGESTS = "-m -o FILE records digests of rows, -i FILE compares a live slave's with them"
OPTIONS: Mapping[str, Option] = {
    "debug": Option("-d", _ALL),
    "debug_dir": Option("--debug-dir", _ALL - {Mode.DUMP}, needs="debug", why="that dump goes to stdout"),
    "shutdown": Option("-s", _ALL - {Mode.SLAVE, Mode.FOLLOW, Mode.DUMP}, why="no shutdown time counts there"),
    "paths": Option("-f", _ALL, half="hdfs"),
    "all_files": Option("--all-files", frozenset({Mode.MASTER}), half="hdfs", why="only -m asks for paths or for this"),
    "only": Option("--only", _ALL),
    "explain": Option("--explain", _ALL),
    "table": Option("--table", _ALL, half="hbase"),
    "namespace": Option("--namespace", _ALL, half="hbase"),
    "peer": Option("--peer", CHECKS | {Mode.MASTER}, half="hbase", why=_CHECK_ONLY),
    "since": Option("--since", CHECKS, half="hbase", why=_CHECK_ONLY),
    "ignore_later_writes": Option(
        "--ignore-later-writes", CHECKS - {Mode.FOLLOW}, half="hbase", why=f"{_CHECK_ONLY} of FILE as it is"
    ),
    "wait": Option("--wait", CLUSTER, why=f"{_OFFLINE}: nothing can change"),
    "drained": Option("--drained", frozenset({Mode.MASTER}), half="hbase", why="it waits for the master's queues"),
    "rows": Option("--rows", frozenset({Mode.LIVE, Mode.MASTER}), half="hbase", why=_DIGESTS),
    "sample": Option("--sample", frozenset({Mode.LIVE, Mode.MASTER}), half="hbase", why=_SAMPLES),
    "master_conf": Option("--master-conf", _WITH_MASTER, why=_READS_MASTER),
    "master_thrift": Option("--master-thrift", _WITH_MASTER, why=_READS_MASTER),
    "master_zookeeper": Option("--master-zookeeper", _WITH_MASTER, why=_READS_MASTER),
    "as_json": Option("--json", _ALL - {Mode.DUMP}, why="that dump is JSON lines already"),
    "deep": Option("--deep", CLUSTER, half="hdfs", why=f"{_OFFLINE}: what CRC32C they hold is compared anyway"),
    "rate": Option("--rate", CLUSTER, half="hdfs", why=f"{_OFFLINE}: no NameNode is queried"),
    "hdfs_client": Option("--hdfs-client", CLUSTER, half="hdfs", why=f"{_OFFLINE}: no NameNode is queried"),
    "resume": Option("--resume", WRITES, half="hdfs", why="it continues a FILE that was being written"),
    "exclude": Option("--exclude", _ALL, half="hdfs"),
    "map_path": Option("--map-path", CHECKS, half="hdfs", why="it goes with -i FILE"),
    "strict_extra": Option("--strict-extra", CHECKS, half="hdfs", why=_CHECK_ONLY),
    "layout": Option("--layout", CLUSTER, half="hdfs", why=f"{_OFFLINE}: no local file is read"),
    "max_problems": Option("--max-problems", CHECKS, why=_CHECK_ONLY),
    "report": Option("--report", CHECKS, why="it reports the outcome of a check: it goes with -i FILE"),
    "metrics": Option("--metrics", CHECKS, why="it reports the outcome of a check: it goes with -i FILE"),
    "conf_dir": Option("--conf-dir", _ALL),
    "thrift": Option("--thrift", CLUSTER, half="hbase", why=f"{_OFFLINE}: no cluster is queried"),
    "webhdfs": Option("--webhdfs", CLUSTER, why=f"{_OFFLINE}: no cluster is queried"),
    "zookeeper": Option("--zookeeper", CLUSTER, why=f"{_OFFLINE}: no cluster is queried"),
    "repair_script": Option("--repair-script", CHECKS, why="it repairs what a check finds: it goes with -i FILE"),
    "differ": Option("--differ", CHECKS, why="it lists what a check finds: it goes with -i FILE"),
    "missing": Option("--missing", CHECKS, why="it lists what a check finds: it goes with -i FILE"),
    "unverifiable": Option("--unverifiable", CHECKS, why="it lists what a check finds: it goes with -i FILE"),
    "cacert": Option("--cacert", CLUSTER, why=f"{_OFFLINE}: no cluster is queried"),
    "cert": Option("--cert", CLUSTER, why=f"{_OFFLINE}: no cluster is queried"),
    "principal": Option("--principal", CLUSTER, why=f"{_OFFLINE}: no cluster is queried"),
    "keytab": Option("--keytab", CLUSTER, why=f"{_OFFLINE}: no cluster is queried"),
    "accept_drift": Option("--accept-drift", CHECKS, half="hbase", why=_CHECK_ONLY),
    "sign_key": Option("--sign-key", CHECKS | WRITES, why="it goes with -o FILE or -i FILE: nothing is signed there"),
    "require_signature": Option("--require-signature", CHECKS, needs="sign_key", why="it goes with -i FILE"),
    "mode": Option("--file-mode", CHECKS | WRITES, why="no file is written there"),
    "quiet": Option("-q", _ALL),
    "verbose": Option("-v", _ALL),
    "log_file": Option("--log-file", _ALL),
    "spark_master": Option("--spark-master", CHECKS, why="only a check uses Spark"),
    "spark_conf": Option("--spark-conf", CHECKS, why="only a check uses Spark"),
}

PAIRS: tuple[tuple[str, Mode, str, str], ...] = (
    *((name, Mode.LIVE, "rows", _READS_MASTER) for name in ("master_conf", "master_thrift", "master_zookeeper")),
    ("peer", Mode.MASTER, "drained", "-m writes every peer's side; it names whose queues --drained waits for"),
)
"""Options that are obeyed in a mode only together with another one: parameter, mode, the other, why."""

MADE_BY_CHECKS = frozenset({"debug", "report", "metrics", "repair_script", "differ", "missing", "unverifiable"})
"""Options that make a check write files."""
BARRIER_MODES = frozenset({Mode.MASTER, Mode.SLAVE, Mode.DUMP})
"""Where --wait only waits for region servers to flush."""
LEGACY_REFUSED = ("table", "namespace", "peer", "since", "ignore_later_writes", "deep", "rows", "sample")
"""Options that a FILE of the original tool, without tables, streams and contents, cannot support."""


def mode_of(given: frozenset[str]) -> Mode:
    """The mode of the given letters; `UsageError` for letters that do not go together."""
    checks, writes = "status_file" in given, bool(given & {"master", "output"})
    if checks and writes:
        raise UsageError("-i checks FILE on the slave; -m and -o write one: give either")
    for name, flag in (("slave_status", "--slave-status FILE2"), ("follow", "--follow")):
        if name in given and not checks:
            raise UsageError(f"{flag} goes with -i FILE")
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
    """The names of the parameters that the command line gave."""
    return frozenset(name for name, value in values.items() if value is not None and value is not False and value != [])


def check_options(given: frozenset[str], half: str | None, known: frozenset[str] = frozenset()) -> Mode:
    """The mode; `UsageError`, one line that names both, for options without effect. `half` is that of `--only`.

    `known` are those that have a value, by a default as well: one that another option requires.
    """
    mode = mode_of(given)
    for name, option in OPTIONS.items():
        if name in given and (reason := refusal(name, mode, given | known, half)):
            raise UsageError(f"{option.flag} {reason}")
    return mode


def refusal(name: str, mode: Mode, given: frozenset[str], half: str | None) -> str | None:
    """Why an option is refused; None: it is obeyed."""
    option = OPTIONS[name]
    if mode not in option.modes:
        return f"does not go with {mode}: {_FOLLOWED if _is_followed(name, mode) else option.why}"
    if option.needs is not None and option.needs not in given:
        return f"goes with {OPTIONS[option.needs].flag}"
    for one, where, other, why in PAIRS:
        if (one, where) == (name, mode) and other not in given:
            return f"goes with {OPTIONS[other].flag} in {mode}: {why}"
    if name == "mode" and mode in CHECKS and not given & MADE_BY_CHECKS:
        return f"goes with {mode} only where that writes a file: -d, --report, --metrics, --repair-script or a list"
    if option.half is not None and half not in (None, option.half):
        return f"does not go with --only {half}: it is about the {option.half.replace('hbase', 'HBase')} half"
    if name == "wait" and half == "hdfs" and mode in BARRIER_MODES:
        return f"does not go with --only hdfs in {mode}: it waits for HBase's region servers"
    return None


def _is_followed(name: str, mode: Mode) -> bool:
    return mode is Mode.FOLLOW and name in ("shutdown", "ignore_later_writes")


def check_legacy(given: frozenset[str]) -> None:
    """`UsageError` for options that a FILE of the original tool cannot support."""
    for name in LEGACY_REFUSED:
        if name in given:
            raise UsageError(
                f"{OPTIONS[name].flag} does not go with a FILE of the original tool, which names neither tables nor "
                "streams nor contents: write FILE with `run -m -o FILE`"
            )


def check_half(given: frozenset[str], half: str) -> None:
    """`UsageError` for options about a half that FILE does not hold."""
    for name, option in OPTIONS.items():
        if name in given and option.half is not None and half not in ("both", option.half):
            raise UsageError(
                f"{option.flag} does not go with this FILE, which holds only the {half} half (--only {half})"
            )


def options_markdown() -> str:
    """docs/options.md."""
    lines = [
        "# Which options go together",
        "",
        "An option of `status-tool run` is obeyed or refused (exit code 2, one line that names both), never ignored.",
        "The table is printed by `python -m status_tool.runs.modes`; a test holds the two equal.",
        "",
        f"| option | {' | '.join(f'`{mode}`' for mode in Mode)} | with `--only` the other half |",
        f"|---|{'---|' * (len(Mode) + 1)}",
    ]
    for name, option in OPTIONS.items():
        cells = [_cell(name, mode) for mode in Mode]
        half = "obeyed" if option.half is None else f"refused with `--only {_other(option.half)}`"
        lines.append(f"| `{option.flag}` | {' | '.join(cells)} | {half} |")
    lines += [
        "",
        "Besides: `--wait` is refused with `--only hdfs` where it waits for region servers only",
        f"({', '.join(f'`{mode}`' for mode in Mode if mode in BARRIER_MODES)}).",
        "`--file-mode` is refused for a check that writes no file.",
        "With a FILE that holds one half only, options about the other one are refused; with one of the original tool",
        f"{', '.join(f'`{OPTIONS[name].flag}`' for name in LEGACY_REFUSED)}.",
        "`--deep` is refused with a FILE in which no file's CRC32C was recorded (`run -m --deep` does), and with",
        "`-o FILE.json`; `--layout` where no `file://` folder is read. `--conf-dir` with `--slave-status` is read and",
        "checked; nothing in it is needed.",
    ]
    return "\n".join(lines) + "\n"


def _cell(name: str, mode: Mode) -> str:
    if mode not in OPTIONS[name].modes:
        return "refused"
    needed = [OPTIONS[other].flag for one, where, other, _ in PAIRS if (one, where) == (name, mode)]
    needs = OPTIONS[name].needs
    needed += [OPTIONS[needs].flag] if needs else []
    return f"with `{needed[0]}`" if needed else "yes"


def _other(half: str) -> str:
    return "hdfs" if half == "hbase" else "hbase"


if __name__ == "__main__":
    print(options_markdown(), end="")
