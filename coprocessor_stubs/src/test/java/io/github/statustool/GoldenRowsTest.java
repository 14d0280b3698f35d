package io.github.statustool;

import static org.junit.jupiter.api.Assertions.assertArrayEquals;
import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertFalse;
import static org.junit.jupiter.api.Assertions.assertNotNull;
import static org.junit.jupiter.api.Assertions.assertTrue;

import io.github.statustool.content.Marker;
import io.github.statustool.content.OpenTenure;
import io.github.statustool.content.TableEvents;
import io.github.statustool.digests.DigestJob;
import io.github.statustool.digests.FakeRequestTable;
import io.github.statustool.digests.SipHash128;
import io.github.statustool.recorder.Barrier;
import io.github.statustool.recorder.ObservedState;
import io.github.statustool.recorder.ServerRole;
import io.github.statustool.recorder.Sweep;
import io.github.statustool.server.PeerWatch;
import io.github.statustool.server.ServerSettings;
import io.github.statustool.state.Bits;
import io.github.statustool.state.Change;
import io.github.statustool.state.FakeStore;
import io.github.statustool.state.Health;
import io.github.statustool.state.Ids;
import io.github.statustool.state.Settings;
import io.github.statustool.state.SpoolLine;
import io.github.statustool.state.StateRow;
import io.github.statustool.state.StateTable.BarrierRow;
import io.github.statustool.state.StateTable.CoverageRow;
import io.github.statustool.state.StateTable.HeadRow;
import io.github.statustool.state.StateTable.ProvenRow;
import io.github.statustool.state.StateTable.PrunedRow;
import io.github.statustool.state.StateTable.SegmentRow;
import io.github.statustool.state.StateTable.ServerRow;
import io.github.statustool.state.StateTable.ToolRow;
import io.github.statustool.state.TableJson;
import io.github.statustool.streams.AppliedEntries;
import io.github.statustool.streams.FamilyCells;
import io.github.statustool.streams.FamilyHeads;
import io.github.statustool.streams.StampCodec;
import io.github.statustool.streams.StreamHead;
import io.github.statustool.streams.StreamId;
import io.github.statustool.streams.StreamSegments;
import io.github.statustool.streams.UnstampedEntries;
import java.io.IOException;
import java.io.InputStream;
import java.nio.charset.StandardCharsets;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.ArrayList;
import java.util.Arrays;
import java.util.List;
import java.util.Map;
import java.util.TreeSet;
import java.util.UUID;
import java.util.function.Consumer;
import java.util.stream.Collectors;
import org.apache.hadoop.conf.Configuration;
import org.apache.hadoop.hbase.ArrayBackedTag;
import org.apache.hadoop.hbase.KeyValue;
import org.apache.hadoop.hbase.ServerName;
import org.apache.hadoop.hbase.TableName;
import org.apache.hadoop.hbase.Tag;
import org.apache.hadoop.hbase.client.ColumnFamilyDescriptorBuilder;
import org.apache.hadoop.hbase.client.RegionInfo;
import org.apache.hadoop.hbase.client.RegionInfoBuilder;
import org.apache.hadoop.hbase.client.TableDescriptor;
import org.apache.hadoop.hbase.client.TableDescriptorBuilder;
import org.apache.hadoop.hbase.util.Bytes;
import org.apache.hadoop.hbase.util.EnvironmentEdgeManager;
import org.apache.hadoop.hbase.util.ManualEnvironmentEdge;
import org.apache.hadoop.hbase.wal.WALEdit;
import org.junit.jupiter.api.AfterEach;
import org.junit.jupiter.api.BeforeEach;
import org.junit.jupiter.api.Test;

/**
 * Every kind of row of the state table, byte by byte, as lines of a spool file. What the trackers write has to be what
 * {@code state/tracker-rows.jsonl} holds, and what the tool writes, in {@code state/tool-rows.jsonl}, has to be what
 * they read. The tool tests the same two files: tests/unit/test_golden_rows.py. If rows are to change:
 * {@code mvn test -Dtest=GoldenRowsTest -Dgolden.write=src/test/resources/state/tracker-rows.jsonl}.
 */
class GoldenRowsTest {
  private static final UUID ONE = new UUID(0x0102030405060708L, 0x090a0b0c0d0e0f10L);
  private static final UUID TWO = new UUID(0xf1f2f3f4f5f6f7f8L, 0xf9fafbfcfdfeff00L);
  private static final String TABLE = "ns:t";
  private static final String OTHER_REGION = "0123456789abcdef0123456789abcdef";
  private static final byte[] TOKEN = Bits.ascii("0123456789abcdef");
  private static final long NOW = 1_700_000_100_000L;

