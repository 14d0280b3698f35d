package io.github.statustool.digests;

import com.sun.management.ThreadMXBean;
import java.io.IOException;
import java.lang.management.ManagementFactory;
import java.nio.file.Paths;
import java.util.ArrayList;
import java.util.Arrays;
import java.util.List;
import java.util.Map;
import java.util.Random;
import java.util.TreeMap;
import org.apache.hadoop.conf.Configuration;
import org.apache.hadoop.fs.Path;
import org.apache.hadoop.hbase.Cell;
import org.apache.hadoop.hbase.HBaseConfiguration;
import org.apache.hadoop.hbase.TableName;
import org.apache.hadoop.hbase.client.ColumnFamilyDescriptorBuilder;
import org.apache.hadoop.hbase.client.Durability;
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

/**
 * CPU seconds of digests of all rows of a region with one store file, without a limit of rate, and of scans of the same
 * that only count, by turns: {@code FOLDER ROUNDS CELLS VALUE COLUMNS}. Prints a line of the digests' and one of the
 * scans', the first quarter of the rounds left out, as compilers work then.
 */
public final class DigestTurns {
  private static final byte[] FAMILY = Bytes.toBytes("f");
  private static final byte[] NONE = new byte[0];
  private static final long SHIP_BYTES = 64 << 10;
  private static final ThreadMXBean THREADS = (ThreadMXBean) ManagementFactory.getThreadMXBean();

  private final HRegion region;

  private DigestTurns(HRegion region) {
    this.region = region;
  }

  /** Ends the JVM itself: the WAL's threads are no daemons. */
  public static void main(String[] args) {
    try {
      measure(args);
      System.exit(0);
    } catch (IOException | RuntimeException e) {
      e.printStackTrace();
      System.exit(1);
    }
  }

  private static void measure(String[] args) throws IOException {
    int[] numbers = Arrays.stream(args).skip(1).mapToInt(Integer::parseInt).toArray();
    DigestTurns turns = new DigestTurns(region(new Path(Paths.get(args[0]).toUri())));
    turns.fill(numbers[1] / numbers[3], numbers[2], numbers[3]);
    StringBuilder digests = new StringBuilder();
    StringBuilder scans = new StringBuilder();
    for (int round = -numbers[0] / 3; round < numbers[0]; round++) {
      double digest = turns.seconds(turns::digest);
      double scan = turns.seconds(turns::scan);
      if (round >= 0) {
        digests.append(digest).append(' ');
        scans.append(scan).append(' ');
      }
    }
    System.out.println(digests);
    System.out.println(scans);
  }

  private static HRegion region(Path folder) throws IOException {
    Configuration conf = HBaseConfiguration.create();
    conf.set("hbase.rootdir", folder.toString());
    conf.setBoolean("hbase.unsafe.stream.capability.enforce", false);
    conf.set("hbase.wal.provider", "filesystem");
    ChunkCreator.initialize(MemStoreLAB.CHUNK_SIZE_DEFAULT, false, 0, 0, 0, null,
        MemStoreLAB.INDEX_CHUNK_SIZE_PERCENTAGE_DEFAULT);
    TableDescriptor table = TableDescriptorBuilder.newBuilder(TableName.valueOf("t"))
        .setColumnFamily(ColumnFamilyDescriptorBuilder.of(FAMILY)).build();
    RegionInfo info = RegionInfoBuilder.newBuilder(table.getTableName()).build();
    return HRegion.createHRegion(info, folder, conf, table, new WALFactory(conf, "benchmark").getWAL(info));
  }

  private void fill(int rows, int size, int columns) throws IOException {
    Random random = new Random(1);
    for (int row = 0; row < rows; row++) {
      Put put = new Put(Bytes.toBytes(String.format("row%08d", row))).setDurability(Durability.SKIP_WAL);
      for (int column = 0; column < columns; column++) {
        byte[] value = new byte[size];
        random.nextBytes(value);
        put.addColumn(FAMILY, Bytes.toBytes("q" + column), value);
      }
      region.put(put);
    }
    region.flush(true);
    region.compact(true);
  }

  private double seconds(Work work) throws IOException {
    long before = THREADS.getCurrentThreadCpuTime();
    work.run();
    return (THREADS.getCurrentThreadCpuTime() - before) / 1e9;
  }

  private void digest() throws IOException {
    Map<byte[], DigestRequest.Family> families = new TreeMap<>(Bytes.BYTES_COMPARATOR);
    families.put(FAMILY, new DigestRequest.Family(FAMILY, 1, Long.MIN_VALUE));
    DigestRequest.TableRequest request = new DigestRequest.TableRequest(new byte[16], Long.MAX_VALUE, 0, families);
    DigestPace pace = new DigestPace(Long.MAX_VALUE, nanos -> { });
    new DigestScan(region, request, pace, () -> false, Long.MAX_VALUE).read(NONE, NONE);
  }

  private void scan() throws IOException {
    List<Cell> cells = new ArrayList<>();
    long unshipped = 0;
    Scan scan = new Scan().readAllVersions().setCacheBlocks(false).addFamily(FAMILY);
    try (RegionScanner scanner = region.getScanner(scan)) {
      boolean more = true;
      while (more) {
        cells.clear();
        more = scanner.next(cells);
        for (Cell cell : cells) {
          unshipped += cell.getSerializedSize();
        }
        if (unshipped > SHIP_BYTES) {
          ((Shipper) scanner).shipped();
          unshipped = 0;
        }
      }
    }
  }

  private interface Work {
    void run() throws IOException;
  }
}
