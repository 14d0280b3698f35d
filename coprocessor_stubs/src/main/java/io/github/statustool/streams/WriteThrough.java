package io.github.statustool.streams;

import io.github.statustool.state.Change;
import io.github.statustool.state.Health;
import io.github.statustool.state.StateStore;
import java.util.ArrayList;
import java.util.List;
import java.util.concurrent.CompletableFuture;
import java.util.concurrent.TimeUnit;
import java.util.function.Supplier;
import org.apache.hadoop.hbase.util.EnvironmentEdgeManager;

/**
 * Records a request's segments before the request is acknowledged, so that a crash right afterwards loses nothing: in the
 * spool (see {@code SegmentSpooler}), as an append takes a third of the CPU of a put, or else in the table; the other way
 * round where files cannot be appended to. They stay pending until they are in the table, by a flush at the latest. Waits
 * once and briefly for each; after a failure, requests do not wait for the table again until a flush has succeeded. Why:
 * a replication handler that waited with each request would slow down replication.
 */
public final class WriteThrough {
  /** Copies of segments that are not in the table yet. */
  public interface Copies {
    /** Returns true if a copy takes less than a put. */
    boolean areCheap();

    /** Called by a replication handler whose segments stay pending; returns true once they are copied. */
    boolean copySoon();
  }

  private final Supplier<StateStore> stores;
  private final AppliedSegments applied;
  private final Health health;
  private final long waitMs;
  private final Copies copies;
  private volatile boolean broken;

  public WriteThrough(Supplier<StateStore> stores, AppliedSegments applied, Health health, long waitMs, Copies copies) {
    this.stores = stores;
    this.applied = applied;
    this.health = health;
    this.waitMs = waitMs;
    this.copies = copies;
  }

  public void write(SinkBatch batch) {
    if (batch.isEmpty()) {
      return;
    }
    long now = EnvironmentEdgeManager.currentTime();
    applied.keepUnstamped(batch.unstamped());
    List<AppliedEntries> streams = batch.streams(now);
    // Before the segments: a flush that sees them has to see when their table's first entry arrived.
    List<Change> events = applied.arrived(streams, batch.began(), now);
    List<StreamSegments> records = applied.add(streams, now);
    // Before the batch is acknowledged: after that, the master may delete the WAL with these entries.
    // After add(): dropIfStored() of another handler takes away a mark that comes before its entries.
    applied.keep(records);
    // Read once: the spool's thread may change it, and the request would then wait for two copies, or for none.
    boolean areCheap = copies.areCheap();
    boolean isRecorded = false;
    try {
      isRecorded = records.isEmpty() || (areCheap && copies.copySoon()) || write(records, events, now)
          || (!areCheap && copies.copySoon());
    } finally {
      // Also after an error that no catch sees, such as no memory: the next flush must not wait for its period.
      if (!isRecorded) {
        applied.notRecorded(records);
      }
    }
  }

  private boolean write(List<StreamSegments> records, List<Change> events, long now) {
    StateStore store = stores.get();
    // The recorder connects in its own time: until then there is no store, and the request must not wait for one.
    if (broken || store == null) {
      return false;
    }
    try {
      List<Change> segments = new ArrayList<>(records.size());
      records.forEach(record -> segments.add(record.toChange(now)));
      // One after the other: of one put HBase may write the segments and not the events.
      CompletableFuture<Void> first =
          events.isEmpty() ? CompletableFuture.completedFuture(null) : store.putAsync(Change.rows(events));
      first.thenCompose(done -> store.putAsync(Change.rows(segments))).get(waitMs, TimeUnit.MILLISECONDS);
      events.forEach(Change::stored);
      segments.forEach(Change::stored);
      records.forEach(record -> applied.dropIfStored(record.id));
      return true;
    } catch (InterruptedException e) {
      // `broken` stays as it is: an interrupt tells nothing about the table.
      Thread.currentThread().interrupt();
      return false;
    } catch (Exception e) {
      broken = true;
      health.failedWrite("writing replicated segments through", e);
      return false;
    }
  }

  public void flushSucceeded() {
    broken = false;
  }
}
