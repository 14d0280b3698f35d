"""`status-tool run`: selects the run by its letters, and prints the result."""

from __future__ import annotations

import dataclasses
import json
import re
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from enum import StrEnum
from pathlib import Path
from typing import Annotated, NamedTuple

import typer

from status_tool.atomic import atomic_write, check_target, file_mode
from status_tool.cli.options import CaCert, ConfDirs, ThriftOption, WebHdfsOption, ZooKeeperOption, settings_of
from status_tool.cli.times import parse_time
from status_tool.clients.config import Settings, load_site
from status_tool.clients.webhdfs import Load
from status_tool.errors import ConfigurationError, StatusToolError, UsageError
from status_tool.gather.snapshot import FileOptions, Request
from status_tool.printable import iso, safe
from status_tool.report.follow_progress import make_following
from status_tool.report.html_report import HtmlReporter
from status_tool.report.json_report import JsonReporter
from status_tool.report.metrics import MetricsReporter, before
from status_tool.report.progress import make_progress
from status_tool.report.reporter import write_report
from status_tool.report.script import ScriptReporter
from status_tool.report.text import TextReporter
from status_tool.runs.check import Check, check_live, check_offline
from status_tool.runs.follow import follow as follow_master
from status_tool.runs.modes import Mode, check_options, given_of
from status_tool.runs.write import Written, dump_live, write_side
from status_tool.sources.crc import Layout
from status_tool.spark.lists import FullList
from status_tool.status_file.legacy import is_legacy_name
from status_tool.status_file.signature import SignKey, read_key
from status_tool.vocabulary.header import MASTER, SLAVE
from status_tool.vocabulary.outcome import Outcome
from status_tool.vocabulary.scope import Scope, TableFilter
from status_tool.vocabulary.selection import PathMap, read_path_file

DEFAULT_MASTER_WAIT_S = 60.0
DEFAULT_DEBUG_DIR = Path("status-tool-debug")
DEFAULT_MAX_PROBLEMS = 100


class Half(StrEnum):
    """What `--only` takes."""

    HBASE = "hbase"
    HDFS = "hdfs"


