package io.github.statustool.digests;

import static org.junit.jupiter.api.Assertions.assertArrayEquals;
import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertFalse;
import static org.junit.jupiter.api.Assertions.assertThrows;
import static org.junit.jupiter.api.Assertions.assertTrue;

import java.io.IOException;
import java.lang.reflect.Method;
import java.lang.reflect.Proxy;
import java.util.ArrayList;
import java.util.Arrays;
import java.util.List;
import java.util.concurrent.TimeUnit;
import org.apache.hadoop.hbase.Cell;
import org.apache.hadoop.hbase.CellUtil;
import org.apache.hadoop.hbase.NotServingRegionException;
import org.apache.hadoop.hbase.TableName;
import org.apache.hadoop.hbase.client.ColumnFamilyDescriptorBuilder;
import org.apache.hadoop.hbase.client.RegionInfo;
import org.apache.hadoop.hbase.client.RegionInfoBuilder;
import org.apache.hadoop.hbase.client.Scan;
import org.apache.hadoop.hbase.client.TableDescriptor;
import org.apache.hadoop.hbase.client.TableDescriptorBuilder;
import org.apache.hadoop.hbase.regionserver.Region;
import org.apache.hadoop.hbase.regionserver.RegionScanner;
import org.apache.hadoop.hbase.regionserver.ScannerContext;
import org.apache.hadoop.hbase.regionserver.Shipper;
import org.apache.hadoop.hbase.util.Bytes;
import org.apache.hadoop.hbase.util.EnvironmentEdgeManager;
import org.junit.jupiter.api.AfterEach;
import org.junit.jupiter.api.BeforeEach;
import org.junit.jupiter.api.Test;

class DigestScanTest {
  private static final byte[] NONE = new byte[0];

  private final List<Cell> cells = new ArrayList<>();
  private final List<Scan> scans = new ArrayList<>();
  private long owed;
  private int shipped;
  private int closed;
  private int operations;
  private int failAfter = Integer.MAX_VALUE;
  private int versions = Integer.MAX_VALUE;

  /** Else the time of a call may be over, on a busy machine, before the region looks at its limit. */
  @BeforeEach
  void stopClock() {
    stopClock(0);
  }

  /** HBase's clock stands still, so much ahead of the system's. */
  private static void stopClock(long aheadMs) {
    long now = System.currentTimeMillis() + aheadMs;
    EnvironmentEdgeManager.injectEdge(() -> now);
  }

  @AfterEach
  void startClock() {
    EnvironmentEdgeManager.reset();
  }

  private void rows(int count) {
    for (int row = 0; row < count; row++) {
      cells.add(RowDigestTest.cell(row, 5, "value of " + row));
    }
  }

  private TableDescriptor table(String family) {
    return TableDescriptorBuilder.newBuilder(TableName.valueOf("t")).setColumnFamily(ColumnFamilyDescriptorBuilder
        .newBuilder(Bytes.toBytes(family)).setMaxVersions(versions).build()).build();
  }

  /** A region of these cells, one a row; every third call brings nothing, as a call does that ran out of time. */
  private Region region(String family) {
    return (Region) Proxy.newProxyInstance(Region.class.getClassLoader(), new Class<?>[] {Region.class},
        (proxy, method, args) -> {
          switch (method.getName()) {
            case "getTableDescriptor":
              return table(family);
            case "getScanner":
              scans.add((Scan) args[0]);
              return scanner((Scan) args[0]);
            case "startRegionOperation":
              operations++;
              return null;
            case "closeRegionOperation":
              operations--;
              return null;
            default:
              throw new UnsupportedOperationException(method.getName());
          }
        });
  }

