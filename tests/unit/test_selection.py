"""Which files are checked, and what they are called on the other side."""

from __future__ import annotations

import fnmatch
import random
from dataclasses import replace
from itertools import product

import pytest

from status_tool.errors import ConfigurationError, UsageError
from status_tool.explain.advice import copy_of_file
from status_tool.explain.problems import to_problem
from status_tool.rules.context import RunContext
from status_tool.rules.sides import LOCAL_POOL
from status_tool.rules.streams import StreamRule
from status_tool.sources.crc import combine, crc32c, crc_hex, crcs
from status_tool.vocabulary.findings import Finding
from status_tool.vocabulary.header import Header
from status_tool.vocabulary.scope import Baseline, Scope
from status_tool.vocabulary.selection import (
    Exclusions,
    PathMap,
    outermost,
    overlap,
    plain_path,
    read_path_file,
    root_of,
)
from status_tool.vocabulary.verdicts import Evidence
from tests.unit.test_answer import holds


@pytest.mark.parametrize(
    ("pattern", "path", "expected"),
    [
        ("/a", "/a", True),
        ("/a", "/a/b/c", True),
        ("/a", "/ab", False),
        ("/", "/anything", True),
        ("/a/*", "/a/b/c", True),
        ("/a/*", "/a", False),
        ("/a/*/x", "/a/b/c/x", False),
        ("/a/p?rt-[0-3]", "/a/part-2", True),
        ("/a/p?rt-[!0-3]", "/a/part-2", False),
        ("/a.b+c", "/a.b+c/d", True),
        ("/a.b", "/aXb", False),
        ("/ü$^|", "/ü$^|", True),
        ("/a", "/a\n", False),
        ("/a*", "/a\n", True),
        ("/a", "/a/b\n", True),
        ("/a/", "/a\n", False),
    ],
)
def test_globs(pattern: str, path: str, expected: bool) -> None:
    """A star stays within a name; a folder stands for all that is below it; a name may end in a line end."""
    assert holds(pattern, path) is expected


@pytest.mark.parametrize(
    ("path", "root", "expected"),
    [
        ("/data", "/data/a", "/data/a"),
        ("/data/a", "/data", "/data/a"),
        ("/data/a", "/data/b", None),
        ("/data/ab", "/data/a", None),
        ("/", "/*/a", "/*/a"),
        ("/*", "/", "/*"),
        ("/data/x", "/data/*/.staging", "/data/x/.staging"),
        ("/data/*", "/*/.staging", "/data/.staging"),
        ("/data/*/x", "/data/.staging", "/data/.staging/x"),
        ("/data/x/y", "/data/[!x]/.staging", None),
        ("/data/x*", "/data/*y/.staging", "/data/*y/.staging"),
        ("/data/x*", "/data/y*/.staging", None),
        ("/data/*/a", "/*/x?/*/b", "/data/x?/a/b"),
        ("/data/[*]", "/data/*", "/data/[*]"),
    ],
)
def test_two_roots_share_a_part(path: str, root: str, expected: str | None) -> None:
    """It is a root that a listing of either one may leave out; two patterns of one name leave the second one's."""
    assert overlap(path, root) == expected
    names = ["", ".staging", "a", "b", "x", "xy", "y", "*"]
    paths = [plain_path("/".join(("", *parts))) for parts in product(("data", "x1"), names, names, "ab")]
    of_both = [one for one in paths if holds(path, one) and holds(root, one)]
    found = [one for one in paths if expected is not None and holds(expected, one)]
    assert set(of_both) <= set(found)
    assert all(holds(root, one) for one in found)


def test_a_bracket_of_a_name_matches_no_slash() -> None:
    """A listing compares names; else a file would be left out, or be in scope, that no listing takes for one."""
    for pattern in ("a[!b]c", "a[+-9]c"):
        assert not Exclusions((), ()).also([pattern]).hide("/d/a/c", 0)
        assert not holds(f"/d/{pattern}", "/d/a/c")


def test_exclusions() -> None:
    """A pattern without a slash is about names, one with is about whole paths."""
    left_out = Exclusions().also(["*.tmp", "/data/old*"]).leave_out
    assert left_out("/x/y.tmp")
    assert left_out("/data/old/2020")
    assert left_out("/tmp")
    assert left_out("/user/me/.Trash")
    assert not left_out("/data/new/old")
    assert not left_out("/data/tmp")
    plain = Exclusions(("/tmp", "/hbase")).leave_out
    assert all(map(plain, ["/tmp", "/hbase", "/user/x/.Trash", "/a/_temporary", "/a/b._COPYING_"]))
    assert not any(map(plain, ["/data/tmp", "/hbase2", "/a/Trash"]))


