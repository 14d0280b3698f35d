"""A signal while Spark works is an interruption, whatever a dying JVM makes py4j say of it."""

from __future__ import annotations

import gc
import os
import random
import signal
import subprocess
import sys
from collections.abc import Iterator
from contextlib import nullcontext
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from status_tool.atomic import atomic_write
from status_tool.cli import signals
from status_tool.clients import named_table
from status_tool.clients.config import ThriftEndpoint
from status_tool.errors import ConfigurationError
from status_tool.sources.state_table import StateTable
from status_tool.spark import jvm
from tests.pair import REPOSITORY, tool_here
from tests.signals import fired, shots

SIGNALS = int(os.environ.get("SIGNALS", "4"))
"""How many are sent; `SIGNALS=200` for an hour by hand."""


class Py4JNetworkError(Exception):
    """As py4j's."""

    __module__ = "py4j.protocol"


ENDS = [
    Py4JNetworkError("Answer from Java side is empty"),
    AttributeError("'NoneType' object has no attribute 'setCallSite'"),
    ConnectionRefusedError("refused"),
    ConfigurationError("Spark cannot start: its master gave up"),
]


@pytest.fixture(autouse=True)
def _restored() -> Iterator[None]:
    hook = sys.unraisablehook
    handlers = {number: signal.getsignal(number) for number in (*signals.SIGNALS, signal.SIGALRM)}
    yield
    sys.unraisablehook = hook
    for number, handler in handlers.items():
        signal.signal(number, handler)
    signals.received.clear()


def test_nohup_is_heeded() -> None:
    """It starts a command with the signal ignored, so that the end of its terminal does not end it."""
    signal.signal(signal.SIGHUP, signal.SIG_IGN)
    signals.handle_signals()
    signals.end_at_once()
    assert signal.getsignal(signal.SIGHUP) is signal.SIG_IGN
    assert signal.getsignal(signal.SIGTERM) is not signal.SIG_IGN


