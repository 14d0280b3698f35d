package io.github.statustool.state;

import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertFalse;
import static org.junit.jupiter.api.Assertions.assertThrows;
import static org.junit.jupiter.api.Assertions.assertTrue;

import io.github.statustool.state.StateTable.SegmentRow;
import io.github.statustool.state.StateTable.ServerRow;
import java.io.Closeable;
import java.io.IOException;
import java.util.ArrayList;
import java.util.Collections;
import java.util.List;
import java.util.concurrent.CompletableFuture;
import java.util.concurrent.atomic.AtomicBoolean;
import java.util.stream.Collectors;
import org.apache.hadoop.hbase.Cell;
import org.apache.hadoop.hbase.ClusterMetricsBuilder;
import org.apache.hadoop.hbase.HConstants;
import org.apache.hadoop.hbase.ServerName;
import org.apache.hadoop.hbase.client.Delete;
import org.apache.hadoop.hbase.client.Mutation;
import org.apache.hadoop.hbase.util.Bytes;
import org.junit.jupiter.api.Test;

class HBaseStateStoreTest {
  private static final byte[] OLD = Bytes.toBytes("old");

  private static List<Mutation> mutations() throws IOException {
    StateRow row = new StateRow(Bytes.toBytes("s")).add(SegmentRow.TABLE, new byte[0], StateRow.SERVER_TIME);
    StoredRow read = new StoredRow(row.key);
    read.put(OLD, new byte[0], 5);
    return HBaseStateStore.replacement(row, read, List.of(OLD, ServerRow.FINAL_MS)).getMutations();
  }

  @Test
  void theWholeIsPutAndThePartsAreDeleted() throws IOException {
    assertEquals(List.of("Put", "Delete"),
        mutations().stream().map(m -> m.getClass().getSimpleName()).collect(Collectors.toList()));
  }

  /** What was written since it was read must stay. */
  @Test
  void aColumnIsDeletedUpToTheVersionThatWasRead() throws IOException {
    Mutation delete = mutations().get(1);
    assertTrue(delete instanceof Delete);
    List<Cell> cells = delete.getFamilyCellMap().get(StateTable.FAMILY);
    assertEquals(5, cells.get(0).getTimestamp());
    assertEquals(HConstants.LATEST_TIMESTAMP, cells.get(1).getTimestamp());
  }

  /** Columns of segments may be long after an outage. */
  @Test
  void aRequestIsBoundByItsRowsAndByItsBytes() {
    List<StateRow> small = Collections.nCopies(1_200, new StateRow(new byte[9]).add(new byte[1], new byte[100], 1));
    assertEquals(List.of(500, 1_000, 1_200), ends(small));
    List<StateRow> large = Collections.nCopies(5, new StateRow(new byte[9]).add(new byte[1], new byte[1_500_000], 1));
    assertEquals(List.of(2, 4, 5), ends(large));
    assertEquals(List.of(1), ends(List.of(new StateRow(new byte[9]).add(new byte[1], new byte[9_000_000], 1))));
  }

  private static List<Integer> ends(List<StateRow> rows) {
    List<Integer> ends = new ArrayList<>();
    for (int from = 0; from < rows.size(); from = ends.get(ends.size() - 1)) {
      ends.add(HBaseStateStore.chunkEnd(rows, from));
    }
    return ends;
  }

  @Test
  void aConnectionThatComesTooLateIsClosed() {
    CompletableFuture<Closeable> opening = new CompletableFuture<>();
    AtomicBoolean closed = new AtomicBoolean();
    assertThrows(IOException.class, () -> HBaseStateStore.inTime(opening, -500));
    assertFalse(closed.get());
    opening.complete(() -> closed.set(true));
    assertTrue(closed.get());
  }

  /** In what it answers meanwhile, live servers are missing. */
  @Test
  void aMasterThatStartsIsNotAskedWhoLives() throws IOException {
    List<ServerName> some = List.of(ServerName.valueOf("a.example.org,16020,1700000000000"));
    ClusterMetricsBuilder starting = ClusterMetricsBuilder.newBuilder().setServerNames(some);
    assertThrows(IOException.class, () -> HBaseStateStore.known(starting.build()));
    assertEquals(some, HBaseStateStore.known(starting.setBalancerOn(false).build()));
  }
}