def test_path_map() -> None:
    """The longest prefix decides; a tree inside a root is looked for as well."""
    paths = PathMap.parse(["/data=/copy/data", "hdfs://nn/data/hot=/fast"])
    assert paths.to_slave("/data/x") == "/copy/data/x"
    assert paths.to_slave("/data/hot/x") == "/fast/x"
    assert paths.to_slave("/database") == "/database"
    assert paths.slave_roots(["/data", "/other"]) == ("/copy/data", "/other", "/fast")
    assert PathMap.parse(["/data=file:///mnt/export"]).slave_roots(["/data/a"]) == ("file:/mnt/export/a",)
    assert PathMap.parse(["/data/day=1=hdfs://nn/old/day=1"]).to_slave("/data/day=1/x") == "/old/day=1/x"
    moved = PathMap.parse(["/data/x=/moved", "/data/[=/bracket", "/a/b/c=/deep"])
    assert moved.slave_roots(["/data/*"]) == ("/data/*", "/moved", "/bracket")
    assert moved.slave_roots(["/*/x?/1", "/*/x*/1/*"]) == ("/*/x?/1", "/*/x*/1/*", "/moved/1/*")
    assert moved.slave_roots(["/data/[[]", "/*/b", "/data/x/1"]) == (
        "/data/[[]",
        "/*/b",
        "/moved/1",
        "/bracket",
        "/deep",
    )
    for bad in (["/a"], ["a=/b"], ["/a="], ["/a=b"], ["/a=/b", "/a=/c"]):
        with pytest.raises(UsageError):
            PathMap.parse(bad)


@pytest.mark.parametrize("name", ["copy[1]", "copy*", "copy?", "copy[^a]", "copy[[]1]"])
def test_a_folder_of_the_slave_may_have_the_characters_of_a_glob(name: str) -> None:
    """`--map-path` names a folder. Its root was a pattern that did not match it."""
    moved = PathMap.parse([f"/data=/{name}", f"/more=file:///disk/{name}"])
    data, some, *local = map(root_of, moved.slave_roots(["/data", "/data/sub/*.csv", "/more/x"]))
    local += map(root_of, moved.slave_roots(["/mor?"])[1:])
    assert holds(data, f"/{name}/f")
    assert holds(some, f"/{name}/sub/f.csv")
    assert not holds(some, f"/{name}/sub/f")
    assert [holds(one.removeprefix("file:"), f"/disk/{name}/x/f") for one in local] == [True, True]
    assert not any(holds(data, f"/{other}/f") for other in ("copy1", "copyx", "copy["))
    assert moved.to_slave("/data/f") == f"/{name}/f"
    assert moved.to_slave("/more/f") == f"file:/disk/{name}/f"
    assert [moved.to_master(path) for path in (f"/{name}/f", f"/disk/{name}/f")] == ["/data/f", "/more/f"]


def test_roots() -> None:
    """With and without scheme, local ones kept apart."""
    roots = read_path_file("# all \n \nhdfs://nn:8020/a/\n  /b c\nfile:///d/*\n", "f")
    assert read_path_file("/one/\u2028/name\n/a\x0b\n", "f") == ("/one/\u2028/name", "/a\x0b")
    assert roots == ("hdfs://nn:8020/a/", "/b c", "file:///d/*")
    assert tuple(map(root_of, roots)) == ("/a", "/b c", "file:/d/*")
    assert outermost(["/a/b", "/a", "/ab", "/a"]) == ["/a", "/ab"]
    assert outermost(["/", "/x"]) == ["/"]
    assert plain_path("hdfs://nn:8020/a//b/") == "/a/b"
    assert plain_path("hdfs://nn") == plain_path("hdfs://nn/") == plain_path("hdfs:///") == plain_path("/") == "/"
    assert plain_path("file://d") == "/d"
    for text in ("", "# only\n", "relative\n"):
        with pytest.raises(ConfigurationError, match="-f f"):
            read_path_file(text, "f")


