"""docs/watch: the recipes parse, and the tool takes their command lines."""

from __future__ import annotations

import json
import re
import runpy
import shlex
import subprocess
import sys
import types
from configparser import ConfigParser
from dataclasses import replace
from pathlib import Path
from typing import Any
from unittest.mock import MagicMock

import pytest
import yaml

from status_tool import __version__
from status_tool.cli.main import main
from status_tool.report.json_report import json_report
from status_tool.vocabulary.outcome import Outcome
from status_tool.vocabulary.verdicts import Status, Verdict
from tests.pair import JAR, REPOSITORY
from tests.unit.test_report import GAP, HBASE, OUTCOME, printed

RECIPES = REPOSITORY / "docs" / "watch"


def pods(name: str) -> list[dict[str, Any]]:
    """Of all documents of a manifest."""
    found = []
    for document in yaml.safe_load_all((RECIPES / name).read_text()):
        spec = document["spec"]
        spec = spec.get("jobTemplate", {}).get("spec", spec)
        if "template" in spec:
            found.append(spec["template"]["spec"])
    return found


def containers(name: str) -> list[dict[str, Any]]:
    """Of all documents of a manifest."""
    return [container for pod in pods(name) for container in pod["containers"]]


def unit() -> ConfigParser:
    parser = ConfigParser(strict=True, interpolation=None)
    parser.optionxform = str  # type: ignore[assignment]
    parser.read(RECIPES / "status-tool-watch.service")
    return parser


def command_lines() -> dict[str, list[str]]:
    lines = {"systemd": shlex.split(unit()["Service"]["ExecStart"])}
    for name in ("deployment.yaml", "cronjob.yaml"):
        [container] = containers(name)
        lines[name] = [*container["command"], *container["args"]]
    assert all(line[0].endswith("status-tool") for line in lines.values())
    return {name: line[1:] for name, line in lines.items()}


@pytest.mark.parametrize("name", command_lines())
def test_the_tool_takes_the_command_line(name: str, capsys: pytest.CaptureFixture[str]) -> None:
    """It refuses no option: what it misses are the folders of that machine."""
    assert main(command_lines()[name]) == 2
    error = capsys.readouterr().err
    assert "/srv/status" in error or "/etc/hbase" in error or "/var/lib/status-tool" in error, error


def test_systemd_takes_its_end_for_what_it_is() -> None:
    """SIGTERM is 143."""
    assert unit()["Service"]["SuccessExitStatus"] == "143"


INSTRUCTIONS = {"FROM", "WORKDIR", "COPY", "RUN", "USER", "ENTRYPOINT", "CMD"}


def stages() -> dict[str, list[tuple[str, str]]]:
    """Of the Containerfile: by name, or number where it has none, its instructions after FROM, and FROM itself."""
    text = (RECIPES / "Containerfile").read_text().replace("\\\n", " ")
    lines = [line for line in text.splitlines() if line.strip() and not line.startswith("#")]
    found: dict[str, list[tuple[str, str]]] = {}
    for line in lines:
        instruction, _, rest = line.partition(" ")
        if instruction == "FROM":
            name = rest.partition(" AS ")[2] or str(len(found))
            found[name] = []
        list(found.values())[-1].append((instruction, rest.strip()))
    return found


def is_sent(path: Path) -> bool:
    """Whether .dockerignore, of which the last line that fits counts, lets a builder see it."""
    sent = True
    for line in (REPOSITORY / ".dockerignore").read_text().splitlines():
        pattern = line.removeprefix("!")
        if pattern == "*" or path.is_relative_to(pattern):
            sent = line.startswith("!")
    return sent


def test_the_image_is_made_of_what_is_there() -> None:
    """Known instructions, images by plain names, and files of this tree or of a stage before."""
    before: list[str] = []
    for name, instructions in stages().items():
        assert {instruction for instruction, _ in instructions} <= INSTRUCTIONS
        image = instructions[0][1].partition(" AS ")[0]
        assert re.fullmatch(r"[a-z]+:[a-z0-9.-]+", image), image
        for _, rest in (one for one in instructions if one[0] == "COPY"):
            *sources, target = rest.split()
            assert target.startswith("./")
            if sources[0].startswith("--from="):
                assert sources[0].removeprefix("--from=") in before
                assert sources[1:] == [f"/src/{JAR.relative_to(REPOSITORY / 'coprocessor_stubs')}"]
            else:
                assert [one for one in sources if not ((REPOSITORY / one).exists() and is_sent(Path(one)))] == []
        for mounted in re.findall(r"--mount=\S*from=([^,\s]+)", " ".join(rest for _, rest in instructions)):
            assert mounted in before
        before.append(name)


