"""How a witness's folder grows: synthetic entries straight into its store, pruned in between as `run -m` does it.

No cluster: `bench/java/WitnessGrowth.java` fills the folder by the witness's own classes, in a JVM like its.
"""

from __future__ import annotations

import json
import multiprocessing
import resource
import tempfile
import time
from dataclasses import dataclass
from pathlib import Path

from bench.jvm import lines
from bench.results import Ratio, record
from status_tool.cli.witness import WITNESS_JVM
from status_tool.printable import counted
from status_tool.sources.arrivals import read_arrivals

_MAIN = "io.github.statustool.witness.WitnessGrowth"


@dataclass(frozen=True)
class Growth:
    """A folder to fill."""

    entries: int
    regions: int
    prune_every: int
    """Entries between two prunings; 0: none."""
    families: int
    """One of which an entry is, at random: more of them cut runs."""


def measure_growth(growth: Growth) -> None:
    """Fill a folder, start a witness's store on it once more, and read it as `run -m` does."""
    with tempfile.TemporaryDirectory() as temporary:
        folder = Path(temporary) / "store"
        fill = ("fill", folder, growth.entries, growth.regions, growth.prune_every, growth.families)
        sizes = list[int]()
        for line in lines(WITNESS_JVM, _MAIN, *map(str, fill)):
            look = json.loads(line)
            sizes.append(look["bytes"])
            print(
                f"{look['entries']:,} entries: {look['bytes']:,} bytes ({look['largest']:,} at most so far), peak heap "
                f"{look['heap_mib']} MiB, {look['entries'] / look['keep_s']:,.0f} entries a second of keeping, "
                f"{look['prune_s']:.1f} s of pruning",
                flush=True,
            )
        (started,) = map(json.loads, lines(WITNESS_JVM, _MAIN, "start", str(folder)))
        print(f"a start takes {started['start_s']:.2f} s, peak heap {started['heap_mib']} MiB", flush=True)
        with multiprocessing.get_context("spawn").Pool(1) as pool:
            seconds, entries, runs, mib = pool.apply(_read, (folder,))
        assert entries == growth.entries, f"{entries} of {growth.entries} entries are in the folder"
        print(f"read_arrivals takes {seconds:.2f} s for {runs:,} runs, peak {mib} MiB", flush=True)
        half = sizes[len(sizes) // 2 - 1]
        asked = f"a folder of {counted(growth.regions, 'region')}, {counted(growth.families, 'kind')} of entries"
        record(Ratio("witness", asked, "after half of them", growth.entries, "entries", "bytes", (sizes[-1],), (half,)))


def _read(folder: Path) -> tuple[float, int, int, int]:
    """Seconds, entries, runs, and the peak of this process in MiB."""
    began = time.monotonic()
    read = read_arrivals(folder).values()
    seconds = time.monotonic() - began
    peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss >> 10
    return seconds, sum(one.count() for one in read), sum(len(one.firsts) for one in read), peak
