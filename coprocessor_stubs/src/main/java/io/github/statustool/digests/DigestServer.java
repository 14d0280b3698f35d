package io.github.statustool.digests;

import io.github.statustool.state.Settings;
import java.io.IOException;
import org.apache.hadoop.conf.Configuration;
import org.apache.hadoop.hbase.HBaseConfiguration;
import org.apache.hadoop.hbase.coprocessor.RegionServerCoprocessorEnvironment;
import org.apache.hadoop.hbase.regionserver.HRegion;
import org.apache.hadoop.hbase.regionserver.HRegionServer;
import org.apache.hadoop.hbase.regionserver.Region;

/** The region server's services that row digests need. */
public class DigestServer {
  private final RegionServerCoprocessorEnvironment env;

  public DigestServer(RegionServerCoprocessorEnvironment env) {
    this.env = env;
  }

  /** Returns the server's name; null until the server is online. */
  String name() {
    boolean online = !(env.getOnlineRegions() instanceof HRegionServer)
        || ((HRegionServer) env.getOnlineRegions()).isOnline();
    return online && env.getServerName() != null ? env.getServerName().getServerName() : null;
  }

  /** Returns a region; null if it is not open here. */
  Region region(String encodedName) {
    return env.getOnlineRegions().getRegion(encodedName);
  }

  long openSeq(Region region) {
    return region instanceof HRegion ? ((HRegion) region).getOpenSeqNum() : -1;
  }

  RequestTable connect(Settings settings) throws IOException {
    Configuration conf = HBaseConfiguration.create(env.getConfiguration());
    return HBaseRequestTable.connect(conf, settings);
  }
}
