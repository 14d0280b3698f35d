"""The content ledger's joins by vectors that the trackers' own test reads as well (`TenureVectorsTest`)."""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from status_tool.rules.content import NONE, Files, Life, Tail, Tenure, life_of, parse_tenure
from status_tool.vocabulary.header import SKEW_MS
from tests.simulation.ledger import Held, LedgerWorld, files_of

PATH = Path(__file__).resolve().parents[2] / "coprocessor_stubs/src/test/resources/ledger/tenures.json"
VECTORS: dict[str, Any] = json.loads(PATH.read_text())


def tenure(text: str) -> Tenure:
    parsed = parse_tenure(text.encode())
    assert parsed is not None
    return parsed


@pytest.mark.parametrize("files", VECTORS["files"], ids=lambda files: str(len(files["names"])))
def test_the_sum_of_a_familys_store_files(files: dict[str, Any]) -> None:
    """The simulation counts as the trackers do."""
    known = files_of(files["names"])
    assert [known.count, known.sum, known.links, known.loaded] == files["numbers"]


@pytest.mark.parametrize("case", VECTORS["tenures"], ids=lambda case: case["what"])
def test_what_is_judged_of_two_tenures(case: dict[str, Any]) -> None:
    """Whether anything changed; and that it is the same once a tracker has joined them."""
    both = [tenure(case["earlier"]), tenure(case["later"])]
    life = life_of(both, replicated_only=True, is_seen=False)
    assert (life.changed_ms is None) is case["follows"]
    if case["joined"] is not None:
        joined = life_of([tenure(case["joined"])], replicated_only=True, is_seen=False)
        assert (joined.changed_ms, joined.last and joined.last.after) == (life.changed_ms, both[1].after)


@pytest.mark.parametrize("case", VECTORS["tenures"], ids=lambda case: case["what"])
def test_the_simulations_trackers_join_the_same(case: dict[str, Any]) -> None:
    """Otherwise it would prove something of other trackers."""
    later = tenure(case["later"])
    held = Held(b"", later.open, later.began_ms, later.seq, set(), later.before["f"])
    held.kept = None if later.kept is None else later.kept["f"][0]
    held.replicated = later.replicated
    assert LedgerWorld.follows(LedgerWorld.__new__(LedgerWorld), tenure(case["earlier"]), held) is (
        case["joined"] is not None
    )


FILES = Files(1, 7, 0, 0)
OPEN = Tenure(open=5, began_ms=100_000, seq=10, before={"f": FILES, "g": NONE}, after={"f": FILES, "g": NONE})
CLOSED = replace(OPEN, closed_ms=110_000)


@pytest.mark.parametrize("earlier", [OPEN, CLOSED])
def test_a_family_that_is_gone_is_a_change_on_a_slave(earlier: Tenure) -> None:
    """Even if it had no files: cells of it may have been in the memstore. What a master drops has been shipped."""
    later = replace(OPEN, open=20, began_ms=120_000, before={"f": FILES}, after={"f": FILES})
    assert life_of([earlier, later], replicated_only=False, is_seen=False).changed_ms == 120_000
    assert life_of([earlier, later], replicated_only=True, is_seen=False).changed_ms is None


@pytest.mark.parametrize("dropped", [OPEN, CLOSED])
def test_a_family_that_a_master_drops_and_adds_again_is_a_change(dropped: Tenure) -> None:
    """The slave still has what the family held, and its deletes: they hide what the master writes with older times."""
    first = replace(dropped, replicated=("f", "g"))
    fewer = replace(CLOSED, before={"f": FILES}, after={"f": FILES}, replicated=("f",))
    without = replace(fewer, open=20, began_ms=200_000, closed_ms=210_000, seq=25)
    again = replace(OPEN, open=30, began_ms=240_000, seq=35, replicated=("f", "g"))
    last = replace(again, open=40, began_ms=260_000, seq=45)

    def changed_ms(*later: Tenure) -> int | None:
        return life_of([first, without, *later], replicated_only=True, is_seen=False).changed_ms

    assert (changed_ms(), changed_ms(again), changed_ms(again, last)) == (None, 240_000, 240_000)
    joined = replace(again, open=20, began_ms=200_000, before=fewer.before)
    assert life_of([first, joined], replicated_only=True, is_seen=False).changed_ms == 200_000
    assert changed_ms(replace(again, replicated=("f",))) is None


