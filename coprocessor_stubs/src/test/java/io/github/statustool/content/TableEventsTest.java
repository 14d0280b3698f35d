package io.github.statustool.content;

import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertFalse;
import static org.junit.jupiter.api.Assertions.assertTrue;

import io.github.statustool.state.Change;
import io.github.statustool.state.StateRow;
import io.github.statustool.state.StateTable.TableEventRow;
import java.util.HashMap;
import java.util.List;
import java.util.Map;
import java.util.Set;
import java.util.TreeSet;
import org.apache.hadoop.hbase.util.Bytes;
import org.junit.jupiter.api.Test;

class TableEventsTest {
  private final TableEvents events = new TableEvents();

  private static TableEvents.OpenRegion open(String name, long openSeq, long now, String... families) {
    Map<String, Integer> scopes = new HashMap<>();
    for (String family : families) {
      scopes.put(family.substring(0, 1), family.endsWith("0") ? 0 : 1);
    }
    return new TableEvents.OpenRegion(name, "t", openSeq, scopes, 0, null, Map::of, now);
  }

  private static TableEvents.OpenRegion skipping(long skipped, long now) {
    return new TableEvents.OpenRegion("r", "t", 5, Map.of("f", 1), skipped, null, Map::of, now);
  }

  private Set<String> written() {
    Set<String> cells = new TreeSet<>();
    for (Change change : events.dirty()) {
      for (StateRow.Column column : change.row.columns()) {
        cells.add(new String(change.row.key) + " " + new String(column.qualifier) + " " + Bytes.toLong(column.value, 0)
            + "@" + column.timestamp);
      }
      change.stored();
    }
    return cells;
  }

  @Test
  void theFirstArrivalIsWrittenAndTheEarliestOfSeveralServersWins() {
    assertTrue(events.arrived("t", 50));
    assertTrue(events.arrived("t", 60), "until it is written");
    assertEquals(Set.of("nt a 50@" + (TableEventRow.EARLIEST_WINS - 50)), written());
    assertFalse(events.arrived("t", 70));
    assertEquals(Set.of(), written());
    assertTrue(TableEventRow.EARLIEST_WINS - 50 > TableEventRow.EARLIEST_WINS - 60);
  }

  /** What happened to the table in between came after entries of the longer request. */
  @Test
  void ofRequestsAtTheSameTimeTheOneThatBeganFirstCountsAlthoughItEndsLater() {
    events.arrived("t", 50, 60);
    written();
    assertTrue(events.arrived("t", 40, 70));
    assertEquals(Set.of("nt a 40@" + (TableEventRow.EARLIEST_WINS - 40)), written());
    assertFalse(events.arrived("t", 45, 80));
  }

  /** The state table may have gone back while the request ran. */
  @Test
  void anArrivalIsWrittenAgainByTheTimeWhenARequestEnds() {
    events.arrived("t", 50, 50);
    Set<String> first = written();
    assertTrue(events.arrived("t", 60, 50 + TableEvents.AGAIN_MS));
    assertEquals(first, written());
  }

  @Test
  void anArrivalIsWrittenAgainWithLaterEntriesBecauseTheTableMayHaveGoneBack() {
    events.arrived("t", 50);
    assertEquals(1, events.urgent().size());
    Set<String> first = written();
    assertTrue(events.arrived("t", 50 + TableEvents.AGAIN_MS));
    assertEquals(0, events.urgent().size(), "no flush is due each second because of it");
    assertEquals(first, written());
    assertFalse(events.arrived("t", 51 + TableEvents.AGAIN_MS));
  }

  @Test
  void whatAHandlerIsWritingWhenTheTableGoesBackIsWrittenAgain() {
    events.arrived("t", 50);
    events.born("t", 77);
    List<Change> underWay = events.dirty();
    events.forgetFlushes();
    underWay.forEach(Change::stored);
    assertTrue(events.arrived("t", 51), "what was stored, the table has lost");
    assertEquals(3, events.urgent().size());
    assertEquals(3, written().size());
    underWay.forEach(Change::stored);
    assertEquals(Set.of(), written());
  }

