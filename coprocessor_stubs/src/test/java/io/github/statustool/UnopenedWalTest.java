package io.github.statustool;

import static org.junit.jupiter.api.Assertions.assertNull;
import static org.junit.jupiter.api.Assertions.assertThrows;

import java.io.IOException;
import java.lang.ref.WeakReference;
import java.util.concurrent.TimeUnit;
import org.apache.hadoop.conf.Configuration;
import org.apache.hadoop.fs.FileSystem;
import org.apache.hadoop.fs.Path;
import org.apache.hadoop.hbase.HBaseConfiguration;
import org.apache.hadoop.hbase.HConstants;
import org.apache.hadoop.hbase.coprocessor.CoprocessorHost;
import org.apache.hadoop.hbase.coprocessor.WALCoprocessor;
import org.apache.hadoop.hbase.regionserver.wal.AsyncFSWAL;
import org.apache.hadoop.hbase.wal.AsyncFSWALProvider.AsyncWriter;
import org.apache.hbase.thirdparty.io.netty.channel.EventLoopGroup;
import org.apache.hbase.thirdparty.io.netty.channel.nio.NioEventLoopGroup;
import org.apache.hbase.thirdparty.io.netty.channel.socket.nio.NioSocketChannel;
import org.junit.jupiter.api.AfterEach;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.io.TempDir;

/**
 * HBase makes another WAL at each attempt to open a region as long as it cannot create a file for one, and each has
 * more than half a megabyte of buffers: no tracker may keep them.
 */
class UnopenedWalTest {
  private static final int COLLECTIONS = 50;
  private static final long PAUSE_MS = 20;

  @TempDir
  private java.nio.file.Path folder;

  private final EventLoopGroup group = new NioEventLoopGroup(1);

  private static final class Full extends AsyncFSWAL {
    private Full(Configuration conf, Path root, EventLoopGroup group) throws IOException {
      super(FileSystem.getLocal(conf), root, "WALs/host,1,1", "oldWALs", conf, null, false, "wal", null, group,
          NioSocketChannel.class);
    }

    @Override
    protected AsyncWriter createWriterInstance(Path path) throws IOException {
      throw new IOException("could only be written to 0 of 1 nodes");
    }
  }

  @AfterEach
  void close() {
    group.shutdownGracefully(0, 1, TimeUnit.SECONDS);
  }

  @Test
  void theWriteTimeTrackerKeepsNone() throws Exception {
    keepsNone(WriteTimeTracker.class);
  }

  @Test
  void theMarkerObserverKeepsNone() throws Exception {
    keepsNone(MarkerObserver.class);
  }

  private void keepsNone(Class<? extends WALCoprocessor> tracker) throws Exception {
    Configuration conf = HBaseConfiguration.create();
    conf.set(HConstants.HBASE_DIR, folder.toUri().toString());
    conf.set(CoprocessorHost.WAL_COPROCESSOR_CONF_KEY, tracker.getName());
    WeakReference<Full> made = attempt(conf);
    for (int i = 0; i < COLLECTIONS && made.get() != null; i++) {
      System.gc();
      Thread.sleep(PAUSE_MS);
    }
    assertNull(made.get());
  }

  private WeakReference<Full> attempt(Configuration conf) throws IOException {
    Full wal = new Full(conf, new Path(folder.toUri()), group);
    assertThrows(IOException.class, wal::init);
    try {
      wal.close();
    } catch (IOException e) {
      // HBase 2.5.8 fails to close a WAL without a file, and so ends its server; 2.6 does not.
    }
    return new WeakReference<>(wal);
  }
}
