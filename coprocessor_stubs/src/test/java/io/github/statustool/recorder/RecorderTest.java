package io.github.statustool.recorder;

import static org.junit.jupiter.api.Assertions.assertArrayEquals;
import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertFalse;
import static org.junit.jupiter.api.Assertions.assertNotNull;
import static org.junit.jupiter.api.Assertions.assertNull;
import static org.junit.jupiter.api.Assertions.assertThrows;
import static org.junit.jupiter.api.Assertions.assertTrue;

import io.github.statustool.content.MarkerForwarder;
import io.github.statustool.content.TableEvents;
import io.github.statustool.content.TableWrites;
import io.github.statustool.server.ObservedServer;
import io.github.statustool.server.ObservedWal;
import io.github.statustool.state.FakeStore;
import io.github.statustool.state.Settings;
import io.github.statustool.state.Spool;
import io.github.statustool.state.StateRow;
import io.github.statustool.state.StateTable;
import io.github.statustool.state.StateTable.BarrierRow;
import io.github.statustool.state.StateTable.ContentRow;
import io.github.statustool.state.StateTable.CoverageRow;
import io.github.statustool.state.StateTable.FactRow;
import io.github.statustool.state.StateTable.HeadRow;
import io.github.statustool.state.StateTable.SegmentRow;
import io.github.statustool.state.StateTable.ServerRow;
import io.github.statustool.state.StateTable.TableEventRow;
import io.github.statustool.state.StateTable.TableRow;
import io.github.statustool.state.StoredRow;
import io.github.statustool.streams.Fixtures;
import java.io.IOException;
import java.io.UncheckedIOException;
import java.nio.file.Path;
import java.util.ArrayList;
import java.util.Collections;
import java.util.List;
import java.util.Map;
import java.util.Set;
import java.util.concurrent.atomic.AtomicLong;
import org.apache.hadoop.hbase.HConstants;
import org.apache.hadoop.hbase.KeyValue;
import org.apache.hadoop.hbase.ServerName;
import org.apache.hadoop.hbase.client.ColumnFamilyDescriptorBuilder;
import org.apache.hadoop.hbase.client.RegionInfo;
import org.apache.hadoop.hbase.client.TableDescriptor;
import org.apache.hadoop.hbase.client.TableDescriptorBuilder;
import org.apache.hadoop.hbase.shaded.protobuf.ProtobufUtil;
import org.apache.hadoop.hbase.shaded.protobuf.generated.WALProtos.FlushDescriptor.FlushAction;
import org.apache.hadoop.hbase.shaded.protobuf.generated.WALProtos.RegionEventDescriptor.EventType;
import org.apache.hadoop.hbase.util.Bytes;
import org.apache.hadoop.hbase.wal.WALEdit;
import org.junit.jupiter.api.BeforeEach;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.io.TempDir;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.ValueSource;

class RecorderTest {
  private static final byte[] TOKEN = Bytes.toBytes("0123456789abcdef");
  private static final byte[] OTHER_TOKEN = Bytes.toBytes("fedcba9876543210");
  private static final String OTHER_SERVER = "other,16020,1700000000001";

  @TempDir
  private Path folder;

  private final AtomicLong clock = new AtomicLong(1_700_000_100_000L);
  private final FakeStore store = new FakeStore();
  private final FakeWatch wal = new FakeWatch();
  private final FakeWatch server = new FakeWatch();
  private final RegionInfo region = Fixtures.region("t");
  private final byte[] writerRow = new ServerRole(ServerRole.WRITER, Fixtures.SERVER).key();
  private final byte[] replicatorRow = new ServerRole(ServerRole.REPLICATOR, Fixtures.SERVER).key();
  private Spool spool;
  private Recorder recorder;
  private long nextSeq = 1;

  /** Something of a server that a test ends. */
  private static final class FakeWatch implements ObservedWal, ObservedServer {
    private String name = Fixtures.SERVER;
    private boolean over;
    private boolean closing;
    private boolean broken;
    private boolean torn;
    private Runnable inRingBuffer = () -> { };
    private String peers;
    private boolean expiring;
    /** Number of mutations that bypassed the WAL. */
    private long skipped;

    @Override
    public List<TableEvents.OpenRegion> openRegions() {
      int ttl = expiring ? 86_400 : HConstants.FOREVER;
      TableDescriptor table = TableDescriptorBuilder.newBuilder(Fixtures.STATE_TABLE)
          .setColumnFamily(ColumnFamilyDescriptorBuilder.newBuilder(StateTable.FAMILY).setTimeToLive(ttl).build())
          .build();
      return List.of(new TableEvents.OpenRegion("r", Fixtures.STATE_TABLE.getNameAsString(), 5, Map.of(), 0,
          table, Map::of, 0), new TableEvents.OpenRegion("s", "t", 5, Map.of(), skipped, table, Map::of, 7));
    }

    @Override
    public String peers() {
      return peers;
    }

    @Override
    public String serverName() {
      return name;
    }

    @Override
    public boolean isOver() {
      return over;
    }

    @Override
    public boolean isClosing() {
      return closing || over;
    }

    @Override
    public void sync() throws IOException {
      if (broken) {
        throw new IOException("the file system is down");
      }
      Runnable appended = inRingBuffer;
      inRingBuffer = () -> { };
      appended.run();
    }

    @Override
    public boolean isDurable() {
      return !torn;
    }

    @Override
    public void checkPeers() {}

    @Override
    public void checkWals() {}

    @Override
    public Map<String, Map<String, Boolean>> filesOf(String region) {
      return Map.of();
    }
  }

  @BeforeEach
  void makeRecorder() {
    spool = new Spool(Fixtures.conf(), new org.apache.hadoop.fs.Path(folder.toUri()));
    store.live.add(ServerName.valueOf(Fixtures.SERVER));
    recorder = new Recorder(new Settings(Fixtures.conf("updatedelay", "30000", "updateperiod", "20000")),
        () -> store, spool, clock::get);
    recorder.roles().watchWal(wal);
    recorder.roles().watchServer(server);
  }

  private void append() {
    Fixtures.append(recorder.observed(), region, nextSeq, clock.get());
    nextSeq++;
  }

  private byte[] headRow() {
    return Bytes.toBytes(Fixtures.row(HeadRow.TYPE, region.getEncodedName()));
  }

  private void tick(long later) {
    clock.addAndGet(later);
    recorder.tick();
  }

  private void issue(byte[] token) throws IOException {
    store.put(List.of(new StateRow(BarrierRow.KEY).add(BarrierRow.TOKEN, token, StateRow.SERVER_TIME)));
    store.log.clear();
  }

  private void issueAndEcho() throws IOException {
    issue(TOKEN);
    tick(1_000);
    assertArrayEquals(TOKEN, store.value(writerRow, ServerRow.ECHO));
  }

  private boolean isWritten(byte[] row) {
    return store.log.contains(FakeStore.text(row));
  }

  private void appendAndFlushTwice() {
    append();
    tick(30_000);
    tick(20_000);
  }

  private void end() {
    wal.over = true;
    server.over = true;
    tick(1);
  }

  private void assertTheTableHasLostRowsNow() {
    assertEquals(clock.get(), store.number(CoverageRow.KEY, CoverageRow.BACK_MS));
    assertEquals(clock.get(), store.number(CoverageRow.KEY, CoverageRow.START_MS));
  }

  @Test
  void theServersRowIsThereAtOnceButSaysNothingOfAFlush() {
    append();
    recorder.tick();
    assertArrayEquals(Bytes.toBytes(Fixtures.SERVER), store.value(writerRow, ServerRow.NAME));
    assertNotNull(store.value(replicatorRow, ServerRow.NAME));
    assertNull(store.value(writerRow, ServerRow.FLUSHED_MS));
    assertNull(store.value(headRow(), HeadRow.SEQ));
  }

