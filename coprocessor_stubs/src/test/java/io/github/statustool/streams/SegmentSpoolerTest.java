package io.github.statustool.streams;

import static io.github.statustool.streams.Fixtures.segment;
import static org.junit.jupiter.api.Assertions.assertArrayEquals;
import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertFalse;
import static org.junit.jupiter.api.Assertions.assertNotEquals;
import static org.junit.jupiter.api.Assertions.assertTrue;

import io.github.statustool.content.TableEvents;
import io.github.statustool.state.Change;
import io.github.statustool.state.FakeStore;
import io.github.statustool.state.Spool;
import java.io.IOException;
import java.io.OutputStream;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.ArrayList;
import java.util.List;
import java.util.Set;
import java.util.concurrent.CountDownLatch;
import java.util.concurrent.Executor;
import java.util.concurrent.TimeUnit;
import java.util.concurrent.atomic.AtomicInteger;
import java.util.function.BooleanSupplier;
import org.apache.hadoop.conf.Configuration;
import org.apache.hadoop.fs.FSDataOutputStream;
import org.apache.hadoop.fs.RawLocalFileSystem;
import org.apache.hadoop.hbase.util.EnvironmentEdgeManager;
import org.apache.hadoop.util.Progressable;
import org.junit.jupiter.api.BeforeEach;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.io.TempDir;

class SegmentSpoolerTest {
  private static final long WAIT_S = 30;
  private static final long WAIT_MS = 50;

  @TempDir
  private Path folder;

  private final FakeStore store = new FakeStore();
  private final TableEvents tables = new TableEvents();
  private final AppliedSegments applied = new AppliedSegments(tables);
  private final CountDownLatch ended = new CountDownLatch(1);
  private Spool spool;
  private SegmentSpooler spooler;
  private long now = 1_000;
  private BooleanSupplier copies = () -> false;

  private final WriteThrough writeThrough =
      new WriteThrough(() -> store, applied, Fixtures.health(), 50,
          Fixtures.copies(() -> true, () -> copies.getAsBoolean()));

  @BeforeEach
  void breakTheTable() {
    spool = new Spool(flushing(), new org.apache.hadoop.fs.Path(folder.toUri()));
    spooler = spooler(spool, this::onThread);
    store.down = true;
  }

  /** A file system whose files can be flushed as those of HDFS can. */
  private static Configuration flushing() {
    Configuration conf = Fixtures.conf();
    conf.set("fs.file.impl", RawLocalFileSystem.class.getName());
    return conf;
  }

