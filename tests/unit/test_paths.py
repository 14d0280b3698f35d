"""`status-tool paths` from files: three clusters made of the recorded samples of two."""

from __future__ import annotations

import json
import re
import signal
import subprocess
import sys
from collections.abc import Callable, Mapping
from functools import partial
from pathlib import Path
from typing import Any

import pytest

from status_tool.cli.main import main
from status_tool.cli.path_telling import paths_lines
from status_tool.rules.graph import Edge, Hop, PathState, Reach, Station
from status_tool.runs.graph_check import PathsFound, _not_covered
from status_tool.vocabulary.outcome import HBaseOutcome, Outcome
from status_tool.vocabulary.schema import Row
from status_tool.vocabulary.verdicts import Evidence, Verdict
from tests.lab.waiting import wait_until
from tests.pair import REPOSITORY, Result, tool_environment, tool_here
from tests.schema import assert_valid
from tests.status_files import rewritten, rows_of

pytestmark = [pytest.mark.spark, pytest.mark.usefixtures("warm_spark")]

SAMPLES = REPOSITORY / "sample_status"
IDS = {name: f"00000000-0000-4000-8000-00000000000{number}" for number, name in enumerate(("sun", "earth", "venus"))}
ORDER = ("sun-master", "earth-slave", "earth-master", "venus-slave")
BASE_MS, STEP_MS = 1_795_640_451_954, 120_000
SITE = """<configuration>
<property><name>hbase.zookeeper.quorum</name><value>127.0.0.1:1</value></property>
<property><name>hbase.regionserver.thrift.port</name><value>1</value></property>
</configuration>"""


def detailed(row: Row, **changes: Any) -> Row:
    """The row, with more in its detail."""
    return {**row, "detail": json.dumps(json.loads(row["detail"]) | changes)}


def of_orders(change: Callable[[Row], Row | None]) -> Callable[[Row], Row | None]:
    """Change the descriptor of the table orders alone."""
    return lambda row: change(row) if (row["kind"], row["table"]) == ("table", "orders") else row


def recorded(folder: Path, name: str, sample: str, to: str | None = None, **changes: Any) -> Path:
    """One side of a sample as that of another cluster, written after those before it in `ORDER`.

    `to` is where the peer leads; other changes are those of the peer.
    """
    cluster, side = name.split("-")
    cut_ms = BASE_MS + ORDER.index(name) * STEP_MS

    def led(row: Row) -> Row | None:
        if row["kind"] == "peer" and to is not None:
            return detailed(row, **{"cluster_id": IDS[to], "cluster_key": ""} | changes)
        return row if row["kind"] != "file" else None

    header: dict[str, Any] = {
        **{"cluster_id": IDS[cluster], "cluster_key": f"zk:2181:/{cluster}", "created_ms": cut_ms + 2_000},
        **{"cut_ms": cut_ms, "barrier_issued_ms": cut_ms, "read_until_ms": cut_ms + 3_000},
    }
    return rewritten(SAMPLES / sample / f"{side}.status", to=folder / f"{name}.status", alter=led, **header)


def chain(folder: Path, first: str = "complete", second: str = "complete", **changes: Any) -> dict[str, Path]:
    """Sun to Earth to Venus; each edge is as its sample is."""
    return {
        "sun-master": recorded(folder, "sun-master", first, "earth"),
        "earth-slave": recorded(folder, "earth-slave", first),
        "earth-master": recorded(folder, "earth-master", second, "venus", **changes),
        "venus-slave": recorded(folder, "venus-slave", second),
    }


def named(files: dict[str, Path]) -> list[str]:
    """Options that give each file as its cluster's."""
    return [f"--cluster={name.split('-')[0]}={path}" for name, path in files.items()]


def paths(files: dict[str, Path], *arguments: str) -> Result:
    return tool_here("paths", *named(files), *arguments)


