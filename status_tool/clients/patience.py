"""Rules for retries of HDFS requests: which refusals say nothing about a file, and how long to retry them."""

from __future__ import annotations

import random
import threading
import time

from status_tool.clients.hdfscli import ELSEWHERE, LATER, Refused
from status_tool.errors import ConnectionFailed

PATIENCE_S = 120.0
"""Time that a NameNode that is down, in safe mode or in standby is retried: a restart takes about a minute."""
SETTLING_S, SETTLED_S = 20.0, 60.0
"""For how long requests for a block that cannot be reached are retried, and after how long without such a refusal
retries start again: after a restart DataNodes need seconds to register, but a lost block stays lost.
"""
_NO_BLOCK = ("Fail to get block", "Could not obtain block")
"""By Hadoop's FileChecksumHelper and DFSInputStream, when none of the DataNodes that hold a block serves it."""
_FIRST_PAUSE_S, _LONGEST_PAUSE_S = 0.1, 5.0
_CUT_OFF = (
    *("ConnectException", "NoRouteToHostException", "SocketTimeoutException", "SocketException", "EOFException"),
    *ELSEWHERE,
    *LATER,
)
"""Answer of a client of Hadoop's that cannot reach an active NameNode: it says nothing about the file."""
_CALL_FAILED = "Failed on local exception"
"""By Hadoop's NetUtils.wrapException, for what has no class of its own."""


def is_cut_off(refusal: Refused) -> bool:
    """Return True if no active NameNode could be reached."""
    return refusal.name in _CUT_OFF or _CALL_FAILED in str(refusal)


class Patience:
    """The pauses of one client, for all its threads."""

    def __init__(self, seconds: float) -> None:
        self.seconds = seconds
        self._stop = threading.Event()
        self._unreached, self._settled = float("-inf"), 0.0

    @property
    def is_over(self) -> bool:
        """Return True if `end` was called."""
        return self._stop.is_set()

    def end(self) -> None:
        """Abort all pauses."""
        self._stop.set()

    def deadline(self) -> float:
        """Return the time (monotonic) until which a request that starts now is retried."""
        return time.monotonic() + self.seconds

    def may_settle(self, refusal: Refused) -> bool:
        """Return True if to retry a request for an unreachable block. Only the first of many lost blocks waits."""
        if not any(sign in f"{refusal.name}: {refusal}" for sign in _NO_BLOCK):
            return False
        now = time.monotonic()
        if now - self._unreached > SETTLED_S:
            self._settled = now + SETTLING_S
        self._unreached = now
        return now < self._settled

    def pause(self, turn: int) -> None:
        """Wait with exponential backoff."""
        # Threads that have failed together would retry together without jitter.
        seconds = min(_LONGEST_PAUSE_S, _FIRST_PAUSE_S * 2 ** min(turn, 10)) * random.uniform(0.5, 1.0)
        if self._stop.wait(seconds):
            raise ConnectionFailed("stopped while waiting for the NameNode")
