package io.github.statustool;

import static org.junit.jupiter.api.Assertions.assertArrayEquals;
import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertFalse;
import static org.junit.jupiter.api.Assertions.assertNotEquals;
import static org.junit.jupiter.api.Assertions.assertTrue;

import java.io.IOException;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.ArrayList;
import java.util.List;
import java.util.concurrent.CountDownLatch;
import java.util.concurrent.TimeUnit;
import org.junit.jupiter.api.BeforeEach;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.io.TempDir;

class SegmentSpoolerTest {
  private static final long WAIT_S = 30;

  @TempDir
  private Path folder;

  private final FakeStore store = new FakeStore();
  private final AppliedSegments applied = new AppliedSegments(new TableEvents());
  private final CountDownLatch ended = new CountDownLatch(1);
  private Spool spool;
  private SegmentSpooler spooler;
  private long now = 1_000;
  private Runnable whenKept = () -> { };

  private final WriteThrough writeThrough =
      new WriteThrough(() -> store, applied, Fixtures.health(), 50, () -> whenKept.run());

  @BeforeEach
  void breakTheTable() {
    spool = new Spool(Fixtures.conf(), new org.apache.hadoop.fs.Path(folder.toUri()));
    spooler = new SegmentSpooler(spool, applied, Fixtures.health(), () -> now++, () -> 5, this::onThread);
    store.down = true;
  }

  private void onThread(Runnable work) {
    SegmentSpooler.onThread(() -> {
      work.run();
      ended.countDown();
    });
  }

  private void apply(String region, long prev, long seq) {
    writeThrough.write(Fixtures.batch(Fixtures.entry(region, prev, seq)));
  }

  private String[] files() {
    return folder.toFile().list((in, name) -> name.endsWith(".jsonl"));
  }

  /** What another tracker would read from the file, with the server that wrote it gone. */
  private List<Segment> recovered() throws IOException {
    FakeStore table = new FakeStore();
    spool.drain(table);
    SegmentSet segments = new SegmentSet();
    table.rows.forEach((key, row) -> {
      if (key.startsWith("s")) {
        row.values.forEach((qualifier, value) ->
            SegmentColumn.read(qualifier, value, row.timestamp(qualifier), segments));
      }
    });
    assertTrue(table.rows.keySet().stream().anyMatch(key -> key.startsWith("n")), "when the table's first entry arrived");
    return segments.asList();
  }

  private static Segment segment(long prev, long seq) {
    return new Segment(prev, seq, 0, 0, 0, 0);
  }

  @Test
  void whatACrashWouldTakeAlongIsInTheSpool() throws IOException {
    apply("a", 0, 3);
    spooler.copy();
    assertEquals(List.of(segment(0, 3)), recovered());
    assertTrue(applied.hasPending(), "the flush is still to come");
  }

  @Test
  void thereIsOneFileAndItHoldsAllThatIsPending() throws IOException {
    apply("a", 0, 3);
    spooler.copy();
    String[] before = files();
    apply("a", 3, 8);
    spooler.copy();
    assertEquals(1, files().length);
    assertNotEquals(before[0], files()[0]);
    assertEquals(List.of(segment(0, 8)), recovered());
  }

  @Test
  void whatIsCopiedIsNotCopiedAgain() throws IOException {
    apply("a", 0, 3);
    spooler.copy();
    String[] before = files();
    spooler.copy();
    assertArrayEquals(before, files());
  }

  @Test
  void aFileThatAnotherTrackerTookIsNotMissed() throws IOException {
    apply("a", 0, 3);
    spooler.copy();
    spool.drain(new FakeStore());
    apply("b", 0, 4);
    spooler.copy();
    assertEquals(1, files().length);
    spool.drain(new FakeStore());
    spooler.delete();
    assertEquals(0, files().length);
  }

  @Test
  void aFlushEndsTheThreadAndTakesTheFileAway() throws Exception {
    whenKept = spooler::copyLater;
    apply("a", 0, 3);
    long end = System.nanoTime() + TimeUnit.SECONDS.toNanos(WAIT_S);
    while (files().length == 0 && System.nanoTime() < end) {
      Thread.sleep(10);
    }
    assertEquals(1, files().length);
    List<Change> changes = new ArrayList<>();
    applied.collect(changes, now);
    changes.forEach(Change::stored);
    assertFalse(applied.hasPending());
    assertTrue(ended.await(WAIT_S, TimeUnit.SECONDS));
    assertEquals(0, files().length);
  }

  @Test
  void aFileSystemThatRefusesIsTriedAgain() throws IOException {
    Path blocked = folder.resolve("spool");
    Files.writeString(blocked, "not a folder");
    Spool refusing = new Spool(Fixtures.conf(), new org.apache.hadoop.fs.Path(blocked.toUri()));
    List<Runnable> threads = new ArrayList<>();
    SegmentSpooler other =
        new SegmentSpooler(refusing, applied, Fixtures.health(), () -> now++, () -> 5, threads::add);
    whenKept = other::copyLater;
    apply("a", 0, 3);
    apply("a", 3, 4);
    assertEquals(1, threads.size(), "one at a time");
    Thread worker = new Thread(threads.get(0));
    worker.start();
    Files.delete(blocked);
    long end = System.nanoTime() + TimeUnit.SECONDS.toNanos(WAIT_S);
    while (!blocked.toFile().isDirectory() && System.nanoTime() < end) {
      Thread.onSpinWait();
    }
    assertTrue(blocked.toFile().isDirectory());
    List<Change> changes = new ArrayList<>();
    applied.collect(changes, now);
    changes.forEach(Change::stored);
    join(worker);
    apply("a", 4, 5);
    assertEquals(2, threads.size(), "and another when it is needed again");
  }

  private static void join(Thread worker) {
    try {
      worker.join(TimeUnit.SECONDS.toMillis(WAIT_S));
    } catch (InterruptedException e) {
      Thread.currentThread().interrupt();
    }
    assertFalse(worker.isAlive());
  }

  @Test
  void pausesGrowWithTheOutage() {
    assertEquals(1_000, SegmentSpooler.pause(0));
    assertEquals(5_000, SegmentSpooler.pause(50_000));
    assertEquals(10_000, SegmentSpooler.pause(3_600_000));
  }
}
