"""Which files of both sides a check compares: `-f`, `--exclude` and `--map-path` of `run -i`."""

from __future__ import annotations

import fnmatch
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest
from pyspark.sql import SparkSession

from status_tool.runs.question import Question, SideFacts, question_of
from status_tool.spark.held import small_file
from status_tool.spark.judge import files_in_question, rows_in_question
from status_tool.spark.settings import SMALL_BYTES
from status_tool.status_file.reader import open_status
from status_tool.status_file.writer import StatusWriter
from status_tool.vocabulary.header import Header
from status_tool.vocabulary.schema import STATUS_SCHEMA, Row
from status_tool.vocabulary.scope import Scope
from status_tool.vocabulary.selection import ChoosingFiles, ChosenFiles, PathMap
from status_tool.vocabulary.states import FileState

UNLISTED = {"length": None, "state": FileState.UNREADABLE}


def question(*roots: str, **more: Any) -> Question:
    """What a check asks of a FILE of these roots."""
    master = Header("master", "m", 2, 1, hdfs_paths=roots, half="hdfs")
    return question_of(SideFacts(master), SideFacts(Header("slave", "s", 3, 3)), Scope(), **more)


def table(*rows: Row) -> pa.Table:
    return pa.Table.from_pylist([{**dict.fromkeys(STATUS_SCHEMA.names), **row} for row in rows], schema=STATUS_SCHEMA)


def file_row(path: str, **columns: Any) -> Row:
    return {"kind": "file", "path": path, "length": 1, **columns}


def kept(chosen: ChosenFiles, *rows: Row) -> list[str]:
    """The paths of the rows that are asked about."""
    found = files_in_question(table(*rows).to_batches(), chosen)
    return [path for batch in found for path in batch["path"].to_pylist()]


def holds(root: str, path: str) -> bool:
    """Whether a path is a root, glob or not, or below it."""
    return ChoosingFiles(ChosenFiles(within=(root,))).path_of(path) is not None


def test_a_folder_above_a_path_that_could_not_be_listed_stays() -> None:
    """Nobody knows what it holds of the path; other rows beside the path go."""
    rows = (
        file_row("/data/secret", **UNLISTED),
        file_row("/data/else", **UNLISTED),
        file_row("/data/ok/1"),
        file_row("/data/other"),
        file_row("/data/secret/sub/deep", **UNLISTED),
    )
    asked = question("/data", hdfs_paths=("/data/ok", "/data/secret/sub"))
    assert kept(asked.files, *rows) == ["/data/secret", "/data/ok/1", "/data/secret/sub/deep"]


@pytest.mark.parametrize(
    ("path", "above"),
    [
        ("/", ["/"]),
        ("/data", ["/"]),
        ("/data/a/b", ["/", "/data", "/data/a"]),
        ("/data/[!_]*/b", ["/", "/data", "/data/a", "/data/ab"]),
    ],
)
def test_folders_above_a_path(path: str, above: list[str]) -> None:
    """Those beside it cannot hold files of it."""
    names = ["/", "/data", "/data/a", "/data/ab", "/data/_a", "/other", "/data2", "/\n", "/data\n"]
    asked = question("/data", hdfs_paths=(path,)).files
    beside = [name for name in names if kept(asked, file_row(name)) == []]
    assert [name for name in beside if kept(asked, file_row(name, **UNLISTED))] == [one for one in above if path != "/"]


@pytest.mark.parametrize(
    ("roots", "excluded", "paths"),
    [
        (("/data/old/x",), ("/data/old",), ["/data/old/x/1", "/data/old/x/a.tmp/1", "/data/new/1"]),
        (("/data/old/x",), ("/data/old", "*.tmp"), ["/data/old/x/1", "/data/new/1"]),
        (("/data", "/data/old/x"), ("/data/old*",), ["/data/new/1"]),
        (("/data", "/data/old/x"), ("/data/old",), ["/data/old/x/1", "/data/old/x/a.tmp/1", "/data/new/1"]),
        (("/data/*",), ("old",), ["/data/new/1"]),
        (("/*/old",), ("old",), ["/data/old/x/1", "/data/old/x/a.tmp/1", "/data/old/y", "/data/new/1"]),
        (("/data",), ("/", "/new"), ["/data/old/x/1", "/data/old/x/a.tmp/1", "/data/old/y", "/data/new/1"]),
    ],
)
def test_a_root_inside_what_exclude_leaves_out_is_compared(
    roots: tuple[str, ...], excluded: tuple[str, ...], paths: list[str]
) -> None:
    """As it is listed: a file that is missing on the slave would not be missed otherwise."""
    names = ["/data/old/x/1", "/data/old/x/a.tmp/1", "/data/old/y", "/data/new/1"]
    assert kept(question(*roots, excluded=excluded).files, *map(file_row, names)) == paths


