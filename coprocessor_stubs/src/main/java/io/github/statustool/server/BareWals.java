package io.github.statustool.server;

import io.github.statustool.state.Health;
import java.io.IOException;
import java.util.List;
import java.util.function.Supplier;
import org.apache.hadoop.conf.Configuration;
import org.apache.hadoop.hbase.coprocessor.CoprocessorHost;
import org.apache.hadoop.hbase.coprocessor.WALCoprocessor;
import org.apache.hadoop.hbase.regionserver.HRegionServer;
import org.apache.hadoop.hbase.regionserver.wal.AbstractFSWAL;
import org.apache.hadoop.hbase.wal.WAL;

/**
 * Looks for write-ahead logs without the tracker on a server that has one with it: nothing tells what is in them.
 *
 * <p>HBase creates a WAL when the first region needs it, that of hbase:meta and each of {@code multiwal}, by the server's
 * configuration of that time. {@code update_config} reads the site files again.
 */
public final class BareWals {
  private final Supplier<List<WAL>> wals;
  private final Class<? extends WALCoprocessor> tracker;
  private final Health health;

  /** @param wals returns those of the server, once it is online */
  BareWals(Supplier<List<WAL>> wals, Class<? extends WALCoprocessor> tracker, Health health) {
    this.wals = wals;
    this.tracker = tracker;
    this.health = health;
  }

  /**
   * Of a server that has loaded its coprocessors, but may not have created its WALs yet. Keeps the tracker in its
   * configuration.
   */
  public static BareWals of(HRegionServer server, Class<? extends WALCoprocessor> tracker, Health health) {
    BareWals bare = new BareWals(server::getWALs, tracker, health);
    bare.keep(server.getConfiguration());
    return bare;
  }

  /** Keeps the tracker in a server's configuration, whatever its site files say later. */
  void keep(Configuration conf) {
    String classes = conf.get(CoprocessorHost.WAL_COPROCESSOR_CONF_KEY, "");
    if (classes.contains(tracker.getName())) {
      conf.set(CoprocessorHost.WAL_COPROCESSOR_CONF_KEY, classes); // what is set by a call outlives a reload
    }
  }

  /** Counts an error as long as there is one: that is how long its entries go unrecorded. */
  void check() {
    for (WAL wal : wals.get()) {
      if (wal instanceof AbstractFSWAL && wal.getCoprocessorHost().findCoprocessor(tracker) == null) {
        health.error("recording one of the write-ahead logs", new IOException(
            "it runs without the tracker, which has come to hbase.coprocessor.wal.classes since: restart this server"));
      }
    }
  }
}