def test_a_blank_at_the_end_of_a_path() -> None:
    """A name may have one, and without it another folder was checked in its place. A slash after it says that it is
    meant; a carriage return ends the line if it ends all of them.
    """
    for text in ("/a \n", "/a\t", "/a/ \n", "/a\r\n/b\n", "/a\r", "/b\r\n/a \r\n"):
        with pytest.raises(ConfigurationError, match="ends with a blank"):
            read_path_file(text, "f")
    assert [root_of(root) for root in read_path_file("/a /\n/a\r/\n", "f")] == ["/a ", "/a\r"]
    assert read_path_file("# of another system\r\n\r\n/a\r\n/b", "f") == ("/a", "/b")


def test_a_root_inside_what_another_one_leaves_out() -> None:
    """It is named, so it is listed, and what lies in it once."""
    roots = ["/", "/tmp/x", "/tmp/x/y", "/tmp2", "/a", "/a/.staging/x", "/tmp/x/.staging"]
    assert outermost(roots) == ["/", "/a/.staging/x", "/tmp/x", "/tmp/x/.staging"]
    assert outermost(["/a", "/a/b/c"], Exclusions().also(["/a/b"])) == ["/a", "/a/b/c"]


def test_hadoops_negation() -> None:
    """`[^a]` is no `a`, in Hadoop as in this tool: else files would be left out that are meant."""
    root = root_of("/data/[^a]*")
    names = ["a1", "b1", "^1"]
    assert [name for name in names if holds(root, f"/data/{name}")] == ["b1", "^1"]
    assert [name for name in names if fnmatch.fnmatchcase(name, root.rpartition("/")[2])] == ["b1", "^1"]
    assert [name for name in names if Exclusions().also(["[^a]*"]).leave_out(f"/data/{name}")] == ["b1", "^1"]


def test_crcs_combine() -> None:
    """As if the pieces had been read one after another; the check value is the CRC's published one."""
    assert crc32c(b"123456789") == 0xE3069283
    data = random.Random(1).randbytes(10_000)
    for cut in (0, 1, 511, 4096, 9_999, 10_000):
        assert combine(crcs(data[:cut]), crcs(data[cut:]), len(data) - cut) == crcs(data, 0)
    assert crc_hex(crcs(b"123456789")) == "e3069283cbf43926"


def test_what_ends_with_its_own_crc_is_told_apart() -> None:
    """Zarr's chunks do: their CRC32C is the same, whatever they hold."""
    chunks = [data + crc32c(data).to_bytes(4, "little") for data in (b"A" * 99, b"B" * 99)]
    assert len({crc32c(one) for one in chunks}) == 1
    assert len({crcs(one) for one in chunks}) == 2


def test_a_file_of_a_mapped_tree_is_copied_to_where_it_is_mapped() -> None:
    """A copy to the master's path helps nothing, and may overwrite a file of another tree."""
    header = Header("master", "m", 2, 1, filesystem="hdfs://m")
    moved = PathMap.parse(["/a=/b", "/c=file:///mnt/c"])
    slave = replace(header, side="slave", filesystem="hdfs://s")
    rule = StreamRule.of(slave, Baseline(), None)
    context = RunContext(header, slave, Scope(path_map=moved), Evidence.EXACT, (), rule)
    problems = [to_problem(Finding("file-missing", path=f"/{tree}/1"), context) for tree in "abc"]
    assert [(problem.advice or "").partition(": ")[2] for problem in problems] == [
        "hadoop distcp -overwrite -pbc hdfs://m/a/1 hdfs://s/b/1",
        "hadoop distcp -overwrite -pbc hdfs://m/b/1 hdfs://s/b/1",
        "hadoop fs -get -f hdfs://m/c/1 /mnt/c/1",
    ]
    assert [problem.detail for problem in problems] == [
        "absent on the slave (its path on the slave is /b/1)",
        "absent on the slave",
        "absent on the slave (its path on the slave is file:/mnt/c/1)",
    ]
    named = Finding("file-missing", path="/b/{1}[*].csv")
    assert copy_of_file(named, context).endswith(r" 'hdfs://m/b/\{1\}\[\*\].csv' 'hdfs://s/b/{1}[*].csv'")
    master, lacking = replace(header, hdfs_pool_id=LOCAL_POOL), Finding("file-missing", path="/b/1")
    assert copy_of_file(lacking, replace(context, master=master)) == "", "no other host has the disk of this one"
    assert copy_of_file(lacking, replace(context, slave=replace(slave, hdfs_pool_id=LOCAL_POOL))) == ""
