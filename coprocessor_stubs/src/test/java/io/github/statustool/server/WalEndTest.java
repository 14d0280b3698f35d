package io.github.statustool.server;

import static org.junit.jupiter.api.Assertions.assertDoesNotThrow;
import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertFalse;
import static org.junit.jupiter.api.Assertions.assertNull;
import static org.junit.jupiter.api.Assertions.assertThrows;
import static org.junit.jupiter.api.Assertions.assertTrue;

import io.github.statustool.state.Health;
import io.github.statustool.streams.Fixtures;
import io.github.statustool.streams.ObservedState;
import io.github.statustool.streams.WalStamper;
import java.io.IOException;
import java.util.Optional;
import java.util.concurrent.CompletableFuture;
import java.util.concurrent.CountDownLatch;
import java.util.concurrent.TimeUnit;
import org.apache.hadoop.conf.Configuration;
import org.apache.hadoop.fs.FileSystem;
import org.apache.hadoop.fs.Path;
import org.apache.hadoop.hbase.HBaseConfiguration;
import org.apache.hadoop.hbase.client.RegionInfo;
import org.apache.hadoop.hbase.coprocessor.CoprocessorHost;
import org.apache.hadoop.hbase.coprocessor.ObserverContext;
import org.apache.hadoop.hbase.coprocessor.WALCoprocessor;
import org.apache.hadoop.hbase.coprocessor.WALCoprocessorEnvironment;
import org.apache.hadoop.hbase.coprocessor.WALObserver;
import org.apache.hadoop.hbase.regionserver.MultiVersionConcurrencyControl;
import org.apache.hadoop.hbase.regionserver.wal.AbstractFSWAL;
import org.apache.hadoop.hbase.regionserver.wal.AsyncFSWAL;
import org.apache.hadoop.hbase.regionserver.wal.FSHLog;
import org.apache.hadoop.hbase.regionserver.wal.ProtobufLogWriter;
import org.apache.hadoop.hbase.wal.WAL;
import org.apache.hadoop.hbase.wal.WALEdit;
import org.apache.hadoop.hbase.wal.WALKey;
import org.apache.hadoop.hbase.wal.WALKeyImpl;
import org.apache.hadoop.hbase.wal.WALProvider.AsyncWriter;
import org.apache.hadoop.hbase.wal.WALProvider.Writer;
import org.apache.hbase.thirdparty.io.netty.channel.EventLoopGroup;
import org.apache.hbase.thirdparty.io.netty.channel.nio.NioEventLoopGroup;
import org.apache.hbase.thirdparty.io.netty.channel.socket.nio.NioSocketChannel;
import org.junit.jupiter.api.AfterEach;
import org.junit.jupiter.api.BeforeEach;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.io.TempDir;

/** How a real WAL ends, and what becomes of entries that were acknowledged before they were appended. */
class WalEndTest {
  private static final long WAIT_MS = 200;

  @TempDir
  private java.nio.file.Path folder;

  private final RegionInfo region = Fixtures.region("t");
  private final ObservedState observed = new ObservedState(Fixtures.health(), () -> 0);
  private final Health health = Fixtures.health();
  private final EventLoopGroup group = new NioEventLoopGroup(1);
  private final MultiVersionConcurrencyControl mvcc = new MultiVersionConcurrencyControl();
  private final CountDownLatch closing = new CountDownLatch(1);
  private Configuration conf;
  private Wal wal;
  private WalWatch watch;

  /** The hooks as the tracker has them; a test may hold them up, as a pipeline that does not answer would. */
  @SuppressWarnings("deprecation") // the WAL hooks
  public static final class Hooks implements WALCoprocessor, WALObserver {
    private static WalStamper stamper;
    private static CountDownLatch open = new CountDownLatch(0);
    private static CountDownLatch entered = new CountDownLatch(1);

    /** Made by HBase. */
    public Hooks() {}

    @Override
    public Optional<WALObserver> getWALObserver() {
      return Optional.of(this);
    }

    @Override
    public void preWALWrite(ObserverContext<? extends WALCoprocessorEnvironment> ctx, RegionInfo info, WALKey key,
        WALEdit edit) throws IOException {
      entered.countDown();
      try {
        open.await();
      } catch (InterruptedException e) {
        Thread.currentThread().interrupt();
      }
      stamper.before(info, (WALKeyImpl) key, edit);
    }

