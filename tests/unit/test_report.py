"""Reports: the contract's words and keys, and names from outside that can do no harm."""

from __future__ import annotations

import json
import re
import shlex
import subprocess
from collections.abc import Callable, Iterable, Iterator
from dataclasses import replace
from html.parser import HTMLParser
from pathlib import Path
from typing import Any

import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from status_tool.errors import OutputError
from status_tool.explain import problems
from status_tool.explain.advice import SYNC_DELETES
from status_tool.explain.cluster_map import KnownSide, known_clusters
from status_tool.explain.overview import causes, overview
from status_tool.explain.problems import to_problem
from status_tool.printable import duration, iso, printable_key, safe, safe_json
from status_tool.report.json_report import json_report
from status_tool.report.metrics import Before, before, check_metrics, failure_metrics
from status_tool.report.page import html_report
from status_tool.report.script import repair_script
from status_tool.report.small_pages import graph_page, point_page, topology_page
from status_tool.report.summary import left_out, write_report
from status_tool.report.text import headline, text_report
from status_tool.rules.context import build_context
from status_tool.rules.graph import Edge, Hop, PathState, Reach
from status_tool.spark.lists import LIST_KINDS, listed_kinds
from status_tool.vocabulary import codes
from status_tool.vocabulary.codes import CODES
from status_tool.vocabulary.findings import UNVERIFIABLE_RANK, Finding
from status_tool.vocabulary.header import Header
from status_tool.vocabulary.outcome import (
    Beyond,
    Cluster,
    ClusterMap,
    Drawing,
    HBaseOutcome,
    HdfsOutcome,
    NotReplicated,
    Outcome,
    Overview,
    PeerLink,
    Problem,
    RecoveryPoint,
    Repair,
    ServerState,
    TablePoint,
)
from status_tool.vocabulary.scope import Scope
from status_tool.vocabulary.verdicts import Evidence, FileStatus, Status, Verdict
from status_tool.watch.history import CheckRound
from tests.judgement import groups_of

HOSTILE = "\x1b[2J\x1b]0;x\x07\nHBase Replication is complete.\r\u202egnol\u2066\x9b1m\u2028\x00<script>&\"'\\"
GAP = Problem(
    kind="gap",
    detail="entries are missing that later entries follow",
    table="ns:t",
    region="ab" * 16,
    origin="h,1,2",
    from_seq=5,
    to_seq=9,
    written_from_ms=1_700_000_000_000,
    written_to_ms=1_700_000_000_500,
    lag_ms=61_000,
    start_key=b"a\x00",
    end_key=b"",
    advice="hbase CopyTable --starttime=1",
)
HBASE = HBaseOutcome(Verdict.INCOMPLETE, Evidence.EXACT, {Status.COMPLETE: 3, Status.GAP: 1}, 61_000)
LEFT_OUT = NotReplicated(("audit", "ns:log"), (("ns:t", "l"), ("u", "l"), ("u", "m")))
HDFS = HdfsOutcome(Verdict.COMPLETE, {FileStatus.MATCH: 2})
OUTCOME = Outcome(
    HBASE, HDFS, (GAP,), 1_700_000_000_000, 1_700_000_000_000, "11-m", "22-s", "1", ("baseline accepted",)
)

# As the contract prints them; extra keys may follow.
TOP_KEYS = [
    *("verdict", "exit_code", "cut_ms", "shutdown_ms", "master_cluster_id", "slave_cluster_id", "peer_id"),
    *("hbase", "hdfs", "problems"),
]
HBASE_KEYS = ["verdict", "evidence", "regions", "worst_lag_ms"]
REGION_KEYS = ["complete", "behind", "gap", "missing", "differs", "unverifiable"]
FILE_KEYS = ["match", "mismatch", "missing", "extra", "incomparable", "unverifiable"]
PROBLEM_KEYS = [
    *("kind", "table", "region", "origin", "from_seq", "to_seq", "written_from_ms", "written_to_ms", "path"),
    "detail",
]


Report = Callable[..., Iterable[str]]


def printed(report: Report, outcome: Outcome = OUTCOME, **options: Any) -> str:
    """The report, with the problems as groups where the outcome has no overview."""
    if outcome.overview == Overview():
        outcome = replace(outcome, overview=Overview(groups=groups_of(outcome.problems)))
    return "".join(report(outcome, **options))


def with_server(outcome: Outcome, server: ServerState) -> Outcome:
    """The outcome as it is for a page that shows a region server."""
    drawing = Drawing(servers=(server,))
    return replace(outcome, overview=Overview(groups=groups_of(outcome.problems), drawing=drawing))