def run(
    master: Annotated[bool, typer.Option("-m", help="This is the master: with -o FILE, write its status.")] = False,
    output: Annotated[Path | None, typer.Option("-o", metavar="FILE", help="Write this side's status to FILE.")] = None,
    status_file: Annotated[
        Path | None, typer.Option("-i", metavar="FILE", help="Check the master's FILE against this slave.")
    ] = None,
    slave_status: Annotated[
        Path | None,
        typer.Option(
            "--slave-status", metavar="FILE2", help="With -i: the slave's side from FILE2, no cluster needed."
        ),
    ] = None,
    debug: Annotated[
        bool,
        typer.Option("-d", help="Alone: dump this cluster's state. With -m or -i: also write debug dumps."),
    ] = False,
    debug_dir: Annotated[
        Path | None,
        typer.Option("--debug-dir", metavar="DIR", help="Where -d writes (default status-tool-debug)."),
    ] = None,
    shutdown: Annotated[
        str | None,
        typer.Option("-s", metavar="TIME", help="Shutdown time (epoch ms or ISO 8601) instead of the recorded one."),
    ] = None,
    paths: Annotated[
        Path | None, typer.Option("-f", metavar="FILE", help="HDFS paths to check, one per line, # comments.")
    ] = None,
    only: Annotated[Half | None, typer.Option("--only", help="One half of the check.")] = None,
    table: Annotated[
        list[str] | None, typer.Option("--table", metavar="NS:TABLE", help="Only this table (repeatable).")
    ] = None,
    namespace: Annotated[
        list[str] | None, typer.Option("--namespace", metavar="NS", help="Only this namespace (repeatable).")
    ] = None,
    peer: Annotated[
        str | None,
        typer.Option("--peer", metavar="ID", help="The master's replication peer to check."),
    ] = None,
    since: Annotated[
        str | None,
        typer.Option(
            "--since",
            metavar="TIME",
            help="Accept as baseline what was written up to this time (epoch ms or ISO 8601).",
        ),
    ] = None,
    ignore_later_writes: Annotated[
        bool,
        typer.Option("--ignore-later-writes", help="With -i: accept writes after a recorded shutdown time."),
    ] = False,
    wait: Annotated[
        float | None,
        typer.Option(
            "--wait",
            metavar="SECONDS",
            min=0,
            help="With -m (default 60): for the flush of every region server. With -i (default 0): until complete.",
        ),
    ] = None,
    drained: Annotated[
        bool,
        typer.Option(
            "--drained", help="With -m: wait, as long as --wait says, until queues of crashed servers are drained."
        ),
    ] = False,
    follow: Annotated[
        bool,
        typer.Option(
            "--follow", help="With -i: keep reading the master, too, until complete, --wait is over or Ctrl-C."
        ),
    ] = False,
    master_conf: Annotated[
        list[Path] | None,
        typer.Option("--master-conf", metavar="DIR", help="With --follow: the master's site files (repeatable)."),
    ] = None,
    master_thrift: Annotated[
        str | None,
        typer.Option("--master-thrift", metavar="HOST:PORT", help="With --follow: the master's Thrift server."),
    ] = None,
    master_zookeeper: Annotated[
        str | None,
        typer.Option(
            "--master-zookeeper",
            metavar="HOST:PORT[,…]/ZNODE",
            help="With --follow: the master's ZooKeeper; alone it shows the queues only.",
        ),
    ] = None,
    as_json: Annotated[bool, typer.Option("--json", help="One JSON document on stdout, nothing else there.")] = False,
    deep: Annotated[
        str | None,
        typer.Option(
            "--deep",
            metavar="[=all]",
            help="Read content: with -m every file's CRC32C is recorded; with -i files of different layout are "
            "settled by it, with --deep=all every file.",
        ),
    ] = None,
    rate: Annotated[
        float | None, typer.Option("--rate", metavar="N", min=0.1, help="At most N NameNode requests a second.")
    ] = None,
    resume: Annotated[
        bool, typer.Option("--resume", help="With -o: use the checksums of a run that was interrupted.")
    ] = False,
    exclude: Annotated[
        list[str] | None,
        typer.Option("--exclude", metavar="GLOB", help="Files and folders to exclude (repeatable)."),
    ] = None,
    map_path: Annotated[
        list[str] | None,
        typer.Option("--map-path", metavar="MASTER=SLAVE", help="A tree that has another path on the slave."),
    ] = None,
    strict_extra: Annotated[
        bool, typer.Option("--strict-extra", help="Files that exist only on the slave are a failure.")
    ] = False,
    layout: Annotated[
        str | None,
        typer.Option("--layout", metavar="BLOCK[:CHUNK[:CRC]]", help="HDFS layout for the checksums of file:// roots."),
    ] = None,
    accept_drift: Annotated[
        list[str] | None,
        typer.Option(
            "--accept-drift",
            metavar="NS:TABLE",
            help="With -i: accept that the slave keeps less of this table (repeatable).",
        ),
    ] = None,
    max_problems: Annotated[
        int | None,
        typer.Option("--max-problems", metavar="N", min=0, help="How many problems to list (default 100)."),
    ] = None,
    report: Annotated[
        Path | None, typer.Option("--report", metavar="FILE.html", help="Also write an HTML report.")
    ] = None,
    metrics: Annotated[
        Path | None, typer.Option("--metrics", metavar="FILE.prom", help="Also write a Prometheus textfile.")
    ] = None,
    repair_script: Annotated[
        Path | None,
        typer.Option("--repair-script", metavar="FILE.sh", help="Also write the repairs, one per table, as a script."),
    ] = None,
    differ: Annotated[
        Path | None,
        typer.Option("--differ", metavar="FILE", help="List everything that differs; - is stdout, .txt lists paths."),
    ] = None,
    missing: Annotated[
        Path | None,
        typer.Option("--missing", metavar="FILE", help="List everything that is missing, in whole or in part."),
    ] = None,
    unverifiable: Annotated[
        Path | None, typer.Option("--unverifiable", metavar="FILE", help="List everything that could not be verified.")
    ] = None,
    conf_dir: ConfDirs = None,
    thrift: ThriftOption = None,
    webhdfs: WebHdfsOption = None,
    zookeeper: ZooKeeperOption = None,
    cacert: CaCert = None,
    sign_key: Annotated[
        Path | None,
        typer.Option(
            "--sign-key",
            metavar="FILE",
            help="With -o: sign with the key in FILE; with -i: accept only files signed with it.",
        ),
    ] = None,
    require_signature: Annotated[
        bool, typer.Option("--require-signature", help="With -i: require --sign-key, which already implies it.")
    ] = False,
    mode: Annotated[
        str | None,
        typer.Option(
            "--file-mode",
            metavar="OCTAL",
            help="Permissions of written files (default 600; a replaced file keeps its own).",
        ),
    ] = None,
    spark_master: Annotated[
        str | None,
        typer.Option("--spark-master", metavar="URL", help="Default local[*]; kept under spark-submit."),
    ] = None,
    spark_conf: Annotated[
        list[str] | None, typer.Option("--spark-conf", metavar="K=V", help="Spark setting (repeatable).")
    ] = None,
) -> int:
    """Write this cluster's status (-m -o, -o), check the master's on the slave (-i), or dump (-d)."""
    given = given_of(locals())
    form = check_options(given, only)
    if form is Mode.FOLLOW and not (master_conf or master_zookeeper):
        raise UsageError("--follow needs the master: --master-conf DIR or --master-zookeeper HOST:PORT/ZNODE")
    if deep is not None and output is not None and output.suffix == ".json":
        raise UsageError("--deep does not go with -o FILE.json: the original tool's format holds no CRC32C")
    shutdown_ms, since_ms = parse_time(shutdown, "-s"), parse_time(since, "--since")
    lists = _lists({"differ": differ, "missing": missing, "unverifiable": unverifiable}, as_json, status_file)
    if repair_script is not None and status_file is None:
        raise UsageError("--repair-script repairs what a check finds: it goes with -i FILE")
    for target in (output, report, metrics, repair_script, *(one.to for one in lists)):
        if target is not None:
            check_target(target)
    key = _key(sign_key, require_signature, output, status_file)
    file_mode(_mode(mode))
    settings = settings_of(conf_dir, thrift, webhdfs, zookeeper, cacert)
    files = _files(deep, rate, exclude, layout)
    path_map = PathMap.parse(map_path or ())
    tables = frozenset(name.removeprefix("default:") for name in table or ())
    accepted = frozenset(name.removeprefix("default:") for name in accept_drift or ())
    hbase, hdfs = only is not Half.HDFS, only is not Half.HBASE
    dumps = (debug_dir or DEFAULT_DEBUG_DIR) if debug else None
    if status_file is not None:
        listed = DEFAULT_MAX_PROBLEMS if max_problems is None else max_problems
        kept = (listed, strict_extra, accepted, ignore_later_writes)
        scope = Scope(tables, frozenset(namespace or ()), since_ms, peer, hbase, hdfs, *kept)
        check = Check(
            status_file=status_file,
            scope=scope,
            slave_status=slave_status,
            wait_s=wait or 0.0,
            shutdown_ms=shutdown_ms,
            hdfs_paths=_paths(paths),
            files=dataclasses.replace(files, deep=deep == "all"),
            deep=deep is not None,
            path_map=path_map,
            debug_dir=dumps,
            given=given,
            spark_master=spark_master,
            spark_conf=_spark_conf(spark_conf),
            key=key,
            lists=lists,
            for_report=report is not None,
        )
        output_to = _Output(as_json, report, metrics, repair_script, time.monotonic())
        if follow:
            # Only what the options name: the environment's site files are this cluster's.
            site = load_site(master_conf or [], environ={})
            return _follow(
                settings,
                Settings(site, master_thrift, (), master_zookeeper, settings.authorities),
                check,
                output_to,
                wait,
            )
        return _check(settings, check, output_to)
    request = Request(
        side=SLAVE if form is Mode.SLAVE else MASTER,
        wait_s=DEFAULT_MASTER_WAIT_S if wait is None else wait,
        only=TableFilter(tables, frozenset(namespace or ())),
        hbase=hbase,
        hdfs=hdfs,
        hdfs_paths=_paths(paths),
        shutdown_ms=shutdown_ms,
        files=dataclasses.replace(files, journal="" if resume else None),
        drained=drained,
        peer_id=peer,
    )
    if output is None:
        return _dump(settings, request)
    return _write(settings, request, output, dumps, as_json, key)