    @Override
    public void postWALWrite(ObserverContext<? extends WALCoprocessorEnvironment> ctx, RegionInfo info, WALKey key,
        WALEdit edit) throws IOException {
      stamper.after(info, (WALKeyImpl) key, edit);
    }
  }

  /** A real WAL whose file can be taken away from it, as a fenced server's is. */
  private static final class Wal extends AsyncFSWAL {
    private volatile boolean fenced;
    private volatile boolean full;

    private Wal(Configuration conf, Path root, String logs, EventLoopGroup group) throws IOException {
      super(FileSystem.getLocal(conf), root, logs, "archive", conf, null, true, "wal", null, group,
          NioSocketChannel.class);
    }

    @Override
    protected AsyncWriter createWriterInstance(Path path) throws IOException {
      if (full) {
        throw new IOException("could only be written to 0 of 1 nodes");
      }
      AsyncWriter real = super.createWriterInstance(path);
      return new AsyncWriter() {
        @Override
        public CompletableFuture<Long> sync(boolean force) {
          return fenced ? CompletableFuture.failedFuture(new IOException("fenced")) : real.sync(force);
        }

        @Override
        public void append(WAL.Entry entry) {
          real.append(entry);
        }

        @Override
        public long getLength() {
          return real.getLength();
        }

        @Override
        public long getSyncedLength() {
          return real.getSyncedLength();
        }

        @Override
        public void close() throws IOException {
          real.close();
        }
      };
    }
  }

  /** The file of an FSHLog, which may refuse entries. */
  public static final class Refusing extends ProtobufLogWriter {
    private static volatile boolean broken;

    /** Made by HBase. */
    public Refusing() {}

    @Override
    public void append(WAL.Entry entry) throws IOException {
      if (broken) {
        throw new IOException("no DataNode is left");
      }
      super.append(entry);
    }
  }

  @BeforeEach
  void open() throws IOException {
    conf = HBaseConfiguration.create();
    conf.set(CoprocessorHost.WAL_COPROCESSOR_CONF_KEY, Hooks.class.getName());
    conf.setBoolean("hbase.unsafe.stream.capability.enforce", false);
    // The shared file system of this JVM has the configuration of the test that used it first.
    conf.setBoolean("fs.file.impl.disable.cache", true);
    Hooks.stamper = new WalStamper(Fixtures.ORIGIN, Fixtures.SETTINGS, observed, Fixtures.health());
    Refusing.broken = false;
    Hooks.open = new CountDownLatch(0);
    Hooks.entered = new CountDownLatch(1);
    wal = new Wal(conf, new Path(folder.toUri()), "logs", group);
    watch = watched(wal);
    wal.init();
  }

  private WalWatch watched(AbstractFSWAL<?> wal) {
    WalWatch watch = new WalWatch(wal, closing::countDown, WAIT_MS, health);
    watch.counts(Hooks.stamper::appended);
    wal.registerWALActionsListener(watch);
    return watch;
  }

  @AfterEach
  void close() throws IOException {
    Hooks.open.countDown();
    wal.shutdown();
    group.shutdownGracefully(0, 1, TimeUnit.SECONDS);
  }

  /** As a write with ASYNC_WAL: it is acknowledged when this returns. */
  private void append() throws IOException {
    append(wal);
  }

  private void append(WAL wal) throws IOException {
    WALKeyImpl key = new WALKeyImpl(region.getEncodedNameAsBytes(), region.getTable(), 1_000L, mvcc,
        Fixtures.scopes());
    wal.appendData(region, key, Fixtures.edit(Fixtures.GLOBAL));
    mvcc.complete(key.getWriteEntry());
  }

  private long head() {
    return Fixtures.entries(observed, region);
  }

  /** HBase closes such a WAL and makes another one, and the server lives on: it must not look like one that has ended. */
  @Test
  void aWalThatHasNeverHadAFileIsOfNoServer() throws IOException {
    Wal other = new Wal(conf, new Path(folder.toUri()), "WALs/" + Fixtures.SERVER, group);
    WalWatch otherWatch = watched(other);
    other.full = true;
    assertThrows(IOException.class, other::init);
    assertDoesNotThrow(otherWatch::sync, "nothing can have been appended");
    otherWatch.logCloseRequested();
    assertNull(otherWatch.serverName());
    assertFalse(otherWatch.isClosing());
    assertFalse(otherWatch.isOver());
    other.full = false;
    other.init();
    assertEquals(Fixtures.SERVER, otherWatch.serverName());
    other.shutdown();
    assertTrue(otherWatch.isClosing());
  }

