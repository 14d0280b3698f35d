package io.github.statustool;

import java.util.Arrays;
import java.util.List;
import java.util.Optional;
import org.apache.hadoop.conf.Configuration;
import org.apache.hadoop.hbase.CoprocessorEnvironment;
import org.apache.hadoop.hbase.client.RegionInfo;
import org.apache.hadoop.hbase.coprocessor.CoprocessorHost;
import org.apache.hadoop.hbase.coprocessor.ObserverContext;
import org.apache.hadoop.hbase.coprocessor.WALCoprocessor;
import org.apache.hadoop.hbase.coprocessor.WALCoprocessorEnvironment;
import org.apache.hadoop.hbase.coprocessor.WALObserver;
import org.apache.hadoop.hbase.regionserver.wal.AbstractFSWAL;
import org.apache.hadoop.hbase.wal.WALEdit;
import org.apache.hadoop.hbase.wal.WALKey;
import org.apache.hadoop.hbase.wal.WALKeyImpl;

/**
 * Sees the markers in the WALs of a server that has {@link ReplicateTimeTracker} alone, which puts it there: a server's
 * WALs are made after its coprocessors. It stamps nothing and vouches for nothing.
 */
@SuppressWarnings("deprecation") // the WAL hooks: deprecated to warn of changes, without a replacement
public final class MarkerObserver implements WALCoprocessor, WALObserver {
  private Recorder recorder;
  private WalWatch watch;
  private MarkerForwarder notes;
  private boolean ignored;

  /** Made by HBase. */
  public MarkerObserver() {}

  /** Adds this class to those that HBase loads for each WAL, unless {@link WriteTimeTracker} sees the markers anyway. */
  static void install(Configuration conf) {
    List<String> classes = Arrays.asList(conf.getTrimmedStrings(CoprocessorHost.WAL_COPROCESSOR_CONF_KEY));
    boolean seen = classes.stream().anyMatch(name -> name.startsWith(WriteTimeTracker.class.getName())
        || name.startsWith(MarkerObserver.class.getName()));
    if (!seen) {
      String before = classes.isEmpty() ? "" : String.join(",", classes) + ",";
      conf.set(CoprocessorHost.WAL_COPROCESSOR_CONF_KEY, before + MarkerObserver.class.getName());
    }
  }

  @Override
  public Optional<WALObserver> getWALObserver() {
    return Optional.of(this);
  }

  @Override
  @SuppressWarnings("rawtypes") // as HBase declares it
  public void start(CoprocessorEnvironment env) {
    recorder = SharedRecorders.of(env.getConfiguration()).recorder;
    try {
      watch = new WalWatch((AbstractFSWAL<?>) ((WALCoprocessorEnvironment) env).getWAL(), () -> { }, 0);
    } catch (RuntimeException e) {
      ignored = true; // no WAL of a kind that is known
    }
  }

  @Override
  public void postWALWrite(ObserverContext<? extends WALCoprocessorEnvironment> ctx, RegionInfo info, WALKey key,
      WALEdit edit) {
    try {
      if (edit.isMetaEdit() && (notes != null || prepare())) {
        notes.note(info, (WALKeyImpl) key, edit, null);
      }
    } catch (Throwable t) {
      recorder.health().error("postWALWrite", t);
    }
  }

  /** Late, because whose WAL this is can be known only when it has its first file. */
  private boolean prepare() {
    String server = ignored ? null : watch.serverName();
    ignored = server == null; // the WAL of the master's own store
    if (!ignored) {
      notes = new MarkerForwarder(Ids.origin(server), recorder.settings().table, recorder.observed().content);
    }
    return !ignored;
  }
}
