"""What the wheel asks of the machine it is installed on."""

from __future__ import annotations

import json
import os
import re
import shutil
import subprocess
import sys
import tomllib
import zipfile
from importlib.metadata import distributions, requires
from pathlib import Path

import pyspark
import pytest
from packaging.requirements import Requirement
from packaging.version import Version

from status_tool.cli.main import main
from status_tool.clients.class_archive import CACHE_VARIABLE
from status_tool.clients.java import JAR, READER
from status_tool.spark.settings import BELOW, OLDEST
from tests.pair import REPOSITORY

PROJECT = tomllib.loads((REPOSITORY / "pyproject.toml").read_text())["project"]
GENCODE = (REPOSITORY / "status_tool" / "clients" / "hbase_pb2.py").read_text()
BUILDER_SINCE = Version("3.20")
"""The first protobuf that has `google.protobuf.internal.builder`, which generated code has used since."""


def lowest(name: str) -> Version:
    """The oldest version of a dependency that pyproject.toml admits."""
    (found,) = (one for one in map(Requirement, PROJECT["dependencies"]) if one.name == name)
    (oldest,) = (one.version for one in found.specifier if one.operator == ">=")
    return Version(oldest)


def test_generated_code_is_no_newer_than_the_oldest_protobuf() -> None:
    """A runtime refuses newer code, and Spark's executors may have an old one: protoc says from 4.23 on what it is."""
    told = re.search(r"Protobuf Python Version: (\S+)", GENCODE)
    assert (Version(told[1]) if told else BUILDER_SINCE) <= lowest("protobuf")
    assert "ValidateProtobufRuntimeVersion" not in GENCODE
    imported = set(re.findall(r"^from google\.protobuf(?:\.internal)? import (\w+)", GENCODE, re.MULTILINE))
    assert imported == {"builder", "descriptor", "descriptor_pool", "symbol_database"}


# -- whose Spark runs -------------------------------------------------------------------------------------

SAMPLES = REPOSITORY / "sample_status" / "complete"
CHECK = ("run", "-i", str(SAMPLES / "master.status"), "--slave-status", str(SAMPLES / "slave.status"))


def test_the_sparks_that_will_do_are_those_of_the_dependency() -> None:
    """Said once to pip, once to whoever sets SPARK_HOME."""
    (found,) = (one for one in map(Requirement, PROJECT["dependencies"]) if one.name == "pyspark")
    assert {(one.operator, one.version) for one in found.specifier} == {(">=", OLDEST), ("<", BELOW)}


