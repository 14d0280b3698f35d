"""The archives of the classes of our JVMs that the tests share: `python -m tests.spark_classes` makes them, once."""

from __future__ import annotations

import os
import subprocess
import sys
import tempfile
from contextlib import suppress
from pathlib import Path

from status_tool.clients.class_archive import CACHE_VARIABLE
from status_tool.clients.hdfs_native import NativeHdfs, RpcEndpoint, no_process_left
from status_tool.errors import StatusToolError
from status_tool.spark.launch import spark_option
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
    if not FOLDER.is_dir() or spark_option()[1] is not None:
        os.environ[CACHE_VARIABLE] = "off"


def make() -> None:
    """By the page of a sample, and by an HDFS that is not there. Where that fails, the tests are only slower."""
    os.environ[CACHE_VARIABLE] = str(FOLDER)
    with no_process_left(), suppress(StatusToolError):
        NativeHdfs(RpcEndpoint("hdfs://127.0.0.1:1", "nobody"), patience_s=0).status("/")
    if spark_option()[1] is not None:
        files: list[str | Path] = ["-i", SAMPLE / "master.status", "--slave-status", SAMPLE / "slave.status"]
        with tempfile.TemporaryDirectory() as folder:
            command = [sys.executable, "-m", "status_tool", "run", *files, "--report", Path(folder) / "page.html"]
            subprocess.run(command, check=False, stdout=subprocess.DEVNULL)


if __name__ == "__main__":
    make()
