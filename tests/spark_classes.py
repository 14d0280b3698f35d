"""The archive of Spark's classes that the tests share: `python -m tests.spark_classes` makes it, once."""

from __future__ import annotations

import os
import subprocess
import sys
import tempfile
from pathlib import Path

from status_tool.spark.launch import CACHE_VARIABLE, jvm_option
from tests.pair import REPOSITORY

FOLDER = REPOSITORY / "tests" / "lab" / "target" / "spark-classes"
SAMPLE = REPOSITORY / "sample_status" / "complete"


def use() -> None:
    """For this process and those that it starts: the archive, if it is there for this JDK and this Spark.

    Otherwise none: a test writes nothing to the user's cache, and need not wait until a JVM has written its classes.
    """
    if CACHE_VARIABLE in os.environ:
        return
    os.environ[CACHE_VARIABLE] = str(FOLDER)
    if not FOLDER.is_dir() or jvm_option()[1] is not None:
        os.environ[CACHE_VARIABLE] = "off"


def make() -> None:
    """By the page of a sample, if it is not there. The tests do without it, only slower, where that fails."""
    os.environ[CACHE_VARIABLE] = str(FOLDER)
    if jvm_option()[1] is not None:
        files: list[str | Path] = ["-i", SAMPLE / "master.status", "--slave-status", SAMPLE / "slave.status"]
        with tempfile.TemporaryDirectory() as folder:
            command = [sys.executable, "-m", "status_tool", "run", *files, "--report", Path(folder) / "page.html"]
            subprocess.run(command, check=False, stdout=subprocess.DEVNULL)


if __name__ == "__main__":
    make()
