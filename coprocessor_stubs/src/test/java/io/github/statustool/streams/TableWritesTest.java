package io.github.statustool.streams;

import static org.junit.jupiter.api.Assertions.assertArrayEquals;
import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertTrue;

import io.github.statustool.state.Change;
import io.github.statustool.state.Ids;
import io.github.statustool.state.StateRow;
import io.github.statustool.state.StateTable.TableEventRow;
import java.io.IOException;
import java.util.Arrays;
import java.util.List;
import java.util.Map;
import java.util.NavigableMap;
import java.util.Set;
import java.util.TreeMap;
import java.util.UUID;
import org.apache.hadoop.hbase.ArrayBackedTag;
import org.apache.hadoop.hbase.KeyValue;
import org.apache.hadoop.hbase.Tag;
import org.apache.hadoop.hbase.TagType;
import org.apache.hadoop.hbase.client.RegionInfo;
import org.apache.hadoop.hbase.regionserver.MultiVersionConcurrencyControl;
import org.apache.hadoop.hbase.util.Bytes;
import org.apache.hadoop.hbase.wal.WALEdit;
import org.apache.hadoop.hbase.wal.WALKeyImpl;
import org.junit.jupiter.api.Test;

class TableWritesTest {
  private static final byte[] ROW = Bytes.toBytes("row");
  private static final byte[] QUALIFIER = Bytes.toBytes("q");
  private static final UUID MASTER = new UUID(1, 2);

  private final ObservedState observed = new ObservedState(Fixtures.health(), () -> 0);
  private final RegionInfo region = Fixtures.region("t");
  private final WalStamper stamper =
      new WalStamper(Fixtures.ORIGIN, Fixtures.SETTINGS, observed, Fixtures.health());
  private long seq = 1;

  private void append(RegionInfo of, long time, List<UUID> clusterIds, NavigableMap<byte[], Integer> scopes,
      KeyValue... cells) throws IOException {
    WALKeyImpl key = new WALKeyImpl(of.getEncodedNameAsBytes(), of.getTable(), ++seq, time, clusterIds, 0, 0,
        new MultiVersionConcurrencyControl(), scopes);
    WALEdit edit = new WALEdit();
    for (KeyValue cell : cells) {
      edit.add(cell);
    }
    stamper.before(of, key, edit);
    stamper.after(of, key, edit);
  }

  private void append(long time, List<UUID> clusterIds, KeyValue... cells) throws IOException {
    append(region, time, clusterIds, null, cells);
  }

  private static KeyValue put() {
    return new KeyValue(ROW, Fixtures.GLOBAL, QUALIFIER, 1L, ROW);
  }

  private static KeyValue delete() {
    return new KeyValue(ROW, Fixtures.GLOBAL, QUALIFIER, 1L, KeyValue.Type.DeleteColumn);
  }

  private static KeyValue tagged() {
    Tag ttl = new ArrayBackedTag(TagType.TTL_TAG_TYPE, Bytes.toBytes(5L));
    return new KeyValue(ROW, Fixtures.GLOBAL, QUALIFIER, 1L, ROW, new Tag[] {ttl});
  }

  private final Map<String, Long> first = new TreeMap<>();

  /** What would be written now, by qualifier, but for the first writes; and it counts as written. */
  private Map<String, Long> flushed() {
    Map<String, Long> written = new TreeMap<>();
    for (Change change : observed.tableWrites.dirty()) {
      assertArrayEquals(Bytes.toBytes("nt"), change.row.key);
      for (StateRow.Column column : change.row.columns()) {
        String clusters = Bytes.toHex(Arrays.copyOfRange(column.qualifier, 1, column.qualifier.length));
        long moment = Bytes.toLong(column.value, 0);
        if (column.qualifier[0] == TableEventRow.FIRST_WRITTEN_MS[0]) {
          first.put(clusters, moment);
          assertEquals(TableEventRow.EARLIEST_WINS - moment, column.timestamp);
        } else {
          written.merge((char) column.qualifier[0] + clusters, moment, Math::max);
          assertEquals(moment, column.timestamp, "the newest wins");
        }
      }
      change.stored();
    }
    return written;
  }

  @Test
  void whatReplicationBringsIsToldByTheClustersThatItPassed() throws IOException {
    UUID other = new UUID(3, 4);
    append(21_000, List.of(MASTER), put());
    append(21_001, List.of(other), delete());
    append(21_002, List.of(other, MASTER), put());
    String ones = Bytes.toHex(Ids.sortedBytes(List.of(MASTER)));
    String others = Bytes.toHex(Ids.sortedBytes(List.of(other)));
    assertEquals(Map.of("l" + ones, 21_000L, "l" + others, 21_001L, "d" + others, 21_001L, "l" + ones + others, 21_002L),
        flushed());
    append(21_003, List.of(MASTER, other), put());
    assertEquals(21_003L, flushed().get("l" + ones + others), "in any order");
    assertTrue(flushed().isEmpty(), "nothing new");
  }

  @Test
  void theNewestWriteOfOthersAndItsDeletesAreTold() throws IOException {
    append(1000, List.of(), put());
    append(900, List.of(), put());
    assertEquals(Map.of("l", 1000L), flushed());
    assertTrue(flushed().isEmpty(), "nothing new");
    append(20_000, List.of(), put(), put(), delete());
    append(40_000, List.of(), put());
    assertEquals(Map.of("l", 40_000L, "d", 20_000L), flushed());
    observed.forgetFlushes();
    first.clear();
    assertEquals(Map.of("l", 40_000L, "d", 20_000L), flushed());
    assertEquals(Map.of("", 1000L), first);
  }

  /** HBase notes the cluster that loads it as well. */
  @Test
  void aBulkLoadIsAWriteByTheClustersThatItPassed() throws IOException {
    UUID own = new UUID(5, 6);
    for (List<String> passed : List.of(List.of(own.toString()), List.of(MASTER.toString(), own.toString()))) {
      WALEdit load = Fixtures.bulkLoad(region, Map.of(), passed, true);
      WALKeyImpl key = Fixtures.key(region, ++seq, null);
      stamper.before(region, key, load);
      stamper.after(region, key, load);
    }
    String loader = Bytes.toHex(Ids.sortedBytes(List.of(own)));
    String both = Bytes.toHex(Ids.sortedBytes(List.of(MASTER, own)));
    assertEquals(Set.of("l" + loader, "l" + both), flushed().keySet());
  }

  @Test
  void tagsCountInWhatIsReplicated() throws IOException {
    NavigableMap<byte[], Integer> scopes = Fixtures.scopes();
    append(20_000, List.of(), tagged());
    assertEquals(Map.of("l", 20_000L), flushed());
    append(region, 30_000, List.of(), scopes, put(), tagged());
    assertEquals(Map.of("l", 30_000L, "k", 30_000L), flushed());
    append(region, 30_001, List.of(), scopes, tagged());
    assertEquals(Map.of("l", 30_001L, "k", 30_000L), flushed(), "cells are not examined again so soon");
    append(region, 90_000, List.of(), scopes, tagged());
    assertEquals(Map.of("l", 90_000L, "k", 90_000L), flushed());
  }

  @Test
  void systemTablesAndTheStateTableAreNobodysBusiness() throws IOException {
    append(Fixtures.region("hbase:acl"), 1000, List.of(), null, put());
    append(Fixtures.region(Fixtures.STATE_TABLE.getNameAsString()), 1000, List.of(), null, put());
    append(1000, List.of(), new KeyValue(ROW, WALEdit.METAFAMILY, QUALIFIER, 1L, ROW));
    assertTrue(flushed().isEmpty());
  }
}