def hostile(name: str) -> Outcome:
    """An outcome in which everything that comes from outside is `name`."""
    problem = Problem(
        kind="missing", detail=name, table=name, region=name, origin=name, path=name, advice=name,
        repair=Repair(name, name, name),
        start_key=name.encode(errors="replace"), end_key=name.encode(errors="replace"),
    )  # fmt: skip
    return replace(
        OUTCOME,
        problems=(problem,),
        master_cluster_id=name,
        slave_cluster_id=name,
        peer_id=name,
        notices=(name,),
        hbase=replace(HBASE, accepted_tables=(name,), not_replicated=NotReplicated((name,), ((name, name),))),
        clusters=ClusterMap(
            (Cluster("m", name, "master"), Cluster(name, name)),
            (PeerLink("m", name, name, name, broken=True), PeerLink(name, "m", "2"), PeerLink("m", "m", "3")),
        ),
    )


def test_both_levels_of_evidence_and_what_is_left_out_are_told() -> None:
    """The weakest evidence, how many regions rest on which, which tables are "accepted", and what nobody ships."""
    levels = {**dict.fromkeys(Evidence, 0), Evidence.EXACT: 3, Evidence.ACCEPTED: 4}
    tables = ("ns:part", "b")
    hbase = replace(
        HBASE, evidence=Evidence.ACCEPTED, evidence_by=levels, accepted_tables=tables, not_replicated=LEFT_OUT
    )
    outcome = replace(OUTCOME, hbase=hbase)
    text = unfolded(printed(text_report, outcome))
    assert "evidence accepted: " in text
    assert "7 regions: 3 exact, 4 accepted" in text
    assert "accepted: 4 regions of 2 tables: ns:part, b" in text
    assert "not replicated to this slave, and so not in scope: 2 tables (audit, ns:log) and 3 families" in text
    document = json.loads(printed(json_report, outcome))["hbase"]
    assert document["evidence_by"] == {
        "exact": 3,
        "rows": 0,
        "witnessed": 0,
        "ordered": 0,
        "accepted": 4,
        "timestamps": 0,
    }
    assert document["accepted_tables"] == ["ns:part", "b"]
    assert document["not_replicated"] == {
        "tables": 2,
        "families": 3,
        "names": [
            {"table": "audit", "families": None},
            {"table": "ns:log", "families": None},
            {"table": "ns:t", "families": ["l"]},
            {"table": "u", "families": ["l", "m"]},
        ],
    }
    page = printed(html_report, outcome)
    assert "4 regions of 2 tables: ns:part, b" in page
    assert "audit" in page
    many = replace(hbase, not_replicated=NotReplicated(tuple(f"t{n:03}" for n in range(250))))
    document = json.loads(printed(json_report, replace(OUTCOME, hbase=many)))["hbase"]["not_replicated"]
    assert (document["tables"], len(document["names"])) == (250, 100)
    assert "and 230 more" in printed(text_report, replace(OUTCOME, hbase=many))


# --- text -----------------------------------------------------------------------------------

WORDS = {
    Verdict.COMPLETE: "is complete.",
    Verdict.INCOMPLETE: "is NOT complete.",
    Verdict.UNVERIFIABLE: "could not be verified.",
}


@pytest.mark.parametrize("hbase", [None, *Verdict])
@pytest.mark.parametrize("hdfs", [None, *Verdict])
def test_the_last_lines_are_those_of_the_contract(hbase: Verdict | None, hdfs: Verdict | None) -> None:
    outcome = replace(
        OUTCOME,
        hbase=None if hbase is None else replace(HBASE, verdict=hbase),
        hdfs=None if hdfs is None else replace(HDFS, verdict=hdfs),
    )
    expected = [
        *([f"HBase Replication {WORDS[hbase]}"] if hbase else []),
        *([f"HDFS Replication {WORDS[hdfs]}"] if hdfs else []),
    ]
    lines = printed(text_report, outcome).splitlines()
    assert lines[len(lines) - len(expected) :] == expected
    assert [line for line in lines if " Replication " in line] == expected


def test_text_names_the_problem_and_what_to_do() -> None:
    lines = printed(text_report).splitlines()
    assert lines[0] == "NOT COMPLETE: 3 of 4 regions are complete, 2 of 2 files are complete"
    for line in (
        "1. gap: table ns:t",
        "   region " + "ab" * 16,
        "   server h,1,2",
        "   sequence ids 5 to 9",
        "   written 2023-11-14T22:13:20.000Z to 2023-11-14T22:13:20.500Z",
        "   behind by 1 min 1 s",
        r"   rows from a\x00 to before the end",
        "   What to do: hbase CopyTable --starttime=1",
        "HBase  4 regions: 3 complete, 1 gap; worst lag 1 min 1 s",
        "Note   baseline accepted",
        "Master 11-m, peer 1",
        "Slave  22-s",
    ):
        assert line in lines, line
    assert "2023-11-14T22:13:20.000Z (1700000000000), the shutdown time" in "\n".join(lines)


WIDE = replace(
    OUTCOME,
    master_cluster_id="c282f42c-ed04-4295-b0ac-c3868772156f",
    slave_cluster_id="006d99c3-70c8-4291-a0ef-8c0fe9abd13b",
    master_address="zk1.example,zk2.example,zk3.example:2181:/hbase",
    slave_address="127.0.0.1:24319:/slave",
    slave_taken_ms=1_700_000_000_000,
    shutdown_ms=None,
    notices=("no shutdown time was recorded: everything written is in scope", *(f"note {n} " * 9 for n in range(30))),
)


