package io.github.statustool.streams;

import static io.github.statustool.streams.Fixtures.segment;
import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertFalse;
import static org.junit.jupiter.api.Assertions.assertTrue;

import io.github.statustool.content.TableEvents;
import io.github.statustool.state.Change;
import io.github.statustool.state.FakeStore;
import io.github.statustool.state.StateRow;
import io.github.statustool.state.StateTable.TableEventRow;
import java.util.ArrayList;
import java.util.List;
import org.apache.hadoop.hbase.shaded.protobuf.generated.AdminProtos.WALEntry;
import org.apache.hadoop.hbase.util.Bytes;
import org.apache.hadoop.hbase.util.EnvironmentEdgeManager;
import org.apache.hadoop.hbase.util.ManualEnvironmentEdge;
import org.apache.hbase.thirdparty.com.google.protobuf.ByteString;
import org.junit.jupiter.api.Test;

class WriteThroughTest {
  private static final long WAIT_MS = 50;

  private final FakeStore store = new FakeStore();
  private int kept;
  private boolean spoolWorks;
  private boolean appends = true;
  private final AppliedSegments applied = new AppliedSegments(new TableEvents());
  private final WriteThrough writeThrough = new WriteThrough(() -> store, applied, Fixtures.health(), WAIT_MS,
      Fixtures.copies(() -> appends, this::copy));

  private boolean copy() {
    kept++;
    assertFalse(spoolWorks && applied.hasUncopied(), "no flush is due because of a request that is under way");
    return spoolWorks;
  }

  private void write(long prev, long seq) {
    writeThrough.write(Fixtures.batch(Fixtures.entry("a", prev, seq)));
  }

  private List<Segment> pending() {
    List<Change> changes = new ArrayList<>();
    applied.collect(changes, 0);
    SegmentSet segments = new SegmentSet();
    for (Change change : changes) {
      for (StateRow.Column column : change.row.columns()) {
        SegmentColumn.read(column.qualifier, column.value, segments);
      }
    }
    return segments.asList();
  }

  @Test
  void whatIsInTheSpoolIsWrittenByAFlush() {
    spoolWorks = true;
    write(0, 3);
    write(3, 4);
    assertEquals(0, store.asyncPuts);
    assertEquals(List.of(segment(0, 4)), pending());
  }

  /** What happens to the table while the request runs may come after entries of it. */
  @Test
  void aTablesFirstArrivalIsWhenItsRequestBegan() {
    ManualEnvironmentEdge clock = new ManualEnvironmentEdge();
    EnvironmentEdgeManager.injectEdge(clock);
    try {
      clock.setValue(1_000);
      SinkBatch batch = Fixtures.batch(Fixtures.entry("a", 0, 3));
      clock.setValue(5_000);
      writeThrough.write(batch);
    } finally {
      EnvironmentEdgeManager.reset();
    }
    assertEquals(1_000, store.number(Bytes.toBytes("nt"), TableEventRow.ARRIVED_MS));
  }

  @Test
  void whereFilesCannotBeAppendedToTheSpoolHasWhatTheTableDidNotTake() {
    appends = false;
    spoolWorks = true;
    write(0, 3);
    assertEquals(0, kept);
    assertFalse(applied.hasPending());
    assertEquals(List.of(), applied.uncopiedRows(0), "nothing is kept for a copy that nobody makes");
    store.down = true;
    write(3, 4);
    assertEquals(1, kept);
    assertFalse(applied.hasUncopied());
    assertEquals(List.of(segment(0, 4)), pending());
  }

  @Test
  void whatTheSpoolDidNotTakeIsWritten() {
    write(0, 3);
    write(3, 4);
    assertEquals(2, store.rows.size(), "the stream's row and the table's");
    assertEquals(List.of(), pending());
    assertEquals(2, kept);
    assertEquals(1, applied.scattered().size(), "other columns are looked at once");
  }

  /** Who reads segments has to find when their table's first entry arrived. */
  @Test
  void eventsOfTablesAreWrittenBeforeSegments() {
    store.away = TableEventRow.TYPE;
    write(0, 3);
    assertEquals(List.of(), store.log);
    assertEquals(List.of(segment(0, 3)), pending());
    store.away = 0;
    writeThrough.flushSucceeded();
    write(3, 4);
    assertEquals("nt", store.log.get(0));
    assertEquals(2, store.log.size());
  }

  @Test
  void whatCouldNotBeWrittenIsKeptMerged() {
    store.down = true;
    write(0, 3);
    write(3, 8);
    write(9, 10);
    assertEquals(List.of(segment(0, 8), segment(9, 10)), pending());
    assertEquals(3, kept, "told each time");
    assertTrue(applied.hasUncopied());
  }