  @Test
  void aRegionThatHasNeverHeldAnythingIsABirthOfItsTable() {
    events.born("t", 77);
    assertEquals(Set.of("nt b 77@77", "nt c 77@" + (TableEventRow.EARLIEST_WINS - 77)), written());
  }

  @Test
  void ofSeveralBirthsTheFirstAndTheLastAreKept() {
    for (long id : new long[] {80, 77, 90}) {
      events.born("t", id);
    }
    assertEquals(Set.of("nt b 90@90", "nt c 77@" + (TableEventRow.EARLIEST_WINS - 77)), written());
  }

  @Test
  void aMoveIsNoBirth() {
    events.regions(List.of(open("r", 5, 5, "f")));
    events.regions(List.of());
    events.regions(List.of(open("r", 9, 6, "f")));
    assertEquals(Set.of(), written());
  }

  @Test
  void aFamilyThatIsGoneFromAReopenedRegionIsNoted() {
    events.regions(List.of(open("r", 5, 5, "f", "g")));
    events.regions(List.of(open("r", 5, 6, "f", "g")));
    events.regions(List.of(open("r", 8, 7, "g")));
    assertEquals(Set.of("nt ff 7@7"), written());
    events.regions(List.of(open("r", 11, 8, "f", "g")));
    assertEquals(Set.of(), written());
  }

  @Test
  void mutationsThatBypassTheWalAreNotedWhenTheirNumberGrows() {
    events.regions(List.of(skipping(0, 5)));
    assertEquals(Set.of(), written());
    events.regions(List.of(skipping(3, 6)));
    assertEquals(Set.of("nt w 6@6"), written());
    events.regions(List.of(skipping(3, 7)));
    events.regions(List.of(skipping(0, 8)));
    assertEquals(Set.of(), written());
    events.regions(List.of(skipping(1, 9)));
    assertEquals(Set.of("nt w 9@9"), written());
    events.regions(List.of(skipping(4, 10)));
    assertEquals(Set.of("nt w 10@10"), written());
    events.regions(List.of(skipping(2, 11))); // a flush and two more since
    assertEquals(Set.of("nt w 11@11"), written());
  }

  @Test
  void aFamilyThatIsReplicatedFromNowOnIsNoted() {
    events.regions(List.of(open("r", 5, 5, "f", "l0")));
    events.regions(List.of(open("r", 8, 7, "f", "l", "new")));
    assertEquals(Set.of("nt gl 7@7"), written());
    events.regions(List.of(open("r", 11, 9, "f0", "l", "new")));
    assertEquals(Set.of(), written());
  }

  /** HBase 2.6 alters a table without opening its regions anew if it is told so; a split is no opening of the parent. */
  @Test
  void aFamilyIsReplicatedFromTheTimeOnWhenTheLastRegionWithTheOldDescriptorWasSplit() {
    events.regions(List.of(open("parent", 5, 5, "f", "l0")));
    events.regions(List.of(open("parent", 5, 6, "f", "l0"), open("moved", 9, 6, "f", "l")));
    assertEquals(Set.of("nt gl 6@6"), written());
    events.regions(List.of(open("parent", 5, 7, "f", "l0"), open("moved", 9, 7, "f", "l")));
    events.regions(List.of(open("parent", 5, 8, "f", "l0"), open("moved", 9, 8, "f", "l"))); // closed, and listed again
    events.regions(List.of(open("moved", 9, 9, "f", "l")));
    events.regions(List.of(open("moved", 9, 10, "f", "l")));
    assertEquals(Set.of(), written());
    events.regions(List.of(open("moved", 9, 11, "f", "l"), open("daughter", 12, 11, "f", "l")));
    assertEquals(Set.of("nt gl 11@11"), written());
    events.regions(List.of(open("moved", 9, 12, "f", "l"), open("other", 7, 12, "f", "l")));
    assertEquals(Set.of(), written(), "all have the new one");
  }

  @Test
  void aTableThatLostItsRowsInTheStateTableIsWrittenAgain() {
    events.arrived("t", 50);
    written();
    events.forgetFlushes();
    assertEquals(1, written().size());
  }
}
