package io.github.statustool.streams;

import static io.github.statustool.streams.Fixtures.segment;
import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertTrue;

import io.github.statustool.state.Change;
import io.github.statustool.state.ClusterLists;
import io.github.statustool.state.FakeStore;
import io.github.statustool.state.Ids;
import io.github.statustool.state.StateRow;
import io.github.statustool.state.StateTable;
import io.github.statustool.state.StateTable.UnstampedRow;
import java.util.ArrayList;
import java.util.Arrays;
import java.util.List;
import java.util.UUID;
import java.util.stream.Collectors;
import java.util.zip.CRC32C;
import org.apache.hadoop.hbase.shaded.protobuf.generated.AdminProtos.WALEntry;
import org.apache.hadoop.hbase.shaded.protobuf.generated.HBaseProtos;
import org.apache.hadoop.hbase.shaded.protobuf.generated.WALProtos.WALKey;
import org.apache.hadoop.hbase.util.Bytes;
import org.apache.hbase.thirdparty.com.google.protobuf.ByteString;
import org.junit.jupiter.api.Test;

class SinkBatchTest {
  private static final long NOW = 5_000;
  private static final int GLOBAL = FamilyCells.id(Fixtures.GLOBAL);
  private static final int OTHER = FamilyCells.id(Fixtures.LOCAL);

  private static List<Segment> segments(SinkBatch batch, String region) {
    return segments(batch, Fixtures.stream(region));
  }

  private static List<Segment> segments(SinkBatch batch, StreamId id) {
    for (AppliedEntries stream : batch.streams(NOW)) {
      if (stream.id.equals(id)) {
        return stream.segments();
      }
    }
    return List.of();
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
    SinkBatch batch = Fixtures.batch(Fixtures.entry("a", 4, 9), Fixtures.entry("a", 4, 9), Fixtures.entry("a", 3, 4), Fixtures.entry("a", 0, 3),
        Fixtures.entry("a", 3, 4));
    assertEquals(List.of(segment(0, 9)), segments(batch, "a"));
  }

  private static long number(UnstampedEntries unstamped, byte[] qualifier) {
    for (StateRow.Column column : unstamped.toRow().columns()) {
      if (Arrays.equals(column.qualifier, qualifier)) {
        return Bytes.toLong(column.value, 0);
      }
    }
    throw new AssertionError("no such column");
  }

  @Test
  void entriesWithoutAValidStampAreNoted() {
    byte[] ofAnother = Fixtures.stamp(1, 99);
    SinkBatch batch = Fixtures.batch(Fixtures.entry("a", 3, null), Fixtures.entry("a", 5, ofAnother),
        Fixtures.entry("a", 4, new byte[0]));
    assertTrue(batch.streams(NOW).isEmpty());
    UnstampedEntries unstamped = batch.unstamped().get(0);
    assertEquals("ua", FakeStore.text(unstamped.toRow().key));
    assertEquals(1005, number(unstamped, UnstampedRow.WRITE_MS));
  }

  private static WALEntry unstamped(long seq, UUID... clusters) {
    WALEntry entry = Fixtures.entry("a", seq, null);
    WALKey.Builder key = entry.getKey().toBuilder();
    for (UUID each : clusters) {
      key.addClusterIds(HBaseProtos.UUID.newBuilder().setMostSigBits(each.getMostSignificantBits())
          .setLeastSigBits(each.getLeastSignificantBits()));
    }
    return entry.toBuilder().setKey(key).build();
  }

