"""docs/watch: the recipes parse, and the tool takes their command lines."""

from __future__ import annotations

import shlex
from configparser import ConfigParser
from typing import Any

import pytest
import yaml

from status_tool.cli.main import main
from tests.pair import REPOSITORY

RECIPES = REPOSITORY / "docs" / "watch"


def containers(name: str) -> list[dict[str, Any]]:
    """Of all documents of a manifest."""
    pods = []
    for document in yaml.safe_load_all((RECIPES / name).read_text()):
        spec = document["spec"]
        spec = spec.get("jobTemplate", {}).get("spec", spec)
        if "template" in spec:
            pods.append(spec["template"]["spec"])
    return [container for pod in pods for container in pod["containers"]]


def unit() -> ConfigParser:
    """The systemd unit."""
    parser = ConfigParser(strict=True, interpolation=None)
    parser.optionxform = str  # type: ignore[assignment]
    parser.read(RECIPES / "status-tool-watch.service")
    return parser


def command_lines() -> dict[str, list[str]]:
    """By recipe, without the program."""
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


def test_one_process_writes_the_history() -> None:
    """Also while a new version is rolled out; and the probe asks what the tool answers."""
    manifest = next(iter(yaml.safe_load_all((RECIPES / "deployment.yaml").read_text())))
    assert (manifest["spec"]["replicas"], manifest["spec"]["strategy"]["type"]) == (1, "Recreate")
    [container] = containers("deployment.yaml")
    probe = container["livenessProbe"]["httpGet"]
    assert probe["path"] == "/healthz"
    port = next(port["containerPort"] for port in container["ports"] if port["name"] == probe["port"])
    assert f"--listen=0.0.0.0:{port}" in container["args"]
