"""`status-tool run`: its letters choose the run, its options are obeyed or refused, and the result is printed."""

from __future__ import annotations

import dataclasses
import re
import time
from collections.abc import Iterator, Mapping
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path
from types import SimpleNamespace
from typing import TYPE_CHECKING, Any

from status_tool.atomic import PUBLIC, check_folder, check_targets, file_mode
from status_tool.cli.defaults import from_file
from status_tool.cli.modes import check_options, given_of
from status_tool.cli.options import (
    cluster_named,
    parse_baseline,
    parse_time,
    print_notices,
    settings_of,
    show_as,
    sign_key_of,
    spark_settings_of,
)
from status_tool.cli.run_options import OPTIONS, Half, Mode, with_options
from status_tool.cli.signals import loading, received
from status_tool.cli.targets import refuse_overwriting
from status_tool.clients.config import HdfsClient, Settings
from status_tool.errors import ConfigurationError, StatusToolError, UsageError
from status_tool.spark import jvm
from status_tool.spark.launch import archived
from status_tool.spark.settings import is_asked_for, is_short, is_small, spark_settings_with, take_spark
from status_tool.status_file.signature import SignKey
from status_tool.temporary import temporary_folder
from status_tool.vocabulary.header import MASTER, SLAVE
from status_tool.vocabulary.names import is_legacy_name, journal_path, plain_name
from status_tool.vocabulary.scope import Baseline, Scope, TableFilter
from status_tool.vocabulary.selection import LOCAL, PathMap, read_path_file, root_of, sides_of

if TYPE_CHECKING:
    from status_tool.gather.snapshot import FileOptions, Request
    from status_tool.runs.check import Check

DEFAULT_MASTER_WAIT_S = 60.0
DEFAULT_DEBUG_DIR = Path("status-tool-debug")
DEFAULT_MAX_PROBLEMS = 100
ANY_MASTER = "any"
"""`--published` without a cluster's id."""
DEFAULT_SAMPLE_S = 5.0
MAX_SAMPLE_S = 3_600.0


