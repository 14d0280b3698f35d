package io.github.statustool.streams;

import io.github.statustool.state.GrowingSpoolFile;
import io.github.statustool.state.Health;
import io.github.statustool.state.Spool;
import io.github.statustool.state.StateRow;
import java.io.IOException;
import java.util.ArrayList;
import java.util.Iterator;
import java.util.List;
import java.util.concurrent.Executor;
import java.util.concurrent.TimeUnit;
import java.util.concurrent.atomic.AtomicBoolean;
import java.util.concurrent.locks.LockSupport;
import java.util.function.LongSupplier;
import org.apache.hadoop.fs.Path;

/**
 * Keeps a copy of the segments that a flush has yet to put into the state table in the spool, so that a crash does not
 * make them look missing. There is one file, which grows with what is applied; after a flush, or once it has become long,
 * it is replaced by another with all that is pending. When nothing is, it is deleted.
 *
 * <p>On a thread of its own, which exists only while there is something pending. A replication handler waits for it once
 * and briefly where it fails. The copies of requests that wait at the same time are one.
 */
public final class SegmentSpooler implements WriteThrough.Copies {
  private static final long SHORTEST_PAUSE_MS = 1_000;
  private static final long LONGEST_PAUSE_MS = 10_000;
  /** After a failure, pauses are a tenth of the time since the thread was started. */
  private static final int PAUSES = 10;

  private final Spool spool;
  private final AppliedSegments applied;
  private final Health health;
  private final LongSupplier clock;
  private final LongSupplier origin;
  private final Executor threads;
  private final long waitMs;
  private final AtomicBoolean running = new AtomicBoolean();
  /** The one file, and those that it replaces; used by the thread only. */
  private GrowingSpoolFile copy;
  private final List<Path> outdated = new ArrayList<>();
  /** Number of copies requested, and of those that are all made. Guarded by this. */
  private long asked;
  private long made;
  private boolean works = true;
  private volatile boolean flushed;
  private volatile boolean appends = true;

  /**
   * @param origin names the files
   * @param threads runs what may take as long as the state table is unavailable
   * @param waitMs how long a replication handler waits
   */
  public SegmentSpooler(Spool spool, AppliedSegments applied, Health health, LongSupplier clock, LongSupplier origin,
      Executor threads, long waitMs) {
    this.spool = spool;
    this.applied = applied;
    this.health = health;
    this.clock = clock;
    this.origin = origin;
    this.threads = threads;
    this.waitMs = waitMs;
  }

  @Override
  public boolean areCheap() {
    return appends;
  }

  @Override
  public boolean copySoon() {
    // The handler has kept its segments: a copy that begins after this has them, one that is under way may not.
    long mine = ask();
    start();
    return await(mine);
  }

  /** What is in the file is in the table, too: the next copy begins another. */
  public void flushSucceeded() {
    flushed = true;
  }

  private synchronized long ask() {
    asked++;
    notifyAll();
    return asked;
  }

  private void start() {
    // The plain look spares each handler a contended compare-and-set while the thread runs.
    if (!running.get() && running.compareAndSet(false, true)) {
      try {
        threads.execute(this::run);
      } catch (Throwable t) { // no memory for a thread, too
        running.set(false);
        health.failedWrite("starting a thread for the spool", t);
        // Otherwise the handler waits its whole time for a thread that does not exist.
        failed();
      }
    }
  }

  private synchronized boolean await(long mine) {
    long end = System.nanoTime() + TimeUnit.MILLISECONDS.toNanos(waitMs);
    try {
      while (works && made < mine) {
        long left = TimeUnit.NANOSECONDS.toMillis(end - System.nanoTime());
        if (left <= 0) {
          works = false; // nobody waits again until a copy has succeeded
          return false;
        }
        wait(left);
      }
    } catch (InterruptedException e) {
      Thread.currentThread().interrupt();
    }
    return made >= mine;
  }

  /** Runs the work on a daemon thread. */
  public static void onThread(Runnable work) {
    Thread thread = new Thread(work, "status-tool-segments");
    thread.setDaemon(true);
    thread.start();
  }

