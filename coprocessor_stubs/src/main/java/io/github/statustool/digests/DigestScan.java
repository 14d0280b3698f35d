package io.github.statustool.digests;

import java.io.IOException;
import java.io.InterruptedIOException;
import java.util.ArrayList;
import java.util.Arrays;
import java.util.List;
import java.util.concurrent.TimeUnit;
import java.util.function.BooleanSupplier;
import org.apache.hadoop.hbase.Cell;
import org.apache.hadoop.hbase.CellUtil;
import org.apache.hadoop.hbase.client.ColumnFamilyDescriptor;
import org.apache.hadoop.hbase.client.RegionInfo;
import org.apache.hadoop.hbase.client.Scan;
import org.apache.hadoop.hbase.regionserver.Region;
import org.apache.hadoop.hbase.regionserver.RegionScanner;
import org.apache.hadoop.hbase.regionserver.ScannerContext;
import org.apache.hadoop.hbase.regionserver.ScannerContext.LimitScope;
import org.apache.hadoop.hbase.regionserver.Shipper;
import org.apache.hadoop.hbase.util.Bytes;
import org.apache.hadoop.hbase.util.EnvironmentEdgeManager;

/**
 * Digests one slice of a range: with one scanner at one read point, for at most ten seconds or 64 MiB, ending at a row
 * boundary.
 *
 * <p>It works in turns of 20 ms or 64 KiB, because closing a region waits for a running turn without a time limit.
 * Blocks are not cached; they stay in the pool of RPC buffers until {@code shipped()} at the end of a turn. Within a
 * turn, rows are read by {@code nextRaw()}: what {@code next()} does besides takes a third of the time of small rows.
 */
final class DigestScan {
  static final long MAX_BYTES = 64L << 20;
  /** A sample is small: it may not take the time of many others. */
  static final long SAMPLE_BYTES = 1L << 20;
  private static final long MAX_NANOS = TimeUnit.SECONDS.toNanos(10);
  private static final long TURN_MS = 20;
  private static final long TURN_BYTES = 64 << 10;
  private static final int MAX_BATCH = 256;
  private static final long BATCH_BYTES = 1 << 20;

  private final Region region;
  private final DigestRequest.TableRequest request;
  private final DigestPace pace;
  private final BooleanSupplier cancelled;
  private final long maxBytes;
  private final List<Cell> cells = new ArrayList<>();
  /** Number of cells per call. Starts low, because their size is not known yet. */
  private int batch = 1;
  private boolean more = true;
  /** The row at which the slice ends, exclusive; null while it has not been reached, and at the end of the range. */
  private byte[] end;

  DigestScan(Region region, DigestRequest.TableRequest request, DigestPace pace, BooleanSupplier cancelled, long maxBytes) {
    this.region = region;
    this.request = request;
    this.pace = pace;
    this.cancelled = cancelled;
    this.maxBytes = maxBytes;
  }

  /** Returns true if the region contains the whole range. Otherwise the answer would leave rows out. */
  static boolean holds(RegionInfo info, byte[] start, byte[] stop) {
    byte[] end = info.getEndKey();
    boolean ends = end.length == 0 || (stop.length > 0 && Bytes.compareTo(stop, end) <= 0);
    return ends && Bytes.compareTo(start, info.getStartKey()) >= 0
        && (stop.length == 0 || Bytes.compareTo(start, stop) < 0);
  }

  /** @throws IOException if the region is closing or the request was withdrawn */
  Slice read(byte[] start, byte[] stop) throws IOException {
    Scan scan = new Scan().withStartRow(start).withStopRow(stop).readAllVersions().setCacheBlocks(false);
    for (ColumnFamilyDescriptor family : region.getTableDescriptor().getColumnFamilies()) {
      DigestRequest.Family asked = request.families.get(family.getName());
      if (asked != null) {
        if (family.getMaxVersions() < asked.versions) {
          throw new IOException("family " + family.getNameAsString() + " keeps more VERSIONS than its region was opened"
              + " with: wait until the region is open again, or reopen it");
        }
        scan.addFamily(family.getName());
      }
    }
    RowDigest digest = new RowDigest(request, start);
    if (!scan.hasFamilies()) {
      return new Slice(digest.buckets(), stop, 0, request.isSample());
    }
    try (RegionScanner scanner = region.getScanner(scan)) {
      read(scanner, digest);
      return new Slice(digest.buckets(), end == null ? stop : end, scanner.getMvccReadPoint(), request.isSample());
    }
  }

  private void read(RegionScanner scanner, RowDigest digest) throws IOException {
    long started = System.nanoTime();
    for (long now = started; more && end == null; now = System.nanoTime()) {
      if (cancelled.getAsBoolean()) {
        throw new InterruptedIOException("cancelled");
      }
      long bytes = digest.bytes();
      takeTurn(scanner, digest, now - started >= MAX_NANOS);
      if (scanner instanceof Shipper) {
        ((Shipper) scanner).shipped();
      }
      pace.worked(System.nanoTime() - now, digest.bytes() - bytes);
    }
  }

  private void takeTurn(RegionScanner scanner, RowDigest digest, boolean late) throws IOException {
    region.startRegionOperation(Region.Operation.SCAN);
    try {
      synchronized (scanner) {
        readRows(scanner, digest, late);
      }
    } finally {
      region.closeRegionOperation(Region.Operation.SCAN);
    }
  }

  /**
   * Reads until the turn is over. The time limit is by HBase's own clock, as HBase compares it: by another clock it
   * could be over before each cell. Once it is over, calls bring no cells.
   */
  private void readRows(RegionScanner scanner, RowDigest digest, boolean late) throws IOException {
    ScannerContext limits = ScannerContext.newBuilder()
        .setBatchLimit(batch)
        .setTimeLimit(LimitScope.BETWEEN_CELLS, EnvironmentEdgeManager.currentTime() + TURN_MS)
        .build();
    long enough = digest.bytes() + TURN_BYTES;
    do {
      cells.clear();
      more = scanner.nextRaw(cells, limits);
      end = add(digest, digest.hasRow() && (late || isFull(digest)));
    } while (more && end == null && !cells.isEmpty() && digest.bytes() < enough);
  }

  private boolean isFull(RowDigest digest) {
    return digest.bytes() >= maxBytes || (request.isSample() && digest.rows() >= request.sampleRows);
  }

  private byte[] add(RowDigest digest, boolean full) {
    long largest = 1;
    for (Cell cell : cells) {
      if (full && digest.startsRow(cell)) {
        return CellUtil.cloneRow(cell);
      }
      digest.add(cell);
      largest = Math.max(largest, (long) cell.getValueLength());
    }
    if (!cells.isEmpty()) {
      batch = (int) Math.max(1, Math.min(Math.min(MAX_BATCH, 2L * batch), BATCH_BYTES / largest));
    }
    return null;
  }

  /** A digested slice: from the start of the first bucket to {@code end}. */
  static final class Slice {
    final List<RowDigest.Bucket> buckets;
    final byte[] end;
    final long readPoint;
    /** Nothing more is digested of the range, wherever the slice ends. */
    final boolean isSample;

    Slice(List<RowDigest.Bucket> buckets, byte[] end, long readPoint, boolean isSample) {
      this.buckets = buckets;
      this.end = end;
      this.readPoint = readPoint;
      this.isSample = isSample;
    }

    boolean reaches(byte[] stop) {
      return Arrays.equals(end, stop);
    }
  }
}
