package io.github.statustool;

import static org.junit.jupiter.api.Assertions.assertDoesNotThrow;
import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertFalse;
import static org.junit.jupiter.api.Assertions.assertTrue;

import io.github.statustool.content.MarkerForwarder;
import io.github.statustool.recorder.Recorder;
import io.github.statustool.state.Health;
import io.github.statustool.state.Settings;
import io.github.statustool.state.Spool;
import io.github.statustool.streams.Fixtures;
import io.github.statustool.streams.WalStamper;
import java.io.IOException;
import java.nio.file.Path;
import java.util.List;
import org.apache.hadoop.conf.Configuration;
import org.apache.hadoop.hbase.TableName;
import org.apache.hadoop.hbase.client.RegionInfo;
import org.apache.hadoop.hbase.client.RegionInfoBuilder;
import org.apache.hadoop.hbase.coprocessor.CoprocessorHost;
import org.apache.hadoop.hbase.wal.WALEdit;
import org.junit.jupiter.api.BeforeEach;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.io.TempDir;

/** Whatever happens inside: nothing leaves a hook, and it is counted. */
class HooksTest {
  @TempDir
  private Path folder;

  private final RegionInfo region = Fixtures.region("t");
  private Recorder recorder;

  @BeforeEach
  void makeRecorder() {
    Spool spool = new Spool(Fixtures.conf(), new org.apache.hadoop.fs.Path(folder.toUri()));
    recorder = new Recorder(new Settings(Fixtures.conf()), () -> {
      throw new IOException("nobody is there");
    }, spool, System::currentTimeMillis);
  }

  private static WALEdit throwing() {
    return new WALEdit() {
      @Override
      public java.util.Set<byte[]> getFamilies() {
        throw new StackOverflowError("thrown by a test");
      }
    };
  }

  @Test
  void nothingLeavesTheWalHooks() {
    WalStamper stamper = new WalStamper(Fixtures.ORIGIN, Fixtures.SETTINGS, recorder.observed(), recorder.health());
    WriteTimeTracker tracker = new WriteTimeTracker(recorder, stamper);
    assertDoesNotThrow(() -> {
      tracker.preWALWrite(null, region, Fixtures.key(region, 1, Fixtures.scopes()), throwing());
      tracker.preWALWrite(null, null, null, null);
      tracker.postWALWrite(null, null, null, null);
    });
    assertEquals(3, recorder.health().errors());
  }

  @Test
  void nothingLeavesTheSinkHooks() {
    ReplicateTimeTracker tracker = new ReplicateTimeTracker(recorder);
    assertDoesNotThrow(() -> {
      tracker.preReplicateLogEntries(null);
      tracker.postReplicationSinkBatchMutate(null, Fixtures.entry("a", 0, 3), Fixtures.put(Fixtures.GLOBAL));
      tracker.postReplicationSinkBatchMutate(null, null, null);
      tracker.postReplicateLogEntries(null);
    });
    assertTrue(recorder.observed().applied.hasPending());
    assertEquals(1, recorder.health().errors(), "of the entry that cannot be read");
  }

  /** On a slave with the contract's tracker alone, this hook alone sees what the slave's own clients write. */
  @Test
  void nothingLeavesTheHookOfObservedWals() {
    MarkerForwarder notes = new MarkerForwarder(Fixtures.ORIGIN, Fixtures.SETTINGS, recorder.observed().content,
        recorder.observed().tableWrites, recorder.observed().facts);
    MarkerObserver observer = new MarkerObserver(recorder, notes);
    RegionInfo region = RegionInfoBuilder.newBuilder(TableName.valueOf("t")).build();
    assertDoesNotThrow(() -> {
      observer.postWALWrite(null, region, null, new WALEdit());
      observer.postWALWrite(null, null, null, null);
    });
    assertEquals(2, recorder.health().errors());
  }

