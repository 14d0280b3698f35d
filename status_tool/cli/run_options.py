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
    modes: frozenset[Mode] = frozenset()
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


_ALL = frozenset(Mode)
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
_REPORTS = "it reports the outcome of a check: it goes with -i FILE"
_LINES = "it prints one line a round and no progress"

IDENTITY = ("cacert", "cert", "principal", "keytab")
"""Options by which this client proves who it is, and by which it trusts servers; by parameter."""
SIGNED = {
    "sign_key": "Only files signed with the key in FILE count.",
    "require_signature": "Require --sign-key, which already implies it.",
}
"""Words of these options for a command that reads status files and writes none."""


def _endpoint(kind: Any, flag: str, metavar: str, words: str, half: str | None = None) -> Option:
    """Return an option that says how a live cluster is reached."""
    return Option(kind, flag, words, metavar, modes=CLUSTER, half=half, why=_UNQUERIED, in_file=True)


def _of_master(kind: Any, flag: str, metavar: str, words: str) -> Option:
    """Return an option that says how the master is reached."""
    words = f"With --follow or --rows: {words}"
    return Option(kind, flag, words, metavar, modes=_WITH_MASTER, why=READS_MASTER, in_file=True)


def _spark(kind: Any, flag: str, metavar: str, words: str) -> Option:
    """Return an option for Spark."""
    return Option(kind, flag, words, metavar, modes=CHECKS, why="only a check uses Spark", in_file=True)


def _list(flag: str, words: str) -> Option:
    """Return an option for a complete list of what a check finds."""
    return Option(Path, flag, words, "FILE", modes=CHECKS, why="it lists what a check finds: it goes with -i FILE")


