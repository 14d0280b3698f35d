package io.github.statustool;

import static org.junit.jupiter.api.Assertions.assertArrayEquals;
import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertFalse;
import static org.junit.jupiter.api.Assertions.assertTrue;

import io.github.statustool.recorder.Recorder;
import io.github.statustool.state.FakeStore;
import io.github.statustool.state.Settings;
import io.github.statustool.state.Spool;
import io.github.statustool.state.StateTable.SegmentRow;
import io.github.statustool.state.StateTable.UnstampedRow;
import io.github.statustool.state.StoredRow;
import io.github.statustool.streams.Fixtures;
import io.github.statustool.streams.WalStamper;
import java.io.IOException;
import java.nio.file.Path;
import java.util.ArrayList;
import java.util.List;
import java.util.concurrent.atomic.AtomicLong;
import org.apache.hadoop.hbase.TableName;
import org.apache.hadoop.hbase.client.RegionInfo;
import org.apache.hadoop.hbase.client.RegionInfoBuilder;
import org.apache.hadoop.hbase.shaded.protobuf.generated.AdminProtos.WALEntry;
import org.apache.hadoop.hbase.util.Bytes;
import org.apache.hadoop.hbase.wal.WALEdit;
import org.apache.hadoop.hbase.wal.WALKeyImpl;
import org.junit.jupiter.api.BeforeEach;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.io.TempDir;

/**
 * The trackers at full speed and under fault, heap watched. {@code -Dsoak.seconds=N} (or {@code make soak}) makes it
 * long; the bounds are the same, which is the point.
 */
class SoakTest {
  private static final long SECONDS = Long.getLong("soak.seconds", 2);
  private static final int REGIONS = 200;
  /** What two heap readings of one state differ by: class loading, logging, the collector's own. */
  private static final long NOISE_BYTES = 8L << 20;
  private static final int FLOOD = 100_000;
  private static final long BYTES_A_REGION = 1_500;
  private static final long BYTES_A_FAMILY = 400;

  @TempDir
  private Path folder;

  private final AtomicLong clock = new AtomicLong(1_700_000_000_000L);
  private final FakeStore store = new FakeStore();
  private Recorder recorder;
  private WriteTimeTracker writer;
  private ReplicateTimeTracker sink;
  private final long[] heads = new long[FLOOD];
  private long seq;

  @BeforeEach
  void makeTrackers() {
    recorder = new Recorder(new Settings(Fixtures.conf("writethrough.wait", "1")), () -> store,
        new Spool(Fixtures.conf(), new org.apache.hadoop.fs.Path(folder.toUri())), clock::get);
    recorder.roles().watchWal(new OpenWal());
    writer = new WriteTimeTracker(recorder, new WalStamper(Fixtures.ORIGIN, Fixtures.SETTINGS,
        recorder.observed(), recorder.health()));
    sink = new ReplicateTimeTracker(recorder);
  }

  private static List<RegionInfo> regions(int count) {
    List<RegionInfo> regions = new ArrayList<>(count);
    for (int i = 0; i < count; i++) {
      regions.add(RegionInfoBuilder.newBuilder(TableName.valueOf("t")).setStartKey(Bytes.toBytes(i)).setRegionId(7)
          .build());
    }
    return regions;
  }

  private void write(RegionInfo region) {
    seq++;
    WALKeyImpl key = Fixtures.key(region, seq, Fixtures.scopes());
    WALEdit edit = Fixtures.edit(Fixtures.GLOBAL);
    writer.preWALWrite(null, region, key, edit);
    writer.postWALWrite(null, region, key, edit);
  }

  /** A request with entries in a row of one stream; {@code skip} leaves a hole before them. */
  private void replicate(int region, boolean skip) {
    long prev = heads[region] + (skip ? 1 : 0);
    sink.preReplicateLogEntries(null);
    for (int i = 0; i < 10; i++) {
      WALEntry entry = Fixtures.entry("r" + region, prev, prev + 1);
      sink.postReplicationSinkBatchMutate(null, entry, Fixtures.put(Fixtures.GLOBAL));
      prev++;
    }
    sink.postReplicateLogEntries(null);
    heads[region] = prev;
  }

