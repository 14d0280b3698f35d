"""One server: a JVM in a session of its own, with its own folder, configuration and log."""

from __future__ import annotations

import os
import signal
import subprocess
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Protocol

from .classpath import java
from .errors import LabError, LabTimeout, ServerDied
from .waiting import wait_until
from .watchdog import MARK

_OPENED = (
    "java.lang",
    "java.lang.reflect",
    "java.io",
    "java.nio",
    "java.util",
    "java.util.concurrent",
    "sun.nio.ch",
    "jdk.internal.ref",
)
_JVM_OPTIONS = (
    "-XX:+UseSerialGC",
    "-XX:TieredStopAtLevel=1",
    "-Xmn32m",  # else as much as a third of the heap is touched before anything is collected
    "-XX:-UsePerfData",
    "-XX:+ExitOnOutOfMemoryError",
    # The JVM's own warnings must not get into the admin's answers.
    "-Xlog:disable",
    "-Xlog:all=error:stderr",
    "-Djava.net.preferIPv4Stack=true",
    "-Dzookeeper.jmx.log4j.disable=true",
    "-Dorg.apache.hbase.thirdparty.io.netty.tryReflectionSetAccessible=true",
    "--add-exports=java.base/jdk.internal.misc=ALL-UNNAMED",
    "--add-opens=java.security.jgss/sun.security.krb5=ALL-UNNAMED",
    *(f"--add-opens=java.base/{package}=ALL-UNNAMED" for package in _OPENED),
)
# What would make the servers read the user's own configuration, or answer differently.
_UNWANTED = ("HADOOP", "HBASE", "CLASSPATH", "JAVA_TOOL_OPTIONS", "JDK_JAVA_OPTIONS", "_JAVA_OPTIONS")


@dataclass(frozen=True)
class Java:
    """How every JVM of a lab is started."""

    mark: str
    classpath: Sequence[Path]
    log4j: Path
    options: Sequence[str] = ()

    def command(self, heap_mb: int, main: str, arguments: Sequence[str]) -> list[str]:
        log4j = f"-Dlog4j.configuration=file:{self.log4j}"
        return [java(), f"-Xmx{heap_mb}m", *_JVM_OPTIONS, *self.options, log4j, main, *arguments]

    def environment(self, conf_dir: Path, extra_classpath: Sequence[Path]) -> dict[str, str]:
        env = {name: value for name, value in os.environ.items() if not name.startswith(_UNWANTED)}
        # By the environment, so that the list of processes stays legible.
        env["CLASSPATH"] = ":".join(map(str, (*self.classpath, conf_dir, *extra_classpath)))
        env[MARK] = self.mark
        env["HADOOP_USER_NAME"] = "lab"
        env["MALLOC_ARENA_MAX"] = "4"
        return env


class Process(Protocol):
    """What a `Server` needs of its process: a child (`subprocess.Popen`) or an adopted one."""

    pid: int

    def poll(self) -> int | None: ...
    def wait(self, timeout: float | None = None) -> int: ...
    def terminate(self) -> None: ...
    def kill(self) -> None: ...


