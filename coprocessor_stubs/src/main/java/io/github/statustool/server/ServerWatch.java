package io.github.statustool.server;

import io.github.statustool.content.FileOrigins;
import io.github.statustool.content.TableEvents;
import java.util.List;
import java.util.Map;
import java.util.function.Supplier;
import org.apache.hadoop.hbase.ServerName;
import org.apache.hadoop.hbase.coprocessor.RegionServerCoprocessorEnvironment;
import org.apache.hadoop.hbase.regionserver.HRegion;
import org.apache.hadoop.hbase.regionserver.HRegionServer;
import org.apache.hadoop.hbase.regionserver.OnlineRegions;
import org.apache.hadoop.hbase.regionserver.Region;
import org.apache.hadoop.hbase.util.EnvironmentEdgeManager;
import org.apache.hadoop.hbase.util.JVMClusterUtil.RegionServerThread;

/**
 * Observes the region server itself. HBase stops its coprocessors before it closes its regions, and still calls them
 * afterwards; the server has ended when its own thread has.
 */
public final class ServerWatch implements ObservedServer {
  private final OnlineRegions server;
  private final Supplier<ServerName> name;
  private final OpenRegionLister regions = new OpenRegionLister(ServerWatch::openSeq);
  private final BareWals bare;
  private PeerWatch peers;

  /** @param bare looks at its WALs; null if it has none to look at */
  public ServerWatch(RegionServerCoprocessorEnvironment env, BareWals bare) {
    this(env.getOnlineRegions(), env::getServerName, bare);
  }

  /** Of a server that was found by its WAL. */
  public ServerWatch(HRegionServer server, BareWals bare) {
    this(server, server::getServerName, bare);
  }

  private ServerWatch(OnlineRegions server, Supplier<ServerName> name, BareWals bare) {
    this.server = server;
    this.name = name;
    this.bare = bare;
  }

  /**
   * Finds the region server that a WAL belongs to: a WAL's coprocessor has no other way to it.
   *
   * @return null if no region server of this JVM has this name
   */
  public static HRegionServer find(String serverName) {
    ThreadGroup all = Thread.currentThread().getThreadGroup();
    while (all.getParent() != null) {
      all = all.getParent();
    }
    // More may start meanwhile; those that are left out are found the next time.
    Thread[] threads = new Thread[2 * all.activeCount() + 64];
    int count = all.enumerate(threads);
    for (int i = 0; i < count; i++) {
      HRegionServer server = serverOf(threads[i]);
      if (server != null && serverName.equals(name(server))) {
        return server;
      }
    }
    return null;
  }

  private static HRegionServer serverOf(Thread thread) {
    // Where HBase runs standalone, another thread runs the region server, which is a thread as well.
    if (thread instanceof RegionServerThread) {
      return ((RegionServerThread) thread).getRegionServer();
    }
    return thread instanceof HRegionServer ? (HRegionServer) thread : null;
  }

  private static String name(HRegionServer server) {
    return server.getServerName() == null ? null : server.getServerName().getServerName();
  }

  /** Returns the server's name; null until the server is online. */
  @Override
  public String serverName() {
    // Not before: the HBase master may assign another host name than the server's own.
    boolean online = !(server instanceof HRegionServer) || ((HRegionServer) server).isOnline();
    ServerName known = online ? name.get() : null;
    return known == null ? null : known.getServerName();
  }

  @Override
  public boolean isOver() {
    return server instanceof Thread && ((Thread) server).getState() == Thread.State.TERMINATED;
  }

  /** Checks the peers. */
  @Override
  public void checkPeers() {
    // Not at the start, when the server has no ZooKeeper connection yet.
    if (peers == null && server instanceof HRegionServer && serverName() != null) {
      peers = new PeerWatch(() -> new HBasePeers((HRegionServer) server),
          EnvironmentEdgeManager::currentTime);
    }
    if (peers != null) {
      peers.check();
    }
  }

  @Override
  public void checkWals() {
    if (bare != null && serverName() != null) {
      bare.check();
    }
  }

  @Override
  public String peers() {
    return peers == null ? null : peers.json().toString();
  }

  @Override
  public Map<String, Map<String, Boolean>> filesOf(String encodedName) {
    Region region = server.getRegion(encodedName);
    return region == null ? Map.of() : FileOrigins.of(region);
  }

  private static long openSeq(Region region) {
    return region instanceof HRegion ? ((HRegion) region).getOpenSeqNum() : Long.MAX_VALUE;
  }

  @Override
  public List<TableEvents.OpenRegion> openRegions() {
    return regions.list(server.getRegions(), EnvironmentEdgeManager.currentTime());
  }
}