  private final RegionInfo region = RegionInfoBuilder.newBuilder(TableName.valueOf(TABLE)).setRegionId(7)
      .setStartKey(new byte[] {0, 1}).setEndKey(new byte[] {(byte) 0xff}).build();
  private final FakeStore store = new FakeStore();
  private final ObservedState observed = new ObservedState(Fixtures.health(), () -> NOW);
  private final List<StateRow> rows = new ArrayList<>();

  @BeforeEach
  void keepWhatIsWritten() {
    store.written = new ArrayList<>();
  }

  @AfterEach
  void resetClock() {
    EnvironmentEdgeManager.reset();
  }

  private void heads() {
    StreamHead local = Fixtures.head(observed.heads.heads(region, Fixtures.ORIGIN, List.of()), Fixtures.GLOBAL);
    local.advance(2, 1002);
    local.advance(5, 1001);
    FamilyHeads relayed = observed.heads.heads(region, Fixtures.ORIGIN, List.of(TWO, ONE));
    Fixtures.head(relayed, Fixtures.GLOBAL).advance(6, 1006);
    relayed.head(FamilyCells.UNKNOWN, id -> new byte[0]).advance(6, 1006);
    FamilyHeads life = observed.heads.anotherLife(region, Fixtures.ORIGIN, List.of(), 3, 1007);
    Fixtures.head(life, Fixtures.GLOBAL).advance(3, 1007);
    collect(observed.headChanges());
    long before = 1_002L; // a head of trackers before version 3
    rows.add(new StateRow(new StreamId(OTHER_REGION, Fixtures.ORIGIN, 0).rowKey(HeadRow.TYPE))
        .add(HeadRow.SEQ, 2, 2).add(HeadRow.WRITE_MS, before, 2).add(HeadRow.FIRST_MS, before, 2)
        .add(HeadRow.ENTRIES, 1, 2).add(HeadRow.TABLE, Bits.utf8(TABLE), 2)
        .add(HeadRow.START_KEY, new byte[0], 2).add(HeadRow.END_KEY, new byte[0], 2));
  }

  private void segments() {
    StreamId id = new StreamId(OTHER_REGION, Fixtures.ORIGIN, -2);
    AppliedEntries.Builder applied = new AppliedEntries.Builder(id, TABLE, null);
    applied.add(0, 0, 4, 1004);
    applied.add(4, 1004, 5, 1003);
    applied.add(7, StampCodec.UNKNOWN_TIME, 9, 1009);
    applied.partial(FamilyCells.id(Bits.ascii("g")), 1004);
    applied.partial(0, 1009);
    StreamSegments record = new StreamSegments(id, TABLE, null, 0x1112131415161718L);
    record.add(applied.build(NOW), NOW);
    rows.add(record.toChange(NOW).row);
    StreamId stream = Fixtures.stream(OTHER_REGION);
    AppliedEntries.Builder ofFamily = new AppliedEntries.Builder(stream, TABLE, Fixtures.GLOBAL);
    ofFamily.add(0, 0, 4, 1004);
    StreamSegments own = new StreamSegments(stream, TABLE, Fixtures.GLOBAL, 0x2122232425262728L);
    own.add(ofFamily.build(NOW), NOW);
    rows.add(own.toChange(NOW).row);
  }

  private void unstamped() {
    UnstampedEntries entries = new UnstampedEntries(OTHER_REGION.replace('0', 'f'), TABLE,
        Ids.sortedBytes(List.of(TWO, ONE)));
    entries.add(1001);
    entries.add(1000);
    rows.add(entries.toRow());
  }

  private void facts() {
    String name = region.getEncodedName();
    observed.facts.bulkLoad(name, TABLE, 1010, true);
    observed.facts.bulkLoad(name, TABLE, 1011, false);
    observed.facts.parent(name, TABLE, "split", 7, 1012);
    observed.facts.child(name, TABLE, 1008);
    observed.facts.parent(OTHER_REGION, TABLE, "merge", 8, 1013);
    collect(observed.otherChanges(NOW));
  }

  private void content() {
    String hfile = "00112233445566778899aabbccddeeff";
    Marker opened = new Marker(Fixtures.ORIGIN, region, 4, 1004, List.of(), List.of("g"));
    OpenTenure tenure = new OpenTenure(opened, 3, Map.of("g", List.of(hfile, "other=" + OTHER_REGION + "-" + hfile)));
    tenure.files("l").add(List.of(hfile + "_SeqId_5_"));
    tenure.tenure.flushed = 5;
    tenure.changed(new Marker(Fixtures.ORIGIN, region, 6, 1006, List.of(), List.of("g")), true);
    rows.add(tenure.change(() -> NOW).row);
    Marker again = new Marker(Fixtures.ORIGIN, region, 8, 1008, List.of(), List.of());
    rows.add(new OpenTenure(again, 7, Map.of()).change(() -> NOW + 1).row);
  }

