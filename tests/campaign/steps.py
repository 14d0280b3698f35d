"""What a schedule's steps do. A step that cannot be done is reported and passed over: faults come as they like."""

from __future__ import annotations

import contextlib
import signal
import time
from collections.abc import Callable, Iterator, Mapping, Sequence

import happybase

from tests.campaign.arena import HBASE_ROOT, PATIENCE_S, Arena
from tests.campaign.schedule import TABLES, Step
from tests.lab.cluster import Cluster
from tests.lab.errors import AdminError
from tests.lab.process import RegionServer
from tests.pair import PEER, STATE_TABLE

Action = Callable[[Arena, Sequence[str], int], object]
"""Gets the arena, the schedule's tables and the step's pick; what it returns goes into the record."""

ACTIONS: dict[str, Action] = {}
MARK_S = 12.0
"""Longer than trackers take to raise the mark of their state table once."""
UNTRACKED = {"hbase.coprocessor.wal.classes": ""}
UNTRACKED_SLAVE = {"hbase.coprocessor.regionserver.classes": "", **UNTRACKED}


def action(function: Action) -> Action:
    """A step by the name of its function."""
    ACTIONS[function.__name__] = function
    return function


def perform(arena: Arena, tables: Sequence[str], step: Step) -> str:
    """Do one step and its pause; how it went, in a few words."""
    try:
        done = ACTIONS[step.action](arena, tables, step.pick)
        line = f"{step.action}: {done}" if done is not None else step.action
    except Exception as error:  # whatever a broken cluster makes of a command
        line = f"{step.action} failed: {type(error).__name__} {str(error).splitlines()[0] if str(error) else ''}"[:160]
    time.sleep(step.pause_ms / 1000)
    return line


