"""`status-tool run`: selects the run by its letters, and prints the result."""

from __future__ import annotations

import dataclasses
import re
import time
from contextlib import suppress
from enum import StrEnum
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from status_tool.atomic import check_target, file_mode
from status_tool.cli.defaults import from_file
from status_tool.cli.options import (
    CaCert,
    Cert,
    ConfDirs,
    Keytab,
    LogFile,
    Principal,
    Quiet,
    ThriftOption,
    Verbose,
    WebHdfsOption,
    ZooKeeperOption,
    settings_of,
    show_as,
)
from status_tool.cli.signals import loading
from status_tool.cli.targets import refuse_overwriting
from status_tool.cli.times import parse_baseline, parse_time
from status_tool.clients.config import HdfsClient, Settings, load_site
from status_tool.errors import ConfigurationError, StatusToolError, UsageError
from status_tool.runs.modes import Mode, check_options, given_of
from status_tool.spark import jvm
from status_tool.spark.home import take_spark
from status_tool.spark.settings import archived, is_short, spark_settings_with
from status_tool.status_file.legacy_name import is_legacy_name
from status_tool.status_file.signature import SignKey, read_key
from status_tool.vocabulary.header import MASTER, SLAVE
from status_tool.vocabulary.names import plain_name
from status_tool.vocabulary.scope import Scope, TableFilter
from status_tool.vocabulary.selection import PathMap, read_path_file

if TYPE_CHECKING:
    from status_tool.gather.snapshot import FileOptions

