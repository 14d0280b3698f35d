package io.github.statustool;

import java.util.HashMap;
import java.util.Map;
import org.apache.hadoop.conf.Configuration;
import org.apache.hadoop.hbase.HBaseConfiguration;
import org.apache.hadoop.hbase.HConstants;
import org.apache.hadoop.hbase.util.EnvironmentEdgeManager;
import org.slf4j.Logger;
import org.slf4j.LoggerFactory;

/** The recorders of this JVM. Both trackers, and all WALs, of a cluster share one. */
final class SharedRecorders {
  private static final Logger LOG = LoggerFactory.getLogger(SharedRecorders.class);
  private static final Map<String, Running> RUNNING = new HashMap<>();

  private SharedRecorders() {}

  /** The recorder of the cluster that this configuration names, started if this is the first to ask. */
  static synchronized Running of(Configuration conf) {
    return RUNNING.computeIfAbsent(cluster(conf), absent -> start(conf));
  }

  private static String cluster(Configuration conf) {
    return conf.get(HConstants.ZOOKEEPER_QUORUM) + "|" + conf.get(HConstants.ZOOKEEPER_CLIENT_PORT) + "|"
        + conf.get(HConstants.ZOOKEEPER_ZNODE_PARENT);
  }

  private static Running start(Configuration environment) {
    // A coprocessor gets a read-only view, whose copies are empty: its entries have to be taken one by one.
    Configuration conf = HBaseConfiguration.create(environment);
    Settings settings = new Settings(conf);
    Recorder recorder = new Recorder(settings, () -> HBaseStateStore.connect(conf, settings),
        new Spool(conf, settings.spoolDir()), EnvironmentEdgeManager::currentTime,
        System::nanoTime, new WalTraces(conf, EnvironmentEdgeManager::currentTime, settings.operationTimeout));
    recorder.health().serverSettings(ServerSettings.json(conf));
    RecorderThread thread = new RecorderThread(recorder);
    thread.start();
    finishWithJvm(thread);
    LOG.info("status-tool {}: recording to {} every {} ms", TrackerVersion.get(), settings.table,
        settings.updatePeriod);
    return new Running(recorder, thread);
  }

  private static void finishWithJvm(RecorderThread thread) {
    Thread hook = new Thread(thread::finish, "status-tool-final-flush");
    hook.setDaemon(true); // HBase lists all others as suspects when it stops; the JVM waits for a hook anyway
    try {
      Runtime.getRuntime().addShutdownHook(hook);
    } catch (IllegalStateException e) {
      LOG.warn("status-tool: started while the JVM shuts down");
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