  @Test
  void afterAFailureNobodyWaitsUntilAFlushSucceeded() {
    store.hanging = true;
    long began = System.nanoTime();
    for (int i = 0; i < 100; i++) {
      write(i, i + 1);
    }
    assertTrue(System.nanoTime() - began < 20 * WAIT_MS * 1_000_000, "waited once");
    assertEquals(1, store.asyncPuts);
    store.hanging = false;
    write(100, 101);
    assertEquals(1, store.asyncPuts);
    writeThrough.flushSucceeded();
    write(101, 102);
    assertEquals(3, store.asyncPuts, "the table's arrival, and the segments");
    assertEquals(List.of(), pending(), "a stream is written whole");
  }

  @Test
  void withoutAConnectionEverythingIsKept() {
    WriteThrough early = new WriteThrough(() -> null, applied, Fixtures.health(), WAIT_MS,
        Fixtures.copies(() -> appends, this::copy));
    early.write(Fixtures.batch(Fixtures.entry("a", 0, 3)));
    assertEquals(List.of(segment(0, 3)), pending());
  }

  @Test
  void evenAnUnexpectedErrorLosesNothing() {
    WriteThrough broken = new WriteThrough(() -> {
      throw new IllegalStateException("closed");
    }, applied, Fixtures.health(), WAIT_MS, Fixtures.copies(() -> appends, this::copy));
    try {
      broken.write(Fixtures.batch(Fixtures.entry("a", 0, 3)));
    } catch (IllegalStateException e) {
      // The hook catches it.
    }
    assertEquals(List.of(segment(0, 3)), pending());
  }

  /** The stream's monitor stops the handler where it adds the entries. */
  @Test
  void aFlushThatHasATablesSegmentsHasItsFirstArrival() throws Exception {
    ObservedState observed = new ObservedState(Fixtures.health(), () -> 0);
    WriteThrough handler = new WriteThrough(() -> store, observed.applied, Fixtures.health(), WAIT_MS,
        Fixtures.copies(() -> appends, this::copy));
    spoolWorks = true;
    handler.write(Fixtures.batch(Fixtures.entry("a", 0, 3)));
    observed.otherChanges(0).forEach(Change::stored);
    WALEntry entry = Fixtures.entry("a", 3, 4);
    WALEntry ofOther = entry.toBuilder()
        .setKey(entry.getKey().toBuilder().setTableName(ByteString.copyFromUtf8("u"))).build();
    Thread thread = new Thread(() -> handler.write(Fixtures.batch(ofOther)));
    synchronized (observed.applied.record(Fixtures.stream("a"))) {
      thread.start();
      while (thread.getState() != Thread.State.BLOCKED) {
        Thread.sleep(1);
      }
      assertEquals(List.of("nu"), keys(observed.otherChanges(0)));
    }
    thread.join();
    assertEquals(List.of("s", "nu"), keys(observed.otherChanges(0)), "looked at after the segments");
  }

  /** Of a stream's row, the type only. */
  private static List<String> keys(List<Change> changes) {
    List<String> keys = new ArrayList<>();
    for (Change change : changes) {
      String key = FakeStore.text(change.row.key);
      keys.add(key.startsWith("s") ? "s" : key);
    }
    return keys;
  }

  @Test
  void whatComesWhileAFlushWritesStaysPending() {
    store.down = true;
    write(0, 3);
    List<Change> changes = new ArrayList<>();
    applied.collect(changes, 0);
    write(3, 5);
    changes.forEach(Change::stored);
    assertEquals(List.of(segment(0, 5)), pending());
  }

  @Test
  void aWriteThatIsUnderWayDoesNotCountWhenTheTableHasGoneBack() {
    store.down = true;
    write(0, 3);
    List<Change> changes = new ArrayList<>();
    applied.collect(changes, 0);
    applied.forgetFlushes();
    changes.forEach(Change::stored);
    assertEquals(List.of(segment(0, 3)), pending());
  }

  /** The stream's monitor stops the recorder in the midst of it. */
  @Test
  void aHandlerDropsNothingThatIsToBeWrittenAgain() throws Exception {
    write(0, 3);
    StreamSegments record = applied.record(Fixtures.stream("a"));
    Thread recorder = new Thread(applied::forgetFlushes);
    Thread handler = new Thread(() -> applied.dropIfStored(record.id));
    synchronized (record) {
      startAndStop(recorder);
      startAndStop(handler);
    }
    recorder.join();
    handler.join();
    assertEquals(List.of(segment(0, 3)), pending());
  }

  private static void startAndStop(Thread thread) throws InterruptedException {
    thread.start();
    while (thread.getState() != Thread.State.BLOCKED) {
      Thread.sleep(1);
    }
  }

  @Test
  void unstampedEntriesAreWrittenWithAFlushAndOnce() {
    writeThrough.write(Fixtures.batch(Fixtures.entry("a", 3, null)));
    assertEquals(0, store.asyncPuts);
    List<Change> changes = new ArrayList<>();
    applied.collect(changes, 0);
    assertEquals(1, changes.size());
    changes.forEach(Change::stored);
    changes.clear();
    applied.collect(changes, 0);
    assertTrue(changes.isEmpty());
  }
}
