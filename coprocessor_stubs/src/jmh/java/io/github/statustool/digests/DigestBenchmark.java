package io.github.statustool.digests;

import java.io.IOException;
import java.nio.file.Files;
import java.util.ArrayList;
import java.util.Comparator;
import java.util.List;
import java.util.Map;
import java.util.Random;
import java.util.TreeMap;
import java.util.concurrent.TimeUnit;
import java.util.stream.Stream;
import org.apache.hadoop.conf.Configuration;
import org.apache.hadoop.fs.Path;
import org.apache.hadoop.hbase.Cell;
import org.apache.hadoop.hbase.HBaseConfiguration;
import org.apache.hadoop.hbase.TableName;
import org.apache.hadoop.hbase.client.ColumnFamilyDescriptorBuilder;
import org.apache.hadoop.hbase.client.Put;
import org.apache.hadoop.hbase.client.RegionInfo;
import org.apache.hadoop.hbase.client.RegionInfoBuilder;
import org.apache.hadoop.hbase.client.Scan;
import org.apache.hadoop.hbase.client.TableDescriptor;
import org.apache.hadoop.hbase.client.TableDescriptorBuilder;
import org.apache.hadoop.hbase.regionserver.ChunkCreator;
import org.apache.hadoop.hbase.regionserver.HRegion;
import org.apache.hadoop.hbase.regionserver.MemStoreLAB;
import org.apache.hadoop.hbase.regionserver.RegionScanner;
import org.apache.hadoop.hbase.regionserver.Shipper;
import org.apache.hadoop.hbase.util.Bytes;
import org.apache.hadoop.hbase.wal.WALFactory;
import org.openjdk.jmh.annotations.Benchmark;
import org.openjdk.jmh.annotations.BenchmarkMode;
import org.openjdk.jmh.annotations.Fork;
import org.openjdk.jmh.annotations.Measurement;
import org.openjdk.jmh.annotations.Mode;
import org.openjdk.jmh.annotations.OutputTimeUnit;
import org.openjdk.jmh.annotations.Param;
import org.openjdk.jmh.annotations.Scope;
import org.openjdk.jmh.annotations.Setup;
import org.openjdk.jmh.annotations.State;
import org.openjdk.jmh.annotations.TearDown;
import org.openjdk.jmh.annotations.Warmup;

/**
 * A digest of all rows of a region with one store file, unlimited, against a scan of the same that only counts:
 * {@code mvn -q -Pbench verify -Djmh.args=DigestBenchmark}.
 */
@State(Scope.Thread)
@BenchmarkMode(Mode.AverageTime)
@OutputTimeUnit(TimeUnit.MILLISECONDS)
@Warmup(iterations = 3, time = 3)
@Measurement(iterations = 5, time = 3)
@Fork(1)
public class DigestBenchmark {
  private static final byte[] FAMILY = Bytes.toBytes("f");
  private static final byte[] NONE = new byte[0];
  private static final long SHIP_BYTES = 64 << 10;

  /** Bytes of a value. */
  @Param({"40", "1000", "1048576"})
  public int value;

  private java.nio.file.Path folder;
  private WALFactory wals;
  private HRegion region;
  private DigestRequest.TableRequest request;

  @Setup
  public void fill() throws IOException {
    folder = Files.createTempDirectory("digest-benchmark");
    Configuration conf = HBaseConfiguration.create();
    conf.set("hbase.rootdir", folder.toUri().toString());
    conf.setBoolean("hbase.unsafe.stream.capability.enforce", false);
    conf.set("hbase.wal.provider", "filesystem");
    ChunkCreator.initialize(MemStoreLAB.CHUNK_SIZE_DEFAULT, false, 0, 0, 0, null,
        MemStoreLAB.INDEX_CHUNK_SIZE_PERCENTAGE_DEFAULT);
    TableDescriptor table = TableDescriptorBuilder.newBuilder(TableName.valueOf("t"))
        .setColumnFamily(ColumnFamilyDescriptorBuilder.of(FAMILY)).build();
    RegionInfo info = RegionInfoBuilder.newBuilder(table.getTableName()).build();
    wals = new WALFactory(conf, "benchmark");
    region = HRegion.createHRegion(info, new Path(folder.toUri()), conf, table, wals.getWAL(info));
    Random random = new Random(1);
    int rows = Math.min(200_000, (256 << 20) / value);
    for (int row = 0; row < rows; row++) {
      byte[] bytes = new byte[value];
      random.nextBytes(bytes);
      region.put(new Put(Bytes.toBytes(String.format("row%08d", row))).addColumn(FAMILY, Bytes.toBytes("q"), bytes));
    }
    region.flush(true);
    region.compact(true);
    Map<byte[], DigestRequest.Family> families = new TreeMap<>(Bytes.BYTES_COMPARATOR);
    families.put(FAMILY, new DigestRequest.Family(FAMILY, 1, Long.MIN_VALUE));
    request = new DigestRequest.TableRequest(new byte[16], Long.MAX_VALUE, 0, families);
  }

  @TearDown
  public void close() throws IOException {
    region.close();
    wals.close();
    try (Stream<java.nio.file.Path> files = Files.walk(folder)) {
      files.sorted(Comparator.reverseOrder()).forEach(file -> file.toFile().delete());
    }
  }

  @Benchmark
  public long bareScan() throws IOException {
    Scan scan = new Scan().readAllVersions().setCacheBlocks(false).addFamily(FAMILY);
    long found = 0;
    long unshipped = 0;
    List<Cell> cells = new ArrayList<>();
    try (RegionScanner scanner = region.getScanner(scan)) {
      boolean more = true;
      while (more) {
        cells.clear();
        more = scanner.next(cells);
        for (Cell cell : cells) {
          found++;
          unshipped += cell.getSerializedSize();
        }
        if (unshipped > SHIP_BYTES) {
          ((Shipper) scanner).shipped();
          unshipped = 0;
        }
      }
    }
    return found;
  }

  @Benchmark
  public long digest() throws IOException {
    DigestPace pace = new DigestPace(Long.MAX_VALUE, nanos -> { });
    DigestScan.Slice slice = new DigestScan(region, request, pace, () -> false, Long.MAX_VALUE).read(NONE, NONE);
    return slice.buckets.size();
  }
}
