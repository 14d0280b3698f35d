"""Every option of `run`, declared once: type, help, the modes that obey it, and why others refuse it.

The command's signature, its help, the keys of `status-tool.toml`, what `watch` takes and docs/options.md follow from
this table. Other commands that have one of these options take it from here (`with_options`).
"""

from __future__ import annotations

import inspect
from collections.abc import Callable, Mapping
from dataclasses import KW_ONLY, dataclass, replace
from enum import StrEnum
from pathlib import Path
from typing import Annotated, Any, TypeVar

import typer

from status_tool.clients.config import HdfsClient

Command = TypeVar("Command", bound=Callable[..., Any])
MOST_PROBLEMS = 1_000_000
"""Held in memory; the complete lists are not."""
MOST = 1e9
"""Bound on every number with a fraction, because nothing can wait for infinity: 31 years in seconds."""


class Half(StrEnum):
    """Values of `--only`."""

    HBASE = "hbase"
    HDFS = "hdfs"


class Mode(StrEnum):
    """The forms of `run`, by its letters."""

    MASTER = "-m -o FILE"
    SLAVE = "-o FILE"
    LIVE = "-i FILE"
    OFFLINE = "-i FILE --slave-status FILE2"
    FOLLOW = "-i FILE --follow"
    DUMP = "-d alone"


_ALL = frozenset(Mode)


@dataclass(frozen=True, slots=True)
class Option:
    """An option of `run`."""

    type: Any
    """Type of its value."""
    flag: str
    help: str
    metavar: str | None = None
    name: str | None = None
    """Its long name, where the flag is a letter."""
    min: float | None = None
    max: float | None = None
    _: KW_ONLY
    modes: frozenset[Mode] = _ALL
    """Where it is obeyed."""
    half: str | None = None
    """The half without which it would have no effect."""
    needs: str | None = None
    """The parameter that it requires."""
    why: str = ""
    """Reason why other modes refuse it."""
    needs_streams: bool = False
    """True if a FILE of the original tool, without tables, streams and contents, cannot support it."""
    in_file: bool = False
    """True if status-tool.toml may set it: not what decides the question of one run."""
    unwatched: str = ""
    """Reason why `watch` refuses it; empty: it takes it."""
    is_letter: bool = False
    """True if it is one of those that choose the mode."""

    @property
    def annotation(self) -> Any:
        """The option as Typer reads it from a signature."""
        bounds = {name: bound for name in ("min", "max") if (bound := getattr(self, name)) is not None}
        names = filter(None, (self.flag, self.name))
        declared = typer.Option(*names, metavar=self.metavar, help=self.help, **bounds)
        return Annotated[bool if self.type is bool else self.type | None, declared]

    @property
    def unset(self) -> bool | None:
        """The value where it is not given."""
        # Never its default: `given_of` would take that for given, and some defaults depend on the mode.
        return False if self.type is bool else None


WRITES = frozenset({Mode.MASTER, Mode.SLAVE})
CHECKS = frozenset({Mode.LIVE, Mode.OFFLINE, Mode.FOLLOW})
CLUSTER = frozenset(Mode) - {Mode.OFFLINE}
"""Modes that read a live cluster."""
_WITH_MASTER = frozenset({Mode.FOLLOW, Mode.LIVE})
_OFFLINE = "both sides are files there"
_CHECK_ONLY = "it concerns a check: it goes with -i FILE"
READS_MASTER = "only --follow and --rows read the master"
_SAMPLES = "-m -o FILE samples rows, -i FILE compares a live slave's with them"
_DIGESTS = "-m -o FILE records digests of rows, -i FILE compares a live slave's with them"
_FOR_MASTER = "it checks: for the master's side give --master-conf"
_DUMPED = "each round would write over it: `run -i FILE -d` dumps one"
_UNQUERIED = f"{_OFFLINE}: no cluster is queried"
_REPORTS = "it reports the outcome of a check"
_LISTS = "it lists what a check finds"
_LINES = "it prints one line a round and no progress"

