package io.github.statustool.lab;

import java.io.File;
import java.io.IOException;
import java.net.URI;
import org.apache.hadoop.conf.Configuration;
import org.apache.hadoop.crypto.key.KeyProvider;
import org.apache.hadoop.crypto.key.KeyProviderFactory;
import org.apache.hadoop.fs.FileSystem;
import org.apache.hadoop.hdfs.HdfsConfiguration;
import org.apache.hadoop.hdfs.server.datanode.DataNode;
import org.apache.hadoop.hdfs.server.namenode.NameNode;
import org.apache.hadoop.hdfs.server.namenode.ha.BootstrapStandby;
import org.apache.hadoop.metrics2.lib.DefaultMetricsSystem;
import org.apache.hadoop.util.ExitUtil;

/** A NameNode that fills its empty folder first: saves the JVM that {@code NameNode -format} would take. */
public final class FormattedNameNode {

  /** What BootstrapStandby returns when the other NameNode listens but does not serve yet. */
  private static final int NOT_STARTED = 2;

  private static final int PAUSES = 300;
  private static final long PAUSE_MS = 200;

  private FormattedNameNode() {}

  /**
   * Formats {@code lab.namenode.dir}, or copies the other NameNode's with {@code lab.namenode.bootstrap}, unless that
   * was done before; makes the keys {@code lab.keys}; then serves, with {@code lab.namenode.datanode} as a DataNode, too.
   *
   * @param args handed on to the NameNode
   */
  public static void main(String[] args) throws Exception {
    Configuration conf = new HdfsConfiguration();
    // Formatting registers the same metrics that serving will register again.
    DefaultMetricsSystem.setMiniClusterMode(true);
    if (!new File(conf.get("lab.namenode.dir"), "current").exists()) {
      if (conf.getBoolean("lab.namenode.bootstrap", false)) {
        bootstrap(conf);
      } else {
        makeKeys(conf);
        NameNode.format(conf);
      }
    }
    FileSystem.enableSymlinks(); // which no property does
    try {
      // Each makes a configuration of its own: formatting has changed this one.
      NameNode namenode = NameNode.createNameNode(args, null);
      if (conf.getBoolean("lab.namenode.datanode", false)) {
        DataNode.createDataNode(args, null);
      }
      namenode.join();
    // Other threads would keep the process alive.
    } catch (IOException | RuntimeException e) {
      ExitUtil.terminate(1, e);
    }
  }

  private static void bootstrap(Configuration conf) throws Exception {
    int code = NOT_STARTED;
    for (int pause = 0; code == NOT_STARTED && pause < PAUSES; pause++) {
      code = BootstrapStandby.run(new String[] {"-nonInteractive"}, new HdfsConfiguration(conf));
      if (code == NOT_STARTED) {
        Thread.sleep(PAUSE_MS);
      }
    }
    if (code != 0) {
      throw new IllegalStateException("bootstrapStandby ended with " + code);
    }
  }

  /** Before the NameNode starts: it reads a key store once. */
  private static void makeKeys(Configuration conf) throws Exception {
    String store = conf.get("hadoop.security.key.provider.path");
    for (String name : conf.getTrimmedStrings("lab.keys")) {
      KeyProvider keys = KeyProviderFactory.get(new URI(store), conf);
      keys.createKey(name, KeyProvider.options(conf));
      keys.flush();
    }
  }
}
