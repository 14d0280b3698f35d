package io.github.statustool;

import java.io.IOException;
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
final class WalWatch implements WALActionsListener, Watched {
  private final AbstractFSWAL<?> wal;
  private final Runnable onClose;
  private volatile String serverName;
  private volatile boolean closing;
  private boolean drained;

  WalWatch(AbstractFSWAL<?> wal, Runnable onClose) {
    this.wal = wal;
    this.onClose = onClose;
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

  /** A WAL that closes is synced by that, and would no longer answer. */
  @Override
  public void sync() throws IOException {
    if (!closing) {
      wal.sync();
    }
  }

  @Override
  public void logCloseRequested() {
    closing = true;
    onClose.run();
  }

  /**
   * Whether the WAL is closed and its last entry has gone through our hooks. The request to close comes before the ring
   * buffer is drained; the length of the current file is known until the writer is closed, and asking for it waits for
   * the lock that the closing thread holds.
   */
  @Override
  public boolean isOver() {
    if (!drained && closing) {
      drained = !wal.getLogFileSizeIfBeingWritten(wal.getCurrentFileName()).isPresent();
    }
    return drained;
  }
}
