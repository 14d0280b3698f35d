package io.github.statustool.recorder;

import static org.junit.jupiter.api.Assertions.assertArrayEquals;
import static org.junit.jupiter.api.Assertions.assertEquals;

import io.github.statustool.server.ServerSettings;
import io.github.statustool.state.FakeStore;
import io.github.statustool.state.GoldenRows;
import io.github.statustool.state.Health;
import io.github.statustool.state.Settings;
import io.github.statustool.state.StateRow;
import io.github.statustool.state.StateTable.BarrierRow;
import io.github.statustool.state.StateTable.CoverageRow;
import io.github.statustool.state.StateTable.ServerRow;
import io.github.statustool.streams.Fixtures;
import java.io.IOException;
import java.util.ArrayList;
import java.util.Arrays;
import java.util.List;
import java.util.Set;
import org.apache.hadoop.conf.Configuration;
import org.apache.hadoop.hbase.ServerName;
import org.apache.hadoop.hbase.TableName;
import org.apache.hadoop.hbase.client.ColumnFamilyDescriptorBuilder;
import org.apache.hadoop.hbase.client.TableDescriptor;
import org.apache.hadoop.hbase.client.TableDescriptorBuilder;
import org.apache.hadoop.hbase.util.Bytes;
import org.apache.hadoop.hbase.util.EnvironmentEdgeManager;
import org.apache.hadoop.hbase.util.ManualEnvironmentEdge;
import org.junit.jupiter.api.AfterEach;
import org.junit.jupiter.api.BeforeEach;
import org.junit.jupiter.api.Test;

class ServerRowsTest {
  private static final String TABLE = "ns:t";
  private static final byte[] TOKEN = Bytes.toBytes("0123456789abcdef");
  private static final long NOW = 1_700_000_100_000L;

  private final FakeStore store = new FakeStore();
  private final List<StateRow> rows = new ArrayList<>();

  @BeforeEach
  void keepWhatIsWritten() {
    store.written = new ArrayList<>();
  }

  @AfterEach
  void resetClock() {
    EnvironmentEdgeManager.reset();
  }

  private void servers() throws IOException {
    ServerRole writer = new ServerRole(ServerRole.WRITER, Fixtures.SERVER);
    Barrier.Echo echo = new Barrier.Echo(TOKEN, 2001);
    rows.add(writer.row(2000L, echo, ServerRole.End.CLEAN, health().json(3, "{\"1\":[77,2,2,1700000100000]}"), NOW).row);
    ServerRole replicator = new ServerRole(ServerRole.REPLICATOR, Fixtures.SERVER);
    StateRow unflushed = replicator.row(null, null, ServerRole.End.NONE, Fixtures.health().json(0, null), NOW).row;
    store.put(List.of(unflushed));
    new Sweep(new Settings(Fixtures.conf()), () -> NOW, (server, live) -> false)
        .run(store, Set.of(ServerRole.WRITER, ServerRole.REPLICATOR));
  }

  private static Health health() {
    ManualEnvironmentEdge clock = new ManualEnvironmentEdge();
    clock.setValue(NOW - 5);
    EnvironmentEdgeManager.injectEdge(clock);
    Health health = Fixtures.health();
    health.error("a hook", new IOException("x"));
    health.failedWrite("a write", new IOException("x"));
    health.clockWasSetBack(NOW - 4, NOW - 5);
    health.sinkHookIsMissing();
    Configuration conf = new Configuration(false);
    conf.set("hbase.replication.rpc.codec", "org.apache.hadoop.hbase.codec.KeyValueCodecWithTags");
    conf.set("hbase.hlog.split.skip.errors", "true");
    conf.set("hbase.coprocessor.wal.classes", "com.x.Wal|5, io.github.statustool.WriteTimeTracker, com.x.Other");
    health.serverSettings(new ServerSettings(conf, new Settings(conf))::json);
    return health;
  }

  private void barrier() throws IOException {
    store.put(List.of(new StateRow(BarrierRow.KEY).add(BarrierRow.TOKEN, TOKEN, 1)));
    TableDescriptor table = TableDescriptorBuilder.newBuilder(TableName.valueOf(TABLE))
        .setColumnFamily(ColumnFamilyDescriptorBuilder.newBuilder(Fixtures.GLOBAL)
            .setScope(1).setTimeToLive(60).build())
        .setColumnFamily(ColumnFamilyDescriptorBuilder.of(Fixtures.LOCAL)).setCoprocessor("com.x.Own").build();
    store.describe(table, false);
    store.written.clear();
    Barrier barrier = new Barrier(() -> NOW, 7);
    barrier.read(store, null);
    barrier.describeTables(store);
  }

  @Test
  void theRowsOfServersAndTablesAreTheGoldenOnes() throws IOException {
    servers();
    rows.addAll(store.written);
    barrier();
    rows.addAll(store.written);
    GoldenRows.assertWritten("obct", rows);
  }

  @Test
  void theToolsTokenIsRead() throws IOException {
    store.put(GoldenRows.read("tool-rows"));
    byte[] token = new byte[] {0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15};
    assertArrayEquals(token, new Barrier(() -> NOW).read(store, null).token);
  }

  /** The proof must neither hide that the server is gone, nor make it look like one without a tracker. */
  @Test
  void aServerThatTheToolHasSettledIsATrackedOne() throws IOException {
    store.put(GoldenRows.read("tool-rows"));
    byte[] row = new ServerRole(ServerRole.WRITER, Fixtures.SERVER).key();
    assertEquals("{\"incarnation\": 77, \"at_ms\": 1700000100000, \"filter\": \"\"}",
        Bytes.toString(store.value(row, Bytes.add(ServerRow.SETTLED, Bytes.toBytes("1")))));
    Sweep sweep = new Sweep(new Settings(Fixtures.conf()), () -> NOW, (server, live) -> false);
    store.live.add(ServerName.valueOf(Fixtures.SERVER));
    sweep.recordLive(store);
    store.live.clear();
    sweep.run(store, Set.of(ServerRole.WRITER));
    assertEquals(NOW, store.number(row, ServerRow.GONE_MS));
    assertEquals(1, store.written.stream().filter(each -> Arrays.equals(each.key, CoverageRow.KEY)).count(),
        "coverage began and was not interrupted");
  }
}
