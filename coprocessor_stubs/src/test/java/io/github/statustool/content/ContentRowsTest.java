package io.github.statustool.content;

import io.github.statustool.state.Change;
import io.github.statustool.state.GoldenRows;
import io.github.statustool.state.StateRow;
import io.github.statustool.streams.Fixtures;
import java.io.IOException;
import java.util.ArrayList;
import java.util.List;
import java.util.Map;
import java.util.UUID;
import org.apache.hadoop.hbase.ArrayBackedTag;
import org.apache.hadoop.hbase.KeyValue;
import org.apache.hadoop.hbase.TableName;
import org.apache.hadoop.hbase.Tag;
import org.apache.hadoop.hbase.client.RegionInfo;
import org.apache.hadoop.hbase.client.RegionInfoBuilder;
import org.apache.hadoop.hbase.util.Bytes;
import org.apache.hadoop.hbase.wal.WALEdit;
import org.junit.jupiter.api.Test;

class ContentRowsTest {
  private static final String TABLE = "ns:t";
  private static final String OTHER_REGION = "0123456789abcdef0123456789abcdef";
  private static final long NOW = 1_700_000_100_000L;

  private final RegionInfo region = RegionInfoBuilder.newBuilder(TableName.valueOf(TABLE)).setRegionId(7)
      .setStartKey(new byte[] {0, 1}).setEndKey(new byte[] {(byte) 0xff}).build();
  private final RegionFacts facts = new RegionFacts();
  private final TableEvents events = new TableEvents();
  private final TableWrites.Registry writes = new TableWrites.Registry();
  private final List<StateRow> rows = new ArrayList<>();

  private void facts() {
    String name = region.getEncodedName();
    facts.bulkLoad(name, TABLE, 1010, true);
    facts.bulkLoad(name, TABLE, 1011, false);
    facts.parent(name, TABLE, "split", 7, 1012);
    facts.child(name, TABLE, 1008);
    facts.parent(OTHER_REGION, TABLE, "merge", 8, 1013);
    collect(facts.dirty());
  }

  private void content() {
    String hfile = "00112233445566778899aabbccddeeff";
    Marker opened = new Marker(Fixtures.ORIGIN, region, 4, 1004, List.of(), List.of("g"));
    OpenTenure tenure = new OpenTenure(opened, 3, Map.of("g", List.of(hfile, "other=" + OTHER_REGION + "-" + hfile)),
        false);
    tenure.files("l").add(List.of(hfile + "_SeqId_5_"));
    tenure.tenure.durable = 5;
    tenure.changed(new Marker(Fixtures.ORIGIN, region, 6, 1006, List.of(), List.of("g")), true);
    rows.add(tenure.change(() -> NOW).row);
    Marker again = new Marker(Fixtures.ORIGIN, region, 8, 1008, List.of(), List.of());
    rows.add(new OpenTenure(again, 7, Map.of(), false).change(() -> NOW + 1).row);
  }

  private void tableEvents() {
    events.arrived(TABLE, 1000);
    events.born(TABLE, 900);
    events.regions(List.of(open(2, 0, Map.of("f", 1, "g", 0))));
    events.regions(List.of(open(5, 3, Map.of("g", 1))));
    WALEdit edit = new WALEdit();
    byte[] row = Bytes.toBytes("row");
    edit.add(new KeyValue(row, Fixtures.GLOBAL, null, 5, KeyValue.Type.Delete));
    edit.add(new KeyValue(row, Fixtures.GLOBAL, null, 5, null, new Tag[] {new ArrayBackedTag((byte) 1, "tag")}));
    writes.of(TABLE).add(30_000, edit, List.of(), true);
    writes.of(TABLE).add(40_000, edit, List.of(new UUID(3, 4), new UUID(1, 2)), true);
    collect(events.dirty());
    collect(writes.dirty());
  }

  private static TableEvents.OpenRegion open(long openSeq, long skipped, Map<String, Integer> scopes) {
    return new TableEvents.OpenRegion("r", TABLE, openSeq, scopes, skipped, null,
        Map::of, 2000 + openSeq);
  }

  private void collect(List<Change> changes) {
    for (Change change : changes) {
      rows.add(change.row);
      change.stored();
    }
  }

  @Test
  void theRowsOfRegionsAndTablesAreTheGoldenOnes() throws IOException {
    facts();
    content();
    tableEvents();
    GoldenRows.assertWritten("gfn", rows);
  }
}