@pytest.mark.parametrize("number", signals.SIGNALS)
@pytest.mark.parametrize("error", ENDS, ids=lambda error: type(error).__name__)
def test_any_error_after_a_signal_is_the_interruption(
    number: int, error: Exception, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Its words are none of ours."""

    def ended(*_: object) -> None:
        signals.received.append(number)
        raise error

    monkeypatch.setattr("status_tool.cli.run.check_options", ended)
    result = tool_here("run", "-d")
    assert (result.exit_code, result.stderr) == (128 + number, "status-tool: interrupted; nothing was written\n")


def test_what_was_written_before_a_signal_is_not_denied(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """As where it comes between the report and the end."""

    def ended(*_: object) -> None:
        with atomic_write(tmp_path / "r.html") as stream:
            stream.write("whole")
        raise KeyboardInterrupt

    monkeypatch.setattr("status_tool.cli.run.check_options", ended)
    result = tool_here("run", "-d")
    assert (result.exit_code, result.stderr) == (130, "status-tool: interrupted\n")


def test_a_table_that_was_changed_before_a_signal_is_not_denied(monkeypatch: pytest.MonkeyPatch) -> None:
    """As by a `prune` between two deletes: rows are gone, and running it again completes it."""

    def deleted(_table: bytes, key: bytes, *_: object) -> None:
        if key == b"second":
            raise KeyboardInterrupt

    def ended(*_: object) -> None:
        state = StateTable(ThriftEndpoint("localhost", 9090), "ns:state")
        state.delete((key, 1) for key in (b"first", b"second"))

    table = SimpleNamespace(connection=SimpleNamespace(client=SimpleNamespace(deleteAllRowTs=deleted)))
    client = SimpleNamespace(table=lambda _: table)
    monkeypatch.setattr(named_table, "connection", lambda _: nullcontext(client))
    monkeypatch.setattr("status_tool.cli.run.check_options", ended)
    said = "status-tool: interrupted; table ns:state may have been changed already: run the command again\n"
    result = tool_here("run", "-d")
    assert (result.exit_code, result.stderr) == (130, said)
    monkeypatch.setattr("status_tool.cli.run.check_options", _interrupted)
    assert "nothing was written" in tool_here("run", "-d").stderr


def _interrupted(*_: object) -> None:
    raise KeyboardInterrupt


def test_a_signal_while_a_file_is_created_leaves_none(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """It is there already, and its number is not known yet."""
    real = os.open

    def opened(*arguments: Any) -> int:
        os.close(real(*arguments))
        raise KeyboardInterrupt

    monkeypatch.setattr("status_tool.atomic.os.open", opened)
    with pytest.raises(KeyboardInterrupt), atomic_write(tmp_path / "r.html"):
        pass
    gc.collect()
    monkeypatch.undo()
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize("number", signals.SIGNALS)
@pytest.mark.parametrize("code", ["{0}", "-{1}"])
def test_a_jvm_that_the_signal_has_ended_first(number: int, code: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """As a service manager sends it to all processes; a JVM ends with 130 or 143, or by the signal itself."""
    # By default, as what is started in the background may ignore Ctrl-C.
    itself = f"signal.signal({number}, signal.SIG_DFL); os.kill(os.getpid(), {number})"
    way = f"sys.exit({128 + number})" if code == "{0}" else itself
    dying = subprocess.Popen([sys.executable, "-c", f"import os, signal, sys, time; time.sleep(0.2); {way}"])
    monkeypatch.setattr(jvm, "process", lambda: dying)
    # It takes longer to start on a busy machine than a JVM to end.
    monkeypatch.setattr("status_tool.cli.main._DYING_S", 60)

    def ended(*_: object) -> None:
        raise ENDS[0]

    monkeypatch.setattr("status_tool.cli.run.check_options", ended)
    result = tool_here("run", "-d")
    assert (result.exit_code, result.stderr) == (128 + number, "status-tool: interrupted; nothing was written\n")


@pytest.mark.parametrize("way", ["exit 1", "kill -9 $$"])
def test_a_jvm_that_ends_by_itself_is_an_error(way: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """Nobody has interrupted anything."""
    dying = subprocess.Popen(["sh", "-c", way])
    monkeypatch.setattr(jvm, "process", lambda: dying)

    def ended(*_: object) -> None:
        raise ENDS[0]

    monkeypatch.setattr("status_tool.cli.run.check_options", ended)
    monkeypatch.delenv("STATUS_TOOL_TRACEBACK", raising=False)
    result = tool_here("run", "-d")
    assert (result.exit_code, "interrupted" in result.stderr) == (2, False)


def test_a_signal_in_a_finalizer_is_not_lost() -> None:
    """Python swallows what is raised there; the run ends nevertheless."""
    signals.handle_signals()

    class Finalized:
        def __del__(self) -> None:
            os.kill(os.getpid(), signal.SIGTERM)
            sum(range(1000))

    def finalized() -> None:
        Finalized()
        signal.pause()

    with pytest.raises(KeyboardInterrupt):
        finalized()
    assert signals.received == [signal.SIGTERM]


def test_what_finalizers_cannot_ask_of_a_lost_jvm_is_not_shown(capsys: pytest.CaptureFixture[str]) -> None:
    """Anything else is, as Python does it."""
    signals.handle_signals()

    class Finalized:
        def __init__(self, error: Exception) -> None:
            self._error = error

        def __del__(self) -> None:
            raise self._error

    Finalized(ENDS[0])
    Finalized(ConnectionRefusedError())
    assert capsys.readouterr().err == ""
    Finalized(ValueError("ours"))
    assert "ours" in capsys.readouterr().err


INTERRUPTED_EXEC = """
import os, signal
from status_tool.cli import main

def interrupted(*_):
    exec("os.kill(os.getpid(), signal.SIGTERM)")

main._commands = interrupted
from status_tool.cli.entry import entry
entry()
"""


def test_a_signal_in_an_exec_keeps_its_exit_code() -> None:
    """CPython would end by SIGINT instead, by whatever signal it was."""
    done = subprocess.run([sys.executable, "-c", INTERRUPTED_EXEC], capture_output=True, text=True, timeout=60)
    assert (done.returncode, done.stderr) == (143, "status-tool: interrupted; nothing was written\n")


@pytest.mark.slow
@pytest.mark.spark
def test_signals_at_random_moments() -> None:
    """One line and 130 or 143, and nothing is left; or the run had ended."""
    seed = random.randrange(1 << 30)
    for shot in shots(seed, SIGNALS):
        end, wrong = fired(shot)
        assert not wrong, f"seed {seed}, {shot}: {end}, {wrong}"


def test_signals_are_handled_before_anything_that_takes_time() -> None:
    """Until then Ctrl-C is a traceback; without the site module, which may import anything."""
    script = f"import sys; sys.path.insert(0, {str(REPOSITORY)!r}); import status_tool.cli.signals; print(*sys.modules)"
    done = subprocess.run([sys.executable, "-S", "-E", "-c", script], capture_output=True, text=True, check=True)
    assert {"json", "typing", "re"} & set(done.stdout.split()) == set()