def test_little_stands_before_the_problems() -> None:
    """At most twelve lines of 80 columns, whatever there is to note."""
    lines = printed(text_report, WIDE).splitlines()
    head = lines[: lines.index("1 problem, worst first:")]
    assert len(head) <= 12, head
    assert max(map(len, head)) <= 80
    text = " ".join(printed(text_report, WIDE).split())
    assert (
        "Master c282f42c-ed04-4295-b0ac-c3868772156f, zk1.example,zk2.example,zk3.example:2181:/hbase, peer 1" in text
    )
    assert "127.0.0.1:24319:/slave, FILE2 of 2023-11-14T22:13:20.000Z" in text
    assert (text.count("the moment of the dump"), text.count("no shutdown time"), text.count("note 29")) == (1, 0, 9)


def test_what_restricts_the_verdict_is_said_with_it() -> None:
    """In the first line, and where nothing else is printed."""
    outcome = replace(OUTCOME, hdfs=None, limits=("only table audit (chosen)", "HDFS not checked"))
    expected = "NOT COMPLETE: 3 of 4 regions are complete; only table audit (chosen); HDFS not checked"
    assert unfolded(printed(text_report, outcome)).replace("\n", " ").startswith(expected)
    quiet = printed(text_report, outcome, quiet=True)
    assert " ".join(quiet.split()) == f"{expected} HBase Replication is NOT complete."
    assert json.loads(printed(json_report, outcome))["limits"] == list(outcome.limits)
    assert expected in printed(html_report, outcome)


def test_nothing_to_check_has_its_own_words() -> None:
    """Neither a share of nothing nor the evidence for it."""
    nothing = replace(HBASE, verdict=Verdict.UNVERIFIABLE, regions={})
    text = printed(text_report, replace(OUTCOME, hbase=nothing, hdfs=None))
    assert text.splitlines()[0] == "COULD NOT BE VERIFIED: no region to check"
    assert "evidence" not in text


def test_repairs_that_go_to_a_script_are_named_only() -> None:
    """Their commands are long, and there already."""
    text = printed(text_report, many(12, 2), script="my repairs.sh")
    assert "CopyTable" not in text
    assert "table ns:t1 (gap: 2)" in text
    assert "\nbash 'my repairs.sh'\n" in text
    assert text.count("\n   table ns:") == 10


def unfolded(text: str) -> str:
    """Lines that were folded for a terminal of 80 columns as one."""
    return re.sub(r"\n +", " ", text)


def many(tables: int, gaps: int, cut_ms: int = 1_700_000_000_000) -> Outcome:
    """An outcome with so many gaps in each of so many tables, and one table that is merely behind."""
    header = Header("master", "11-m", 0, cut_ms, cluster_key="z:1:/m", filesystem="hdfs://nn:1")
    slave = replace(header, side="slave", cluster_id="22-s", cluster_key="z:1:/s")
    context = build_context([], [], [], header, slave, Scope())
    findings = [
        Finding(
            *("gap", f"ns:t{table}", f"{table:016d}{number:016d}", 7),
            from_seq=number,
            to_seq=number + 5,
            written_from_ms=1_000_000 + number,
            repair_to_ms=2_000_000 + number,
            lag_ms=number,
            start_key=b"row%05d" % number,
            end_key=b"row%05d" % (number + 1),
        )
        for table in range(tables)
        for number in range(gaps)
    ]
    findings.append(Finding("behind", "ns:slow", "f" * 32, 7, written_from_ms=5, repair_to_ms=9, lag_ms=4))
    findings.append(Finding("absent", "ns:gone"))
    problems = tuple(to_problem(finding, context) for finding in findings[:100])
    counts = {Status.COMPLETE: 3, Status.GAP: tables * gaps}
    return replace(
        OUTCOME, hbase=replace(HBASE, regions=counts), problems=problems, overview=overview(context, causes(findings))
    )


def test_problems_are_told_by_table_and_cause_and_fit_a_terminal() -> None:
    lines = printed(text_report, many(50, 200)).splitlines()
    assert f"{50 * 200 + 2} problems, 52 causes, worst first:" in lines
    assert sum(line.endswith(", 200 times") for line in lines) == 50
    assert all(len(line) <= 80 for line in lines), [line for line in lines if len(line) > 80]
    assert len(lines) < 1000
    # Every line of a command that goes on says so, and what is copied is one command.
    start = next(number for number, line in enumerate(lines) if line.startswith("hbase "))
    command = [lines[start]]
    while command[-1].endswith("\\"):
        command.append(lines[start + len(command)])
    words = shlex.split("\n".join(command))
    assert words[1].endswith("CopyTable")
    assert {"--startrow=row00000", "--stoprow=row00200", "--peer.adr=z:1:/s"} <= set(words)