@pytest.mark.parametrize(("replicated", "changed_ms"), [(("f",), 120_000), (("g",), None)])
def test_a_master_that_begins_to_keep_more_of_what_it_ships_is_a_change(
    replicated: tuple[str, ...], changed_ms: int | None
) -> None:
    """It has forgotten cells that the slave still holds, which hide what it writes with older timestamps."""
    few, many, durable = (
        {"f": [versions, 0, 2**31 - 1, 0, 0, durable]} for versions, durable in ((1, 0), (3, 0), (1, 1))
    )
    before = replace(CLOSED, kept=few, replicated=replicated)
    later = replace(OPEN, open=20, began_ms=120_000, seq=25, kept=many, replicated=replicated)

    def found(before: Tenure, later: Tenure) -> int | None:
        return life_of([before, later], replicated_only=True, is_seen=False).changed_ms

    assert found(before, later) == changed_ms
    assert found(replace(before, seq=before.open + 3), later) == changed_ms
    unwritten = replace(before, seq=before.open + 2)
    assert found(unwritten, later) == changed_ms, "files from before it opened: an old region, or one of a split"
    new, opened = (replace(one, before={"f": NONE, "g": NONE}) for one in (unwritten, later))
    assert found(replace(new, after=new.before), opened) is None, "nothing but the markers of its life"
    assert found(replace(before, seq=before.open, closed_ms=None), later) == changed_ms, "a crash"
    assert found(before, replace(later, kept=durable)) is None, "what a crash may lose hides nothing"


@pytest.mark.parametrize("replicated_only", [True, False])
def test_a_region_that_opens_after_it_was_split_has_changed(replicated_only: bool) -> None:
    """Also with the files that it was closed with, and where a tracker has joined both lives: its children are gone."""
    joined = replace(OPEN, again_ms=120_000)
    later = replace(OPEN, open=11, began_ms=120_000, again_ms=120_000)
    for tenures in ([joined], [CLOSED, later]):
        assert life_of(tenures, replicated_only=replicated_only, is_seen=False).changed_ms == 120_000
    assert life_of([CLOSED, replace(later, again_ms=None)], replicated_only=replicated_only, is_seen=False) == Life(
        last=replace(later, again_ms=None)
    )


@pytest.mark.parametrize(("back_ms", "changed_ms"), [(SKEW_MS, None), (SKEW_MS + 1, 100_000)])
def test_tenures_follow_in_time_as_far_as_clocks_tell(back_ms: int, changed_ms: int | None) -> None:
    later = replace(OPEN, open=20, began_ms=OPEN.began_ms - back_ms)
    assert life_of([CLOSED, later], replicated_only=False, is_seen=False).changed_ms == changed_ms


@pytest.mark.parametrize(
    ("change", "tails"),
    [
        ({}, (Tail(7, 19, 120_000),)),
        ({"closed_ms": 110_000}, ()),
        ({"seq": 19}, ()),
        ({"durable": 19}, ()),
        ({"replicated": ("f",)}, ()),
    ],
    ids=["a crash", "a close", "a marker", "a flush", "a family that is not replicated"],
)
def test_what_a_crashed_server_wrote_last_shows_at_the_next_opening(change: dict[str, Any], tails: object) -> None:
    """HBase opens a region one above what it has replayed: on a master, those are entries to be shipped, or markers."""
    earlier = replace(OPEN, **{"origin": 7, "replicated": ("f", "g"), **change})
    later = replace(OPEN, open=20, began_ms=120_000, seq=20)
    assert life_of([earlier, later], replicated_only=True, is_seen=False).tails == tails
    assert life_of([earlier, later], replicated_only=False, is_seen=False).tails == ()