def test_the_image_runs_the_tool_as_a_user() -> None:
    """Nobody's but its own: Kubernetes asks for a number; a Python and a Java that the tool takes; one version."""
    last = list(stages().values())[-1]
    said = dict(last)
    assert re.fullmatch(r"[1-9][0-9]+", said["USER"])
    assert any(f"--uid {said['USER']} " in rest for _, rest in last)
    assert json.loads(said["ENTRYPOINT"]) == ["status-tool"]
    assert said["FROM"].startswith("python:3.11-")
    assert any("openjdk-17-jre-headless" in rest for _, rest in last)
    for name in ("deployment.yaml", "cronjob.yaml"):
        # Without the group that user cannot write to a volume.
        context = {"runAsNonRoot": True, "fsGroup": int(said["USER"])}
        assert [pod["securityContext"] for pod in pods(name)] == [context]
        assert [one["image"] for one in containers(name)] == [f"status-tool:{__version__}"]


def test_one_process_writes_the_history() -> None:
    """Also while a new version is rolled out; and the probe asks what the tool answers."""
    manifest = next(iter(yaml.safe_load_all((RECIPES / "deployment.yaml").read_text())))
    assert (manifest["spec"]["replicas"], manifest["spec"]["strategy"]["type"]) == (1, "Recreate")
    [container] = containers("deployment.yaml")
    probe = container["livenessProbe"]["httpGet"]
    assert probe["path"] == "/healthz"
    port = next(port["containerPort"] for port in container["ports"] if port["name"] == probe["port"])
    assert f"--listen=0.0.0.0:{port}" in container["args"]


def test_the_image_without_a_container_engine_is_that_of_the_containerfile() -> None:
    """The same user, folder and entry point; its script parses."""
    script, containerfile = (RECIPES / "image.sh").read_text(), (RECIPES / "Containerfile").read_text()
    subprocess.run(["bash", "-n", RECIPES / "image.sh"], check=True)
    asked = shlex.split(re.sub(r"\\\n", " ", script[script.index("umoci config") :]).partition("\n")[0])
    for option, line in (("user", "USER"), ("workingdir", "WORKDIR")):
        value = re.findall(rf"^{line} (.*)$", containerfile, re.M)[-1]
        assert asked[asked.index(f"--config.{option}") + 1] == value
    entry = json.loads(re.findall(r"^ENTRYPOINT (.*)$", containerfile, re.M)[0])
    assert [asked[asked.index("--config.entrypoint") + 1]] == entry


def test_the_airflow_example_waits_only_for_what_may_arrive(monkeypatch: pytest.MonkeyPatch) -> None:
    """Without Airflow, which is not installed here: what it does with the tool's documents."""
    sdk: Any = types.ModuleType("airflow.sdk")
    sdk.DAG = sdk.task = MagicMock()
    sdk.BaseOperator = sdk.BaseSensorOperator = sdk.PokeReturnValue = _Base
    exceptions: Any = types.ModuleType("airflow.sdk.exceptions")
    exceptions.AirflowException = exceptions.AirflowFailException = RuntimeError
    for module in (types.ModuleType("airflow"), sdk, exceptions):
        monkeypatch.setitem(sys.modules, module.__name__, module)
    example = runpy.run_path(str(REPOSITORY / "docs" / "examples" / "airflow_failover.py"))
    behind = json.loads(printed(json_report, outcome_with("behind", Status.BEHIND)))
    assert example["may_arrive"](behind)
    for kind, status in (("gap", Status.GAP), ("unverifiable", Status.UNVERIFIABLE), ("differs", Status.DIFFERS)):
        document = json.loads(printed(json_report, outcome_with(kind, status)))
        assert not example["may_arrive"](document)
        assert example["told"](document).startswith(f"{document['verdict']}: {kind} in ")
    with pytest.raises(RuntimeError, match="exit code 1"):
        example["check"]("FILE", [], command="false")  # ends with 1, as Python does with a traceback: no verdict
    assert set(example["summary"](behind)) == {"verdict", "exit_code", "cut_ms", "hbase", "hdfs"}


class _Base:
    def __init__(self, **_: Any) -> None: ...

    def __rshift__(self, _: object) -> None: ...


def outcome_with(kind: str, status: Status) -> Outcome:
    verdict = Verdict.UNVERIFIABLE if status is Status.UNVERIFIABLE else Verdict.INCOMPLETE
    hbase = replace(HBASE, verdict=verdict, regions={Status.COMPLETE: 3, status: 1})
    return replace(OUTCOME, hbase=hbase, problems=(replace(GAP, kind=kind),))
