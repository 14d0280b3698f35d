package io.github.statustool.streams;

import static org.junit.jupiter.api.Assertions.assertArrayEquals;
import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertFalse;
import static org.junit.jupiter.api.Assertions.assertNotEquals;
import static org.junit.jupiter.api.Assertions.assertNotNull;
import static org.junit.jupiter.api.Assertions.assertNull;
import static org.junit.jupiter.api.Assertions.assertThrows;
import static org.junit.jupiter.api.Assertions.assertTrue;

import io.github.statustool.content.RegionFacts;
import io.github.statustool.state.ClusterLists;
import io.github.statustool.state.Health;
import io.github.statustool.state.Ids;
import io.github.statustool.state.StateRow;
import io.github.statustool.state.StateTable.FactRow;
import java.io.IOException;
import java.util.ArrayList;
import java.util.Arrays;
import java.util.List;
import java.util.Map;
import java.util.NavigableMap;
import java.util.Set;
import java.util.TreeMap;
import java.util.UUID;
import java.util.stream.Collectors;
import org.apache.hadoop.hbase.HConstants;
import org.apache.hadoop.hbase.ServerName;
import org.apache.hadoop.hbase.TableName;
import org.apache.hadoop.hbase.client.RegionInfo;
import org.apache.hadoop.hbase.regionserver.MultiVersionConcurrencyControl;
import org.apache.hadoop.hbase.shaded.protobuf.ProtobufUtil;
import org.apache.hadoop.hbase.shaded.protobuf.generated.WALProtos.RegionEventDescriptor;
import org.apache.hadoop.hbase.util.Bytes;
import org.apache.hadoop.hbase.wal.WALEdit;
import org.apache.hadoop.hbase.wal.WALKeyImpl;
import org.junit.jupiter.api.Test;

class WalStamperTest {
  private static final UUID CLUSTER = new UUID(1, 2);
  private static final UUID OTHER_CLUSTER = new UUID(3, 4);

  private final Health health = Fixtures.health();
  private final ObservedState observed = new ObservedState(health, () -> 0);
  private final StreamHeads heads = observed.heads;
  private final RegionFacts facts = observed.facts;
  private final RegionInfo region = Fixtures.region("t");
  private final NavigableMap<byte[], Integer> scopes = Fixtures.scopes();
  private final StampCodec codec = new StampCodec();
  private WalStamper stamper = newStamper();

  private WalStamper newStamper() {
    return new WalStamper(Fixtures.ORIGIN, Fixtures.SETTINGS, observed, health);
  }

  private WALKeyImpl append(WALKeyImpl key, WALEdit edit) throws IOException {
    return append(region, key, edit);
  }

  private WALKeyImpl append(RegionInfo of, WALKeyImpl key, WALEdit edit) throws IOException {
    stamper.before(of, key, edit);
    stamper.after(of, key, edit);
    return key;
  }

  private WALKeyImpl append(long seq, byte[]... families) throws IOException {
    return append(Fixtures.key(region, seq, scopes), Fixtures.edit(families));
  }

  private long prevOf(WALKeyImpl key) {
    byte[] stamp = Fixtures.stamp(key);
    assertTrue(codec.decode(stamp, stamp.length, key.getSequenceId()));
    assertEquals(Fixtures.ORIGIN, codec.origin());
    assertEquals(1, codec.cells().size());
    return codec.cells().prev(0);
  }

  /** The previous entry of each family, by id. */
  private Map<Integer, Long> prevsOf(WALKeyImpl key) {
    byte[] stamp = Fixtures.stamp(key);
    assertTrue(codec.decode(stamp, stamp.length, key.getSequenceId()));
    Map<Integer, Long> prevs = new TreeMap<>();
    for (int i = 0; i < codec.cells().size(); i++) {
      prevs.put(codec.cells().id(i), codec.cells().prev(i));
    }
    return prevs;
  }

  private static NavigableMap<byte[], Integer> scopesOf(byte[]... families) {
    NavigableMap<byte[], Integer> scopes = Fixtures.scopes();
    for (byte[] family : families) {
      scopes.put(family, HConstants.REPLICATION_SCOPE_GLOBAL);
    }
    return scopes;
  }

