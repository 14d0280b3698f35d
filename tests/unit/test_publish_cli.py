"""The command lines of publish, recovery-point, lost and `run -i --published`: options are obeyed or refused."""

from __future__ import annotations

import json
import re
from collections.abc import Callable
from contextlib import nullcontext
from pathlib import Path
from types import SimpleNamespace
from typing import Any, ClassVar

import pytest

from status_tool.cli import publishing
from status_tool.cli.main import main
from status_tool.cli.publishing import PublishRound, PublishService, _Publisher, published_content
from status_tool.cli.run import asked_of
from status_tool.errors import ConfigurationError, ConnectionFailed, StatusFileError
from status_tool.published.carriers import Carried
from status_tool.published.layout import Closing, FilePart
from status_tool.runs.recovery import PointAsked
from tests.unit.test_report import OUTCOME

CLOSING = Closing("m", "n", (FilePart("0" * 64, 1_000_000), FilePart("1" * 64, 500_000)), 5_000, 5_000, 30_000, "both")


@pytest.fixture
def asked(monkeypatch: pytest.MonkeyPatch) -> list[tuple[dict[str, Any], PublishService]]:
    """What publishing is begun with; it does not begin."""
    calls: list[tuple[dict[str, Any], PublishService]] = []

    def keep(what: dict[str, Any], service: PublishService) -> int:
        calls.append((what, service))
        return 0

    monkeypatch.setattr(publishing, "keep_publishing", keep)
    return calls


@pytest.mark.parametrize(
    ("arguments", "reason"),
    [
        *(([flag], f"{flag} does not go with publish") for flag in ("-m", "--explain", "-d", "--drained", "--resume")),
        *(([flag, "hdfs"], f"{flag} does not go with publish") for flag in ("-o", "--only")),
        (["-v"], "-v does not go with publish"),
        (["--report", "r.html"], "--report does not go with -m -o FILE"),
        (["-i", "x"], "-i checks FILE on the slave"),
        (["--published"], "-i checks FILE on the slave"),
        (["-f", "paths"], "-f is about HDFS files: it goes with --files-every MINUTES"),
        (["--deep"], "--deep is about HDFS files"),
        (["--interval", "0"], "--interval"),
        (["--nonsense"], "No such option"),
    ],
)
def test_what_does_not_go_with_publish(
    asked: list[Any], arguments: list[str], reason: str, capsys: pytest.CaptureFixture[str]
) -> None:
    """One line that names it."""
    assert main(["publish", *arguments]) == 2
    stderr = capsys.readouterr().err
    assert reason in stderr
    assert stderr.count("\n") == 1
    assert asked == []


@pytest.mark.parametrize(
    ("more", "is_same"),
    [
        ([], True),
        (["--thrift", "other:9090", "--interval", "5", "--metrics", "m.prom", "--json", "--wait", "7"], True),
        *((more, False) for more in (["--table", "b"], ["-s", "1700000000000"], ["--sample", "1"], ["--rows"])),
        *((["--files-every", "10", *more], False) for more in ([], ["--all-files"])),
    ],
)
def test_publishers_share_rounds_if_they_publish_the_same(
    asked: list[tuple[dict[str, Any], PublishService]], more: list[str], is_same: bool
) -> None:
    for arguments in ([], more):
        assert main(["publish", "--table", "a", *arguments]) == 0
    first, second = (published_content(what, with_files=service.files_every_min is not None) for what, service in asked)
    assert (first == second) is is_same


def test_the_options_of_run_m_are_obeyed(asked: list[tuple[dict[str, Any], PublishService]], tmp_path: Path) -> None:
    """They reach each round; its own ones the service."""
    key = tmp_path / "key"
    key.write_bytes(bytes(range(64)))
    key.chmod(0o600)
    paths = tmp_path / "paths"
    paths.write_text("/data\n")
    own = ["--interval", "5", "--files-every", "10", "--rounds", "3", "--metrics", str(tmp_path / "m.prom")]
    run = ["-s", "1700000000000", "--rows", "--sample", "2", "--sign-key", str(key), "-f", str(paths), "--wait", "7"]
    assert main(["publish", *own, *run, "--table", "a"]) == 0
    ((what, service),) = asked
    assert service == PublishService(5.0, 10.0, 3, tmp_path / "m.prom")
    one = asked_of({**what, "output": tmp_path / "out"})
    request = one.request()
    assert (request.side, request.wait_s, request.shutdown_ms) == ("master", 7.0, 1_700_000_000_000)
    assert (request.rows, request.sample_s, request.hdfs_paths) == ("doubtful", 2.0, ("/data",))
    assert request.only.tables == {"a"}
    assert one.key is not None


