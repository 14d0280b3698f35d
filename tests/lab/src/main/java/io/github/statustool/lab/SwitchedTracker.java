package io.github.statustool.lab;

import java.io.File;
import java.io.IOException;
import java.util.Optional;
import java.util.concurrent.TimeUnit;
import org.apache.hadoop.hbase.CoprocessorEnvironment;
import org.apache.hadoop.hbase.client.Mutation;
import org.apache.hadoop.hbase.coprocessor.ObserverContext;
import org.apache.hadoop.hbase.coprocessor.RegionServerCoprocessor;
import org.apache.hadoop.hbase.coprocessor.RegionServerCoprocessorEnvironment;
import org.apache.hadoop.hbase.coprocessor.RegionServerObserver;
import org.apache.hadoop.hbase.shaded.protobuf.generated.AdminProtos.WALEntry;

/**
 * Passes the hooks of replication requests on to {@value #TRACKER}, except while there is a file {@value #OFF} in the
 * server's folder: so that one JVM is measured with and without recording.
 */
@SuppressWarnings("deprecation") // the hooks around a request, which have no replacement
public final class SwitchedTracker implements RegionServerCoprocessor, RegionServerObserver {

  static final String TRACKER = "io.github.statustool.ReplicateTimeTracker";
  static final String OFF = "recording-off";
  private static final long LOOK_NS = TimeUnit.MILLISECONDS.toNanos(100);

  private final RegionServerCoprocessor tracker;
  private final RegionServerObserver hooks;
  private final File off = new File(OFF);
  private volatile long lookedAt;
  private volatile boolean isOn = true;

  /** Called by HBase. */
  public SwitchedTracker() throws ReflectiveOperationException {
    tracker = (RegionServerCoprocessor) Class.forName(TRACKER).getConstructor().newInstance();
    hooks = tracker.getRegionServerObserver().orElseThrow();
  }

  @Override
  public Optional<RegionServerObserver> getRegionServerObserver() {
    return Optional.of(this);
  }

  @Override
  @SuppressWarnings("rawtypes") // as HBase declares it
  public void start(CoprocessorEnvironment env) throws IOException {
    tracker.start(env);
  }

  @Override
  @SuppressWarnings("rawtypes") // as HBase declares it
  public void stop(CoprocessorEnvironment env) throws IOException {
    tracker.stop(env);
  }

  @Override
  public void preReplicateLogEntries(ObserverContext<RegionServerCoprocessorEnvironment> ctx) throws IOException {
    if (System.nanoTime() - lookedAt >= LOOK_NS) {
      lookedAt = System.nanoTime();
      isOn = !off.exists();
    }
    if (isOn) {
      hooks.preReplicateLogEntries(ctx);
    }
  }

  @Override
  public void postReplicationSinkBatchMutate(ObserverContext<RegionServerCoprocessorEnvironment> ctx,
      WALEntry entry, Mutation mutation) throws IOException {
    if (isOn) {
      hooks.postReplicationSinkBatchMutate(ctx, entry, mutation);
    }
  }

  @Override
  public void postReplicateLogEntries(ObserverContext<RegionServerCoprocessorEnvironment> ctx) throws IOException {
    if (isOn) {
      hooks.postReplicateLogEntries(ctx);
    }
  }
}
