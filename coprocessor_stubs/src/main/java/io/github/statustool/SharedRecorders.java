package io.github.statustool;

import io.github.statustool.digests.DigestServer;
import io.github.statustool.recorder.Recorder;
import io.github.statustool.recorder.RecorderThread;
import io.github.statustool.recorder.WalTraces;
import io.github.statustool.server.BareWals;
import io.github.statustool.server.ServerSettings;
import io.github.statustool.server.ServerWatch;
import io.github.statustool.state.HBaseStateStore;
import io.github.statustool.state.Settings;
import io.github.statustool.state.Spool;
import io.github.statustool.state.TrackerVersion;
import io.github.statustool.streams.SegmentSpooler;
import java.util.HashMap;
import java.util.HashSet;
import java.util.Map;
import java.util.Set;
import org.apache.hadoop.conf.Configuration;
import org.apache.hadoop.hbase.HBaseConfiguration;
import org.apache.hadoop.hbase.HConstants;
import org.apache.hadoop.hbase.regionserver.HRegionServer;
import org.apache.hadoop.hbase.util.EnvironmentEdgeManager;
import org.slf4j.Logger;
import org.slf4j.LoggerFactory;

/** The recorders of this JVM, one per cluster. All trackers and WALs of a cluster share it. */
final class SharedRecorders {
  private static final Logger LOG = LoggerFactory.getLogger(SharedRecorders.class);
  private static final Map<String, Running> RUNNING = new HashMap<>();
  private static final Set<String> OFF = new HashSet<>();

  private SharedRecorders() {}

  /**
   * Returns the recorder of the cluster that this configuration names, and starts it on the first call. Returns null if
   * that failed, for example because a setting is invalid: a coprocessor that throws makes HBase abort its server.
   */
  static synchronized Running of(Configuration conf) {
    String cluster = "";
    try {
      cluster = cluster(conf);
      return OFF.contains(cluster) ? null : RUNNING.computeIfAbsent(cluster, absent -> start(conf));
    } catch (Throwable e) { // no memory for a thread, too
      // For good: if the next tracker or WAL tried again, the server would look like one of which every WAL is tracked.
      OFF.add(cluster);
      LOG.error("status-tool: the trackers are off and record nothing: {}; correct the setting and restart this server",
          String.valueOf(e.getMessage()));
      return null;
    }
  }

  private static String cluster(Configuration conf) {
    // Not its ZooKeeper: `update_config` may bring another list of servers of the same one, before a further WAL begins.
    return conf.get(HConstants.HBASE_DIR);
  }

  private static Running start(Configuration environment) {
    // A coprocessor gets a read-only view. Copying that yields an empty configuration, so copy entry by entry.
    Configuration conf = HBaseConfiguration.create(environment);
    Settings settings = new Settings(conf);
    Recorder recorder = new Recorder(settings, () -> HBaseStateStore.connect(conf, settings),
        Spool.ofCluster(conf, settings.spoolDir()), EnvironmentEdgeManager::currentTime,
        System::nanoTime, new WalTraces(conf, EnvironmentEdgeManager::currentTime, settings.operationTimeout),
        SegmentSpooler::onThread, SegmentSpooler::onThread);
    recorder.roles().findServers(name -> found(name, recorder));
    recorder.health().serverSettings(new ServerSettings(environment, settings)::json);
    RecorderThread thread = new RecorderThread(recorder);
    thread.start();
    finishWithJvm(thread);
    LOG.info("status-tool {}: recording to {} every {} ms", TrackerVersion.get(), settings.table,
        settings.updatePeriod);
    return new Running(recorder, thread);
  }

  /** Finds the server of a WAL that is watched alone, and lets it answer requests for row digests as well. */
  private static ServerWatch found(String name, Recorder recorder) {
    HRegionServer server = ServerWatch.find(name);
    if (server == null) {
      return null;
    }
    ServerWatch watch = new ServerWatch(server, BareWals.of(server, WriteTimeTracker.class, recorder.health()));
    recorder.digests().start(new DigestServer(server, watch::serverName, server.getConfiguration()));
    return watch;
  }

  private static void finishWithJvm(RecorderThread thread) {
    Thread hook = new Thread(thread::finish, "status-tool-final-flush");
    hook.setDaemon(true); // HBase logs non-daemon threads when it stops; the JVM waits for hooks anyway
    try {
      Runtime.getRuntime().addShutdownHook(hook);
    } catch (IllegalStateException e) {
      LOG.warn("status-tool: started while the JVM is shutting down");
    }
  }

  /** A recorder and its thread. */
  static final class Running {
    final Recorder recorder;
    final RecorderThread thread;

    private Running(Recorder recorder, RecorderThread thread) {
      this.recorder = recorder;
      this.thread = thread;
    }
  }
}
