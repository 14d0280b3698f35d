package io.github.statustool.state;

import io.github.statustool.state.StateTable.CoverageRow;
import io.github.statustool.state.StateTable.TableEventRow;
import java.io.ByteArrayOutputStream;
import java.io.IOException;
import java.nio.ByteBuffer;
import java.util.ArrayList;
import java.util.List;
import java.util.concurrent.CompletableFuture;
import java.util.concurrent.Executor;
import java.util.function.LongSupplier;
import org.apache.hadoop.hbase.util.Bytes;

/**
 * A number that only rises, in the state table and in a file beside it. A snapshot of the table that is restored later
 * does not take the file along: a table whose number is below the file's went back to an earlier state. That shows even
 * if all region servers were restarted since, so that no tracker remembers what the table contained. A table that has a
 * number while there is no file counts as one that went back: nobody can tell.
 *
 * <p>The table is written first, so its number is never below the file's otherwise. Every tracker compares them before
 * its first flush, one tracker raises them in each period, and all of them read the number then: by it even a tracker
 * that has written nothing since a snapshot was taken notices that the table went back to that snapshot. The file is
 * read and written on other threads: a slow file system must not delay the echo of a barrier.
 *
 * <p>The number also tells a tracker that starts if clocks were set back while all servers were down.
 *
 * <p>Before it is raised, the number is put into each region of the table, and its row lists where: a region that lost
 * its rows, or went back by itself, has a lower one or none. That is looked at before a tracker's first flush and before
 * the number is raised; and by the tool, after it has read the table.
 */
public final class TableMark {
  private static final long PERIOD_MS = 10_000;
  /** A table's number is in the file well before it is so old. */
  private static final long IN_FILE_AFTER_MS = 2 * PERIOD_MS;
  private static final long RETRY_MS = 1_000;
  /** The most by which the clocks of a cluster's servers differ, as HBase itself demands. */
  private static final long SKEW_MS = 30_000;
  private static final long NONE = 0;
  /** Follows a region's start key: no other row of the table has such a key, and few come before it in its region. */
  private static final byte[] SUFFIX = Bytes.toBytes("!");

  /** The file. */
  interface MarkFile {
    /** Returns 0 if there is none. */
    long read() throws IOException;

    /** Replaces the number; a reader sees the old one or the new one. */
    void write(long mark) throws IOException;
  }

