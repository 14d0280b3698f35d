package io.github.statustool.server;

import io.github.statustool.state.Ids;
import java.util.Arrays;
import java.util.HashMap;
import java.util.HashSet;
import java.util.List;
import java.util.Map;
import java.util.OptionalLong;
import java.util.Set;
import java.util.function.Consumer;
import org.apache.hadoop.conf.Configuration;
import org.apache.hadoop.fs.Path;
import org.apache.hadoop.hbase.client.replication.ReplicationPeerConfigUtil;
import org.apache.hadoop.hbase.exceptions.DeserializationException;
import org.apache.hadoop.hbase.regionserver.HRegionServer;
import org.apache.hadoop.hbase.regionserver.ReplicationSourceService;
import org.apache.hadoop.hbase.regionserver.wal.AbstractFSWAL;
import org.apache.hadoop.hbase.replication.ReplicationPeerConfig;
import org.apache.hadoop.hbase.replication.regionserver.Replication;
import org.apache.hadoop.hbase.replication.regionserver.ReplicationSourceManager;
import org.apache.hadoop.hbase.wal.AbstractFSWALProvider;
import org.apache.hadoop.hbase.wal.WAL;
import org.apache.hadoop.hbase.zookeeper.ZKMetadata;
import org.apache.hadoop.hbase.zookeeper.ZNodePaths;
import org.apache.zookeeper.KeeperException;
import org.apache.zookeeper.ZooKeeper;
import org.apache.zookeeper.data.Stat;

/**
 * The replication peers of a region server, and their znodes in the layout of HBase's {@code ZKReplicationPeerStorage}.
 */
final class HBasePeers implements PeerWatch.Source {
  private final HRegionServer server;
  private final String peers;
  private final String queues;

  HBasePeers(HRegionServer server) {
    this.server = server;
    Configuration conf = server.getConfiguration();
    String replication = ZNodePaths.joinZNode(server.getZooKeeper().getZNodePaths().baseZNode,
        conf.get("zookeeper.znode.replication", "replication"));
    this.peers = ZNodePaths.joinZNode(replication, conf.get("zookeeper.znode.replication.peers", "peers"));
    this.queues = ZNodePaths.joinZNode(replication, conf.get("zookeeper.znode.replication.rs", "rs"));
  }

  @Override
  public Map<String, Object> inForce() {
    Map<String, Object> inForce = new HashMap<>();
    ReplicationSourceService service = server.getReplicationSourceService();
    ReplicationSourceManager manager =
        service instanceof Replication ? ((Replication) service).getReplicationManager() : null;
    if (manager != null) {
      // By queues, not by sources: disabling a peer removes its source for a moment, but not its queue.
      manager.getReplicationPeers().getPeerCache().forEach((id, peer) -> inForce.put(id, peer.getPeerConfig()));
    }
    return inForce;
  }

  @Override
  public void readZnode(String peer, Object config, Consumer<PeerWatch.Answer> receiver) {
    // The client beneath, since RecoverableZooKeeper has blocking calls only: its retries would hold up the recorder.
    ZooKeeper zookeeper = server.getZooKeeper().getRecoverableZooKeeper().getZooKeeper();
    if (zookeeper == null || !zookeeper.getState().isConnected()) {
      return;
    }
    Set<String> writing = walPrefixes();
    String queue = ZNodePaths.joinZNode(ZNodePaths.joinZNode(queues, server.getServerName().getServerName()), peer);
    zookeeper.getChildren(queue, false, (int code, String path, Object context, List<String> wals) -> {
      if (code == KeeperException.Code.OK.intValue() && prefixes(wals).containsAll(writing)) {
        zookeeper.getData(ZNodePaths.joinZNode(peers, peer), false,
            (int dataCode, String dataPath, Object dataContext, byte[] data, Stat stat) -> {
              if (dataCode == KeeperException.Code.OK.intValue()) {
                same(data, (ReplicationPeerConfig) config).ifPresent(content -> receiver.accept(
                    new PeerWatch.Answer(peer, config, stat.getCzxid(), stat.getVersion(), content)));
              }
            }, null);
      }
    }, null);
  }

  /** Returns the current WALs (several with {@code hbase.wal.provider=multiwal}), except that of hbase:meta. */
  private Set<String> walPrefixes() {
    Set<String> names = new HashSet<>();
    try {
      for (WAL wal : server.getWALs()) {
        Path file = wal instanceof AbstractFSWAL ? ((AbstractFSWAL<?>) wal).getCurrentFileName() : null;
        if (file != null && !AbstractFSWALProvider.isMetaFile(file)) {
          names.add(file.getName());
        }
      }
    } catch (RuntimeException e) {
      // No queue has such a WAL, so the answer does not count.
      return Set.of("the WALs are not known yet");
    }
    return prefixes(names);
  }

  private static Set<String> prefixes(Iterable<String> wals) {
    Set<String> prefixes = new HashSet<>();
    wals.forEach(wal -> prefixes.add(wal.substring(0, Math.max(0, wal.lastIndexOf('.')))));
    return prefixes;
  }

  /** Returns a hash of the configuration in force if the znode says the same. */
  private static OptionalLong same(byte[] data, ReplicationPeerConfig config) {
    try {
      byte[] inForce = ReplicationPeerConfigUtil.toByteArray(config);
      byte[] stored = ReplicationPeerConfigUtil.toByteArray(
          ReplicationPeerConfigUtil.parsePeerFrom(ZKMetadata.removeMetaData(data)));
      return Arrays.equals(stored, inForce) ? OptionalLong.of(Ids.first8OfSha256(inForce)) : OptionalLong.empty();
    } catch (DeserializationException | RuntimeException e) {
      return OptionalLong.empty();
    }
  }
}
