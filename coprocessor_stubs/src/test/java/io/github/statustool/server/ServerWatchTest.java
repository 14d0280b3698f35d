package io.github.statustool.server;

import static org.junit.jupiter.api.Assertions.assertNull;
import static org.junit.jupiter.api.Assertions.assertSame;

import java.nio.file.Path;
import java.util.concurrent.CountDownLatch;
import org.apache.hadoop.conf.Configuration;
import org.apache.hadoop.hbase.HBaseConfiguration;
import org.apache.hadoop.hbase.HConstants;
import org.apache.hadoop.hbase.regionserver.HRegionServer;
import org.apache.hadoop.hbase.util.JVMClusterUtil.RegionServerThread;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.io.TempDir;

class ServerWatchTest {
  @TempDir
  private Path root;

  @Test
  void theServerOfAnHBaseThatRunsStandaloneIsFoundByAnotherThreadThanItself() throws Exception {
    HRegionServer server = new HRegionServer(conf());
    String name = server.getServerName().getServerName();
    assertNull(ServerWatch.find(name));
    CountDownLatch end = new CountDownLatch(1);
    Thread thread = new RegionServerThread(server, 0) {
      @Override
      public void run() {
        awaitQuietly(end);
      }
    };
    thread.start();
    assertSame(server, ServerWatch.find(name));
    end.countDown();
    thread.join();
    server.getRpcServer().stop();
  }

  private static void awaitQuietly(CountDownLatch end) {
    try {
      end.await();
    } catch (InterruptedException e) {
      Thread.currentThread().interrupt();
    }
  }

  /** Of a server that has no cluster around it. */
  private Configuration conf() {
    Configuration conf = HBaseConfiguration.create();
    conf.setBoolean("hbase.testing.nocluster", true);
    conf.setInt(HConstants.REGIONSERVER_PORT, 0);
    conf.setInt(HConstants.REGIONSERVER_INFO_PORT, -1);
    conf.set(HConstants.HBASE_DIR, root.toUri().toString());
    conf.setInt(HConstants.ZOOKEEPER_CLIENT_PORT, 1); // nobody answers there, and nobody is asked again
    conf.setInt("zookeeper.recovery.retry", 0);
    return conf;
  }
}