@pytest.mark.parametrize("report", [text_report, json_report])
def test_a_problem_says_where_its_repair_stands_whatever_the_report(report: Report) -> None:
    """The same words go into reports that have the repairs after the problems, or not of all tables."""
    text = " ".join(printed(report, many(12, 1)).split())
    assert "are under Repairs" in text
    assert "is below" not in text


def test_the_page_has_a_repair_with_its_problem_and_both_before_the_pictures() -> None:
    """The verdict once, then what is wrong, each with its repair; ids and what was compared are folded behind it."""
    text = printed(html_report, many(12, 1))
    assert "are under Repairs" not in text
    assert "Repairs of other tables" not in text
    tables = text.count("CopyTable")
    assert tables == len({repair.table for repair in many(12, 1).overview.repairs})
    order = (
        "NOT COMPLETE</div>",
        "worst first</h2>",
        ">CopyTable",
        "Where it hurts</h2>",
        "<summary>What was compared",
    )
    places = [text.index(one if one != ">CopyTable" else "CopyTable") for one in order]
    assert places == sorted(places)


def test_a_repair_covers_every_gap_of_its_table_with_one_command(tmp_path: Path) -> None:
    outcome = many(50, 200)
    repairs = outcome.overview.repairs
    assert len(repairs) == 52
    first = repairs[0].commands.copy_table
    # From the first gap to the last, with a second to spare at both ends.
    assert {"--starttime=999000", "--endtime=2001200"} <= set(shlex.split(first))
    assert repairs[0].since_ms == 2_000_199 + 1000
    at_the_cut = many(1, 1, cut_ms=2_000_500).overview.repairs[0]
    assert at_the_cut.since_ms == 2_000_500, "`--since` refuses a later time"
    assert [repair.stuck for repair in repairs if repair.table in ("ns:slow", "ns:gone")] == [True, False]
    script = tmp_path / "repair.sh"
    write_report(script, repair_script(outcome, "repair.sh"))
    ran = tmp_path / "ran"
    (tmp_path / "hbase").write_text(f'#!/bin/sh\necho "$@" >> {ran}\n')
    (tmp_path / "hbase").chmod(0o755)

    def bash(*arguments: str) -> subprocess.CompletedProcess[str]:
        environment = {"PATH": f"{tmp_path}:/usr/bin:/bin"}
        return subprocess.run(
            ["bash", str(script), *arguments], env=environment, capture_output=True, text=True, check=False
        )

    assert bash().returncode == 0
    assert not ran.exists(), "a dry run runs nothing"
    some = bash("--run")
    assert some.returncode == 0
    assert len(ran.read_text().splitlines()) == 51, "what may still arrive is left alone"
    assert ("Copied." in some.stdout, "NOT copied, as they may still arrive: 1." in some.stdout) == (False, True)
    every = bash("--run", "--all")
    assert every.returncode == 0
    assert len(ran.read_text().splitlines()) == 51 + 52
    assert ("Copied." in every.stdout, "NOT copied" in every.stdout) == (True, False)
    assert bash("--ran").returncode == 2
    (tmp_path / "hbase").write_text("#!/bin/sh\nexit 1\n")
    failed = bash("--run")
    assert failed.returncode == 1
    assert "ns:t0: FAILED" in failed.stderr
    assert "SyncTable --dryrun=true" in script.read_text()
    assert "deletes what only the slave has, unless --doDeletes=false" in script.read_text()


def test_what_is_told_to_be_compared_covers_all_regions_of_its_cause() -> None:
    """Whoever runs the commands for one region at a time does so as often as there are regions."""
    header = Header("master", "11-m", 0, 1_700_000_000_000, cluster_key="z:1:/m", filesystem="hdfs://nn:1")
    context = build_context([], [], [], header, replace(header, side="slave"), Scope())
    found = [
        Finding(
            "content-changed", "ns:t", f"{number:032d}", start_key=b"row%d" % number, end_key=b"row%d" % (number + 1)
        )
        for number in range(1, 4)
    ]
    (group,) = overview(context, causes(found)).groups
    words = shlex.split(group.todo)
    assert {f"--startrow={b'row1'.hex()}", f"--stoprow={b'row4'.hex()}"} <= set(words)
    (alone,) = overview(context, causes(found[:1])).groups
    assert f"--stoprow={b'row2'.hex()}" in shlex.split(alone.todo)


def test_the_script_names_what_no_copy_repairs() -> None:
    """Else it would say of tables that differ that nothing is to be done."""
    assert "To be compared" not in printed(repair_script, many(1, 1), name="r.sh")
    problem = Problem("differs", "differs", table="ns:t'", code="differs")
    outcome = replace(many(1, 1), overview=Overview(groups=groups_of([problem])))
    done = subprocess.run(
        ["bash", "-c", printed(repair_script, outcome, name="r.sh")], capture_output=True, text=True, check=True
    )
    assert "To be compared by HashTable and SyncTable, as the check says: ns:t'" in done.stdout


def test_whoever_is_told_to_run_synctable_is_told_what_it_deletes() -> None:
    """Rows of another master, or of the application after a failover, would be among it."""
    outcome = many(1, 1)
    for text in (printed(text_report, outcome), printed(html_report, outcome)):
        words = " ".join(text.split())
        assert ("SyncTable" in words, SYNC_DELETES in words) == (True, True)