  private StreamHead.Snapshot onlyHead() {
    assertEquals(1, heads.all().size());
    return heads.all().iterator().next().snapshot();
  }

  @Test
  void editsOfLocalFamiliesAreNoLinksOfTheChain() throws IOException {
    assertEquals(0, prevOf(append(3, Fixtures.GLOBAL)));
    assertNull(Fixtures.stamp(append(4, Fixtures.LOCAL)));
    assertEquals(3, prevOf(append(5, Fixtures.GLOBAL, Fixtures.LOCAL)));
    assertEquals(5, prevOf(append(9, Fixtures.LOCAL, Fixtures.GLOBAL)));
    assertEquals(9, onlyHead().seq);
    assertEquals(3, onlyHead().count);
    assertEquals(1009, onlyHead().writeTime);
    assertEquals(1003, onlyHead().firstTime);
  }

  /** An entry moves the heads of the families that it has cells of, and no others. */
  @Test
  void eachFamilyIsAChainOfItsOwn() throws IOException {
    byte[] other = Bytes.toBytes("h");
    int one = FamilyCells.id(Fixtures.GLOBAL);
    int two = FamilyCells.id(other);
    NavigableMap<byte[], Integer> both = scopesOf(other);
    assertEquals(Map.of(one, 0L),
        prevsOf(append(Fixtures.key(region, 3, both), Fixtures.edit(Fixtures.GLOBAL))));
    assertEquals(Map.of(two, 0L), prevsOf(append(Fixtures.key(region, 4, both), Fixtures.edit(other))));
    assertEquals(Map.of(one, 3L, two, 4L),
        prevsOf(append(Fixtures.key(region, 6, both), Fixtures.edit(Fixtures.GLOBAL, other))));
    assertEquals(1003, codec.cells().prevTime(codec.cells().indexOf(one)));
    assertEquals(Map.of(two, 6L), prevsOf(append(Fixtures.key(region, 7, both), Fixtures.edit(other))));
    Map<String, Long> found = new TreeMap<>();
    heads.all().forEach(head -> {
      assertEquals(Ids.via(Ids.LOCAL, FamilyCells.id(head.family)), head.id.via);
      found.put(Bytes.toString(head.family), head.snapshot().seq);
    });
    assertEquals(Map.of("g", 6L, "h", 7L), found);
  }

  /** The other family's head is lower than the sequence id: it is its newest entry of any family that counts. */
  @Test
  void aLifeIsThatOfAllFamilies() throws IOException {
    byte[] other = Bytes.toBytes("h");
    NavigableMap<byte[], Integer> both = scopesOf(other);
    append(Fixtures.key(region, 3, both), Fixtures.edit(other));
    append(Fixtures.key(region, 9, both), Fixtures.edit(Fixtures.GLOBAL));
    assertEquals(Map.of(FamilyCells.id(other), 0L),
        prevsOf(append(Fixtures.key(region, 5, both), Fixtures.edit(other))));
    assertNotEquals(Ids.LOCAL, codec.via());
  }

  /** On a cluster that is a slave, too. */
  @Test
  void allEntriesWithCellsAreNotedForTheLedger() throws IOException {
    observed.content.followWals();
    for (WALKeyImpl key : List.of(Fixtures.key(region, 6, scopes), Fixtures.key(region, 7, null))) {
      append(key, Fixtures.edit(Fixtures.GLOBAL));
      assertEquals(Map.of(region.getEncodedName(), key.getSequenceId()), observed.content.appended());
    }
  }

  @Test
  void familiesThatShareAnIdShareAHeadWithoutAName() throws IOException {
    // CRC32C of these two names is the same.
    byte[] one = Bytes.toBytes("ccaoacux");
    byte[] two = Bytes.toBytes("wcjifoae");
    assertEquals(FamilyCells.id(one), FamilyCells.id(two));
    NavigableMap<byte[], Integer> both = scopesOf(one, two);
    append(Fixtures.key(region, 3, both), Fixtures.edit(one));
    assertEquals(3, prevOf(append(Fixtures.key(region, 4, both), Fixtures.edit(one, two))));
    assertEquals(2, codec.cells().count(0));
    assertEquals(0, heads.all().iterator().next().family.length);
  }

