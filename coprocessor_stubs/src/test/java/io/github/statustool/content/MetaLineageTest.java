package io.github.statustool.content;

import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertNull;
import static org.junit.jupiter.api.Assertions.assertTrue;

import io.github.statustool.streams.Fixtures;
import io.github.statustool.streams.ObservedState;
import io.github.statustool.streams.WalStamper;
import java.io.IOException;
import java.util.List;
import java.util.Map;
import java.util.TreeMap;
import org.apache.hadoop.hbase.HConstants;
import org.apache.hadoop.hbase.KeyValue;
import org.apache.hadoop.hbase.TableName;
import org.apache.hadoop.hbase.client.RegionInfo;
import org.apache.hadoop.hbase.client.RegionInfoBuilder;
import org.apache.hadoop.hbase.util.Bytes;
import org.apache.hadoop.hbase.wal.WALEdit;
import org.apache.hadoop.hbase.wal.WALKeyImpl;
import org.junit.jupiter.api.Test;

class MetaLineageTest {
  private static final TableName TABLE = TableName.valueOf("ns", "t");

  private final RegionFacts facts = new RegionFacts();
  private final RegionInfo low = region("", "m", 11);
  private final RegionInfo high = region("m", "", 12);
  private final RegionInfo whole = region("", "", 13);

  private static RegionInfo region(String start, String end, long id) {
    return RegionInfoBuilder.newBuilder(TABLE).setStartKey(Bytes.toBytes(start)).setEndKey(Bytes.toBytes(end))
        .setRegionId(id).build();
  }

  private static KeyValue put(byte[] row, String qualifier, byte[] value) {
    return new KeyValue(row, HConstants.CATALOG_FAMILY, Bytes.toBytes(qualifier), 1, KeyValue.Type.Put, value);
  }

  private Map<String, RegionFacts.Fact> read(KeyValue... cells) throws IOException {
    WALEdit edit = new WALEdit();
    List.of(cells).forEach(cell -> edit.add(cell, HConstants.CATALOG_FAMILY));
    new MetaLineage(facts).read(edit, 1005);
    Map<String, RegionFacts.Fact> found = new TreeMap<>();
    facts.all().forEach(fact -> found.put(fact.region, fact));
    return found;
  }

  private static void assertParent(RegionInfo parent, String lineage, RegionFacts.Fact fact) {
    assertEquals(parent.getEncodedName(), fact.region);
    assertEquals(lineage, fact.lineage);
    assertEquals(parent.getRegionId(), fact.regionId);
    assertEquals("ns:t", fact.table);
    assertEquals(1005, fact.lineageTime);
  }

  @Test
  void theRowOfASplitIsItsParent() throws IOException {
    Map<String, RegionFacts.Fact> found = read(
        put(whole.getRegionName(), "regioninfo", RegionInfo.toByteArray(whole)),
        put(whole.getRegionName(), "splitA", RegionInfo.toByteArray(low)),
        put(whole.getRegionName(), "splitB", RegionInfo.toByteArray(high)),
        put(low.getRegionName(), "regioninfo", RegionInfo.toByteArray(low)),
        put(high.getRegionName(), "regioninfo", RegionInfo.toByteArray(high)));
    assertEquals(3, found.size());
    assertParent(whole, "split", found.get(whole.getEncodedName()));
    for (RegionInfo daughter : List.of(low, high)) {
      assertEquals(1005, found.get(daughter.getEncodedName()).bornTime);
      assertNull(found.get(daughter.getEncodedName()).lineage);
    }
  }

  /** Else the daughters would open with the snapshot's files as if these were their parent's. */
  @Test
  void aSplitThatARestoredSnapshotTellsOfIsNone() throws IOException {
    assertTrue(read(
        put(whole.getRegionName(), "regioninfo", RegionInfo.toByteArray(whole)),
        put(whole.getRegionName(), "splitA", RegionInfo.toByteArray(low)),
        put(whole.getRegionName(), "splitB", RegionInfo.toByteArray(high))).isEmpty());
  }

  @Test
  void theValuesOfAMergeAreItsParents() throws IOException {
    Map<String, RegionFacts.Fact> found = read(
        put(whole.getRegionName(), "merge0000", RegionInfo.toByteArray(low)),
        put(whole.getRegionName(), "merge0001", RegionInfo.toByteArray(high)));
    assertEquals(3, found.size());
    assertEquals(1005, found.get(whole.getEncodedName()).bornTime);
    assertParent(low, "merge", found.get(low.getEncodedName()));
    assertParent(high, "merge", found.get(high.getEncodedName()));
  }

  @Test
  void otherEditsAndDeletesSayNothing() throws IOException {
    assertTrue(read(put(whole.getRegionName(), "server", Bytes.toBytes("h:1")),
        put(whole.getRegionName(), "merge0000", Bytes.toBytes("no region")),
        new KeyValue(whole.getRegionName(), HConstants.CATALOG_FAMILY, HConstants.SPLITA_QUALIFIER, 1,
            KeyValue.Type.DeleteColumn)).isEmpty());
  }
}