@settings(deadline=None)
@given(st.text(min_size=1).filter(lambda text: "\x00" not in text))
def test_no_name_runs_in_the_script(name: str) -> None:
    outcome = many(1, 1)
    repair = replace(outcome.overview.repairs[0], table=name, first=(name,), reasons=())
    stream = printed(repair_script, replace(outcome, overview=replace(outcome.overview, repairs=(repair,))), name=name)
    repair = replace(repair, table="x", first=("x",))
    harmless = printed(repair_script, replace(outcome, overview=replace(outcome.overview, repairs=(repair,))), name="x")
    assert stream.isprintable() or set(stream) - {"\n"} == {c for c in stream if c.isprintable()}
    code = [line for line in stream.split("\n") if not line.startswith("#")]
    assert len(code) == len([line for line in harmless.split("\n") if not line.startswith("#")])


def test_every_code_has_words_and_a_rank() -> None:
    """Complete ones are not printed."""
    at_fault = {name for name, code in CODES.items() if code.status not in ("complete", "match")}
    assert at_fault == {name for name, code in CODES.items() if code.words}
    ranked = {name for name in at_fault if Finding(name).rank != UNVERIFIABLE_RANK}
    assert {problems.kind_of(name) for name in at_fault - ranked} == {"unverifiable", "incomparable"}


def test_every_finding_that_is_made_has_its_code() -> None:
    """Without an entry it would be printed as its code alone."""
    sources = (source.read_text() for source in Path(codes.__file__).parents[1].rglob("*.py"))
    made = {name for text in sources for name in re.findall(r'\bFinding\(\s*(?:code=)?"([a-z-]+)"', text)}
    assert len(made) > 20
    assert made <= CODES.keys()


@pytest.mark.parametrize(
    ("is_strict", "headline_end", "faulty"), [(False, "10 of 11 files", 1), (True, "10 of 511 files", 501)]
)
def test_files_that_only_the_slave_has_are_at_fault_where_they_count(
    is_strict: bool, headline_end: str, faulty: int
) -> None:
    """With `--strict-extra`: else a page of hundreds of them looks as if everything were missing."""
    files = {FileStatus.MATCH: 10, FileStatus.MISSING: 1, FileStatus.EXTRA: 500}
    hdfs = HdfsOutcome(Verdict.INCOMPLETE, files, is_strict)
    outcome = replace(OUTCOME, hbase=None, hdfs=hdfs, problems=(Problem("extra", "x", path="/e"),))
    assert f"{headline_end} are complete" in headline(outcome)
    assert left_out(outcome) == (0, faulty - is_strict)
    assert CheckRound(0, 0.0, outcome).files == (511, faulty)


@pytest.mark.parametrize("code", [name for name, code in CODES.items() if code.words])
def test_a_code_has_words_with_known_fields_and_advice(code: str) -> None:
    """A field that nobody fills would end a run with a traceback."""
    context = build_context([], [], [], Header("master", "m", 0, 0), Header("slave", "s", 0, 0), Scope())
    problem = to_problem(Finding(code), context)
    assert "{" not in problem.detail
    assert problem.advice


def test_what_max_problems_left_out_is_said() -> None:
    counts = {Status.COMPLETE: 1, Status.GAP: 3, Status.UNVERIFIABLE: 2}
    files = {FileStatus.MATCH: 1, FileStatus.EXTRA: 9, FileStatus.MISMATCH: 1}
    problems = (GAP, replace(GAP, from_seq=20), Problem("extra", "x", path="/e"))
    outcome = replace(OUTCOME, hbase=replace(HBASE, regions=counts), hdfs=replace(HDFS, files=files), problems=problems)
    assert left_out(outcome) == (4, 1)
    assert json.loads(printed(json_report, outcome))["unlisted"] == {"regions": 4, "files": 1}


def test_what_timestamps_alone_would_have_said() -> None:
    hbase = replace(HBASE, timestamps_complete=4)
    text = unfolded(printed(text_report, replace(OUTCOME, hbase=hbase)))
    assert "Timestamps alone would have called 4 regions complete; by the evidence they are 3." in text
    assert "Timestamps alone" not in printed(text_report, replace(OUTCOME, hbase=replace(hbase, timestamps_complete=3)))
    assert "Timestamps alone" not in printed(text_report)


@settings(deadline=None)
@given(st.text(min_size=1))
@example(HOSTILE)
def test_no_name_can_steer_a_terminal_or_fake_a_line(name: str) -> None:
    lines = printed(text_report, hostile(name)).split("\n")
    assert all(line.isprintable() for line in lines)
    # A long name is folded, and what it goes on with is indented: it cannot begin a line.
    ours = [line for line in lines if line and not line.startswith(" ")]
    assert len(ours) == len(
        [line for line in printed(text_report, hostile("x")).split("\n") if line.strip() == line != ""]
    )
    assert [line for line in lines if line.startswith(("HBase Rep", "HDFS Rep"))] == lines[-3:-1]
    assert lines[-3:] == ["HBase Replication is NOT complete.", "HDFS Replication is complete.", ""]