def _lists(named: dict[str, Path | None], as_json: bool, status_file: Path | None) -> tuple[FullList, ...]:
    """The requested lists; stdout can hold only one document."""
    chosen = {name: path for name, path in named.items() if path is not None}
    if chosen and status_file is None:
        raise UsageError(f"--{next(iter(chosen))} lists what a check finds: it goes with -i FILE")
    stdout = [name for name, path in chosen.items() if str(path) == "-"]
    if stdout and as_json:
        raise UsageError(f"--{stdout[0]} - and --json both want stdout: name a file for the list")
    if len(stdout) > 1:
        raise UsageError(f"--{stdout[0]} - and --{stdout[1]} - both want stdout: name a file for one of them")
    return tuple(FullList(name, None if name in stdout else path) for name, path in chosen.items())


def _files(deep: str | None, rate: float | None, exclude: list[str] | None, layout: str | None) -> FileOptions:
    if deep not in (None, "all", "different"):
        raise UsageError(f"--deep={deep}: expected --deep or --deep=all")
    return FileOptions(
        load=Load(rate=rate),
        exclude=tuple(exclude or ()),
        deep=deep is not None,
        layout=Layout.parse(layout) if layout else None,
    )


def _paths(file: Path | None) -> tuple[str, ...]:
    if file is None:
        return ()
    try:
        return read_path_file(file.read_text(encoding="utf-8"), str(file))
    except OSError as error:
        raise ConfigurationError(f"cannot read -f {file}: {error.strerror}") from None
    except UnicodeDecodeError:
        raise ConfigurationError(f"-f {file} is not UTF-8 text") from None


