package io.github.statustool;

import io.github.statustool.recorder.Recorder;
import io.github.statustool.state.Ids;
import io.github.statustool.state.Settings;
import io.github.statustool.state.Spool;
import io.github.statustool.streams.FamilyCells;
import io.github.statustool.streams.StampCodec;
import io.github.statustool.streams.WalStamper;
import java.nio.file.Path;
import java.util.ArrayList;
import java.util.List;
import java.util.NavigableMap;
import java.util.TreeMap;
import java.util.UUID;
import java.util.concurrent.TimeUnit;
import org.apache.hadoop.conf.Configuration;
import org.apache.hadoop.hbase.KeyValue;
import org.apache.hadoop.hbase.TableName;
import org.apache.hadoop.hbase.client.Put;
import org.apache.hadoop.hbase.client.RegionInfo;
import org.apache.hadoop.hbase.client.RegionInfoBuilder;
import org.apache.hadoop.hbase.regionserver.MultiVersionConcurrencyControl;
import org.apache.hadoop.hbase.shaded.protobuf.generated.AdminProtos.WALEntry;
import org.apache.hadoop.hbase.shaded.protobuf.generated.WALProtos;
import org.apache.hadoop.hbase.util.Bytes;
import org.apache.hadoop.hbase.wal.WALEdit;
import org.apache.hadoop.hbase.wal.WALKeyImpl;
import org.apache.hbase.thirdparty.com.google.protobuf.ByteString;
import org.openjdk.jmh.annotations.Benchmark;
import org.openjdk.jmh.annotations.BenchmarkMode;
import org.openjdk.jmh.annotations.Fork;
import org.openjdk.jmh.annotations.Measurement;
import org.openjdk.jmh.annotations.Mode;
import org.openjdk.jmh.annotations.OperationsPerInvocation;
import org.openjdk.jmh.annotations.OutputTimeUnit;
import org.openjdk.jmh.annotations.Scope;
import org.openjdk.jmh.annotations.Setup;
import org.openjdk.jmh.annotations.State;
import org.openjdk.jmh.annotations.Warmup;

/**
 * What the hooks cost an entry. A hook needs a fresh key each time, whose making is HBase's: {@link #walBaseline} is
 * that part alone, to be taken off {@link #walHooks}. {@link #walUnscoped} is an entry that is not replicated.
 */
@State(Scope.Thread)
@BenchmarkMode(Mode.AverageTime)
@OutputTimeUnit(TimeUnit.NANOSECONDS)
@Warmup(iterations = 4, time = 1)
@Measurement(iterations = 6, time = 1)
@Fork(2)
public class HookBenchmark {
  private static final int REGIONS = 200;
  private static final int BATCH = 1000;
  private static final long ORIGIN = Ids.origin("master.example.org,16020,1700000000000");

  private final MultiVersionConcurrencyControl mvcc = new MultiVersionConcurrencyControl();
  private final NavigableMap<byte[], Integer> scopes = new TreeMap<>(Bytes.BYTES_COMPARATOR);
  private final List<UUID> local = List.of();
  private final List<UUID> relayed = List.of(new UUID(1, 2));
  private final RegionInfo[] regions = new RegionInfo[REGIONS];
  private final byte[][] names = new byte[REGIONS][];
  private final WALEdit edit = new WALEdit();
  private final Put put = new Put(Bytes.toBytes("row"));
  private final List<WALEntry> batch = new ArrayList<>();
  private WriteTimeTracker writer;
  private ReplicateTimeTracker replicator;
  private long seq;

  /** Regions of one table with one replicated family, and one request of entries that interleave ten regions. */
  @Setup
  public void setUp() {
    byte[] family = Bytes.toBytes("f");
    scopes.put(family, 1);
    edit.add(new KeyValue(Bytes.toBytes("row"), family, Bytes.toBytes("q"), Bytes.toBytes("value")), family);
    for (int i = 0; i < REGIONS; i++) {
      regions[i] = RegionInfoBuilder.newBuilder(TableName.valueOf("t")).setStartKey(Bytes.toBytes(i))
          .setEndKey(Bytes.toBytes(i + 1)).build();
      names[i] = regions[i].getEncodedNameAsBytes();
    }
    Recorder recorder = recorder();
    writer = new WriteTimeTracker(recorder, new WalStamper(ORIGIN, recorder.settings(), recorder.observed(),
        recorder.health()));
    replicator = new ReplicateTimeTracker(recorder);
    fillBatch();
  }

  private static Recorder recorder() {
    Configuration conf = new Configuration(false);
    Settings settings = new Settings(conf);
    Spool spool = new Spool(conf, new org.apache.hadoop.fs.Path(Path.of("unused").toUri()));
    return new Recorder(settings, () -> null, spool, System::currentTimeMillis);
  }

  private void fillBatch() {
    StampCodec codec = new StampCodec();
    byte[] family = Bytes.toBytes("f");
    FamilyCells cells = new FamilyCells();
    cells.add(FamilyCells.id(family), 1);
    put.addColumn(family, Bytes.toBytes("q"), Bytes.toBytes("value"));
    long[] heads = new long[10];
    for (int i = 0; i < BATCH; i++) {
      int region = i / 10 % heads.length;
      cells.follow(0, heads[region], heads[region]);
      byte[] stamp = codec.encode(ORIGIN, 0, cells, i + 1);
      heads[region] = i + 1;
      batch.add(WALEntry.newBuilder().setKey(WALProtos.WALKey.newBuilder()
          .setEncodedRegionName(ByteString.copyFrom(names[region])).setTableName(ByteString.copyFromUtf8("t"))
          .setLogSequenceNumber(i + 1).setWriteTime(i)
          .addExtendedAttributes(WALProtos.Attribute.newBuilder().setKey(StampCodec.ATTRIBUTE)
              .setValue(ByteString.copyFrom(stamp)))).build());
    }
  }

  private WALKeyImpl key(NavigableMap<byte[], Integer> keyScopes, List<UUID> clusterIds) {
    int region = (int) (++seq % REGIONS);
    return new WALKeyImpl(names[region], regions[region].getTable(), seq, seq, clusterIds, 0, 0, mvcc, keyScopes);
  }

  private WALKeyImpl pass(WALKeyImpl key) {
    RegionInfo region = regions[(int) (seq % REGIONS)];
    writer.preWALWrite(null, region, key, edit);
    writer.postWALWrite(null, region, key, edit);
    return key;
  }

  /** A key and nothing else. */
  @Benchmark
  public WALKeyImpl walBaseline() {
    return key(scopes, local);
  }

  /** Both hooks for a local write. */
  @Benchmark
  public WALKeyImpl walHooks() {
    return pass(key(scopes, local));
  }

  /** Both hooks for an edit that came from another cluster. */
  @Benchmark
  public WALKeyImpl walHooksRelayed() {
    return pass(key(scopes, relayed));
  }

  /** Both hooks for a write to a table that is not replicated. */
  @Benchmark
  public WALKeyImpl walUnscoped() {
    return pass(key(null, local));
  }

  /** One request of 1000 entries of ten regions, up to the write-through (which finds no table). */
  @Benchmark
  @OperationsPerInvocation(BATCH)
  public void sinkHooks() {
    replicator.preReplicateLogEntries(null);
    for (int i = 0; i < BATCH; i++) {
      replicator.postReplicationSinkBatchMutate(null, batch.get(i), put);
    }
    replicator.postReplicateLogEntries(null);
  }
}
