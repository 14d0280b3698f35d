package io.github.statustool;

import io.github.statustool.content.MarkerForwarder;
import io.github.statustool.content.MetaLineage;
import io.github.statustool.content.TableWrites;
import io.github.statustool.recorder.Recorder;
import io.github.statustool.server.BareWals;
import io.github.statustool.server.WalWatch;
import io.github.statustool.state.Health;
import io.github.statustool.state.Ids;
import java.util.Arrays;
import java.util.List;
import java.util.Optional;
import org.apache.hadoop.conf.Configuration;
import org.apache.hadoop.hbase.CoprocessorEnvironment;
import org.apache.hadoop.hbase.client.RegionInfo;
import org.apache.hadoop.hbase.coprocessor.CoprocessorHost;
import org.apache.hadoop.hbase.coprocessor.ObserverContext;
import org.apache.hadoop.hbase.coprocessor.RegionServerCoprocessorEnvironment;
import org.apache.hadoop.hbase.coprocessor.WALCoprocessor;
import org.apache.hadoop.hbase.coprocessor.WALCoprocessorEnvironment;
import org.apache.hadoop.hbase.coprocessor.WALObserver;
import org.apache.hadoop.hbase.regionserver.HRegionServer;
import org.apache.hadoop.hbase.regionserver.wal.AbstractFSWAL;
import org.apache.hadoop.hbase.wal.WAL;
import org.apache.hadoop.hbase.wal.WALEdit;
import org.apache.hadoop.hbase.wal.WALKey;
import org.apache.hadoop.hbase.wal.WALKeyImpl;

/**
 * Observes the WALs of a region server that runs {@link ReplicateTimeTracker} only: markers, splits and merges in the
 * WAL of hbase:meta, and which clusters a table's entries have passed. It stamps no entries. That tracker installs this
 * class, in time because a server creates its WALs after it has loaded its coprocessors.
 */
@SuppressWarnings("deprecation") // the WAL hooks: deprecated to warn of changes, without a replacement
public final class MarkerObserver implements WALCoprocessor, WALObserver {
  private Recorder recorder;
  private WalWatch watch;
  private MarkerForwarder notes;
  private MetaLineage lineage;
  private boolean ignored;

  /** Called by HBase. */
  public MarkerObserver() {}

  /** As it is once it has seen its first entry. */
  MarkerObserver(Recorder recorder, MarkerForwarder notes) {
    this.recorder = recorder;
    this.notes = notes;
    this.lineage = new MetaLineage(recorder.observed().facts);
  }

  /**
   * Installs this class in a server that has not created its WALs yet, and returns what looks for WALs without it. The
   * environment's configuration is read-only, so the server's own is changed. Returns null if there is no such server.
   */
  static BareWals install(RegionServerCoprocessorEnvironment env, Health health) {
    if (!(env.getOnlineRegions() instanceof HRegionServer)) {
      return null;
    }
    HRegionServer server = (HRegionServer) env.getOnlineRegions();
    return BareWals.of(server, install(server.getConfiguration()), health);
  }

  /**
   * Adds this class to the WAL coprocessors, unless {@link WriteTimeTracker} is there, which observes the markers
   * itself. Returns the one that is there then.
   */
  static Class<? extends WALCoprocessor> install(Configuration conf) {
    List<String> classes = Arrays.asList(conf.getTrimmedStrings(CoprocessorHost.WAL_COPROCESSOR_CONF_KEY));
    // HBase also takes class|priority|path, so only the beginning is compared.
    if (classes.stream().anyMatch(name -> name.startsWith(WriteTimeTracker.class.getName()))) {
      return WriteTimeTracker.class;
    }
    if (classes.stream().noneMatch(name -> name.startsWith(MarkerObserver.class.getName()))) {
      String before = classes.isEmpty() ? "" : String.join(",", classes) + ",";
      conf.set(CoprocessorHost.WAL_COPROCESSOR_CONF_KEY, before + MarkerObserver.class.getName());
    }
    return MarkerObserver.class;
  }

  @Override
  public Optional<WALObserver> getWALObserver() {
    return Optional.of(this);
  }

  @Override
  @SuppressWarnings("rawtypes") // as HBase declares it
  public void start(CoprocessorEnvironment env) {
    SharedRecorders.Running running = SharedRecorders.of(env.getConfiguration());
    ignored = running == null;
    if (ignored) {
      return;
    }
    recorder = running.recorder;
    try {
      WAL wal = ((WALCoprocessorEnvironment) env).getWAL();
      // No wait for the archive: this WAL gives its server no writer's role, so nobody asks whether its end was clean.
      watch = new WalWatch((AbstractFSWAL<?>) wal, running.thread::wake, 0, recorder.health());
      watch.whenOpened(() -> recorder.roles().observeWal(watch));
      wal.registerWALActionsListener(watch);
    } catch (Throwable t) {
      ignored = true; // an unknown implementation of the WAL
    }
  }

  @Override
  public void postWALWrite(ObserverContext<? extends WALCoprocessorEnvironment> ctx, RegionInfo info, WALKey key,
      WALEdit edit) {
    try {
      if (notes == null && !prepare()) {
        return;
      }
      if (info.isMetaRegion()) {
        lineage.read(edit, key.getWriteTime());
      } else if (edit.isMetaEdit()) {
        notes.note(info, (WALKeyImpl) key, edit, null);
      } else if (!edit.isReplay()) {
        TableWrites writes = notes.writes(info);
        if (writes != null) {
          writes.add(key.getWriteTime(), edit, ((WALKeyImpl) key).getClusterIds(), false);
          notes.noteAppended(info, (WALKeyImpl) key);
        }
      }
    } catch (Throwable t) {
      recorder.health().error("postWALWrite", t);
    }
  }

  /** Prepares for the WAL; returns false if it is ignored. */
  private boolean prepare() {
    // Not at the start: the WAL shows its server only once it has its first file.
    String server = ignored ? null : watch.serverName();
    ignored = server == null; // the WAL of the HBase master's local store
    if (!ignored) {
      lineage = new MetaLineage(recorder.observed().facts);
      notes = new MarkerForwarder(Ids.origin(server), recorder.settings(), recorder.observed().content,
          recorder.observed().tableWrites, recorder.observed().facts);
    }
    return !ignored;
  }
}
