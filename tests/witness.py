"""`status-tool witness` beside a lab."""

from __future__ import annotations

import signal
import subprocess
import sys
from pathlib import Path

from tests.lab.lab import Lab
from tests.lab.waiting import wait_until
from tests.lab.watchdog import MARK
from tests.pair import tool_environment

PEER = "witness"
ZNODE = "/witness"


class Witness:
    """`status-tool witness` as a process."""

    def __init__(self, lab: Lab, store: Path, port: int, *, register: str | None = None, out: str = "") -> None:
        self.store, self.port = store, str(port)
        self.address = f"localhost:{port}"
        where = f"127.0.0.1:{lab.zk_port}{ZNODE}" if register is None else register
        self.out = store.with_name(f"{out or store.name}.out")
        self.process: subprocess.Popen[bytes] | None = None
        java = lab.zookeeper.java
        self._environment = {
            **tool_environment(),
            "HBASE_CLASSPATH": ":".join(map(str, java.classpath)),
            MARK: lab.mark,
        }
        self.command = [
            *(sys.executable, "-m", "status_tool", "witness", "--register", where),
            *("--listen", f"localhost:{port}", "--store", str(store)),
        ]

    def _launch(self) -> subprocess.Popen[bytes]:
        with self.out.open("wb") as out:
            return subprocess.Popen(self.command, stdout=out, stderr=out, env=self._environment)

    def start(self) -> None:
        """Start it (again) and wait until it serves."""
        self.process = process = self._launch()
        wait_until(lambda: "add_peer" in self.said() or process.poll() is not None, 180, "the witness serves")
        assert process.poll() is None, self.said()

    def refusal(self) -> str:
        """Why it does not start: the one line of an error."""
        process = self._launch()
        assert process.wait(120) == 2, self.said()
        (line,) = [line for line in self.said().splitlines() if line.startswith("status-tool: ")]
        return line

    def said(self) -> str:
        """Everything that it printed since its last start."""
        return self.out.read_text()

    @property
    def running(self) -> bool:
        """Whether its process lives, paused or not."""
        return self.process is not None and self.process.poll() is None

    def pause(self) -> None:
        """SIGSTOP."""
        self.send(signal.SIGSTOP)

    def resume(self) -> None:
        """SIGCONT, also for one that has been killed meanwhile."""
        self.send(signal.SIGCONT)

    def send(self, number: signal.Signals) -> None:
        """Send it a signal."""
        assert self.process is not None
        self.process.send_signal(number)

    def end(self, number: signal.Signals = signal.SIGTERM) -> int:
        """End it; its exit code."""
        self.send(number)
        assert self.process is not None
        return self.process.wait(60)


def end_quietly(process: subprocess.Popen[bytes] | None) -> None:
    """Whatever a test has left."""
    if process is not None and process.poll() is None:
        process.kill()
        process.wait()
