package io.github.statustool.lab;

import java.io.File;
import org.apache.hadoop.conf.Configuration;
import org.apache.hadoop.hdfs.HdfsConfiguration;
import org.apache.hadoop.hdfs.server.namenode.NameNode;
import org.apache.hadoop.metrics2.lib.DefaultMetricsSystem;

/** A NameNode that formats its empty folder first: saves the JVM that {@code NameNode -format} would take. */
public final class FormattedNameNode {

  private FormattedNameNode() {}

  /**
   * Formats {@code lab.namenode.dir} unless it was formatted before, then serves.
   *
   * @param args handed on to the NameNode
   */
  public static void main(String[] args) throws Exception {
    Configuration conf = new HdfsConfiguration();
    // Formatting registers the same metrics that serving will register again.
    DefaultMetricsSystem.setMiniClusterMode(true);
    if (!new File(conf.get("lab.namenode.dir"), "current").exists()) {
      NameNode.format(conf);
    }
    NameNode.main(args);
  }
}