IDENTITY = ("cacert", "cert", "principal", "keytab")
"""Options by which this client proves who it is, and by which it trusts servers; by parameter."""
SIGNED = {
    "sign_key": "Only files signed with the key in FILE count.",
    "require_signature": "Require --sign-key, which already implies it.",
}
"""Words of these options for a command that reads status files and writes none."""


def _hbase(kind: Any, flag: str, words: str, metavar: str | None = None, **more: Any) -> Option:
    """Return an option about streams, which a FILE of the original tool does not have."""
    return Option(kind, flag, words, metavar, half="hbase", needs_streams=True, **more)


def _hdfs(kind: Any, flag: str, words: str, metavar: str | None = None, **more: Any) -> Option:
    """Return an option about files."""
    return Option(kind, flag, words, metavar, half="hdfs", **more)


def _endpoint(kind: Any, flag: str, words: str, metavar: str, half: str | None = None) -> Option:
    """Return an option that says how a live cluster is reached."""
    return Option(kind, flag, words, metavar, modes=CLUSTER, half=half, why=_UNQUERIED, in_file=True)


def _of_master(kind: Any, flag: str, words: str, metavar: str) -> Option:
    """Return an option that says how the master is reached."""
    words = f"With --follow or --rows: {words}"
    return Option(kind, flag, words, metavar, modes=_WITH_MASTER, why=READS_MASTER, in_file=True)


def _spark(kind: Any, flag: str, words: str, metavar: str) -> Option:
    """Return an option for Spark."""
    return Option(kind, flag, words, metavar, modes=CHECKS, why="only a check uses Spark", in_file=True)


def _written(flag: str, words: str, metavar: str, why: str, **more: Any) -> Option:
    """Return an option for a file with what a check finds."""
    return Option(Path, flag, words, metavar, modes=CHECKS, why=f"{why}: it goes with -i FILE", **more)