  /** Whatever servers wrote them: a region's sequence ids only rise. */
  @Test
  void entriesWithoutAStampAreRecordedOneByOneIfASettingAsksForIt() {
    UUID origin = new UUID(1, 2);
    UUID sender = new UUID(3, 4);
    SinkBatch batch = new SinkBatch(true, false);
    batch.add(unstamped(3, sender), Fixtures.put(Fixtures.GLOBAL));
    WALEntry both = unstamped(4, sender).toBuilder().setAssociatedCellCount(3).build();
    batch.add(both, Fixtures.put(Fixtures.GLOBAL));
    batch.add(both, Fixtures.put(Fixtures.LOCAL, Fixtures.GLOBAL));
    batch.add(unstamped(6, sender), Fixtures.put(Fixtures.GLOBAL));
    batch.add(unstamped(7, origin, sender), Fixtures.put(Fixtures.GLOBAL));
    long server = Ids.origin(sender.toString());
    long via = Ids.via(List.of(sender));
    assertEquals(List.of(segment(2, 4), segment(5, 6)), segments(batch, new StreamId("a", server, Ids.via(via, GLOBAL))));
    assertEquals(List.of(segment(3, 4)), segments(batch, new StreamId("a", server, Ids.via(via, OTHER))));
    long passed = Ids.via(List.of(origin, sender));
    assertEquals(List.of(segment(6, 7)), segments(batch, new StreamId("a", server, Ids.via(passed, GLOBAL))));
    assertEquals(3, batch.streams(NOW).size());
    assertEquals(2, batch.unstamped().size());
    batch.clear();
    batch.add(Fixtures.entry("a", 0, 3), Fixtures.put(Fixtures.GLOBAL));
    assertEquals(List.of(segment(0, 3)), segments(batch, "a"));
  }

  /** HBase's sink drops a cell that is named like its own marker, and calls the hook for what is left. */
  @Test
  void anEntryWithoutAStampOfWhichTheSinkDroppedACellIsNotRecorded() {
    UUID sender = new UUID(3, 4);
    SinkBatch batch = new SinkBatch(true, false);
    batch.add(unstamped(3, sender).toBuilder().setAssociatedCellCount(2).build(), Fixtures.put(Fixtures.GLOBAL));
    batch.add(unstamped(5, sender), Fixtures.put(Fixtures.GLOBAL));
    StreamId single = new StreamId("a", Ids.origin(sender.toString()), Ids.via(Ids.via(List.of(sender)), GLOBAL));
    assertEquals(List.of(segment(4, 5)), segments(batch, single));
  }

  /** For a witness beside the trackers: what the stamps say is checked by what arrived. */
  @Test
  void stampedEntriesAreRecordedOneByOneAsWellIfASettingAsksForIt() {
    UUID sender = new UUID(3, 4);
    SinkBatch batch = new SinkBatch(true, true);
    for (long[] entry : new long[][] {{0, 3}, {3, 5}}) {
      WALEntry plain = unstamped(entry[1], sender);
      WALEntry stamped = Fixtures.entry("a", entry[0], entry[1]);
      WALKey key = plain.getKey().toBuilder().addAllExtendedAttributes(stamped.getKey().getExtendedAttributesList()).build();
      batch.add(stamped.toBuilder().setKey(key).build(), Fixtures.put(Fixtures.GLOBAL));
    }
    long via = Ids.via(Ids.via(List.of(sender)), GLOBAL);
    StreamId single = new StreamId("a", Ids.origin(sender.toString()), via);
    assertEquals(List.of(segment(0, 5)), segments(batch, "a"));
    assertEquals(List.of(segment(2, 3), segment(4, 5)), segments(batch, single));
    assertTrue(batch.unstamped().isEmpty());
    batch.clear();
    batch.add(Fixtures.entry("a", 5, 6), Fixtures.put(Fixtures.GLOBAL));
    assertEquals(1, batch.streams(NOW).size());
  }

  /** A hole may be none, so that nothing may be dropped between two. */
  @Test
  void manyHolesOfEntriesWithoutAStampAreKept() {
    AppliedSegments applied = new ObservedState(Fixtures.health(), () -> NOW).applied;
    UUID sender = new UUID(3, 4);
    StreamId id = new StreamId("a", Ids.origin(sender.toString()), Ids.via(Ids.via(List.of(sender)), GLOBAL));
    for (int round = 0; round < 10; round++) {
      SinkBatch batch = new SinkBatch(true, false);
      for (int i = 0; i < 100; i++) {
        batch.add(unstamped(2L * (100 * round + i) + 1, sender), Fixtures.put(Fixtures.GLOBAL));
      }
      applied.add(batch.streams(NOW), NOW);
    }
    assertEquals(1_000, applied.record(id).segments().size());
  }

