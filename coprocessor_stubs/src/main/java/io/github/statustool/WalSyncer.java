package io.github.statustool;

import java.io.IOException;
import java.io.UncheckedIOException;
import java.util.Collection;
import java.util.concurrent.CompletableFuture;

/**
 * Makes sure that what a flush says was appended is durable: a head moves with the append, before the sync, and a crash
 * in between would leave a head in the table whose entry exists nowhere, which no replication could ever reach.
 *
 * <p>A WAL in trouble may take minutes to answer, so the waiting is done by a thread of its own, one at a time.
 */
final class WalSyncer {
  private final long timeout;
  private CompletableFuture<Void> running = CompletableFuture.completedFuture(null);

  WalSyncer(long timeout) {
    this.timeout = timeout;
  }

  void sync(Collection<Watched> wals) throws IOException {
    if (!running.isDone()) {
      throw new IOException("the write-ahead log does not answer");
    }
    running = CompletableFuture.runAsync(() -> wals.forEach(WalSyncer::sync), WalSyncer::inNewThread);
    HBaseStateStore.await(running, timeout);
  }

  private static void sync(Watched wal) {
    try {
      wal.sync();
    } catch (IOException e) {
      throw new UncheckedIOException(e);
    }
  }

  private static void inNewThread(Runnable work) {
    Thread thread = new Thread(work, "status-tool-wal-sync");
    thread.setDaemon(true);
    thread.start();
  }
}
