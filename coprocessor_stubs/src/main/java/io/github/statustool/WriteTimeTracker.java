package io.github.statustool;

import io.github.statustool.recorder.Recorder;
import io.github.statustool.server.WalWatch;
import io.github.statustool.state.Ids;
import io.github.statustool.streams.WalStamper;
import java.util.Optional;
import org.apache.hadoop.hbase.CoprocessorEnvironment;
import org.apache.hadoop.hbase.client.RegionInfo;
import org.apache.hadoop.hbase.coprocessor.ObserverContext;
import org.apache.hadoop.hbase.coprocessor.WALCoprocessor;
import org.apache.hadoop.hbase.coprocessor.WALCoprocessorEnvironment;
import org.apache.hadoop.hbase.coprocessor.WALObserver;
import org.apache.hadoop.hbase.regionserver.wal.AbstractFSWAL;
import org.apache.hadoop.hbase.wal.WAL;
import org.apache.hadoop.hbase.wal.WALEdit;
import org.apache.hadoop.hbase.wal.WALKey;
import org.apache.hadoop.hbase.wal.WALKeyImpl;

/**
 * Stamps every entry that will be replicated, and maintains the head of each stream. Configured in {@code
 * hbase.coprocessor.wal.classes} of the master clusters.
 *
 * <p>HBase creates one instance per WAL. The hooks do very little, never wait and never throw; the JVM's {@link
 * Recorder} writes the heads to the state table.
 */
@SuppressWarnings("deprecation") // the WAL hooks: deprecated to warn of changes, without a replacement
public final class WriteTimeTracker implements WALCoprocessor, WALObserver {
  private Recorder recorder;
  private WalWatch watch;
  private WalStamper stamper;
  private boolean ignored;

  /** Called by HBase. */
  public WriteTimeTracker() {}

  /** Creates a tracker for tests and benchmarks, which have no WAL. */
  WriteTimeTracker(Recorder recorder, WalStamper stamper) {
    this.recorder = recorder;
    this.stamper = stamper;
  }

  @Override
  public Optional<WALObserver> getWALObserver() {
    return Optional.of(this);
  }

  /** Called from the WAL's constructor, which has not completed yet. */
  @Override
  @SuppressWarnings("rawtypes") // as HBase declares it
  public void start(CoprocessorEnvironment env) {
    SharedRecorders.Running running = SharedRecorders.of(env.getConfiguration());
    ignored = running == null;
    if (ignored) {
      return;
    }
    recorder = running.recorder;
    try {
      WAL wal = ((WALCoprocessorEnvironment) env).getWAL();
      watch = new WalWatch((AbstractFSWAL<?>) wal, running.thread::wake, recorder.settings().operationTimeout,
          recorder.health());
      watch.whenOpened(() -> recorder.roles().watchWal(watch));
      wal.registerWALActionsListener(watch);
    } catch (Throwable t) {
      recorder.health().error("starting the write-time tracker", t);
    }
  }

  @Override
  public void preWALWrite(ObserverContext<? extends WALCoprocessorEnvironment> ctx, RegionInfo info, WALKey key,
      WALEdit edit) {
    try {
      if (stamper != null || prepare()) {
        stamper.before(info, (WALKeyImpl) key, edit);
      }
    } catch (Throwable t) {
      recorder.health().error("preWALWrite", t);
    }
  }

  @Override
  public void postWALWrite(ObserverContext<? extends WALCoprocessorEnvironment> ctx, RegionInfo info, WALKey key,
      WALEdit edit) {
    try {
      if (stamper != null) {
        stamper.after(info, (WALKeyImpl) key, edit);
      }
    } catch (Throwable t) {
      recorder.health().error("postWALWrite", t);
    }
  }

  /** Prepares for the WAL; returns false if it is ignored. */
  private boolean prepare() {
    if (ignored) {
      return false;
    }
    // Not at the start: the WAL shows its server only once it has its first file.
    String server = watch == null ? null : watch.serverName();
    ignored = server == null; // the WAL of the HBase master's local store
    if (!ignored) {
      stamper = new WalStamper(Ids.origin(server), recorder.settings(), recorder.observed(),
          recorder.health());
      watch.counts(stamper::appended);
    }
    return !ignored;
  }
}
