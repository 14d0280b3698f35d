package io.github.statustool;

import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertTrue;

import java.util.List;
import org.apache.hadoop.hbase.shaded.protobuf.generated.AdminProtos.WALEntry;
import org.junit.jupiter.api.Test;

class SinkBatchTest {
  private static List<Segment> segments(SinkBatch batch, String region) {
    for (AppliedStream stream : batch.streams()) {
      if (stream.id.equals(new StreamId(region, Fixtures.ORIGIN, 0))) {
        return stream.segments();
      }
    }
    return List.of();
  }

  private static Segment segment(long prev, long seq) {
    return new Segment(prev, seq, 0, 0);
  }

  @Test
  void entriesThatFollowEachOtherAreOneSegment() {
    SinkBatch batch = Fixtures.batch(Fixtures.entry("a", 0, 3), Fixtures.entry("a", 3, 4), Fixtures.entry("a", 4, 9));
    assertEquals(List.of(segment(0, 9)), segments(batch, "a"));
    assertEquals(1003, segments(batch, "a").get(0).firstTime);
    assertEquals(1009, segments(batch, "a").get(0).lastTime);
  }

  @Test
  void interleavedRegionsAreKeptApart() {
    SinkBatch batch = Fixtures.batch(Fixtures.entry("a", 0, 3), Fixtures.entry("b", 0, 2), Fixtures.entry("a", 3, 4),
        Fixtures.entry("b", 2, 7));
    assertEquals(List.of(segment(0, 4)), segments(batch, "a"));
    assertEquals(List.of(segment(0, 7)), segments(batch, "b"));
  }

  @Test
  void aHoleStaysAHole() {
    SinkBatch batch = Fixtures.batch(Fixtures.entry("a", 0, 3), Fixtures.entry("a", 5, 6));
    assertEquals(List.of(segment(0, 3), segment(5, 6)), segments(batch, "a"));
  }

  @Test
  void orderAndRepetitionDoNotMatter() {
    WALEntry third = Fixtures.entry("a", 4, 9);
    SinkBatch batch = Fixtures.batch(third, third, Fixtures.entry("a", 3, 4), Fixtures.entry("a", 0, 3),
        Fixtures.entry("a", 3, 4));
    assertEquals(List.of(segment(0, 9)), segments(batch, "a"));
  }

  @Test
  void anEntryOfSeveralMutationsCountsOnce() {
    WALEntry entry = Fixtures.entry("a", 3, new byte[] {1, 2});
    Unstamped counted = Fixtures.batch(entry, entry, entry).unstamped().get(0);
    assertEquals(1, number(counted, Columns.N));
  }

  private static long number(Unstamped unstamped, byte[] qualifier) {
    for (StateRow.Column column : unstamped.toRow().columns()) {
      if (column.qualifier == qualifier) {
        return Bits.getLong(column.value, 0);
      }
    }
    throw new AssertionError("no such column");
  }

  @Test
  void entriesWithoutAValidStampAreCounted() {
    byte[] ofAnother = new StampCodec().encode(Fixtures.ORIGIN, 1, 0, 99);
    SinkBatch batch = Fixtures.batch(Fixtures.entry("a", 3, null), Fixtures.entry("a", 5, ofAnother),
        Fixtures.entry("a", 4, new byte[0]));
    assertTrue(batch.streams().isEmpty());
    Unstamped unstamped = batch.unstamped().get(0);
    assertEquals("ua", FakeStore.text(unstamped.toRow().key));
    assertEquals(3, number(unstamped, Columns.N));
    assertEquals(1005, number(unstamped, Columns.R));
  }

  @Test
  void clearLeavesNothing() {
    SinkBatch batch = Fixtures.batch(Fixtures.entry("a", 0, 3), Fixtures.entry("b", 5, null));
    batch.clear();
    assertTrue(batch.isEmpty());
    assertTrue(batch.streams().isEmpty());
  }

  @Test
  void aStreamsRowHasItsSegmentsItsNewestTimeAndItsTable() {
    AppliedStream stream = Fixtures.batch(Fixtures.entry("a", 0, 3)).streams().get(0);
    StateRow row = stream.toRow();
    assertEquals("sa" + Bits.hex(Fixtures.ORIGIN) + "0000000000000000", FakeStore.text(row.key));
    assertEquals(3, row.columns().size());
    assertEquals(StateRow.SERVER_TIME, row.columns().get(0).timestamp);
    assertEquals(1003, row.columns().get(1).timestamp);
  }
}