# --- JSON -----------------------------------------------------------------------------------


def test_json_has_the_contracts_keys_in_its_order() -> None:
    text = printed(json_report)
    assert text.endswith("}\n")
    document = json.loads(text)
    assert list(document)[: len(TOP_KEYS)] == TOP_KEYS
    assert list(document["hbase"])[: len(HBASE_KEYS)] == HBASE_KEYS
    assert list(document["hbase"]["regions"]) == REGION_KEYS
    assert list(document["hdfs"])[:2] == ["verdict", "files"]
    assert list(document["hdfs"]["files"]) == FILE_KEYS
    assert list(document["problems"][0])[: len(PROBLEM_KEYS)] == PROBLEM_KEYS
    assert document["verdict"] == "incomplete"
    assert document["exit_code"] == 1
    assert document["hbase"]["regions"] == {
        "complete": 3,
        "behind": 0,
        "gap": 1,
        "missing": 0,
        "differs": 0,
        "unverifiable": 0,
    }
    assert document["problems"][0]["start_key"] == r"a\x00"
    assert document["problems"][0]["end_key"] == ""
    assert document["notices"] == ["baseline accepted"]


def test_a_half_that_was_not_checked_is_null() -> None:
    document = json.loads(printed(json_report, Outcome(None, None, (), 1)))
    assert document["hbase"] is None
    assert document["hdfs"] is None
    assert (document["verdict"], document["exit_code"]) == ("unverifiable", 3)
    assert (document["shutdown_ms"], document["peer_id"]) == (None, None)


@settings(deadline=None)
@given(st.text())
def test_json_gives_names_back_unchanged_and_is_ascii(name: str) -> None:
    text = printed(json_report, hostile(name))
    assert text.isascii()
    assert json.loads(text)["problems"][0]["table"] == name
    assert text.count("\n") == printed(json_report, hostile("x")).count("\n")


# --- metrics --------------------------------------------------------------------------------

SAMPLE = re.compile(r'([a-z_]+)(?:\{((?:[a-z]+="(?:[^"\\\n]|\\[\\"n])*",?)*)\})? (-?[0-9.]+)')


def samples(text: str) -> dict[str, str]:
    lines = [line for line in text.split("\n") if line and not line.startswith("#")]
    found = [SAMPLE.fullmatch(line) for line in lines]
    assert all(found), lines
    return {f"{item[1]}{{{item[2]}}}" if item[2] else item[1]: item[3] for item in found if item}


def test_metrics() -> None:
    text = printed(check_metrics, run_ms=1_700_000_001_500)
    found = samples(text)
    names = 'master="11-m",slave="22-s",peer="1"'
    assert found[f'status_tool_verdict{{{names},half="hbase"}}'] == "1"
    assert found[f'status_tool_verdict{{{names},half="hdfs"}}'] == "0"
    assert found[f'status_tool_regions{{{names},status="gap"}}'] == "1"
    assert found[f'status_tool_regions{{{names},status="missing"}}'] == "0"
    assert found[f'status_tool_files{{{names},status="match"}}'] == "2"
    assert found[f"status_tool_worst_lag_seconds{{{names}}}"] == "61.0"
    assert f"status_tool_queued_bytes{{{names}}}" not in found
    queued = printed(check_metrics, replace(OUTCOME, queued_bytes=7))
    assert samples(queued)[f"status_tool_queued_bytes{{{names}}}"] == "7"
    # Else the verdict complete of one table would pass for that of all.
    narrow = samples(printed(check_metrics, replace(OUTCOME, limits=("only table a (chosen)", "HDFS not checked"))))
    assert [one[f"status_tool_limits{{{names}}}"] for one in (found, narrow)] == ["0", "2"]
    assert found[f"status_tool_cut_timestamp_seconds{{{names}}}"] == "1700000000.0"
    assert found[f"status_tool_last_run_timestamp_seconds{{{names}}}"] == "1700000001.5"
    assert found[f"status_tool_up{{{names}}}"] == "1"
    assert all(names in key for key in found), "two peers' files can be scraped from one folder"
    assert text.endswith("\n# EOF\n")
    for name in {key.partition("{")[0] for key in found}:
        assert text.count(f"# HELP {name} ") == text.count(f"# TYPE {name} gauge\n") == 1


def test_a_failed_run_is_down_under_the_names_of_the_run_before(tmp_path: Path) -> None:
    """And it keeps the time of the last success, whatever the names hold."""
    path = tmp_path / "f.prom"
    good = replace(OUTCOME, hbase=replace(HBASE, verdict=Verdict.COMPLETE), peer_id='a"b|c')
    write_report(path, check_metrics(good, 1_700_000_000_000))
    last = before(path)
    assert (last.last_success_s, last.names["peer"]) == (1_700_000_000.0, 'a"b|c')
    failed = "".join(failure_metrics(last, 1_700_000_009_000, 2.5))
    found = {key.partition("{")[0]: value for key, value in samples(failed).items()}
    assert found["status_tool_up"] == "0"
    assert found["status_tool_last_success_timestamp_seconds"] == "1700000000.0"
    assert found["status_tool_last_run_timestamp_seconds"] == "1700000009.0"
    assert (found["status_tool_run_duration_seconds"], found["status_tool_limits"]) == ("2.5", "0")
    assert before(tmp_path / "none").last_success_s is None


