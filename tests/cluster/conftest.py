"""Real clusters for the tests, and one Spark session that in-process runs of the tool share."""

from __future__ import annotations

import contextlib
import ctypes
from collections.abc import Iterator, Mapping
from pathlib import Path, PurePosixPath
from typing import Any, TypeVar

import pytest
from pyspark.sql import SparkSession
from xdist.scheduler import LoadFileScheduling

from status_tool.digests import compare
from status_tool.spark.session import spark_session
from tests.campaign.arena import ALL, SITE
from tests.lab.lab import Lab
from tests.lab.ports import Ports
from tests.pair import BOTH_TRACKERS, JAR, REPLICATE_TRACKER, WAL_TRACKER, Pair, start_pair, tracked_spec
from tests.secure_pair import SecurePair, a_secure_pair
from tests.standing import borrowed_pair

PR_SET_TIMERSLACK = 29
TIMER_SLACK_NS = 150_000_000


@pytest.fixture(scope="session", autouse=True)
def _coarse_timers() -> None:
    """Let timed waits of this process and of what it starts last up to 150 ms longer (prctl(2)).

    Each client of HBase looks at its timers a hundred times a second (Netty's `HashedWheelTimer`, twice a JVM): a fifth
    of the CPU of all servers of the tests.
    """
    ctypes.CDLL(None).prctl(PR_SET_TIMERSLACK, ctypes.c_ulong(TIMER_SLACK_NS))


SETTLE_S = compare.SETTLE_S
"""How long a user's run holds rows unchanged that differ."""


@pytest.fixture(scope="session", autouse=True)
def _differences_settle_soon() -> Iterator[None]:
    """Report a difference that has not changed for two seconds; `SETTLE_S` is shown by a test of its own."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(compare, "SETTLE_S", 2.0)
        patch.setattr(compare, "PAUSE_S", 0.25)
        yield


@pytest.fixture(scope="session")
def warm_spark() -> Iterator[None]:
    """A session that in-process runs find and leave running; starting one takes longer than a small check."""
    with spark_session() as session:
        yield
        assert SparkSession.getActiveSession() is session, "a test has ended it: each check after it started its own"


HARSH = {
    "hbase.replicationtable.sweep": "2000",
    "replication.sleep.before.failover": "20000",
    "hbase.replication.bulkload.enabled": "true",
    "hbase.wal.provider": "multiwal",
}
# Heads get into the state table by barrier or clean stop only, so that a killed server takes its last ones along.
RARE_FLUSHES = {"hbase.replicationtable.updateperiod": "600000"}
SPECS = {
    "faults": (
        tracked_spec("master", region_servers=1, trackers=WAL_TRACKER, site={**HARSH, **RARE_FLUSHES}),
        tracked_spec("slave", region_servers=1, trackers=REPLICATE_TRACKER, site=HARSH),
    )
}
"""Pairs unlike the others, by what a worker takes as a whole: servers that get killed, with the contract's trackers."""


@contextlib.contextmanager
def a_pair(config: pytest.Config, whole: str) -> Iterator[Pair]:
    """Two tracked clusters with two region servers and one, asyncfs WALs; with `--lab` the pair that stands ready.

    Or those of `SPECS`.
    """
    assert JAR.is_file(), "build the trackers first: make setup"
    if whole in SPECS:
        with Lab() as lab:
            yield start_pair(lab, *SPECS[whole])
    elif config.getoption("--lab"):
        with borrowed_pair() as ready:
            yield ready
    else:
        with Lab() as lab:
            yield start_pair(lab, tracked_spec("master"), tracked_spec("slave", region_servers=1))


@pytest.fixture(scope="session")
def standing() -> Iterator[contextlib.ExitStack]:
    """What modules with a pair in common leave up for the next one of them."""
    with contextlib.ExitStack() as stack:
        yield stack


PAIRS: dict[str, Any] = {}
"""The pairs that are `standing`, by what a worker takes as a whole."""
P = TypeVar("P")


@pytest.fixture(scope="module")
def pair(request: pytest.FixtureRequest, warm_spark: None, standing: contextlib.ExitStack) -> Iterator[Pair]:
    """A pair, for its module or for several in turn: starting one costs as much as some ten tests.

    Tests use tables of their own.
    """
    yield from in_turn(request, standing, a_pair(request.config, taken_with(request.path.as_posix())))


@pytest.fixture(scope="module")
def secure_pair(request: pytest.FixtureRequest, standing: contextlib.ExitStack) -> Iterator[SecurePair]:
    """A pair with Kerberos and TLS, likewise."""
    yield from in_turn(request, standing, a_secure_pair())