def cell(result: Result, source: str, target: str) -> Any:
    return result.json["matrix"][source][target]


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM])
def test_a_signal_leaves_the_older_report(number: signal.Signals, tmp_path: Path) -> None:
    """And nothing in the folder for temporary files."""
    report, temporary = tmp_path / "r.html", tmp_path / "temporary"
    report.write_text("older")
    temporary.mkdir()
    given = [*named(chain(tmp_path)), f"--report={report}", "--spark-master=local[1]"]
    process = subprocess.Popen(
        # Without Spark it might be over by then.
        [sys.executable, "-m", "status_tool", "paths", *given],
        env=tool_environment() | {"TMPDIR": str(temporary)},
        stdout=subprocess.DEVNULL,
        stderr=subprocess.PIPE,
        text=True,
        preexec_fn=partial(signal.signal, signal.SIGINT, signal.default_int_handler),
    )
    wait_until(lambda: any(temporary.iterdir()) or process.poll() is not None, 120, "it has begun")
    process.send_signal(number)
    _, said = process.communicate(timeout=60)
    assert (process.returncode, said) == (128 + number, "status-tool: interrupted; nothing was written\n")
    assert (report.read_text(), list(temporary.iterdir())) == ("older", [])


def test_a_chain_of_three(tmp_path: Path) -> None:
    """Each edge and the path; whatever Venus replicates is unknown, and not asked for."""
    result = paths(chain(tmp_path), "--json", "--from", "sun", "--from", "earth")
    assert_valid(result.json, "paths")
    assert cell(result, "sun", "earth")["verdict"] == "complete", result
    assert cell(result, "earth", "venus")["verdict"] == "complete", result
    assert cell(result, "sun", "venus")["verdict"] == "complete", result
    assert (cell(result, "earth", "sun")["verdict"], result.exit_code) == ("unverifiable", 3), result
    narrowed = paths(chain(tmp_path), "--from", "sun", "--to", "venus")
    assert (narrowed.exit_code, "All paths are complete." in narrowed.stdout) == (0, True), narrowed


@pytest.mark.parametrize(("first", "second", "verdict"), [("complete", "behind", "behind"), ("gap", "complete", "gap")])
def test_what_holds_a_path_back(tmp_path: Path, first: str, second: str, verdict: str) -> None:
    """The edge at fault is named for the path as well, and the text fits into 80 columns."""
    files = chain(tmp_path, first, second)
    result = paths(files, "--json", "--from", "sun", "--to", "venus")
    assert_valid(result.json, "paths")
    found = cell(result, "sun", "venus")
    assert (result.exit_code, found["verdict"]) == (1, verdict), result
    edge = "earth to venus (peer 1 of earth)" if second == "behind" else "sun to earth (peer 1 of sun)"
    assert all(reason.startswith(edge) for reason in found["held_back_by"])
    assert found["held_back_by"]
    text = paths(files, "--from", "sun", "--to", "venus").stdout
    assert f"sun to venus: {verdict}" in text
    assert max(map(len, text.splitlines())) <= 80
    assert text.endswith("The paths are NOT complete.\n")
    every = " ".join(paths(files, "--from", "sun", "--from", "earth", "--to", "venus").stdout.split())
    assert every.count(f"because of {edge}: see above") == (1 if second == "behind" else 0), "once in a cell"
    page = tmp_path / "page.html"
    told = paths(files, "--from", "sun", "--report", str(page)).stdout
    for answer in (told, json.dumps(result.json), page.read_text()):
        assert "under Repairs" not in answer, "it has none"
        assert "the check of this edge alone (run -m, run -i) prints the commands" in " ".join(answer.split())
    assert "status-tool run -i FILE --only hbase --peer 1" in told
    quiet = paths(files, "-q", "--from", "sun", "--to", "venus").stdout
    assert ("because" in quiet, quiet.endswith("The paths are NOT complete.\n")) == (False, True)


def test_the_page(tmp_path: Path) -> None:
    """Each edge in the picture opens its problems, and is coloured by its verdict."""
    page = tmp_path / "page.html"
    files = chain(tmp_path, "complete", "gap")
    assert paths(files, "--from", "sun", "--report", str(page)).exit_code == 1
    text = page.read_text()
    for number, (edge, style) in enumerate([("sun to earth", "complete"), ("earth to venus", "incomplete")]):
        assert f'<a href="#edge-{number}">' in text
        assert re.search(rf'<h2 id="edge-{number}" class="{style}">{edge}, peer 1: ', text)
    assert re.search(r'<path class="link complete" ', text)
    assert re.search(r'<path class="link broken incomplete" ', text)
    assert text.count('class="kind incomplete"') == 1, "sun to venus"
    kept = paths(files, "--from", "sun", "--report", str(files["sun-master"]))
    assert (kept.exit_code, "sun-master" in kept.stderr) == (2, True), kept


