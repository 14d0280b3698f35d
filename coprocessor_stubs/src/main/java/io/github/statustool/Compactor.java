package io.github.statustool;

import java.io.IOException;
import java.util.ArrayList;
import java.util.Iterator;
import java.util.List;
import java.util.Map;
import java.util.Set;
import java.util.concurrent.CompletableFuture;

/**
 * Merges the segment cells of the rows that were written to, so that a row stays small. Safe against anyone who does
 * the same at the same time: only parts that were read, and that the merged segment holds, are deleted with it.
 */
final class Compactor {
  private static final int ROWS_A_STEP = 200;

  private final Set<StreamId> touched;
  private final long timeout;

  Compactor(Set<StreamId> touched, long timeout) {
    this.touched = touched;
    this.timeout = timeout;
  }

  boolean hasWork() {
    return !touched.isEmpty();
  }

  /** Does a part of the work, so that the recorder can look for a barrier in between. */
  void step(StateStore store) throws IOException {
    List<byte[]> keys = takeSome();
    List<CompletableFuture<Void>> merges = new ArrayList<>();
    for (StoredRow row : store.get(keys)) {
      merge(store, row, merges);
    }
    HBaseStateStore.await(CompletableFuture.allOf(merges.toArray(new CompletableFuture<?>[0])), timeout);
  }

  /** What fails is not put back: its row is merged when the stream gets its next segment. */
  private List<byte[]> takeSome() {
    List<byte[]> keys = new ArrayList<>();
    Iterator<StreamId> ids = touched.iterator();
    while (ids.hasNext() && keys.size() < ROWS_A_STEP) {
      keys.add(ids.next().rowKey(Columns.SEGMENTS));
      ids.remove();
    }
    return keys;
  }

  private static void merge(StateStore store, StoredRow row, List<CompletableFuture<Void>> merges) {
    List<Segment> parts = new ArrayList<>();
    SegmentSet union = new SegmentSet();
    for (Map.Entry<byte[], byte[]> column : row.values.entrySet()) {
      Segment segment = Segment.parse(column.getKey(), column.getValue());
      if (segment != null) {
        parts.add(segment);
        union.add(segment);
      }
    }
    if (union.asList().size() < parts.size()) {
      merges.add(replace(store, row.key, parts, union.asList()));
    }
  }

  private static CompletableFuture<Void> replace(StateStore store, byte[] key, List<Segment> parts,
      List<Segment> merged) {
    StateRow row = new StateRow(key);
    for (Segment segment : merged) {
      if (!parts.contains(segment)) {
        row.add(segment.qualifier(), segment.value(), StateRow.SERVER_TIME);
      }
    }
    List<byte[]> deleted = new ArrayList<>();
    for (Segment part : parts) {
      if (!merged.contains(part)) {
        deleted.add(part.qualifier());
      }
    }
    return store.replaceAsync(row, deleted);
  }
}
