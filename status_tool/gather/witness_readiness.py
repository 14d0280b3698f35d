"""Checks of a slave, a witness and a master's peers before the first entry is sent: what is in place, in words."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import asdict

from status_tool.clients.config import Settings, ZooKeeperEndpoint
from status_tool.clients.zookeeper import Peer, ZooKeeper, peer_cluster_id
from status_tool.errors import StatusToolError
from status_tool.gather.installation import Checked
from status_tool.gather.snapshot import server_rows
from status_tool.printable import counted, iso
from status_tool.rules.peers import own_shipping
from status_tool.rules.server_settings import SINGLE_ENTRIES, keeps_single_entries
from status_tool.rules.witnessed import covered_since
from status_tool.sources.state_table import Barrier, StateTable, now_ms
from status_tool.sources.witness_folders import WitnessAddress, witness_stores
from status_tool.vocabulary.state_rows import REPLICATOR


def inspect_witness(settings: Settings, witness: ZooKeeperEndpoint, master: Settings | None) -> Iterator[Checked]:
    """Look at the slave of these settings, at the witness under a znode, and at the master, in the order of the steps.

    Raises no `StatusToolError`: it is a finding, and ends the look.
    """
    try:
        yield from _slave(settings)
        with ZooKeeper(witness) as session:
            live, stores = session.live_servers(), session.read("stores")
            if stores is None:
                yield _never_registered(witness, live)
                return
            yield from _witnesses(settings, witness, live, session.children("stores"))
            cluster_id = session.cluster_id()
        yield from _master(settings, witness, cluster_id, stores[1], master)
    except StatusToolError as error:
        yield Checked("the witness cannot be checked further", str(error))


def _slave(settings: Settings) -> Iterator[Checked]:
    state = StateTable(settings.thrift(), settings.state_table)
    with ZooKeeper(settings.zookeeper()) as session:
        live = session.live_servers()
    rows = server_rows(state.descriptors(Barrier(now_ms(), set())), REPLICATOR, live)
    lacking = [row["server"] for row in rows if row["live"] and not keeps_single_entries(row.get("detail"))]
    if lacking:
        yield Checked(
            f"{', '.join(sorted(lacking))} of the slave does not record entries without a stamp",
            f"set {SINGLE_ENTRIES}=true in hbase-site.xml of the slave's region servers, and restart them one after "
            "another before the master sends the first entry",
        )
    else:
        yield Checked(f"all of the slave's {counted(len(live), 'region server')} record entries without a stamp")


def _never_registered(witness: ZooKeeperEndpoint, live: Sequence[str]) -> Checked:
    if live:
        return Checked(f"{witness} is the znode of a cluster, not of a witness", "name another znode with --witness")
    return Checked(
        f"no witness was ever registered at {witness}",
        f"start one: status-tool witness --register {witness} --listen HOST:PORT --store DIR",
    )


def _witnesses(
    settings: Settings, witness: ZooKeeperEndpoint, live: Sequence[str], folders: Sequence[str]
) -> Iterator[Checked]:
    served: set[str] = set()
    access = settings.hbase_rpc()
    # One that was killed and started again is registered twice for a while.
    for host, port in sorted({tuple(server.split(",")[:2]) for server in live}):
        address = WitnessAddress(host, int(port))
        try:
            stores = witness_stores([address], access).places.keys()
        except StatusToolError as error:
            yield Checked(f"the witness at {address} does not answer from here", str(error))
        else:
            served.update(stores)
            yield Checked(f"the witness at {address} serves, with folder {', '.join(stores)}")
    if not live:
        yield Checked(
            f"no witness at {witness} runs: the master keeps its WALs for its peer",
            "start it again with the folder that it had, or remove its peer on the master",
        )
    for folder in sorted(set(folders) - served) if served else ():
        yield Checked(f"folder {folder} has no witness now: `run -m --witness` needs it beside the others")


def _master(
    settings: Settings, witness: ZooKeeperEndpoint, cluster_id: str, stores_since_ms: int, master: Settings | None
) -> Iterator[Checked]:
    """Check the master's peers. They are the last step: the first entry must find everything else in place."""
    if master is None:
        yield Checked("the master's peers are not known", "name its ZooKeeper: --master-zookeeper HOST:PORT/ZNODE")
        return
    with ZooKeeper(settings.zookeeper()) as session:
        slave_id, slave_key = session.cluster_id(), session.endpoint.cluster_key
    with ZooKeeper(master.zookeeper()) as session:
        peers = {peer_cluster_id(peer, session.endpoint): peer for peer in session.peers()}
        yield _peer(peers.get(cluster_id), "the witness", "witness", witness.cluster_key)
        yield _peer(peers.get(slave_id), "this slave", "slave", slave_key)
    if (ours := peers.get(cluster_id)) is not None:
        covered = iso(covered_since(asdict(ours), stores_since_ms))
        yield Checked(f"tables that are created after {covered} can be complete by the witness; older ones by --since")


def _peer(peer: Peer | None, whose: str, name: str, cluster_key: str) -> Checked:
    if peer is None:
        return Checked(
            f"the master has no peer that leads to {whose}",
            f"in the master's HBase shell: add_peer '{name}', CLUSTER_KEY => '{cluster_key}'",
        )
    if own := own_shipping(asdict(peer)):
        return Checked(f"the master's peer {peer.id} has {own}", "no verdict about it is ever complete: remove it")
    if not peer.enabled:
        return Checked(
            f"the master's peer {peer.id} is disabled", f"in the master's HBase shell: enable_peer '{peer.id}'"
        )
    return Checked(f"the master's peer {peer.id} leads to {whose}")
