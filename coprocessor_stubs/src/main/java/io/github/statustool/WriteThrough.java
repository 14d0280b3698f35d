package io.github.statustool;

import java.util.ArrayList;
import java.util.List;
import java.util.concurrent.TimeUnit;
import java.util.function.Supplier;

/**
 * Writes what a request applied before the request is acknowledged, so that a crash right afterwards loses nothing.
 * Waits once and briefly; after a failure no further request waits until a flush has succeeded.
 */
final class WriteThrough {
  private final Supplier<StateStore> stores;
  private final SinkLedger ledger;
  private final Health health;
  private final long waitMs;
  private volatile boolean broken;

  WriteThrough(Supplier<StateStore> stores, SinkLedger ledger, Health health, long waitMs) {
    this.stores = stores;
    this.ledger = ledger;
    this.health = health;
    this.waitMs = waitMs;
  }

  void write(SinkBatch batch) {
    if (batch.isEmpty()) {
      return;
    }
    ledger.keepUnstamped(batch.unstamped());
    List<AppliedStream> streams = batch.streams();
    boolean written = false;
    try {
      List<Change> events = ledger.arrived(streams, System.currentTimeMillis());
      written = streams.isEmpty() || write(streams, events);
    } finally {
      if (written) {
        ledger.written(streams);
      } else {
        ledger.keep(streams);
      }
    }
  }

  private boolean write(List<AppliedStream> streams, List<Change> events) {
    StateStore store = stores.get();
    if (broken || store == null) {
      return false;
    }
    try {
      store.putAsync(rows(streams, events)).get(waitMs, TimeUnit.MILLISECONDS);
      events.forEach(Change::stored);
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

  private static List<StateRow> rows(List<AppliedStream> streams, List<Change> events) {
    List<StateRow> rows = new ArrayList<>(streams.size() + events.size());
    events.forEach(event -> rows.add(event.row));
    for (AppliedStream stream : streams) {
      rows.add(stream.toRow());
    }
    return rows;
  }

  void flushSucceeded() {
    broken = false;
  }
}