@pytest.mark.parametrize("names", [{"master": "other"}, {"slave": "other"}, {"peer": "2"}, {}])
def test_the_success_of_another_pair_is_none(names: dict[str, str]) -> None:
    """Clusters change roles, and the file stays: nobody would miss a first success."""
    known = {"master": OUTCOME.master_cluster_id, "slave": OUTCOME.slave_cluster_id, "peer": OUTCOME.peer_id or ""}
    text = printed(check_metrics, OUTCOME, last=Before(known | names, 1.0, 0, 0))
    assert OUTCOME.exit_code == 1
    assert ("status_tool_last_success_timestamp_seconds{" in text) is (not names)


@pytest.mark.parametrize("limits", [(), ("only table audit (chosen)",)])
def test_the_success_of_a_check_of_less_is_none(limits: tuple[str, ...], tmp_path: Path) -> None:
    """One of a table alone was the last success of all, or of another one, however long that was not complete."""
    path = tmp_path / "f.prom"
    good = replace(OUTCOME, hbase=replace(HBASE, verdict=Verdict.COMPLETE), limits=limits)
    write_report(path, check_metrics(good, 1_700_000_000_000))
    for outcome in (replace(OUTCOME, limits=limits), OUTCOME, replace(OUTCOME, limits=("only table b (chosen)",))):
        text = printed(check_metrics, outcome, last=before(path))
        assert ("status_tool_last_success_timestamp_seconds{" in text) is (outcome.limits == limits)


def test_metrics_leave_out_what_was_not_checked() -> None:
    found = samples(printed(check_metrics, replace(OUTCOME, hdfs=None)))
    assert not any("hdfs" in key or "files" in key for key in found)


@settings(deadline=None)
@given(st.text())
def test_no_name_breaks_the_metrics(name: str) -> None:
    assert len(samples(printed(check_metrics, hostile(name)))) == len(samples(printed(check_metrics)))


# --- HTML -----------------------------------------------------------------------------------


class Page(HTMLParser):
    """Collects elements and text, and refuses what would reach the network."""

    def __init__(self, text: str) -> None:
        super().__init__()
        self.tags: list[str] = []
        self.open: list[str] = []
        self.text = ""
        self.feed(text)
        self.close()

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        assert not {name for name, _ in attrs} & {"src", "onload", "onclick", "style"}
        assert all((value or "").startswith("#") for name, value in attrs if name == "href"), attrs
        self.tags.append(tag)
        if tag not in ("meta", "br", "input", "col"):
            self.open.append(tag)

    def handle_endtag(self, tag: str) -> None:
        assert self.open.pop() == tag

    def handle_data(self, data: str) -> None:
        self.text += data


def test_html_tells_all_of_it() -> None:
    text = printed(html_report, with_server(OUTCOME, ServerState("master", "h,1,2", "w", True, True, False, 5, "{}")))
    page = Page(text)
    assert page.open == []
    assert page.text.count("NOT COMPLETE") == 2, "its title, and the verdict once"
    for word in (
        "3 of 4 regions are complete, 2 of 2 files are complete",
        "ns:t",
        "sequence ids",
        "5–9",
        "hbase CopyTable",
        "h,1,2",
        "write-time",
        "baseline accepted",
    ):
        assert word in page.text
    assert "prefers-color-scheme: dark" in text
    assert "http" not in text.replace("http-equiv", "")


@settings(deadline=None)
@given(st.text(min_size=1))
@example(HOSTILE)
def test_no_name_becomes_markup(name: str) -> None:
    page, harmless = (
        Page(printed(html_report, with_server(hostile(text), ServerState(text, text, text, detail=text))))
        for text in (name, "x")
    )
    assert page.open == []
    assert page.tags == harmless.tags
    assert page.tags.count("script") == 1, "the page's own"


