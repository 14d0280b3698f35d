package io.github.statustool;

import io.github.statustool.digests.DigestServer;
import io.github.statustool.recorder.Recorder;
import io.github.statustool.server.ServerWatch;
import io.github.statustool.streams.SinkBatch;
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
 * Records which stamped entries replication has applied on this server. Configured in {@code
 * hbase.coprocessor.regionserver.classes} of the slave clusters.
 *
 * <p>Collects a request's entries on its handler thread, and records their segments in the spool, or else in the state
 * table, before the request is acknowledged. It waits once and briefly for each. The next flush of the {@link Recorder}
 * puts them into the table. The hooks never throw: an exception would make the source ship the batch again.
 */
@SuppressWarnings("deprecation") // the hooks around a request, which have no replacement
public final class ReplicateTimeTracker implements RegionServerCoprocessor, RegionServerObserver {
  private Recorder recorder;

  /** Called by HBase. */
  public ReplicateTimeTracker() {}

  /** Creates a tracker for tests and benchmarks, which have no server. */
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
    SharedRecorders.Running running = SharedRecorders.of(env.getConfiguration());
    if (running == null) {
      return;
    }
    recorder = running.recorder;
    try {
      if (!hasSinkHook(RegionServerObserver.class)) {
        recorder.health().sinkHookIsMissing();
      }
      RegionServerCoprocessorEnvironment server = (RegionServerCoprocessorEnvironment) env;
      recorder.observed().content.followWals();
      ServerWatch watch = new ServerWatch(server, MarkerObserver.install(server, recorder.health()));
      recorder.roles().watchServer(watch);
      recorder.digests().start(new DigestServer(server.getOnlineRegions(), watch::serverName, env.getConfiguration()));
    } catch (Throwable t) {
      recorder.health().error("starting the replicate-time tracker", t);
    }
  }

  /** Returns true if this HBase version has the hook that reports applied mutations. */
  static boolean hasSinkHook(Class<?> observer) {
    return Arrays.stream(observer.getMethods()).anyMatch(m -> m.getName().equals("postReplicationSinkBatchMutate"));
  }

  /** Called before HBase closes the regions, which would wait for a running scan. */
  @Override
  @SuppressWarnings("rawtypes") // as HBase declares it
  public void stop(CoprocessorEnvironment env) {
    if (recorder != null) {
      recorder.digests().stop();
    }
  }

  /** Begins a request, and discards the entries of one that failed half-way: they were not applied. */
  @Override
  public void preReplicateLogEntries(ObserverContext<RegionServerCoprocessorEnvironment> ctx) {
    if (recorder == null) {
      return; // off
    }
    try {
      recorder.sinkBatch().begin();
    } catch (Throwable t) {
      recorder.health().error("preReplicateLogEntries", t);
    }
  }

  /** Called for each mutation after the whole request has been applied. */
  @Override
  public void postReplicationSinkBatchMutate(ObserverContext<RegionServerCoprocessorEnvironment> ctx,
      AdminProtos.WALEntry entry, Mutation mutation) {
    if (recorder == null) {
      return; // off
    }
    try {
      SinkBatch batch = recorder.sinkBatch();
      if (!batch.isOpen()) {
        throw new IllegalStateException("an entry outside of a request: restart this server"); // nothing would drop it
      }
      batch.add(entry, mutation);
    } catch (Throwable t) {
      recorder.health().error("postReplicationSinkBatchMutate", t);
    }
  }

  @Override
  public void postReplicateLogEntries(ObserverContext<RegionServerCoprocessorEnvironment> ctx) {
    if (recorder == null) {
      return; // off
    }
    try {
      SinkBatch batch = recorder.sinkBatch();
      try {
        recorder.writeThrough().write(batch);
      } finally {
        batch.clear();
      }
    } catch (Throwable t) {
      recorder.health().error("postReplicateLogEntries", t);
    }
  }
}
