package io.github.statustool.server;

import static org.junit.jupiter.api.Assertions.assertEquals;

import io.github.statustool.state.Health;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.ArrayList;
import java.util.List;
import java.util.Optional;
import org.apache.hadoop.conf.Configuration;
import org.apache.hadoop.fs.FileSystem;
import org.apache.hadoop.hbase.HBaseConfiguration;
import org.apache.hadoop.hbase.coprocessor.CoprocessorHost;
import org.apache.hadoop.hbase.coprocessor.WALCoprocessor;
import org.apache.hadoop.hbase.coprocessor.WALObserver;
import org.apache.hadoop.hbase.regionserver.wal.FSHLog;
import org.apache.hadoop.hbase.wal.WAL;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.io.TempDir;
import org.slf4j.LoggerFactory;

class BareWalsTest {
  @TempDir
  private Path folder;
  private final Health health = new Health(LoggerFactory.getLogger(BareWalsTest.class));
  private final List<WAL> wals = new ArrayList<>();
  private final BareWals bare = new BareWals(() -> wals, Tracker.class, health);

  /** In place of the tracker. HBase makes one for each WAL. */
  @SuppressWarnings("deprecation") // the WAL hooks: deprecated to warn of changes, without a replacement
  public static final class Tracker implements WALCoprocessor, WALObserver {
    @Override
    public Optional<WALObserver> getWALObserver() {
      return Optional.of(this);
    }
  }

  @Test
  void aWalWithoutTheTrackerIsAnErrorEachTime() throws Exception {
    Configuration conf = HBaseConfiguration.create();
    conf.set(CoprocessorHost.WAL_COPROCESSOR_CONF_KEY, Tracker.class.getName());
    FSHLog tracked = wal(conf, "tracked");
    FSHLog other = wal(HBaseConfiguration.create(), "other");
    try {
      wals.add(tracked);
      bare.check();
      assertEquals(0, health.errors());
      wals.add(other);
      bare.check();
      bare.check();
      assertEquals(2, health.errors());
    } finally {
      tracked.close();
      other.close();
    }
  }

  @Test
  void theTrackerStaysAlthoughTheSiteFileLosesIt() throws Exception {
    Path site = folder.resolve("hbase-site.xml");
    Files.writeString(site, property(CoprocessorHost.WAL_COPROCESSOR_CONF_KEY, "other.Class," + Tracker.class.getName()));
    Configuration conf = new Configuration(false);
    conf.addResource(new org.apache.hadoop.fs.Path(site.toUri()));
    bare.keep(conf);
    Files.writeString(site, property("some.other", "1"));
    conf.reloadConfiguration(); // as HBase's update_config does
    assertEquals("1", conf.get("some.other"));
    assertEquals("other.Class," + Tracker.class.getName(), conf.get(CoprocessorHost.WAL_COPROCESSOR_CONF_KEY));
  }

  @Test
  void aServerWithoutTheTrackerStaysWithoutIt() {
    Configuration conf = new Configuration(false);
    bare.keep(conf);
    assertEquals(null, conf.get(CoprocessorHost.WAL_COPROCESSOR_CONF_KEY));
  }

  private static String property(String name, String value) {
    return "<configuration><property><name>" + name + "</name><value>" + value + "</value></property></configuration>";
  }

  private FSHLog wal(Configuration conf, String name) throws Exception {
    FSHLog wal = new FSHLog(FileSystem.getLocal(conf), new org.apache.hadoop.fs.Path(folder.toUri()), name, "archive",
        conf, null, true, name, null);
    wal.init();
    return wal;
  }
}