@settings(deadline=None)
@given(st.text(min_size=1).filter(lambda name: name != "m"))
@example(HOSTILE)
def test_no_name_becomes_markup_on_the_other_pages(name: str) -> None:
    """They have no script, and their policy lets none run. The master is `m`: of one cluster there is less to draw."""

    def pages(text: str) -> Iterator[str]:
        clusters = ClusterMap((Cluster("m", text, "master"), Cluster(text, text)), (PeerLink("m", text, text, text),))
        yield "".join(topology_page(clusters, [text], [text]))
        edges = [Edge(Hop("m", text, text), False, PathState(Reach.GAP, None, (text,)))]
        matrix = {"m": {text: edges[0].judged}}
        shown = {"cut_ms": 0, "verdict": Verdict.INCOMPLETE, "headline": text, "notes": [text]}
        yield "".join(graph_page(clusters, matrix, edges, **shown))  # type: ignore[arg-type]
        tables = {text: TablePoint(5, text, Beyond(9, 1))}
        point = RecoveryPoint(text, text, 9, 5, None, text, None, tables, 9, None, 1, 1, (text,))
        yield "".join(point_page(point, [text, text], "incomplete"))

    for hostile_text, harmless_text in zip(pages(name), pages("x"), strict=True):
        page, harmless = Page(hostile_text), Page(harmless_text)
        assert page.open == []
        assert page.tags == harmless.tags
        assert "script" not in page.tags
        assert "default-src 'none'; style-src 'unsafe-inline'\"" in hostile_text


def test_the_topology_is_drawn() -> None:
    """Master-master with a third cluster: three boxes, every peer a line, the disabled one in alarm."""
    header = Header("master", "11-m", 0, 0, cluster_key="z:1:/m")
    slave = replace(header, side="slave", cluster_id="22-s", cluster_key="z:1:/s")
    theirs = [{"id": "back", "cluster_key": "z:1:/m", "enabled": True}]
    ours: list[dict[str, Any]] = [
        {"id": "1", "cluster_key": "z:1:/s", "cluster_id": "22-s", "enabled": True},
        {"id": "far", "cluster_key": "z:1:/far", "cluster_id": None, "enabled": False},
    ]
    clusters = known_clusters((KnownSide(header, ours), KnownSide(slave, theirs)))
    assert [(link.source, link.target, link.broken) for link in clusters.links] == [
        *(("11-m", "22-s", False), ("11-m", "z:1:/far", True), ("22-s", "11-m", False))
    ]
    text = printed(html_report, replace(OUTCOME, clusters=clusters))
    page = Page(text)
    assert (text.count('<rect class="box'), text.count("<marker id")) == (3, 2)
    assert all(word in page.text for word in ("22-s", "z:1:/far", "peer back", "peer far: DISABLED"))
    assert text.count('class="link broken"') == 1
    assert "http" not in text.replace("http-equiv", "")
    boxes = re.findall(r'<rect class="box[^"]*" x="(\d+)" y="(\d+)"', text)
    assert len(set(boxes)) == 3, "boxes lie on each other"


# --- files and words ------------------------------------------------------------------------


@pytest.mark.parametrize("report", [html_report, check_metrics, json_report, text_report])
def test_reports_appear_whole_or_not_at_all(tmp_path: Path, report: Report) -> None:
    path = tmp_path / "report"
    write_report(path, report(hostile("ü" + HOSTILE + "\ud800")))
    before = path.read_text(encoding="utf-8")
    broken = replace(OUTCOME, cut_ms="x")  # type: ignore[arg-type]
    broken = replace(broken, problems=(object(),))  # type: ignore[arg-type]
    with pytest.raises((TypeError, AttributeError)):
        write_report(path, report(broken))
    assert path.read_text(encoding="utf-8") == before
    assert list(tmp_path.iterdir()) == [path]
    with pytest.raises(OutputError, match="is a folder"):
        write_report(tmp_path, report(OUTCOME))


@settings(deadline=None)
@given(st.text() | st.just(HOSTILE))
def test_a_dump_line_is_one_line_and_the_same_document(name: str) -> None:
    """Spark's own `to_json` leaves bidi controls, line separators and C1 escapes as they are."""
    line = safe_json(json.dumps({"path": name}, ensure_ascii=False))
    assert line.isprintable()
    assert json.loads(line) == {"path": name}


def test_words() -> None:
    assert [duration(ms) for ms in (0, 999, 1500, 61_000, 7_500_000, 90_000_000)] == [
        *("0 ms", "999 ms", "1.5 s", "1 min 1 s", "2 h 5 min", "1 d 1 h")
    ]
    assert iso(-1) == "1969-12-31T23:59:59.999Z"
    assert iso(2**63 - 1) == f"{2**63 - 1} ms"
    assert safe("abcdef", 4) == "abc…"
    assert safe("a\U000e0001b") == r"a\U000e0001b"
    assert safe("\x07\n\u202eg\u2066\x9b1m\u2028\x00") == r"\x07\x0a\u202eg\u2066\x9b1m\u2028\x00"
    assert printable_key(b"a\\\x00\xff") == r"a\x5C\x00\xFF"


@pytest.mark.parametrize("is_strict", [False, True])
def test_whatever_keeps_a_check_from_being_complete_is_in_one_list(is_strict: bool) -> None:
    """Files that only the slave has were in none, although they alone are a failure with `--strict-extra`."""
    scope = Scope(strict_extra=is_strict)
    listed = [kind for name in LIST_KINDS for kind in listed_kinds(name, scope)]
    fine = {Status.COMPLETE, FileStatus.MATCH} | (set() if is_strict else {FileStatus.EXTRA})
    assert sorted(listed) == sorted({str(kind) for kind in (*Status, *FileStatus) if kind not in fine})