@dataclass(frozen=True)
class AskedRun:
    """Request that a command line of `run` makes."""

    mode: Mode
    options: SimpleNamespace
    """The values of all options, by parameter."""
    settings: Settings
    """Settings of this cluster."""
    key: SignKey | None
    shutdown_ms: int | None
    sample_s: float
    hdfs_paths: tuple[str, ...]
    """As they are written in the file of `-f`."""
    spark_conf: tuple[tuple[str, str], ...]
    baseline: Baseline
    path_map: PathMap
    lists: dict[str, Path | None]
    """By name, the file of each complete list; None is stdout."""
    given: frozenset[str]
    """The parameters that the command line itself gave."""
    copies: Path = Path()
    """A folder for this run alone."""

    @property
    def debug_dir(self) -> Path | None:
        """Folder of the dump; None without one."""
        return (self.options.debug_dir or DEFAULT_DEBUG_DIR) if self.options.debug else None

    @property
    def tables(self) -> TableFilter:
        return TableFilter.of(self.options.table or (), self.options.namespace or ())

    def other_cluster(self) -> Settings:
        """Return the master's settings for --follow and --rows."""
        one = self.options
        return cluster_named(one.master_conf or (), self.settings.trust, one.master_thrift, one.master_zookeeper)

    def scope(self) -> Scope:
        """Return the scope of the check."""
        one, tables = self.options, self.tables
        return Scope(
            tables.tables,
            tables.namespaces,
            self.baseline,
            one.peer,
            check_hbase=one.only is not Half.HDFS,
            check_hdfs=one.only is not Half.HBASE,
            max_problems=DEFAULT_MAX_PROBLEMS if one.max_problems is None else one.max_problems,
            strict_extra=one.strict_extra,
            path_map=self.path_map,
            accepted_drift=frozenset(map(plain_name, one.accept_drift or ())),
            ignore_later_writes=one.ignore_later_writes,
            forgotten=frozenset(map(plain_name, one.forget or ())),
        )

    def check(self) -> Check:
        """Return the request of `run -i`."""
        from status_tool.runs.check import Check, GivenOption
        from status_tool.runs.compare_rows import RowsAsked
        from status_tool.spark.lists import FullList

        one = self.options
        has_master = one.master_conf or (one.master_thrift and one.master_zookeeper)
        given = [OPTIONS[name] for name in OPTIONS if name in self.given]
        return Check(
            status_file=one.status_file,
            scope=self.scope(),
            slave_status=one.slave_status,
            wait_s=one.wait or 0.0,
            shutdown_ms=self.shutdown_ms,
            # FILE names local roots without their scheme, and --map-path names the slave's.
            hdfs_paths=tuple(root_of(path).removeprefix(LOCAL) for path in self.hdfs_paths),
            # Plain --deep reads files whose layout differs, and only the comparison finds out which.
            files=dataclasses.replace(self._files(), deep=one.deep == "all"),
            deep=one.deep is not None,
            debug_dir=self.debug_dir,
            given=tuple(GivenOption(option.flag, option.half, option.needs_streams) for option in given),
            spark_master=one.spark_master,
            spark_conf=self.spark_conf,
            key=self.key,
            lists=tuple(FullList(name, to) for name, to in self.lists.items()),
            for_report=one.report is not None,
            rows=None
            if one.rows is None
            else RowsAsked(self.other_cluster() if has_master else None, one.rows == "all"),
            sample_s=self.sample_s,
        )

    def request(self) -> Request:
        """Return what `run -m`, `run -o` and `run -d` read of this cluster."""
        from status_tool.gather.snapshot import Request
        from status_tool.sources.witness_folders import witness_place

        one = self.options
        return Request(
            side=SLAVE if self.mode is Mode.SLAVE else MASTER,
            wait_s=DEFAULT_MASTER_WAIT_S if one.wait is None else one.wait,
            only=self.tables,
            hbase=one.only is not Half.HDFS,
            hdfs=one.only is not Half.HBASE,
            hdfs_paths=self.hdfs_paths,
            shutdown_ms=self.shutdown_ms,
            # `journaling` knows the path, and removes an older journal where this is None.
            files=dataclasses.replace(self._files(), journal="" if one.resume else None),
            drained=one.drained,
            peer_id=one.peer,
            witnesses=tuple(map(witness_place, one.witness or ())),
            copies=self.copies,
            rows=one.rows or "",
            # `_refuse` does not see the default: samples need the master's trackers.
            sample_s=0.0 if one.witness else self.sample_s,
        )

    def _files(self) -> FileOptions:
        from status_tool.clients.webhdfs import Load
        from status_tool.gather.snapshot import FileOptions
        from status_tool.sources.crc import Layout

        one = self.options
        return FileOptions(
            load=Load(rate=one.rate),
            exclude=tuple(one.exclude or ()),
            deep=one.deep is not None,
            client=one.hdfs_client or HdfsClient.AUTO,
            layout=Layout.parse(one.layout) if one.layout else None,
            for_hdfs=tuple(OPTIONS[name].flag for name in ("resume", "rate", "hdfs_client") if name in self.given),
        )


@with_options()
def run(**values: Any) -> int:
    """Write this cluster's status (-m -o, -o), check the master's on the slave (-i), or dump (-d)."""
    asked = asked_of(values)
    with failure_in_metrics(_metrics_of(asked.options), time.monotonic()):
        if asked.options.published is None and not asked.options.witness:
            return _run(asked)
        with temporary_folder() as folder:
            if asked.options.published is not None:
                # `_run` starts Spark's JVM early, with settings that depend on FILE's size: FILE comes first.
                asked.options.status_file = fetch_published(asked, folder / "published.status")
            return _run(dataclasses.replace(asked, copies=folder))


def _metrics_of(one: SimpleNamespace) -> Path | None:
    """Return the file that records a failed check; None without one. A plan is no check."""
    is_check = not one.explain and (one.status_file is not None or one.published is not None)
    return one.metrics if is_check else None


@contextmanager
def failure_in_metrics(metrics: Path | None, started_s: float) -> Iterator[None]:
    """Record a failed check in its metrics, too; otherwise an older verdict would look current.

    `started_s` is when it began, on the monotonic clock. The error goes on; one of writing the metrics does not count.
    """
    try:
        yield
    except Exception:
        # A check that a signal has ended has not failed, just as where the signal ends the run by itself.
        if metrics is not None and not received:
            from status_tool.report.metrics import before, failure_metrics
            from status_tool.report.summary import write_report

            with suppress(StatusToolError):
                took_s = time.monotonic() - started_s
                write_report(metrics, failure_metrics(before(metrics), None, took_s), PUBLIC)
        raise


