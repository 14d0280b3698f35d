package io.github.statustool.state;

import io.github.statustool.state.StateTable.CoverageRow;
import java.io.IOException;
import java.util.List;
import java.util.concurrent.CompletableFuture;
import java.util.concurrent.Executor;
import java.util.function.LongSupplier;

/**
 * A number that only rises, in the state table and in a file beside it. A snapshot of the table that is restored later
 * does not take the file along: a table whose number is below the file's went back to an earlier state. That shows even
 * if all region servers were restarted since, so that no tracker remembers what the table contained.
 *
 * <p>The table is written first, so its number is never below the file's otherwise. Every tracker compares them before
 * its first flush, one tracker raises them in each period, and all of them read the number then: by it even a tracker
 * that has written nothing since a snapshot was taken notices that the table went back to that snapshot. The file is
 * read and written on other threads: a slow file system must not delay the echo of a barrier.
 */
public final class TableMark {
  private static final long PERIOD_MS = 10_000;
  private static final long RETRY_MS = 1_000;
  private static final long NONE = 0;

  /** The file. */
  interface MarkFile {
    /** Returns 0 if there is none. */
    long read() throws IOException;

    /** Replaces the number; a reader sees the old one or the new one. */
    void write(long mark) throws IOException;
  }

  /** What to do about a finding. */
  public interface Finding {
    void record() throws IOException;
  }

  private final MarkFile file;
  private final Executor threads;
  private final Health health;
  private final LongSupplier clock;
  private final Alarm next;
  private CompletableFuture<Long> reading;
  private CompletableFuture<Void> writing = CompletableFuture.completedFuture(null);
  private boolean compared;
  private long seen = NONE;

  public TableMark(MarkFile file, Executor threads, Health health, LongSupplier clock) {
    this.file = file;
    this.threads = threads;
    this.health = health;
    this.clock = clock;
    this.next = new Alarm(clock);
  }

  /**
   * Compares the table with the file, once the file has been read. Returns whether that is done; until then this tracker
   * vouches for nothing.
   *
   * @param wentBack run if the table went back, before its number is raised above the file's
   */
  public boolean compare(StateStore store, Finding wentBack) throws IOException {
    if (compared) {
      return true;
    }
    if (reading == null && next.isDue()) {
      reading = CompletableFuture.supplyAsync(this::read, threads);
    }
    if (reading == null || !reading.isDone()) {
      return false;
    }
    Long mark = reading.join();
    if (mark == null) {
      reading = null; // the file system is not available
      next.set(RETRY_MS);
      return false;
    }
    long stored = number(mark(store));
    seen = Math.max(stored, mark);
    if (stored < mark) {
      wentBack.record();
      raise(store, mark(store), mark);
    }
    compared = true;
    return true;
  }

  /** Raises the number once in each period. */
  public void raise(StateStore store) throws IOException {
    if (compared && next.isDue()) {
      next.set(PERIOD_MS);
      byte[] stored = mark(store);
      seen = Math.max(seen, number(stored));
      if (number(stored) == seen && clock.getAsLong() >= seen + PERIOD_MS) { // else the next flush finds it too low
        raise(store, stored, NONE);
      }
    }
  }

  /** Whether the table went back since this tracker last read its number. */
  public boolean isAbove(StoredRow coverage) {
    return number(coverage.value(CoverageRow.MARK)) < seen;
  }

  /** A number for a table that went back, above all that this tracker has read. */
  public long above(long now) {
    return Math.max(now, seen + 1);
  }

  private void raise(StateStore store, byte[] stored, long least) throws IOException {
    long mark = Math.max(clock.getAsLong(), Math.max(number(stored), least) + 1);
    StateRow row = new StateRow(CoverageRow.KEY).add(CoverageRow.MARK, mark, mark);
    if (store.putIf(row, CoverageRow.MARK, stored) && writing.isDone()) {
      writing = CompletableFuture.runAsync(() -> write(mark), threads);
    }
  }

  private static byte[] mark(StateStore store) throws IOException {
    return store.get(List.of(CoverageRow.KEY)).get(0).value(CoverageRow.MARK);
  }

  private static long number(byte[] stored) {
    return stored == null ? NONE : Bits.getLong(stored, 0);
  }

  /** Returns null if the file could not be read. */
  private Long read() {
    try {
      return file.read();
    } catch (IOException | RuntimeException e) {
      health.failedWrite("reading the mark of the state table", e);
      return null;
    }
  }

  private void write(long mark) {
    try {
      file.write(mark);
    } catch (IOException | RuntimeException e) {
      health.failedWrite("writing the mark of the state table", e);
    }
  }
}