  void run() {
    try {
      long began = clock.getAsLong();
      while (applied.hasPending()) {
        // Before the copy: what a handler adds during it may not be in it.
        long upTo = asked();
        if (guardedCopy()) {
          copied(upTo);
          awaitMore(upTo);
        } else {
          failed();
          LockSupport.parkNanos(TimeUnit.MILLISECONDS.toNanos(pause(clock.getAsLong() - began)));
        }
      }
      // The table has all that the file says. Entries that a handler adds now are not in it: only this thread appends.
      guardedDelete();
    } finally {
      running.set(false);
    }
    long upTo = asked(); // before the look: what a handler adds after it is in no flush
    if (applied.hasPending()) {
      start(); // added after the last look, by a handler that saw this thread running
    } else {
      copied(upTo); // a flush has written them
    }
  }

  private synchronized long asked() {
    return asked;
  }

  private synchronized void copied(long upTo) {
    made = Math.max(made, upTo);
    works = true;
    notifyAll();
  }

  private synchronized void failed() {
    works = false;
    notifyAll();
  }

  private synchronized void awaitMore(long since) {
    try {
      if (asked == since) {
        // A flush wakes nobody here, so the loop looks once a second whether anything is still pending.
        wait(SHORTEST_PAUSE_MS);
      }
    } catch (InterruptedException e) {
      Thread.currentThread().interrupt();
    }
  }

  static long pause(long since) {
    return Math.max(SHORTEST_PAUSE_MS, Math.min(LONGEST_PAUSE_MS, since / PAUSES));
  }

  private boolean guardedCopy() {
    try {
      copy();
      return true;
    } catch (Throwable t) { // no memory, too: what is taken from the segments to be copied must be copied again
      health.failedWrite("copying segments to the spool", t);
      applied.copyAgain();
      abandon();
      return false;
    }
  }

  private void guardedDelete() {
    try {
      delete();
    } catch (IOException | RuntimeException e) {
      health.failedWrite("deleting the copy of segments in the spool", e);
    }
  }

  void copy() throws IOException {
    long now = clock.getAsLong();
    List<StateRow> rows = applied.uncopiedRows(now);
    // Without new rows the old file stays, although a flush has outdated it: another one costs the NameNode a create.
    if (copy == null || ((copy.isFull() || flushed) && !rows.isEmpty())) {
      flushed = false;
      replace(now);
    } else if (!rows.isEmpty()) {
      copy.append(rows);
    }
  }

  /** Writes a new file before it deletes the old one. */
  private void replace(long now) throws IOException {
    abandon();
    copy = spool.open(origin.getAsLong(), now);
    // Only an open stream tells whether it can hflush(): a local or erasure-coded file cannot.
    appends = copy.flushes();
    // All that is pending, not only the new rows: the older ones are in no other file once deleteOutdated() is done.
    copy.append(applied.pendingRows(now));
    deleteOutdated();
  }

  /** Abandons the file. What has been appended stays readable until a newer file has it. */
  private void abandon() {
    if (copy != null) {
      // Before the close, which may fail: other trackers leave a growing file of a live server alone, so it would stay.
      outdated.add(copy.path);
      closeQuietly(copy);
      // At once: where every append fails, each attempt leaves an empty file.
      if (copy.isEmpty()) {
        deleteQuietly(copy.path);
      }
      copy = null;
    }
  }

  private void deleteQuietly(Path file) {
    try {
      spool.delete(file);
      outdated.remove(file);
    } catch (IOException | RuntimeException e) {
      health.failedWrite("deleting an empty file of the spool", e);
    }
  }

  private void closeQuietly(GrowingSpoolFile file) {
    try {
      file.close();
    } catch (IOException | RuntimeException e) {
      health.failedWrite("closing a copy of segments in the spool", e);
    }
  }

  private void deleteOutdated() throws IOException {
    for (Iterator<Path> paths = outdated.iterator(); paths.hasNext();) {
      spool.delete(paths.next());
      // After the delete: a path whose delete fails is tried again with the next file.
      paths.remove();
    }
  }

  /** Deletes all files. A tracker that has put one into the table may have deleted it already. */
  void delete() throws IOException {
    abandon();
    deleteOutdated();
  }
}