  private void tableEvents() {
    observed.tableEvents.arrived(TABLE, 1000);
    observed.tableEvents.regions(List.of(open(2, 0, Map.of("f", 1, "g", 0))));
    observed.tableEvents.regions(List.of(open(5, 3, Map.of("g", 1))));
    WALEdit edit = new WALEdit();
    byte[] row = Bytes.toBytes("row");
    edit.add(new KeyValue(row, Fixtures.GLOBAL, null, 5, KeyValue.Type.Delete));
    edit.add(new KeyValue(row, Fixtures.GLOBAL, null, 5, null, new Tag[] {new ArrayBackedTag((byte) 1, "tag")}));
    observed.tableWrites.of(TABLE).add(30_000, edit, true, true);
    collect(observed.otherChanges(NOW));
  }

  private static TableEvents.OpenRegion open(long openSeq, long skipped, Map<String, Integer> scopes) {
    return new TableEvents.OpenRegion("r", TABLE, 900, openSeq, scopes, skipped, 2000 + openSeq);
  }

  private void servers() throws IOException {
    ServerRole writer = new ServerRole(ServerRole.WRITER, Fixtures.SERVER, 1000);
    Barrier.Echo echo = new Barrier.Echo(TOKEN, 2001);
    rows.add(writer.row(2000L, echo, ServerRole.End.CLEAN, health().json(3, peers()), NOW).row);
    ServerRole replicator = new ServerRole(ServerRole.REPLICATOR, Fixtures.SERVER, 1000);
    StateRow unflushed = replicator.row(null, null, ServerRole.End.NONE, Fixtures.health().json(0, null), NOW).row;
    store.put(List.of(unflushed));
    new Sweep(new Settings(Fixtures.conf()), () -> NOW, (server, live) -> false).run(store, true);
  }

  private static Health health() {
    ManualEnvironmentEdge clock = new ManualEnvironmentEdge();
    clock.setValue(NOW - 5);
    EnvironmentEdgeManager.injectEdge(clock);
    Health health = Fixtures.health();
    health.error("a hook", new IOException("x"));
    health.failedWrite("a write", new IOException("x"));
    health.clockWasSetBack(NOW - 4);
    health.sinkHookIsMissing();
    Configuration conf = new Configuration(false);
    conf.set("hbase.replication.rpc.codec", "org.apache.hadoop.hbase.codec.KeyValueCodecWithTags");
    conf.set("hbase.hlog.split.skip.errors", "true");
    conf.set("hbase.coprocessor.wal.classes", "com.x.Wal|5, io.github.statustool.WriteTimeTracker, com.x.Other");
    health.serverSettings(ServerSettings.json(conf));
    return health;
  }

  private static String peers() {
    Map<String, Object> inForce = Map.of("1", new Object());
    PeerWatch watch = new PeerWatch(() -> new PeerWatch.Source() {
      @Override
      public Map<String, Object> inForce() {
        return inForce;
      }

      @Override
      public void readZnode(String peer, Object config, Consumer<PeerWatch.Answer> receiver) {
        receiver.accept(new PeerWatch.Answer(peer, config, 77, 2));
      }
    }, () -> NOW);
    watch.check();
    watch.check();
    return watch.json().toString();
  }

  private void barrier() throws IOException {
    store.put(List.of(new StateRow(BarrierRow.KEY).add(BarrierRow.TOKEN, TOKEN, 1)));
    TableDescriptor table = TableDescriptorBuilder.newBuilder(TableName.valueOf(TABLE))
        .setColumnFamily(ColumnFamilyDescriptorBuilder.newBuilder(Fixtures.GLOBAL)
            .setScope(1).setTimeToLive(60).build())
        .setColumnFamily(ColumnFamilyDescriptorBuilder.of(Fixtures.LOCAL)).setCoprocessor("com.x.Own").build();
    store.tables.put(TABLE, TableJson.of(table, false));
    store.written.clear();
    Barrier barrier = new Barrier(() -> NOW);
    barrier.read(store, null);
    barrier.describeTables(store);
  }

  private void collect(List<Change> changes) {
    for (Change change : changes) {
      rows.add(change.row);
      change.stored();
    }
  }

