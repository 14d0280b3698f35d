package io.github.statustool.streams;

import io.github.statustool.state.Change;
import io.github.statustool.state.HBaseStateStore;
import io.github.statustool.state.StateStore;
import io.github.statustool.state.StateTable.SegmentRow;
import io.github.statustool.state.StoredRow;
import java.io.IOException;
import java.util.ArrayList;
import java.util.Arrays;
import java.util.Iterator;
import java.util.List;
import java.util.Map;
import java.util.concurrent.CompletableFuture;

/**
 * Keeps the rows of streams short: merges the segments that other servers have recorded into this server's own column,
 * and deletes columns that are no longer written to.
 *
 * <p>Several servers may compact the same row concurrently, and writes may arrive late. Both are safe, because a column
 * is deleted only up to the version that was read, in the same atomic mutation that writes a column with all its
 * segments.
 */
public final class Compactor {
  private static final int MOST_ROWS_A_STEP = 200;
  /**
   * A column that has not been written to for this long belongs to a server that is gone, or to a stream that has moved
   * on.
   */
  private static final long STALE_MS = 3_600_000;

  private final AppliedSegments applied;
  private final long timeout;
  private int rowsAStep = MOST_ROWS_A_STEP;

  public Compactor(AppliedSegments applied, long timeout) {
    this.applied = applied;
    this.timeout = timeout;
  }

  /** Compacts a limited number of rows, so that the recorder can poll the barrier in between. */
  public void step(StateStore store, long now) throws IOException {
    List<StreamId> ids = takeSome();
    if (ids.isEmpty()) {
      return;
    }
    try {
      merge(store, ids, now);
      rowsAStep = Math.min(MOST_ROWS_A_STEP, 2 * rowsAStep);
    } catch (IOException e) {
      // Columns may be long. If so many rows do not come in time now, they would not the next time either.
      rowsAStep = Math.max(1, rowsAStep / 2);
      applied.scattered().addAll(ids);
      throw e;
    }
  }

  private List<StreamId> takeSome() {
    List<StreamId> some = new ArrayList<>();
    Iterator<StreamId> ids = applied.scattered().iterator();
    while (ids.hasNext() && some.size() < rowsAStep) {
      some.add(ids.next());
      ids.remove(); // before its row is read: a handler that adds segments from now on puts the stream back
    }
    return some;
  }

  private void merge(StateStore store, List<StreamId> ids, long now) throws IOException {
    List<StreamSegments> records = new ArrayList<>();
    List<byte[]> keys = new ArrayList<>();
    for (StreamId id : ids) {
      StreamSegments record = applied.record(id);
      // An id may wait here for longer than the record is kept: forgetIdle() drops idle ones.
      if (record != null) {
        records.add(record);
        keys.add(id.rowKey(SegmentRow.TYPE));
      }
    }
    List<StoredRow> rows = store.get(keys);
    List<CompletableFuture<Void>> writes = new ArrayList<>();
    for (int i = 0; i < rows.size(); i++) {
      merge(store, records.get(i), rows.get(i), now, writes);
    }
    HBaseStateStore.await(CompletableFuture.allOf(writes.toArray(new CompletableFuture<?>[0])), timeout);
  }

  private static void merge(StateStore store, StreamSegments record, StoredRow row, long now,
      List<CompletableFuture<Void>> writes) {
    SegmentSet others = new SegmentSet();
    List<byte[]> stale = new ArrayList<>();
    for (Map.Entry<byte[], byte[]> column : row.values.entrySet()) {
      byte[] qualifier = column.getKey();
      boolean isOwn = Arrays.equals(qualifier, record.qualifier());
      // A column of an unknown version, which a newer tracker may have written, stays: nothing of it has been read.
      if (!isOwn && SegmentColumn.read(qualifier, column.getValue(), others)) {
        if (row.timestamp(qualifier) <= now - STALE_MS) {
          stale.add(qualifier);
        }
      }
    }
    // Before the row is made: the mutation that deletes a column must write all that it held, or segments look missing.
    record.takeOver(others);
    // If nothing is to be deleted, the next ordinary write of this column takes the segments along.
    if (!stale.isEmpty()) {
      Change whole = record.toChange(now);
      writes.add(store.replaceAsync(whole.row, row, stale).thenRun(whole::stored));
    }
  }
}