def test_what_complete_does_not_cover_is_told(tmp_path: Path) -> None:
    """As a check of one pair does: tables that are not shipped, those that were chosen, and what rests on a word."""
    files = chain(tmp_path, replicate_all=False, table_cfs={"orders": []}, namespaces=[])
    result = paths(files, "--from", "earth", "--to", "venus")
    assert result.exit_code == 0, result
    left_out = "Note: earth to venus: not replicated to this slave, and so not in scope: 1 table (audit)"
    assert left_out in " ".join(result.stdout.split())
    accepted = HBaseOutcome(Verdict.COMPLETE, Evidence.ACCEPTED, {}, None, 0, {Evidence.ACCEPTED: 2}, ("orders",))
    edges = [
        Edge(Hop("a", "1", "b"), True, PathState(Reach.COMPLETE), Outcome(hbase, None, (), 0))
        for hbase in (accepted, None)
    ]
    word = "a to b: your word (--since) vouches for 2 regions of 1 table: orders"
    assert list(_not_covered(edges)) == [word]
    chosen = ("--from", "earth", "--to", "venus", "--table", "orders")
    for quiet in ((), ("-q",)):
        last = paths(files, *quiet, *chosen).stdout.splitlines()[-2:]
        assert last == ["Limits: only table orders (chosen)", "All paths are complete."]
    document = paths(files, "--json", *chosen)
    assert_valid(document.json, "paths")
    assert document.json["limits"] == ["only table orders (chosen)"]


def test_a_master_that_was_read_before_entries_arrived_proves_no_path(tmp_path: Path) -> None:
    """Each edge is complete; an entry of Sun that came to Earth in between is asked for by none of them."""
    files = chain(tmp_path)
    for until_ms in (BASE_MS + 2 * STEP_MS + 2_000, None):
        rewritten(files["earth-slave"], read_until_ms=until_ms)
        result = paths(files, "--json", "--from", "sun")
        assert cell(result, "sun", "earth")["verdict"] == "complete", result
        found = cell(result, "sun", "venus")
        assert (result.exit_code, found["verdict"]) == (3, "unverifiable"), result
        assert "half a minute" in found["held_back_by"][0]


def test_what_a_peer_in_the_middle_leaves_out_is_named(tmp_path: Path) -> None:
    """The path carries the rest; if nothing is left, the clusters are not connected."""
    some = chain(tmp_path, exclude_table_cfs={"orders": []})
    result = paths(some, "--json", "--from", "sun", "--to", "venus")
    found = cell(result, "sun", "venus")
    assert found["verdict"] == "complete", result
    assert any(words.startswith("orders (") and words.endswith("stops at earth") for words in found["stopped"])
    none = chain(tmp_path, replicate_all=False, namespaces=["other"])
    result = paths(none, "--json", "--from", "sun", "--to", "venus")
    assert (cell(result, "sun", "venus")["verdict"], result.exit_code) == ("not connected", 3), result


