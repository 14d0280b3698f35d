package io.github.statustool.streams;

import static io.github.statustool.streams.Fixtures.segment;
import static org.junit.jupiter.api.Assertions.assertArrayEquals;
import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertFalse;
import static org.junit.jupiter.api.Assertions.assertThrows;
import static org.junit.jupiter.api.Assertions.assertTrue;

import io.github.statustool.content.TableEvents;
import io.github.statustool.state.Change;
import io.github.statustool.state.FakeStore;
import io.github.statustool.state.StateRow;
import io.github.statustool.state.StateStore;
import io.github.statustool.state.StateTable.SegmentRow;
import io.github.statustool.state.StoredRow;
import java.io.IOException;
import java.util.ArrayList;
import java.util.List;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.CsvSource;

class CompactorTest {
  private static final long HOUR_MS = 3_600_000;
  private static final String ROW = FakeStore.text(Fixtures.stream("a").rowKey(SegmentRow.TYPE));

  private final FakeStore store = new FakeStore();
  private final Server one = new Server();
  private final Server two = new Server();

  /** A server of the slave. Its table of events knows the table, so that there are no rows but the stream's. */
  private final class Server {
    private final TableEvents tables = new TableEvents();
    private final AppliedSegments applied = new AppliedSegments(tables);
    private boolean cut;
    private final WriteThrough writeThrough = new WriteThrough(this::connect, applied, Fixtures.health(), 1000,
        Fixtures.copies(() -> false, () -> false));
    private final Compactor compactor = new Compactor(applied, 1000);

    private Server() {
      tables.arrived("t", 0, 0);
    }

    /** Null where there is no connection. */
    private StateStore connect() {
      return cut ? null : store;
    }

    private void apply(long prev, long seq) {
      writeThrough.write(Fixtures.batch(Fixtures.entry("a", prev, seq)));
    }

    /** As the recorder does, as long as there is work. */
    private void compact(long now) throws IOException {
      while (!applied.scattered().isEmpty()) {
        compactor.step(store, now);
      }
    }

    private void flush(long now) throws IOException {
      List<Change> changes = new ArrayList<>();
      applied.collect(changes, now);
      store.put(Change.rows(changes));
      changes.forEach(Change::stored);
    }

    private byte[] column() {
      return applied.record(Fixtures.stream("a")).qualifier();
    }
  }

  private static long now() {
    return System.currentTimeMillis();
  }

  private List<byte[]> columns() {
    List<byte[]> columns = new ArrayList<>();
    store.rows.get(ROW).values.forEach((qualifier, value) -> {
      if (SegmentColumn.read(qualifier, value, new SegmentSet())) {
        columns.add(qualifier);
      }
    });
    return columns;
  }

  private List<Segment> whole() {
    SegmentSet whole = new SegmentSet();
    store.rows.get(ROW).values.forEach((qualifier, value) -> SegmentColumn.read(qualifier, value, whole));
    return whole.asList();
  }

  private List<Segment> of(Server server) {
    SegmentSet own = new SegmentSet();
    SegmentColumn.read(server.column(), store.rows.get(ROW).value(server.column()), own);
    return own.asList();
  }

  @Test
  void aServerHasOneColumnHoweverManyBatches() throws IOException {
    for (int i = 0; i < 1000; i++) {
      one.apply(i, i + 1);
      one.compact(now());
    }
    assertEquals(1, columns().size());
    assertEquals(List.of(segment(0, 1000)), whole());
  }

  /** Two servers that take turns: neither names the parts in between for long, and nothing is deleted. */
  @Test
  void whatOthersHaveIsTakenOver() throws IOException {
    for (int i = 0; i < 200; i++) {
      (i % 2 == 0 ? one : two).apply(i, i + 1);
      one.compact(now());
      two.compact(now());
      assertTrue(of(one).size() <= 17, "named one by one: " + of(one).size());
    }
    assertEquals(2, columns().size());
    assertEquals(List.of(segment(0, 200)), whole());
  }

  /**
   * Both go on applying requests, and the table has nothing of them for long. It may have no column of the other one: the
   * stream began meanwhile; or only one that looks as if nobody wrote to it any more.
   */
  @ParameterizedTest
  @CsvSource({"false, false, 300000", "true, false, 300000", "false, true, 300000", "true, true, 300000",
      "true, true, 3660000"})
  void serversThatAreCutOffFillEachOthersHolesInTheEnd(boolean both, boolean hadColumn, long forMs) throws Exception {
    if (hadColumn) {
      two.apply(0, 1);
    }
    two.cut = true;
    one.cut = both;
    for (int i = hadColumn ? 1 : 0; i < 1000; i++) {
      (i % 2 == 0 ? two : one).apply(i, i + 1);
    }
    two.cut = false;
    one.cut = false;
    for (Server server : List.of(one, two)) {
      server.flush(now() + forMs);
      server.compact(now() + forMs);
    }
    one.apply(1000, 1001);
    one.compact(now() + forMs);
    assertEquals(List.of(segment(0, 1001)), whole());
  }

  @Test
  void aColumnThatNobodyWritesToAnyMoreIsTakenOverAndDropped() throws IOException {
    two.apply(0, 3);
    one.apply(3, 5);
    one.compact(now());
    assertEquals(2, columns().size(), "it may be alive");
    Server later = new Server();
    later.apply(5, 6);
    later.compact(now() + 2 * HOUR_MS);
    assertEquals(1, columns().size());
    assertArrayEquals(later.column(), columns().get(0));
    assertEquals(List.of(segment(0, 6)), whole());
  }

  @Test
  void whatIsWrittenAfterItWasReadIsNotDeleted() throws IOException {
    two.apply(0, 3);
    StoredRow read = new StoredRow(store.rows.get(ROW).key);
    read.put(two.column(), store.rows.get(ROW).value(two.column()), store.rows.get(ROW).timestamp(two.column()));
    two.apply(3, 4);
    store.replaceAsync(new StateRow(read.key), read, List.of(two.column()));
    assertEquals(List.of(segment(0, 4)), whole());
  }

  /** A stream that was dropped as idle begins another column: it must not write less over more. */
  @Test
  void aStreamThatComesBackKeepsWhatWasThere() {
    one.apply(0, 3);
    one.applied.forgetIdle(now() + 3 * HOUR_MS);
    one.apply(5, 6);
    assertEquals(List.of(segment(0, 3), segment(5, 6)), whole());
  }

  @Test
  void whatIsNotWrittenYetIsNotDroppedAsIdle() {
    store.down = true;
    one.apply(0, 3);
    one.applied.forgetIdle(now() + 3 * HOUR_MS);
    List<Change> changes = new ArrayList<>();
    one.applied.collect(changes, now());
    assertEquals(1, changes.size());
  }

  @Test
  void whatCouldNotBeReadIsTriedAgain() throws IOException {
    one.apply(0, 3);
    store.down = true;
    assertThrows(IOException.class, () -> one.compactor.step(store, now()));
    assertFalse(one.applied.scattered().isEmpty());
    store.down = false;
    one.compact(now());
    assertTrue(one.applied.scattered().isEmpty());
  }
}