  @Test
  void withoutASetOfFamiliesTheCellsDecide() throws IOException {
    assertEquals(0, prevOf(append(Fixtures.key(region, 1, scopes), withoutFamilies(Fixtures.GLOBAL))));
    assertNull(Fixtures.stamp(append(Fixtures.key(region, 2, scopes), withoutFamilies(Fixtures.LOCAL))));
  }

  private static WALEdit withoutFamilies(byte[] family) {
    WALEdit edit = Fixtures.edit(family);
    WALEdit bare = new WALEdit() {
      @Override
      public Set<byte[]> getFamilies() {
        return null;
      }
    };
    edit.getCells().forEach(bare::add);
    return bare;
  }

  /** Whoever alters every table gives those of the trackers a scope, too. */
  @Test
  void theTrackersOwnTablesAreNeverShipped() throws IOException {
    for (TableName own : List.of(Fixtures.STATE_TABLE, Fixtures.SETTINGS.requestTable())) {
      RegionInfo of = Fixtures.region(own.getNameAsString());
      WALKeyImpl key = append(of, Fixtures.key(of, 3, scopes), Fixtures.edit(Fixtures.GLOBAL));
      assertNull(key.getReplicationScopes());
      assertNull(Fixtures.stamp(key));
    }
    assertTrue(heads.all().isEmpty());
    assertEquals(0, health.errors());
  }

  @Test
  void anEntryAppendedAgainKeepsItsStamp() throws IOException {
    WALKeyImpl first = append(3, Fixtures.GLOBAL);
    WALKeyImpl second = append(4, Fixtures.GLOBAL);
    byte[] stamp = Fixtures.stamp(first);
    append(first, Fixtures.edit(Fixtures.GLOBAL));
    append(second, Fixtures.edit(Fixtures.GLOBAL));
    assertArrayEquals(stamp, Fixtures.stamp(first));
    assertEquals(3, prevOf(second));
    assertEquals(4, prevOf(append(5, Fixtures.GLOBAL)));
    assertEquals(3, onlyHead().count);
    assertEquals(0, health.errors());
  }

  @Test
  void anAppendThatFailedIsNoLinkOfTheChain() throws IOException {
    append(3, Fixtures.GLOBAL);
    stamper.before(region, Fixtures.key(region, 4, scopes), Fixtures.edit(Fixtures.GLOBAL));
    assertEquals(3, prevOf(append(5, Fixtures.GLOBAL)));
    assertEquals(2, onlyHead().count);
  }

  @Test
  void aStrangersAttributeIsReplaced() throws IOException {
    WALKeyImpl key = Fixtures.key(region, 3, scopes);
    key.addExtendedAttribute(StampCodec.ATTRIBUTE, new byte[] {9});
    assertEquals(0, prevOf(append(key, Fixtures.edit(Fixtures.GLOBAL))));
  }

  @Test
  void editsThatCameThroughAClusterAreAStreamOfTheirOwn() throws IOException {
    append(1, Fixtures.GLOBAL);
    WALKeyImpl relayed = Fixtures.key(region, 2, scopes, CLUSTER, OTHER_CLUSTER);
    assertEquals(0, prevOf(append(relayed, Fixtures.edit(Fixtures.GLOBAL))));
    assertEquals(Ids.via(List.of(CLUSTER, OTHER_CLUSTER)), codec.via());
    WALKeyImpl otherOrder = Fixtures.key(region, 3, scopes, OTHER_CLUSTER, CLUSTER);
    assertEquals(2, prevOf(append(otherOrder, Fixtures.edit(Fixtures.GLOBAL))));
    assertEquals(1, prevOf(append(4, Fixtures.GLOBAL)));
    assertEquals(2, heads.all().size());
  }

