package io.github.statustool.state;

import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertFalse;
import static org.junit.jupiter.api.Assertions.assertThrows;
import static org.junit.jupiter.api.Assertions.assertTrue;

import io.github.statustool.state.StateTable.CoverageRow;
import io.github.statustool.streams.Fixtures;
import java.io.IOException;
import java.util.List;
import org.junit.jupiter.api.Test;

class TableMarkTest {
  private static final long START = 1_700_000_000_000L;

  private final FakeStore store = new FakeStore();
  private long now = START;
  private long inFile;
  private boolean isFileSlow;
  private boolean isOutOfMemory;
  private int found;
  private final Health health = Fixtures.health();
  private TableMark mark = another();

  private final class File implements TableMark.MarkFile {
    @Override
    public long read() {
      if (isOutOfMemory) {
        throw new OutOfMemoryError();
      }
      return inFile;
    }

    @Override
    public void write(long number) {
      if (!isFileSlow) {
        inFile = Math.max(inFile, number);
      }
    }
  }

  private TableMark another() {
    return new TableMark(new File(), Runnable::run, health, () -> now);
  }

  private Long number() {
    return store.number(CoverageRow.KEY, CoverageRow.MARK);
  }

  private void set(long number) throws IOException {
    store.put(List.of(new StateRow(CoverageRow.KEY).add(CoverageRow.MARK, number, number)));
  }

  private void round(TableMark of) throws IOException {
    assertTrue(of.compare(store, () -> found++));
    of.raise(store, () -> found++);
  }

  private void round(long later) throws IOException {
    now += later;
    round(mark);
  }

  @Test
  void aFileThatAnErrorKeptFromBeingReadIsReadAgain() throws IOException {
    isOutOfMemory = true;
    assertFalse(mark.compare(store, () -> found++));
    isOutOfMemory = false;
    now += 1_000;
    assertTrue(mark.compare(store, () -> found++));
  }

  @Test
  void aNewTableGetsItsNumberAtOnceAndAnotherInEachPeriod() throws IOException {
    round(0);
    assertEquals(START, number());
    assertEquals(START, inFile);
    round(9_999);
    assertEquals(START, number());
    round(1);
    assertEquals(now, number());
    round(10_000);
    assertEquals(now, number());
    assertEquals(now, inFile);
    assertEquals(0, found);
  }

  @Test
  void oneTrackerRaisesItForAll() throws IOException {
    round(0);
    TableMark second = another();
    now += 3_000;
    round(second);
    for (int i = 0; i < 5; i++) {
      now += 7_000;
      round(mark);
      long raised = number();
      assertEquals(now, raised);
      now += 3_000;
      round(second);
      assertEquals(raised, number());
    }
    now += 10_000;
    round(second);
    assertEquals(now, number(), "the first one is gone");
  }

  @Test
  void aNumberInTheFutureIsRaisedAsWell() throws IOException {
    round(0);
    long future = now + 86_400_000;
    set(future);
    round(10_000);
    assertEquals(future, number(), "another tracker has just raised it");
    round(10_000);
    assertEquals(future + 1, number());
    round(10_000);
    assertEquals(future + 2, number());
    assertEquals(future + 2, inFile);
    set(future);
    assertEquals(0, found);
    TableMark restarted = another();
    store.rows.clear();
    set(future + 1);
    round(restarted);
    assertEquals(1, found, "the table went back");
  }

  /** What is written now looks as old as what a run has accepted or proven. */
  @Test
  void aClockThatWasSetBackWhileAllServersWereDownIsReported() throws IOException {
    round(0);
    now -= 30_001;
    round(another());
    assertTrue(health.json(0, null).contains("\"clock_back_ms\":" + START + ",\"clock_low_ms\":" + now));
    assertEquals(0, found);
  }

  @Test
  void soItIsWhereTheTableWasLostAndTheFileTells() throws IOException {
    inFile = START;
    now -= 30_001;
    round(another());
    assertTrue(health.json(0, null).contains("\"clock_back_ms\":" + START));
    assertEquals(1, found);
  }

  @Test
  void anotherServersClockMayBeAheadAsFarAsHBaseAllows() throws IOException {
    round(0);
    now -= 30_000;
    round(another());
    assertFalse(health.json(0, null).contains("clock"));
  }

  @Test
  void aTableWhoseFileIsGoneCountsAsOneThatWentBack() throws IOException {
    round(0);
    inFile = 0;
    now += 20_001;
    round(another());
    assertEquals(1, found);
    assertEquals(now, number());
    assertEquals(now, inFile);
    now += 60_000;
    round(another());
    assertEquals(1, found, "once");
  }

  /** Its first number is in the table before it is in the file. */
  @Test
  void whoComesToANewTableFindsNothing() throws IOException {
    isFileSlow = true;
    round(0);
    assertEquals(0, inFile);
    now += 20_000;
    round(another());
    assertEquals(0, found);
  }

  /** Others may have raised the number meanwhile, and all servers been restarted before the table went back. */
  @Test
  void theFileIsReadAgainWhereTheTableCouldNotBe() throws IOException {
    round(0);
    TableMark restarted = another();
    store.down = true;
    assertThrows(IOException.class, () -> round(restarted));
    store.down = false;
    inFile = START + 10;
    round(restarted);
    assertEquals(1, found);
  }
}
