"""`--explain` tells the time that the last run of the kind took; a cache that is missing or damaged is no error."""

from __future__ import annotations

import json
import os
import stat
import subprocess
import sys
from pathlib import Path

import pytest

from status_tool.cache import CACHE_VARIABLE
from status_tool.cli.main import main
from status_tool.runs.pace import LastRun, RunKind, expected, last_run, remember, rows_read
from tests.pair import REPOSITORY
from tests.unit.test_webhdfs import FakeHdfs, fake  # noqa: F401  a fixture

KIND = RunKind("run -m -o", "h:1:/hbase", hbase=True, hdfs=True)
LAST = LastRun(took_ms=60_000, rows=100, ended_ms=86_400_000)


@pytest.fixture
def cache(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """The user's cache, empty."""
    folder = tmp_path / "cache"
    monkeypatch.setenv(CACHE_VARIABLE, str(folder))
    return folder


def test_the_last_run_of_each_kind_is_kept(cache: Path) -> None:
    """Of another kind nothing is known; a later run replaces it; the file is its owner's alone, and bounded."""
    assert last_run(KIND) is None
    remember(KIND, LAST)
    later = LastRun(5_000, 100, 86_500_000)
    remember(KIND, later)
    assert last_run(KIND) == later
    assert last_run(RunKind("run -m -o", "h:1:/hbase", hbase=True, hdfs=True, deep=True)) is None
    assert stat.S_IMODE((cache / "runs.json").stat().st_mode) == 0o600
    for number in range(150):
        remember(RunKind("run -o", str(number), hbase=True, hdfs=False), LastRun(1, 1, 90_000_000 + number))
    assert len(json.loads((cache / "runs.json").read_text())["runs"]) == 100
    assert last_run(KIND) is None


@pytest.mark.parametrize(
    "text",
    [
        *("", "{", "[]", "[" * 100_000, "\x00", '{"version":2}', '{"version":1,"runs":[]}'),
        '{"version":1,"runs":{KEY:5}}',
        '{"version":1,"runs":{KEY:{"took_ms":-1,"rows":1,"ended_ms":1}}}',
        '{"version":1,"runs":{KEY:{"took_ms":true}}}',
    ],
)
def test_a_damaged_cache_knows_nothing(cache: Path, text: str) -> None:
    """And the next run mends it."""
    cache.mkdir(mode=0o700)
    (cache / "runs.json").write_text(text.replace("KEY", json.dumps(KIND.key)))
    assert last_run(KIND) is None
    remember(KIND, LAST)
    assert last_run(KIND) == LAST


def test_a_cache_that_cannot_be_used_is_no_error(cache: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Others may write to it, it cannot be written, or it is off."""
    remember(KIND, LAST)
    (cache / "runs.json").chmod(0o666)
    assert last_run(KIND) is None
    (cache / "runs.json").unlink()
    (cache / "runs.json").mkdir()
    remember(KIND, LAST)
    assert last_run(KIND) is None
    monkeypatch.setenv(CACHE_VARIABLE, "off")
    remember(KIND, LAST)
    assert last_run(KIND) is None


def test_in_words() -> None:
    """In proportion to what is there now; without a number as then."""
    then = "the last such run, 1970-01-02T00:00:00.000Z, took 1 min 0 s for 100 streams and files"
    assert expected(LAST) == expected(LAST, 100) == f"about 1 min 0 s: {then}"
    assert expected(LAST, 200) == f"about 2 min 0 s: {then}; there are 200 now"
    assert expected(LastRun(500, 0, 0), 9).startswith("about 500 ms: ")
    assert rows_read({"stream": 1, "segment": 2, "file": 4, "server": 8}) == 7


def test_a_plan_tells_the_time_of_the_last_run(
    cache: Path,
    fake: FakeHdfs,  # noqa: F811
    tmp_path: Path,
    capsys: pytest.CaptureFixture[str],
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """After it, of this form only, as text and as JSON; a plan itself is no run."""
    monkeypatch.setattr("status_tool.clients.webhdfs.WebHdfs.summary", lambda *_: (15, 999))
    paths = tmp_path / "paths"
    paths.write_text("/data\n")
    command = ["run", "-o", str(tmp_path / "f"), "--only", "hdfs", "-f", str(paths), "--webhdfs", fake.url]
    plan = [*command, "--explain"]
    assert main(plan) == 0
    assert "expected time" not in capsys.readouterr().out
    assert main(command) == 0
    capsys.readouterr()
    assert main(plan) == 0
    assert "\nexpected time: about " in capsys.readouterr().out
    assert main([*plan, "--json"]) == 0
    (told,) = (one["value"] for one in json.loads(capsys.readouterr().out)["plan"] if one["what"] == "expected time")
    assert told.endswith(" for 15 streams and files")
    assert main([*plan, "-m"]) == 0
    assert "expected time" not in capsys.readouterr().out


@pytest.mark.slow
@pytest.mark.spark
def test_a_check_tells_it_as_well(cache: Path) -> None:
    """By FILE's cluster."""
    sides = [str(REPOSITORY / "sample_status" / "gap" / f"{side}.status") for side in ("master", "slave")]
    command = [sys.executable, "-m", "status_tool", "run", "-i", sides[0], "--slave-status", sides[1]]
    # So that no archive of classes is made in it.
    command += ["--spark-conf", "spark.driver.extraJavaOptions=-Xshare:auto"]
    environment = os.environ | {CACHE_VARIABLE: str(cache)}
    told = []
    for exit_code, more in ((0, ["--explain"]), (1, []), (0, ["--explain"])):
        done = subprocess.run([*command, *more], capture_output=True, text=True, timeout=900, env=environment)
        assert done.returncode == exit_code, done.stderr
        told.append("expected time: about " in done.stdout)
    assert told == [False, False, True]