  private static long heap() {
    for (int i = 0; i < 3; i++) {
      System.gc();
    }
    return Runtime.getRuntime().totalMemory() - Runtime.getRuntime().freeMemory();
  }

  private long round(List<RegionInfo> regions) {
    for (int i = 0; i < regions.size(); i++) {
      write(regions.get(i));
      replicate(i, false);
    }
    store.log.clear();
    clock.addAndGet(1_000);
    recorder.tick();
    return regions.size();
  }

  /** The table is down, hangs, comes back, over and over; entries keep coming as fast as they can. */
  @Test
  void aDayOfEntriesNeedsNoMoreHeapThanAMinuteOfThem() {
    List<RegionInfo> regions = regions(REGIONS);
    round(regions);
    long before = heap();
    long end = System.nanoTime() + SECONDS * 1_000_000_000L;
    long entries = 0;
    for (int turn = 0; System.nanoTime() < end; turn++) {
      store.down = turn % 3 == 1;
      store.hanging = turn % 3 == 2;
      entries += round(regions);
    }
    long grown = heap() - before;
    assertTrue(grown < NOISE_BYTES, grown + " bytes more after " + entries + " requests of 10 entries");
    assertTrue(entries > REGIONS, "nothing was done");
    assertEquals(0, recorder.health().errors());
  }

  /** While the table is away every stream is kept, merged; when it is back all of it is written and let go. */
  @Test
  void minutesWithoutTheTableLoseNothing() {
    List<RegionInfo> regions = regions(REGIONS);
    store.down = true;
    for (int i = 0; i < 300; i++) {
      round(regions);
    }
    assertEquals(REGIONS, recorder.observed().applied.pendingCount());
    assertEquals(1, store.asyncPuts + 0, "only the first request may have waited");
    store.down = false;
    round(regions);
    clock.addAndGet(20_000);
    recorder.tick();
    assertEquals(0, recorder.observed().applied.pendingCount());
    StoredRow row = store.rows.get(Fixtures.row(SegmentRow.TYPE, "r0"));
    assertEquals("[(0," + heads[0] + "]]", Fixtures.segments(row));
  }

  /** Heads are never evicted (a region that comes back continues its chain): so much memory each, stated in docs. */
  @Test
  void aFloodOfNewRegionsCostsABoundedSumEach() {
    long before = heap();
    List<RegionInfo> regions = regions(FLOOD);
    long regionsAlone = heap() - before;
    regions.forEach(this::write);
    long each = (heap() - before - regionsAlone) / FLOOD;
    assertTrue(each < BYTES_A_REGION, each + " bytes a region");
    assertEquals(FLOOD, recorder.observed().headChanges().size());
    System.out.println("status-tool: " + each + " bytes of heap a region");
    assertEquals(0, recorder.health().errors());
  }

  /** A region's entries of two families by turns, of which the peer ships one: the record stays at one segment. */
  @Test
  void aFamilyThatIsLeftOutMakesNoRecordGrow() {
    byte[] other = Bytes.toBytes("h");
    recorder.tick(); // connects
    java.util.NavigableMap<byte[], Integer> both = Fixtures.scopes();
    both.put(other, 1);
    List<RegionInfo> regions = regions(50);
    int size = 0;
    for (int request = 0; request < 200; request++) {
      sink.preReplicateLogEntries(null);
      for (RegionInfo region : regions) {
        for (byte[][] families : new byte[][][] {{Fixtures.GLOBAL}, {other}, {other, Fixtures.GLOBAL}, {other}}) {
          seq++;
          WALKeyImpl key = Fixtures.key(region, seq, both);
          WALEdit edit = Fixtures.edit(families);
          writer.preWALWrite(null, region, key, edit);
          writer.postWALWrite(null, region, key, edit);
          if (families[families.length - 1] == Fixtures.GLOBAL) { // what the filter leaves of it
            sink.postReplicationSinkBatchMutate(null, Fixtures.entry(region.getEncodedName(), seq,
                Fixtures.stamp(key)), Fixtures.put(Fixtures.GLOBAL));
          }
        }
      }
      sink.postReplicateLogEntries(null);
      for (RegionInfo region : regions) {
        StoredRow row = store.rows.get(Fixtures.row(SegmentRow.TYPE, region.getEncodedName()));
        assertEquals(1, Fixtures.segments(row).split("], ").length);
        int bytes = row.values.values().stream().mapToInt(each -> each.length).sum();
        assertTrue(size == 0 || bytes == size, bytes + " bytes after " + request + " requests");
        size = bytes;
        assertFalse(store.rows.containsKey(Fixtures.row(SegmentRow.TYPE, region.getEncodedName(), other)));
      }
    }
    assertEquals(0, recorder.health().errors());
  }

