package io.github.statustool;

import java.util.ArrayList;
import java.util.HashMap;
import java.util.List;
import java.util.Map;
import org.apache.hadoop.hbase.client.ColumnFamilyDescriptor;
import org.apache.hadoop.hbase.client.RegionInfo;
import org.apache.hadoop.hbase.client.RegionReplicaUtil;
import org.apache.hadoop.hbase.coprocessor.RegionServerCoprocessorEnvironment;
import org.apache.hadoop.hbase.regionserver.HRegion;
import org.apache.hadoop.hbase.regionserver.HRegionServer;
import org.apache.hadoop.hbase.regionserver.OnlineRegions;
import org.apache.hadoop.hbase.regionserver.Region;
import org.apache.hadoop.hbase.util.EnvironmentEdgeManager;

/**
 * Knows the region server itself. HBase stops its coprocessors before it closes its regions, and goes on calling them;
 * the end is when the server's own thread has ended.
 */
final class ServerWatch implements Watched {
  private final RegionServerCoprocessorEnvironment env;
  private final OnlineRegions server;
  private PeerWatch peers;

  ServerWatch(RegionServerCoprocessorEnvironment env) {
    this.env = env;
    this.server = env.getOnlineRegions();
  }

  /** Before the server makes its WALs. The environment's own configuration cannot be written to. */
  static void watchMarkers(RegionServerCoprocessorEnvironment env) {
    if (env.getOnlineRegions() instanceof HRegionServer) {
      MarkerObserver.install(((HRegionServer) env.getOnlineRegions()).getConfiguration());
    }
  }

  /** Null until the server is online: the master may give it another host name than it gave itself. */
  @Override
  public String serverName() {
    boolean online = !(server instanceof HRegionServer) || ((HRegionServer) server).isOnline();
    return online && env.getServerName() != null ? env.getServerName().getServerName() : null;
  }

  @Override
  public boolean isOver() {
    return server instanceof Thread && ((Thread) server).getState() == Thread.State.TERMINATED;
  }

  /** Late, because a server that starts has no connection to ZooKeeper yet. */
  @Override
  public void lookAtPeers() {
    if (peers == null && server instanceof HRegionServer && serverName() != null) {
      peers = new PeerWatch(() -> new HBasePeers((HRegionServer) server),
          EnvironmentEdgeManager::currentTime);
    }
    if (peers != null) {
      peers.look();
    }
  }

  @Override
  public String peers() {
    return peers == null ? null : peers.json().toString();
  }

  /** Of user tables, first replicas only. */
  @Override
  public List<TableEvents.OpenRegion> openRegions() {
    List<TableEvents.OpenRegion> open = new ArrayList<>();
    long now = System.currentTimeMillis();
    for (Region region : server.getRegions()) {
      RegionInfo info = region.getRegionInfo();
      boolean counts = !info.getTable().isSystemTable() && RegionReplicaUtil.isDefaultReplica(info);
      if (counts && region instanceof HRegion) {
        Map<String, Integer> scopes = new HashMap<>();
        for (ColumnFamilyDescriptor family : region.getTableDescriptor().getColumnFamilies()) {
          scopes.put(family.getNameAsString(), family.getScope());
        }
        open.add(new TableEvents.OpenRegion(info.getEncodedName(), info.getTable().getNameAsString(),
            info.getRegionId(), ((HRegion) region).getOpenSeqNum(), scopes,
            region.getNumMutationsWithoutWAL(), now));
      }
    }
    return open;
  }
}