@pytest.mark.parametrize(
    ("jar", "said"),
    [
        (None, "where there is no Spark"),
        ("spark-core_2.13-3.5.7.jar", "Spark 3.5.7: Spark 4.1 or newer"),
        ("spark-core_2.13-4.0.1.jar", "Spark 4.0.1: Spark 4.1 or newer"),
        ("spark-core_2.13-5.0.0.jar", "Spark 5.0.0: Spark 4.1 or newer, below 5"),
    ],
)
@pytest.mark.parametrize("command", [CHECK, ("watch", *CHECK[1:])], ids=["run", "watch"])
def test_a_spark_that_will_not_do(
    jar: str | None,
    said: str,
    command: tuple[str, ...],
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    """One line that names SPARK_HOME and what to do, before anything is started."""
    (tmp_path / "jars").mkdir()
    (tmp_path / "python" / "lib").mkdir(parents=True)
    for name in ("py4j-0.10.9.9-src.zip", "pyspark.zip"):
        (tmp_path / "python" / "lib" / name).touch()
    if jar is not None:
        (tmp_path / "jars" / jar).touch()
    monkeypatch.setenv("SPARK_HOME", str(tmp_path))
    assert main(list(command)) == 2
    [line] = capsys.readouterr().err.splitlines()
    assert f"SPARK_HOME is {tmp_path}" in line
    assert said in line
    assert "unset" in line


def test_no_pyspark_at_all(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> None:
    """As after `pip install --no-deps`: said in one line."""
    monkeypatch.delenv("SPARK_HOME", raising=False)
    monkeypatch.setattr("status_tool.spark.settings.find_spec", lambda _: None)
    assert main(list(CHECK)) == 2
    [line] = capsys.readouterr().err.splitlines()
    assert line.startswith("status-tool: PySpark is not installed: set SPARK_HOME")


OTHER_SPARK = """
import sys
from importlib.machinery import PathFinder
from status_tool.cli.main import main

class Uninstalled(PathFinder):
    @classmethod
    def find_spec(cls, name, path=None, target=None):
        found = super().find_spec(name, path, target)
        gone = found is not None and name in ("pyspark", "py4j") and ".zip" not in str(found.origin)
        return None if gone else found

sys.meta_path[:] = [Uninstalled if one is PathFinder else one for one in sys.meta_path]
code = main(sys.argv[1:])
import py4j, pyspark
print(pyspark.__file__, py4j.__file__, sep="\\n", file=sys.stderr)
sys.exit(code)
"""


@pytest.mark.slow
@pytest.mark.spark
def test_the_spark_of_spark_home() -> None:
    """Where PySpark is not installed, and where another one is: that of SPARK_HOME runs, to the same verdict."""
    home = Path(pyspark.__file__).parent
    done = subprocess.run(
        # Files alone, which Spark compares, with one worker.
        [sys.executable, "-c", OTHER_SPARK, *CHECK, "--only", "hdfs", "--spark-master", "local[1]", "--json"],
        capture_output=True,
        text=True,
        timeout=900,
        # No other run starts Spark this way: an archive of its classes would serve none.
        env=os.environ | {"SPARK_HOME": str(home), CACHE_VARIABLE: "off"},
    )
    assert done.returncode == 0, done.stderr
    assert json.loads(done.stdout)["verdict"] == "complete"
    taken = done.stderr.splitlines()[-2:]
    assert taken[0].startswith(f"{home}/python/lib/pyspark.zip/"), taken
    assert taken[1].startswith(f"{home}/python/lib/py4j-"), taken


# -- the locks --------------------------------------------------------------------------------------------


def locked(file: str) -> dict[str, Version]:
    """What a lock installs; each with a hash at least."""
    blocks = re.split(r"\n(?=\S)", (REPOSITORY / file).read_text())
    assert all("--hash=sha256:" in block for block in blocks)
    pinned = [re.match(r"([\w.-]+)==(\S+)", block) for block in blocks]
    return {one[1].lower(): Version(one[2]) for one in pinned if one}


def test_the_extra_is_locked_apart() -> None:
    """Its packages are compiled here, so they are installed where Kerberos' headers are; all that they need is locked,
    and no package twice.
    """
    plain, kerberos = locked("requirements.lock"), locked("requirements-kerberos.lock")
    assert not plain.keys() & kerberos.keys()
    asked = [Requirement(one) for one in PROJECT["optional-dependencies"]["kerberos"]]
    assert {"gssapi", "krb5", "pure-sasl"} <= {one.name for one in asked}
    for one in asked:
        assert (plain | kerberos)[one.name] in one.specifier
    for name in kerberos:
        if name in installed():
            for needed in map(Requirement, requires(name) or ()):
                if needed.marker is None or needed.marker.evaluate({"extra": ""}):
                    assert (plain | kerberos)[needed.name.lower()] in needed.specifier


def installed() -> set[str]:
    return {str(one.metadata["Name"]).lower() for one in distributions()}


@pytest.mark.parametrize("file", ["requirements.lock", "requirements-kerberos.lock"])
def test_locks_name_no_registry(file: str) -> None:
    """Whoever installs chooses where from."""
    text = (REPOSITORY / file).read_text()
    assert "://" not in text
    assert "--index" not in text


@pytest.mark.slow
@pytest.mark.parametrize("has_jar", [True, False])
def test_an_installation_from_a_checkout_has_the_jar_or_says_so(has_jar: bool, tmp_path: Path) -> None:
    """As `pip install .` builds it; without Maven nothing can be built."""
    tree = tmp_path / "tree"
    shutil.copytree(REPOSITORY / "status_tool", tree / "status_tool")
    for name in ("pyproject.toml", "setup.py", "README.md", "LICENSE"):
        shutil.copy(REPOSITORY / name, tree)
    target = tree / "coprocessor_stubs" / "target"
    target.mkdir(parents=True)
    if has_jar:
        (target / JAR).write_bytes(b"jar")
    sources = Path("coprocessor_stubs", "src", "main", "java") / READER
    shutil.copytree(REPOSITORY / sources, tree / sources)
    pip = [sys.executable, "-m", "pip", "--disable-pip-version-check", "wheel", "-v"]
    done = subprocess.run(
        [*pip, "--no-deps", "--no-build-isolation", "--no-index", "-w", tmp_path, tree],
        capture_output=True,
        text=True,
        env=os.environ | {"PATH": "/nonexistent"},
        check=True,
    )
    (wheel,) = tmp_path.glob("*.whl")
    names = zipfile.ZipFile(wheel).namelist()
    assert (f"status_tool/assets/{JAR}" in names) == has_jar
    assert (f"status_tool/assets/{READER}/HdfsReader.java" in names) != has_jar
    assert ("built without the trackers' jar" in done.stdout + done.stderr) != has_jar
