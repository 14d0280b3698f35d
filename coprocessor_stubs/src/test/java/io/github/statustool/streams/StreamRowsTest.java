package io.github.statustool.streams;

import io.github.statustool.state.GoldenRows;
import io.github.statustool.state.Ids;
import io.github.statustool.state.StateRow;
import java.io.IOException;
import java.util.ArrayList;
import java.util.List;
import java.util.UUID;
import org.apache.hadoop.hbase.TableName;
import org.apache.hadoop.hbase.client.RegionInfo;
import org.apache.hadoop.hbase.client.RegionInfoBuilder;
import org.junit.jupiter.api.Test;

class StreamRowsTest {
  private static final UUID ONE = new UUID(0x0102030405060708L, 0x090a0b0c0d0e0f10L);
  private static final UUID TWO = new UUID(0xf1f2f3f4f5f6f7f8L, 0xf9fafbfcfdfeff00L);
  private static final String TABLE = "ns:t";
  private static final String OTHER_REGION = "0123456789abcdef0123456789abcdef";
  private static final long NOW = 1_700_000_100_000L;

  private final RegionInfo region = RegionInfoBuilder.newBuilder(TableName.valueOf(TABLE)).setRegionId(7)
      .setStartKey(new byte[] {0, 1}).setEndKey(new byte[] {(byte) 0xff}).build();
  private final ObservedState observed = new ObservedState(Fixtures.health(), () -> NOW);
  private final List<StateRow> rows = new ArrayList<>();

  private void heads() {
    StreamHead local = Fixtures.head(observed.heads.heads(region, Fixtures.ORIGIN, List.of()), Fixtures.GLOBAL);
    local.advance(2, 1002);
    local.advance(5, 1001);
    FamilyHeads relayed = observed.heads.heads(region, Fixtures.ORIGIN, List.of(TWO, ONE));
    Fixtures.head(relayed, Fixtures.GLOBAL).advance(6, 1006);
    relayed.head(FamilyCells.UNKNOWN, id -> new byte[0]).advance(6, 1006);
    FamilyHeads life = observed.heads.anotherLife(region, Fixtures.ORIGIN, List.of(), 3, 1007);
    Fixtures.head(life, Fixtures.GLOBAL).advance(3, 1007);
    observed.headChanges().forEach(change -> rows.add(change.row));
  }

  private void segments() {
    StreamId id = new StreamId(OTHER_REGION, Fixtures.ORIGIN, -2);
    AppliedEntries.Builder applied = new AppliedEntries.Builder(id, TABLE, Fixtures.GLOBAL, false, 0);
    applied.add(0, 0, 4, 1004);
    applied.add(4, 1004, 5, 1003);
    applied.add(7, StampCodec.UNKNOWN_TIME, 9, 1009);
    StreamSegments record = new StreamSegments(id, TABLE, Fixtures.GLOBAL, 0x1112131415161718L);
    record.add(applied.build(NOW), NOW);
    rows.add(record.toChange(NOW).row);
    StreamId stream = Fixtures.stream(OTHER_REGION);
    AppliedEntries.Builder ofFamily = new AppliedEntries.Builder(stream, TABLE, Fixtures.GLOBAL, false, 0);
    ofFamily.add(0, 0, 4, 1004);
    StreamSegments own = new StreamSegments(stream, TABLE, Fixtures.GLOBAL, 0x2122232425262728L);
    own.add(ofFamily.build(NOW), NOW);
    rows.add(own.toChange(NOW).row);
  }

  private void unstamped() {
    UnstampedEntries entries = new UnstampedEntries(OTHER_REGION.replace('0', 'f'), TABLE,
        Ids.sortedBytes(List.of(TWO, ONE)));
    entries.add(1001);
    entries.add(1000);
    rows.add(entries.toRow());
  }

  @Test
  void theRowsOfStreamsAreTheGoldenOnes() throws IOException {
    heads();
    segments();
    unstamped();
    GoldenRows.assertWritten("hsu", rows);
  }
}