def _server(cluster: Cluster, pick: int) -> RegionServer | None:
    """A running region server: any, or the one with hbase:meta or with the state table; never the last one."""
    running = [server for server in cluster.region_servers if server.running]
    if len(running) < 2:
        return None
    role = (None, None, None, "hbase:meta", STATE_TABLE)[pick % 5]
    if role is not None:
        with contextlib.suppress(AdminError):
            holders = {region["server"] for region in cluster.admin.call("regions", PATIENCE_S, table=role)}
            special = [server for server in running if server.server_name in holders]
            running = special or running
    return running[pick // 5 % len(running)]


def _live(cluster: Cluster) -> list[RegionServer]:
    return [server for server in cluster.region_servers if server.running]


def _regions_of(cluster: Cluster, table: str) -> list[dict[str, object]]:
    regions: list[dict[str, object]] = cluster.admin.call("regions", PATIENCE_S, table=table)
    return regions


def _regions(arena: Arena, tables: Sequence[str], pick: int) -> tuple[str, list[dict[str, object]]]:
    table = tables[pick % len(tables)]
    return table, _regions_of(arena.master, table)


def _end(arena: Arena, cluster: Cluster, server: RegionServer, *, kill: bool) -> None:
    if kill:
        arena.crash(cluster, server)
    else:
        server.stop(60)


def _end_one(arena: Arena, cluster: Cluster, pick: int, *, kill: bool) -> str | None:
    server = _server(cluster, pick)
    if server is None:
        return None
    _end(arena, cluster, server, kill=kill)
    return server.server_name


@action
def kill_master_rs(arena: Arena, tables: Sequence[str], pick: int) -> object:
    return _end_one(arena, arena.master, pick, kill=True)


@action
def kill_slave_rs(arena: Arena, tables: Sequence[str], pick: int) -> object:
    return _end_one(arena, arena.slave, pick, kill=True)


@action
def stop_master_rs(arena: Arena, tables: Sequence[str], pick: int) -> object:
    return _end_one(arena, arena.master, pick, kill=False)


@action
def stop_slave_rs(arena: Arena, tables: Sequence[str], pick: int) -> object:
    return _end_one(arena, arena.slave, pick, kill=False)


@action
def restart_servers(arena: Arena, tables: Sequence[str], pick: int) -> None:
    arena.finish_pauses()
    arena.start_servers()


@action
def restart_hmaster(arena: Arena, tables: Sequence[str], pick: int) -> None:
    arena.master.master.kill9()
    arena.master.master.start()


@action
def restart_slave_hmaster(arena: Arena, tables: Sequence[str], pick: int) -> None:
    arena.slave.master.kill9()
    arena.slave.master.start()


@action
def move(arena: Arena, tables: Sequence[str], pick: int) -> object:
    _, regions = _regions(arena, tables, pick)
    region = regions[pick // 7 % len(regions)]
    target = _live(arena.master)[pick // 31 % len(_live(arena.master))].server_name
    arena.master.admin.call("move", PATIENCE_S, encoded=region["encoded"], server=target)
    return f"{region['encoded']} to {target}"


@action
def split(arena: Arena, tables: Sequence[str], pick: int) -> object:
    table, _ = _regions(arena, tables, pick)
    key = f"{pick * 37 % 1000:03d}".encode()
    arena.master.admin.call("split", PATIENCE_S, table_or_encoded=table, split_key=key)
    return f"{table} at {key.decode()}"


@action
def merge(arena: Arena, tables: Sequence[str], pick: int) -> object:
    table, regions = _regions(arena, tables, pick)
    if len(regions) < 2:
        return "one region"
    at = pick // 7 % (len(regions) - 1)
    pair = [region["encoded"] for region in regions[at : at + 2]]
    arena.master.admin.call("merge", PATIENCE_S, encoded_a=pair[0], encoded_b=pair[1])
    return table


@action
def roll(arena: Arena, tables: Sequence[str], pick: int) -> None:
    arena.master.admin.call("roll_wal", PATIENCE_S, server=None)


@action
def flush(arena: Arena, tables: Sequence[str], pick: int) -> None:
    arena.master.admin.call("flush", PATIENCE_S, table=tables[pick % len(tables)])


@action
def disable_peer(arena: Arena, tables: Sequence[str], pick: int) -> None:
    arena.master.admin.disable_peer(PEER)


@action
def enable_peer(arena: Arena, tables: Sequence[str], pick: int) -> None:
    arena.master.admin.enable_peer(PEER)


@action
def remove_peer(arena: Arena, tables: Sequence[str], pick: int) -> None:
    arena.master.admin.remove_peer(PEER)
    arena.peer_there = False


@action
def readd_peer(arena: Arena, tables: Sequence[str], pick: int) -> None:
    """Away for a moment; the operator rolls the WALs or does not."""
    if arena.peer_there:
        arena.master.admin.remove_peer(PEER)
        arena.peer_there = False
        time.sleep((pick % 5) * 0.2)
        if pick // 5 % 2:
            roll(arena, tables, pick)
    arena.add_peer()


@action
def filter_peer(arena: Arena, tables: Sequence[str], pick: int) -> object:
    kept = sorted(tables)[pick % len(tables)]
    arena.filter_peer({kept: []})
    return kept


@action
def filter_families(arena: Arena, tables: Sequence[str], pick: int) -> object:
    """One family of the second table, all of the others; the WALs are rolled or not."""
    family = "fg"[pick % 2]
    arena.filter_peer({table: [family] if table == tables[1] else [] for table in tables})
    if pick // 2 % 2:
        roll(arena, tables, pick)
    return family


@action
def reconfigure_peer(arena: Arena, tables: Sequence[str], pick: int) -> object:
    """Another configuration that replicates the same."""
    bandwidth = 1_000_000_000 + pick
    arena.master.admin.set_peer_bandwidth(PEER, bandwidth)
    return bandwidth


@action
def unfilter_peer(arena: Arena, tables: Sequence[str], pick: int) -> None:
    arena.filter_peer(None)


@action
def disable_slave_table(arena: Arena, tables: Sequence[str], pick: int) -> object:
    table = tables[pick % len(tables)]
    arena.slave.admin.call("disable_table", PATIENCE_S, table=table)
    return table


@action
def recreate_slave_table(arena: Arena, tables: Sequence[str], pick: int) -> object:
    table = tables[pick % len(tables)]
    arena.slave.admin.call("drop_table", PATIENCE_S, table=table)
    arena.slave.admin.create_table(table, TABLES[table.split("_")[0]], keep_all=True)
    return table


@action
def drop_slave_table(arena: Arena, tables: Sequence[str], pick: int) -> object:
    table = tables[pick % len(tables)]
    arena.slave.admin.call("drop_table", PATIENCE_S, table=table)
    return table


@action
def drop_slave_family(arena: Arena, tables: Sequence[str], pick: int) -> object:
    table = tables[pick % 2]  # the third has no such family
    arena.slave.admin.drop_family(table, "f")
    return table


@action
def disable_master_state(arena: Arena, tables: Sequence[str], pick: int) -> object:
    return _disable_state(arena.master, pick)


@action
def disable_slave_state(arena: Arena, tables: Sequence[str], pick: int) -> object:
    return _disable_state(arena.slave, pick)


def _disable_state(cluster: Cluster, pick: int) -> str | None:
    """For a while, or to the schedule's end: then the tool refuses every look before it."""
    cluster.admin.call("disable_table", PATIENCE_S, table=STATE_TABLE)
    if pick % 3 == 0:
        return None
    time.sleep(1 + pick // 3 % 3)
    cluster.admin.call("enable_table", PATIENCE_S, table=STATE_TABLE)
    return "enabled again"


@action
def pause_master_datanode(arena: Arena, tables: Sequence[str], pick: int) -> None:
    arena.pause(arena.master.datanodes[0], 1 + pick % 3)


@action
def pause_slave_datanode(arena: Arena, tables: Sequence[str], pick: int) -> None:
    arena.pause(arena.slave.datanodes[0], 1 + pick % 3)


@action
def pause_zookeeper(arena: Arena, tables: Sequence[str], pick: int) -> None:
    assert arena.zookeeper is not None
    arena.pause(arena.zookeeper, 1 + pick % 3)


@action
def pause_slave_rs(arena: Arena, tables: Sequence[str], pick: int) -> object:
    running = _live(arena.slave)
    server = running[pick % len(running)]
    arena.pause(server, 1 + pick % 4)
    return server.server_name


@action
def full_slave_disk(arena: Arena, tables: Sequence[str], pick: int) -> None:
    """No room under HBase's root for a while; servers may abort over it."""
    arena.slave.admin.space_quota(HBASE_ROOT, 1)
    time.sleep(1 + pick % 3)
    arena.slave.admin.space_quota(HBASE_ROOT, None)


@action
def bulk_load(arena: Arena, tables: Sequence[str], pick: int) -> object:
    table = tables[pick % 2]
    arena.master.admin.bulk_load(table, "f", 5, prefix=f"{pick % 1000:03d}-bulk")
    return table


@action
def blind_server(arena: Arena, tables: Sequence[str], pick: int) -> object:
    """A server without the tracker comes, takes a region of every table, is written to, and goes again."""
    with _blind(arena, arena.master, UNTRACKED, tables, pick, kill=bool(pick // 3 % 2)) as name:
        time.sleep(1)
    return name


@contextlib.contextmanager
def _blind(
    arena: Arena, cluster: Cluster, site: Mapping[str, str], tables: Sequence[str], pick: int, *, kill: bool
) -> Iterator[str]:
    """A server without trackers (`site`) that has a region of every table; its name."""
    server = cluster.add_region_server(site)
    try:
        for table in tables:
            with contextlib.suppress(AdminError):
                regions = _regions_of(cluster, table)
                chosen = regions[pick % len(regions)]["encoded"]
                cluster.admin.call("move", PATIENCE_S, encoded=chosen, server=server.server_name)
        yield server.server_name
    finally:
        _end(arena, cluster, server, kill=kill)
        cluster.region_servers.remove(server)


@action
def bulk_load_and_crash(arena: Arena, tables: Sequence[str], pick: int) -> object:
    """The server that was loaded into is killed at once."""
    table, (region, *_) = _regions(arena, tables[:2], pick)
    arena.master.admin.bulk_load(table, "f", 5, prefix=f"{pick % 1000:03d}-bulk")
    for server in _live(arena.master):
        if server.server_name == region["server"] and len(_live(arena.master)) > 1:
            arena.crash(arena.master, server)
            return server.server_name
    return None


@action
def bulk_load_not_replicated(arena: Arena, tables: Sequence[str], pick: int) -> object:
    table = tables[pick % 2]
    arena.master.admin.bulk_load(table, "f", 5, prefix=f"{pick % 1000:03d}-local", not_replicated=True)
    return table


@action
def restore_master(arena: Arena, tables: Sequence[str], pick: int) -> object:
    """What was written and deleted in between is undone on the master alone."""
    return _restore(arena.master, tables[pick % 2], pick)


@action
def restore_slave(arena: Arena, tables: Sequence[str], pick: int) -> object:
    """What has arrived in between is gone."""
    return _restore(arena.slave, tables[pick % 2], pick)


def _restore(cluster: Cluster, table: str, pick: int) -> str:
    name = f"s{pick}_{time.monotonic_ns()}"
    cluster.admin.call("snapshot", PATIENCE_S, name=name, table=table)
    time.sleep(0.3 + pick % 4 * 0.4)
    cluster.admin.call("restore_snapshot", PATIENCE_S, name=name, table=table)
    cluster.admin.call("delete_snapshot", PATIENCE_S, name=name)
    return table


@action
def restore_set_master(arena: Arena, tables: Sequence[str], pick: int) -> object:
    """Nightly snapshots of the master are restored, its state table among them or not."""
    return _restore_set(arena, arena.master, tables, pick)


@action
def restore_set_slave(arena: Arena, tables: Sequence[str], pick: int) -> object:
    """The same on the slave."""
    return _restore_set(arena, arena.slave, tables, pick)


def _restore_set(arena: Arena, cluster: Cluster, tables: Sequence[str], pick: int) -> str:
    """Snapshots at different moments, the state table's last; all are disabled, restored, enabled again.

    The state table is restored first, last, in between, alone, or not at all; the region servers are restarted in
    between or not.
    """
    data = list(tables[:2])
    order = (
        [STATE_TABLE, *data],
        [*data, STATE_TABLE],
        [data[0], STATE_TABLE, data[1]],
        [STATE_TABLE],
        data,
    )[pick % 5]
    name = f"n{pick}_{time.monotonic_ns()}"
    for table in [*data, STATE_TABLE]:
        cluster.admin.call("snapshot", PATIENCE_S, name=f"{name}_{table}", table=table)
        time.sleep(0.2 + pick // 5 % 4 * 0.5)
    restarted = pick // 60 % 3 == 0
    # The mark in HDFS is raised every ten seconds; what is restored sooner and never remembered is beyond any observer.
    time.sleep(MARK_S if restarted else pick // 20 % 3 * 1.0)
    for table in order:
        cluster.admin.call("disable_table", PATIENCE_S, table=table)
    for table in order:
        cluster.admin.call("restore_snapshot", PATIENCE_S, name=f"{name}_{table}", table=table)
    if restarted:
        _restart_region_servers(arena, cluster, kill=bool(pick // 180 % 2))
    for table in order:
        cluster.admin.call("enable_table", PATIENCE_S, table=table)
    for table in [*data, STATE_TABLE]:
        cluster.admin.call("delete_snapshot", PATIENCE_S, name=f"{name}_{table}")
    return f"{', '.join(order)}{', servers restarted' if restarted else ''}"


def _restart_region_servers(arena: Arena, cluster: Cluster, *, kill: bool) -> None:
    """All of them at once; what they remember is gone."""
    for server in _live(cluster):
        _end(arena, cluster, server, kill=kill)
    arena.start_servers()


@action
def restart_all_master_rs(arena: Arena, tables: Sequence[str], pick: int) -> None:
    _restart_region_servers(arena, arena.master, kill=False)


@action
def restart_all_slave_rs(arena: Arena, tables: Sequence[str], pick: int) -> None:
    _restart_region_servers(arena, arena.slave, kill=False)


@action
def family_comes_back(arena: Arena, tables: Sequence[str], pick: int) -> object:
    """A family of the slave's table is dropped and added again, the servers restarted in between or not."""
    table, admin = tables[pick % 2], arena.slave.admin
    admin.call("disable_table", PATIENCE_S, table=table)
    admin.call("drop_family", PATIENCE_S, table=table, family="f")
    if pick // 2 % 2:
        _restart_region_servers(arena, arena.slave, kill=bool(pick // 4 % 2))
    if pick // 8 % 2:
        admin.call("enable_table", PATIENCE_S, table=table)
        admin.call("disable_table", PATIENCE_S, table=table)
    admin.call("add_family", PATIENCE_S, table=table, family="f", scope=1, keep_all=True)
    admin.call("enable_table", PATIENCE_S, table=table)
    return table


@action
def blind_slave_server(arena: Arena, tables: Sequence[str], pick: int) -> object:
    """A server without the trackers comes to the slave, takes a region of every table, empties one or not, and goes."""
    with _blind(arena, arena.slave, UNTRACKED_SLAVE, tables, pick, kill=bool(pick // 6 % 2)) as name:
        if pick // 3 % 2:
            arena.slave.admin.call("truncate_table", PATIENCE_S, table=tables[pick % 2], preserve_splits=False)
        time.sleep(1)
    return name


@action
def clone_master(arena: Arena, tables: Sequence[str], pick: int) -> object:
    """HBase's way to rename a table; its namesake on the slave is empty."""
    assert isinstance(tables, list)
    table, name = tables[pick % 2], f"s{pick}_{time.monotonic_ns()}"
    clone = f"{table}_{len(tables)}"
    arena.master.admin.call("snapshot", PATIENCE_S, name=name, table=table)
    arena.slave.admin.create_table(clone, TABLES[table.split("_")[0]], keep_all=True)
    arena.master.admin.call("clone_snapshot", PATIENCE_S, name=name, table=clone)
    tables.append(clone)
    return clone


@action
def clone_over_slave(arena: Arena, tables: Sequence[str], pick: int) -> object:
    """The slave's table is dropped and made again from a snapshot: its regions have the names that they had."""
    table, name = tables[pick % 2], f"s{pick}_{time.monotonic_ns()}"
    arena.slave.admin.call("snapshot", PATIENCE_S, name=name, table=table)
    time.sleep(0.3 + pick % 4 * 0.4)
    arena.slave.admin.call("drop_table", PATIENCE_S, table=table)
    arena.slave.admin.call("clone_snapshot", PATIENCE_S, name=name, table=table)
    return table


@action
def truncate_slave(arena: Arena, tables: Sequence[str], pick: int) -> object:
    table = tables[pick % 2]
    arena.slave.admin.call("truncate_table", PATIENCE_S, table=table, preserve_splits=bool(pick // 2 % 2))
    return table


@action
def truncate_slave_region(arena: Arena, tables: Sequence[str], pick: int) -> object:
    regions = _regions_of(arena.slave, tables[pick % 2])
    name = regions[pick // 2 % len(regions)]["name"]
    arena.slave.admin.call("truncate_region", PATIENCE_S, name=name)
    return name


@action
def truncate_master_region(arena: Arena, tables: Sequence[str], pick: int) -> object:
    _, regions = _regions(arena, tables[:2], pick)
    name = regions[pick // 2 % len(regions)]["name"]
    arena.master.admin.call("truncate_region", PATIENCE_S, name=name)
    return name


@action
def lose_state_region(arena: Arena, tables: Sequence[str], pick: int) -> object:
    """A region of a state table is truncated."""
    cluster = arena.tracked[pick % len(arena.tracked)]
    regions = _regions_of(cluster, STATE_TABLE)
    region = regions[pick // 2 % len(regions)]
    cluster.admin.call("truncate_region", PATIENCE_S, name=region["name"])
    return f"{cluster.name}: {region['name']}"


@action
def alter_slave(arena: Arena, tables: Sequence[str], pick: int) -> object:
    """The slave keeps one version from now on, the master all of them."""
    table = tables[pick % 2]
    arena.slave.admin.call("set_versions", PATIENCE_S, table=table, family="f", versions=1)
    return table


@action
def major_compact(arena: Arena, tables: Sequence[str], pick: int) -> object:
    cluster = (arena.master, arena.slave)[pick % 2]
    cluster.admin.call("flush", PATIENCE_S, table=tables[pick // 2 % 2])
    cluster.admin.call("major_compact", PATIENCE_S, table=tables[pick // 2 % 2])
    return cluster.name


@action
def foreign_slave_rows(arena: Arena, tables: Sequence[str], pick: int) -> object:
    """A client of the slave writes rows of its own to the slave's table, and sometimes deletes some that are there."""
    table = tables[pick % 2]
    arena.slave.admin.put_rows(table, "f", 3, prefix=f"{pick % 1000:03d}-foreign")
    if pick // 2 % 2:
        with contextlib.closing(happybase.Connection("127.0.0.1", arena.slave.thrift_port)) as thrift:
            for row in list(arena.slave.admin.rows(table))[:3]:
                thrift.table(table).delete(row)
    return table


@action
def async_rows(arena: Arena, tables: Sequence[str], pick: int) -> object:
    """Rows that are acknowledged before they are in the WAL, while its DataNode stands still and it is rolled."""
    table, prefix = tables[pick % 2], f"{pick % 1000:03d}-async{pick}-"
    arena.pause(arena.master.datanodes[0], 2 + pick % 3)
    arena.master.admin.call("roll_wal", PATIENCE_S, server=None, later=True)
    time.sleep(0.2)
    arena.master.admin.call(
        "put_rows",
        PATIENCE_S,
        table=table,
        family="f",
        count=4,
        start=0,
        prefix=prefix,
        qualifier="q",
        value="async",
        durability="ASYNC_WAL",
    )
    arena.fragile |= {(table, f"{prefix}{number:08d}\tf\tq\tPut\tasync") for number in range(4)}
    return table


@action
def pause_past_session(arena: Arena, tables: Sequence[str], pick: int) -> object:
    """A region server of the master stands still until another one has its regions, and goes on then."""
    server = _server(arena.master, pick)
    if server is None:
        return None
    name = server.server_name
    arena.crashed = True
    arena.master.expire(server, 3 + pick % 4)
    return name


@action
def set_clock_back(arena: Arena, tables: Sequence[str], pick: int) -> object:
    """Until the schedule's end; only where there is a server with a wrong clock."""
    return arena.set_clock(back=True)


@action
def kill_witness(arena: Arena, tables: Sequence[str], pick: int) -> object:
    """Kill -9; it is started again at once, or at the schedule's end."""
    return _end_witness(arena, pick, signal.SIGKILL)


@action
def stop_witness(arena: Arena, tables: Sequence[str], pick: int) -> object:
    """The same with SIGTERM."""
    return _end_witness(arena, pick, signal.SIGTERM)


def _end_witness(arena: Arena, pick: int, number: signal.Signals) -> str | None:
    running = [witness for witness in arena.witnesses if witness.running]
    if not running:
        return None
    witness = running[pick % len(running)]
    witness.end(number)
    if pick // 4 % 2:
        witness.start()
    return witness.store.name


@action
def pause_witness(arena: Arena, tables: Sequence[str], pick: int) -> object:
    running = [witness for witness in arena.witnesses if witness.running]
    if not running:
        return None
    witness = running[pick % len(running)]
    arena.pause(witness, 1 + pick // 4 % 4)
    return witness.store.name
