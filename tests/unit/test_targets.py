"""No output is an input, and no two outputs are the same file, however their names are spelled."""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import pytest

from status_tool.cli.run_options import DECLARED
from status_tool.cli.targets import INPUTS, OUTPUTS
from status_tool.errors import OutputError
from status_tool.runs.write import dump_file
from tests.pair import REPOSITORY, tool_environment, tool_here
from tests.unit.test_cli import assert_refused

PROOF = REPOSITORY / "sample_status" / "complete" / "master.status"


@pytest.fixture
def proof(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """The only proof there is, in the working directory, which is empty but for it."""
    folder = tmp_path / "work"
    folder.mkdir()
    monkeypatch.chdir(folder)
    file = folder / "master.status"
    file.write_bytes(PROOF.read_bytes())
    return file


def refused(proof: Path, arguments: list[str | Path], *words: str) -> None:
    """Exit code 2 and one line; every file is as it was."""
    before = {path: path.read_bytes() for path in Path().rglob("*") if path.is_file()}
    assert_refused(tool_here(*arguments), *words)
    assert {path: path.read_bytes() for path in Path().rglob("*") if path.is_file()} == before
    assert proof.read_bytes() == PROOF.read_bytes()


def symlink(proof: Path) -> str:
    """Another name of the proof."""
    Path("other").symlink_to(proof)
    return "other"


def hard_link(proof: Path) -> str:
    """Another name of its very bytes."""
    os.link(proof, "other")
    return "other"


def linked_folder(proof: Path) -> str:
    """Its folder under another name."""
    Path("elsewhere").symlink_to(proof.parent)
    return f"elsewhere/{proof.name}"


def test_no_file_of_a_witness_is_written_over(proof: Path) -> None:
    """Nor a file written that cannot say where it comes from."""
    Path("store").mkdir()
    Path("store", "1.set").write_bytes(b"entries")
    refused(proof, ["run", "-m", "-o", "store/1.set", "--only", "hbase", "--witness", "store"], "store/1.set")
    refused(
        proof, ["run", "-m", "-o", "f.json", "--only", "hbase", "--witness", "store"], "of the original tool's format"
    )
    refused(proof, ["run", "-m", "-o", "f", "--only", "hbase", "--witness", "store", "--rows"], "--rows", "--witness")


SPELLINGS: list[Callable[[Path], str]] = [
    str,
    lambda proof: proof.name,
    lambda proof: f"../{proof.parent.name}/./{proof.name}",
    symlink,
    hard_link,
    linked_folder,
]


@pytest.mark.parametrize("spelled", SPELLINGS)
@pytest.mark.parametrize("option", ["--report", "--metrics", "--repair-script", "--differ", "--missing", "--log-file"])
def test_an_output_is_not_the_proof(proof: Path, option: str, spelled: Callable[[Path], str]) -> None:
    """Neither FILE nor FILE2, by any of their names."""
    refused(proof, ["run", "-i", proof, option, spelled(proof)], f"{option} ", "-i reads")
    refused(proof, ["run", "-i", "a", "--slave-status", proof, option, str(proof)], option, "--slave-status reads")


@pytest.mark.parametrize("name", INPUTS)
def test_no_input_is_overwritten(proof: Path, name: str) -> None:
    paths = {"status_file": [], "sign_key": ["-i", "f"]}.get(name, ["-i", "f"])
    principal = ["--principal", "p"] if name == "keytab" else []
    line: list[str | Path] = ["run", *paths, DECLARED[name].flag, proof, *principal, "--report", proof]
    refused(proof, line, "--report", f"{DECLARED[name].flag} reads")


@pytest.mark.parametrize(
    ("line", "words"),
    [
        ("run -m -o master.status --sign-key master.status", ["-o", "--sign-key reads"]),
        ("run -m -o master.status -f master.status", ["-o", "-f reads"]),
        ("run -m -o out --log-file out", ["-o and --log-file", "same file"]),
        ("run -m -o out --log-file ./out.resume", ["out.resume", "same file"]),
        ("run -m -o out --resume -f out.resume", ["out.resume", "-f reads"]),
        ("run -i f --report x --metrics ./x", ["--report and --metrics"]),
        ("run -i f --missing x --unverifiable x", ["--missing and --unverifiable"]),
        ("run -i f --report conf/hbase-site.xml --conf-dir conf", ["--conf-dir reads"]),
        ("run -i f --follow --report conf/core-site.xml --master-conf conf", ["--master-conf reads"]),
        ("run -i f -d --debug-dir . --differ streams.jsonl", ["--differ", "--debug-dir"]),
        ("run -i streams.jsonl -d --debug-dir .", ["-i", "--debug-dir"]),
        ("watch -i master.status --report master.status", ["--report", "-i reads"]),
        ("watch -i master.status --history master.status", ["--history", "-i reads"]),
        ("watch -i f --history x --metrics x", ["--metrics and --history"]),
        ("watch --from . --metrics x.prom", ["--metrics", "--from"]),
        ("topology --report conf/hbase-site.xml --conf-dir conf", ["--report", "--conf-dir reads"]),
        ("rows --table t --master-conf conf --log-file conf/hdfs-site.xml", ["--log-file", "--master-conf reads"]),
    ],
)
def test_lines_that_would_destroy_something(proof: Path, line: str, words: list[str]) -> None:
    Path("conf").mkdir()
    refused(proof, [*line.split()], *words)


def test_a_cluster_named_by_the_environment(proof: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Its site files are inputs as well; so is the file of defaults."""
    Path("conf").mkdir()
    monkeypatch.setenv("HBASE_CONF_DIR", "conf")
    refused(proof, ["run", "-i", proof, "--report", "conf/hbase-site.xml"], "$HBASE_CONF_DIR reads")
    monkeypatch.delenv("HBASE_CONF_DIR")
    Path("defaults.toml").write_text("")
    monkeypatch.setenv("STATUS_TOOL_CONFIG", "defaults.toml")
    refused(proof, ["run", "-i", proof, "--report", "defaults.toml"], "the command itself reads")


def test_stdout_is_an_output(proof: Path) -> None:
    """A shell's `>>` would add the verdict to the proof."""
    command = [sys.executable, "-m", "status_tool", "run", "-i", str(proof)]
    with proof.open("ab") as stdout:
        done = subprocess.run(command, stdout=stdout, stderr=subprocess.PIPE, text=True, env=tool_environment())
    assert (done.returncode, done.stderr.count("\n")) == (2, 1)
    assert "stdout is what -i reads" in done.stderr
    assert proof.read_bytes() == PROOF.read_bytes()


def test_files_that_are_no_matter(proof: Path) -> None:
    """The line goes on, and ends with what is wrong with it otherwise."""
    os.link(proof, "copy")
    line = ("--report", "a.html", "--metrics", "b.prom", "--log-file", "copy.log", "--missing", "-")
    assert_refused(tool_here("run", "-i", "none", *line), "there is no status file none")
    assert Path("b.prom").exists()


def test_every_option_that_names_a_file_is_known() -> None:
    """A new one has to be put into one of the tables."""
    import inspect

    from status_tool.cli import lost, publish, recovery_point, rows, run, targets, topology, watch

    asked = set()
    services = (watch.watch, publish.publish, recovery_point.recovery_point)
    for command in (run.run, *services, rows.rows, topology.topology, lost.lost):
        signature = inspect.signature(command, eval_str=True)
        asked |= {name for name, one in signature.parameters.items() if "Path" in str(one.annotation)}
    # One of --witness may be an address instead.
    assert not asked & {*targets.FOLDERS}
    assert asked == {*targets.INPUTS, *targets.OUTPUTS, *targets.SITE_FOLDERS, "debug_dir", "folder"}
    assert {*targets.INPUTS} & {*targets.OUTPUTS} == set()
    assert set(OUTPUTS) >= {"history", "log_file"}


def test_a_debug_dir_that_cannot_be_made_is_told(proof: Path) -> None:
    """Before anything is read, which may take hours; by `run -m`, too, which dumps what it has written."""
    refused(
        proof, ["run", "-i", "f", "-d", "--debug-dir", f"{proof.name}/dump"], "cannot write into", "is not a folder"
    )
    with pytest.raises(OutputError, match=r"cannot write into master\.status: File exists"):
        dump_file(Path("none"), Path(proof.name))
