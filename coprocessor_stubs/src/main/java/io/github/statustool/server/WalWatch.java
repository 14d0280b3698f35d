package io.github.statustool.server;

import io.github.statustool.state.Health;
import java.io.IOException;
import java.util.concurrent.TimeUnit;
import java.util.concurrent.atomic.AtomicLong;
import java.util.concurrent.atomic.AtomicReference;
import java.util.function.LongSupplier;
import org.apache.hadoop.fs.Path;
import org.apache.hadoop.hbase.ServerName;
import org.apache.hadoop.hbase.client.RegionInfo;
import org.apache.hadoop.hbase.master.region.MasterRegionFactory;
import org.apache.hadoop.hbase.regionserver.wal.AbstractFSWAL;
import org.apache.hadoop.hbase.regionserver.wal.WALActionsListener;
import org.apache.hadoop.hbase.wal.AbstractFSWALProvider;
import org.apache.hadoop.hbase.wal.WALEdit;
import org.apache.hadoop.hbase.wal.WALKey;

/**
 * Determines to which server a WAL belongs, and when nothing more can be appended to it. HBase never stops a WAL
 * coprocessor, so this class listens for the close of the WAL itself.
 */
public final class WalWatch implements WALActionsListener, ObservedWal {
  private final AbstractFSWAL<?> wal;
  private final Runnable onClose;
  private final long archiveWait;
  private final Health health;
  /** The entry that is being appended, or whose append failed; taken out by whoever notes that. */
  private final AtomicReference<WALKey> appending = new AtomicReference<>();
  private final AtomicLong durable = new AtomicLong();
  private volatile LongSupplier appended = () -> 0;
  private volatile Runnable onOpen = () -> { };
  private volatile String serverName;
  /** Whether it has had a file to write to. HBase closes one that it cannot create a file for, and makes another one. */
  private volatile boolean opened;
  private volatile boolean closing;
  private volatile boolean archived;
  /** Time when it was found to be drained, from System.nanoTime; 0 if it was not yet. */
  private volatile long drainedAt;

  /** @param archiveWait after how many milliseconds a closed WAL counts as not archived */
  public WalWatch(AbstractFSWAL<?> wal, Runnable onClose, long archiveWait, Health health) {
    this.wal = wal;
    this.onClose = onClose;
    this.health = health;
    this.archiveWait = TimeUnit.MILLISECONDS.toNanos(archiveWait);
  }

  /**
   * @param work runs once there is a file: HBase makes another WAL at each attempt to open a region while none can be
   *     created, and whoever keeps this object keeps the WAL with its buffers
   */
  public void whenOpened(Runnable work) {
    onOpen = work;
  }

  /** @param appended returns the number of appended entries; a later sync makes them durable */
  public void counts(LongSupplier appended) {
    this.appended = appended;
  }

  /**
   * Returns the server's name; null until the WAL has its first file (a coprocessor starts inside the WAL's
   * constructor), which one that never opens does not get, and for the WAL of the HBase master's local store, which
   * loads these coprocessors, too.
   */
  @Override
  public String serverName() {
    if (serverName == null && opened) {
      Path file = currentFile();
      ServerName name = file == null || isOfMasterStore(file)
          ? null
          : AbstractFSWALProvider.getServerNameFromWALDirectoryName(file);
      serverName = name == null ? null : name.getServerName();
    }
    return serverName;
  }

  /** Returns true for {@code <root>/MasterData/WALs/<server>/<file>}. */
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

  /** Syncs the WAL. */
  @Override
  public void sync() throws IOException {
    if (!opened) {
      return; // nothing can be appended yet, and a sync without a writer fails inside HBase
    }
    if (!closing) {
      syncNow();
    // A closing WAL may not respond any more. Then only what was durable before counts, once isOver() has found it
    // drained: until then acknowledged entries (ASYNC_WAL) may be in its ring buffer, where nobody has counted them.
    } else if (drainedAt == 0 || !isDurable()) {
      throw new IOException("the write-ahead log closes, and its last entries may not be durable");
    }
  }

  private void syncNow() throws IOException {
    // Before the sync, which need not cover an entry that is appended while it runs.
    long before = appended.getAsLong();
    WALKey entry = appending.getAcquire();
    wal.sync();
    // The sync passed the WAL thread behind this entry.
    noteFailed(entry);
    durable.accumulateAndGet(before, Math::max);
  }

  @Override
  public void visitLogEntryBeforeWrite(RegionInfo region, WALKey key, WALEdit edit) {
    try {
      noteFailed(appending.getPlain());
    } catch (Throwable t) {
      // FSHLog drops an entry whose hook fails, and its sync acknowledges it.
      health.error("noting a failed append", t);
    }
    appending.setRelease(key);
  }

  @Override
  public void postAppend(long length, long elapsed, WALKey key, WALEdit edit) {
    appending.setRelease(null);
  }

  /**
   * Counts an error if an entry's append has failed. Until its next roll, FSHLog then drops every entry before any hook
   * sees it; it has acknowledged those with ASYNC_WAL, and the server keeps their cells and lives on if no other entry
   * was waiting for a sync. (AsyncFSWAL appends them again.)
   */
  private void noteFailed(WALKey entry) {
    if (entry != null && appending.compareAndSet(entry, null)) {
      health.error("appending an entry", new IOException("the write-ahead log may have dropped entries until its roll"));
    }
  }

  /** Returns true if the last entries are durable. */
  @Override
  public boolean isDurable() {
    // HBase closes a WAL whose last sync failed like any other: its server was fenced (paused for longer than its
    // ZooKeeper session, for example), and aborts. Its last entries are in no file then. A server that stops in order
    // has closed its regions before, each with a marker and a sync, and archives its WALs; one that aborts does not.
    return archived || durable.get() == appended.getAsLong();
  }

  @Override
  public boolean isClosing() {
    return closing;
  }

  /** Notes that there is a file to write to: HBase calls this when the writer is in its place, also the first time. */
  @Override
  public void postLogRoll(Path from, Path to) {
    if (!opened) {
      opened = true;
      try {
        onOpen.run();
      } catch (Throwable t) {
        health.error("watching a write-ahead log", t); // HBase would abort its server
      }
    }
  }

  @Override
  public void logCloseRequested() {
    closing = opened;
    onClose.run();
  }

  /** Notes that the current file is archived: only when the WAL is closed for good, not when it is abandoned. */
  @Override
  public void preLogArchive(Path from, Path to) {
    Path current = closing ? currentFile() : null;
    if (current != null && current.getName().equals(from.getName())) {
      archived = true;
      onClose.run();
    }
  }

  /** Returns true if the WAL is closed and its last entry has passed our hooks. */
  @Override
  public boolean isOver() {
    // HBase sets the closed flag before it drains the ring buffer. The length of the current file is available until
    // the writer is closed, and reading it waits for the lock of the closing thread.
    if (drainedAt == 0 && closing && !wal.getLogFileSizeIfBeingWritten(wal.getCurrentFileName()).isPresent()) {
      // Never 0, which stands for a WAL that is not drained yet.
      drainedAt = System.nanoTime() | 1;
    }
    // Whether the WAL is archived becomes known a moment later.
    return drainedAt != 0 && (isDurable() || System.nanoTime() - drainedAt > archiveWait);
  }
}