OPTION_GROUPS: Mapping[str, Mapping[str, Option]] = {
    "What to do": {
        "master": Option(
            bool, "-m", "This is the master: with -o FILE, write its status.", unwatched=_FOR_MASTER, is_letter=True
        ),
        "output": Option(
            Path, "-o", "Write this side's status to FILE.", "FILE", unwatched=_FOR_MASTER, is_letter=True
        ),
        "status_file": Option(Path, "-i", "Check the master's FILE against this slave.", "FILE", is_letter=True),
        "published": Option(
            str,
            "--published",
            "With -i, instead of FILE: check the newest status that `publish` has sent, CLUSTER's if several masters "
            "publish.",
            "[=CLUSTER]",
            is_letter=True,
        ),
        "slave_status": Option(
            Path,
            "--slave-status",
            "With -i: read the slave's side from FILE2; no cluster is needed.",
            "FILE2",
            is_letter=True,
        ),
        "follow": Option(
            bool,
            "--follow",
            "With -i: read the master again in each round, until complete, --wait is over, or Ctrl-C.",
            unwatched="give --master-conf without -i: the master is read anew in each round",
            is_letter=True,
        ),
        "debug": Option(
            bool,
            "-d",
            "Alone: dump this cluster's state. With -m or -i: also write debug dumps.",
            unwatched=_DUMPED,
        ),
        "debug_dir": Option(
            Path,
            "--debug-dir",
            "Where -d writes (default status-tool-debug).",
            "DIR",
            modes=_ALL - {Mode.DUMP},
            needs="debug",
            why="that dump goes to stdout",
            in_file=True,
            unwatched=_DUMPED,
        ),
        "explain": Option(
            bool,
            "--explain",
            "Only show what would be read, from where and how much.",
            unwatched="it has no plan of its own: `run -i FILE --explain` shows that of one round",
        ),
        "wait": Option(
            float,
            "--wait",
            "With -m (default 60): how long to wait for every region server to flush. With -i (default 0): how long "
            "to check again until complete.",
            "SECONDS",
            min=0,
            max=MOST,
            modes=CLUSTER,
            why=f"{_OFFLINE}: nothing can change",
            in_file=True,
        ),
    },
    "What counts": {
        "shutdown": Option(
            str,
            "-s",
            "Shutdown time (epoch ms or ISO 8601) instead of the recorded one.",
            "TIME",
            modes=_ALL - {Mode.SLAVE, Mode.FOLLOW, Mode.DUMP},
            why="no shutdown time counts there",
        ),
        "only": Option(Half, "--only", "Check one half only."),
        "peer": _hbase(
            str,
            "--peer",
            "The master's replication peer to check.",
            "ID",
            modes=CHECKS | {Mode.MASTER},
            why=_CHECK_ONLY,
            in_file=True,
        ),
        "ignore_later_writes": _hbase(
            bool,
            "--ignore-later-writes",
            "With -i: accept writes after a recorded shutdown time.",
            modes=CHECKS - {Mode.FOLLOW},
            why=f"{_CHECK_ONLY} of FILE as it is",
        ),
    },
    "HBase": {
        "table": _hbase(list[str], "--table", "Only this table (repeatable).", "NS:TABLE"),
        "namespace": _hbase(list[str], "--namespace", "Only this namespace (repeatable).", "NS"),
        "since": _hbase(
            list[str],
            "--since",
            "Accept as baseline what was written up to this time (epoch ms or ISO 8601), in one table (repeatable) or "
            "everywhere.",
            "[TABLE=]TIME",
            modes=CHECKS,
            why=_CHECK_ONLY,
        ),
        "witness": _hbase(
            list[str],
            "--witness",
            "With -m: read streams from a running witness, or from its folder (repeatable: all of its peer), instead "
            "of from the master's trackers, or beside them where there are any.",
            "HOST:PORT|DIR",
            modes=frozenset({Mode.MASTER}),
            why="only the master's streams come from a witness",
            unwatched="watch checks FILE, which `run -m --witness` writes",
        ),
        "drained": _hbase(
            bool,
            "--drained",
            "With -m: wait, for at most --wait, until the queues of crashed servers are drained.",
            modes=frozenset({Mode.MASTER}),
            why="it waits for the master's queues",
            unwatched="the next round reads the queues again",
        ),
        "rows": _hbase(
            str,
            "--rows",
            "Have region servers digest the rows of tables that streams leave in doubt (with --rows=all: of every "
            "table). With -m: into FILE. With -i: compare them with FILE's, or with the master's if it is named.",
            "[=all]",
            modes=frozenset({Mode.LIVE, Mode.MASTER}),
            why=_DIGESTS,
            unwatched="a service would read the rows of both clusters again and again: `run -i FILE --rows` does it "
            "once",
        ),
        "sample": _hbase(
            str,
            "--sample",
            "How long region servers may digest random samples of rows (default 5), beside everything else. With -m: "
            "into FILE. With -i: compare them with FILE's.",
            "SECONDS|off",
            modes=frozenset({Mode.LIVE, Mode.MASTER}),
            why=_SAMPLES,
        ),
        "forget": _hbase(
            list[str],
            "--forget",
            "With -i: forget what --since or --rows has recorded of the table on this slave (repeatable). With "
            "--since TABLE=TIME: then accept its past anew, including what has happened to it on the slave.",
            "TABLE",
            modes=_WITH_MASTER,
            why="-i FILE records acceptances on a live slave",
            unwatched="each round would forget what the one before has recorded: `run -i FILE --forget` does it once",
        ),
        "accept_drift": _hbase(
            list[str],
            "--accept-drift",
            "Accept that the slave keeps less of this table, or that its own clients write to it (repeatable).",
            "NS:TABLE",
            modes=CHECKS,
            why=_CHECK_ONLY,
            in_file=True,
        ),
    },
    "HDFS files": {
        "paths": _hdfs(Path, "-f", "HDFS paths to check, one per line, # comments.", "FILE", in_file=True),
        "all_files": _hdfs(
            bool,
            "--all-files",
            "With -m: all of HDFS, whatever paths are configured.",
            modes=frozenset({Mode.MASTER}),
            why="only -m asks for paths or for this",
        ),
        "deep": _hdfs(
            str,
            "--deep",
            "Compare content by CRC32C. With -m: read every file. With -i: read files of which the layout differs, "
            "with --deep=all every file.",
            "[=all]",
            modes=CLUSTER,
            why=f"{_OFFLINE}: what CRC32C they hold is compared anyway",
            needs_streams=True,
        ),
        "rate": _hdfs(
            float,
            "--rate",
            "At most N NameNode requests a second.",
            "N",
            min=0.1,
            max=MOST,
            modes=CLUSTER,
            why=f"{_OFFLINE}: no NameNode is queried",
            in_file=True,
        ),
        "hdfs_client": _hdfs(
            HdfsClient,
            "--hdfs-client",
            "How to read files: by Hadoop's own client (native), over WebHDFS, or (auto, the default) by the former "
            "if RPC addresses are known and there are many files.",
            modes=CLUSTER,
            why=f"{_OFFLINE}: no NameNode is queried",
            in_file=True,
        ),
        "resume": _hdfs(
            bool,
            "--resume",
            "With -o: use the checksums of a run that was interrupted.",
            modes=WRITES,
            why="it continues a FILE that was being written",
            unwatched="the next round reads what this one could not",
        ),
        "exclude": _hdfs(list[str], "--exclude", "Files and folders to exclude (repeatable).", "GLOB", in_file=True),
        "map_path": _hdfs(
            list[str],
            "--map-path",
            "Compare a tree with one that has another path on the slave.",
            "MASTER=SLAVE",
            modes=CHECKS,
            why="it goes with -i FILE",
            in_file=True,
        ),
        "strict_extra": _hdfs(
            bool,
            "--strict-extra",
            "Files that exist only on the slave are a failure.",
            modes=CHECKS,
            why=_CHECK_ONLY,
        ),
        "layout": _hdfs(
            str,
            "--layout",
            "HDFS layout for the checksums of file:// roots.",
            "BLOCK[:CHUNK[:CRC]]",
            modes=CLUSTER,
            why=f"{_OFFLINE}: no local file is read",
        ),
    },
    "This cluster": {
        "conf_dir": Option(
            list[Path],
            "--conf-dir",
            "Folder with hbase-site.xml, hdfs-site.xml, core-site.xml (repeatable; then $HBASE_CONF_DIR, "
            "$HADOOP_CONF_DIR).",
            "DIR",
            in_file=True,
        ),
        "thrift": _endpoint(str, "--thrift", "HBase Thrift (1) server.", "HOST:PORT", half="hbase"),
        "webhdfs": _endpoint(list[str], "--webhdfs", "NameNode, http://HOST:PORT (repeatable).", "URL"),
        "zookeeper": _endpoint(str, "--zookeeper", "ZooKeeper and HBase's znode.", "HOST:PORT[,…]/ZNODE"),
        "cacert": _endpoint(Path, "--cacert", "CA certificates (PEM) to verify servers by.", "FILE"),
        "cert": _endpoint(
            Path, "--cert", "This client's certificate and key (PEM), for servers that ask for one.", "FILE"
        ),
        "principal": _endpoint(
            str, "--principal", "Kerberos: the principal whose ticket, or key in --keytab, to use.", "NAME"
        ),
        "keytab": _endpoint(
            Path, "--keytab", "Kerberos: log in with the key in FILE, and again before tickets expire.", "FILE"
        ),
    },
    "The master, with --follow or --rows": {
        "master_conf": _of_master(list[Path], "--master-conf", "the master's site files (repeatable).", "DIR"),
        "master_thrift": _of_master(str, "--master-thrift", "the master's Thrift server.", "HOST:PORT"),
        "master_zookeeper": _of_master(
            str,
            "--master-zookeeper",
            "the master's ZooKeeper; alone --follow shows the queues only.",
            "HOST:PORT[,…]/ZNODE",
        ),
    },
    "Spark": {
        "spark_master": _spark(str, "--spark-master", "Default local[*]; spark-submit has its own --master.", "URL"),
        "spark_conf": _spark(list[str], "--spark-conf", "Spark setting (repeatable).", "K=V"),
    },
    "Results": {
        "as_json": Option(
            bool,
            "--json",
            "One JSON document on stdout, nothing else there.",
            modes=_ALL - {Mode.DUMP},
            why="that dump is JSON lines already",
        ),
        "max_problems": Option(
            int,
            "--max-problems",
            "How many problems to list (default 100).",
            "N",
            min=0,
            max=MOST_PROBLEMS,
            modes=CHECKS,
            why=_CHECK_ONLY,
            in_file=True,
        ),
        "report": _written("--report", "Also write an HTML report.", "FILE.html", _REPORTS),
        "metrics": _written("--metrics", "Also write a Prometheus textfile.", "FILE.prom", _REPORTS, in_file=True),
        "repair_script": _written(
            "--repair-script",
            "Also write the repairs, one per table, as a script.",
            "FILE.sh",
            "it repairs what a check finds",
        ),
        "differ": _written("--differ", "List everything that differs; - is stdout, .txt lists paths.", "FILE", _LISTS),
        "missing": _written("--missing", "List everything that is missing, in whole or in part.", "FILE", _LISTS),
        "unverifiable": _written("--unverifiable", "List everything that could not be verified.", "FILE", _LISTS),
    },
    "Status files": {
        "sign_key": Option(
            Path,
            "--sign-key",
            "With -o: sign with the key in FILE; with -i: accept only files signed with it.",
            "FILE",
            modes=CHECKS | WRITES,
            why="it goes with -o FILE or -i FILE: nothing is signed there",
            in_file=True,
        ),
        "require_signature": Option(
            bool,
            "--require-signature",
            "With -i: require --sign-key, which already implies it.",
            modes=CHECKS,
            why="it goes with -i FILE",
            in_file=True,
        ),
        "mode": Option(
            str,
            "--file-mode",
            "Permissions of written files (default 600, of metrics 644 less the umask; a replaced file keeps its own).",
            "OCTAL",
            modes=CHECKS | WRITES,
            why="no file is written there",
            in_file=True,
        ),
    },
    "Progress": {
        "quiet": Option(
            bool,
            "-q",
            "Show no progress, and only the verdict of a check.",
            name="--quiet",
            unwatched=_LINES,
        ),
        "verbose": Option(bool, "-v", "Keep a line for each step.", name="--verbose", unwatched=_LINES),
        "log_file": Option(
            Path,
            "--log-file",
            "Also append progress to FILE, with times.",
            "FILE",
            unwatched=f"{_LINES}: redirect it",
        ),
    },
}
"""By heading of `run -h`, the options by parameter."""