def _key(path: Path | None, required: bool, output: Path | None, status_file: Path | None) -> SignKey | None:
    if required and status_file is None:
        raise UsageError("--require-signature goes with -i FILE")
    if required and path is None:
        raise UsageError("--require-signature needs --sign-key FILE: the key that FILE was signed with")
    if path is None:
        return None
    if output is None and status_file is None:
        raise UsageError("--sign-key goes with -o FILE (to sign it) or -i FILE (to accept nothing else)")
    if output is not None and is_legacy_name(output):
        raise UsageError("the original's JSON cannot be signed: give -o a name that does not end in .json")
    return read_key(path)


def _mode(text: str | None) -> int | None:
    """An octal number that lets the owner read and write, and sets no special bit."""
    if text is None:
        return None
    if not re.fullmatch(r"0?[0-7]{3}", text) or int(text, 8) & 0o600 != 0o600:
        raise UsageError(
            f"--file-mode {text!r}: expected three octal digits, as 640, that let the owner read and write"
        )
    return int(text, 8)


def _spark_conf(pairs: list[str] | None) -> tuple[tuple[str, str], ...]:
    settings = []
    for pair in pairs or ():
        key, equals, value = pair.partition("=")
        if not equals or not key.strip():
            raise UsageError(f"--spark-conf {pair!r}: expected K=V")
        settings.append((key.strip(), value.strip()))
    return tuple(settings)


class _Output(NamedTuple):
    """Where an outcome is written."""

    as_json: bool
    report: Path | None
    metrics: Path | None
    repair_script: Path | None
    started_s: float


@contextmanager
def _failure_in_metrics(output: _Output) -> Iterator[None]:
    """Record a failed check in its metrics, too; otherwise an older verdict would look current."""
    try:
        yield
    except Exception:
        if output.metrics is not None:
            with suppress(StatusToolError), atomic_write(output.metrics) as stream:
                took = time.monotonic() - output.started_s
                MetricsReporter(None, took, before(output.metrics)).write_failure(stream)
        raise


def _check(settings: Settings, check: Check, output: _Output) -> int:
    with _failure_in_metrics(output):
        with make_progress() as progress:
            say = progress.step
            outcome = check_offline(check, say) if check.slave_status else check_live(settings, check, say)
        return _write_outcome(outcome, output)


def _follow(settings: Settings, master: Settings, check: Check, output: _Output, limit_s: float | None) -> int:
    with _failure_in_metrics(output):
        with make_following() as shown:
            outcome = follow_master(settings, master, check, shown, limit_s)
        return _write_outcome(outcome, output)


def _write_outcome(outcome: Outcome, output: _Output) -> int:
    # A report that cannot be written is an error: with --json that is the one document on stdout.
    if output.as_json:
        _write_reports(outcome, output)
        JsonReporter().write(outcome, sys.stdout)
    else:
        TextReporter().write(outcome, sys.stdout)
    sys.stdout.flush()
    if not output.as_json:
        _write_reports(outcome, output)
    return outcome.exit_code


def _write_reports(outcome: Outcome, output: _Output) -> None:
    if output.report is not None:
        write_report(HtmlReporter(), outcome, output.report)
    if output.metrics is not None:
        took = time.monotonic() - output.started_s
        write_report(MetricsReporter(None, took, before(output.metrics)), outcome, output.metrics)
    if output.repair_script is not None:
        write_report(ScriptReporter(output.repair_script.name), outcome, output.repair_script)


def _write(
    settings: Settings, request: Request, output: Path, debug_dir: Path | None, as_json: bool, key: SignKey | None
) -> int:
    with make_progress() as progress:
        written = write_side(settings, request, output, debug_dir, progress.step, key, progress.advance)
    for notice in (*written.header.notices, *(f"{server}: unverifiable" for server in written.unsettled)):
        print(f"status-tool: {safe(notice)}", file=sys.stderr)
    if as_json:
        print(json.dumps(_summary(written, output)))
        return 0
    counts = ", ".join(f"{count} {kind}" for kind, count in sorted(written.rows.items()))
    print(f"Wrote {output}: the {request.side}'s status ({counts}), cut {iso(written.header.cut_ms)}")
    return 0


def _summary(written: Written, output: Path) -> dict[str, object]:
    return {
        "file": str(output),
        "side": written.header.side,
        "cluster_id": written.header.cluster_id,
        "cut_ms": written.header.cut_ms,
        "shutdown_ms": written.header.shutdown_ms,
        "rows": written.rows,
        "unsettled": list(written.unsettled),
        "notices": list(written.header.notices),
    }


def _dump(settings: Settings, request: Request) -> int:
    with make_progress() as progress:
        dump_live(settings, request, sys.stdout, progress.step)
    return 0
