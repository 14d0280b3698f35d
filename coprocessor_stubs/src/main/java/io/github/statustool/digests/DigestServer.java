package io.github.statustool.digests;

import io.github.statustool.state.Settings;
import java.io.IOException;
import java.util.function.Supplier;
import org.apache.hadoop.conf.Configuration;
import org.apache.hadoop.hbase.HBaseConfiguration;
import org.apache.hadoop.hbase.regionserver.HRegion;
import org.apache.hadoop.hbase.regionserver.HRegionServer;
import org.apache.hadoop.hbase.regionserver.OnlineRegions;
import org.apache.hadoop.hbase.regionserver.Region;

/** The region server's services that row digests need. */
public class DigestServer {
  private final OnlineRegions server;
  private final Supplier<String> name;
  private final Configuration conf;

  /** @param name returns the server's name; null until it is online */
  public DigestServer(OnlineRegions server, Supplier<String> name, Configuration conf) {
    this.server = server;
    this.name = name;
    this.conf = conf;
  }

  /** Returns the server's name; null until the server is online. */
  String name() {
    return name.get();
  }

  /** Returns true once the server stops: closing its regions waits for running scans. */
  boolean isStopping() {
    return server instanceof HRegionServer && ((HRegionServer) server).isStopped();
  }

  /** Returns a region; null if it is not open here. */
  Region region(String encodedName) {
    return server.getRegion(encodedName);
  }

  long openSeq(Region region) {
    return region instanceof HRegion ? ((HRegion) region).getOpenSeqNum() : -1;
  }

  RequestTable connect(Settings settings) throws IOException {
    return HBaseRequestTable.connect(HBaseConfiguration.create(conf), settings);
  }
}