  @Test
  void anAcknowledgedEntryMayBeInNoHeadUntilASync() throws Exception {
    Hooks.open = new CountDownLatch(1);
    append();
    append();
    assertEquals(0, head(), "acknowledged, and in no head");
    CompletableFuture<Void> synced = WalSyncer.inNewThread(watch::sync);
    Thread.sleep(50);
    assertFalse(synced.isDone());
    Hooks.open.countDown();
    synced.get();
    assertEquals(2, head());
  }

  @Test
  void aWalThatIsClosedInGoodHealthEndsDurable() throws IOException {
    append();
    append();
    assertFalse(watch.isOver());
    wal.sync(); // as HBase does after the marker of each region's close
    wal.close();
    assertTrue(watch.isOver());
    assertTrue(watch.isDurable());
    assertEquals(2, head());
    watch.sync();
  }

  @Test
  void aWalThatClosesVouchesForNothingBeforeItIsDrained() throws Exception {
    watch.sync();
    Hooks.open = new CountDownLatch(1);
    append();
    Hooks.entered.await(); // HBase drops what is still in the ring buffer when it closes a WAL
    CompletableFuture<Void> closed = WalSyncer.inNewThread(wal::close);
    closing.await();
    assertEquals(0, head(), "acknowledged, and in no head");
    assertThrows(IOException.class, watch::sync);
    Hooks.open.countDown();
    closed.get();
    assertEquals(1, head());
    assertTrue(watch.isOver());
  }

  @Test
  void aWalThatNobodyWroteToEndsDurable() throws IOException {
    wal.shutdown();
    assertTrue(watch.isOver());
    assertTrue(watch.isDurable());
  }

  @Test
  void aFencedWalEndsLikeAnyOtherButNotDurable() throws Exception {
    append();
    watch.sync();
    wal.fenced = true;
    append();
    while (head() < 2) {
      Thread.sleep(1);
    }
    wal.shutdown();
    assertFalse(watch.isOver(), "it may still be archived");
    Thread.sleep(WAIT_MS + 50);
    assertTrue(watch.isOver());
    assertFalse(watch.isDurable());
    assertThrows(IOException.class, watch::sync);
  }

  @Test
  void entriesThatAWalDropsAreAnErrorAtTheNextOne() throws Exception {
    dropsAreAnError(true);
  }

  @Test
  void entriesThatAWalDropsAreAnErrorAtTheNextSync() throws Exception {
    dropsAreAnError(false);
  }

  private void dropsAreAnError(boolean goesOn) throws Exception {
    // In HBase 2.6 it is hbase.regionserver.wal.writer.impl.
    conf.setClass("hbase.regionserver.hlog.writer.impl", Refusing.class, Writer.class);
    Path root = new Path(folder.toUri());
    FSHLog other = new FSHLog(FileSystem.getLocal(conf), root, "others", "archive", conf, null, true, "fshlog", null);
    WalWatch otherWatch = watched(other);
    other.init();
    try {
      append(other);
      otherWatch.sync();
      Refusing.broken = true;
      append(other);
      append(other);
      assertThrows(IOException.class, otherWatch::sync);
      Refusing.broken = false;
      other.rollWriter(true);
      assertEquals(0, health.errors());
      if (goesOn) {
        append(other);
      }
      otherWatch.sync();
      assertEquals(1, health.errors(), "the server lives on, with two acknowledged entries that are in no file");
      assertEquals(goesOn ? 2 : 1, head());
      append(other);
      otherWatch.sync();
      assertEquals(1, health.errors());
    } finally {
      other.shutdown();
    }
  }

  @Test
  void entriesThatAreAppendedAgainAreNoError() throws Exception {
    append();
    watch.sync();
    wal.fenced = true;
    append();
    while (head() < 2) {
      Thread.sleep(1);
    }
    wal.fenced = false;
    wal.rollWriter(true);
    watch.sync();
    assertEquals(0, health.errors());
  }

  @Test
  void whatWasAppendedAfterTheLastSyncIsNotDurable() throws Exception {
    append();
    watch.sync();
    watch.sync();
    assertTrue(watch.isDurable());
    append();
    while (head() < 2) {
      Thread.sleep(1);
    }
    assertFalse(watch.isDurable());
    watch.sync();
    assertTrue(watch.isDurable());
  }
}
