package io.github.statustool;

import java.io.IOException;
import java.util.Map;
import java.util.concurrent.Executor;
import java.util.concurrent.TimeUnit;
import java.util.concurrent.atomic.AtomicBoolean;
import java.util.concurrent.locks.LockSupport;
import java.util.function.LongSupplier;
import org.apache.hadoop.fs.Path;

/**
 * Keeps a copy of the segments that could not be written through in the spool, so that a crash while the state table is
 * unavailable does not make them look missing. There is one file at a time: a newer one holds all that is pending, and
 * replaces it. The segments stay pending: once the table is back, a flush writes them, and the copy is deleted.
 *
 * <p>On a thread of its own, which exists only while there is something pending: neither a replication handler nor the
 * echo of a barrier may wait for the file system.
 */
final class SegmentSpooler {
  private static final long SHORTEST_PAUSE_MS = 1_000;
  private static final long LONGEST_PAUSE_MS = 10_000;
  /** Pauses are a tenth of the time since the first failure: the number of files grows with its logarithm at first. */
  private static final int PAUSES = 10;

  private final Spool spool;
  private final AppliedSegments applied;
  private final Health health;
  private final LongSupplier clock;
  private final LongSupplier origin;
  private final Executor threads;
  private final AtomicBoolean running = new AtomicBoolean();
  /** The one file; used by the thread only. */
  private Path copy;
  private Map<StreamId, Long> copied = Map.of();

  /**
   * @param origin names the files
   * @param threads runs what may take as long as the state table is unavailable
   */
  SegmentSpooler(Spool spool, AppliedSegments applied, Health health, LongSupplier clock, LongSupplier origin,
      Executor threads) {
    this.spool = spool;
    this.applied = applied;
    this.health = health;
    this.clock = clock;
    this.origin = origin;
    this.threads = threads;
  }

  /** Called by a replication handler whose segments stay pending. */
  void copyLater() {
    if (!running.get() && running.compareAndSet(false, true)) {
      threads.execute(this::run);
    }
  }

  /** An executor that starts a daemon thread. */
  static void onThread(Runnable work) {
    Thread thread = new Thread(work, "status-tool-segments");
    thread.setDaemon(true);
    thread.start();
  }

  void run() {
    try {
      long began = clock.getAsLong();
      while (applied.hasPending()) {
        guardedCopy();
        LockSupport.parkNanos(TimeUnit.MILLISECONDS.toNanos(pause(clock.getAsLong() - began)));
      }
      guardedDelete();
    } finally {
      running.set(false);
    }
    if (applied.hasPending()) {
      copyLater(); // added after the last look, by a handler that saw this thread running
    }
  }

  static long pause(long since) {
    return Math.max(SHORTEST_PAUSE_MS, Math.min(LONGEST_PAUSE_MS, since / PAUSES));
  }

  private void guardedCopy() {
    try {
      copy();
    } catch (IOException | RuntimeException e) {
      health.failedWrite("copying segments to the spool", e);
    }
  }

  private void guardedDelete() {
    try {
      delete();
    } catch (IOException | RuntimeException e) {
      health.failedWrite("deleting the copy of segments in the spool", e);
    }
  }

  /** Writes a new file before it deletes the old one; does nothing where nothing was applied since. */
  void copy() throws IOException {
    Map<StreamId, Long> versions = applied.pendingVersions();
    if (versions.equals(copied)) {
      return;
    }
    long now = clock.getAsLong();
    Path fresh = spool.write(origin.getAsLong(), now, applied.pendingRows(now));
    Path old = copy;
    copy = fresh;
    copied = versions;
    if (old != null) {
      spool.delete(old);
    }
  }

  /** A tracker that has put the file into the table may have deleted it already. */
  void delete() throws IOException {
    if (copy != null) {
      spool.delete(copy);
      copy = null;
      copied = Map.of();
    }
  }
}
