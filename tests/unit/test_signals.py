"""A signal while Spark works is an interruption, whatever a dying JVM makes py4j say of it."""

from __future__ import annotations

import array
import fcntl
import gc
import json
import os
import random
import signal
import subprocess
import sys
import termios
from collections.abc import Iterator
from contextlib import nullcontext
from pathlib import Path
from types import SimpleNamespace
from typing import IO, Any

import pytest

from status_tool.atomic import atomic_write
from status_tool.cli import signals
from status_tool.clients import named_table
from status_tool.clients.config import ThriftEndpoint
from status_tool.errors import ConfigurationError
from status_tool.sources.state_table import StateTable
from status_tool.spark import jvm
from tests.lab.waiting import wait_until
from tests.pair import REPOSITORY, tool_environment, tool_here
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


TOLD = """
import os, signal, sys
from status_tool.cli import {module}

def told(*arguments, **options):
{body}

{module}.{name} = told
from status_tool.cli.entry import entry
entry()
"""
ENTRIES = 20_000
"""So many make a document larger than a pipe holds."""


def _document(folder: Path) -> list[str]:
    """A command line that prints a large one."""
    (folder / "f.toml").write_text(f"exclude = {json.dumps([f'/data/{n}' for n in range(ENTRIES)])}")
    (folder / "f.toml").chmod(0o600)
    return [sys.executable, "-m", "status_tool", "config", "--json"]


def _hit_while_writing(command: list[str], number: signal.Signals, environment: dict[str, str]) -> tuple[int, str, str]:
    """Send a signal to a process that waits for the reader of its stdout; returns its exit code and its words."""
    process = subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, env=environment)
    try:
        # A page of it may be full of less than another one.
        wait_until(lambda: _unread(process.stdout) > 60_000, 60, "stdout's pipe is full", interval=0.01)
        process.send_signal(number)
        # Nobody reads until it has ended.
        code = process.wait(60)
        return code, *process.communicate()
    finally:
        process.kill()


def _unread(pipe: IO[str] | None) -> int:
    assert pipe is not None
    waiting = array.array("i", [0])
    fcntl.ioctl(pipe.fileno(), termios.FIONREAD, waiting)
    return waiting[0]


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM])
def test_a_signal_while_a_document_is_read_slowly_adds_none(number: signal.Signals, tmp_path: Path) -> None:
    """Its half was followed by its rest and by the document of an error; the end waited for the reader."""
    command = _document(tmp_path)
    environment = {**tool_environment(), "STATUS_TOOL_CONFIG": str(tmp_path / "f.toml")}
    whole = subprocess.run(command, capture_output=True, text=True, env=environment, check=True).stdout
    assert len(json.loads(whole)["options"][0]["value"]) == ENTRIES
    code, stdout, stderr = _hit_while_writing(command, number, environment)
    assert (code, stderr) == (128 + number, "status-tool: interrupted; nothing was written\n")
    assert stdout
    assert whole.startswith(stdout)


def test_a_signal_behind_a_document_adds_none() -> None:
    body = "    print('{}', flush=True)\n    os.kill(os.getpid(), signal.SIGTERM)"
    code = TOLD.format(module="show_config", name="print_answer", body=body)
    command = [sys.executable, "-c", code, "config", "--json"]
    done = subprocess.run(command, capture_output=True, text=True, timeout=60, env=tool_environment())
    assert (done.returncode, done.stdout) == (143, "{}\n")
    assert done.stderr == "status-tool: interrupted; nothing was written\n"


SERVICE = """    from status_tool.cli.repeated import as_service, print_round
    from status_tool.cli import signals
    signals.END_S = {end_s}
    with as_service():
        print_round({{"round": 1}}, "", as_json=True)
        {then}"""


def _service(then: str, end_s: float = 60) -> list[str]:
    body = SERVICE.format(then=then, end_s=end_s)
    code = TOLD.format(module="watching", name="keep_watch", body=body)
    return [sys.executable, "-c", code, "watch", "-i", "f", "--json"]


def test_a_signal_between_rounds_has_a_document_of_its_own() -> None:
    """One line each."""
    command = _service("os.kill(os.getpid(), signal.SIGTERM)")
    done = subprocess.run(command, capture_output=True, text=True, timeout=60, env=tool_environment())
    assert (done.returncode, done.stderr) == (143, "status-tool: interrupted\n")
    assert list(map(json.loads, done.stdout.splitlines())) == [
        {"round": 1},
        {"error": "interrupted", "exit_code": 143},
    ]


@pytest.mark.parametrize(
    ("then", "end_s"),
    [
        ("print_round({'large': 'x' * 1_000_000}, '', as_json=True)", 60),
        # Whatever is in the way of the usual end, the service ends, and its document with it.
        (
            "try: print_round({'large': 'x' * 1_000_000}, '', as_json=True)\n        finally: signal.pause()",
            0.1,
        ),
    ],
    ids=["soon", "late"],
)
def test_a_signal_while_a_round_is_read_slowly_adds_no_document(then: str, end_s: float) -> None:
    code, stdout, stderr = _hit_while_writing(_service(then, end_s), signal.SIGTERM, tool_environment())
    assert (code, stderr) == (143, "status-tool: interrupted\n")
    first, _, second = stdout.partition("\n")
    assert json.loads(first) == {"round": 1}
    assert second
    assert (json.dumps({"large": "x" * 1_000_000}) + "\n").startswith(second)


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
