"""The operator's word for the past (`--since`): when it covers all of FILE, and the option that a message names.

A check takes no word for a time after its cut, and nothing that was written after FILE's barrier is in scope. But a row
may stamp a change later than the barrier, by another clock or because it came before the last read, and names only the
newest of its kind. So a word that is given for FILE's barrier covers each change that FILE tells of, whatever its time.
A word of an earlier check does not: the hosts' clocks differ by which two FILEs were written.
"""

from __future__ import annotations

import shlex
from dataclasses import dataclass

from status_tool.rules.segments import is_later
from status_tool.vocabulary.header import MASTER, Header


def known_until_ms(master: Header) -> int:
    """Return the time up to which FILE tells what was written: that of its barrier."""
    return master.cut_ms if master.barrier_issued_ms is None else master.barrier_issued_ms


def covers_file(word_ms: int | None, master: Header) -> bool:
    """Return True if a word that is given in this check covers everything that FILE tells of."""
    return word_ms is not None and word_ms >= known_until_ms(master)


def is_past(moment_ms: int | None, since_ms: int | None, word_ms: int | None, master: Header) -> bool:
    """Return True if a change on the master is accepted: by its time, or by a word of this check for all of FILE.

    `since_ms` is the time up to which the past is accepted by whatever it is. A change of which nobody knows when it
    happened is later than any.
    """
    return not is_later(moment_ms, since_ms) or covers_file(word_ms, master)


@dataclass(frozen=True, slots=True)
class Word:
    """The parts of a check that the operator's word covers whatever the time, as no table can be told apart."""

    is_whole: bool = False
    """True if it covers everything that FILE tells of the master."""
    is_anew: bool = False
    """True if it covers what has happened to all tables in scope on the slave by now (`--forget`)."""
    known_until_ms: int | None = None
    """Time after which it is taken for none; None: not known."""

    def is_for_all_of(self, side: str) -> bool:
        """Return True if it covers whatever servers of a side have done that are gone."""
        return self.is_whole if side == MASTER else self.is_anew


NO_WORD = Word()


def since_option(table: str | None, moment_ms: int | None, master: Header | None = None) -> str:
    """Return the options of a check that accept the past up to a change, quoted for a shell.

    A time after a shutdown time needs `-s`, too, so that the cut is as late.
    """
    shift = ""
    if master is not None and moment_ms is not None:
        until_ms = known_until_ms(master)
        moment_ms = min(moment_ms, until_ms)
        shift = f"-s {until_ms} " if moment_ms > master.cut_ms else ""
    time = "TIME" if moment_ms is None else str(moment_ms)
    return f"{shift}--since {shlex.quote(time if table is None else f'{table}={time}')}"