  @Test
  void theFirstFlushComesAfterTheDelayTheNextAfterThePeriod() {
    append();
    tick(29_999);
    assertNull(store.value(headRow(), HeadRow.SEQ));
    tick(1);
    assertEquals(1, store.number(headRow(), HeadRow.SEQ));
    assertEquals(clock.get(), store.number(writerRow, ServerRow.FLUSHED_MS));
    append();
    tick(19_999);
    assertEquals(1, store.number(headRow(), HeadRow.SEQ));
    tick(1);
    assertEquals(2, store.number(headRow(), HeadRow.SEQ));
  }

  /** A reader may conclude that entries appended after the flush of the row are in the queues of these peers. */
  @Test
  void newsOfPeersGoWithAFlushAtOnceAndOnlyWithAFlush() {
    server.peers = "{\"1\":[7,0,0,5]}";
    store.down = true;
    recorder.tick();
    store.down = false;
    append();
    tick(5_000);
    assertEquals(1, store.number(headRow(), HeadRow.SEQ));
    assertEquals(clock.get(), store.number(writerRow, ServerRow.FLUSHED_MS));
    assertArrayEquals(Bytes.toBytes("{\"failed_writes\":1,\"pending\":0,\"errors\":0,\"peers\":{\"1\":[7,0,0,5]}}"),
        store.value(writerRow, ServerRow.HEALTH));
    assertArrayEquals(Bytes.toBytes("{\"failed_writes\":1,\"pending\":0,\"errors\":0}"),
        store.value(replicatorRow, ServerRow.HEALTH));
    store.log.clear();
    tick(5_000);
    assertFalse(isWritten(writerRow));
  }

  @Test
  void whatBypassedTheWalBeforeATokenIsInTheTableWithItsEcho() throws IOException {
    recorder.tick();
    issue(TOKEN);
    store.beforeBarrier = () -> server.skipped = 1; // since the look of this round
    tick(1_000);
    assertArrayEquals(TOKEN, store.value(writerRow, ServerRow.ECHO));
    assertEquals(7, store.number(Bytes.toBytes("nt"), TableEventRow.SKIPPED_MS));
  }

  @Test
  void onlyWhatChangedIsWritten() {
    append();
    tick(30_000);
    store.log.clear();
    tick(20_000);
    assertFalse(isWritten(headRow()));
    assertTrue(isWritten(writerRow));
  }

  @Test
  void aHeadsRowHasAllItsColumns() {
    append();
    tick(30_000);
    StoredRow row = store.rows.get(FakeStore.text(headRow()));
    assertEquals(1, store.number(headRow(), HeadRow.ENTRIES));
    assertArrayEquals(Bytes.toBytes("t"), row.value(HeadRow.TABLE));
    assertArrayEquals(region.getStartKey(), row.value(HeadRow.START_KEY));
    assertArrayEquals(region.getEndKey(), row.value(HeadRow.END_KEY));
    assertNull(row.value(HeadRow.VIA_IDS));
  }

  @Test
  void aBarrierIsEchoedAtOnceAfterTheHeadsAndTheTables() throws IOException {
    store.tables.put("ns:t", "{}");
    recorder.tick();
    append();
    issue(TOKEN);
    tick(1_000);
    String replicator = FakeStore.text(replicatorRow);
    String writer = FakeStore.text(writerRow);
    List<String> order =
        List.of("b", "tns:t", replicator, writer, FakeStore.text(headRow()), replicator, writer);
    assertEquals(order, List.copyOf(store.log.subList(0, 7)));
    assertArrayEquals(TOKEN, store.value(writerRow, ServerRow.ECHO));
    assertArrayEquals(TOKEN, store.value(replicatorRow, ServerRow.ECHO));
    assertEquals(clock.get(), store.number(writerRow, ServerRow.READ_MS));
    assertArrayEquals(TOKEN, store.value(Bytes.toBytes("tns:t"), TableRow.ECHO));
    assertEquals(store.get(BarrierRow.KEY).timestamp(BarrierRow.TOKEN),
        store.get(Bytes.toBytes("tns:t")).timestamp(TableRow.ECHO), "no server's clock hides it");
  }

  @Test
  void aTokenIsEchoedOnceAndTheNextOneAgain() throws IOException {
    issue(TOKEN);
    recorder.tick();
    append();
    tick(1_000);
    assertNull(store.value(headRow(), HeadRow.SEQ));
    issue(OTHER_TOKEN);
    tick(1_000);
    assertArrayEquals(OTHER_TOKEN, store.value(writerRow, ServerRow.ECHO));
    assertEquals(1, store.number(headRow(), HeadRow.SEQ));
  }

  @Test
  void whoDoesNotWinTheClaimLeavesTheTablesAlone() throws IOException {
    store.tables.put("t", "{}");
    store.put(List.of(new StateRow(BarrierRow.KEY).add(BarrierRow.CLAIM, TOKEN, StateRow.SERVER_TIME)));
    issue(TOKEN);
    recorder.tick();
    assertArrayEquals(TOKEN, store.value(writerRow, ServerRow.ECHO));
    assertNull(store.value(Bytes.toBytes("tt"), TableRow.DESCRIPTOR));
  }

  @Test
  void whoClaimsATokenTwiceDescribesTheTablesUnlessAnotherHasWon() throws IOException {
    issue(TOKEN);
    store.tables.put("t", "{}");
    store.repeating = true;
    Barrier winner = new Barrier(clock::get);
    Barrier loser = new Barrier(() -> readBy(winner));
    loser.read(store, null);
    loser.describeTables(store);
    assertNull(store.value(Bytes.toBytes("tt"), TableRow.ECHO));
    winner.describeTables(store);
    assertArrayEquals(TOKEN, store.value(Bytes.toBytes("tt"), TableRow.ECHO));
  }

  /** As trackers that claimed the tokens of several runs while there was no HBase master. */
  @Test
  void whoClaimedAnEarlierTokenDoesNotReplaceTheTablesOfALaterOne() throws IOException {
    issue(TOKEN);
    store.tables.put("t", "{}");
    Barrier earlier = new Barrier(clock::get);
    earlier.read(store, null);
    issue(OTHER_TOKEN);
    Barrier later = new Barrier(clock::get);
    later.read(store, null);
    later.describeTables(store);
    earlier.read(store, null);
    earlier.describeTables(store);
    assertArrayEquals(OTHER_TOKEN, store.value(Bytes.toBytes("tt"), TableRow.ECHO));
  }

  /** Where a tracker takes its clock's time, between its look at the barrier and its claim. */
  private long readBy(Barrier other) {
    try {
      return other.read(store, null).readAt;
    } catch (IOException e) {
      throw new UncheckedIOException(e);
    }
  }

  @Test
  void aFlushThatFailsIsMadeUpForAndNothingIsEchoedBefore() throws IOException {
    recorder.tick();
    append();
    issue(TOKEN);
    store.down = true;
    tick(30_000);
    append();
    tick(10_000);
    store.down = false;
    assertNull(store.value(writerRow, ServerRow.ECHO));
    tick(10_000);
    assertEquals(2, store.number(headRow(), HeadRow.SEQ));
    assertArrayEquals(TOKEN, store.value(writerRow, ServerRow.ECHO));
  }

  @Test
  void whatWasNotWrittenThroughDoesNotWaitForThePeriod() {
    recorder.tick();
    recorder.writeThrough().flushSucceeded();
    store.down = true;
    recorder.writeThrough().write(Fixtures.batch(Fixtures.entry("a", 0, 3)));
    store.down = false;
    tick(1_000);
    assertNotNull(store.rows.get(Fixtures.row(SegmentRow.TYPE, "a")));
    recorder.writeThrough().write(Fixtures.batch(Fixtures.entry("a", 3, 4)));
    assertFalse(recorder.observed().applied.hasPending(), "written through again");
  }

  /** Who reads segments of a table that was emptied meanwhile has to find that it was. */
  @Test
  void eventsOfTablesAreWrittenBeforeAllElse() {
    recorder.tick();
    recorder.writeThrough().flushSucceeded();
    store.down = true;
    recorder.writeThrough().write(Fixtures.batch(Fixtures.entry("a", 0, 3)));
    server.skipped = 1;
    tick(1_000);
    store.down = false;
    store.log.clear();
    tick(30_000);
    int events = store.log.indexOf("nt");
    assertTrue(events >= 0 && events < store.log.indexOf(Fixtures.row(SegmentRow.TYPE, "a")), store.log.toString());
  }