  /** While the state table is away nothing merges them. */
  @Test
  void holesWithoutEndDoNotGrowARecordWithoutBound() {
    AppliedSegments applied = new ObservedState(Fixtures.health(), () -> NOW).applied;
    for (int i = 0; i < SegmentSet.MOST + 1_000; i++) {
      applied.add(Fixtures.batch(Fixtures.entry("a", 2L * i + 1, 2L * i + 2)).streams(NOW), NOW);
    }
    assertTrue(applied.record(Fixtures.stream("a")).segments().size() <= SegmentSet.MOST);
  }

  /** As trackers of this version meet stamps of the next one: the entry is not known, and not taken for whole. */
  @Test
  void aStampOfALaterVersionIsNone() {
    byte[] later = Fixtures.stamp(0, 3);
    later[0] = 4;
    CRC32C crc = new CRC32C();
    crc.update(later, 0, later.length - 4);
    crc.update(Bytes.toBytes(3L));
    Bytes.putInt(later, later.length - 4, (int) crc.getValue());
    SinkBatch batch = Fixtures.batch(Fixtures.entry("a", 3, later));
    assertTrue(batch.streams(NOW).isEmpty());
    assertEquals(1003, number(batch.unstamped().get(0), UnstampedRow.WRITE_MS));
  }

  @Test
  void clearLeavesNothing() {
    SinkBatch batch = Fixtures.batch(Fixtures.entry("a", 0, 3), Fixtures.entry("b", 5, null));
    batch.clear();
    assertTrue(batch.isEmpty());
    assertTrue(batch.streams(NOW).isEmpty());
  }

  /** An entry as it was written, of a cell of either family. */
  private static WALEntry ofBoth(long prev, long seq) {
    return Fixtures.entry("a", seq, Fixtures.stamp(prev, 1000 + prev, seq, Fixtures.GLOBAL, Fixtures.LOCAL));
  }

  @Test
  void eachFamilyIsAStreamOfItsOwn() {
    SinkBatch batch = new SinkBatch(false, false);
    WALEntry first = ofBoth(0, 3);
    batch.add(first, Fixtures.put(Fixtures.GLOBAL));
    batch.add(first, Fixtures.put(Fixtures.LOCAL));
    batch.add(Fixtures.entry("a", 3, 4), Fixtures.put(Fixtures.GLOBAL));
    assertEquals(2, batch.streams(NOW).size());
    assertEquals(List.of(segment(0, 4)), segments(batch, "a"));
    assertEquals(List.of(segment(0, 3)), segments(batch, Fixtures.stream("a", Fixtures.LOCAL)));
    batch.streams(NOW).forEach(stream -> assertEquals(Fixtures.stream("a", stream.family), stream.id));
  }

  @Test
  void aFamilyThatDidNotArriveWholeHasAHole() {
    SinkBatch batch = new SinkBatch(false, false);
    batch.add(ofBoth(0, 3), Fixtures.put(Fixtures.GLOBAL));
    batch.add(ofBoth(3, 5), Fixtures.put(Fixtures.GLOBAL, Fixtures.LOCAL));
    assertEquals(List.of(segment(0, 5)), segments(batch, "a"));
    assertEquals(List.of(segment(3, 5)), segments(batch, Fixtures.stream("a", Fixtures.LOCAL)));
  }

  @Test
  void oneOfTwoCellsOfAFamilyIsNoPartOfIt() {
    byte[] stamp = Fixtures.stamp(0, 0, 3, Fixtures.GLOBAL, Fixtures.GLOBAL, Fixtures.LOCAL);
    SinkBatch batch = new SinkBatch(false, false);
    batch.add(Fixtures.entry("a", 3, stamp), Fixtures.put(Fixtures.GLOBAL, Fixtures.LOCAL));
    assertEquals(List.of(), segments(batch, "a"));
    assertEquals(List.of(segment(0, 3)), segments(batch, Fixtures.stream("a", Fixtures.LOCAL)));
  }