@pytest.mark.parametrize(
    ("root", "folders"),
    [
        ("/data/old/x", ["/data/old"]),
        ("/data/*/x", []),
        ("/data/old/*/x", ["/data/old", "/data/old/y"]),
    ],
)
def test_an_unlisted_folder_above_a_root_inside_what_exclude_leaves_out_stays(root: str, folders: list[str]) -> None:
    """Its row is all that says that the root was never looked at; one that leads to no root goes.

    A glob matches nothing that is left out.
    """
    asked = question("/data", root, excluded=("/data/old",)).files
    assert kept(asked, *(file_row(path, **UNLISTED) for path in ("/data/old", "/data/old/y"))) == folders
    assert kept(asked, file_row("/data/old")) == []


@pytest.mark.parametrize(("root", "glob"), [("/a*/ab", "*"), ("/a*/ab", "/*"), ("/a*/ab", "/")])
def test_the_root_that_could_not_be_listed_stays_whatever_is_left_out(root: str, glob: str) -> None:
    """Its row is all that there is then."""
    assert kept(question(root, excluded=(glob,)).files, file_row("/", **UNLISTED)) == ["/"]


def test_odd_paths() -> None:
    """Those of a forged file, and a tree of the slave that is mapped to all of the master."""
    assert not holds("/b", "//a/x")
    assert kept(ChosenFiles(path_map=PathMap.parse(["/=/ab"])), file_row("/ab"), file_row("/ab/c")) == ["/", "/c"]


def test_a_bracket_is_what_the_listing_takes_it_for() -> None:
    """Of `--exclude` and of `-f`; Hadoop's `[^…]`, too."""
    names = ["a", "b", "c", "z", "]", "[", "[!]", "-", "&", "\\", "^", "+", "9", "x]"]
    for glob in ("[!]", "[!]b]", "[]a]", "[z-a]", "[!z-a]", "[z-a!b]", "[a[]", "[a&&b]", "[\\-]]", "[+-9]", "x[]a]"):
        rows = [file_row(f"/d/{name}") for name in names]
        meant = [f"/d/{name}" for name in names if fnmatch.fnmatchcase(name, glob)]
        assert kept(question("/d", hdfs_paths=(f"/d/{glob}",)).files, *rows) == meant, glob
        left = kept(question("/d", excluded=(glob,)).files, *rows)
        assert left == [row["path"] for row in rows if row["path"] not in meant], glob


def test_a_copy_of_a_mapped_tree_counts_only_where_it_is_mapped_to() -> None:
    """Both ways of `--map-path` agree: a row of the slave stands for the path of the master that leads to it."""
    paths = PathMap.parse(["/a=/x", "/a/b=/y", "/m=/x/n"])
    rows = map(file_row, ["/x/1", "/x/b/1", "/y/1", "/x/n/1", "/a/1", "/a/b/1", "/m/1", "/q"])
    assert kept(ChosenFiles(path_map=paths), *rows) == ["/a/1", "/x/b/1", "/a/b/1", "/m/1", "/q"]
    assert [paths.to_slave(path) for path in ("/a/1", "/a/b/1", "/m/1")] == ["/x/1", "/y/1", "/x/n/1"]


def test_thousands_of_paths() -> None:
    """Each file asks for its own folders."""
    asked = question("/data", hdfs_paths=tuple(f"/data/{number}" for number in range(2, 3_000))).files
    choosing = ChoosingFiles(asked)
    assert [number for number in range(5) if choosing.path_of(f"/data/{number}/f")] == [2, 3, 4]


def test_a_file_of_many_rows_is_not_held_however_small_it_is(tmp_path: Path) -> None:
    """Rows that are alike take hardly a byte."""
    batch = table(*[file_row("/data/f")] * 10_000).to_batches()[0]
    for count, is_held in ((5, True), (6, False)):
        with StatusWriter(tmp_path / "f", Header("master", "m", 2, 1, half="hdfs")) as writer:
            for _ in range(count):
                writer.write(batch)
        with open_status(tmp_path / "f") as file:
            assert (small_file(file) is not None) is is_held
    assert (tmp_path / "f").stat().st_size < SMALL_BYTES


@pytest.mark.spark
@pytest.mark.slow
def test_spark_asks_by_the_same_rule(shared_spark: SparkSession) -> None:
    """Rows that are no files stay as they are, and so do those of a check that asks for all."""
    names = ["/x/1", "/x/old/1", "/a/1", "/y/1"]
    rows = table(*map(file_row, names), file_row("/x/sub", **UNLISTED), {"kind": "table", "path": None})
    frame = shared_spark.createDataFrame(rows)
    chosen = ChosenFiles(("/a/1", "/a/old", "/a/sub/2"), ("/a",), ("old",), PathMap.parse(["/a=/x"]))
    found = rows_in_question(frame, chosen).select("kind", "path", "length").collect()
    assert sorted(map(str, found)) == sorted(
        [
            "Row(kind='file', path='/a/1', length=1)",
            "Row(kind='file', path='/a/sub', length=None)",
            "Row(kind='table', path=None, length=None)",
        ]
    )
    assert rows_in_question(frame, ChosenFiles(roots=("/a",))) is frame
