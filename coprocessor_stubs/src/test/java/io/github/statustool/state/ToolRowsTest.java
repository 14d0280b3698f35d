package io.github.statustool.state;

import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertTrue;

import io.github.statustool.state.StateTable.BarrierRow;
import io.github.statustool.state.StateTable.ProvenRow;
import io.github.statustool.state.StateTable.PrunedRow;
import io.github.statustool.state.StateTable.ToolRow;
import java.io.IOException;
import java.util.List;
import java.util.UUID;
import org.apache.hadoop.hbase.util.Bytes;
import org.junit.jupiter.api.Test;

class ToolRowsTest {
  private static final UUID ONE = new UUID(0x0102030405060708L, 0x090a0b0c0d0e0f10L);
  private static final UUID TWO = new UUID(0xf1f2f3f4f5f6f7f8L, 0xf9fafbfcfdfeff00L);
  private static final String TABLE = "ns:t";
  private static final long NOW = 1_700_000_100_000L;

  private final FakeStore store = new FakeStore();

  @Test
  void theNamesOfTheToolsRowsAreThoseOfTheStateTable() throws IOException {
    store.put(GoldenRows.read("tool-rows"));
    assertEquals(NOW, store.number(BarrierRow.KEY, BarrierRow.ISSUED_MS));
    assertEquals(8, store.value(BarrierRow.KEY, BarrierRow.PRUNING).length);
    assertEquals(8, store.value(BarrierRow.KEY, BarrierRow.TABLE_ID).length);
    assertEquals(NOW - 1, store.number(ToolRow.KEY, ToolRow.SHUTDOWN_MS));
    byte[] master = Bytes.toBytes("01020304-0506-0708-090a-0b0c0d0e0f10");
    assertEquals(NOW - 4, store.number(ToolRow.KEY, Bytes.add(ToolRow.PRUNED_BY, master)));
    byte[] passed = Bytes.add(PrunedRow.WRITTEN_MS, Ids.sortedBytes(List.of(TWO, ONE)));
    assertEquals(NOW - 2, store.number(Bytes.toBytes(PrunedRow.TYPE + TABLE), passed));
    assertEquals(NOW - 3, store.number(Bytes.toBytes(PrunedRow.TYPE + "u"), PrunedRow.WRITTEN_MS));
    byte[] proof = store.value(Bytes.toBytes(ProvenRow.TYPE + TABLE), Bytes.add(ProvenRow.PROVEN, master));
    assertTrue(Bytes.toString(proof).contains("\"until_ms\""));
  }
}
