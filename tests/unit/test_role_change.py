"""The steps of a planned change of roles: their order, the peers that are turned, and commands that parse."""

from __future__ import annotations

import json
from typing import Any

import pytest

from status_tool.cli import switchover as command
from status_tool.cli.defaults import FILE_VARIABLE
from status_tool.cli.main import main
from status_tool.errors import UsageError
from status_tool.explain.role_change import BY_HAND, SHELL, TOOL, Move, Naming, switch_steps
from status_tool.rules.graph import Station
from status_tool.runs import graph_check
from tests.lab.shell import parsed
from tests.unit.test_doc_commands import parse
from tests.unit.test_graph import graph


def steps(stations: list[Station], old: str = "a", new: str = "b") -> list[Move]:
    every = " ".join(f"--cluster={one.name}=/etc/{one.name}" for one in stations)
    where = {one.name: Naming(f"--conf-dir=/etc/{one.name}", f"--conf-dir=/etc/{one.name}") for one in stations}
    return switch_steps(stations, old, new, where, f"status-tool paths {every}")


def shell(found: list[Move]) -> list[tuple[str, str]]:
    return [(step.cluster, step.command) for step in found if step.how == SHELL]


def test_a_master_and_a_slave() -> None:
    """A peer back is added before writes stop; nothing is switched before the check of the shutdown holds."""
    found = steps(graph("ab"))
    assert shell(found) == [("b", "add_peer 'a', CLUSTER_KEY => 'zk:2181:/a'")]
    commands = [step.command for step in found]
    order = ["add_peer", "stop everything", "shutdown-time record", "run -m", "run -i", "clear", "start everything"]
    places = [next(at for at, one in enumerate(commands) if words in one) for words in order]
    assert places == sorted(places)
    assert all(step.check for step in found)
    assert {step.how for step in found} == {SHELL, TOOL, BY_HAND}
    for step in found:
        if step.how == TOOL:
            parse(step.command)


def test_files_are_checked_also_where_no_peer_leads_to_the_new_master() -> None:
    """By paths over a cluster in the middle, `paths` sees HBase alone."""
    commands = [step.command for step in steps(graph("ab bc"), "a", "c") if step.how == TOOL]
    written = commands.index("status-tool run -m --only hdfs -o a.status --conf-dir=/etc/a")
    assert commands[written + 1] == "status-tool run -i a.status --only hdfs --wait 300 --conf-dir=/etc/c"
    assert commands[written + 2].endswith("--from a --wait 300")
    for one in commands:
        parse(one)


def test_a_cycle_needs_no_peer() -> None:
    """From b all others are reached."""
    assert shell(steps(graph("ab bc ca"))) == []


def test_other_slaves_are_reached_from_the_new_master() -> None:
    """A star: by way of the old master. A chain: its end is reached as before."""
    assert [one[1][:12] for one in shell(steps(graph("ab ac")))] == ["add_peer 'a'"]
    assert [one[1][:14] for one in shell(steps(graph("ab bc"), "a", "c"))] == ["add_peer 'a', ", "enable_peer 'a"]


def test_a_peer_back_over_a_cluster_in_the_middle_ships_nothing_before_it_has_filters() -> None:
    """No peer of the old master says which: without any it would ship every table."""
    found = [step for step in steps(graph("ab bc"), "a", "c") if step.how == SHELL or "filters" in step.command]
    assert [step.how for step in found] == [SHELL, BY_HAND, SHELL]
    assert found[0].command.endswith("STATE => 'DISABLED'")
    assert "give peer a the filters" in found[1].command


def test_each_peer_forth_has_one_back() -> None:
    """Two peers that share the tables between them."""
    (a, b) = graph("ab ab")
    for number, peer in enumerate(a.peers or ()):
        peer |= {"replicate_all": False, "table_cfs": {f"t{number}": []}}
    added = [parsed(one)[1] for _, one in shell(steps([a, b]))]
    assert [(name, list(more["TABLE_CFS"])) for name, more in added] == [("a", ["t0"]), ("a_2", ["t1"])]


def test_a_disabled_peer_that_is_not_needed_stays_so() -> None:
    """A cluster that was lost and is back holds old writes: a -> c -> b is open to them, a -> b alone leads there."""
    stations = graph("ab ac cb")
    (peer,) = stations["abc".index("c")].peers or ()
    peer["enabled"] = False
    assert all("enable_peer" not in command for _, command in shell(steps(stations)))