  private RegionScanner scanner(Scan scan) {
    List<Cell> left = new ArrayList<>();
    for (Cell cell : cells) {
      byte[] row = CellUtil.cloneRow(cell);
      boolean before = scan.getStopRow().length == 0 || Bytes.compareTo(row, scan.getStopRow()) < 0;
      if (before && Bytes.compareTo(row, scan.getStartRow()) >= 0) {
        left.add(cell);
      }
    }
    int[] calls = {0};
    Class<?>[] types = {RegionScanner.class, Shipper.class};
    return (RegionScanner) Proxy.newProxyInstance(Region.class.getClassLoader(), types, (proxy, method, args) -> {
      switch (method.getName()) {
        case "nextRaw":
          assertTrue(operations == 1 && Thread.holdsLock(proxy), "what next() would do");
          return next(left, args, calls[0]++);
        case "shipped":
          shipped++;
          return null;
        case "close":
          closed++;
          return null;
        case "getMvccReadPoint":
          return 77L;
        default:
          throw new UnsupportedOperationException(method.getName());
      }
    });
  }

  @SuppressWarnings("unchecked")
  private boolean next(List<Cell> left, Object[] args, int call) throws IOException {
    assertEquals(2, args.length, "with limits");
    assertTrue(isTimeLeft(args[1]), "by HBase's clock");
    if (call >= failAfter) {
      throw new NotServingRegionException("closing");
    }
    if (call % 3 != 2 && !left.isEmpty()) {
      ((List<Cell>) args[0]).add(left.remove(0));
    }
    return !left.isEmpty();
  }

  /** As HBase's scanners ask it. */
  private static boolean isTimeLeft(Object context) throws IOException {
    try {
      Method check = ScannerContext.class.getDeclaredMethod("checkTimeLimit", ScannerContext.LimitScope.class);
      check.setAccessible(true);
      return !((Boolean) check.invoke(context, ScannerContext.LimitScope.BETWEEN_CELLS));
    } catch (ReflectiveOperationException e) {
      throw new IOException(e);
    }
  }

  private DigestScan.Slice read(String family, long maxBytes, byte[] start, byte[] stop) throws IOException {
    DigestPace pace = new DigestPace(1 << 20, nanos -> owed += nanos);
    return new DigestScan(region(family), RowDigestTest.simpleRequest(), pace, () -> false, maxBytes).read(start, stop);
  }

  @Test
  void aWholeRange() throws IOException {
    rows(500);
    DigestScan.Slice slice = read("f", 1 << 20, NONE, NONE);
    assertTrue(slice.reaches(NONE));
    assertEquals(77, slice.readPoint);
    assertArrayEquals(RowDigestTest.digest(cells), RowDigestTest.total(slice.buckets));
    assertFalse(scans.get(0).getCacheBlocks());
    assertEquals(Integer.MAX_VALUE, scans.get(0).getMaxVersions());
    assertEquals(1, closed);
  }

  /** Else the time of each call is over before its first cell, and the slice never ends. */
  @Test
  void theTimeLimitIsOneByHBasesClock() throws IOException {
    rows(5);
    stopClock(TimeUnit.HOURS.toMillis(1));
    assertArrayEquals(RowDigestTest.digest(cells), RowDigestTest.total(read("f", 1 << 20, NONE, NONE).buckets));
  }

  @Test
  void slicesEndBeforeARowAndTileTheRange() throws IOException {
    rows(500);
    RowSums all = new RowSums();
    byte[] at = NONE;
    int slices = 0;
    do {
      DigestScan.Slice slice = read("f", 1_000, at, NONE);
      assertArrayEquals(at, slice.buckets.get(0).start);
      slice.buckets.forEach(bucket -> all.add(bucket.sums));
      at = slice.end;
      slices++;
    } while (at.length > 0);
    assertTrue(slices > 10, slices + " slices");
    assertArrayEquals(RowDigestTest.digest(cells), RowDigestTest.bytes(all));
  }

  @Test
  void aSampleEndsAfterItsRows() throws IOException {
    rows(500);
    DigestRequest.TableRequest all = RowDigestTest.simpleRequest();
    DigestRequest.TableRequest sample = new DigestRequest.TableRequest(all.key, all.cut, 100, all.families);
    DigestPace pace = new DigestPace(1 << 20, nanos -> { });
    byte[] start = CellUtil.cloneRow(cells.get(250));
    DigestScan.Slice slice = new DigestScan(region("f"), sample, pace, () -> false, 1 << 20).read(start, NONE);
    assertTrue(slice.isSample);
    assertArrayEquals(CellUtil.cloneRow(cells.get(350)), slice.end);
    assertArrayEquals(RowDigestTest.digest(cells.subList(250, 350)), RowDigestTest.total(slice.buckets));
  }