  @Test
  void listsOfClustersThatAClientMakesUpAddNothingBeyondABound() throws IOException {
    append(1, Fixtures.GLOBAL);
    long seq = 1;
    for (int i = 0; i < ClusterLists.MOST - 1; i++) {
      append(Fixtures.key(region, ++seq, scopes, new UUID(7, i)), Fixtures.edit(Fixtures.GLOBAL));
    }
    int before = heads.all().size();
    WALKeyImpl refused = Fixtures.key(region, ++seq, scopes, new UUID(8, 8));
    WALEdit edit = Fixtures.edit(Fixtures.GLOBAL);
    assertThrows(RuntimeException.class, () -> stamper.before(region, refused, edit));
    stamper.after(region, refused, edit);
    assertNull(Fixtures.stamp(refused));
    WALKeyImpl local = Fixtures.key(region, ++seq, null, new UUID(8, 8));
    assertThrows(RuntimeException.class, () -> stamper.before(region, local, Fixtures.edit(Fixtures.LOCAL)));
    assertEquals(before, heads.all().size());
    assertEquals(1, prevOf(append(++seq, Fixtures.GLOBAL)));
    assertEquals(2, prevOf(append(Fixtures.key(region, ++seq, scopes, new UUID(7, 0)), edit)));
  }

  /** The heads stay as well: a client that waits for openings of the region must not add to them without bound. */
  @Test
  void aRegionThatOpensAgainTakesNoFurtherListsOfClusters() throws IOException {
    long seq = 1;
    for (int i = 0; i < ClusterLists.MOST - 1; i++) {
      append(Fixtures.key(region, ++seq, scopes, new UUID(7, i)), Fixtures.edit(Fixtures.GLOBAL));
    }
    stamper = newStamper();
    RegionInfo again = Fixtures.region("t");
    WALKeyImpl known = Fixtures.key(again, ++seq, scopes, new UUID(7, 0));
    assertEquals(2, prevOf(append(again, known, Fixtures.edit(Fixtures.GLOBAL))));
    WALKeyImpl refused = Fixtures.key(again, ++seq, scopes, new UUID(8, 8));
    assertThrows(RuntimeException.class, () -> stamper.before(again, refused, Fixtures.edit(Fixtures.GLOBAL)));
    assertNull(Fixtures.stamp(refused));
    assertEquals(ClusterLists.MOST - 1, heads.all().size());
  }

  /** They are a part of a column, of which HBase would take none of a flush if it was too large. */
  @Test
  void aListOfTooManyClustersIsNotRecorded() throws IOException {
    UUID[] clusters = new UUID[ClusterLists.LONGEST + 1];
    Arrays.setAll(clusters, i -> new UUID(7, i));
    UUID[] longest = Arrays.copyOf(clusters, ClusterLists.LONGEST);
    assertEquals(0, prevOf(append(Fixtures.key(region, 2, scopes, longest), Fixtures.edit(Fixtures.GLOBAL))));
    WALKeyImpl refused = Fixtures.key(region, 3, scopes, clusters);
    assertThrows(RuntimeException.class, () -> stamper.before(region, refused, Fixtures.edit(Fixtures.GLOBAL)));
    assertNull(Fixtures.stamp(refused));
    WALKeyImpl local = Fixtures.key(region, 4, null, clusters);
    assertThrows(RuntimeException.class, () -> stamper.before(region, local, Fixtures.edit(Fixtures.LOCAL)));
    assertEquals(1, heads.all().size());
  }

  @Test
  void laterChangesOfTheListOfClustersDoNotMixStreams() throws IOException {
    WALKeyImpl relayed = Fixtures.key(region, 2, scopes, CLUSTER);
    append(relayed, Fixtures.edit(Fixtures.GLOBAL));
    relayed.addClusterId(OTHER_CLUSTER);
    WALKeyImpl both = Fixtures.key(region, 3, scopes, CLUSTER, OTHER_CLUSTER);
    assertEquals(0, prevOf(append(both, Fixtures.edit(Fixtures.GLOBAL))));
  }

