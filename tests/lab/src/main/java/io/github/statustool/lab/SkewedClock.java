package io.github.statustool.lab;

import org.apache.hadoop.hbase.CoprocessorEnvironment;
import org.apache.hadoop.hbase.coprocessor.RegionServerCoprocessor;
import org.apache.hadoop.hbase.util.EnvironmentEdge;
import org.apache.hadoop.hbase.util.EnvironmentEdgeManager;

/** Makes a region server's clock wrong by {@value #OFFSET} milliseconds, as HBase itself sees it. */
public final class SkewedClock implements RegionServerCoprocessor {

  static final String OFFSET = "lab.clock.offset";

  @Override
  @SuppressWarnings("rawtypes") // as HBase declares it
  public void start(CoprocessorEnvironment env) {
    long offset = env.getConfiguration().getLong(OFFSET, 0);
    EnvironmentEdgeManager.injectEdge(
        new EnvironmentEdge() {
          @Override
          public long currentTime() {
            return System.currentTimeMillis() + offset;
          }
        });
  }
}
