package io.github.statustool;

import java.util.Arrays;
import java.util.Optional;
import org.apache.hadoop.hbase.CoprocessorEnvironment;
import org.apache.hadoop.hbase.client.Mutation;
import org.apache.hadoop.hbase.coprocessor.ObserverContext;
import org.apache.hadoop.hbase.coprocessor.RegionServerCoprocessor;
import org.apache.hadoop.hbase.coprocessor.RegionServerCoprocessorEnvironment;
import org.apache.hadoop.hbase.coprocessor.RegionServerObserver;
import org.apache.hadoop.hbase.shaded.protobuf.generated.AdminProtos;

/**
 * Notes which stamped entries have been applied here by replication. For
 * {@code hbase.coprocessor.regionserver.classes} of the clusters that replicate to.
 *
 * <p>Collects a request's entries on its handler thread and writes their segments to the state table before the request
 * is acknowledged, waiting once and briefly; what could not be written goes out with the next flush of the
 * {@link Recorder}. The hooks never throw: an exception would make the source send again.
 */
@SuppressWarnings("deprecation") // the hooks around a request, which have no replacement
public final class ReplicateTimeTracker implements RegionServerCoprocessor, RegionServerObserver {
  private final ThreadLocal<SinkBatch> batches = ThreadLocal.withInitial(SinkBatch::new);
  private Recorder recorder;

  /** Made by HBase. */
  public ReplicateTimeTracker() {}

  /** For tests and benchmarks, which have no server. */
  ReplicateTimeTracker(Recorder recorder) {
    this.recorder = recorder;
  }

  @Override
  public Optional<RegionServerObserver> getRegionServerObserver() {
    return Optional.of(this);
  }

  @Override
  @SuppressWarnings("rawtypes") // as HBase declares it
  public void start(CoprocessorEnvironment env) {
    recorder = SharedRecorders.of(env.getConfiguration()).recorder;
    if (!hasSinkHook(RegionServerObserver.class)) {
      recorder.health().sinkHookIsMissing();
    }
    try {
      ServerWatch.watchMarkers((RegionServerCoprocessorEnvironment) env);
      recorder.roles().watchServer(new ServerWatch((RegionServerCoprocessorEnvironment) env));
      recorder.digests().start(new DigestServer((RegionServerCoprocessorEnvironment) env));
    } catch (Throwable t) {
      recorder.health().error("starting the replicate-time tracker", t);
    }
  }

  /** Whether an observer of this HBase is told what has been applied. */
  static boolean hasSinkHook(Class<?> observer) {
    return Arrays.stream(observer.getMethods()).anyMatch(m -> m.getName().equals("postReplicationSinkBatchMutate"));
  }

  /** HBase calls this before it closes the regions, which would wait for a scan. */
  @Override
  @SuppressWarnings("rawtypes") // as HBase declares it
  public void stop(CoprocessorEnvironment env) {
    recorder.digests().stop();
  }

  /** A request that failed half-way has left entries behind that were not applied. */
  @Override
  public void preReplicateLogEntries(ObserverContext<RegionServerCoprocessorEnvironment> ctx) {
    try {
      batches.get().clear();
    } catch (Throwable t) {
      recorder.health().error("preReplicateLogEntries", t);
    }
  }

  /** Called for each mutation, after the whole request has been applied. */
  @Override
  public void postReplicationSinkBatchMutate(ObserverContext<RegionServerCoprocessorEnvironment> ctx,
      AdminProtos.WALEntry entry, Mutation mutation) {
    try {
      batches.get().add(entry, mutation);
    } catch (Throwable t) {
      recorder.health().error("postReplicationSinkBatchMutate", t);
    }
  }

  @Override
  public void postReplicateLogEntries(ObserverContext<RegionServerCoprocessorEnvironment> ctx) {
    SinkBatch batch = batches.get();
    try {
      recorder.writeThrough().write(batch);
    } catch (Throwable t) {
      recorder.health().error("postReplicateLogEntries", t);
    } finally {
      batch.clear();
    }
  }
}