Made = Callable[..., tuple[_Publisher, list[Any]]]


@pytest.fixture
def publisher(
    asked: list[tuple[dict[str, Any], PublishService]], monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> Made:
    """Makes a publisher whose rounds write nothing, and what they ask for; `peers` are what ZooKeeper has."""

    def made(service: PublishService, *arguments: str, peers: list[Carried] | None = None) -> tuple[Any, list[Any]]:
        assert main(["publish", "--files-every", "1", *arguments]) == 0
        site = SimpleNamespace(thrift=lambda: None, status_table="replicationstatus", zookeeper=lambda: None)
        requests: list[Any] = []

        def write(_settings: Any, request: Any, file: Path, *_: Any) -> None:
            requests.append(request)
            file.write_bytes(b"x")

        one: Any = _Publisher(asked[-1][0], service, tmp_path)
        one._settings, one._table = site, SimpleNamespace(name="replicationstatus", require=lambda: None)
        monkeypatch.setattr(publishing, "unasked", lambda *_: None)
        monkeypatch.setattr(publishing, "write_side", write)
        monkeypatch.setattr(publishing, "put_file", lambda *_: (CLOSING, 7))
        monkeypatch.setattr(publishing, "ZooKeeper", _Session)
        monkeypatch.setattr(publishing, "carried", lambda *_: list(peers or ()))
        one._turns = SimpleNamespace(take=lambda: None, number=1)
        if peers is None:
            monkeypatch.setattr(one, "_carried", lambda: ())
        return one, requests

    return made


def test_files_go_with_it_every_few_minutes(publisher: Made, monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    """The first round has them, then those after so long; samples of rows only if they are asked for."""
    paths = tmp_path / "paths"
    paths.write_text("/data\n")
    made, requests = publisher(PublishService(30.0, files_every_min=10.0), "-f", str(paths), "--deep")
    now = [1_000.0]
    monkeypatch.setattr("status_tool.cli.publishing.time.monotonic", lambda: now[0])
    for _ in range(4):
        made._publish()
        now[0] += 300.0
    assert [one.hdfs for one in requests] == [True, False, True, False]
    assert [one.hdfs_paths for one in requests] == [("/data",), (), ("/data",), ()]
    assert {one.sample_s for one in requests} == {0.0}


def test_an_error_ends_its_round_alone(publisher: Made, monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    """But for a setting that is wrong from the beginning; the metrics say that it is down."""
    metrics = tmp_path / "m.prom"
    made, _ = publisher(PublishService(0.001, rounds=3, metrics=metrics))
    errors = iter([ConnectionFailed("no\nThrift"), ConfigurationError("later"), None])

    def publish() -> Any:
        if (error := next(errors)) is not None:
            raise error
        return PublishRound(closing=CLOSING, sent=7, notices=("a notice",))

    monkeypatch.setattr(made, "_publish", publish)
    told = [(one.exit_code, "status_tool_publish_up{} 1" in metrics.read_text(), one.line) for one in made.rounds()]
    assert [one[:2] for one in told] == [(2, False), (2, False), (0, True)]
    assert "NOT published: no Thrift; took" in told[0][2]
    assert told[2][2].endswith("; a notice")
    assert "status_tool_published_cut_timestamp_seconds{} 5.0" in metrics.read_text()
    made, _ = publisher(PublishService(1.0, metrics=metrics))
    errors = iter([ConfigurationError("at once")])
    monkeypatch.setattr(made, "_publish", publish)
    with pytest.raises(ConfigurationError, match="at once"):
        next(made.rounds())
    assert "status_tool_publish_up{} 0" in metrics.read_text()


def test_a_publisher_without_a_thrift_server_is_down_in_its_metrics(tmp_path: Path) -> None:
    """Those of an earlier one said that it was up."""
    metrics = tmp_path / "m.prom"
    metrics.write_text("status_tool_publish_up{} 1\n")
    assert main(["publish", "--zookeeper", "127.0.0.1:1/z", "--metrics", str(metrics)]) == 2
    assert "status_tool_publish_up{} 0" in metrics.read_text()


def test_metrics_that_cannot_be_written_are_refused(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """At once: a publisher runs for months."""
    assert main(["publish", "--zookeeper", "127.0.0.1:1/z", "--metrics", str(tmp_path / "nowhere" / "m")]) == 2
    assert "cannot write" in capsys.readouterr().err


def test_a_round_that_fails_is_handed_back(publisher: Made, monkeypatch: pytest.MonkeyPatch) -> None:
    """Also where that fails as well: the round's own error is told."""
    made, _ = publisher(PublishService(0.001, rounds=2))
    taken = []

    class Turns:
        number = 1

        def take(self) -> None:
            taken.append("taken")

        def hand_back(self) -> None:
            taken.append("handed back")
            raise ConnectionFailed("no Thrift")

    made._turns = Turns()  # type: ignore[assignment]

    def put(*_: Any) -> Any:
        if len(taken) < 3:
            raise StatusFileError("was damaged")
        return CLOSING, 7

    monkeypatch.setattr(publishing, "put_file", put)
    assert [done.error for done in made.rounds()] == ["was damaged", ""]
    assert taken == ["taken", "handed back", "taken"]


@pytest.mark.parametrize(
    ("peers", "reason"),
    [
        ([], "no enabled replication peer"),
        ([Carried("1", False, None, "add it")], "add it"),
        ([Carried("1", True, True, None), Carried("2", True, False, "it would stop")], "it would stop"),
    ],
)
def test_only_what_travels_and_stops_no_peer_is_published(publisher: Made, peers: list[Carried], reason: str) -> None:
    made, _ = publisher(PublishService(1.0), peers=peers)
    with pytest.raises(ConfigurationError, match=reason):
        made._carried()


def test_a_peer_that_cannot_be_seen_is_told_once_in_a_while(publisher: Made) -> None:
    """Publishing goes on: the slave may be beyond this host's reach."""
    made, _ = publisher(PublishService(1.0), peers=[Carried("1", True, None, None)])
    (told,) = made._carried()
    assert "cannot be seen from here" in told
    assert made._carried() == ()


def test_a_peer_added_meanwhile_is_looked_at_before_the_next(publisher: Made, monkeypatch: pytest.MonkeyPatch) -> None:
    """If its cluster lacks the table, that file would stop whatever it ships."""
    known = [Carried("1", True, True, None)]
    made, _ = publisher(PublishService(1.0), peers=known)
    assert made._carried() == ()
    monkeypatch.setattr(_Session, "found", ["1", "2"])
    known.append(Carried("2", True, False, "it would stop"))
    for _ in range(2):
        with pytest.raises(ConfigurationError, match="it would stop"):
            made._carried()


class _Session(nullcontext[Any]):
    found: ClassVar = ["1"]
    endpoint = None

    def __init__(self, *_: Any) -> None:
        super().__init__(self)

    def peers(self) -> list[str]:
        return self.found


def test_a_round_in_one_line_and_as_json() -> None:
    done = PublishRound(0, 1.25, CLOSING, 600)
    assert done.line == (
        "1970-01-01T00:00:00Z published the cut 1970-01-01T00:00:05.000Z with HDFS files: 1500000 bytes, 600 of them "
        "sent; took 1.2 s"
    )
    document = json.loads(json.dumps(done.document(7)))
    assert (document["bytes"], document["sent_bytes"], document["cells"]) == (1_500_000, 600, 2)
    left = PublishRound(0, 0.1, other="host:1")
    assert "left out: host:1 has claimed the round" in left.line
    assert (left.exit_code, left.document(1)["published"]) == (0, False)


@pytest.mark.parametrize(
    ("arguments", "reason"),
    [
        (["-i", "--published", "-o", "x"], "-i checks FILE on the slave"),
        (["-i", "x", "--published"], "-i FILE names a file, --published takes the newest"),
        (["-i", "--published", "--slave-status", "y"], "--published reads a table of the slave"),
        (["--published", "--drained"], "--drained does not go with -i FILE"),
    ],
)
def test_published_takes_files_place(arguments: list[str], reason: str, capsys: pytest.CaptureFixture[str]) -> None:
    """`-i --published` is `--published`."""
    assert main(["run", *arguments]) == 2
    assert reason in capsys.readouterr().err


@pytest.mark.parametrize(
    ("arguments", "wanted", "with_files"),
    [
        (["-i", "--published"], None, False),
        (["--published"], None, False),
        (["-i", "--published=abc", "--only", "hdfs"], "abc", True),
    ],
)
def test_the_newest_published_file_is_fetched(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path, arguments: list[str], wanted: str | None, with_files: bool
) -> None:
    """Of the master that is named, with files where only they are checked."""
    calls: list[tuple[str | None, bool]] = []

    def fetch(_settings: Any, cluster: str | None, _path: Path, _key: Any, *, with_files: bool, **_: Any) -> list[str]:
        calls.append((cluster, with_files))
        raise ConfigurationError("here")

    monkeypatch.setattr("status_tool.published.newest.fetch_newest", fetch)
    monkeypatch.setenv("HBASE_CONF_DIR", str(tmp_path))
    metrics = tmp_path / "m.prom"
    assert main(["run", *arguments, "--metrics", str(metrics)]) == 2
    assert calls == [(wanted, with_files)]
    # Else the verdict before would look like today's.
    assert 'status_tool_up{master="",slave="",peer=""} 0' in metrics.read_text()


@pytest.mark.parametrize("only", [[], ["--only", "hdfs"]])
def test_a_watch_of_what_is_published_tells_the_recovery_point(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path, only: list[str]
) -> None:
    """In the metrics of each round, of the master and the tables that are watched; files have none."""
    asked: list[PointAsked] = []

    def find_point(_settings: Any, what: PointAsked, _say: Any) -> Any:
        asked.append(what)
        return SimpleNamespace(points={"": 5_000, "a": 7_000, "b": None})

    for name, fake in (
        ("take_spark", lambda: None),
        ("_Session.ensure", lambda *_: None),
        ("fetch_published", lambda *_: tmp_path / "published.status"),
        ("checked", lambda *_: OUTCOME),
        ("find_point", find_point),
    ):
        monkeypatch.setattr(f"status_tool.cli.watching.{name}", fake)
    monkeypatch.setattr("status_tool.cli.watch.take_spark", lambda: None)
    metrics = tmp_path / "m.prom"
    which = ["--published=c1", "--rounds", "1", *only, *([] if only else ["--table", "a", "--peer", "2"])]
    assert main(["watch", *which]) == OUTCOME.exit_code
    assert asked == []
    assert main(["watch", *which, "--metrics", str(metrics)]) == OUTCOME.exit_code
    found = re.findall(r'recovery_point_timestamp_seconds{.*table="(.*)"} (.*)', metrics.read_text())
    if only:
        assert (asked, found) == ([], [])
        return
    assert found == [("", "5.0"), ("a", "7.0")]
    ((scope, master),) = [(one.scope, one.master_cluster_id) for one in asked]
    assert (scope.tables, scope.peer_id, scope.check_hdfs, master) == (frozenset("a"), "2", False, "c1")


def test_lost_needs_the_slave(capsys: pytest.CaptureFixture[str]) -> None:
    for arguments, reason in (
        ([], "lost needs the slave: --slave-conf DIR"),
        (["--slave-thrift", "h:1"], "lost needs the slave"),
        (["--slave-conf", ".", "--rows=x"], "--rows=x: expected --rows or --rows=all"),
        (["--slave-conf", ".", "--missing", "-"], "--missing - does not go with lost"),
    ):
        assert main(["lost", *arguments]) == 2
        assert reason in capsys.readouterr().err


def test_lost_takes_the_words_of_the_runbook(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    """`--since-recovery-point` is what it does anyway; the options of `run` have their meaning."""
    told: list[tuple[Any, Any]] = []

    def tell(_master: Any, _slave: Any, wait_s: float, check: Any, **_: Any) -> int:
        told.append((wait_s, check))
        return 0

    monkeypatch.setattr("status_tool.cli.lost._tell", tell)
    monkeypatch.setattr("status_tool.cli.lost.take_spark", lambda: None)
    where = ["--slave-conf", str(tmp_path), "--table", "a", "--peer", "2", "--rows"]
    assert main(["lost", *where]) == 0
    assert main(["lost", "--since-recovery-point", *where, "--wait", "3"]) == 0
    assert [wait_s for wait_s, _ in told] == [60.0, 3.0]
    assert {(one.scope.peer_id, one.scope.tables, one.rows.every) for _, one in told} == {("2", frozenset("a"), False)}
    # Whoever asks what was lost since a time has accepted nothing for the checks to come.
    assert {check.records_words for _, check in told} == {False}


def test_the_metrics_of_a_check_are_not_those_of_a_publisher(
    asked: list[tuple[dict[str, Any], PublishService]], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """What status-tool.toml sets as `metrics` is the textfile of checks; nor are they those of a recovery point."""
    file = tmp_path / "status-tool.toml"
    file.write_text('metrics = "checks.prom"\n')
    file.chmod(0o600)
    monkeypatch.setenv("STATUS_TOOL_CONFIG", str(file))
    assert main(["publish"]) == 0
    ((_, service),) = asked
    assert service.metrics is None
    told: list[Path | None] = []

    def tell(*_: Any, metrics: Path | None, **__: Any) -> int:
        told.append(metrics)
        return 0

    monkeypatch.setattr("status_tool.cli.recovery_point.tell_point", tell)
    monkeypatch.setattr("status_tool.cli.recovery_point.take_spark", lambda: None)
    assert main(["recovery-point"]) == 0
    assert main(["recovery-point", "--metrics", "point.prom"]) == 0
    assert told == [None, Path("point.prom")]