  @Test
  void aFlushWritesOnceWhatTheSyncsOfTheWalsDoNotChange() {
    recorder.tick();
    recorder.writeThrough().flushSucceeded();
    store.down = true;
    recorder.writeThrough().write(Fixtures.batch(Fixtures.entry("a", 0, 3), Fixtures.entry("b", 0, 3)));
    store.down = false;
    wal.inRingBuffer = () -> recorder.writeThrough().write(Fixtures.batch(Fixtures.entry("b", 3, 5)));
    store.log.clear();
    tick(30_000);
    assertEquals(1, Collections.frequency(store.log, Fixtures.row(SegmentRow.TYPE, "a")), store.log.toString());
    assertEquals(2, Collections.frequency(store.log, Fixtures.row(SegmentRow.TYPE, "b")), store.log.toString());
    assertFalse(recorder.observed().applied.hasPending());
  }

  @Test
  void aHeadThatMayNotBeDurableIsNotWrittenNorAnythingEchoed() throws IOException {
    recorder.tick();
    append();
    issue(TOKEN);
    wal.broken = true;
    tick(1_000);
    assertNull(store.value(headRow(), HeadRow.SEQ));
    assertNull(store.value(writerRow, ServerRow.ECHO));
    wal.broken = false;
    tick(1_000);
    assertEquals(1, store.number(headRow(), HeadRow.SEQ));
    assertArrayEquals(TOKEN, store.value(writerRow, ServerRow.ECHO));
  }

  @Test
  void theTableIsPolledMoreOftenForAWhileAfterANewTokenOnly() throws IOException {
    tick(30_000);
    assertEquals(1_000, recorder.pause());
    issue(TOKEN);
    wal.broken = true;
    tick(1_000);
    assertEquals(200, recorder.pause());
    tick(4_999);
    assertEquals(200, recorder.pause());
    tick(1);
    assertNull(store.value(writerRow, ServerRow.ECHO));
    assertEquals(1_000, recorder.pause());
    issue(OTHER_TOKEN);
    tick(1_000);
    assertEquals(200, recorder.pause());
  }

  /** ASYNC_WAL: acknowledged before the token, but no head names it until a sync has emptied the ring buffer. */
  @Test
  void whatIsInTheRingBufferIsInAHeadBeforeTheEcho() throws IOException {
    recorder.tick();
    issue(TOKEN);
    wal.inRingBuffer = this::append;
    tick(1_000);
    assertEquals(1, store.number(headRow(), HeadRow.SEQ));
    assertArrayEquals(TOKEN, store.value(writerRow, ServerRow.ECHO));
  }

  /** ASYNC_WAL, too: a delete of the slave's own client may mask what has arrived. */
  @Test
  void whatTheSlavesOwnClientsHaveInTheRingBufferIsInTheTableBeforeTheEcho() throws IOException {
    FakeWatch observed = new FakeWatch();
    Recorder slave = ofSlave(observed);
    slave.tick();
    issue(TOKEN);
    TableWrites writes = slave.observed().tableWrites.of("t");
    observed.inRingBuffer = () -> writes.add(77, Fixtures.edit(Fixtures.GLOBAL), List.of(), false);
    tick(slave);
    assertEquals(77, store.number(Bytes.toBytes("nt"), TableEventRow.WRITTEN_MS));
    assertArrayEquals(TOKEN, store.value(replicatorRow, ServerRow.ECHO));
    assertNull(store.value(writerRow, ServerRow.NAME), "nobody stamps what is written there");
    issue(OTHER_TOKEN);
    observed.broken = true;
    tick(slave);
    assertArrayEquals(TOKEN, store.value(replicatorRow, ServerRow.ECHO));
    observed.over = true;
    clock.addAndGet(10_000);
    tick(slave);
    assertArrayEquals(OTHER_TOKEN, store.value(replicatorRow, ServerRow.ECHO), "a closed WAL answers no more");
  }

  private Recorder ofSlave(ObservedWal observedWal) {
    Recorder slave = new Recorder(recorder.settings(), () -> store, spool, clock::get);
    slave.roles().watchServer(server);
    slave.roles().observeWal(observedWal);
    return slave;
  }

  private void tick(Recorder of) {
    clock.addAndGet(1_000);
    of.tick();
  }

  @Test
  void nothingIsEchoedWhileTheWalDoesNotAnswerAlsoIfNoHeadSeemsToHaveChanged() throws IOException {
    recorder.tick();
    issue(TOKEN);
    wal.broken = true;
    tick(1_000);
    assertNull(store.value(writerRow, ServerRow.ECHO));
  }

  /** Of a server that was fenced, its last entries are in no file: with a clean end it would be behind for ever. */
  @Test
  void anEndWhoseLastEntriesMayNotBeDurableIsNoCleanOne() {
    append();
    tick(30_000);
    long flushed = clock.get();
    append();
    wal.torn = true;
    end();
    assertEquals(1, store.number(headRow(), HeadRow.SEQ));
    assertEquals(flushed, store.number(writerRow, ServerRow.FLUSHED_MS));
    assertNull(store.value(writerRow, ServerRow.FINAL_MS));
    assertTrue(recorder.isEnded());
    store.log.clear();
    tick(5_000);
    assertTrue(store.log.isEmpty(), "nothing is left to be written");
  }

  @Test
  void theSpoolHasNoHeadsThatMayNotBeDurableEither() throws IOException {
    append();
    recorder.tick();
    store.down = true;
    recorder.writeThrough().write(Fixtures.batch(Fixtures.entry("a", 0, 3)));
    wal.torn = true;
    end();
    assertTrue(recorder.isEnded());
    store.down = false;
    spool.drain(store);
    assertNull(store.value(headRow(), HeadRow.SEQ));
    assertNull(store.value(writerRow, ServerRow.FINAL_MS));
    assertNotNull(store.rows.get(Fixtures.row(SegmentRow.TYPE, "a")));
  }

  @Test
  void aServerWithoutACleanEndSpoolsNoHeadsWhileItsWalDoesNotAnswer() throws IOException {
    append();
    recorder.tick();
    server.over = true;
    wal.broken = true;
    recorder.saveUnfinished();
    spool.drain(store);
    assertNull(store.value(headRow(), HeadRow.SEQ));
    assertNull(store.value(writerRow, ServerRow.FLUSHED_MS));
  }

  @Test
  void aClockThatWasSetBackIsToldWithTheEcho() throws IOException {
    AtomicLong steady = new AtomicLong();
    Recorder watching = new Recorder(recorder.settings(), () -> store, spool, clock::get,
        () -> steady.get() * 1_000_000, (name, live) -> false, copies -> { }, Runnable::run);
    watching.roles().watchWal(wal);
    watching.tick();
    clock.addAndGet(60_000);
    steady.addAndGet(1_000);
    watching.tick();
    long latest = clock.get();
    assertFalse(health(writerRow).contains("clock_back_ms"), "a clock that is set forward is none of our business");
    issue(TOKEN);
    clock.addAndGet(-60_000 + 500);
    steady.addAndGet(500);
    watching.tick();
    assertArrayEquals(TOKEN, store.value(writerRow, ServerRow.ECHO));
    assertTrue(health(writerRow).contains("\"clock_back_ms\":" + (latest + 500)), health(writerRow));
  }

  /** An administrator's TTL: heads bear sequence ids for times, so that all of them expire at once. */
  @Test
  void aStateTableWhoseRowsExpireHasLostRowsUntilItIsSetRightAndOnceMore() throws IOException {
    append();
    tick(30_000);
    assertNull(store.number(CoverageRow.KEY, CoverageRow.BACK_MS));
    server.expiring = true;
    for (boolean isRight : new boolean[] {false, false, true}) {
      server.expiring = !isRight;
      store.log.clear();
      tick(20_000);
      assertTheTableHasLostRowsNow();
      assertTrue(isWritten(headRow()), "all that is known is written again");
    }
    long last = clock.get();
    tick(20_000);
    assertEquals(last, store.number(CoverageRow.KEY, CoverageRow.BACK_MS));
  }

