package io.github.statustool;

import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertNotNull;

import java.io.IOException;
import java.util.ArrayList;
import java.util.List;
import org.junit.jupiter.api.Test;

class CompactorTest {
  private final FakeStore store = new FakeStore();
  private final TableEvents tables = new TableEvents();
  private final SinkLedger ledger = new SinkLedger(tables);
  private final WriteThrough writeThrough = new WriteThrough(() -> store, ledger, Fixtures.health(), 1000);
  private final Compactor compactor = new Compactor(ledger.touched(), 1000);

  /** The table is known, so that there are no rows but the stream's. */
  private List<Segment> compact(long... ends) throws IOException {
    tables.arrived("t", 0);
    for (int i = 0; i < ends.length; i += 2) {
      writeThrough.write(Fixtures.batch(Fixtures.entry("a", ends[i], ends[i + 1])));
    }
    while (compactor.hasWork()) {
      compactor.step(store);
    }
    List<Segment> segments = new ArrayList<>();
    store.rows.values().iterator().next().values.forEach((qualifier, value) -> {
      if (Segment.parse(qualifier, value) != null) {
        segments.add(Segment.parse(qualifier, value));
      }
    });
    return segments;
  }

  @Test
  void partsAreReplacedByTheirUnion() throws IOException {
    List<Segment> segments = compact(0, 3, 3, 5, 5, 9, 12, 13);
    assertEquals(List.of(new Segment(0, 9, 0, 0), new Segment(12, 13, 0, 0)), segments);
    assertEquals(1003, segments.get(0).firstTime);
    assertEquals(1009, segments.get(0).lastTime);
    assertNotNull(store.rows.values().iterator().next().value(Columns.R));
  }

  @Test
  void whereNothingMergesNothingIsWritten() throws IOException {
    compact(0, 3, 5, 9);
    assertEquals(2, store.log.size());
  }

  @Test
  void aPartThatIsTheUnionStays() throws IOException {
    assertEquals(List.of(new Segment(0, 9, 0, 0)), compact(0, 9, 3, 5));
  }
}
