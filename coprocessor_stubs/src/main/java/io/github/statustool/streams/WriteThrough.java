package io.github.statustool.streams;

import io.github.statustool.state.Change;
import io.github.statustool.state.Health;
import io.github.statustool.state.StateRow;
import io.github.statustool.state.StateStore;
import java.util.ArrayList;
import java.util.List;
import java.util.concurrent.TimeUnit;
import java.util.function.Supplier;
import org.apache.hadoop.hbase.util.EnvironmentEdgeManager;

/**
 * Writes a request's segments before the request is acknowledged, so that a crash right afterwards loses nothing. Waits
 * once and briefly; after a failure, requests do not wait for the table again until a flush has succeeded. Why: a
 * replication handler that waited for an unavailable state table with each request would slow down replication. What is
 * not written stays pending, and is copied to the spool instead (see {@code SegmentSpooler}).
 */
public final class WriteThrough {
  private final Supplier<StateStore> stores;
  private final AppliedSegments applied;
  private final Health health;
  private final long waitMs;
  private final Runnable whenKept;
  private volatile boolean broken;

  /** @param whenKept called after segments could not be written and stay pending */
  public WriteThrough(Supplier<StateStore> stores, AppliedSegments applied, Health health, long waitMs, Runnable whenKept) {
    this.stores = stores;
    this.applied = applied;
    this.health = health;
    this.waitMs = waitMs;
    this.whenKept = whenKept;
  }

  public void write(SinkBatch batch) {
    if (batch.isEmpty()) {
      return;
    }
    long now = EnvironmentEdgeManager.currentTime();
    applied.keepUnstamped(batch.unstamped());
    List<AppliedEntries> streams = batch.streams(now);
    List<StreamSegments> records = applied.add(streams, now);
    boolean written = false;
    try {
      List<Change> changes = new ArrayList<>(applied.arrived(streams, now));
      written = records.isEmpty() || write(records, changes, now);
    } finally {
      if (!written) {
        // Before the batch is acknowledged: after that, the master may delete the WAL with these entries.
        applied.keep(records);
        whenKept.run();
      }
    }
  }

  private boolean write(List<StreamSegments> records, List<Change> changes, long now) {
    StateStore store = stores.get();
    if (broken || store == null) {
      return false;
    }
    try {
      records.forEach(record -> changes.add(record.toChange(now)));
      store.putAsync(rows(changes)).get(waitMs, TimeUnit.MILLISECONDS);
      changes.forEach(Change::stored);
      return true;
    } catch (InterruptedException e) {
      Thread.currentThread().interrupt();
      return false;
    } catch (Exception e) {
      broken = true;
      health.failedWrite("writing replicated segments through", e);
      return false;
    }
  }

  private static List<StateRow> rows(List<Change> changes) {
    List<StateRow> rows = new ArrayList<>(changes.size());
    changes.forEach(change -> rows.add(change.row));
    return rows;
  }

  public void flushSucceeded() {
    broken = false;
  }
}
