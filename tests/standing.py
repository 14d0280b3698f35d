"""A fresh pair that stands ready: `python -m tests.lab up --tracked` keeps one, `pytest --lab` takes it.

A pair is used by one module of tests and thrown away, as without `--lab`; the lab starts the next one while the
developer reads what came out. So nothing that a test leaves behind can be seen by another one, and nobody waits for
servers. What is handed over is a file; taking it is renaming it, so that two test runs never get the same pair.
"""

from __future__ import annotations

import contextlib
import fcntl
import json
import os
import time
from collections.abc import Callable, Iterator
from pathlib import Path

from tests.lab.adopt import Description, adopt, describe
from tests.lab.errors import LabError
from tests.lab.lab import Lab
from tests.lab.waiting import wait_until
from tests.pair import JAR, REPOSITORY, Pair, start_pair

READY = REPOSITORY / ".lab.json"
"""The pair that nobody has taken yet."""
HOLDER = REPOSITORY / ".lab.lock"
"""Locked by the lab as long as it is up."""
PATIENCE = 600.0
"""Seconds until a pair has to be there; starting one takes far less unless the machine does other work."""


def stand(say: Callable[[str], None]) -> None:
    """Keep a fresh pair ready until interrupted; `LabError` if another lab does it for this working copy."""
    with HOLDER.open("w") as holder:
        if not _lock(holder.fileno()):
            raise LabError("another lab is up for this working copy")
        while True:
            READY.unlink(missing_ok=True)
            _offer_one(say)


def _offer_one(say: Callable[[str], None]) -> None:
    """One pair, from its start until its user has gone."""
    built = _jar()
    with Lab(say=say) as lab:
        start_pair(lab)
        _publish({**describe(lab), "jar": built})
        say("ready: pytest --lab tests/cluster/… -k …    (Ctrl-C ends it)")
        try:
            while READY.exists() and _jar() == built:
                time.sleep(0.2)
            say("the trackers were built anew" if READY.exists() else "taken")
            while not READY.exists() and _in_use(lab.mark):
                time.sleep(0.2)
        finally:
            READY.unlink(missing_ok=True)
            _taken(lab.mark).unlink(missing_ok=True)  # of a run that was killed


def _publish(description: Description) -> None:
    new = READY.with_suffix(".new")
    new.write_text(json.dumps(description))
    new.replace(READY)


def _in_use(mark: str) -> bool:
    """Whether the run that took the pair still lives: it holds the lock of the file that it renamed."""
    # A run that was killed leaves the file, but not the lock.
    return _is_locked(_taken(mark))


@contextlib.contextmanager
def borrowed_pair() -> Iterator[Pair]:
    """The pair that stands ready; `LabError` if no lab is up."""
    taken = wait_until(_take, PATIENCE, "a fresh pair, see the lab's terminal")
    assert taken is not None
    descriptor, description = taken
    with _closing(descriptor):
        clusters = adopt(description)
        try:
            yield Pair(*clusters)
        finally:
            for cluster in clusters:
                cluster.release()
            _taken(description["mark"]).unlink(missing_ok=True)


def _take() -> tuple[int, Description] | None:
    """The pair that stands ready, now ours as long as the descriptor is open; None if there is none at the moment."""
    if not is_up():
        raise LabError("no lab is up: start `python -m tests.lab up --tracked` in another terminal")
    try:
        descriptor = os.open(READY, os.O_RDONLY)
        # Locked before it is renamed, so that the lab never finds it renamed and unlocked.
        if _lock(descriptor):
            description = json.loads(READY.read_text())
            if description["jar"] == _jar():
                READY.rename(_taken(description["mark"]))
                return descriptor, description
        os.close(descriptor)
    except FileNotFoundError:
        pass  # taken by another run just now, or not ready yet
    return None


def is_up() -> bool:
    """Whether a lab is up for this working copy."""
    return _is_locked(HOLDER)


def _is_locked(file: Path) -> bool:
    try:
        descriptor = os.open(file, os.O_RDONLY)
    except FileNotFoundError:
        return False
    with _closing(descriptor):
        return not _lock(descriptor)


@contextlib.contextmanager
def _closing(descriptor: int) -> Iterator[None]:
    try:
        yield
    finally:
        os.close(descriptor)


def _taken(mark: str) -> Path:
    return READY.with_name(f".lab-{mark}.json")


def _lock(descriptor: int) -> bool:
    """Lock it unless somebody else has; the lock goes with the descriptor."""
    try:
        fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        return False
    return True


def _jar() -> list[int]:
    """What identifies the trackers that were built; empty while there are none."""
    try:
        facts = JAR.stat()
    except FileNotFoundError:
        return []
    return [facts.st_mtime_ns, facts.st_size]
