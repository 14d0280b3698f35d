"""Records of the operator's word on the slave: `--since` adds them, `--forget` deletes them."""

from __future__ import annotations

from collections.abc import Iterable

from status_tool.clients.config import Settings
from status_tool.rules.kept_proofs import kept_of, told
from status_tool.runs.write import Say
from status_tool.sources.state_table import StateTable
from status_tool.vocabulary.outcome import Outcome


def forget_tables(settings: Settings, tables: Iterable[str], master_id: str, say: Say) -> list[str]:
    """Take back what the slave keeps of tables against a master; return what it was, in words."""
    names = sorted(tables)
    if not names:
        return []
    state = StateTable(settings.thrift(), settings.state_table)
    state.require()
    stored = state.kept()
    kept = {table: one for table in names if (one := kept_of(stored.get(table, {}).get(master_id))) is not None}
    state.record_kept(master_id, dict.fromkeys(kept))
    unknown = [f"--forget {table}: nothing was recorded of its past" for table in names if table not in kept]
    return _said([*(f"forgotten: {line}" for line in told(kept, undo="")), *unknown], say)


def record_words(settings: Settings, outcome: Outcome, say: Say) -> list[str]:
    """Record what the outcome accepts on the operator's word; return what was recorded, in words."""
    if not outcome.accepts:
        return []
    StateTable(settings.thrift(), settings.state_table).record_kept(outcome.master_cluster_id, outcome.accepts)
    kept = {table: one for table, detail in outcome.accepts.items() if (one := kept_of(detail)) is not None}
    return _said([f"recorded: {line}" for line in told(kept)], say)


def _said(lines: list[str], say: Say) -> list[str]:
    for line in lines:
        say(line)
    return lines