  /** As on a master that has the write-time tracker alone. */
  @Test
  void aServerWhoseWalAloneIsWatchedIsLookedAtWithoutAReplicatorsRole() throws IOException {
    server.peers = "{\"1\":[2,3,4,5]}";
    List<String> asked = new ArrayList<>();
    Recorder alone = new Recorder(recorder.settings(), () -> store, spool, clock::get, () -> 0, (name, live) -> false,
        copies -> { }, Runnable::run);
    alone.roles().findServers(name -> {
      asked.add(name);
      return asked.size() < 2 ? null : server; // its thread may not be there yet
    });
    alone.roles().watchWal(wal);
    alone.tick();
    assertFalse(alone.roles().canListRegions());
    issue(TOKEN);
    clock.addAndGet(1_000);
    alone.tick();
    clock.addAndGet(1_000);
    alone.tick();
    assertTrue(alone.roles().canListRegions());
    assertEquals(List.of(Fixtures.SERVER, Fixtures.SERVER), asked);
    assertTrue(health(writerRow).contains("\"peers\":{\"1\":[2,3,4,5]}"), health(writerRow));
    assertEquals(1, alone.roles().running().size());
  }

  /** Each look takes all threads of the JVM. */
  @Test
  void aServerThatIsNotOfThisJvmIsLookedForLessAndLessOften() {
    ServerRoles roles = new ServerRoles(clock::get);
    AtomicLong asked = new AtomicLong();
    AtomicLong last = new AtomicLong();
    roles.findServers(name -> {
      asked.incrementAndGet();
      last.set(clock.get());
      return clock.get() > 1_700_003_700_000L ? server : null;
    });
    roles.watchWal(wal);
    for (int i = 0; i < 3_600; i++) {
      roles.refresh();
      roles.refresh();
      clock.addAndGet(1_000);
    }
    assertEquals(7 + 58, asked.get(), "after 0, 1, 3, 7, 15, 31 and 63 s, and then each minute");
    assertTrue(clock.get() - last.get() <= 60_000);
    assertFalse(roles.canListRegions());
    clock.addAndGet(60_000);
    roles.refresh();
    assertTrue(roles.canListRegions(), "it was not given up");
  }

  /** Found by the simulation: cells from before, with later timestamps, stayed, and were read as one with newer ones. */
  @Test
  void theCellsOfAServersRowNeverGetOlder() {
    ServerRole role = new ServerRole(ServerRole.WRITER, Fixtures.SERVER);
    long first = role.row(null, null, ServerRole.End.NONE, "{}", 5_000).row.columns().get(0).timestamp;
    long second = role.row(null, null, ServerRole.End.NONE, "{}", 1_000).row.columns().get(0).timestamp;
    assertTrue(second > first, second + " after " + first);
  }

  @Test
  void theLastErrorIsToldWithItsTime() {
    recorder.health().error("a hook", null);
    recorder.tick();
    assertTrue(health(writerRow).matches(".*\"errors\":1,\"last_error_ms\":1[0-9]{12}.*"), health(writerRow));
  }

  private String health(byte[] row) {
    return new String(store.value(row, ServerRow.HEALTH), java.nio.charset.StandardCharsets.UTF_8);
  }

  @Test
  void aClockThatWasSetBackDoesNotStopTheFlushes() {
    recorder.tick();
    append();
    tick(-3_600_000);
    assertEquals(1, store.number(headRow(), HeadRow.SEQ));
  }

  /** Found by the simulation (tests/simulation): no other tracker writes the tables for this token. */
  @Test
  void aClaimWhoseAnswerWasLostIsStillOurs() throws IOException {
    store.tables.put("t", "{}");
    issue(TOKEN);
    store.answerLost = true;
    recorder.tick();
    assertNull(store.value(writerRow, ServerRow.ECHO));
    tick(5_000);
    assertArrayEquals(TOKEN, store.value(writerRow, ServerRow.ECHO));
    assertArrayEquals(TOKEN, store.value(Bytes.toBytes("tt"), TableRow.ECHO));
  }

  /** The mark is raised in the first round, before the roles are known. */
  @Test
  void aNewTableIsKeptFromTheStartOfItsFirstTracker() {
    server.name = null;
    recorder.tick();
    assertNotNull(store.number(CoverageRow.KEY, CoverageRow.MARK));
    server.name = Fixtures.SERVER;
    long kept = store.number(CoverageRow.KEY, CoverageRow.KEPT_MS);
    assertEquals(clock.get(), kept);
    tick(1_000);
    assertEquals(kept, store.number(CoverageRow.KEY, CoverageRow.SLAVE_START_MS));
  }

  /** After a full restart, the tracker that notices it may not know of its WAL yet, or not of its sink. */
  @Test
  void bothCoveragesStartAnewWhoeverNotices() {
    appendAndFlushTwice();
    long kept = store.number(CoverageRow.KEY, CoverageRow.KEPT_MS);
    Map<String, StoredRow> nightly = store.snapshot();
    tick(20_000);
    store.restore(nightly);
    recorder = another();
    tick(1_000);
    assertTheTableHasLostRowsNow();
    assertEquals(clock.get(), store.number(CoverageRow.KEY, CoverageRow.SLAVE_START_MS));
    assertEquals(kept, store.number(CoverageRow.KEY, CoverageRow.KEPT_MS));
    store.rows.clear();
    tick(30_000);
    assertEquals(clock.get(), store.number(CoverageRow.KEY, CoverageRow.KEPT_MS), "it is another table");
  }

  /** A snapshot of the state table that is restored takes heads back that have not changed since. */
  @Test
  void aTableThatWentBackGetsEverythingAgainBeforeTheNextEcho() throws IOException {
    append();
    tick(30_000);
    Map<String, StoredRow> nightly = store.snapshot();
    append();
    tick(20_000);
    store.restore(nightly);
    issueAndEcho();
    assertEquals(2, store.number(headRow(), HeadRow.SEQ));
    assertTheTableHasLostRowsNow();
  }

  /** A proof that was recorded in between, and all other trackers, tell the second time by its value alone. */
  @Test
  void aTableThatGoesBackAgainIsNoticedByAServerWhoseClockIsBehind() throws IOException {
    append();
    tick(30_000);
    long ahead = clock.get() + 30_000;
    store.put(List.of(new StateRow(CoverageRow.KEY).add(CoverageRow.BACK_MS, ahead, ahead)));
    store.rows.remove(FakeStore.text(writerRow));
    tick(20_000);
    assertTrue(store.number(CoverageRow.KEY, CoverageRow.BACK_MS) > ahead);
  }

  @Test
  void aTableThatGoesBackDuringAFlushIsNotEchoedBeforeItHasEverythingAgain() throws IOException {
    append();
    tick(30_000);
    Map<String, StoredRow> nightly = store.snapshot();
    append();
    issue(TOKEN);
    store.afterHeads = () -> {
      store.afterHeads = () -> { };
      store.restore(nightly);
    };
    tick(1_000);
    assertNull(store.value(writerRow, ServerRow.ECHO));
    assertNotNull(store.number(CoverageRow.KEY, CoverageRow.BACK_MS));
    issue(TOKEN);
    tick(5_000);
    assertArrayEquals(TOKEN, store.value(writerRow, ServerRow.ECHO));
    assertEquals(2, store.number(headRow(), HeadRow.SEQ));
  }

  /** The table may have gone back between two attempts: what the first one wrote does not count. */
  @Test
  void whatAFlushThatFailedHasWrittenIsWrittenAgain() {
    tick(30_000);
    append();
    store.afterHeads = () -> store.down = true;
    tick(20_000);
    store.afterHeads = () -> { };
    store.down = false;
    store.log.clear();
    tick(10_000);
    assertTrue(isWritten(headRow()));
  }

