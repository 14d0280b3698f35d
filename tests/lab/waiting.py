"""Waiting with an end."""

from __future__ import annotations

import time
from collections.abc import Callable
from typing import TypeVar

from .errors import LabTimeout

T = TypeVar("T")


def wait_until(predicate: Callable[[], T], timeout: float = 60, what: str = "", interval: float = 0.2) -> T:
    """The predicate's first true value; LabTimeout, naming `what`, if there is none in `timeout` seconds.

    It is asked again after an eighth of the interval first, and twice as late each time: most waits are short.
    """
    end = time.monotonic() + timeout
    pause = interval / 8
    while True:
        value = predicate()
        if value:
            return value
        if time.monotonic() > end:
            raise LabTimeout(f"waited {timeout:g} s in vain: {what or predicate!r} (last seen: {value!r})")
        time.sleep(pause)
        pause = min(2 * pause, interval)
