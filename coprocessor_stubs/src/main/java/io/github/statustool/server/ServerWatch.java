package io.github.statustool.server;

import io.github.statustool.content.TableEvents;
import java.util.List;
import org.apache.hadoop.hbase.coprocessor.RegionServerCoprocessorEnvironment;
import org.apache.hadoop.hbase.regionserver.HRegion;
import org.apache.hadoop.hbase.regionserver.HRegionServer;
import org.apache.hadoop.hbase.regionserver.OnlineRegions;
import org.apache.hadoop.hbase.regionserver.Region;
import org.apache.hadoop.hbase.util.EnvironmentEdgeManager;

/**
 * Observes the region server itself. HBase stops its coprocessors before it closes its regions, and still calls them
 * afterwards; the server has ended when its own thread has.
 */
public final class ServerWatch implements ServerComponent {
  private final RegionServerCoprocessorEnvironment env;
  private final OnlineRegions server;
  private final OpenRegionLister regions = new OpenRegionLister(ServerWatch::openSeq);
  private PeerWatch peers;

  public ServerWatch(RegionServerCoprocessorEnvironment env) {
    this.env = env;
    this.server = env.getOnlineRegions();
  }

  /**
   * Returns the server's name; null until the server is online: the HBase master may assign another host name than the
   * server's own.
   */
  @Override
  public String serverName() {
    boolean online = !(server instanceof HRegionServer) || ((HRegionServer) server).isOnline();
    return online && env.getServerName() != null ? env.getServerName().getServerName() : null;
  }

  @Override
  public boolean isOver() {
    return server instanceof Thread && ((Thread) server).getState() == Thread.State.TERMINATED;
  }

  /** Checks the peers. Not done at the start, when the server has no ZooKeeper connection yet. */
  @Override
  public void checkPeers() {
    if (peers == null && server instanceof HRegionServer && serverName() != null) {
      peers = new PeerWatch(() -> new HBasePeers((HRegionServer) server),
          EnvironmentEdgeManager::currentTime);
    }
    if (peers != null) {
      peers.check();
    }
  }

  @Override
  public String peers() {
    return peers == null ? null : peers.json().toString();
  }

  private static long openSeq(Region region) {
    return region instanceof HRegion ? ((HRegion) region).getOpenSeqNum() : Long.MAX_VALUE;
  }

  @Override
  public List<TableEvents.OpenRegion> openRegions() {
    return regions.list(server.getRegions(), EnvironmentEdgeManager.currentTime());
  }
}