  @Test
  void aRowWhoseAnswerWasLostIsNotTakenForATableThatWentBack() {
    tick(30_000);
    store.answerLost = true;
    tick(20_000);
    tick(10_000);
    assertNull(store.number(CoverageRow.KEY, CoverageRow.BACK_MS));
    assertEquals(clock.get(), store.number(writerRow, ServerRow.FLUSHED_MS));
  }

  /** The server with the region of these rows stored it, and died; nobody serves the region for a while. */
  @Test
  void aRowWhoseAnswerWasLostIsRememberedHoweverManyAttemptsFollow() {
    tick(30_000);
    store.answerLost = true;
    tick(20_000);
    store.away = ServerRow.TYPE;
    for (int i = 0; i < 200; i++) {
      tick(10_000);
    }
    store.away = 0;
    tick(10_000);
    assertNull(store.number(CoverageRow.KEY, CoverageRow.BACK_MS));
    assertEquals(clock.get(), store.number(writerRow, ServerRow.FLUSHED_MS));
  }

  /** Each of the two writes of a flush, and one after a write of which nobody knows whether it was stored. */
  @Test
  void aRowThatTheClientPutTwiceIsNotTakenForATableThatWentBack() throws IOException {
    append();
    tick(30_000);
    append();
    store.repeating = true;
    tick(20_000);
    assertEquals(2, store.number(headRow(), HeadRow.SEQ));
    store.afterHeads = () -> store.repeating = true;
    append();
    issueAndEcho();
    store.afterHeads = () -> { };
    store.answerLost = true;
    tick(20_000);
    store.repeating = true;
    tick(10_000);
    assertEquals(clock.get(), store.number(writerRow, ServerRow.FLUSHED_MS));
    assertNull(store.number(CoverageRow.KEY, CoverageRow.BACK_MS));
  }

  /** Nobody remembers the table then; the file beside it does. */
  @Test
  void aTableThatWentBackWhileAllServersWereRestartedIsNoticedByTheFile() throws IOException {
    append();
    tick(30_000);
    Map<String, StoredRow> nightly = store.snapshot();
    tick(20_000);
    store.restore(nightly);
    recorder = another();
    tick(1_000);
    assertTheTableHasLostRowsNow();
    tick(1_000);
    recorder = another();
    long before = store.number(CoverageRow.KEY, CoverageRow.BACK_MS);
    tick(1_000);
    assertEquals(before, store.number(CoverageRow.KEY, CoverageRow.BACK_MS));
  }

  /** Its own row is as it was: what is missing was written by a server that is gone. */
  @Test
  void aTrackerThatHasWrittenNothingSinceTheSnapshotNoticesThatTheTableWentBack() throws IOException {
    tick(30_000);
    Recorder other = another();
    other.tick();
    Map<String, StoredRow> nightly = store.snapshot();
    clock.addAndGet(11_000);
    other.tick(); // raises the mark
    tick(0);
    long mark = store.number(CoverageRow.KEY, CoverageRow.MARK);
    store.restore(nightly);
    assertTrue(store.number(CoverageRow.KEY, CoverageRow.MARK) < mark);
    issueAndEcho();
    assertEquals(clock.get(), store.number(CoverageRow.KEY, CoverageRow.BACK_MS));
    assertTrue(store.number(CoverageRow.KEY, CoverageRow.MARK) > mark);
    issue(OTHER_TOKEN);
    long before = store.number(CoverageRow.KEY, CoverageRow.BACK_MS);
    tick(20_000);
    assertEquals(before, store.number(CoverageRow.KEY, CoverageRow.BACK_MS));
  }

  @Test
  void aTableThatWasTruncatedWhileAllServersWereRestartedIsNoticedByTheFile() {
    appendAndFlushTwice();
    store.rows.clear();
    recorder = another();
    tick(1_000);
    assertTheTableHasLostRowsNow();
  }

  /** Each region has the mark; the rows of all servers are as they were. */
  @Test
  void aRegionOfTheTableThatLostItsRowsIsNoticedInTime() throws IOException {
    appendAndFlushTwice();
    store.truncateRegion("h4");
    store.tables.put("t", "{}");
    tick(11_000);
    assertTheTableHasLostRowsNow();
    assertEquals(1, store.number(Bytes.toBytes("nt"), TableEventRow.ARRIVED_MS), "its arrival may be what was lost");
    long noticed = clock.get();
    issue(TOKEN);
    tick(1_000);
    assertEquals(1, store.number(headRow(), HeadRow.SEQ), "what is remembered is written again");
    tick(20_000);
    recorder = another();
    tick(30_000);
    assertEquals(noticed, store.number(CoverageRow.KEY, CoverageRow.BACK_MS), "once");
  }

  /** The region with the servers' rows has the arrivals, too; without an HBase master the loss stays to be found. */
  @Test
  void arrivalsThatAreLostWithTheServersRowsAreNoticed() throws IOException {
    appendAndFlushTwice();
    store.truncateRegion("i");
    store.tables.put("t", "{}");
    store.masterless = true;
    issue(TOKEN);
    tick(1_000);
    assertNotNull(store.number(CoverageRow.KEY, CoverageRow.BACK_MS));
    assertNull(store.rows.get("nt"));
    assertNull(store.rows.get("i!"));
    store.masterless = false;
    tick(11_000);
    tick(11_000);
    assertEquals(1, store.number(Bytes.toBytes("nt"), TableEventRow.ARRIVED_MS));
    assertNotNull(store.rows.get("i!"));
  }

  @Test
  void aRegionThatLostItsRowsWhileAllServersWereRestartedIsNoticed() {
    appendAndFlushTwice();
    store.truncateRegion("h4");
    recorder = another();
    tick(1_000);
    assertEquals(clock.get(), store.number(CoverageRow.KEY, CoverageRow.BACK_MS));
  }

  @Test
  void aRegionOfTheTableThatIsSplitOrMergedLostNothing() throws IOException {
    tick(30_000);
    store.starts = List.of("", "h2", "h4", "t");
    issue(TOKEN);
    tick(1_000);
    tick(11_000);
    store.starts = List.of("");
    tick(11_000);
    recorder = another();
    tick(30_000);
    assertNull(store.number(CoverageRow.KEY, CoverageRow.BACK_MS));
  }

  /** As {@code hbase.hlog.split.skip.errors} loses them when the table's server crashes: the newest ones. */
  @Test
  void lostEditsOfTheTableAreWrittenAgain() throws IOException {
    append();
    tick(30_000);
    Map<String, StoredRow> flushed = store.snapshot();
    append();
    issue(TOKEN);
    tick(1_000);
    store.restore(flushed);
    issue(TOKEN);
    tick(20_000);
    assertEquals(2, store.number(headRow(), HeadRow.SEQ));
    assertNotNull(store.number(CoverageRow.KEY, CoverageRow.BACK_MS));
  }

  /** No run has told of openings before: nobody knows. */
  @Test
  void theFirstTokenOfAllHasAllWrittenAgain() throws IOException {
    append();
    tick(30_000);
    store.rows.remove(FakeStore.text(headRow()));
    openings(1);
    issueAndEcho();
    assertEquals(1, store.number(headRow(), HeadRow.SEQ));
  }

  /** As there, but the rows of servers, and other regions, are as they were. */
  @Test
  void editsThatARegionLostWhenItWasOpenedElsewhereAreWrittenAgain() throws IOException {
    append();
    openings(1);
    issue(TOKEN);
    tick(1_000);
    store.rows.remove(FakeStore.text(headRow()));
    issue(OTHER_TOKEN);
    tick(1_000);
    assertNull(store.number(headRow(), HeadRow.SEQ), "nobody knows");
    openings(2);
    issueAndEcho();
    assertEquals(1, store.number(headRow(), HeadRow.SEQ));
  }

  @Test
  void theSameWhereTheClaimOfTheTokenFails() throws IOException {
    append();
    openings(1);
    issue(TOKEN);
    tick(1_000);
    store.rows.remove(FakeStore.text(headRow()));
    openings(2);
    issue(OTHER_TOKEN);
    store.answerLost = true;
    tick(1_000);
    tick(1_000);
    assertArrayEquals(OTHER_TOKEN, store.value(writerRow, ServerRow.ECHO));
    assertEquals(1, store.number(headRow(), HeadRow.SEQ));
  }

