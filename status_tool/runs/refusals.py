"""Refusals of checks that FILE cannot support, and its header for those that it can, before anything is read."""

from __future__ import annotations

import dataclasses

import pyarrow as pa
import pyarrow.compute as pc

from status_tool.errors import UsageError
from status_tool.gather.snapshot import apply_shutdown
from status_tool.printable import few, iso
from status_tool.rules.files import are_unlisted
from status_tool.runs.check import Check, GivenOption
from status_tool.runs.master_side import MasterSide
from status_tool.runs.question import NAMED_LIMITS, narrowed_roots, refuse_since
from status_tool.status_file.reader import StatusFile
from status_tool.vocabulary.header import BY_CHECK, BY_OPTION, HALF_NAMES, RECORDED, Header
from status_tool.vocabulary.selection import LOCAL, ChoosingFiles, ChosenFiles, is_glob
from status_tool.vocabulary.verdicts import Evidence


def header_in_scope(header: Header, check: Check) -> Header:
    """Return FILE's header with `-s` applied.

    Rejects a half that FILE does not hold, and options that it cannot support.
    """
    if (header.half == "hdfs" and not check.scope.check_hdfs) or (
        header.half == "hbase" and not check.scope.check_hbase
    ):
        name = HALF_NAMES[header.half]
        raise UsageError(f"FILE holds only the {name} half: it was written with --only {header.half}")
    for option in check.given:
        _refuse_option(option, header)
        if header.is_witnessed and option.flag in ("--rows", "--sample"):
            raise UsageError(f"{option.flag} does not go with a FILE from a witness, whose master digests no rows")
        if option.flag == "--map-path":
            _refuse_path_map(header, check)
    if check.shutdown_ms is None:
        return header
    # What was written after the barrier may be in no head: FILE knows nothing of it, although it was finished later.
    barrier_ms = header.barrier_issued_ms if check.scope.check_hbase else None
    return _asked_shutdown(header, check.shutdown_ms, header.created_ms if barrier_ms is None else barrier_ms)


def side_in_scope(file: StatusFile, check: Check) -> MasterSide:
    """Return the master's side of a check by FILE alone. Raises `UsageError` if FILE cannot support the check."""
    side = MasterSide(file, known_header(file, check))
    refuse_since(side.header, check.scope.since)
    refuse_deep(file, check)
    refuse_rows(file, check)
    refuse_sample(file, check)
    return side


def known_header(file: StatusFile, check: Check) -> Header:
    """Return `header_in_scope`. Paths of `-f` of which FILE has nothing count as absent: each may be a wrong name."""
    header = header_in_scope(file.header, check)
    if not (check.hdfs_paths and check.scope.check_hdfs and header.half in ("both", "hdfs")):
        return header
    # The root is no wrong name, even where HDFS holds no file, and neither is a path of FILE that has none.
    found = {"/", *header.hdfs_paths} - {*header.hdfs_absent}
    unknown = [path for path in check.hdfs_paths if path not in found]
    for batch in file.rows({"file"}):
        unknown = [path for path in unknown if not _has_any(batch, path)]
        if not unknown:
            break
    return dataclasses.replace(header, hdfs_absent=tuple(dict.fromkeys([*header.hdfs_absent, *unknown])))


def _has_any(batch: pa.RecordBatch, path: str) -> bool:
    """Return True if a row is of the path: of a file, or of a folder above it that could not be listed."""
    paths = batch.column("path")
    choosing = ChoosingFiles(ChosenFiles(within=(path,)))
    if is_glob(path):
        is_there = any(choosing.path_of(one) for one in paths.to_pylist() if one is not None)
    else:
        is_there = pc.any(pc.or_(pc.equal(paths, path), pc.starts_with(paths, path + "/"))).as_py()
    folders = paths.filter(are_unlisted(batch)).to_pylist()
    return bool(is_there) or any(choosing.path_of(folder, is_unlisted=True) for folder in folders)