  @Test
  void anEntryOfWhichNothingCameWholeLeavesNothing() {
    SinkBatch batch = new SinkBatch(false, false);
    byte[] stamp = Fixtures.stamp(0, 0, 3, Fixtures.GLOBAL, Fixtures.GLOBAL);
    batch.add(Fixtures.entry("a", 3, stamp), Fixtures.put(Fixtures.GLOBAL));
    assertTrue(batch.isEmpty());
  }

  @Test
  void ofAnEntryWithCellsThatItDidNotHaveNothingIsKnown() {
    SinkBatch batch = new SinkBatch(false, false);
    batch.add(Fixtures.entry("a", 0, 3), Fixtures.put(Fixtures.GLOBAL, Fixtures.LOCAL));
    assertTrue(batch.isEmpty());
  }

  /** The families beyond those that a stamp can name share a stream, of which the name is not known. */
  @Test
  void whatAStampCannotNameIsOneStream() {
    byte[][] families = new byte[260][];
    for (int i = 0; i < families.length; i++) {
      families[i] = Bytes.toBytes("f" + i);
    }
    StreamId joint = new StreamId("a", Fixtures.ORIGIN, Ids.via(Ids.LOCAL, FamilyCells.UNKNOWN));
    SinkBatch whole = new SinkBatch(false, false);
    whole.add(Fixtures.entry("a", 3, Fixtures.stamp(0, 0, 3, families)), Fixtures.put(families));
    assertEquals(255, whole.streams(NOW).size());
    assertEquals(List.of(segment(0, 3)), segments(whole, joint));
    whole.streams(NOW).forEach(stream -> assertEquals(stream.id.equals(joint), stream.family.length == 0));
    byte[][] fewer = Arrays.copyOf(families, 259);
    SinkBatch lacking = new SinkBatch(false, false);
    lacking.add(Fixtures.entry("a", 3, Fixtures.stamp(0, 0, 3, families)), Fixtures.put(fewer));
    assertEquals(254, lacking.streams(NOW).size());
    assertEquals(List.of(), segments(lacking, joint));
  }

  @Test
  void aHoleKnowsTheWriteTimeOfItsLastEntry() {
    SinkBatch batch = Fixtures.batch(Fixtures.entry("a", 0, 3), Fixtures.entry("a", 5, 6));
    assertEquals(1005, segments(batch, "a").get(1).prevTime);
  }

  @Test
  void unstampedEntriesAreKeptApartByTheClustersThatSentThem() {
    UUID one = new UUID(1, 2);
    WALEntry sent = Fixtures.entry("a", 3, null);
    WALEntry bySender = sent.toBuilder().setKey(sent.getKey().toBuilder()
        .addClusterIds(HBaseProtos.UUID.newBuilder().setMostSigBits(1).setLeastSigBits(2))).build();
    SinkBatch batch = Fixtures.batch(bySender, Fixtures.entry("a", 5, null));
    assertEquals(2, batch.unstamped().size());
    byte[] qualifier = Bytes.add(UnstampedRow.WRITE_MS, Ids.sortedBytes(List.of(one)));
    boolean known = false;
    for (UnstampedEntries unstamped : batch.unstamped()) {
      known |= Arrays.equals(unstamped.toRow().columns().get(0).qualifier, qualifier);
    }
    assertTrue(known);
  }

  private static UUID[] madeUp(int count) {
    UUID[] clusters = new UUID[count];
    Arrays.setAll(clusters, i -> new UUID(7, i));
    return clusters;
  }

  /** Returns the columns of the unstamped rows by their qualifier's length: those of lists, and the joint one's 1. */
  private static List<Integer> unstampedColumns(AppliedSegments applied) {
    List<Change> changes = new ArrayList<>();
    applied.collect(changes, NOW);
    return changes.stream().filter(change -> change.row.key[0] == UnstampedRow.TYPE)
        .map(change -> change.row.columns().get(0).qualifier.length).sorted().collect(Collectors.toList());
  }

