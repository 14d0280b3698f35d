package io.github.statustool;

import java.io.IOException;
import java.util.Collection;
import java.util.concurrent.CompletableFuture;

/**
 * Makes sure that what a flush says was appended is durable: a head moves with the append, before the sync, and a crash
 * in between would leave a head in the table whose entry exists nowhere, which no replication could ever reach. A sync
 * also brings through the hooks what was acknowledged before it was appended (ASYNC_WAL).
 *
 * <p>A WAL in trouble may take minutes to answer, so the waiting is done by a thread of its own, one at a time.
 */
final class WalSyncer {
  private final long timeout;
  private CompletableFuture<Void> running = CompletableFuture.completedFuture(null);

  WalSyncer(long timeout) {
    this.timeout = timeout;
  }

  void sync(Collection<ServerComponent> wals) throws IOException {
    if (wals.isEmpty()) {
      return;
    }
    if (!running.isDone()) {
      throw new IOException("the write-ahead log does not answer");
    }
    running = inNewThread(() -> {
      for (ServerComponent wal : wals) {
        wal.sync();
      }
    });
    HBaseStateStore.await(running, timeout);
  }

  /** Something that may wait for a write-ahead log. */
  interface Work {
    void run() throws IOException;
  }

  /** Completes as the work does. */
  static CompletableFuture<Void> inNewThread(Work work) {
    CompletableFuture<Void> done = new CompletableFuture<>();
    Thread thread = new Thread(() -> {
      try {
        work.run();
        done.complete(null);
      } catch (Throwable t) {
        done.completeExceptionally(t);
      }
    }, "status-tool-wal-sync");
    thread.setDaemon(true);
    thread.start();
    return done;
  }
}