  @Test
  void aRegionThatComesBackContinuesItsChain() throws IOException {
    append(3, Fixtures.GLOBAL);
    append(Fixtures.key(region, 4, null), closeMarker());
    stamper = newStamper(); // or even in another WAL
    RegionInfo again = Fixtures.region("t");
    WALKeyImpl key = Fixtures.key(again, 8, scopes);
    assertEquals(3, prevOf(append(again, key, Fixtures.edit(Fixtures.GLOBAL))));
  }

  private WALEdit closeMarker() {
    RegionEventDescriptor close = ProtobufUtil.toRegionEventDescriptor(
        RegionEventDescriptor.EventType.REGION_CLOSE, region, 4, ServerName.valueOf(Fixtures.SERVER), new TreeMap<>(Bytes.BYTES_COMPARATOR));
    return WALEdit.createRegionEventWALEdit(region, close);
  }

  @Test
  void whatReplicationNeverShipsIsNotStamped() throws IOException {
    WALEdit edit = Fixtures.edit(Fixtures.GLOBAL);
    assertNull(Fixtures.stamp(append(Fixtures.key(region, 1, null), edit)));
    assertNull(Fixtures.stamp(append(Fixtures.key(region, 2, closedScopes()), edit)));
    WALEdit replayed = new WALEdit(1, true);
    replayed.add(edit.getCells().get(0), Fixtures.GLOBAL);
    assertNull(Fixtures.stamp(append(Fixtures.key(region, 3, scopes), replayed)));
    for (String table : List.of("hbase:acl", "replicationstate")) {
      RegionInfo exempt = Fixtures.region(table);
      assertNull(Fixtures.stamp(append(exempt, Fixtures.key(exempt, 4, scopes), edit)));
    }
    assertTrue(heads.all().isEmpty());
  }

  private static NavigableMap<byte[], Integer> closedScopes() {
    NavigableMap<byte[], Integer> none = Fixtures.scopes();
    none.clear();
    return none;
  }

  @Test
  void replicationMarkersAreNotStamped() throws IOException {
    NavigableMap<byte[], Integer> marker = Fixtures.scopes();
    marker.put(WALEdit.METAFAMILY, HConstants.REPLICATION_SCOPE_GLOBAL);
    WALEdit edit = Fixtures.edit(WALEdit.METAFAMILY); // as HBase 2.6 makes them
    assertNull(Fixtures.stamp(append(Fixtures.key(region, 1, marker), edit)));
  }

  /** As after the region was truncated: the stream before, of which all may have arrived, says nothing of this one. */
  @Test
  void aSequenceIdThatGoesBackBeginsAnotherStream() throws IOException {
    append(9, Fixtures.GLOBAL);
    assertEquals(0, prevOf(append(5, Fixtures.GLOBAL)));
    long life = codec.via();
    assertNotEquals(Ids.LOCAL, life);
    assertEquals(5, prevOf(append(6, Fixtures.GLOBAL)));
    assertEquals(life, codec.via());
    assertEquals(2, heads.all().size());
    for (StreamHead head : heads.all()) {
      assertEquals(head.id.via == Ids.via(life, FamilyCells.id(Fixtures.GLOBAL)) ? 6 : 9, head.snapshot().seq);
      assertEquals(0, head.viaIds.length);
    }
    assertEquals(0, health.errors());
  }

  @Test
  void aRelayedStreamBeginsAnewLikewise() throws IOException {
    append(Fixtures.key(region, 9, scopes, CLUSTER), Fixtures.edit(Fixtures.GLOBAL));
    WALKeyImpl key = Fixtures.key(region, 5, scopes, CLUSTER);
    assertEquals(0, prevOf(append(key, Fixtures.edit(Fixtures.GLOBAL))));
    append(key, Fixtures.edit(Fixtures.GLOBAL)); // again, after a failed sync
    assertEquals(5, prevOf(append(Fixtures.key(region, 6, scopes, CLUSTER), Fixtures.edit(Fixtures.GLOBAL))));
    assertNotEquals(Ids.via(List.of(CLUSTER)), codec.via());
    assertEquals(2, heads.all().size());
    heads.all().forEach(head -> assertArrayEquals(Ids.sortedBytes(List.of(CLUSTER)), head.viaIds));
  }

