package io.github.statustool.streams;

import io.github.statustool.state.Health;
import io.github.statustool.state.Ids;
import io.github.statustool.state.Settings;
import io.github.statustool.state.StoredRow;
import java.lang.reflect.Proxy;
import java.util.ArrayList;
import java.util.HashMap;
import java.util.List;
import java.util.Map;
import java.util.NavigableMap;
import java.util.TreeMap;
import java.util.UUID;
import java.util.function.BooleanSupplier;
import org.apache.hadoop.conf.Configuration;
import org.apache.hadoop.fs.Path;
import org.apache.hadoop.hbase.HConstants;
import org.apache.hadoop.hbase.KeyValue;
import org.apache.hadoop.hbase.TableName;
import org.apache.hadoop.hbase.client.Put;
import org.apache.hadoop.hbase.client.RegionInfo;
import org.apache.hadoop.hbase.client.RegionInfoBuilder;
import org.apache.hadoop.hbase.regionserver.MultiVersionConcurrencyControl;
import org.apache.hadoop.hbase.shaded.protobuf.ProtobufUtil;
import org.apache.hadoop.hbase.shaded.protobuf.generated.AdminProtos.WALEntry;
import org.apache.hadoop.hbase.shaded.protobuf.generated.WALProtos;
import org.apache.hadoop.hbase.util.Bytes;
import org.apache.hadoop.hbase.wal.WALEdit;
import org.apache.hadoop.hbase.wal.WALKeyImpl;
import org.apache.hbase.thirdparty.com.google.protobuf.ByteString;
import org.slf4j.Logger;
import org.slf4j.LoggerFactory;

/** Real keys, edits and regions as HBase makes them. */
public final class Fixtures {
  public static final String SERVER = "master.example.org,16020,1700000000000";
  public static final long ORIGIN = Ids.origin(SERVER);
  public static final Settings SETTINGS = settings(true);
  public static final TableName STATE_TABLE = SETTINGS.table;
  public static final byte[] GLOBAL = Bytes.toBytes("g");
  public static final byte[] LOCAL = Bytes.toBytes("l");

  private Fixtures() {}

  public static Configuration conf(String... keysAndValues) {
    Configuration conf = new Configuration(false);
    for (int i = 0; i < keysAndValues.length; i += 2) {
      conf.set("hbase.replicationtable." + keysAndValues[i], keysAndValues[i + 1]);
    }
    return conf;
  }

  /** Returns those of a server that was started with or without the replication of bulk loads. */
  public static Settings settings(boolean bulkLoads) {
    Configuration conf = conf();
    conf.setBoolean(HConstants.REPLICATION_BULKLOAD_ENABLE_KEY, bulkLoads);
    return new Settings(conf);
  }

  public static Health health() {
    return new Health(LoggerFactory.getLogger(Fixtures.class));
  }

  /** Returns a log that fails. (JUnit lets no test see an OutOfMemoryError.) */
  public static Logger failingLog() {
    return (Logger) Proxy.newProxyInstance(Logger.class.getClassLoader(), new Class<?>[] {Logger.class},
        (proxy, method, args) -> {
          throw new StackOverflowError("thrown by a test");
        });
  }

  public static RegionInfo region(String table) {
    return RegionInfoBuilder.newBuilder(TableName.valueOf(table)).setRegionId(7).build();
  }

  /** As HRegion does it: only families whose scope is not local. */
  public static NavigableMap<byte[], Integer> scopes() {
    NavigableMap<byte[], Integer> scopes = new TreeMap<>(Bytes.BYTES_COMPARATOR);
    scopes.put(GLOBAL, 1);
    return scopes;
  }

  public static WALKeyImpl key(RegionInfo region, long seq, NavigableMap<byte[], Integer> scopes, UUID... clusterIds) {
    return new WALKeyImpl(region.getEncodedNameAsBytes(), region.getTable(), seq, 1000 + seq,
        new ArrayList<>(List.of(clusterIds)), 0, 0, new MultiVersionConcurrencyControl(), scopes);
  }

  /** Returns a segment without times. */
  static Segment segment(long prev, long seq) {
    return new Segment(prev, seq, 0, 0, 0, 0);
  }

  public static WALEdit edit(byte[]... families) {
    WALEdit edit = new WALEdit();
    for (byte[] family : families) {
      edit.add(new KeyValue(Bytes.toBytes("row"), family, Bytes.toBytes("q"), Bytes.toBytes("v")), family);
    }
    return edit;
  }

  /** Of one file. */
  public static WALEdit bulkLoad(RegionInfo region, byte[] family, boolean replicate) {
    Map<byte[], List<Path>> files = new TreeMap<>(Bytes.BYTES_COMPARATOR);
    files.put(family, List.of(new Path("hfile")));
    return bulkLoad(region, files, null, replicate);
  }