def _refuse_option(option: GivenOption, header: Header) -> None:
    if header.evidence == Evidence.TIMESTAMPS and option.needs_streams:
        raise UsageError(
            f"{option.flag} does not go with a FILE of the original tool, which names neither tables nor streams nor "
            "contents: write FILE with `run -m -o FILE`"
        )
    if option.half is not None and header.half not in ("both", option.half):
        raise UsageError(
            f"{option.flag} does not go with this FILE, which holds only the {HALF_NAMES[header.half]} half (--only "
            f"{header.half})"
        )


def _refuse_path_map(header: Header, check: Check) -> None:
    """Raise `UsageError` for a tree of which FILE checks nothing, as of a wrong name: others would go by their own."""
    unused = check.scope.path_map.unused(header.hdfs_paths) if header.hdfs_paths else ()
    if unused:
        raise UsageError(
            f"--map-path {unused[0]}=…: FILE checks nothing there, but {few(header.hdfs_paths, NAMED_LIMITS)}: correct "
            "the path, or leave it out"
        )
    roots = narrowed_roots(header, check.hdfs_paths) if check.hdfs_paths else header.hdfs_paths
    for root in roots:
        if is_glob(root):  # nobody knows what it matches
            continue
        there = check.scope.path_map.to_slave(root).removeprefix(LOCAL)
        other = check.scope.path_map.to_master(there)
        # What lies there counts as the copy of the one, so that the other would be missing for ever.
        if other not in (root, None):
            raise UsageError(
                f"by --map-path both {root} and {other} of the master lead to {there} on the slave: check them in two "
                "runs (-f)"
            )


def refuse_deep(file: StatusFile, check: Check) -> None:
    """Raise `UsageError` if FILE has no CRC32C to compare the slave's files with."""
    if not check.deep:
        return
    files = 0
    for batch in file.rows({"file"}):
        if batch.column("crc32c").null_count < batch.num_rows:
            return
        # Even with --deep, files that could not be read have no CRC32C.
        readable = pc.and_(pc.greater(batch.column("length"), 0), pc.is_null(batch.column("state")))
        files += pc.sum(readable).as_py() or 0
    if files:
        raise UsageError(
            "--deep needs the CRC32C of the master's files, and FILE holds none: write it with `run -m -o FILE --deep`"
        )


def refuse_rows(file: StatusFile, check: Check) -> None:
    """Raise `UsageError` if there is nothing to compare the slave's rows with."""
    if check.rows is not None and check.rows.master is None and not file.counts.get("digest"):
        raise UsageError(
            "--rows needs the master (--master-conf DIR, or --master-thrift and --master-zookeeper), as FILE holds no "
            "row digests: `run -m -o FILE --rows` writes them"
        )


def refuse_sample(file: StatusFile, check: Check) -> None:
    """Raise `UsageError` if `--sample` asks for what FILE does not hold."""
    if any(one.flag == "--sample" for one in check.given) and check.sample_s and not file.counts.get("sample"):
        raise UsageError(
            "--sample: FILE holds no samples of rows: `run -m -o FILE` takes them where the master's region servers "
            "answer (trackers of this version)"
        )


def _asked_shutdown(header: Header, moment_ms: int, limit_ms: int) -> Header:
    """Return the header with the `-s` of a check, at most `limit_ms`. The notice names the time that it replaces."""
    if moment_ms > limit_ms:
        raise UsageError(
            f"-s {moment_ms} ({iso(moment_ms)}) lies after FILE was written ({iso(limit_ms)}), which knows "
            "nothing of what was written then: give an earlier time, or run `run -m` again"
        )
    known = {RECORDED: "recorded on the master", BY_OPTION: "given by -s when FILE was written"}
    before = known.get(header.shutdown_from, "in FILE")
    replaced = "FILE has none" if header.shutdown_ms is None else f"FILE has {iso(header.shutdown_ms)}, {before}"
    note = f"the shutdown time {iso(moment_ms)} is the one given by -s of this check ({replaced})"
    header = dataclasses.replace(header, notices=(*header.notices, note))
    return apply_shutdown(header, moment_ms, BY_CHECK, limit_ms)