  @Test
  void aBulkLoadIsNotedForReplicatedFamiliesOnly() throws IOException {
    append(Fixtures.key(region, 4, scopes), Fixtures.bulkLoad(region, Fixtures.LOCAL, true));
    assertTrue(facts.dirty().isEmpty());
    append(Fixtures.key(region, 5, scopes), Fixtures.bulkLoad(region, Fixtures.GLOBAL, true));
    assertEquals(Map.of("b", 1005L), loads());
  }

  @Test
  void aBulkLoadThatIsNotToBeReplicatedIsAnotherFact() throws IOException {
    append(Fixtures.key(region, 4, scopes), Fixtures.bulkLoad(region, Fixtures.GLOBAL, true));
    append(Fixtures.key(region, 5, scopes), Fixtures.bulkLoad(region, Fixtures.GLOBAL, false));
    assertEquals(Map.of("b", 1004L, "u", 1005L), loads());
  }

  @Test
  void aBulkLoadOnAServerThatReplicatesNoneIsOneThatIsNotToBeReplicated() throws IOException {
    append(Fixtures.key(region, 4, scopes), Fixtures.bulkLoad(region, Fixtures.GLOBAL, true));
    WALKeyImpl key = Fixtures.key(region, 5, scopes);
    WALEdit load = Fixtures.bulkLoad(region, Fixtures.GLOBAL, true);
    stamper.before(region, key, load);
    key.clearReplicationScope(); // as ReplicationSourceWALActionListener does between the hooks
    stamper.after(region, key, load);
    assertEquals(Map.of("b", 1004L, "u", 1005L), loads());
  }

  /** Its open regions go on without HBase's observer, which notes the files for the peers. */
  @Test
  void soIsOneOnAServerOnWhichThatWasSwitchedOnWhileItRan() throws IOException {
    stamper = new WalStamper(Fixtures.ORIGIN, Fixtures.settings(false), observed, health);
    append(Fixtures.key(region, 5, scopes), Fixtures.bulkLoad(region, Fixtures.GLOBAL, true));
    assertEquals(Map.of("u", 1005L), loads());
  }

  /** The times in the row of the region's facts, by column. */
  private Map<String, Long> loads() {
    StateRow row = facts.dirty().get(0).row;
    assertArrayEquals(Bytes.toBytes(FactRow.TYPE + region.getEncodedName()), row.key);
    return row.columns().stream().filter(column -> column.value.length == Long.BYTES)
        .collect(Collectors.toMap(column -> Bytes.toString(column.qualifier), column -> column.timestamp));
  }

  @Test
  void anotherIncarnationOfTheServerIsAnotherOrigin() {
    assertNotEquals(Ids.origin("h,1,1"), Ids.origin("h,1,2"));
  }

  private WALKeyImpl keyOf(long seq, long writeTime) {
    return new WALKeyImpl(region.getEncodedNameAsBytes(), region.getTable(), seq, writeTime, new ArrayList<>(), 0, 0,
        new MultiVersionConcurrencyControl(), scopes);
  }

  @Test
  void aWriteTimeFarBeforeTheLatestOneTellsOfAClockThatWasSetBack() throws IOException {
    append(keyOf(1, 9_000), Fixtures.edit(Fixtures.GLOBAL));
    append(keyOf(2, 7_000), Fixtures.edit(Fixtures.GLOBAL));
    assertFalse(health.json(0, null).contains("clock_back_ms"), "handlers that waited for each other");
    append(keyOf(3, 6_999), Fixtures.edit(Fixtures.GLOBAL));
    append(keyOf(4, 6_500), Fixtures.edit(Fixtures.GLOBAL));
    assertTrue(health.json(0, null).contains("\"clock_back_ms\":9000,\"clock_low_ms\":6500"), health.json(0, null));
  }
}
