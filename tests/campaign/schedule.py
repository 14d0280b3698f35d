"""What a seed stands for: a kind of arena, tables, writers and a list of steps."""

from __future__ import annotations

import json
import random
from collections.abc import Mapping
from dataclasses import asdict, dataclass, replace
from typing import Any

LOOK = "look"
TABLES: Mapping[str, Mapping[str, int]] = {"a": {"f": 1, "l": 0}, "b": {"f": 1, "g": 1}, "c": {"l": 0}}
"""Families with their scopes; `c` is never replicated."""

ARENAS = ("plain", "slow", "skewed", "apart")
"""Kinds that a seed chooses from."""
WITNESSED = "witness"
"""No tracker on the master, and two witnesses beside the slave: every seed has another schedule for this kind."""
BOTH = "both"
"""Trackers on the master, and two witnesses: the same with all steps."""

HARMLESS = {
    "move": 4,
    "split": 3,
    "merge": 2,
    "roll": 3,
    "flush": 2,
    "kill_master_rs": 4,
    "stop_master_rs": 3,
    "kill_slave_rs": 4,
    "stop_slave_rs": 2,
    "restart_servers": 3,
    "restart_hmaster": 2,
    "restart_slave_hmaster": 1,
    "disable_peer": 3,
    "enable_peer": 2,
    "disable_slave_table": 2,
    "disable_master_state": 1,
    "disable_slave_state": 2,
    "pause_master_datanode": 1,
    "pause_slave_datanode": 1,
    "pause_zookeeper": 1,
    "pause_slave_rs": 1,
    "blind_server": 1,
    "major_compact": 1,
    "foreign_slave_rows": 1,
    "async_rows": 2,
    "reconfigure_peer": 1,
    "pause_past_session": 2,
    "set_clock_back": 1,
    "truncate_master_region": 1,
    "restart_all_master_rs": 1,
    "restart_all_slave_rs": 1,
    "lose_state_region": 3,
}
"""Steps after which everything still arrives, with how often they are drawn."""

LOSSY = {
    "remove_peer": 3,
    "readd_peer": 3,
    "filter_peer": 2,
    "unfilter_peer": 1,
    "recreate_slave_table": 2,
    "drop_slave_table": 1,
    "drop_slave_family": 1,
    "bulk_load": 1,
    "full_slave_disk": 1,
    "filter_families": 3,
    "restore_master": 2,
    "restore_slave": 2,
    "clone_master": 2,
    "clone_over_slave": 2,
    "truncate_slave": 1,
    "truncate_slave_region": 2,
    "bulk_load_and_crash": 1,
    "bulk_load_not_replicated": 1,
    "alter_slave": 2,
    "restore_set_master": 3,
    "restore_set_slave": 4,
    "family_comes_back": 2,
    "blind_slave_server": 2,
}
"""Steps after which something may be missing for good."""

WITNESSES = {"kill_witness": 4, "stop_witness": 2, "pause_witness": 2}
"""Steps for witnesses, after which everything still arrives."""
UNWITNESSED = {
    # There are no trackers on the master, and no state table.
    *("disable_master_state", "blind_server", "restore_set_master", "set_clock_back"),
    # Beside the WAL, which no witness sees (docs/witness.md).
    *("bulk_load_not_replicated", "restore_master", "clone_master"),
}
"""Steps that make no sense for a master without trackers."""


@dataclass(frozen=True)
class Step:
    """One step: `pick` chooses among what there is then (a server, a region, a table), `pause_ms` follows it."""

    action: str
    pick: int = 0
    pause_ms: int = 0


@dataclass(frozen=True)
class Schedule:
    """Everything that is drawn from a seed. What two runs of it cannot share is the timing of the servers."""

    seed: int
    arena: str
    splits: tuple[str, ...]
    rates: tuple[int, ...]
    """Operations a second, one writer each."""
    steps: tuple[Step, ...]

    def to_json(self) -> str:
        """One line."""
        return json.dumps(asdict(self))

    @staticmethod
    def from_json(text: str) -> Schedule:
        """What `to_json` wrote."""
        fields: dict[str, Any] = json.loads(text)
        steps = tuple(Step(**step) for step in fields.pop("steps"))
        splits, rates = tuple(fields["splits"]), tuple(fields["rates"])
        return Schedule(fields["seed"], fields["arena"], splits, rates, steps)

    def with_steps(self, steps: tuple[Step, ...]) -> Schedule:
        """The same with other steps."""
        return replace(self, steps=steps)


def draw(seed: int, kind: str | None = None) -> Schedule:
    """The schedule of a seed, the same on every machine and in every process; for a kind, or that of the seed."""
    rng = random.Random(seed)
    lossy = rng.random() < 0.5
    weights = HARMLESS | (LOSSY if lossy else {})
    own = kind if kind in (WITNESSED, BOTH) else None
    if own:
        left_out = UNWITNESSED if own == WITNESSED else set()
        weights = {name: often for name, often in (weights | WITNESSES).items() if name not in left_out}
    names = sorted(weights)
    steps = [
        Step(action, rng.randrange(1 << 16), rng.choice((0, 100, 300, 800)))
        for action in rng.choices(names, [weights[name] for name in names], k=rng.randint(3, 6))
    ]
    for _ in range(rng.randint(1, 2)):
        steps.insert(rng.randint(1, len(steps)), Step(LOOK, rng.randrange(1 << 16)))
    return Schedule(
        seed=seed,
        arena=own or ARENAS[seed % len(ARENAS)],
        splits=tuple(sorted(f"{rng.randrange(100, 900):03d}" for _ in range(rng.randint(0, 2)))),
        rates=tuple(rng.choice((5, 20, 60)) for _ in range(rng.randint(1, 2))),
        steps=tuple(steps),
    )