  /** The other one would record the same entries once more. */
  @Test
  void aWalIsObservedByOneTracker() {
    Configuration conf = new Configuration(false);
    conf.set(CoprocessorHost.WAL_COPROCESSOR_CONF_KEY, "other.Class");
    assertEquals(MarkerObserver.class, MarkerObserver.install(conf));
    assertEquals(MarkerObserver.class, MarkerObserver.install(conf));
    String both = "other.Class," + MarkerObserver.class.getName();
    assertEquals(both, conf.get(CoprocessorHost.WAL_COPROCESSOR_CONF_KEY));
    String writer = WriteTimeTracker.class.getName() + "|1|hdfs://trackers.jar";
    conf.set(CoprocessorHost.WAL_COPROCESSOR_CONF_KEY, writer);
    assertEquals(WriteTimeTracker.class, MarkerObserver.install(conf));
    assertEquals(writer, conf.get(CoprocessorHost.WAL_COPROCESSOR_CONF_KEY));
  }

  @Test
  void aRequestThatFailedLeavesNothingForTheNext() {
    ReplicateTimeTracker tracker = new ReplicateTimeTracker(recorder);
    tracker.preReplicateLogEntries(null);
    tracker.postReplicationSinkBatchMutate(null, Fixtures.entry("a", 0, 3), Fixtures.put(Fixtures.GLOBAL));
    tracker.preReplicateLogEntries(null);
    tracker.postReplicateLogEntries(null);
    assertTrue(recorder.observed().allChanges(0).isEmpty());
  }

  /** HBase's master branch loads coprocessors again when their list changes; its sink still calls the first ones. */
  @Test
  void theEntriesOfARequestComeFromAnEarlierInstance() {
    ReplicateTimeTracker earlier = new ReplicateTimeTracker(recorder);
    ReplicateTimeTracker tracker = new ReplicateTimeTracker(recorder);
    tracker.preReplicateLogEntries(null);
    earlier.postReplicationSinkBatchMutate(null, Fixtures.entry("a", 0, 3), Fixtures.put(Fixtures.GLOBAL));
    tracker.postReplicateLogEntries(null);
    assertTrue(recorder.observed().applied.hasPending());
    assertEquals(0, recorder.health().errors());
  }

  @Test
  void anEntryOutsideOfARequestIsAnErrorAndIsNotKept() {
    ReplicateTimeTracker tracker = new ReplicateTimeTracker(recorder);
    tracker.postReplicationSinkBatchMutate(null, Fixtures.entry("a", 0, 3), Fixtures.put(Fixtures.GLOBAL));
    tracker.postReplicateLogEntries(null);
    assertEquals(1, recorder.health().errors());
    assertTrue(recorder.observed().allChanges(0).isEmpty());
  }

  @Test
  void aTrackerThatCouldNotStartIsInert() {
    WriteTimeTracker tracker = new WriteTimeTracker(recorder, null);
    assertDoesNotThrow(() -> {
      tracker.preWALWrite(null, region, Fixtures.key(region, 1, Fixtures.scopes()), Fixtures.edit(Fixtures.GLOBAL));
      tracker.postWALWrite(null, region, Fixtures.key(region, 1, Fixtures.scopes()), Fixtures.edit(Fixtures.GLOBAL));
    });
  }

  @Test
  void anUnreachableClusterIsNoErrorOfTheRecorder() {
    recorder.roles().watchWal(new OpenWal());
    assertDoesNotThrow(recorder::tick);
    assertEquals(List.of(), recorder.observed().allChanges(0));
    assertEquals(0, recorder.health().errors());
  }

  /** HBase before HBASE-27529 (2.5.2 for one) never calls the hook; it must not look as if nothing had arrived. */
  @Test
  void anHBaseWithoutTheSinkHookIsTold() {
    assertTrue(ReplicateTimeTracker.hasSinkHook(org.apache.hadoop.hbase.coprocessor.RegionServerObserver.class));
    assertFalse(ReplicateTimeTracker.hasSinkHook(Runnable.class));
    Health health = new Health(org.slf4j.LoggerFactory.getLogger(HooksTest.class));
    assertFalse(health.json(0, null).contains("sink_hook"));
    health.sinkHookIsMissing();
    assertTrue(health.json(0, null).contains("\"sink_hook\":false"));
  }
}
