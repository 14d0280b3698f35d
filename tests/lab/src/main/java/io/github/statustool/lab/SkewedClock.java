package io.github.statustool.lab;

import java.io.File;
import java.util.concurrent.TimeUnit;
import org.apache.hadoop.hbase.CoprocessorEnvironment;
import org.apache.hadoop.hbase.coprocessor.MasterCoprocessor;
import org.apache.hadoop.hbase.coprocessor.RegionServerCoprocessor;
import org.apache.hadoop.hbase.util.EnvironmentEdge;
import org.apache.hadoop.hbase.util.EnvironmentEdgeManager;

/**
 * Makes a region server's or an HBase master's clock wrong by {@value #OFFSET} milliseconds, as HBase itself sees it, and by {@value #STEP}
 * more as long as there is a file {@value #MARK} in the server's folder: so that a running server's clock can be set.
 */
public final class SkewedClock implements MasterCoprocessor, RegionServerCoprocessor {

  static final String OFFSET = "lab.clock.offset";
  static final String STEP = "lab.clock.step";
  static final String MARK = "clock-step";

  @Override
  @SuppressWarnings("rawtypes") // as HBase declares it
  public void start(CoprocessorEnvironment env) {
    long offset = env.getConfiguration().getLong(OFFSET, 0);
    long step = env.getConfiguration().getLong(STEP, 0);
    EnvironmentEdgeManager.injectEdge(new Edge(offset, step));
  }

  /** Looks for the file ten times a second, not at every call. */
  private static final class Edge implements EnvironmentEdge {

    private static final long LOOK_NS = TimeUnit.MILLISECONDS.toNanos(100);

    private final long offset;
    private final long step;
    private final File mark = new File(MARK);
    private volatile long lookedAt = System.nanoTime() - LOOK_NS;
    private volatile boolean stepped;

    Edge(long offset, long step) {
      this.offset = offset;
      this.step = step;
    }

    @Override
    public long currentTime() {
      if (step != 0 && System.nanoTime() - lookedAt >= LOOK_NS) {
        lookedAt = System.nanoTime();
        stepped = mark.exists();
      }
      return System.currentTimeMillis() + offset + (stepped ? step : 0);
    }
  }
}