  private void openings(long digest) throws IOException {
    store.put(List.of(new StateRow(BarrierRow.KEY).add(BarrierRow.OPENINGS, digest, clock.get())));
  }

  @Test
  void aRestartOfAllServersIsNoAlarm() {
    appendAndFlushTwice();
    recorder = another();
    tick(1_000);
    tick(30_000);
    assertNull(store.number(CoverageRow.KEY, CoverageRow.BACK_MS));
  }

  /** A region server on the same address, started later. */
  private Recorder another() {
    Recorder later = new Recorder(new Settings(Fixtures.conf("updatedelay", "30000", "updateperiod", "20000")),
        () -> store, spool, clock::get);
    FakeWatch next = new FakeWatch();
    next.name = "other,16020," + clock.get();
    later.roles().watchWal(next);
    return later;
  }

  @Test
  void headsAreEchoedWithoutAnHBaseMasterAndTheDescriptorsFollow() throws IOException {
    store.tables.put("t", "{}");
    recorder.tick();
    append();
    issue(TOKEN);
    store.masterless = true;
    tick(1_000);
    assertArrayEquals(TOKEN, store.value(writerRow, ServerRow.ECHO));
    assertEquals(1, store.number(headRow(), HeadRow.SEQ));
    assertNull(store.value(Bytes.toBytes("tt"), TableRow.ECHO));
    store.masterless = false;
    tick(1_000);
    assertArrayEquals(TOKEN, store.value(Bytes.toBytes("tt"), TableRow.ECHO));
  }

  @Test
  void coverageStartsAnewWhenTheTableHasLostItsRows() {
    append();
    tick(30_000);
    store.rows.clear();
    tick(20_000);
    assertEquals(clock.get(), store.number(CoverageRow.KEY, CoverageRow.START_MS));
    assertEquals(1, store.number(headRow(), HeadRow.SEQ), "it gets again what it lost");
  }

  /** Found by the simulation: a sweep right after the loss gave coverage its old start back. */
  @Test
  void aSweepDoesNotBringAnOldStartOfCoverageBack() throws IOException {
    Sweep sweep = new Sweep(recorder.settings(), clock::get, (name, live) -> false);
    sweep.run(store, Set.of(ServerRole.WRITER));
    long started = clock.getAndAdd(60_000);
    assertEquals(started, store.number(CoverageRow.KEY, CoverageRow.START_MS));
    store.rows.clear();
    sweep.run(store, Set.of(ServerRole.WRITER));
    assertEquals(clock.get(), store.number(CoverageRow.KEY, CoverageRow.START_MS));
  }

  /** Found by the simulation: another server saw the loss first, and our own row was written again right after it. */
  @Test
  void aLossThatAnotherServerSawIsMadeGood() throws IOException {
    appendAndFlushTwice();
    store.rows.remove(FakeStore.text(headRow()));
    store.put(List.of(new StateRow(CoverageRow.KEY).add(CoverageRow.START_MS, clock.get(), clock.get())));
    tick(20_000);
    assertEquals(1, store.number(headRow(), HeadRow.SEQ));
  }

  @Test
  void theFinalRowComesWhenTheWalIsOver() {
    append();
    recorder.tick();
    append();
    wal.over = true;
    tick(1);
    assertEquals(2, store.number(headRow(), HeadRow.SEQ));
    assertEquals(clock.get(), store.number(writerRow, ServerRow.FINAL_MS));
    assertNull(store.value(replicatorRow, ServerRow.FINAL_MS));
    assertFalse(recorder.isEnded());
    server.over = true;
    tick(1);
    assertNotNull(store.value(replicatorRow, ServerRow.FINAL_MS));
    assertTrue(recorder.isEnded());
  }

  @Test
  void whoIsOverEchoesNothing() throws IOException {
    recorder.tick();
    end();
    issue(TOKEN);
    tick(1_000);
    assertNull(store.value(writerRow, ServerRow.ECHO));
  }

  @Test
  void whatCouldNotBeFlushedAtTheEndIsSpooled() throws IOException {
    append();
    recorder.tick();
    store.down = true;
    recorder.writeThrough().write(Fixtures.batch(Fixtures.entry("a", 0, 3)));
    end();
    assertTrue(recorder.isEnded());
    store.down = false;
    assertEquals(1, spool.drain(store));
    assertEquals(1, store.number(headRow(), HeadRow.SEQ));
    assertNotNull(store.value(writerRow, ServerRow.FINAL_MS));
    assertNotNull(store.value(replicatorRow, ServerRow.FINAL_MS));
    assertNotNull(store.rows.get(Fixtures.row(SegmentRow.TYPE, "a")));
  }

  /** A server closes its WALs before its regions, the state table's among them, are opened elsewhere. */
  @Test
  void whatWasSpooledIsInTheTableBeforeARowThatSaysThatItsServerEnded() throws IOException {
    spoolTheEndOfTheWal();
    store.down = false;
    server.over = true;
    tick(1);
    assertNotNull(store.value(writerRow, ServerRow.FINAL_MS));
    assertEquals(1, store.number(headRow(), HeadRow.SEQ));
    assertEquals(1, spool.drain(store), "and nothing is spooled again");
  }

  @Test
  void noFileOfTheSpoolSaysThatAServerEndedWithoutItsHeads() throws IOException {
    spoolTheEndOfTheWal();
    server.over = true;
    tick(1);
    tick(1);
    store.down = false;
    store.away = HeadRow.TYPE;
    assertThrows(IOException.class, () -> spool.drain(store));
    assertNull(store.value(writerRow, ServerRow.FINAL_MS));
    store.away = 0;
    assertEquals(2, spool.drain(store));
    assertEquals(1, store.number(headRow(), HeadRow.SEQ));
  }

  private void spoolTheEndOfTheWal() {
    append();
    recorder.tick();
    store.down = true;
    wal.over = true;
    tick(1);
    assertFalse(recorder.isEnded());
  }

  @Test
  void whatNothingElseTellsAfterACrashIsSpooledWhileTheTableIsDown() throws IOException {
    recorder.tick();
    store.down = true;
    recorder.observed().facts.bulkLoad(region.getEncodedName(), "t", 7, false);
    tick(1);
    server.skipped = 3;
    tick(10_000);
    tick(10_000); // nothing is new
    store.down = false;
    assertEquals(1, spool.drain(store));
    assertEquals(7, store.number(Bytes.toBytes(FactRow.TYPE + region.getEncodedName()), FactRow.LOCAL_LOAD_MS));
    assertEquals(7, store.number(Bytes.toBytes(TableEventRow.TYPE + "t"), TableEventRow.SKIPPED_MS));
  }

  /** As on masters that have the write-time tracker alone: their files have their names all the same. */
  @Test
  void whatTwoServersSpoolInTheSameMomentAreTwoFiles() throws IOException {
    store.down = true;
    spoolALoad(Fixtures.SERVER, "a");
    spoolALoad(OTHER_SERVER, "b");
    store.down = false;
    assertEquals(2, spool.drain(store));
    assertEquals(7, store.number(Bytes.toBytes(FactRow.TYPE + "a"), FactRow.LOCAL_LOAD_MS));
    assertEquals(7, store.number(Bytes.toBytes(FactRow.TYPE + "b"), FactRow.LOCAL_LOAD_MS));
  }

  private void spoolALoad(String name, String into) {
    Spool own = new Spool(Fixtures.conf(), new org.apache.hadoop.fs.Path(folder.toUri()));
    Recorder writer = new Recorder(recorder.settings(), () -> store, own, clock::get);
    FakeWatch itsWal = new FakeWatch();
    itsWal.name = name;
    writer.roles().watchWal(itsWal);
    writer.observed().facts.bulkLoad(into, "t", 7, false);
    writer.tick();
  }