OPTION_GROUPS: Mapping[str, Mapping[str, Option]] = {
    "What to do": {
        "master": Option(
            bool,
            "-m",
            help="This is the master: with -o FILE, write its status.",
            unwatched=_FOR_MASTER,
            is_letter=True,
        ),
        "output": Option(
            Path, "-o", metavar="FILE", help="Write this side's status to FILE.", unwatched=_FOR_MASTER, is_letter=True
        ),
        "status_file": Option(
            Path, "-i", metavar="FILE", help="Check the master's FILE against this slave.", is_letter=True
        ),
        "published": Option(
            str,
            "--published",
            metavar="[=CLUSTER]",
            help="With -i, instead of FILE: check the newest status that `publish` has sent, CLUSTER's if "
            "several masters publish.",
            is_letter=True,
        ),
        "slave_status": Option(
            Path,
            "--slave-status",
            metavar="FILE2",
            help="With -i: read the slave's side from FILE2; no cluster is needed.",
            is_letter=True,
        ),
        "follow": Option(
            bool,
            "--follow",
            help="With -i: read the master again in each round, until complete, --wait is over, or Ctrl-C.",
            unwatched="give --master-conf without -i: the master is read anew in each round",
            is_letter=True,
        ),
        "debug": Option(
            bool,
            "-d",
            help="Alone: dump this cluster's state. With -m or -i: also write debug dumps.",
            modes=_ALL,
            unwatched=_DUMPED,
        ),
        "debug_dir": Option(
            Path,
            "--debug-dir",
            metavar="DIR",
            help="Where -d writes (default status-tool-debug).",
            modes=_ALL - {Mode.DUMP},
            needs="debug",
            why="that dump goes to stdout",
            in_file=True,
            unwatched=_DUMPED,
        ),
        "explain": Option(
            bool,
            "--explain",
            help="Only show what would be read, from where and how much.",
            modes=_ALL,
            unwatched="it has no plan of its own: `run -i FILE --explain` shows that of one round",
        ),
        "wait": Option(
            float,
            "--wait",
            metavar="SECONDS",
            min=0,
            max=MOST,
            help="With -m (default 60): how long to wait for every region server to flush. With -i (default 0): "
            "how long to check again until complete.",
            modes=CLUSTER,
            why=f"{_OFFLINE}: nothing can change",
            in_file=True,
        ),
    },
    "What counts": {
        "shutdown": Option(
            str,
            "-s",
            metavar="TIME",
            help="Shutdown time (epoch ms or ISO 8601) instead of the recorded one.",
            modes=_ALL - {Mode.SLAVE, Mode.FOLLOW, Mode.DUMP},
            why="no shutdown time counts there",
        ),
        "only": Option(Half, "--only", help="Check one half only.", modes=_ALL),
        "peer": Option(
            str,
            "--peer",
            metavar="ID",
            help="The master's replication peer to check.",
            modes=CHECKS | {Mode.MASTER},
            half="hbase",
            why=_CHECK_ONLY,
            needs_streams=True,
            in_file=True,
        ),
        "ignore_later_writes": Option(
            bool,
            "--ignore-later-writes",
            help="With -i: accept writes after a recorded shutdown time.",
            modes=CHECKS - {Mode.FOLLOW},
            half="hbase",
            why=f"{_CHECK_ONLY} of FILE as it is",
            needs_streams=True,
        ),
    },
    "HBase": {
        "table": Option(
            list[str],
            "--table",
            metavar="NS:TABLE",
            help="Only this table (repeatable).",
            modes=_ALL,
            half="hbase",
            needs_streams=True,
        ),
        "namespace": Option(
            list[str],
            "--namespace",
            metavar="NS",
            help="Only this namespace (repeatable).",
            modes=_ALL,
            half="hbase",
            needs_streams=True,
        ),
        "since": Option(
            list[str],
            "--since",
            metavar="[TABLE=]TIME",
            help="Accept as baseline what was written up to this time (epoch ms or ISO 8601), in one "
            "table (repeatable) or everywhere.",
            modes=CHECKS,
            half="hbase",
            why=_CHECK_ONLY,
            needs_streams=True,
        ),
        "witness": Option(
            list[str],
            "--witness",
            metavar="HOST:PORT|DIR",
            help="With -m: read streams from a running witness, or from its folder (repeatable: all of its peer), "
            "instead of from the master's trackers, or beside them where there are any.",
            modes=frozenset({Mode.MASTER}),
            half="hbase",
            why="only the master's streams come from a witness",
            unwatched="watch checks FILE, which `run -m --witness` writes",
        ),
        "drained": Option(
            bool,
            "--drained",
            help="With -m: wait, for at most --wait, until the queues of crashed servers are drained.",
            modes=frozenset({Mode.MASTER}),
            half="hbase",
            why="it waits for the master's queues",
            unwatched="the next round reads the queues again",
        ),
        "rows": Option(
            str,
            "--rows",
            metavar="[=all]",
            help="Have region servers digest the rows of tables that streams leave in doubt (with --rows=all: of "
            "every table). With -m: into FILE. With -i: compare them with FILE's, or with the master's if it is named.",
            modes=frozenset({Mode.LIVE, Mode.MASTER}),
            half="hbase",
            why=_DIGESTS,
            needs_streams=True,
            unwatched="a service would read the rows of both clusters again and again: `run -i FILE --rows` "
            "does it once",
        ),
        "sample": Option(
            str,
            "--sample",
            metavar="SECONDS|off",
            help="How long region servers may digest random samples of rows (default 5), beside everything else. "
            "With -m: into FILE. With -i: compare them with FILE's.",
            modes=frozenset({Mode.LIVE, Mode.MASTER}),
            half="hbase",
            why=_SAMPLES,
            needs_streams=True,
        ),
        "forget": Option(
            list[str],
            "--forget",
            metavar="TABLE",
            help="With -i: forget what --since or --rows has recorded of the table on this slave (repeatable). "
            "With --since TABLE=TIME: then accept its past anew, including what has happened to it on the slave.",
            modes=_WITH_MASTER,
            half="hbase",
            why="-i FILE records acceptances on a live slave",
            needs_streams=True,
            unwatched="each round would forget what the one before has recorded: `run -i FILE --forget` does it once",
        ),
        "accept_drift": Option(
            list[str],
            "--accept-drift",
            metavar="NS:TABLE",
            help="Accept that the slave keeps less of this table, or that its own clients write to it (repeatable).",
            modes=CHECKS,
            half="hbase",
            why=_CHECK_ONLY,
            needs_streams=True,
            in_file=True,
        ),
    },
    "HDFS files": {
        "paths": Option(
            Path,
            "-f",
            metavar="FILE",
            help="HDFS paths to check, one per line, # comments.",
            modes=_ALL,
            half="hdfs",
            in_file=True,
        ),
        "all_files": Option(
            bool,
            "--all-files",
            help="With -m: all of HDFS, whatever paths are configured.",
            modes=frozenset({Mode.MASTER}),
            half="hdfs",
            why="only -m asks for paths or for this",
        ),
        "deep": Option(
            str,
            "--deep",
            metavar="[=all]",
            help="Compare content by CRC32C. With -m: read every file. With -i: read files of which the layout "
            "differs, with --deep=all every file.",
            modes=CLUSTER,
            half="hdfs",
            why=f"{_OFFLINE}: what CRC32C they hold is compared anyway",
            needs_streams=True,
        ),
        "rate": Option(
            float,
            "--rate",
            metavar="N",
            min=0.1,
            max=MOST,
            help="At most N NameNode requests a second.",
            modes=CLUSTER,
            half="hdfs",
            why=f"{_OFFLINE}: no NameNode is queried",
            in_file=True,
        ),
        "hdfs_client": Option(
            HdfsClient,
            "--hdfs-client",
            help="How to read files: by Hadoop's own client (native), over WebHDFS, or (auto, the default) by "
            "the former if RPC addresses are known and there are many files.",
            modes=CLUSTER,
            half="hdfs",
            why=f"{_OFFLINE}: no NameNode is queried",
            in_file=True,
        ),
        "resume": Option(
            bool,
            "--resume",
            help="With -o: use the checksums of a run that was interrupted.",
            modes=WRITES,
            half="hdfs",
            why="it continues a FILE that was being written",
            unwatched="the next round reads what this one could not",
        ),
        "exclude": Option(
            list[str],
            "--exclude",
            metavar="GLOB",
            help="Files and folders to exclude (repeatable).",
            modes=_ALL,
            half="hdfs",
            in_file=True,
        ),
        "map_path": Option(
            list[str],
            "--map-path",
            metavar="MASTER=SLAVE",
            help="Compare a tree with one that has another path on the slave.",
            modes=CHECKS,
            half="hdfs",
            why="it goes with -i FILE",
            in_file=True,
        ),
        "strict_extra": Option(
            bool,
            "--strict-extra",
            help="Files that exist only on the slave are a failure.",
            modes=CHECKS,
            half="hdfs",
            why=_CHECK_ONLY,
        ),
        "layout": Option(
            str,
            "--layout",
            metavar="BLOCK[:CHUNK[:CRC]]",
            help="HDFS layout for the checksums of file:// roots.",
            modes=CLUSTER,
            half="hdfs",
            why=f"{_OFFLINE}: no local file is read",
        ),
    },
    "This cluster": {
        "conf_dir": Option(
            list[Path],
            "--conf-dir",
            metavar="DIR",
            help="Folder with hbase-site.xml, hdfs-site.xml, core-site.xml (repeatable; then $HBASE_CONF_DIR, "
            "$HADOOP_CONF_DIR).",
            modes=_ALL,
            in_file=True,
        ),
        "thrift": _endpoint(str, "--thrift", "HOST:PORT", "HBase Thrift (1) server.", half="hbase"),
        "webhdfs": _endpoint(list[str], "--webhdfs", "URL", "NameNode, http://HOST:PORT (repeatable)."),
        "zookeeper": _endpoint(str, "--zookeeper", "HOST:PORT[,…]/ZNODE", "ZooKeeper and HBase's znode."),
        "cacert": _endpoint(Path, "--cacert", "FILE", "CA certificates (PEM) to verify servers by."),
        "cert": _endpoint(
            Path, "--cert", "FILE", "This client's certificate and key (PEM), for servers that ask for one."
        ),
        "principal": _endpoint(
            str, "--principal", "NAME", "Kerberos: the principal whose ticket, or key in --keytab, to use."
        ),
        "keytab": _endpoint(
            Path, "--keytab", "FILE", "Kerberos: log in with the key in FILE, and again before tickets expire."
        ),
    },
    "The master, with --follow or --rows": {
        "master_conf": _of_master(list[Path], "--master-conf", "DIR", "the master's site files (repeatable)."),
        "master_thrift": _of_master(str, "--master-thrift", "HOST:PORT", "the master's Thrift server."),
        "master_zookeeper": _of_master(
            str,
            "--master-zookeeper",
            "HOST:PORT[,…]/ZNODE",
            "the master's ZooKeeper; alone --follow shows the queues only.",
        ),
    },
    "Spark": {
        "spark_master": _spark(str, "--spark-master", "URL", "Default local[*]; spark-submit has its own --master."),
        "spark_conf": _spark(list[str], "--spark-conf", "K=V", "Spark setting (repeatable)."),
    },
    "Results": {
        "as_json": Option(
            bool,
            "--json",
            help="One JSON document on stdout, nothing else there.",
            modes=_ALL - {Mode.DUMP},
            why="that dump is JSON lines already",
        ),
        "max_problems": Option(
            int,
            "--max-problems",
            metavar="N",
            min=0,
            max=MOST_PROBLEMS,
            help="How many problems to list (default 100).",
            modes=CHECKS,
            why=_CHECK_ONLY,
            in_file=True,
        ),
        "report": Option(
            Path, "--report", metavar="FILE.html", help="Also write an HTML report.", modes=CHECKS, why=_REPORTS
        ),
        "metrics": Option(
            Path,
            "--metrics",
            metavar="FILE.prom",
            help="Also write a Prometheus textfile.",
            modes=CHECKS,
            why=_REPORTS,
            in_file=True,
        ),
        "repair_script": Option(
            Path,
            "--repair-script",
            metavar="FILE.sh",
            help="Also write the repairs, one per table, as a script.",
            modes=CHECKS,
            why="it repairs what a check finds: it goes with -i FILE",
        ),
        "differ": _list("--differ", "List everything that differs; - is stdout, .txt lists paths."),
        "missing": _list("--missing", "List everything that is missing, in whole or in part."),
        "unverifiable": _list("--unverifiable", "List everything that could not be verified."),
    },
    "Status files": {
        "sign_key": Option(
            Path,
            "--sign-key",
            metavar="FILE",
            help="With -o: sign with the key in FILE; with -i: accept only files signed with it.",
            modes=CHECKS | WRITES,
            why="it goes with -o FILE or -i FILE: nothing is signed there",
            in_file=True,
        ),
        "require_signature": Option(
            bool,
            "--require-signature",
            help="With -i: require --sign-key, which already implies it.",
            modes=CHECKS,
            why="it goes with -i FILE",
            in_file=True,
        ),
        "mode": Option(
            str,
            "--file-mode",
            metavar="OCTAL",
            help="Permissions of written files (default 600, of metrics 644 less the umask; a replaced "
            "file keeps its own).",
            modes=CHECKS | WRITES,
            why="no file is written there",
            in_file=True,
        ),
    },
    "Progress": {
        "quiet": Option(
            bool,
            "-q",
            name="--quiet",
            help="Show no progress, and only the verdict of a check.",
            modes=_ALL,
            unwatched=_LINES,
        ),
        "verbose": Option(
            bool, "-v", name="--verbose", help="Keep a line for each step.", modes=_ALL, unwatched=_LINES
        ),
        "log_file": Option(
            Path,
            "--log-file",
            metavar="FILE",
            help="Also append progress to FILE, with times.",
            modes=_ALL,
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
    options = {name: _described(option, words.get(name)) for name, option in DECLARED.items() if name in taken}

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


def _described(option: Option, words: str | None) -> Option:
    return option if words is None else replace(option, help=words)