@dataclass
class Server:
    """One JVM. It can be ended in every way that matters and started again at the same port."""

    java: Java
    name: str
    folder: Path
    main: str
    arguments: Sequence[str]
    heap_mb: int
    port: int
    extra_classpath: Sequence[Path] = ()
    environment: Mapping[str, str] = field(default_factory=dict)
    _process: Process | None = field(default=None, repr=False)

    @property
    def log(self) -> Path:
        return self.folder / f"{self.name}.log"

    @property
    def conf_dir(self) -> Path:
        return self.folder / "conf"

    @property
    def pid(self) -> int:
        """The pid of the running or last process; LabError if it was never started."""
        if self._process is None:
            raise LabError(f"{self.name} was never started")
        return self._process.pid

    @property
    def running(self) -> bool:
        return self._process is not None and self._process.poll() is None

    def start(self, *, wait: bool = True) -> None:
        """Start it (again) with the same port and configuration; only a region server knows how to wait."""
        if self.running:
            raise LabError(f"{self.name} is running")
        self.launch(stdin=subprocess.DEVNULL, stdout=None)

    def launch(self, *, stdin: int, stdout: int | None) -> subprocess.Popen[bytes]:
        """Start the process; None for stdout means the log."""
        self.folder.mkdir(parents=True, exist_ok=True)
        env = self.java.environment(self.conf_dir, self.extra_classpath) | dict(self.environment)
        with self.log.open("ab") as log:
            process = subprocess.Popen(
                self.java.command(self.heap_mb, self.main, self.arguments),
                cwd=self.folder,
                env=env,
                stdin=stdin,
                stdout=log if stdout is None else stdout,
                stderr=log,
                start_new_session=True,  # a Ctrl-C is for the lab, which then ends its servers in order
            )
        self._process = process
        return process

    def adopt(self, process: Process) -> None:
        """It runs already, started by somebody else."""
        self._process = process

    def kill9(self) -> None:
        """Kill -9; nothing happens to a server that has ended already."""
        if self._process is not None:
            self._process.kill()
            self._process.wait()

    def stop(self, timeout: float = 60) -> None:
        """Ask it to end (SIGTERM) and wait; LabTimeout if it does not in time."""
        if self._process is None or not self.running:
            return
        self._process.terminate()
        try:
            self._process.wait(timeout)
        except subprocess.TimeoutExpired:
            raise LabTimeout(f"{self.name} did not end in {timeout:g} s of SIGTERM, see {self.log}") from None

    def pause(self) -> None:
        """SIGSTOP: it neither works nor closes its connections."""
        os.kill(self._live_pid(), signal.SIGSTOP)

    def resume(self) -> None:
        os.kill(self._live_pid(), signal.SIGCONT)

    def _live_pid(self) -> int:
        if not self.running:
            raise LabError(f"{self.name} is not running")
        return self.pid

    def check(self) -> None:
        """ServerDied, with the end of its log, if the process has ended."""
        if not self.running:
            raise ServerDied(f"{self.name} has ended\n{self.log_tail()}")

    def log_tail(self, lines: int = 30) -> str:
        text = self.log.read_text(errors="replace") if self.log.exists() else ""
        return f"{self.log}:\n" + "\n".join(text.splitlines()[-lines:])


class RegionServer(Server):
    """A region server; every start gives it a new server name."""

    _last_name: str = ""

    @property
    def _znode_file(self) -> Path:
        """HBase writes its znode's path here once the master has accepted it; a clean end removes it."""
        return self.folder / "znode"

    @property
    def server_name(self) -> str:
        """HBase's "host,port,startcode" of the running or last process."""
        if self._znode_file.exists():
            self._last_name = self._znode_file.read_text().strip().rsplit("/", 1)[-1]
        return self._last_name

    def start(self, *, wait: bool = True) -> None:
        """Start it (again) and wait until the master has accepted it under its new server name."""
        super().start()
        if wait:
            self.wait_registered()

    def launch(self, *, stdin: int, stdout: int | None) -> subprocess.Popen[bytes]:
        self._znode_file.unlink(missing_ok=True)
        self._last_name = ""
        self.environment = {**self.environment, "HBASE_ZNODE_FILE": str(self._znode_file)}
        return super().launch(stdin=stdin, stdout=stdout)

    def kill9(self) -> None:
        _ = self.server_name
        super().kill9()

    def stop(self, timeout: float = 60) -> None:
        _ = self.server_name
        super().stop(timeout)

    def wait_registered(self, timeout: float = 240) -> str:
        """The name that the master knows it by; ServerDied or LabTimeout."""

        def registered() -> str:
            self.check()
            return self.server_name

        return wait_until(registered, timeout, f"{self.name} registers with the master, see {self.log}")
