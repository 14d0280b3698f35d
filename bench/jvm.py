"""Programs of `bench/java`, compiled against the trackers' jar and HBase, in a JVM of their own."""

from __future__ import annotations

import os
import subprocess
import tempfile
from collections.abc import Iterator, Sequence
from contextlib import contextmanager

from status_tool.clients.java import jar, java
from tests.lab.classpath import servers_classpath
from tests.pair import REPOSITORY


@contextmanager
def started(options: Sequence[str], program: str, *arguments: str) -> Iterator[subprocess.Popen[str]]:
    """A class, named with its package, with pipes to it; it ends where its stdin does."""
    with tempfile.TemporaryDirectory() as classes:
        path = os.pathsep.join(map(str, (classes, jar(), *servers_classpath("2.6.1"))))
        source = REPOSITORY / f"bench/java/{program.rpartition('.')[2]}.java"
        compiler = java("the benchmark").with_name("javac")
        subprocess.run([compiler, "-d", classes, "-cp", path, "-proc:none", source], check=True)
        command = [str(java("the benchmark")), *options, "-cp", path, program, *arguments]
        pipe = subprocess.PIPE
        with subprocess.Popen(command, stdin=pipe, stdout=pipe, text=True) as process:
            yield process
        if process.returncode:
            raise subprocess.CalledProcessError(process.returncode, command)


def lines(options: Sequence[str], program: str, *arguments: str) -> Iterator[str]:
    """What it prints."""
    with started(options, program, *arguments) as process:
        assert process.stdout is not None
        yield from process.stdout