  /** Acts on a finding. */
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
    reading = null; // read again if the store fails below: others may have raised the number in the file by then
    if (mark == null) { // the file system is not available
      next.set(RETRY_MS);
      return false;
    }
    long stored = StoredRow.number(mark(store));
    seen = Math.max(stored, mark);
    checkClock();
    if (stored < mark || isFileLost(stored, mark)) {
      wentBack.record();
      long above = Math.max(clock.getAsLong(), Math.max(StoredRow.number(mark(store)), mark) + 1);
      raise(store, mark(store), new StateRow(CoverageRow.KEY).add(CoverageRow.MARK, above, above), above);
    } else if (hasLostRows(store)) {
      wentBack.record();
    }
    if (seen != NONE) {
      next.set(PERIOD_MS); // a new table gets its number at once
    }
    compared = true;
    return true;
  }

  /** Reports a clock that was set back while no server ran, so that nobody could watch it. */
  private void checkClock() {
    long now = clock.getAsLong();
    // The number is about the last time that a clock of the cluster showed. It is later if one of them was ahead and
    // has been set right since: entries that are written now look older than those of before all the same.
    if (now < seen - SKEW_MS) {
      health.clockWasSetBack(seen, now);
    }
  }

  /** Returns true if the file of a table that has been kept is gone. */
  private boolean isFileLost(long stored, long mark) {
    // The number of a new cluster is in the table a moment before it is in the file, so one that was just raised says
    // nothing. On a cluster that runs, another tracker writes the file in each period.
    return mark == NONE && stored != NONE && clock.getAsLong() > stored + IN_FILE_AFTER_MS;
  }

  /** Raises the number once in each period, unless a region lost rows since. */
  public void raise(StateStore store, Finding wentBack) throws IOException {
    if (compared && next.isDue()) {
      next.set(PERIOD_MS);
      byte[] stored = mark(store);
      // Nobody has raised it since this tracker's last look, a period before by its own clock. The number itself tells
      // no time: it is in the future if some server's clock was ahead once, and nobody would raise it until then.
      boolean isDue = StoredRow.number(stored) == seen;
      seen = Math.max(seen, StoredRow.number(stored)); // if it is lower, the next flush finds it too low
      if (isDue) {
        raise(store, wentBack, stored);
      }
    }
  }

  /** Raises the mark. */
  private void raise(StateStore store, Finding wentBack, byte[] stored) throws IOException {
    long mark = Math.max(clock.getAsLong(), StoredRow.number(stored) + 1);
    List<byte[]> keys = keys(store);
    List<byte[]> before = new ArrayList<>();
    // Before the comparison, so that no loss in between is covered up.
    store.get(keys).forEach(row -> before.add(row.value(CoverageRow.MARK)));
    if (hasLostRows(store)) {
      wentBack.record();
    // The regions first: a crash in between leaves a region's number above the listed one, which shows no loss.
    } else if (store.putAllIf(rows(keys, mark), CoverageRow.MARK, before)) {
      raise(store, stored, new StateRow(CoverageRow.KEY).add(CoverageRow.MARK, mark, mark)
          .add(CoverageRow.REGIONS, marked(keys, mark), mark), mark);
    }
  }

  /** Returns true if the table went back since this tracker last read its number. */
  public boolean isAbove(StoredRow coverage) {
    return StoredRow.number(coverage.value(CoverageRow.MARK)) < seen;
  }

  /** Returns a number for a table that went back, above all that this tracker has read. */
  public long above(long now) {
    return Math.max(now, seen + 1);
  }

  private void raise(StateStore store, byte[] stored, StateRow row, long mark) throws IOException {
    if (!store.putIf(row, CoverageRow.MARK, stored)) {
      return;
    }
    seen = mark;
    // A slow file system gets one number at a time. The next period's is higher, so this one is not missed.
    if (writing.isDone()) {
      writing = CompletableFuture.runAsync(() -> write(mark), threads);
    }
  }

  /** Puts a number into each region of a table that went back, after that was recorded. */
  public void markRegions(StateStore store, long mark) throws IOException {
    // A region that has lost its rows is left as it is until the tables are marked: raise() and the tool find it again.
    if (hasLostRows(store) && !areTablesMarked(store)) {
      return;
    }
    List<byte[]> keys = keys(store);
    store.put(rows(keys, mark));
    store.put(List.of(new StateRow(CoverageRow.KEY).add(CoverageRow.REGIONS, marked(keys, mark), mark)));
  }

  private static List<byte[]> keys(StateStore store) throws IOException {
    List<byte[]> keys = new ArrayList<>();
    for (byte[] start : store.regionStarts()) {
      keys.add(Bytes.add(start, SUFFIX));
    }
    return keys;
  }

  private static List<StateRow> rows(List<byte[]> keys, long mark) {
    List<StateRow> rows = new ArrayList<>();
    keys.forEach(key -> rows.add(new StateRow(key).add(CoverageRow.MARK, mark, mark)));
    return rows;
  }

  private static byte[] marked(List<byte[]> keys, long mark) {
    ByteArrayOutputStream marked = new ByteArrayOutputStream();
    marked.writeBytes(Bytes.toBytes(mark));
    for (byte[] key : keys) {
      marked.writeBytes(Bytes.toBytes(key.length));
      marked.writeBytes(key);
    }
    return marked.toByteArray();
  }

  private boolean areTablesMarked(StateStore store) {
    try {
      markTables(store);
      return true;
    } catch (IOException | RuntimeException e) {
      health.failedWrite("marking the tables that the state table may have lost", e);
      return false;
    }
  }

  /** Lets every table count as one that has held something since ever. */
  private static void markTables(StateStore store) throws IOException {
    List<StateRow> rows = new ArrayList<>();
    // The row with the arrival of a table's first entry may be lost while its segments are in other regions.
    for (String table : store.tables().keySet()) {
      rows.add(new StateRow(Bytes.toBytes(TableEventRow.TYPE + table))
          .add(TableEventRow.ARRIVED_MS, 1, TableEventRow.EARLIEST_WINS - 1));
    }
    store.put(rows);
  }

  private static boolean hasLostRows(StateStore store) throws IOException {
    byte[] marked = store.get(CoverageRow.KEY).value(CoverageRow.REGIONS);
    if (marked == null) {
      return false;
    }
    ByteBuffer in = ByteBuffer.wrap(marked);
    long mark = in.getLong();
    List<byte[]> keys = new ArrayList<>();
    while (in.hasRemaining()) {
      byte[] key = new byte[in.getInt()];
      in.get(key);
      keys.add(key);
    }
    return store.get(keys).stream().anyMatch(row -> StoredRow.number(row.value(CoverageRow.MARK)) < mark);
  }

  private static byte[] mark(StateStore store) throws IOException {
    return store.get(CoverageRow.KEY).value(CoverageRow.MARK);
  }

  /** Returns null if the file could not be read. */
  private Long read() {
    try {
      return file.read();
    } catch (Throwable t) { // no memory, too: else it is not read again, and this tracker never vouches for anything
      health.failedWrite("reading the mark of the state table", t);
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