DEFAULT_MASTER_WAIT_S = 60.0
DEFAULT_DEBUG_DIR = Path("status-tool-debug")
DEFAULT_MAX_PROBLEMS = 100
MOST_PROBLEMS = 1_000_000
"""Held in memory; the complete lists are not."""
DEFAULT_SAMPLE_S = 5.0
MAX_SAMPLE_S = 3_600.0


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
    all_files: Annotated[
        bool, typer.Option("--all-files", help="With -m: all of HDFS, whatever paths are configured.")
    ] = False,
    explain: Annotated[
        bool, typer.Option("--explain", help="Only show what would be read, from where and how much.")
    ] = False,
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
        list[str] | None,
        typer.Option(
            "--since",
            metavar="[TABLE=]TIME",
            help="Accept as baseline what was written up to this time (epoch ms or ISO 8601), in one table "
            "(repeatable) or everywhere.",
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
    rows: Annotated[
        str | None,
        typer.Option(
            "--rows",
            metavar="[=all]",
            help="Where streams leave a table in doubt, have region servers digest its rows: with -m into FILE, with "
            "-i to compare them with FILE's, or with the master's if that is named; with --rows=all every table.",
        ),
    ] = None,
    sample: Annotated[
        str | None,
        typer.Option(
            "--sample",
            metavar="SECONDS|off",
            help="How long region servers digest random samples of rows at most, beside everything else (default 5): "
            "with -m into FILE, with -i to compare them with FILE's.",
        ),
    ] = None,
    master_conf: Annotated[
        list[Path] | None,
        typer.Option(
            "--master-conf", metavar="DIR", help="With --follow or --rows: the master's site files (repeatable)."
        ),
    ] = None,
    master_thrift: Annotated[
        str | None,
        typer.Option(
            "--master-thrift", metavar="HOST:PORT", help="With --follow or --rows: the master's Thrift server."
        ),
    ] = None,
    master_zookeeper: Annotated[
        str | None,
        typer.Option(
            "--master-zookeeper",
            metavar="HOST:PORT[,…]/ZNODE",
            help="With --follow or --rows: the master's ZooKeeper; alone --follow shows the queues only.",
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
    hdfs_client: Annotated[
        HdfsClient | None,
        typer.Option(
            "--hdfs-client",
            help="How files are read: by Hadoop's own client, over WebHDFS, or (auto, the default) the first where RPC "
            "addresses are known and the files are many.",
        ),
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
        typer.Option(
            "--max-problems", metavar="N", min=0, max=MOST_PROBLEMS, help="How many problems to list (default 100)."
        ),
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
    cert: Cert = None,
    principal: Principal = None,
    keytab: Keytab = None,
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
            help="Permissions of written files (default 600, of metrics 644 less the umask; a replaced file keeps its "
            "own).",
        ),
    ] = None,
    quiet: Quiet = False,
    verbose: Verbose = False,
    log_file: LogFile = None,
    spark_master: Annotated[
        str | None,
        typer.Option("--spark-master", metavar="URL", help="Default local[*]; kept under spark-submit."),
    ] = None,
    spark_conf: Annotated[
        list[str] | None, typer.Option("--spark-conf", metavar="K=V", help="Spark setting (repeatable).")
    ] = None,
) -> int:
    """Write this cluster's status (-m -o, -o), check the master's on the slave (-i), or dump (-d)."""
    values = dict(locals())
    known = given_of(values)
    # What a file sets is a default, not an order: it refuses nothing.
    given = known - from_file()
    form = check_options(given, only, known)
    refuse_overwriting({**values, "debug_dir": debug_dir or DEFAULT_DEBUG_DIR})
    if all_files and "paths" in given:
        raise UsageError("--all-files reads all of HDFS, -f FILE what it names: give either")
    if form is Mode.FOLLOW and not (master_conf or master_zookeeper):
        raise UsageError("--follow needs the master: --master-conf DIR or --master-zookeeper HOST:PORT/ZNODE")
    if deep is not None and output is not None and is_legacy_name(output):
        raise UsageError("--deep does not go with -o FILE.json: the original tool's format holds no CRC32C")
    if rows not in (None, "all", "doubtful"):
        raise UsageError(f"--rows={rows}: expected --rows or --rows=all")
    if rows is not None and bool(master_thrift) != bool(master_zookeeper) and not master_conf:
        raise UsageError("--rows reads the master by --master-conf DIR, or --master-thrift and --master-zookeeper")
    if rows is not None and output is not None and is_legacy_name(output):
        raise UsageError("--rows does not go with -o FILE.json: the original tool's format holds no row digests")
    shutdown_ms, sample_s = parse_time(shutdown, "-s"), _sample_s(sample)
    baseline = parse_baseline(since or (), TableFilter.of(table or (), namespace or ()))
    lists = _lists({"differ": differ, "missing": missing, "unverifiable": unverifiable}, as_json, status_file)
    if repair_script is not None and status_file is None:
        raise UsageError("--repair-script repairs what a check finds: it goes with -i FILE")
    for target in (output, report, metrics, repair_script, *lists.values()):
        if target is not None:
            check_target(target)
    key = _key(sign_key, require_signature, output, status_file)
    file_mode(permissions_of(mode))
    settings = settings_of(conf_dir, thrift, webhdfs, zookeeper, cacert, cert, principal, keytab)
    if deep not in (None, "all", "different"):
        raise UsageError(f"--deep={deep}: expected --deep or --deep=all")
    path_map = PathMap.parse(map_path or ())
    tables, accepted = (frozenset(map(plain_name, names or ())) for names in (table, accept_drift))
    hbase, hdfs = only is not Half.HDFS, only is not Half.HBASE
    dumps = (debug_dir or DEFAULT_DEBUG_DIR) if debug else None
    hdfs_paths, spark_settings = _paths(paths, all_files), spark_settings_of(spark_conf)
    if hdfs and hdfs_client is HdfsClient.NATIVE and slave_status is None:
        _start_hdfs_client(settings, rate)
    if status_file is not None:
        take_spark()
        if status_file.is_file() and not explain:
            _start_spark(spark_master, spark_settings, status_file)
    # Not before: these take most of a second to import, for which help and a wrong option need not wait.
    with loading(jvm.kill):
        from status_tool.cli.running import (
            Output,
            check_file,
            dump,
            follow_master,
            is_delivering,
            show_plan,
            write_file,
        )
        from status_tool.gather.snapshot import Request

    if not is_delivering():
        show_as(quiet=quiet, verbose=verbose, log_file=log_file)
    files = _files(deep is not None, rate, exclude, layout, hdfs_client or HdfsClient.AUTO)

    def other() -> Settings:
        # Only what the options name: the environment's site files are this cluster's.
        site = load_site(master_conf or [], environ={})
        return Settings(site, master_thrift, (), master_zookeeper, settings.trust)

    if status_file is not None:
        with loading(jvm.kill):
            from status_tool.runs.check import Check
            from status_tool.runs.compare_rows import RowsAsked
            from status_tool.runs.plan import explain_check
            from status_tool.spark.lists import FullList

        listed = DEFAULT_MAX_PROBLEMS if max_problems is None else max_problems
        kept = (listed, strict_extra, accepted, ignore_later_writes)
        scope = Scope(tables, frozenset(namespace or ()), baseline, peer, hbase, hdfs, *kept)
        check = Check(
            status_file=status_file,
            scope=scope,
            slave_status=slave_status,
            wait_s=wait or 0.0,
            shutdown_ms=shutdown_ms,
            hdfs_paths=hdfs_paths,
            files=dataclasses.replace(files, deep=deep == "all"),
            deep=deep is not None,
            path_map=path_map,
            debug_dir=dumps,
            given=given,
            spark_master=spark_master,
            spark_conf=spark_settings,
            key=key,
            lists=tuple(FullList(name, to) for name, to in lists.items()),
            for_report=report is not None,
            rows=None if rows is None else RowsAsked(other() if master_conf or master_thrift else None, rows == "all"),
            sample_s=sample_s,
        )
        if explain:
            return show_plan(explain_check(settings, check), as_json)
        output_to = Output(as_json, report, metrics, repair_script, time.monotonic(), quiet)
        if follow:
            return follow_master(settings, other(), check, output_to, wait)
        return check_file(settings, check, output_to)
    request = Request(
        side=SLAVE if form is Mode.SLAVE else MASTER,
        wait_s=DEFAULT_MASTER_WAIT_S if wait is None else wait,
        only=TableFilter(tables, frozenset(namespace or ())),
        hbase=hbase,
        hdfs=hdfs,
        hdfs_paths=hdfs_paths,
        shutdown_ms=shutdown_ms,
        files=dataclasses.replace(files, journal="" if resume else None),
        drained=drained,
        peer_id=peer,
        rows=rows or "",
        sample_s=sample_s,
    )
    if explain:
        take_spark()
        with loading():
            from status_tool.runs.plan import explain_side

        return show_plan(explain_side(settings, request), as_json)
    if output is None:
        return dump(settings, request)
    return write_file(settings, request, output, dumps, as_json, key)


def _start_hdfs_client(settings: Settings, rate: float | None) -> None:
    """It starts in as long as what is imported below takes."""
    from status_tool.clients.hdfs_native import start_early
    from status_tool.clients.webhdfs import Load

    start_early(settings, Load(rate=rate))


def _lists(named: dict[str, Path | None], as_json: bool, status_file: Path | None) -> dict[str, Path | None]:
    """The requested lists, each with its file; None is stdout (`-`), which can hold only one document."""
    chosen = {name: path for name, path in named.items() if path is not None}
    if chosen and status_file is None:
        raise UsageError(f"--{next(iter(chosen))} lists what a check finds: it goes with -i FILE")
    stdout = [name for name, path in chosen.items() if str(path) == "-"]
    if stdout and as_json:
        raise UsageError(f"--{stdout[0]} - and --json both want stdout: name a file for the list")
    if len(stdout) > 1:
        raise UsageError(f"--{stdout[0]} - and --{stdout[1]} - both want stdout: name a file for one of them")
    return {name: None if name in stdout else path for name, path in chosen.items()}


def _sample_s(text: str | None) -> float:
    """Seconds; 0 is none. Raises `UsageError`."""
    if text is None:
        return DEFAULT_SAMPLE_S
    if text == "off":
        return 0.0
    try:
        seconds = float(text)
    except ValueError:
        seconds = -1.0
    if not 0 < seconds <= MAX_SAMPLE_S:
        raise UsageError(f"--sample {text}: expected seconds, at most {MAX_SAMPLE_S:g}, or off")
    return seconds


def _files(
    deep: bool, rate: float | None, exclude: list[str] | None, layout: str | None, client: HdfsClient
) -> FileOptions:
    from status_tool.clients.webhdfs import Load
    from status_tool.gather.snapshot import FileOptions
    from status_tool.sources.crc import Layout

    return FileOptions(
        load=Load(rate=rate),
        exclude=tuple(exclude or ()),
        deep=deep,
        client=client,
        layout=Layout.parse(layout) if layout else None,
    )


def _paths(file: Path | None, all_files: bool) -> tuple[str, ...]:
    """Those of -f or `--all-files`; none: the configured ones count."""
    if all_files:
        return ("/",)
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


def _start_spark(master: str | None, conf: tuple[tuple[str, str], ...], status_file: Path) -> None:
    """Let Spark's JVM start while everything else is imported and read; what fails here is told where it is needed."""
    with loading(jvm.kill), suppress(StatusToolError, OSError):
        jvm.begin(archived(spark_settings_with(master, dict(conf), is_short(status_file)))[0])


def permissions_of(text: str | None) -> int | None:
    """What `--file-mode` sets: octal, lets the owner read and write, no special bit. Raises `UsageError`."""
    if text is None:
        return None
    if not re.fullmatch(r"0?[0-7]{3}", text) or int(text, 8) & 0o600 != 0o600:
        raise UsageError(
            f"--file-mode {text!r}: expected three octal digits, as 640, that let the owner read and write"
        )
    return int(text, 8)


def spark_settings_of(pairs: list[str] | None) -> tuple[tuple[str, str], ...]:
    """What `--spark-conf` sets. Raises `UsageError`."""
    settings = []
    for pair in pairs or ():
        key, equals, value = pair.partition("=")
        if not equals or not key.strip():
            raise UsageError(f"--spark-conf {pair!r}: expected K=V")
        settings.append((key.strip(), value.strip()))
    return tuple(settings)