  /** @param clusterIds of the clusters that it has passed */
  public static WALEdit bulkLoad(RegionInfo region, Map<byte[], List<Path>> files, List<String> clusterIds,
      boolean replicate) {
    Map<String, Long> sizes = new HashMap<>();
    files.values().forEach(paths -> paths.forEach(path -> sizes.put(path.getName(), 1L)));
    return WALEdit.createBulkLoadEvent(region, ProtobufUtil.toBulkLoadDescriptor(region.getTable(),
        ByteString.copyFrom(region.getEncodedNameAsBytes()), files, sizes, 5, clusterIds, replicate));
  }

  /** Appends an entry of one cell to the head of its stream. */
  public static void append(ObservedState observed, RegionInfo region, long seq, long writeTime) {
    head(observed.heads.heads(region, ORIGIN, List.of()), GLOBAL).advance(seq, writeTime);
  }

  /** Number of entries in the head of a region's stream. */
  public static long entries(ObservedState observed, RegionInfo region) {
    return head(observed.heads.heads(region, ORIGIN, List.of()), GLOBAL).snapshot().count;
  }

  /** Whether a stamp is one of this entry. */
  public static boolean isValid(byte[] stamp, long seq) {
    return new StampCodec().decode(stamp, stamp.length, seq);
  }

  /** The row key of the stream of a family's local writes, as {@code FakeStore} has it. */
  public static String row(char type, String region, byte[] family) {
    return Bytes.toString(stream(region, family).rowKey(type));
  }

  public static String row(char type, String region) {
    return row(type, region, GLOBAL);
  }

  /** The union of the segments in a row's columns, in words. */
  public static String segments(StoredRow row) {
    SegmentSet all = new SegmentSet();
    row.values.forEach((qualifier, value) -> SegmentColumn.read(qualifier, value, all));
    return all.asList().toString();
  }

  public static byte[] stamp(WALKeyImpl key) {
    return key.getExtendedAttribute(StampCodec.ATTRIBUTE);
  }

  public static WALEntry entry(String region, long prev, long seq) {
    return entry(region, seq, stamp(prev, seq));
  }

  /** Of an entry of one cell; the entry before it was written at 1000 + prev. */
  public static byte[] stamp(long prev, long seq) {
    return stamp(prev, prev == 0 ? 0 : 1000 + prev, seq, GLOBAL);
  }

  /** Of an entry of a cell for each name; each family's previous entry is the same. */
  public static byte[] stamp(long prev, long prevTime, long seq, byte[]... families) {
    FamilyCells cells = cells(families);
    for (int i = 0; i < cells.size(); i++) {
      cells.follow(i, prev, prevTime);
    }
    return new StampCodec().encode(ORIGIN, 0, cells, seq);
  }

  /** The stream of a family's local writes. */
  public static StreamId stream(String region, byte[] family) {
    return new StreamId(region, ORIGIN, Ids.via(Ids.LOCAL, FamilyCells.id(family)));
  }

  public static StreamId stream(String region) {
    return stream(region, GLOBAL);
  }

  /** The head of a family's stream. */
  public static StreamHead head(FamilyHeads heads, byte[] family) {
    return heads.head(FamilyCells.id(family), id -> family);
  }

  /** One for each name. */
  public static FamilyCells cells(byte[]... families) {
    FamilyCells cells = new FamilyCells();
    for (byte[] family : families) {
      cells.add(FamilyCells.id(family), 1);
    }
    return cells;
  }

  /** As the sink makes it of cells of one row. */
  public static Put put(byte[]... families) {
    Put put = new Put(Bytes.toBytes("row"));
    for (byte[] family : families) {
      put.addColumn(family, Bytes.toBytes("q"), Bytes.toBytes("v"));
    }
    return put;
  }

  public static WALEntry entry(String region, long seq, byte[] stamp) {
    WALProtos.WALKey.Builder key = WALProtos.WALKey.newBuilder()
        .setEncodedRegionName(ByteString.copyFromUtf8(region))
        .setTableName(ByteString.copyFromUtf8("t"))
        .setLogSequenceNumber(seq)
        .setWriteTime(1000 + seq);
    if (stamp != null) {
      key.addExtendedAttributes(WALProtos.Attribute.newBuilder().setKey("other").setValue(ByteString.EMPTY));
      key.addExtendedAttributes(WALProtos.Attribute.newBuilder().setKey(StampCodec.ATTRIBUTE)
          .setValue(ByteString.copyFrom(stamp)));
    }
    return WALEntry.newBuilder().setKey(key).setAssociatedCellCount(1).build();
  }

  public static SinkBatch batch(WALEntry... entries) {
    SinkBatch batch = new SinkBatch(false, false);
    batch.begin();
    for (WALEntry entry : entries) {
      batch.add(entry, put(GLOBAL));
    }
    return batch;
  }

  /** Copies of segments as a test says: whether they take less than a put, and whether each is made. */
  static WriteThrough.Copies copies(BooleanSupplier areCheap, BooleanSupplier copy) {
    return new WriteThrough.Copies() {
      @Override
      public boolean areCheap() {
        return areCheap.getAsBoolean();
      }

      @Override
      public boolean copySoon() {
        return copy.getAsBoolean();
      }
    };
  }
}