DECLARED: Mapping[str, Option] = {name: option for group in OPTION_GROUPS.values() for name, option in group.items()}
"""Every option, in the order of the help."""
OPTIONS: Mapping[str, Option] = {name: option for name, option in DECLARED.items() if not option.is_letter}
"""Those that do not choose the mode."""


def with_options(*names: str, **words: str) -> Callable[[Command], Command]:
    """Give a function the signature that Typer reads: its own parameters, and one for each option of `run`.

    Only those of `names` and `words` if there are any; `words` are other help for a command with one use of the option.
    A parameter of the function may have the name of one: then the option is declared here and typed there.
    """
    taken = {*names, *words} or set(DECLARED)
    options = {
        name: replace(option, help=words.get(name, option.help)) for name, option in DECLARED.items() if name in taken
    }

    def decorate(command: Command) -> Command:
        own = [
            one
            # Typer needs types, and `from __future__ import annotations` leaves text.
            for one in inspect.signature(command, eval_str=True).parameters.values()
            if one.kind is not inspect.Parameter.VAR_KEYWORD and one.name not in options
        ]
        more = [
            inspect.Parameter(name, inspect.Parameter.KEYWORD_ONLY, default=one.unset, annotation=one.annotation)
            for name, one in options.items()
        ]
        command.__signature__ = inspect.Signature([*own, *more], return_annotation=int)  # type: ignore[attr-defined]
        return command

    return decorate
