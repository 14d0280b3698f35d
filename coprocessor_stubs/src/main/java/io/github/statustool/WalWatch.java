package io.github.statustool;

import java.io.IOException;
import java.util.concurrent.TimeUnit;
import java.util.concurrent.atomic.AtomicLong;
import java.util.function.LongSupplier;
import org.apache.hadoop.fs.Path;
import org.apache.hadoop.hbase.ServerName;
import org.apache.hadoop.hbase.master.region.MasterRegionFactory;
import org.apache.hadoop.hbase.regionserver.wal.AbstractFSWAL;
import org.apache.hadoop.hbase.regionserver.wal.WALActionsListener;
import org.apache.hadoop.hbase.wal.AbstractFSWALProvider;

/**
 * Knows whose WAL this is, and when nothing more can be appended to it. HBase never tells a WAL coprocessor to stop, so
 * this listens for the close of the WAL itself.
 */
final class WalWatch implements WALActionsListener, ServerComponent {
  private final AbstractFSWAL<?> wal;
  private final Runnable onClose;
  private final long archiveWait;
  private final AtomicLong durable = new AtomicLong();
  private volatile LongSupplier appended = () -> 0;
  private volatile String serverName;
  private volatile boolean closing;
  private volatile boolean archived;
  /** By System.nanoTime; 0: not yet. */
  private long drainedAt;

  /** @param archiveWait after how many milliseconds a WAL that was closed is taken not to be archived */
  WalWatch(AbstractFSWAL<?> wal, Runnable onClose, long archiveWait) {
    this.wal = wal;
    this.onClose = onClose;
    this.archiveWait = TimeUnit.MILLISECONDS.toNanos(archiveWait);
  }

  /** @param appended how many entries have been appended; what is counted is durable after a sync that comes later */
  void counts(LongSupplier appended) {
    this.appended = appended;
  }

  /**
   * Null until the WAL has its first file (a coprocessor starts inside the WAL's constructor), and for the WAL of the
   * master's own store, which loads these coprocessors too.
   */
  @Override
  public String serverName() {
    if (serverName == null) {
      Path file = currentFile();
      ServerName name = file == null || isOfMasterStore(file)
          ? null
          : AbstractFSWALProvider.getServerNameFromWALDirectoryName(file);
      serverName = name == null ? null : name.getServerName();
    }
    return serverName;
  }

  /** Of {@code <root>/MasterData/WALs/<server>/<file>}. */
  private static boolean isOfMasterStore(Path file) {
    Path store = file.getParent().getParent().getParent();
    return store != null && store.getName().equals(MasterRegionFactory.MASTER_STORE_DIR);
  }

  private Path currentFile() {
    try {
      return wal.getCurrentFileName();
    } catch (RuntimeException e) {
      return null; // no file yet
    }
  }

  /** A WAL that closes may no longer answer: then what was durable before has to be all. */
  @Override
  public void sync() throws IOException {
    if (!closing) {
      syncNow();
    } else if (!isDurable()) {
      throw new IOException("the write-ahead log closes, and its last entries may not be durable");
    }
  }

  private void syncNow() throws IOException {
    long before = appended.getAsLong();
    wal.sync();
    durable.accumulateAndGet(before, Math::max);
  }

  /**
   * HBase closes a WAL whose last sync failed like any other: its server was fenced, say because it had been paused for
   * longer than its session, and aborts. What was appended last is then in no file. A server that stops in good order
   * has closed its regions before, each with a marker and a sync, and archives its WALs; one that aborts does not.
   */
  @Override
  public boolean isDurable() {
    return archived || durable.get() == appended.getAsLong();
  }

  @Override
  public void logCloseRequested() {
    closing = true;
    onClose.run();
  }

  /** Of the current file only a WAL that is closed for good, not one that is given up. */
  @Override
  public void preLogArchive(Path from, Path to) {
    Path current = closing ? currentFile() : null;
    if (current != null && current.getName().equals(from.getName())) {
      archived = true;
      onClose.run();
    }
  }

  /**
   * Whether the WAL is closed and its last entry has gone through our hooks. The request to close comes before the ring
   * buffer is drained; the length of the current file is known until the writer is closed, and asking for it waits for
   * the lock that the closing thread holds. Whether it is archived then is told a moment later.
   */
  @Override
  public boolean isOver() {
    if (drainedAt == 0 && closing && !wal.getLogFileSizeIfBeingWritten(wal.getCurrentFileName()).isPresent()) {
      drainedAt = System.nanoTime() | 1;
    }
    return drainedAt != 0 && (isDurable() || System.nanoTime() - drainedAt > archiveWait);
  }
}