def test_two_clusters_of_one_id_stop_a_path(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Each edge is complete: HBase never ships entries of Sun from Earth to Venus, so none is asked for."""
    monkeypatch.setitem(IDS, "venus", IDS["sun"])
    result = paths(chain(tmp_path), "--json", "--from", "sun", "--to", "venus")
    found = cell(result, "sun", "venus")
    assert (result.exit_code, found["verdict"]) == (3, "unverifiable"), result
    assert "same cluster id" in found["held_back_by"][0]


def with_a_second_peer(path: Path, **changes: Any) -> None:
    """Peer 2, as peer 1 but for these changes."""
    (peer,) = (row for row in rows_of(path) if row["kind"] == "peer")
    rewritten(path, {**detailed(peer, id="2", **changes), "name": "2"})


def test_two_peers_between_two_clusters(tmp_path: Path) -> None:
    """Each is an edge of its own; that one of them is disabled is told."""
    files = chain(tmp_path)
    with_a_second_peer(files["sun-master"], enabled=False)
    result = paths(files, "--json", "--from", "sun", "--to", "earth")
    assert [(edge["peer"], edge["enabled"]) for edge in result.json["edges"]] == [("1", True), ("2", False)], result
    assert "peer 2 of sun (to earth) is disabled" in paths(files, "--from", "sun", "--to", "earth").stdout


@pytest.mark.parametrize(
    ("left_out", "verdict", "exit_code"),
    [({}, "complete", 0), ({"exclude_table_cfs": {"orders": []}}, "unverifiable", 3)],
)
def test_what_a_silent_cluster_may_bring(
    tmp_path: Path, left_out: dict[str, Any], verdict: str, exit_code: int
) -> None:
    """Sun replicates to Venus, and to Earth, whose peers are unknown: Earth may bring Venus what Sun does not send."""
    down = tmp_path / "down"
    down.mkdir()
    (down / "hbase-site.xml").write_text(SITE)
    master = recorded(tmp_path, "sun-master", "complete", "venus")
    with_a_second_peer(master, cluster_id="", cluster_key="127.0.0.1:1:/hbase")
    if left_out:
        recorded(tmp_path, "sun-master", "complete", "venus", **left_out)
        with_a_second_peer(master, cluster_id="", cluster_key="127.0.0.1:1:/hbase", exclude_table_cfs={})
    files = {"sun-master": master, "venus-slave": recorded(tmp_path, "venus-slave", "complete"), "earth": down}
    result = paths(files, "--json", "--from", "sun", "--to", "venus")
    assert (cell(result, "sun", "venus")["verdict"], result.exit_code) == (verdict, exit_code), result
    assert any(words.startswith("earth: ") for words in cell(result, "sun", "venus")["held_back_by"]) == bool(exit_code)


@pytest.mark.parametrize(("key", "exit_code"), [("127.0.0.1:1:/hbase", 3), ("", 0)])
def test_a_peer_that_leads_nobody_knows_where(tmp_path: Path, key: str, exit_code: int) -> None:
    """Sun's peer to Venus leaves a table out. Another peer, which ships it, may lead to Venus by another name."""
    master = recorded(tmp_path, "sun-master", "complete", "venus", exclude_table_cfs={"orders": []})
    with_a_second_peer(master, cluster_id="", cluster_key=key, exclude_table_cfs={})
    way = ("--json", "--from", "sun", "--to", "venus")
    result = paths({"sun-master": master, "venus-slave": recorded(tmp_path, "venus-slave", "complete")}, *way)
    expected = "unverifiable" if exit_code else "complete"
    assert (cell(result, "sun", "venus")["verdict"], result.exit_code) == (expected, exit_code), result
    assert bool(cell(result, "sun", "venus")["held_back_by"]) == bool(exit_code), result


def test_a_loop_in_which_entries_came_back(tmp_path: Path) -> None:
    """It is named with its peers, and nothing in it is complete."""
    files = chain(tmp_path)
    files["earth-master"] = recorded(tmp_path, "earth-master", "complete", "sun")
    files["sun-slave"] = tmp_path / "sun-slave.status"
    rewritten(files.pop("venus-slave"), to=files["sun-slave"], cluster_id=IDS["sun"], cluster_key="zk:2181:/sun")
    assert paths(files).exit_code == 0
    back = {"via_ids": bytes.fromhex(IDS["sun"].replace("-", ""))}
    rewritten(files["sun-master"], alter=lambda row: {**row, **back} if row["kind"] == "stream" else row)
    result = paths(files, "--json")
    assert result.exit_code != 0, result
    (loop,) = result.json["loops"]
    assert "earth → sun → earth (peer 1 of earth, peer 1 of sun)" in loop


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        (["--cluster=sun"], "expected NAME=DIR"),
        (["--cluster=sun={file}"], "at least two clusters"),
        (["--cluster=sun={file}", "--cluster=earth={folder}/none"], "there is no folder and no file {folder}/none"),
        (["--cluster=s/n={file}", "--cluster=earth={file}"], "a name has letters"),
        (["--cluster=sun={file}", "--cluster=sun={folder}"], "Give either"),
        (["--cluster=sun={file}", "--cluster=sun={file}", "--cluster=earth={file}"], "two files of it are a master's"),
        (["--cluster=sun={file}", "--cluster=earth={file}"], "are one cluster"),
        (["--cluster=sun={file}", "--cluster=earth={slave}", "--from=venus"], "the clusters are sun, earth"),
        (["--cluster=sun={file}", "--cluster=earth={slave}", "--from=sun", "--to=sun"], "are both sun"),
        (["--cluster=sun={file}", "--cluster=earth={folder}"], "--cluster earth: {folder} names no ZooKeeper"),
        ([], "at least two clusters"),
    ],
)
def test_what_is_refused(arguments: list[str], words: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """One line, exit code 2."""
    places = {
        "file": SAMPLES / "complete" / "master.status",
        "slave": SAMPLES / "complete" / "slave.status",
        "folder": tmp_path,
    }
    assert main(["paths", *(one.format(**places) for one in arguments)]) == 2
    told = capsys.readouterr().err.strip().splitlines()
    assert len(told) == 1
    assert words.format(**places) in told[0]


def test_the_clusters_of_the_configuration(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """A cluster that cannot be reached spoils its edges alone: here all of them."""
    file = tmp_path / "status-tool.toml"
    tables = [
        f'[clusters.{name}]\nzookeeper = "127.0.0.1:1/{name}"\nthrift = "127.0.0.1:1"\n' for name in ("sun", "earth")
    ]
    file.write_text("".join(tables))
    monkeypatch.setenv("STATUS_TOOL_CONFIG", str(file))
    assert main(["paths", "--json"]) == 3
    document = json.loads(capsys.readouterr().out)
    assert_valid(document, "paths")
    assert document["matrix"]["sun"]["earth"]["verdict"] == "unverifiable"
    assert all(cluster["unread"] for cluster in document["clusters"].values())
    assert document["lost"] == {}, "nobody is left who could have something of them"
    file.write_text('[clusters.sun]\nconf_dir = "x"\n')
    assert main(["paths", "--json"]) == 2
    assert "'conf_dir' is not one of conf-dir" in capsys.readouterr().err


def lost_master(tmp_path: Path, samples: Mapping[str, str]) -> dict[str, Path]:
    """The sun cannot be reached; the others are slaves as a sample has them, and replicate to nobody."""
    lost = tmp_path / "lost"
    lost.mkdir()
    (lost / "hbase-site.xml").write_text(SITE)
    given = {f"{name}-slave": recorded(tmp_path, f"{name}-slave", sample) for name, sample in samples.items()}
    given["sun"] = lost
    for name in samples:
        target = tmp_path / f"{name}-master.status"
        given[f"{name}-master"] = rewritten(given[f"{name}-slave"], to=target, alter=lambda _: None, side="master")
    return given


def test_whom_to_promote_when_a_cluster_is_lost(tmp_path: Path) -> None:
    """Venus has the gap of the sample and Earth has all: by table and stream, whatever the clusters' own verdicts."""
    given = lost_master(tmp_path, {"earth": "complete", "venus": "gap"})
    result = paths(given, "--json")
    assert_valid(result.json, "paths")
    assert result.exit_code == 3, result
    (tables,) = result.json["lost"].values()
    assert list(result.json["lost"]) == ["sun"]
    assert {
        table: {name: (one["lacks"], one["holes"]) for name, one in held.items()} for table, held in tables.items()
    } == {"audit": {"earth": (0, 0), "venus": (0, 0)}, "orders": {"earth": (1, 0), "venus": (0, 1)}}
    assert tables["orders"]["venus"]["newest_ms"] > tables["orders"]["earth"]["newest_ms"]
    text = paths(given).stdout
    assert "another one has more of 1 stream" in " ".join(text.split())
    assert "venus has the newest entries of every table" in " ".join(text.split())
    assert max(map(len, text.splitlines())) <= 80


@pytest.mark.parametrize(
    ("change", "words"),
    [
        (None, "the table is not there"),
        ({"arrived_ms": 1_000, "born_ms": 90_000}, "emptied: on the slave the table"),
        ({"arrived_ms": 1_000, "born_ms": 500, "dropped_ms": {"f": 90_000}}, "emptied: on the slave the table"),
    ],
)
def test_who_has_an_emptied_table_is_not_promoted(tmp_path: Path, change: dict[str, Any] | None, words: str) -> None:
    """Its records of what has arrived outlive the rows."""
    given = lost_master(tmp_path, {"earth": "complete"})
    assert "earth has the newest entries of every table" in " ".join(paths(given).stdout.split())
    rewritten(given["earth-slave"], alter=of_orders(lambda row: None if change is None else detailed(row, **change)))
    (tables,) = paths(given, "--json").json["lost"].values()
    assert tables["orders"]["earth"]["doubt"].startswith(words)
    assert tables["audit"]["earth"]["doubt"] is None
    assert "None of them has the newest entries of every table" in " ".join(paths(given).stdout.split())


def test_nothing_is_left_of_a_cluster_that_is_lost() -> None:
    """Nobody is promoted."""
    found = PathsFound((), {}, (), (), {}, (), (), 0, {}, {"sun": {}})
    text = list(paths_lines(found))
    assert "sun cannot be reached, and none of the others has anything of it." in text
    assert not any("newest" in line for line in text)


@pytest.mark.parametrize(("letters", "is_table"), [(14, True), (15, False), (32, False)])
def test_long_names_fit_into_80_columns(letters: int, is_table: bool) -> None:
    """A line a pair where a column would cut them: names that begin alike stay apart."""
    names = [letter.rjust(letters, "n") for letter in "ab"]
    hop = Hop(names[0], "p" * 20, names[1])
    state = PathState(Reach.UNVERIFIABLE, Evidence.TIMESTAMPS, (f"{hop.source} to {hop.target} ({hop}): why",))
    matrix = {names[0]: {names[1]: state}}
    found = PathsFound(tuple(map(Station, names)), {}, (Edge(hop, False, state),), (), matrix, (), (), 0)
    lines = list(paths_lines(found))
    assert max(map(len, lines)) <= 80
    told = " ".join(" ".join(lines).split())
    assert all(name in told for name in names)
    assert any(line.startswith("from \\ to") for line in lines) is is_table
    assert f"status-tool run -i FILE --only hbase --peer {hop.peer}" in told


def test_who_wrote_where(tmp_path: Path) -> None:
    """Another master's puts and deletes are told by its name, those of clients as such."""
    files = chain(tmp_path)
    ways = {"": 1_000, IDS["earth"]: 2_000, f"{IDS['sun']},{IDS['earth']}": 3_000, "elsewhere": 500}
    written = of_orders(lambda row: detailed(row, written_by=ways, deleted_by={IDS["earth"]: 1_500}))
    rewritten(files["venus-slave"], alter=written)
    result = paths(files, "--json", "--from", "sun", "--from", "earth", "--to", "venus")
    assert_valid(result.json, "paths")
    assert result.json["written"]["venus"]["orders"] == [
        {"through": ["sun", "earth"], "written_ms": 3_000, "deleted_ms": None},
        {"through": ["earth"], "written_ms": 2_000, "deleted_ms": 1_500},
        {"through": [], "written_ms": 1_000, "deleted_ms": None},
        {"through": ["elsewhere"], "written_ms": 500, "deleted_ms": None},
    ]
    with_a_second_peer(files["sun-master"], cluster_id=IDS["venus"])
    told = " ".join(paths(files, "--from", "sun", "--from", "earth", "--to", "venus").stdout.split())
    assert "venus, table orders: written through sun and earth up to 1970-01-01T00:00:03.000Z; through earth" in told
    assert "deletes up to 1970-01-01T00:00:01.500Z; by its own clients up to 1970-01-01T00:00:01.000Z" in told
    assert "That alone makes its rows differ from those of each master" in told
    other = paths(files, "--table", "audit", "--from", "sun", "--from", "earth", "--to", "venus")
    assert "table orders" not in other.stdout, other