def test_disabled_peers_on_the_way_are_enabled() -> None:
    """The one that leads there at first, the one that leads back later."""
    found = steps(graph("ab ba", enabled=False))
    assert shell(found) == [("a", "enable_peer '1'"), ("b", "enable_peer '2'")]
    assert found[0].how == SHELL
    # It may hold what b wrote as a master before it was lost.
    back = next(step for step in found if step.command == "enable_peer '2'")
    assert "`status-tool queues` there shows what waits for 2" in back.check


@pytest.mark.parametrize(
    ("filters", "commands"),
    [
        (
            {"replicate_all": False, "namespaces": ["n"], "table_cfs": {"t'": ["f", "g"], "u": []}},
            [
                "add_peer 'a', CLUSTER_KEY => 'zk:2181:/a', NAMESPACES => ['n'], "
                "TABLE_CFS => { 't\\'' => ['f', 'g'], 'u' => [] }"
            ],
        ),
        (
            {"exclude_namespaces": ["n"], "exclude_table_cfs": {"t": ["f"]}},
            [
                "add_peer 'a', CLUSTER_KEY => 'zk:2181:/a', STATE => 'DISABLED'",
                "set_peer_exclude_namespaces 'a', ['n']",
                "set_peer_exclude_tableCFs 'a', { 't' => ['f'] }",
                "enable_peer 'a'",
            ],
        ),
        (
            {"replicate_all": False},  # it ships nothing
            [
                "add_peer 'a', CLUSTER_KEY => 'zk:2181:/a', STATE => 'DISABLED'",
                "set_peer_replicate_all 'a', false",
                "enable_peer 'a'",
            ],
        ),
    ],
)
def test_a_peer_back_has_the_filters_of_the_one_forth(filters: dict[str, Any], commands: list[str]) -> None:
    """It ships nothing else before it has them."""
    told = [one for _, one in shell(steps(graph("ab", **filters)))]
    assert told == commands
    read = [parsed(one) for one in told]
    assert [name for name, _ in read] == [one.partition(" ")[0] for one in commands]
    if "table_cfs" in filters:
        assert read[0][1][1]["TABLE_CFS"] == filters["table_cfs"]


def test_clusters_that_are_not_connected_are_refused() -> None:
    """The new master would lack everything."""
    with pytest.raises(UsageError, match="no path leads from b to a"):
        steps(graph("ab"), "b", "a")


def test_the_command(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str], tmp_path: Any) -> None:
    """Text and JSON; clusters that do not answer, and files, are refused."""
    known = {one.name: one for one in graph("ab")}
    monkeypatch.setattr(graph_check, "station_by_zookeeper", lambda name, _: known[name])
    quorum = "<property><name>hbase.zookeeper.quorum</name><value>zk</value></property>"
    given = []
    for name in "ab":
        (tmp_path / name).mkdir()
        (tmp_path / name / "hbase-site.xml").write_text(f"<configuration>{quorum}</configuration>")
        given.append(f"--cluster={name}={tmp_path / name}")
    assert main(["switchover", *given, "--from", "a", "--to", "b"]) == 0
    text = capsys.readouterr().out
    assert text.startswith("From a to b: ")
    assert f"status-tool shutdown-time record --conf-dir={tmp_path / 'a'}" in text
    assert main(["switchover", *given, "--from", "a", "--to", "b", "--json"]) == 0
    document = json.loads(capsys.readouterr().out)
    assert {"cluster", "how", "command", "check"} == set(document["steps"][0])
    configured = tmp_path / "status-tool.toml"
    tables = (
        f'[clusters.{name}]\nconf-dir = ["{tmp_path / name}", "{tmp_path}"]\nwebhdfs = "http://{name}:1"\n'
        for name in "ab"
    )
    configured.write_text("".join(tables))
    monkeypatch.setenv(FILE_VARIABLE, str(configured))
    assert main(["switchover", "--from", "a", "--to", "b"]) == 0
    text = capsys.readouterr().out
    named = f"--conf-dir={tmp_path / 'a'} --conf-dir={tmp_path} --webhdfs=http://a:1"
    assert f"status-tool run -m -o a.status {named}\n" in text, text
    assert "status-tool paths --from a --to b" in text
    for line in text.splitlines():
        if line.startswith("   status-tool "):
            parse(line.strip())
    assert main(["switchover", *given, "--from", "a", "--to", "a"]) == 2
    known["b"] = Station("b")
    assert main(["switchover", *given, "--from", "a", "--to", "b"]) == 2
    assert "b cannot be reached" in capsys.readouterr().err
    known["b"] = Station("b", elsewhere="they are in files")
    assert main(["switchover", *given, "--from", "a", "--to", "b"]) == 2
    assert "the peers of b are not known: they are in files" in capsys.readouterr().err
    assert command.switchover.__doc__