  @Test
  void withoutACleanEndThereIsNoFinalRow() throws IOException {
    append();
    recorder.tick();
    server.over = true;
    tick(1);
    assertTrue(recorder.cannotEndCleanly());
    store.down = true;
    recorder.saveUnfinished();
    store.down = false;
    spool.drain(store);
    assertEquals(1, store.number(headRow(), HeadRow.SEQ));
    assertNull(store.value(writerRow, ServerRow.FINAL_MS));
  }

  @Test
  void aServerThatGoesOnTakesItsFinalRowBack() {
    recorder.tick();
    wal.over = true;
    tick(1);
    assertNotNull(store.value(writerRow, ServerRow.FINAL_MS));
    wal.over = false; // another WAL was opened
    tick(1);
    assertNull(store.value(writerRow, ServerRow.FINAL_MS));
    append();
    wal.over = true;
    tick(1);
    assertNotNull(store.value(writerRow, ServerRow.FINAL_MS));
    assertEquals(1, store.number(headRow(), HeadRow.SEQ));
  }

  @Test
  void whatComesAfterTheFinalRowMakesANewOne() {
    recorder.tick();
    end();
    append();
    tick(5);
    assertEquals(1, store.number(headRow(), HeadRow.SEQ));
    assertEquals(clock.get(), store.number(writerRow, ServerRow.FINAL_MS));
  }

  @Test
  void aServerThatIsGoneIsMarkedOnce() throws IOException {
    byte[] gone = new ServerRole(ServerRole.WRITER, OTHER_SERVER).key();
    store.put(List.of(new StateRow(gone).add(ServerRow.NAME, Bytes.toBytes(OTHER_SERVER), 1)));
    recorder.tick();
    long first = store.number(gone, ServerRow.GONE_MS);
    tick(60_000);
    assertEquals(first, store.number(gone, ServerRow.GONE_MS));
  }

  @Test
  void aServerThatEndedCleanlyIsNotMarked() throws IOException {
    byte[] ended = new ServerRole(ServerRole.WRITER, OTHER_SERVER).key();
    store.put(List.of(
        new StateRow(ended).add(ServerRow.NAME, Bytes.toBytes(OTHER_SERVER), 1).add(ServerRow.FINAL_MS, 5, 5)));
    recorder.tick();
    assertNull(store.value(ended, ServerRow.GONE_MS));
  }

  @Test
  void coverageStartsWithTheFirstTrackerAndAnewWithAnUntrackedServer() {
    long started = clock.get();
    recorder.tick();
    assertEquals(started, store.number(CoverageRow.KEY, CoverageRow.START_MS));
    store.live.add(ServerName.valueOf(OTHER_SERVER));
    tick(60_000);
    tick(60_000);
    assertEquals(started, store.number(CoverageRow.KEY, CoverageRow.START_MS), "it may be about to write its row");
    tick(80_000);
    assertEquals(clock.get(), store.number(CoverageRow.KEY, CoverageRow.START_MS));
  }

  /** Rows that take too long to be read must not hide servers without a tracker, nor the other way round. */
  @Test
  void onePartOfTidyingThatFailsDoesNotKeepTheOthersFromRunning() throws IOException {
    recorder.tick();
    store.segmentsUnreadable = true;
    recorder.writeThrough().write(Fixtures.batch(Fixtures.entry("a", 0, 3)));
    byte[] gone = new ServerRole(ServerRole.WRITER, OTHER_SERVER).key();
    store.put(List.of(new StateRow(gone).add(ServerRow.NAME, Bytes.toBytes(OTHER_SERVER), 1)));
    tick(61_000);
    assertNotNull(store.value(gone, ServerRow.GONE_MS), "the sweep");
    assertNull(store.lookups().get(Fixtures.row(SegmentRow.TYPE, "a")));
    store.segmentsUnreadable = false;
    tick(5_000);
    assertNotNull(store.lookups().get(Fixtures.row(SegmentRow.TYPE, "a")), "compaction tries again");
  }

  /** An error that nobody has thought of ends neither the flush nor the tasks after it. */
  @Test
  void anUnexpectedErrorOfOneTaskDoesNotKeepHeadsFromBeingEchoed() throws IOException {
    recorder.tick();
    append();
    issue(TOKEN);
    store.oddity = new IllegalStateException("odd");
    tick(61_000);
    assertArrayEquals(TOKEN, store.value(writerRow, ServerRow.ECHO));
    assertEquals(0, recorder.health().errors());
  }

  /** It is counted, and tried again like a failed write: not in each round. */
  @Test
  void whatHBasesClientRefusesToSendIsTriedAgainLater() throws IOException {
    recorder.tick();
    append();
    issue(TOKEN);
    store.tooLarge = HeadRow.TYPE;
    recorder.tick();
    recorder.tick();
    assertEquals(1, recorder.health().errors());
    store.tooLarge = 0;
    tick(61_000);
    assertArrayEquals(TOKEN, store.value(writerRow, ServerRow.ECHO));
  }

  /** WAL threads go on queueing markers: they must not pile up until the table is back. */
  @Test
  void markersAreReadWhileTheStateTableIsDown() throws IOException {
    store.down = true;
    recorder.tick();
    WALEdit damaged = new WALEdit();
    damaged.add(new KeyValue(new byte[] {1}, WALEdit.METAFAMILY, Bytes.toBytes("HBASE::REGION_EVENT::REGION_OPEN"), new byte[] {1}));
    mark(damaged);
    recorder.tick();
    assertEquals(1, recorder.health().errors(), "the damaged marker was read");
  }

  private void mark(WALEdit marker) {
    MarkerForwarder markers = new MarkerForwarder(Fixtures.ORIGIN, Fixtures.SETTINGS, recorder.observed().content,
        recorder.observed().tableWrites, recorder.observed().facts);
    try {
      markers.note(region, Fixtures.key(region, nextSeq++, null), marker, Fixtures.scopes());
    } catch (IOException e) {
      throw new UncheckedIOException(e);
    }
  }

  private WALEdit event(EventType type) {
    return WALEdit.createRegionEventWALEdit(region, ProtobufUtil.toRegionEventDescriptor(type, region, nextSeq,
        ServerName.valueOf(Fixtures.SERVER), Map.of()));
  }

  private WALEdit flushed() {
    return WALEdit.createFlushWALEdit(region,
        ProtobufUtil.toFlushDescriptor(FlushAction.COMMIT_FLUSH, region, nextSeq, Map.of()));
  }

  private void openAndWrite() {
    mark(event(EventType.REGION_OPEN));
    tick(1_000);
    append();
    store.log.clear();
  }

  /** After a crash, a marker that nobody has recorded looks like an entry that was lost with its queue. */
  @Test
  void aMarkerIsWrittenAtOnceAfterTheHeadsOfTheEntriesBeforeIt() throws IOException {
    openAndWrite();
    for (WALEdit marker : List.of(flushed(), event(EventType.REGION_CLOSE))) {
      mark(marker);
      tick(1_000);
      assertWrittenAfterHeads();
      store.log.clear();
      tick(1_000);
      assertFalse(store.log.contains(contentRow()));
      mark(event(EventType.REGION_OPEN));
      append();
    }
  }

  @Test
  void aFlushWritesMarkersAfterHeads() throws IOException {
    openAndWrite();
    mark(flushed());
    issue(TOKEN);
    tick(1_000);
    assertWrittenAfterHeads();
  }

  /** What the second sync makes WAL threads append is in no head yet: its marker waits for the next round. */
  @Test
  void aMarkerThatComesWithTheSyncsIsNotWrittenBeforeItsHead() throws IOException {
    openAndWrite();
    mark(flushed());
    wal.inRingBuffer = () -> wal.inRingBuffer = () -> {
      append();
      mark(event(EventType.REGION_CLOSE));
    };
    issue(TOKEN);
    tick(1_000);
    assertEquals(2L, store.number(headRow(), HeadRow.SEQ));
    assertFalse(isRecordedAsClosed());
    tick(1_000);
    assertEquals(4L, store.number(headRow(), HeadRow.SEQ));
    assertTrue(isRecordedAsClosed());
  }

  private boolean isRecordedAsClosed() {
    return contentSays("\"c\"");
  }

