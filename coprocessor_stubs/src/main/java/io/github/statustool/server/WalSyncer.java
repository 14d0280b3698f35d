package io.github.statustool.server;

import io.github.statustool.state.HBaseStateStore;
import java.io.IOException;
import java.util.Collection;
import java.util.concurrent.CompletableFuture;

/**
 * Makes everything that a flush reports durable. A head advances with the append, before the sync. Without this sync, a
 * crash in between would leave a head in the table whose entry does not exist, so that replication could never catch up
 * with it. The sync also makes acknowledged entries pass the hooks that are still in the ring buffer (ASYNC_WAL).
 *
 * <p>A separate thread waits for the WAL.
 */
public final class WalSyncer {
  private final long timeout;
  private CompletableFuture<Void> running = CompletableFuture.completedFuture(null);

  public WalSyncer(long timeout) {
    this.timeout = timeout;
  }

  public void sync(Collection<ObservedWal> wals) throws IOException {
    if (wals.isEmpty()) {
      return;
    }
    // A WAL in trouble may block for minutes: the thread that waits for it is the only one.
    if (!running.isDone()) {
      throw new IOException("the write-ahead log does not answer");
    }
    running = inNewThread(() -> {
      for (ObservedWal wal : wals) {
        wal.sync();
      }
    });
    HBaseStateStore.await(running, timeout);
  }

  /** Work that may wait for a WAL. */
  public interface Work {
    void run() throws IOException;
  }

  /** Completes when the work does. */
  public static CompletableFuture<Void> inNewThread(Work work) {
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
