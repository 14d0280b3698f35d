"""Runs of random steps, each repeated by its seed."""

from __future__ import annotations

import random
from collections import Counter
from collections.abc import Iterator

from tests.simulation.dice import STEP_BYTES
from tests.simulation.steps import SWITCHES, BrokenPromise, Run

STEPS_A_RUN = 150


def played(seeds: Iterator[int], steps: int) -> Counter[str]:
    """Random runs until so many steps are done; `BrokenPromise` names the seed that repeats the run."""
    seen: Counter[str] = Counter()
    while seen["steps"] < steps:
        seen += played_once(next(seeds)).seen
    return seen


def played_once(seed: int) -> Run:
    """One run of a seed, to its end."""
    dice = random.Random(seed)
    run = Run(dice.getrandbits(len(SWITCHES)) if dice.randrange(5) else 0)
    try:
        run.play(dice.getrandbits(8 * STEP_BYTES) for _ in range(STEPS_A_RUN))
        run.drain()
    except BrokenPromise as broken:
        raise BrokenPromise(f"seed {seed}: {broken}\n" + "\n".join(run.world.log)) from broken
    return run