  private boolean contentSays(String part) {
    return store.rows.get(contentRow()).values.values().stream()
        .anyMatch(value -> Bytes.toString(value).contains(part));
  }

  @ParameterizedTest
  @ValueSource(booleans = {false, true})
  void aMarkerIsNotWrittenWhileAHeadBeforeItMayNotBeDurable(boolean flush) throws IOException {
    openAndWrite();
    mark(flushed());
    wal.broken = true;
    if (flush) {
      issue(TOKEN);
    }
    tick(1_000);
    assertFalse(store.log.contains(contentRow()));
    wal.broken = false;
    tick(5_000);
    assertTrue(store.log.contains(contentRow()));
  }

  @Test
  void aMarkerIsNotWrittenWhileItsHeadsCannotBe() throws IOException {
    openAndWrite();
    mark(flushed());
    store.away = HeadRow.TYPE;
    tick(1_000);
    issue(TOKEN);
    tick(1_000);
    assertFalse(store.log.contains(contentRow()));
  }

  /** The next opening does not show a load that the ledger has: its fact alone says that nobody has shipped it. */
  @ParameterizedTest
  @ValueSource(booleans = {false, true})
  void aMarkerOfABulkLoadIsNotWrittenBeforeItsFact(boolean flush) throws IOException {
    openAndWrite();
    store.away = FactRow.TYPE;
    if (flush) {
      wal.inRingBuffer = this::load;
      issue(TOKEN);
    } else {
      load();
    }
    tick(1_000);
    assertFalse(store.log.contains(contentRow()));
    store.away = 0;
    tick(5_000);
    assertTrue(store.log.contains(contentRow()));
  }

  private void load() {
    mark(Fixtures.bulkLoad(region, Fixtures.GLOBAL, false));
  }

  /** Without a head: on a slave there may be none, and its WALs are only observed. */
  @Test
  void aMarkerIsNotWrittenWhileItMayNotBeDurable() throws IOException {
    FakeWatch observed = new FakeWatch();
    recorder = ofSlave(observed);
    mark(event(EventType.REGION_OPEN));
    tick(1_000);
    mark(event(EventType.REGION_CLOSE));
    observed.broken = true;
    tick(1_000);
    assertFalse(isRecordedAsClosed());
    observed.broken = false;
    tick(5_000);
    assertTrue(isRecordedAsClosed());
  }

  /** A slave's region that opens below it again has lost entries; one that a crash may undo must not be demanded. */
  @Test
  void whatWasAppendedToASlavesRegionIsWrittenOnceItIsDurable() throws IOException {
    FakeWatch observed = new FakeWatch();
    recorder = ofSlave(observed);
    recorder.observed().content.followWals();
    mark(event(EventType.REGION_OPEN));
    tick(1_000);
    recorder.observed().content.noteAppended(region.getEncodedName(), 77);
    observed.inRingBuffer = () -> recorder.observed().content.noteAppended(region.getEncodedName(), 78);
    issue(TOKEN);
    tick(1_000);
    assertArrayEquals(TOKEN, store.value(replicatorRow, ServerRow.ECHO));
    assertTrue(contentSays("\"m\":77"), "the sync may not have covered what came during it");
    observed.broken = true;
    issue(OTHER_TOKEN);
    tick(1_000);
    assertFalse(contentSays("\"m\":78"));
    observed.broken = false;
    observed.closing = true; // its server was fenced
    tick(5_000);
    observed.over = true;
    tick(20_000);
    assertArrayEquals(OTHER_TOKEN, store.value(replicatorRow, ServerRow.ECHO));
    assertFalse(contentSays("\"m\":78"));
  }

  @Test
  void aSpoolIsDrainedMarkersAfterHeads() throws IOException {
    openAndWrite();
    mark(event(EventType.REGION_CLOSE));
    store.down = true;
    end();
    assertTrue(recorder.isEnded());
    store.down = false;
    store.away = HeadRow.TYPE;
    assertThrows(IOException.class, () -> spool.drain(store));
    assertFalse(isRecordedAsClosed());
    store.away = 0;
    spool.drain(store);
    assertTrue(isRecordedAsClosed());
  }

  /** Without it, the tenure after a crash would be compared with the one before the outage. */
  @ParameterizedTest
  @ValueSource(booleans = {false, true})
  void tenuresOfALastingOutageAreSpooledAfterTheirHeads(boolean broken) throws IOException {
    openAndWrite();
    store.down = true;
    mark(event(EventType.REGION_CLOSE));
    tick(5_000);
    mark(event(EventType.REGION_OPEN));
    wal.broken = broken;
    for (int round = 0; round < 8; round++) {
      tick(5_000);
    }
    store.down = false;
    store.away = HeadRow.TYPE;
    if (!broken) {
      assertThrows(IOException.class, () -> spool.drain(store));
      assertFalse(isRecordedAsClosed());
    }
    store.away = 0;
    assertEquals(1, spool.drain(store));
    assertEquals(!broken, isRecordedAsClosed());
    assertEquals(2, store.rows.get(contentRow()).values.values().stream()
        .filter(value -> Bytes.toString(value).startsWith("{\"o\"")).count());
  }

  /** A region of the state table that is opened elsewhere may have lost it, and the close is what the next opening joins. */
  @Test
  void whatEndedIsWrittenAgainAsWell() throws IOException {
    openAndWrite();
    mark(event(EventType.REGION_CLOSE));
    openings(1);
    issue(TOKEN);
    tick(1_000);
    store.rows.remove(contentRow());
    openings(2);
    issue(OTHER_TOKEN);
    tick(1_000);
    assertArrayEquals(OTHER_TOKEN, store.value(writerRow, ServerRow.ECHO));
    assertTrue(isRecordedAsClosed());
    tick(3 * 3_600_000);
    store.rows.remove(contentRow());
    openings(3);
    issue(TOKEN);
    tick(1_000);
    assertNull(store.rows.get(contentRow()), "it is in a store file by now");
  }

  @ParameterizedTest
  @ValueSource(booleans = {false, true})
  void anEndWhoseLastEntriesMayNotBeDurableLeavesNoMarker(boolean down) throws IOException {
    openAndWrite();
    mark(event(EventType.REGION_CLOSE));
    wal.torn = true;
    store.down = down;
    end();
    assertTrue(recorder.isEnded());
    store.down = false;
    spool.drain(store);
    assertFalse(isRecordedAsClosed());
  }

  private void assertWrittenAfterHeads() {
    int head = store.log.indexOf(FakeStore.text(headRow()));
    assertTrue(head >= 0);
    assertTrue(store.log.indexOf(contentRow()) > head);
    assertEquals(store.log.indexOf(contentRow()), store.log.lastIndexOf(contentRow()));
  }

  @Test
  void aRegionThatCameBackAfterItsSplitIsNotedBeforeTheEcho() throws IOException {
    recorder.tick();
    store.put(List.of(new StateRow(Bytes.toBytes(FactRow.TYPE + region.getEncodedName()))
        .add(FactRow.LINEAGE, Bytes.toBytes("split"), 7)));
    mark(event(EventType.REGION_OPEN));
    issueAndEcho();
    assertTrue(store.rows.get(contentRow()).values.values().stream()
        .anyMatch(value -> Bytes.toString(value).contains("\"y\":")));
  }

  private String contentRow() {
    return ContentRow.TYPE + region.getEncodedName();
  }

  /** Found on a cluster of one server: its first sweep came before its WAL, and coverage a minute late. */
  @Test
  void coverageStartsAsSoonAsThereIsAWriter() {
    wal.name = null;
    recorder.tick();
    assertNull(store.number(CoverageRow.KEY, CoverageRow.START_MS));
    wal.name = Fixtures.SERVER;
    tick(1_000);
    assertNotNull(store.number(CoverageRow.KEY, CoverageRow.START_MS));
  }

  @Test
  void withoutARoleNothingIsDone() {
    wal.name = null;
    server.name = null;
    tick(30_000);
    assertTrue(store.log.isEmpty());
    assertTrue(recorder.isEnded());
  }
}