def fetch_published(asked: AskedRun, file: Path) -> Path:
    """Write the status file that `--published` means to `file`. Raises what `fetch_newest` raises."""
    with loading():
        from status_tool.published.newest import fetch_newest

    one = asked.options
    wanted = None if one.published == ANY_MASTER else one.published
    is_hdfs = one.only is Half.HDFS
    print_notices(fetch_newest(asked.settings, wanted, file, asked.key, with_files=is_hdfs, asked=asked.tables))
    return file


def _run(asked: AskedRun) -> int:
    one = asked.options
    _begin_early(asked)
    # Not before: these take most of a second to import, for which help and a wrong option need not wait.
    with loading():
        from status_tool.cli.running import Output, check_file, dump, follow_master, show_plan, write_file

    show_as(quiet=one.quiet, verbose=one.verbose, log_file=one.log_file)
    if one.status_file is not None:
        with loading():
            from status_tool.runs.plan import explain_check

            check = asked.check()
        if one.explain:
            master = asked.other_cluster() if one.follow else None
            return show_plan(explain_check(asked.settings, check, master), one.as_json)
        output = Output(one.as_json, one.report, one.metrics, one.repair_script, time.monotonic(), one.quiet)
        if one.follow:
            return follow_master(asked.settings, asked.other_cluster(), check, output, one.wait)
        return check_file(asked.settings, check, output)
    if one.explain:
        # `runs.plan` imports PySpark, for the plans of checks.
        take_spark()
        with loading():
            from status_tool.runs.plan import explain_side
            from status_tool.runs.write import unasked

        request = asked.request()
        if one.output is not None:
            # What the run refuses has no plan.
            unasked(asked.settings, request)
        return show_plan(explain_side(asked.settings, request), one.as_json)
    if one.output is None:
        return dump(asked.settings, asked.request())
    return write_file(
        asked.settings,
        asked.request(),
        one.output,
        asked.debug_dir,
        one.as_json,
        asked.key,
        # Whoever has not asked for samples need not hear why there are none.
        asks_samples="sample" in asked.given,
    )


def asked_of(values: Mapping[str, Any]) -> AskedRun:
    """Obey or refuse every option. Raises `UsageError`, and `ConfigurationError` for a file that cannot be read."""
    one, known = SimpleNamespace(**values), given_of(values)
    # status-tool.toml sets defaults, not orders: they refuse nothing.
    given = known - from_file()
    mode = check_options(given, one.only, known)
    refuse_overwriting({**values, "debug_dir": one.debug_dir or DEFAULT_DEBUG_DIR})
    _refuse(mode, one, given)
    lists = _lists({name: values[name] for name in ("differ", "missing", "unverifiable")}, one.as_json)
    journal = journal_path(one.output) if one.resume else None
    check_targets(one.output, journal, one.report, one.metrics, one.repair_script, *lists.values())
    if one.debug and mode is not Mode.DUMP:
        check_folder(one.debug_dir or DEFAULT_DEBUG_DIR)
    file_mode(permissions_of(one.mode))
    # What is wrong with the command line has been told. Files that it names may go between two runs.
    with failure_in_metrics(_metrics_of(one), time.monotonic()):
        key = sign_key_of(one.sign_key, required=one.require_signature)
        path_map, settings = PathMap.parse(one.map_path or ()), settings_of(values)
        if mode is not Mode.OFFLINE:
            # The left side is a path in the master's HDFS.
            settings.refuse_elsewhere(sides_of(option)[1] for option in one.map_path or ())
        return AskedRun(
            mode,
            one,
            settings,
            key,
            parse_time(one.shutdown, "-s"),
            _sample_s(one.sample),
            _paths(one.paths, one.all_files),
            spark_settings_of(one.spark_conf),
            parse_baseline(one.since or (), TableFilter.of(one.table or (), one.namespace or ())),
            path_map,
            lists,
            given,
        )


