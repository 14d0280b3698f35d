"""`status-tool witness` beside a lab."""

from __future__ import annotations

import signal
import subprocess
import sys
from collections.abc import Iterator, Sequence
from pathlib import Path

import pytest

from status_tool.clients.config import parse_zookeeper
from status_tool.clients.zookeeper import ZooKeeper
from status_tool.rules.peer_versions import REFRESHED_MS
from status_tool.sources.arrivals import Entries
from status_tool.sources.state_table import now_ms
from tests.lab.cluster import Cluster
from tests.lab.lab import Lab
from tests.lab.waiting import wait_until
from tests.lab.watchdog import MARK
from tests.pair import Pair, Result, tool_environment, tool_here

WITNESS_PEER = "witness"
ZNODE = "/witness"
_COMPILER = "-XX:TieredStopAtLevel=1"
"""As in a lab's servers: a test ends before C2 pays."""


def sequence_ids(entries: Entries) -> Iterator[int]:
    """Yield the ids, in the order of the runs."""
    for first, last, _, _ in entries.runs():
        yield from range(first, last + 1)


class Witness:
    """`status-tool witness` as a process."""

    def __init__(
        self,
        lab: Lab,
        store: Path,
        port: int,
        *,
        register: str | None = None,
        options: Sequence[str | Path] = (),
        hbase: Sequence[Path] = (),
    ) -> None:
        """Define it. `options` are more of the command's; `hbase` is another class path than the servers'."""
        self.store, self.port = store, str(port)
        self.address = f"localhost:{port}"
        where = f"127.0.0.1:{lab.zk_port}{ZNODE}" if register is None else register
        self.out = store.with_name(f"{store.name}.out")
        self.process: subprocess.Popen[bytes] | None = None
        realm = lab.security.kdc.client_options if lab.security is not None else ()
        self._environment = {
            **tool_environment(),
            "JAVA_TOOL_OPTIONS": " ".join((_COMPILER, *realm)),
            "HBASE_CLASSPATH": ":".join(map(str, hbase or lab.zookeeper.java.classpath)),
            MARK: lab.mark,
        }
        self.command = [
            *(sys.executable, "-m", "status_tool", "witness", "--register", where),
            *("--listen", f"localhost:{port}", "--store", str(store)),
            *map(str, options),
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


def covered_from_ms(master: Cluster) -> int:
    """From when on every region server of a master has the witnesses' peer as it is."""
    with ZooKeeper(parse_zookeeper(master.zookeeper)) as session:
        (changed_ms,) = [peer.modified_ms for peer in session.peers() if peer.id == WITNESS_PEER]
    assert changed_ms is not None
    return changed_ms + REFRESHED_MS


def wait_covered(master: Cluster) -> None:
    """Wait until then."""
    until_ms = covered_from_ms(master)
    wait_until(lambda: now_ms() > until_ms, 120, "every region server has the witnesses' peer")


def wait_covered_soon(master: Cluster, patch: pytest.MonkeyPatch) -> None:
    """The same for tests of something else: as long as the patch holds, the tool grants servers five seconds.

    They know a peer before the command that adds it returns. That the tool grants a minute is in `test_witness.py`.
    """
    for module in ("status_tool.rules.witnessed", "tests.witness"):
        patch.setattr(f"{module}.REFRESHED_MS", 5_000)
    wait_covered(master)


def write_from(pair: Pair, places: Sequence[str | Path], file: Path, *options: str) -> Result:
    """`run -m -o FILE` from folders and addresses."""
    named = [part for place in places for part in ("--witness", str(place))]
    return tool_here("run", "-m", "-o", file, "--only", "hbase", *named, *options, conf=pair.master)


def assert_witnessed(result: Result) -> None:
    """By the witnesses, and by nothing else: the master has no tracker."""
    assert result.exit_code == 0, result
    assert result.json["hbase"]["evidence"] == "witnessed"
