package io.github.statustool;

import org.apache.hadoop.hbase.coprocessor.RegionServerCoprocessorEnvironment;
import org.apache.hadoop.hbase.regionserver.HRegionServer;
import org.apache.hadoop.hbase.regionserver.OnlineRegions;

/**
 * Knows the region server itself. HBase stops its coprocessors before it closes its regions, and goes on calling them;
 * the end is when the server's own thread has ended.
 */
final class ServerWatch implements Watched {
  private final RegionServerCoprocessorEnvironment env;
  private final OnlineRegions server;

  ServerWatch(RegionServerCoprocessorEnvironment env) {
    this.env = env;
    this.server = env.getOnlineRegions();
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
}