  @Test
  void aRowIsNeverCut() throws IOException {
    byte[] row = Bytes.toBytes("wide");
    for (int i = 0; i < 300; i++) {
      cells.add(new org.apache.hadoop.hbase.KeyValue(row, Bytes.toBytes("f"), Bytes.toBytes(i), 5, new byte[100]));
    }
    DigestScan.Slice slice = read("f", 1_000, NONE, NONE);
    assertTrue(slice.reaches(NONE));
    assertArrayEquals(RowDigestTest.digest(cells), RowDigestTest.total(slice.buckets));
  }

  @Test
  void whatIsReadIsShippedOftenAndPaidFor() throws IOException {
    for (int row = 0; row < 100; row++) {
      cells.add(RowDigestTest.cell(row, 5, "x".repeat(20_000)));
    }
    read("f", 64 << 20, NONE, NONE);
    assertTrue(shipped >= 100 * 20_000 / (64 << 10) / 2, shipped + " times");
    assertTrue(owed > TimeUnit.MILLISECONDS.toNanos(1_000), "two megabytes at one a second");
  }

  @Test
  void aFamilyThatIsNotThereIsEmpty() throws IOException {
    rows(5);
    DigestScan.Slice slice = read("other", 1 << 20, NONE, NONE);
    assertArrayEquals(RowDigestTest.digest(List.of()), RowDigestTest.total(slice.buckets));
    assertEquals(List.of(), scans);
  }

  /** Altered without reopening it, its table keeps more than its scanners show. */
  @Test
  void aRegionThatShowsFewerVersionsThanItsTableKeepsIsRefused() throws IOException {
    rows(5);
    int asked = RowDigestTest.simpleRequest().families.get(Bytes.toBytes("f")).versions;
    versions = asked;
    read("f", 1 << 20, NONE, NONE);
    versions = asked - 1;
    assertTrue(assertThrows(IOException.class, () -> read("f", 1 << 20, NONE, NONE)).getMessage().contains("VERSIONS"));
  }

  @Test
  void aRegionThatClosesEndsTheSliceAndTheScannerIsClosed() {
    rows(500);
    failAfter = 20;
    assertThrows(NotServingRegionException.class, () -> read("f", 1 << 20, NONE, NONE));
    assertEquals(List.of(1, 0), List.of(closed, operations));
  }

  @Test
  void cancelledWorkEnds() {
    rows(5);
    DigestPace pace = new DigestPace(1, nanos -> { });
    DigestScan scan = new DigestScan(region("f"), RowDigestTest.simpleRequest(), pace, () -> true, 1);
    assertThrows(IOException.class, () -> scan.read(NONE, NONE));
    assertEquals(1, closed);
  }

  @Test
  void aRegionHoldsOnlyWhatLiesWithinIt() {
    RegionInfo middle = RegionInfoBuilder.newBuilder(TableName.valueOf("t")).setStartKey(Bytes.toBytes("c"))
        .setEndKey(Bytes.toBytes("m")).build();
    assertTrue(holds(middle, "c", "m"));
    assertTrue(holds(middle, "d", "e"));
    assertEquals(List.of(false, false, false, false), Arrays.asList(holds(middle, "b", "e"), holds(middle, "d", "n"),
        holds(middle, "d", ""), holds(middle, "e", "d")));
    RegionInfo all = RegionInfoBuilder.newBuilder(TableName.valueOf("t")).build();
    assertTrue(holds(all, "", "") && holds(all, "x", "") && holds(all, "", "x"));
  }

  private static boolean holds(RegionInfo info, String start, String stop) {
    return DigestScan.holds(info, Bytes.toBytes(start), Bytes.toBytes(stop));
  }
}