  private SegmentSpooler spooler(Spool to, Executor threads) {
    return new SegmentSpooler(to, applied, Fixtures.health(), () -> now++, () -> 5, threads, WAIT_MS);
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
            SegmentColumn.read(qualifier, value, segments));
      }
    });
    assertTrue(table.rows.keySet().stream().anyMatch(key -> key.startsWith("n")), "when the table's first entry arrived");
    return segments.asList();
  }

  @Test
  void whatACrashWouldTakeAlongIsInTheSpool() throws IOException {
    apply("a", 0, 3);
    spooler.copy();
    assertEquals(List.of(segment(0, 3)), recovered());
    assertTrue(applied.hasPending(), "the flush is still to come");
  }

  @Test
  void oneFileGrows() throws IOException {
    apply("a", 0, 3);
    spooler.copy();
    String[] before = files();
    apply("b", 20, 24);
    apply("a", 3, 8);
    spooler.copy();
    assertArrayEquals(before, files());
    assertEquals(Set.of(segment(0, 8), segment(20, 24)), Set.copyOf(recovered()));
  }

  @Test
  void whereAFileCannotBeFlushedThereIsANewOneEachTime() throws IOException {
    spool = new Spool(Fixtures.conf(), new org.apache.hadoop.fs.Path(folder.toUri()));
    spooler = spooler(spool, this::onThread);
    apply("a", 0, 3);
    spooler.copy();
    String[] before = files();
    apply("a", 3, 8);
    spooler.copy();
    assertEquals(1, files().length);
    assertNotEquals(before[0], files()[0]);
    assertFalse(spooler.areCheap());
    assertEquals(List.of(segment(0, 8)), recovered());
  }

  @Test
  void aLongFileIsReplacedByAShortOne() throws IOException {
    apply("a", 0, 1);
    spooler.copy();
    String[] before = files();
    long written = 0;
    for (long seq = 2; files()[0].equals(before[0]); seq++) {
      written = folder.resolve(before[0]).toFile().length();
      apply("a", seq - 1, seq);
      spooler.copy();
    }
    assertTrue(written > 1 << 20);
    assertEquals(1, files().length);
    assertTrue(folder.resolve(files()[0]).toFile().length() < 1_000);
    assertEquals(1, recovered().size());
  }

  @Test
  void aLineThatTheCrashCutOffIsPassedOver() throws IOException {
    apply("a", 0, 3);
    spooler.copy();
    Path file = folder.resolve(files()[0]);
    String whole = Files.readString(file);
    Files.writeString(file, whole + whole.lines().findFirst().orElseThrow().substring(0, 40));
    assertEquals(List.of(segment(0, 3)), recovered());
  }

  @Test
  void aRequestReturnsOnceItsSegmentsAreCopied() throws Exception {
    SegmentSpooler patient =
        new SegmentSpooler(spool, applied, Fixtures.health(), () -> now++, () -> 5, this::onThread,
            TimeUnit.SECONDS.toMillis(WAIT_S));
    copies = patient::copySoon;
    List<Segment> expected = new ArrayList<>();
    for (String region : List.of("a", "b", "c")) {
      apply(region, expected.size(), 9);
      expected.add(segment(expected.size(), 9));
      assertEquals(expected.size(), Files.readAllLines(folder.resolve(files()[0])).stream()
          .filter(line -> line.startsWith("{\"row\":\"73")).count());
    }
    flush();
    assertTrue(ended.await(WAIT_S, TimeUnit.SECONDS));
  }

  private void flush() {
    List<Change> changes = new ArrayList<>();
    applied.collect(changes, now);
    changes.forEach(Change::stored);
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
  void afterAFlushAnotherFileHasWhatIsStillPending() throws IOException {
    apply("a", 0, 3);
    spooler.copy();
    String[] before = files();
    flush();
    spooler.flushSucceeded();
    spooler.copy();
    assertArrayEquals(before, files(), "there is nothing to copy");
    apply("b", 20, 24);
    spooler.copy();
    assertEquals(1, files().length);
    assertNotEquals(before[0], files()[0]);
    assertEquals(List.of(segment(20, 24)), recovered());
  }

  /** The state table that has it may be lost, and the file stays. */
  @Test
  void everyFileHasTheFirstArrivals() throws IOException {
    EnvironmentEdgeManager.injectEdge(() -> 1_000); // later, the arrival would be due again
    try {
      apply("a", 0, 3);
      spooler.copy();
      flush();
      tables.dirty().forEach(Change::stored);
      spooler.flushSucceeded();
      apply("b", 20, 24);
      spooler.copy();
    } finally {
      EnvironmentEdgeManager.reset();
    }
    assertEquals(List.of(segment(20, 24)), recovered(), "and the arrival");
  }

  @Test
  void aFlushEndsTheThreadAndTakesTheFileAway() throws Exception {
    copies = spooler::copySoon;
    apply("a", 0, 3);
    long end = System.nanoTime() + TimeUnit.SECONDS.toNanos(WAIT_S);
    while (files().length == 0 && System.nanoTime() < end) {
      Thread.sleep(10);
    }
    assertEquals(1, files().length);
    flush();
    assertFalse(applied.hasPending());
    assertTrue(ended.await(WAIT_S, TimeUnit.SECONDS));
    assertEquals(0, files().length);
  }

  /** The monitor stops the thread between its last look at what is pending and its answer. */
  @Test
  void whatIsAddedAfterTheLastLookDoesNotCountAsFlushed() throws Exception {
    SegmentSpooler other = spooler(spool, work -> { });
    Thread worker = new Thread(other::run);
    synchronized (other) {
      worker.start();
      while (worker.getState() != Thread.State.BLOCKED) {
        Thread.sleep(1);
      }
      apply("a", 0, 3);
      assertFalse(other.copySoon(), "it is in no file and no table");
    }
    join(worker);
  }

  @Test
  void aThreadThatCouldNotBeStartedIsTriedAgain() {
    List<Runnable> threads = new ArrayList<>();
    SegmentSpooler other = spooler(spool, work -> {
      threads.add(work);
      if (threads.size() == 1) {
        throw new IllegalStateException("no thread");
      }
    });
    copies = other::copySoon;
    apply("a", 0, 3);
    apply("a", 3, 4);
    assertEquals(2, threads.size());
  }

  @Test
  void aFileSystemThatRefusesIsTriedAgain() throws IOException {
    Path blocked = folder.resolve("spool");
    Files.writeString(blocked, "not a folder");
    Spool refusing = new Spool(Fixtures.conf(), new org.apache.hadoop.fs.Path(blocked.toUri()));
    List<Runnable> threads = new ArrayList<>();
    SegmentSpooler other = spooler(refusing, threads::add);
    copies = other::copySoon;
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
    flush();
    join(worker);
    apply("a", 4, 5);
    assertEquals(2, threads.size(), "and another when it is needed again");
  }

  @Test
  void aCopyForWhichThereIsNoMemoryIsTriedAgain() {
    AtomicInteger attempts = new AtomicInteger();
    SegmentSpooler other = new SegmentSpooler(spool, applied, Fixtures.health(), () -> now++, () -> {
      if (attempts.incrementAndGet() == 1) {
        throw new OutOfMemoryError("thrown by a test");
      }
      return 5;
    }, work -> { }, WAIT_MS);
    apply("a", 0, 3);
    Thread worker = new Thread(other::run);
    worker.start();
    long end = System.nanoTime() + TimeUnit.SECONDS.toNanos(WAIT_S);
    while (attempts.get() < 2 && System.nanoTime() < end) {
      Thread.onSpinWait();
    }
    flush();
    join(worker);
    assertEquals(2, attempts.get());
  }

  /** As with a quota that is used up: files can be made, but nothing can be written to them. */
  public static final class FullFileSystem extends RawLocalFileSystem {
    private static final CountDownLatch ATTEMPTS = new CountDownLatch(3);
    private static volatile long most;

    @Override
    public FSDataOutputStream create(org.apache.hadoop.fs.Path file, boolean overwrite, int bufferSize,
        short replication, long blockSize, Progressable progress) throws IOException {
      super.create(file, overwrite, bufferSize, replication, blockSize, progress).close();
      most = Math.max(most, listStatus(file.getParent()).length);
      ATTEMPTS.countDown();
      return new FSDataOutputStream(new OutputStream() {
        @Override
        public void write(int b) throws IOException {
          throw new IOException("full");
        }
      }, null);
    }
  }

  @Test
  void whereNothingCanBeAppendedFilesDoNotPileUp() throws Exception {
    Configuration conf = Fixtures.conf();
    conf.set("fs.file.impl", FullFileSystem.class.getName());
    apply("a", 0, 3);
    SegmentSpooler other = spooler(new Spool(conf, new org.apache.hadoop.fs.Path(folder.toUri())), work -> { });
    Thread worker = new Thread(other::run);
    worker.start();
    assertTrue(FullFileSystem.ATTEMPTS.await(WAIT_S, TimeUnit.SECONDS));
    assertEquals(1, FullFileSystem.most);
    flush();
    join(worker);
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