  @Test
  void theTrackersWriteTheGoldenRows() throws IOException {
    heads();
    segments();
    unstamped();
    facts();
    content();
    tableEvents();
    servers();
    rows.addAll(store.written);
    barrier();
    rows.addAll(store.written);
    TreeSet<String> lines = new TreeSet<>();
    rows.forEach(row -> lines.add(SpoolLine.of(row)));
    String target = System.getProperty("golden.write");
    if (target != null) {
      Files.write(Path.of(target), lines);
    }
    assertEquals(String.join("\n", golden("tracker-rows")), String.join("\n", lines));
  }

  @Test
  void theTrackersReadWhatTheToolWrites() throws IOException {
    for (String line : golden("tool-rows")) {
      store.put(List.of(SpoolLine.parse(line)));
    }
    byte[] token = Bits.unhex("000102030405060708090a0b0c0d0e0f");
    assertArrayEquals(token, new Barrier(() -> NOW).read(store, null).token);
    assertEquals(NOW, store.number(BarrierRow.KEY, BarrierRow.ISSUED_MS));
    assertEquals(8, store.value(BarrierRow.KEY, BarrierRow.PRUNING).length);
    assertEquals(8, store.value(BarrierRow.KEY, BarrierRow.TABLE_ID).length);
    assertEquals(NOW - 1, store.number(ToolRow.KEY, ToolRow.SHUTDOWN_MS));
    byte[] master = Bits.ascii("01020304-0506-0708-090a-0b0c0d0e0f10");
    assertEquals(NOW - 4, store.number(ToolRow.KEY, Bits.concat(ToolRow.PRUNED_BY, master)));
    byte[] passed = Bits.concat(PrunedRow.WRITTEN_MS, Ids.sortedBytes(List.of(TWO, ONE)));
    assertEquals(NOW - 2, store.number(Bits.utf8(PrunedRow.TYPE + TABLE), passed));
    assertEquals(NOW - 3, store.number(Bits.utf8(PrunedRow.TYPE + "u"), PrunedRow.WRITTEN_MS));
    byte[] proof = store.value(Bits.utf8(ProvenRow.TYPE + TABLE), Bits.concat(ProvenRow.PROVEN, master));
    assertTrue(Bytes.toString(proof).contains("\"until_ms\""));
  }

  /** The proof must neither hide that the server is gone, nor make it look like one without a tracker. */
  @Test
  void aServerThatTheToolHasSettledIsATrackedOne() throws IOException {
    for (String line : golden("tool-rows")) {
      store.put(List.of(SpoolLine.parse(line)));
    }
    byte[] row = new ServerRole(ServerRole.WRITER, Fixtures.SERVER, 0).key();
    assertEquals("{\"incarnation\": 77, \"at_ms\": 1700000100000, \"filter\": \"\"}",
        Bytes.toString(store.value(row, Bits.concat(ServerRow.SETTLED, Bits.ascii("1")))));
    Sweep sweep = new Sweep(new Settings(Fixtures.conf()), () -> NOW, (server, live) -> false);
    store.live.add(ServerName.valueOf(Fixtures.SERVER));
    sweep.recordLive(store);
    store.live.clear();
    sweep.run(store, true);
    assertEquals(NOW, store.number(row, ServerRow.GONE_MS));
    assertEquals(1, store.written.stream().filter(each -> Arrays.equals(each.key, CoverageRow.KEY)).count(),
        "coverage began and was not interrupted");
  }

  @Test
  void aRequestForRowDigestsIsTakenUpUntilItIsWithdrawn() throws IOException {
    store.put(List.of(SpoolLine.parse(golden("tool-doorbell").get(0))));
    Barrier barrier = new Barrier(() -> NOW);
    barrier.read(store, null);
    assertEquals(SipHash128.KEY_BYTES + Long.BYTES, barrier.doorbell().length);
    byte[] request = Arrays.copyOf(barrier.doorbell(), SipHash128.KEY_BYTES);
    FakeRequestTable table = new FakeRequestTable();
    List<String> lines = golden("tool-requests");
    for (String line : lines.subList(0, 2)) {
      table.put(List.of(SpoolLine.parse(line)));
    }
    DigestJob job = new DigestJob(request, null, Bits.hex(Fixtures.ORIGIN), 0);
    job.refresh(table, 0);
    assertTrue(job.hasWork(), "the page is this server's");
    assertFalse(job.isOver());
    table.put(List.of(SpoolLine.parse(lines.get(2))));
    job.refreshNow(1);
    job.refresh(table, 1);
    assertTrue(job.isOver());
  }

  private static List<String> golden(String name) throws IOException {
    try (InputStream in = GoldenRowsTest.class.getResourceAsStream("/state/" + name + ".jsonl")) {
      assertNotNull(in, name);
      String text = new String(in.readAllBytes(), StandardCharsets.UTF_8);
      return text.lines().collect(Collectors.toList());
    }
  }
}