  /** A client may set _cs.id. The joint entry is of unknown clusters, so that it counts as the master's. */
  @Test
  void listsOfClustersBeyondABoundAreOneJointEntry() {
    AppliedSegments applied = new ObservedState(Fixtures.health(), () -> NOW).applied;
    UUID[] clusters = madeUp(3 * ClusterLists.MOST);
    for (int i = 0; i < clusters.length; i++) {
      applied.keepUnstamped(Fixtures.batch(unstamped(i + 1, clusters[i])).unstamped());
    }
    List<Integer> columns = unstampedColumns(applied);
    assertEquals(ClusterLists.MOST, columns.size());
    assertEquals(List.of(1, 17), columns.subList(0, 2));
  }

  /** What is idle leaves the memory, but not the state table. */
  @Test
  void idleHoursMakeNoRoomForFurtherLists() {
    AppliedSegments applied = new ObservedState(Fixtures.health(), () -> NOW).applied;
    UUID[] clusters = madeUp(2 * ClusterLists.MOST);
    for (int i = 0; i < clusters.length; i++) {
      applied.keepUnstamped(Fixtures.batch(unstamped(i + 1, clusters[i])).unstamped());
      if (i == ClusterLists.MOST) {
        List<Change> changes = new ArrayList<>();
        applied.collect(changes, NOW);
        changes.forEach(Change::stored);
        applied.forgetIdle(NOW + 2 * StateTable.LOSABLE_MS);
      }
    }
    assertEquals(List.of(1), unstampedColumns(applied));
  }

  @Test
  void aListOfTooManyClustersIsOfTheJointEntry() {
    SinkBatch batch = new SinkBatch(true, true);
    WALEntry plain = unstamped(3, madeUp(ClusterLists.LONGEST + 1));
    WALEntry stamped = plain.toBuilder().setKey(plain.getKey().toBuilder()
        .addAllExtendedAttributes(Fixtures.entry("b", 0, 3).getKey().getExtendedAttributesList())
        .setEncodedRegionName(ByteString.copyFromUtf8("b"))).build();
    batch.add(plain, Fixtures.put(Fixtures.GLOBAL));
    batch.add(stamped, Fixtures.put(Fixtures.GLOBAL));
    assertEquals(1, batch.streams(NOW).size(), "by its stamp alone");
    assertEquals(2, batch.unstamped().size());
    batch.unstamped().forEach(each -> assertEquals(1003, number(each, UnstampedRow.WRITE_MS)));
  }

  @Test
  void entriesOfListsBeyondABoundAreNotRecordedOneByOneButAsUnstamped() {
    AppliedSegments applied = new ObservedState(Fixtures.health(), () -> NOW).applied;
    int streams = 0;
    for (UUID each : madeUp(2 * ClusterLists.MOST)) {
      SinkBatch batch = new SinkBatch(true, true);
      WALEntry plain = unstamped(5, each, new UUID(3, 4));
      WALKey key = plain.getKey().toBuilder()
          .addAllExtendedAttributes(Fixtures.entry("a", 3, 5).getKey().getExtendedAttributesList()).build();
      batch.add(plain.toBuilder().setKey(key).build(), Fixtures.put(Fixtures.GLOBAL));
      streams += applied.add(batch.streams(NOW), NOW).stream()
          .filter(record -> !record.id.equals(Fixtures.stream("a"))).count();
    }
    assertEquals(ClusterLists.MOST - 1, streams);
    assertEquals(List.of(1), unstampedColumns(applied));
  }

  @Test
  void insideOneRequestOnlyTheEndsOfManyHolesAreKept() {
    SinkBatch batch = new SinkBatch(false, false);
    for (int i = 0; i < 1000; i++) {
      batch.add(Fixtures.entry("a", 2 * i, 2 * i + 1), Fixtures.put(Fixtures.GLOBAL));
    }
    List<Segment> kept = segments(batch, "a");
    assertEquals(64, kept.size());
    assertEquals(segment(0, 1), kept.get(0));
    assertEquals(segment(1998, 1999), kept.get(63));
  }
}