def _refuse(mode: Mode, one: SimpleNamespace, given: frozenset[str]) -> None:
    """Refuse values, and pairs of options, that no table of modes tells."""
    is_legacy = one.output is not None and is_legacy_name(one.output)
    if one.all_files and "paths" in given:
        raise UsageError("--all-files reads all of HDFS, -f FILE what it names: give either")
    if mode is Mode.SLAVE and is_legacy:
        raise UsageError(
            "-o FILE.json needs -m: the original's format does not tell the sides apart, and a slave's file would pass "
            "for a master's; for the slave's status name a FILE that does not end in .json"
        )
    if mode is Mode.FOLLOW and not (one.master_conf or one.master_zookeeper):
        raise UsageError("--follow needs the master: --master-conf DIR or --master-zookeeper HOST:PORT/ZNODE")
    if one.deep not in (None, "all", "different"):
        raise UsageError(f"--deep={one.deep}: expected --deep or --deep=all")
    if one.deep is not None and is_legacy:
        raise UsageError("--deep does not go with -o FILE.json: the original tool's format holds no CRC32C")
    if one.rows not in (None, "all", "doubtful"):
        raise UsageError(f"--rows={one.rows}: expected --rows or --rows=all")
    # Half a master of status-tool.toml refuses nothing: rows are compared with FILE's digests then.
    is_half_named = bool(one.master_thrift) != bool(one.master_zookeeper) and not one.master_conf
    if one.rows is not None and is_half_named and given & {"master_thrift", "master_zookeeper"}:
        raise UsageError("--rows reads the master by --master-conf DIR, or --master-thrift and --master-zookeeper")
    for asked in sorted(given & {"rows", "sample", "drained"}) if one.witness else ():
        raise UsageError(
            f"{OPTIONS[asked].flag} does not go with --witness: it needs the master's trackers, which may not be there"
        )
    if one.witness and is_legacy:
        raise UsageError(
            f"--witness: {one.output} is of the original tool's format, which cannot say that it comes from a witness; "
            "write a file with another name"
        )
    if one.rows is not None and is_legacy:
        raise UsageError("--rows does not go with -o FILE.json: the original tool's format holds no row digests")
    if one.sign_key is not None and is_legacy:
        raise UsageError("the original's JSON cannot be signed: give -o a name that does not end in .json")


def _begin_early(asked: AskedRun) -> None:
    """Start Spark's JVM, which takes as long to start as everything else takes to import, if it may be needed."""
    one = asked.options
    if one.status_file is None:
        return
    take_spark()
    if one.status_file.is_file() and not one.explain and may_need_spark(asked):
        # An error here comes again where the JVM is needed, and is told there.
        with loading(), suppress(StatusToolError, OSError):
            wanted = spark_settings_with(one.spark_master, dict(asked.spark_conf), is_short(one.status_file))
            jvm.begin(archived(wanted)[0])


def may_need_spark(asked: AskedRun) -> bool:
    """Return False if this process judges all of FILE. How many rows it has is not known yet: `runs.check` decides."""
    one = asked.options
    is_shown = one.debug or one.report is not None or bool(asked.lists)
    return one.follow or is_shown or is_asked_for(one.spark_master, asked.spark_conf) or not is_small(one.status_file)


def _lists(named: dict[str, Path | None], as_json: bool) -> dict[str, Path | None]:
    """Return the requested lists, each with its file; None is stdout (`-`), which can hold only one document."""
    chosen = {name: path for name, path in named.items() if path is not None}
    stdout = [name for name, path in chosen.items() if str(path) == "-"]
    if stdout and as_json:
        raise UsageError(f"--{stdout[0]} - and --json both want stdout: name a file for the list")
    if len(stdout) > 1:
        raise UsageError(f"--{stdout[0]} - and --{stdout[1]} - both want stdout: name a file for one of them")
    return {name: None if name in stdout else path for name, path in chosen.items()}


def _sample_s(text: str | None) -> float:
    """Return the seconds of `--sample`; 0 for none. Raises `UsageError`."""
    if text is None:
        return DEFAULT_SAMPLE_S
    if text == "off":
        return 0.0
    try:
        seconds = float(text)
    except ValueError:
        seconds = -1.0
    # So written, NaN is refused as well: no comparison with it holds.
    if not 0 < seconds <= MAX_SAMPLE_S:
        raise UsageError(f"--sample {text}: expected seconds, at most {MAX_SAMPLE_S:g}, or off")
    return seconds


def _paths(file: Path | None, all_files: bool) -> tuple[str, ...]:
    """Return the paths of -f or `--all-files`; empty if the configured ones count."""
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


def permissions_of(text: str | None) -> int | None:
    """Return the permissions of `--file-mode`: octal, with read and write for the owner, no special bit.

    Raises `UsageError`.
    """
    if text is None:
        return None
    if not re.fullmatch(r"0?[0-7]{3}", text) or int(text, 8) & 0o600 != 0o600:
        raise UsageError(
            f"--file-mode {text!r}: expected three octal digits, as 640, that let the owner read and write"
        )
    return int(text, 8)
