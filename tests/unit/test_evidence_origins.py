"""Which origins are settled."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from dataclasses import replace
from typing import Any

import pytest

from status_tool.explain.advice import families_of
from status_tool.explain.problems import to_problem
from status_tool.gather.snapshot import apply_shutdown
from status_tool.printable import iso
from status_tool.rules.context import build_context
from status_tool.rules.origins import Origin, has_doubts, judge_origins, origin_name, slave_doubts, slave_flushed_ms
from status_tool.rules.words import NO_WORD, Word, covers_file
from status_tool.runs.question import refuse_since
from status_tool.sources import codec
from status_tool.vocabulary.findings import Finding
from status_tool.vocabulary.header import BY_CHECK, Header
from status_tool.vocabulary.scope import Baseline, Scope
from status_tool.vocabulary.state_rows import ServerRow, column

MASTER = Header("master", "m", created_ms=9_000, cut_ms=8_000, shutdown_ms=5_000, barrier_issued_ms=8_000)
LIVE = {"origin": 1, "server": "a,1,1", "role": "w", "live": True, "tracked": True, "echoed": True, "read_ms": 8_100}


def judge(
    *rows: dict[str, Any],
    since_ms: int | None = None,
    drained: frozenset[int] = frozenset(),
    word: Word = NO_WORD,
) -> Origin:
    (origin,) = judge_origins(rows, MASTER, since_ms, drained, word=word)
    return origin


def word_of(since_ms: int) -> Word:
    """What `--since` with this time covers of servers."""
    return Word(covers_file(since_ms, MASTER))


def named(reason: str | None) -> int:
    """The time of the `--since` that a message names, which a check takes."""
    (given,) = re.findall(r"--since (\d+)", reason or "")
    refuse_since(MASTER, Baseline(int(given)))
    return int(given)


@pytest.mark.parametrize("detail", [None, '{"errors":0,"failed_writes":7}'])
def test_a_live_origin_is_settled_by_its_echo_and_one_that_is_gone_by_its_final_flush(detail: str | None) -> None:
    """Writes that failed and were made again are no errors. A server that may live has to echo."""
    live = {**LIVE, "detail": detail}
    stopped = {**live, "live": False, "echoed": False, "final_ms": 7_000}
    for row in (live, {**live, "live": False}, stopped):
        assert judge(row).reason is None
    for row in (
        {**live, "echoed": False},
        {**live, "echoed": None},
        *({**stopped, "live": one} for one in (True, None)),
    ):
        assert judge(row).reason == "has not flushed past the cut"


def test_a_live_server_without_the_masters_tracker_is_never_settled() -> None:
    for untracked in ({"tracked": False, "role": None}, {"tracked": None}, {"role": "r"}):
        assert judge({**LIVE, **untracked}).reason == "runs without the tracker"
    assert judge({**LIVE, "role": "r"}, LIVE).reason is None
    assert judge_origins([{**LIVE, "role": "r", "live": False}], MASTER) == (), "it only received"


def test_a_crash_is_named_and_can_be_accepted_or_drained() -> None:
    crashed = {**LIVE, "live": False, "echoed": False, "flush_ms": 0, "gone_ms": 7_000}
    assert judge(crashed).reason == (
        "stopped without a final flush (crash, kill or abort), last flush at 1970-01-01T00:00:00.000Z;"
        " --since 7000 or later accepts what was written until then, once the tables have been compared"
    )
    assert judge(crashed, since_ms=6_999).reason is not None
    assert judge(crashed, since_ms=7_000).reason is None
    assert "run `run -m` again" in (judge({**crashed, "gone_ms": None}, since_ms=99_000).reason or "")
    assert judge(crashed, drained=frozenset({1})).reason is None
    assert judge({**crashed, "live": True}, drained=frozenset({1})).reason is not None


@pytest.mark.parametrize(("flush_ms", "accepted"), [(None, True), (7_000, True), (7_001, False)])
def test_a_mark_that_a_server_is_gone_counts_until_it_flushes(flush_ms: int | None, accepted: bool) -> None:
    """As when the HBase master was starting, and knew no server: it lived, and what it wrote since is not accepted."""
    times = {ServerRow.GONE_MS: 7_000, ServerRow.FLUSHED_MS: flush_ms}
    cells = {column(name): (time.to_bytes(8, "big"), 1) for name, time in times.items() if time is not None}
    crashed = codec.server(cells, "w", ()) | {"origin": 1, "server": "a,1,1", "live": False, "tracked": True}
    assert (judge(crashed, since_ms=7_500).reason is None) == accepted


def test_how_far_a_clock_may_be_ahead() -> None:
    assert judge(LIVE).after_ms == 5_150
    assert judge({**LIVE, "read_ms": 7_000}).after_ms == 5_050, "a clock that is behind only makes it stricter"
    assert judge({**LIVE, "read_ms": None}).after_ms is None
    assert judge({**LIVE, "echoed": False}).after_ms is None
    unknown = Header("master", "m", 9_000, 8_000, shutdown_ms=None, barrier_issued_ms=8_000)
    assert judge_origins([LIVE], unknown)[0].after_ms is None


def test_a_clock_that_was_set_back_tells_nothing_of_a_late_write_time() -> None:
    """Write times from before it was set back may be as late as `clock_back_ms`."""
    assert judge({**LIVE, "detail": '{"clock_back_ms": 5151}'}).after_ms is None
    assert judge({**LIVE, "detail": '{"clock_back_ms": 5150}'}).after_ms == 5_150, "no write time was later than that"
    assert judge({**LIVE, "detail": '{"clock_back_ms": "soon"}'}).after_ms is None


@pytest.mark.parametrize(
    ("health", "baseline", "is_in_doubt"),
    [
        ({"clock_back_ms": 7_000, "clock_low_ms": 4_000}, 6_000, True),
        ({"clock_back_ms": 9_000, "clock_low_ms": 4_000}, 6_000, True),
        ({"clock_back_ms": 9_000, "clock_low_ms": 4_000}, 9_000, False),
        ({"clock_back_ms": 9_000, "clock_low_ms": 4_000}, 3_999, False),
        ({"clock_back_ms": 9_000}, 3_999, True),  # how far is not known
    ],
)
def test_a_clock_that_was_set_back_past_what_is_accepted(
    health: dict[str, int], baseline: int, is_in_doubt: bool
) -> None:
    """New entries bear times of the baseline. The `--since` that the message names is a way out."""
    row = {**LIVE, "detail": json.dumps(health)}
    (origin,) = judge_origins([row], MASTER, baselines=[baseline])
    assert (origin.reason is not None) == is_in_doubt
    if is_in_doubt:
        since_ms = named(origin.reason)
        assert since_ms == min(health["clock_back_ms"], MASTER.cut_ms)
        assert judge_origins([row], MASTER, since_ms, baselines=[since_ms], word=word_of(since_ms))[0].reason is None


@pytest.mark.parametrize("value", ["soon", [5], {"ms": 5}, True, 1.5, 1 << 70], ids=repr)
@pytest.mark.parametrize("name", ["clock_back_ms", "clock_low_ms", "errors"])
def test_what_cannot_be_read_of_a_server_is_no_sign_that_nothing_was_wrong(name: str, value: object) -> None:
    """Its clock may have been set back past what is accepted, and its tracker have missed entries."""
    damaged = {**LIVE, "detail": json.dumps({"clock_back_ms": 7_000, "clock_low_ms": 6_999, name: value})}
    assert "cannot be parsed" in (judge(damaged).reason or "")
    assert has_doubts(damaged), "so its row stays"
    (doubt,) = slave_doubts([{**damaged, "role": "r"}], 8_000, MASTER)
    assert "cannot be parsed; --forget TABLE --since TABLE=8000, for each table in scope" in doubt
    gone = {**damaged, "live": False, "echoed": False, "gone_ms": 7_500}
    for baselines, is_settled in (([], True), ([5_000], False)):
        (origin,) = judge_origins([gone], MASTER, drained=frozenset({1}), baselines=baselines)
        assert (origin.reason is None) == is_settled, "the queues hold what it wrote, whatever time that bears"


def test_a_row_without_a_clock_that_was_set_back_is_in_no_doubt() -> None:
    for detail in (None, "{}", '{"errors": 0}', '{"errors": null, "clock_back_ms": null}'):
        (origin,) = judge_origins([{**LIVE, "detail": detail}], MASTER, baselines=[5_000])
        assert origin.reason is None


def test_errors_of_a_tracker_are_accepted_by_since() -> None:
    timed = {**LIVE, "detail": '{"errors": 2, "last_error_ms": 6000}'}
    assert "--since 6000" in (judge(timed).reason or "")
    assert judge(timed, since_ms=5_999).reason is not None
    assert judge(timed, since_ms=6_000).reason is None
    assert judge(
        {**timed, "detail": '{"errors": 1, "last_error_ms": 6000, "clock_back_ms": 7000}'}, since_ms=6_999
    ).reason
    gone = {**timed, "live": False, "echoed": False, "final_ms": 7_000}
    assert judge(gone, since_ms=6_000).reason is None
    for detail in ('{"errors": 1}', '{"errors": 1, "last_error_ms": "x", "clock_back_ms": 7000}'):
        untimed = judge({**gone, "detail": detail, "flush_ms": 6_500}, since_ms=10**15).reason or ""
        assert "1 tracker errors" in untimed
        assert "--since" not in untimed, "the row does not say until when"


def test_the_slave_has_flushed_when_all_live_servers_echoed() -> None:
    """What each had recorded when it read the barrier is in the table; the first one counts."""
    ours = {**LIVE, "role": "r", "read_ms": 7}
    assert slave_flushed_ms([ours]) == 7
    assert slave_flushed_ms([ours, {**ours, "read_ms": 6}]) == 6
    assert slave_flushed_ms([ours, {**ours, "live": False, "echoed": False}]) == 7
    assert slave_flushed_ms([ours, {**ours, "origin": 2, "echoed": False}]) is None
    assert slave_flushed_ms([ours, {"live": True, "tracked": False}]) is None
    assert slave_flushed_ms([]) is None


def test_names_and_times() -> None:
    assert origin_name(-1, {}) == "f" * 16
    assert origin_name(1, {1: "a,1,1"}) == "a,1,1"
    assert origin_name(None, {}) is None
    assert iso(2**62) == f"{2**62} ms"


@pytest.mark.parametrize(
    "stuck",
    [
        {"live": False, "echoed": False, "flush_ms": 0, "gone_ms": 7_000},
        {"live": False, "echoed": False, "final_ms": 6_000, "detail": '{"errors": 1, "last_error_ms": 5000}'},
        {"detail": '{"errors": 3, "last_error_ms": 4000}'},
        {"detail": '{"errors": 3, "last_error_ms": 4000, "clock_back_ms": 7500}'},
        # Later than the cut, or nobody knows when: a check takes no such time, and the master may be gone.
        {"live": False, "echoed": False, "flush_ms": 0, "gone_ms": 8_700},
        {"live": False, "echoed": False, "flush_ms": 0, "gone_ms": None},
        {"live": False, "echoed": False, "final_ms": 8_900, "detail": '{"errors": 1, "last_error_ms": 8500}'},
        {"detail": '{"errors": 3, "last_error_ms": 4000, "clock_back_ms": 9000}'},
        {"detail": '{"clock_back_ms": "soon"}'},
        {"live": False, "echoed": False, "final_ms": 6_000, "detail": '{"clock_back_ms": [5000]}'},
        {"live": False, "echoed": False, "final_ms": 6_000, "detail": '{"clock_back_ms": true}'},
    ],
)
def test_the_since_that_a_message_names_is_enough_and_nothing_less(stuck: dict[str, Any]) -> None:
    """The way out, walked as it is printed: the check takes it."""
    row = {**LIVE, **stuck}
    since_ms = named(judge(row).reason)
    assert judge(row, since_ms=since_ms, word=word_of(since_ms)).reason is None
    less = since_ms - 1
    assert judge(row, since_ms=less, word=word_of(less)).reason is not None


def test_a_word_for_all_of_file_settles_no_live_server_that_has_yet_to_flush() -> None:
    """It may answer the next run."""
    for silent in ({"echoed": False}, {"tracked": False}, {"live": None, "echoed": False}):
        assert judge({**LIVE, **silent}, since_ms=8_000, word=word_of(8_000)).reason is not None


def test_a_word_after_the_shutdown_time_moves_the_cut_with_it() -> None:
    """Otherwise it is refused."""
    header = replace(MASTER, cut_ms=5_000)
    crashed = {**LIVE, "live": False, "echoed": False, "flush_ms": 0, "gone_ms": 7_000}
    (origin,) = judge_origins([crashed], header)
    assert "; -s 8000 --since 7000 or later accepts" in (origin.reason or "")
    refuse_since(apply_shutdown(header, 8_000, BY_CHECK, 8_000), Baseline(7_000))


class Counted(tuple[Any, ...]):
    """Knows how often anybody went through it."""

    walks = 0

    def __iter__(self) -> Iterator[Any]:
        Counted.walks += 1
        return super().__iter__()


def test_words_for_a_finding_do_not_go_through_all_origins_and_tables() -> None:
    """There may be a million findings, and ten thousand servers that were restarted in a year."""
    crashed = {**LIVE, "origin": 2, "server": "b,1,1", "live": False, "echoed": False, "flush_ms": 0}
    table = {"kind": "table", "table": "t", "detail": '{"families": {"f": {"scope": 1}}}'}
    servers = [{"kind": "server", **row} for row in (LIVE, crashed)]
    built = build_context([*servers, table], [], [], MASTER, Header("slave", "s", 9_000, 9_000), Scope())
    context = replace(built, origins=Counted(built.origins), tables=Counted(built.tables))
    before = Counted.walks
    for _ in range(10):
        problem = to_problem(Finding("unsettled", table="t", region="r", origin=2, from_seq=0), context)
        assert problem.origin == "b,1,1"
        assert "stopped without a final flush" in problem.detail
        assert to_problem(Finding("missing", table="t", region="r", origin=1, from_seq=0), context).origin == "a,1,1"
        assert families_of(None, context, "t") == ("f",)
        assert families_of(None, context, "unknown") == ()
    assert Counted.walks == before
