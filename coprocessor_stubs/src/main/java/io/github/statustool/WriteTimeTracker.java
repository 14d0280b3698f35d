package io.github.statustool;

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
 * Stamps every entry that will be replicated and keeps each stream's head. For
 * {@code hbase.coprocessor.wal.classes} of the clusters whose writes are to be proven to have arrived.
 *
 * <p>HBase makes one for each WAL. The hooks do almost nothing, never wait and never throw; a {@link Recorder} of the
 * JVM brings the heads into the state table.
 */
@SuppressWarnings("deprecation") // the WAL hooks: deprecated to warn of changes, without a replacement
public final class WriteTimeTracker implements WALCoprocessor, WALObserver {
  private Recorder recorder;
  private WalWatch watch;
  private WalStamper stamper;
  private boolean ignored;

  /** Made by HBase. */
  public WriteTimeTracker() {}

  /** For tests and benchmarks, which have no WAL. */
  WriteTimeTracker(Recorder recorder, WalStamper stamper) {
    this.recorder = recorder;
    this.stamper = stamper;
  }

  @Override
  public Optional<WALObserver> getWALObserver() {
    return Optional.of(this);
  }

  /** Runs inside the constructor of the WAL, which is not complete yet. */
  @Override
  @SuppressWarnings("rawtypes") // as HBase declares it
  public void start(CoprocessorEnvironment env) {
    SharedRecorders.Running running = SharedRecorders.of(env.getConfiguration());
    recorder = running.recorder;
    try {
      WAL wal = ((WALCoprocessorEnvironment) env).getWAL();
      watch = new WalWatch((AbstractFSWAL<?>) wal, running.thread::wake, recorder.settings().operationTimeout);
      wal.registerWALActionsListener(watch);
      recorder.roles().watchWal(watch);
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

  /** Late, because whose WAL this is can be known only when it has its first file. */
  private boolean prepare() {
    String server = ignored || watch == null ? null : watch.serverName();
    ignored = server == null; // the WAL of the master's own store
    if (!ignored) {
      stamper = new WalStamper(Ids.origin(server), recorder.settings().table, recorder.observed(),
          recorder.health());
      watch.counts(stamper::appended);
    }
    return !ignored;
  }
}
