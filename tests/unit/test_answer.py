"""Which rows of both sides a check compares: `-f` and `--exclude` of `run -i`."""

from __future__ import annotations

import fnmatch
from collections.abc import Iterator
from typing import Any

import pyarrow as pa
import pytest
from pyspark.sql import SparkSession

from status_tool.runs.answer import _within, _without
from status_tool.runs.question import Question, SideFacts, question_of
from status_tool.spark.session import spark_session
from status_tool.vocabulary.header import Header
from status_tool.vocabulary.schema import STATUS_SCHEMA, Row
from status_tool.vocabulary.scope import Scope
from status_tool.vocabulary.states import FileState

pytestmark = [pytest.mark.spark, pytest.mark.slow]


@pytest.fixture(scope="module")
def session() -> Iterator[SparkSession]:
    with spark_session("local[1]") as spark:
        yield spark


def question(*roots: str, **more: Any) -> Question:
    """What a check asks of a FILE of these roots."""
    master = Header("master", "m", 2, 1, hdfs_paths=roots, half="hdfs")
    return question_of(SideFacts(master), SideFacts(Header("slave", "s", 3, 3)), Scope(), **more)


def file_row(path: str | None, **columns: Any) -> Row:
    return {**dict.fromkeys(STATUS_SCHEMA.names), "kind": "file", "path": path, "length": 1, **columns}


def frame(session: SparkSession, *rows: Row) -> Any:
    return session.createDataFrame(pa.Table.from_pylist(list(rows), schema=STATUS_SCHEMA))


def test_a_folder_above_a_path_that_could_not_be_listed_stays(session: SparkSession) -> None:
    """Nobody knows what it holds of the path; other rows beside the path go."""
    unlisted = {"length": None, "state": FileState.UNREADABLE}
    rows = frame(
        session,
        file_row("/data/secret", **unlisted),
        file_row("/data/else", **unlisted),
        file_row("/data/ok/1"),
        file_row("/data/other"),
        file_row("/data/secret/sub/deep", **unlisted),
        file_row(None, kind="table"),
    )
    asked = question("/data", hdfs_paths=("/data/ok", "/data/secret/sub"))
    kept = [(row["kind"], row["path"]) for row in _within(rows, asked).select("kind", "path").collect()]
    assert kept == [
        ("file", "/data/secret"),
        ("file", "/data/ok/1"),
        ("file", "/data/secret/sub/deep"),
        ("table", None),
    ]


def test_thousands_of_paths_are_one_expression(session: SparkSession) -> None:
    """Spark's planner calls itself for each term of an expression: five hundred were too many for its stack."""
    rows = frame(session, *(file_row(f"/data/{number}/f") for number in range(4)))
    asked = question("/data", hdfs_paths=tuple(f"/data/{number}" for number in range(2, 3_000)))
    assert [row["path"] for row in _within(rows, asked).collect()] == ["/data/2/f", "/data/3/f"]


@pytest.mark.parametrize(
    ("roots", "excluded", "paths"),
    [
        (("/data/old/x",), ("/data/old",), ["/data/old/x/1", "/data/old/x/a.tmp/1", "/data/new/1"]),
        (("/data/old/x",), ("/data/old", "*.tmp"), ["/data/old/x/1", "/data/new/1"]),
        (("/data", "/data/old/x"), ("/data/old*",), ["/data/new/1"]),
        (("/data", "/data/old/x"), ("/data/old",), ["/data/old/x/1", "/data/old/x/a.tmp/1", "/data/new/1"]),
        (("/data/*",), ("old",), ["/data/new/1"]),
        (("/*/old",), ("old",), ["/data/old/x/1", "/data/old/x/a.tmp/1", "/data/old/y", "/data/new/1"]),
    ],
)
def test_a_root_inside_what_exclude_leaves_out_is_compared(
    session: SparkSession, roots: tuple[str, ...], excluded: tuple[str, ...], paths: list[str]
) -> None:
    """As it is listed: a file that is missing on the slave would not be missed otherwise."""
    names = ["/data/old/x/1", "/data/old/x/a.tmp/1", "/data/old/y", "/data/new/1"]
    rows = frame(session, *map(file_row, names), file_row(None, kind="table"))
    kept = [row["path"] for row in _without(rows, question(*roots, excluded=excluded)).select("path").collect()]
    assert kept == [*paths, None]


@pytest.mark.parametrize(
    ("root", "kept"),
    [
        ("/data/old/x", [("/data/old", "unreadable")]),
        ("/data/*/x", []),
        ("/data/old/*/x", [("/data/old", "unreadable"), ("/data/old/y", "unreadable")]),
    ],
)
def test_a_folder_above_a_root_inside_what_exclude_leaves_out_that_could_not_be_listed_stays(
    session: SparkSession, root: str, kept: list[tuple[str, str]]
) -> None:
    """Its row is all that says that the root was never looked at; one that leads to no root goes.

    A glob matches nothing that is left out.
    """
    unlisted = {"length": None, "state": FileState.UNREADABLE}
    rows = frame(session, *(file_row(path, **unlisted) for path in ("/data/old", "/data/old/y")), file_row("/data/old"))
    asked = question("/data", root, excluded=("/data/old",))
    found = _without(rows, asked).select("path", "state").collect()
    assert [(row["path"], row["state"]) for row in found] == kept


def test_a_bracket_is_for_spark_what_it_is_for_the_listing(session: SparkSession) -> None:
    """Java nests brackets, and knows `&&`."""
    names = ["a", "b", "c", "z", "]", "[", "[!]", "-", "&", "\\", "^", "+", "9", "x]"]
    rows = frame(session, *(file_row(f"/d/{name}") for name in names))
    for glob in ("[!]", "[!]b]", "[]a]", "[z-a]", "[!z-a]", "[z-a!b]", "[a[]", "[a&&b]", "[\\-]]", "[+-9]", "x[]a]"):
        kept = [row["path"][3:] for row in _without(rows, question("/d", excluded=(glob,))).select("path").collect()]
        assert kept == [name for name in names if not fnmatch.fnmatchcase(name, glob)], glob