  /** One head for each family of a region, however many entries there are; a stamp names those of its entry. */
  @Test
  void aHundredFamiliesOfAThousandRegionsAreBounded() {
    byte[][] families = new byte[100][];
    java.util.NavigableMap<byte[], Integer> scopes = Fixtures.scopes();
    scopes.clear();
    for (int i = 0; i < families.length; i++) {
      families[i] = Bytes.toBytes("family" + i);
      scopes.put(families[i], 1);
    }
    List<RegionInfo> regions = regions(1_000);
    long before = heap();
    for (int turn = 0; turn < 3; turn++) {
      for (RegionInfo region : regions) {
        for (byte[][] written : new byte[][][] {families, {families[turn]}}) {
          seq++;
          WALKeyImpl key = Fixtures.key(region, seq, scopes);
          WALEdit edit = Fixtures.edit(written);
          writer.preWALWrite(null, region, key, edit);
          writer.postWALWrite(null, region, key, edit);
          assertEquals(22 + 24 * written.length, Fixtures.stamp(key).length);
        }
      }
      assertEquals(100_000, recorder.observed().headChanges().size());
    }
    long each = (heap() - before) / 100_000;
    assertTrue(each < BYTES_A_FAMILY, each + " bytes a family of a region");
    System.out.println("status-tool: " + each + " bytes of heap a family of a region");
    assertEquals(0, recorder.health().errors());
  }

  /** As Phoenix does: attributes of its own in the WALKey, before ours and after it. */
  @Test
  void anotherCoprocessorsAttributesStayAsTheyAre() throws IOException {
    RegionInfo region = regions(1).get(0);
    WALKeyImpl key = Fixtures.key(region, 1, Fixtures.scopes());
    byte[] theirs = Bytes.toBytes("_TenantId and more");
    key.addExtendedAttribute("_Tenant", theirs);
    WALEdit edit = Fixtures.edit(Fixtures.GLOBAL);
    writer.preWALWrite(null, region, key, edit);
    byte[] stamp = Fixtures.stamp(key);
    key.addExtendedAttribute("_Schema", theirs);
    writer.postWALWrite(null, region, key, edit);
    assertArrayEquals(theirs, key.getExtendedAttribute("_Tenant"));
    assertArrayEquals(theirs, key.getExtendedAttribute("_Schema"));
    assertArrayEquals(stamp, Fixtures.stamp(key));
    assertTrue(Fixtures.isValid(stamp, 1));
  }

  /** Stamps from a later version, damaged ones and strangers' under our name are entries without a stamp, no more. */
  @Test
  void whatNobodyCanReadIsCountedAndNothingElse() {
    java.util.Random random = new java.util.Random(7);
    int sent = 20_000;
    sink.preReplicateLogEntries(null);
    for (int i = 1; i <= sent; i++) {
      byte[] stamp = new byte[random.nextInt(64)];
      random.nextBytes(stamp);
      if (stamp.length > 0) {
        stamp[0] = 3;
      }
      sink.postReplicationSinkBatchMutate(null, Fixtures.entry("r", i, stamp), null);
    }
    sink.postReplicateLogEntries(null);
    assertEquals(0, recorder.health().errors());
    assertEquals(0, recorder.observed().applied.pendingCount());
    recorder.tick();
    clock.addAndGet(60_000);
    recorder.tick();
    assertEquals(1000 + sent, store.number(Bytes.toBytes(UnstampedRow.TYPE + "r"), UnstampedRow.WRITE_MS));
  }
}