@contextlib.contextmanager
def to_upgrade(trackers: Mapping[str, str]) -> Iterator[tuple[Lab, Pair]]:
    """A pair without trackers and with one server a side, or what its upgrade leaves. It is an arena of the campaign's;
    the slave's trackers, once there, record what a witness is compared with.
    """
    # A minute by default: so long nobody may know that a server is gone.
    site = {**SITE, "hbase.replicationtable.sweep": "5000"}
    master = tracked_spec("master", region_servers=2 if trackers else 1, trackers=trackers, site=site)
    slave = tracked_spec("slave", region_servers=1, trackers=trackers, site=site | ALL)
    with Lab() as lab:
        yield lab, start_pair(lab, master, slave)


@pytest.fixture(scope="module")
def upgraded(
    request: pytest.FixtureRequest, warm_spark: None, standing: contextlib.ExitStack
) -> Iterator[tuple[Lab, Pair]]:
    """The pair that `test_upgrade` leaves, or one like it."""
    yield from in_turn(request, standing, to_upgrade(BOTH_TRACKERS))


def in_turn(
    request: pytest.FixtureRequest, standing: contextlib.ExitStack, new: contextlib.AbstractContextManager[P]
) -> Iterator[P]:
    """Yield the pair that stands for this module and others, or a new one; the last of them ends it."""
    whole, module = taken_with(request.path.as_posix()), request.path
    if whole not in PAIRS:
        PAIRS[whole] = standing.enter_context(new)
    yield PAIRS[whole]
    if [item.path for item in request.session.items if taken_with(item.path.as_posix()) == whole][-1] == module:
        # Others want the memory.
        del PAIRS[whole]
        standing.close()


ONE_PAIR = "one_pair"
TOGETHER = {
    **dict.fromkeys(("tutorial", "spark_clusters"), "setup"),
    **dict.fromkeys(("failover", ONE_PAIR, "state_table_back"), "verdicts"),
    **dict.fromkeys(("hidden_losses", "queues"), "faults"),
    "secure_client": "secure",
    **dict.fromkeys(("upgrade", "schedules"), "second_proof"),
}
"""Modules that share the pair of another one, in the order of `LONGEST`. Those that ask for all tables come first. The
one that takes state tables back comes last: after it every table counts as older than the trackers. `secure` leaves a
peer that nobody answers, and a region server that was killed; `second_proof` a peer that is younger than such a server.
`faults` empties a state table and `hidden_losses` adds the peer again: `queues` comes last, which kills most servers.
"""
LONGEST = (
    *("failover", "verdicts", ONE_PAIR, "state_table_back", "faults", "hidden_losses", "queues"),
    *("tutorial", "spark_clusters", "setup", "witness", "content", "topologies", "upgrade", "schedules"),
    *("second_proof", "secure_client", "secure", "hdfs_files", "versions"),
)
"""As many workers as `make test` has begin with the first ones."""


def name_of(file: str) -> str:
    """Name a module; all of `one_pair` are one."""
    folder = PurePosixPath(file).parent.name
    return folder if folder == ONE_PAIR else PurePosixPath(file).stem.removeprefix("test_")


def taken_with(file: str) -> str:
    """Name what a worker takes as a whole: the module, or several that share a pair."""
    return TOGETHER.get(name_of(file), name_of(file))


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Tests with clusters come first, the longest before the others, so that workers end at about the same time."""
    order = {name: number for number, name in enumerate(LONGEST)}

    def place(item: pytest.Item) -> tuple[bool, int]:
        return item.get_closest_marker("cluster") is None, order.get(name_of(item.path.as_posix()), len(order))

    items.sort(key=place)


class ByPairs(LoadFileScheduling):  # type: ignore[misc]  # xdist has no types
    """Gives a worker what shares a pair of clusters. (xdist's own groups need a pytest before 9.)"""

    def _split_scope(self, nodeid: str) -> str:
        return taken_with(nodeid.partition("::")[0])


def pytest_xdist_make_scheduler(config: pytest.Config, log: Any) -> LoadFileScheduling:
    """Return it whatever `--dist` says."""
    return ByPairs(config, log)


@pytest.fixture(scope="module")
def ports() -> Iterator[Ports]:
    """Ports of processes that a module starts itself."""
    ports = Ports()
    yield ports
    ports.release()


@pytest.fixture
def status(tmp_path: Path) -> Path:
    """Where a test's status file goes."""
    return tmp_path / "master.status"
