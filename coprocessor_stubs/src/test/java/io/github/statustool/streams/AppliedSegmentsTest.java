package io.github.statustool.streams;

import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertFalse;
import static org.junit.jupiter.api.Assertions.assertTrue;

import io.github.statustool.content.TableEvents;
import io.github.statustool.state.Change;
import io.github.statustool.state.StateRow;
import io.github.statustool.state.StateTable;
import java.util.AbstractSet;
import java.util.ArrayList;
import java.util.Iterator;
import java.util.List;
import java.util.Set;
import java.util.concurrent.ConcurrentHashMap;
import org.apache.hadoop.hbase.util.Bytes;
import org.junit.jupiter.api.Test;

class AppliedSegmentsTest {
  private static final long HOUR_MS = 3_600_000;

  /** What is pending, with a look right before and right after a stream is removed. */
  private static final class Watched extends AbstractSet<StreamId> {
    private final Set<StreamId> ids = ConcurrentHashMap.newKeySet();
    private Runnable before = () -> { };
    private Runnable after = () -> { };

    @Override
    public boolean add(StreamId id) {
      return ids.add(id);
    }

    @Override
    public boolean contains(Object id) {
      return ids.contains(id);
    }

    @Override
    public boolean remove(Object id) {
      before.run();
      boolean wasThere = ids.remove(id);
      after.run();
      return wasThere;
    }

    @Override
    public Iterator<StreamId> iterator() {
      Iterator<StreamId> all = ids.iterator();
      return new Iterator<>() {
        private StreamId last;

        @Override
        public boolean hasNext() {
          return all.hasNext();
        }

        @Override
        public StreamId next() {
          last = all.next();
          return last;
        }

        @Override
        public void remove() {
          Watched.this.remove(last);
        }
      };
    }

    @Override
    public int size() {
      return ids.size();
    }
  }

  private final Watched pending = new Watched();
  private final AppliedSegments applied = new AppliedSegments(new TableEvents(), pending);
  private final List<String> hidden = new ArrayList<>();
  /** A replication handler whose entries are neither in the table nor in the spool yet. */
  private final Thread handler = new Thread(() -> keep(3, 5));

  private void keep(long prev, long seq) {
    SinkBatch batch = Fixtures.batch(Fixtures.entry("a", prev, seq));
    applied.keep(applied.add(batch.streams(0), 0));
  }

  private List<Change> collected() {
    List<Change> changes = new ArrayList<>();
    applied.collect(changes, 0);
    return changes;
  }

  /** Lets the handler run as far as it can before a stream is removed; a copy that ends then looks right after that. */
  private void watch() {
    pending.before = () -> {
      pending.before = () -> { };
      handler.start();
      while (handler.getState() != Thread.State.TERMINATED && handler.getState() != Thread.State.BLOCKED) {
        Thread.onSpinWait();
      }
    };
    pending.after = () -> {
      if (handler.getState() == Thread.State.TERMINATED && !applied.hasPending()) {
        hidden.add("what the handler has kept");
      }
    };
  }

  private void assertNothingWasHidden() throws InterruptedException {
    handler.join();
    assertEquals(List.of(), hidden);
    assertTrue(applied.hasPending());
    assertEquals(1, collected().size());
  }

  @Test
  void whatIsKeptWhileAFlushDropsItsStreamIsPendingAtAnyTime() throws InterruptedException {
    keep(0, 3);
    watch();
    collected().forEach(Change::stored);
    assertNothingWasHidden();
  }

  @Test
  void whatIsKeptWhileAFlushPassesItsStreamOverIsPendingAtAnyTime() throws InterruptedException {
    keep(0, 3);
    applied.record(Fixtures.stream("a")).toChange(0).stored(); // written through, and not dropped yet
    watch();
    assertEquals(List.of(), collected());
    assertNothingWasHidden();
  }

  /** The table keeps the newest that it has ever got, so one that is dropped is not missed. */
  @Test
  void entriesWithoutAStampAreDroppedOnceTheyAreWrittenAndTheTableCannotLoseThem() {
    keepUnstamped(5);
    applied.forgetIdle(StateTable.LOSABLE_MS);
    List<Change> first = collected();
    assertEquals(1, first.size(), "not written yet");
    first.forEach(Change::stored);
    keepUnstamped(7);
    applied.forgetIdle(StateTable.LOSABLE_MS);
    List<Change> second = collected();
    assertEquals(1005, newest(first));
    assertEquals(1007, newest(second));
    second.forEach(Change::stored);
    applied.forgetIdle(StateTable.LOSABLE_MS - 1);
    applied.forgetFlushes();
    assertEquals(1, collected().size(), "not idle for so long");
    collected().forEach(Change::stored);
    applied.forgetIdle(StateTable.LOSABLE_MS);
    applied.forgetFlushes();
    assertEquals(List.of(), collected());
    keepUnstamped(6);
    assertEquals(1006, newest(collected()), "with its own timestamp, by which the table has 1007 still");
  }

  /** A region of the table that is opened elsewhere may have lost it: until then it is written again. */
  @Test
  void aStreamIsKeptAsLongAsTheTableMayLoseIt() {
    keep(0, 3);
    List<Change> late = new ArrayList<>();
    applied.collect(late, HOUR_MS); // the table was away until then
    late.forEach(Change::stored);
    applied.forgetIdle(HOUR_MS + StateTable.LOSABLE_MS - 1);
    applied.forgetFlushes();
    assertEquals(1, collected().size());
    collected().forEach(Change::stored);
    applied.forgetIdle(HOUR_MS + StateTable.LOSABLE_MS);
    applied.forgetFlushes();
    assertEquals(List.of(), collected());
  }

  private void keepUnstamped(long seq) {
    applied.keepUnstamped(Fixtures.batch(Fixtures.entry("a", seq, null)).unstamped());
  }

  /** The only column of the only change that is a time; its timestamp is the same. */
  private static long newest(List<Change> changes) {
    StateRow.Column column = changes.get(0).row.columns().get(0);
    assertEquals(column.timestamp, Bytes.toLong(column.value, 0));
    return column.timestamp;
  }

  @Test
  void whatIsWrittenIsDropped() {
    keep(0, 3);
    collected().forEach(Change::stored);
    assertFalse(applied.hasPending());
    assertFalse(applied.hasUncopied());
  }
}
