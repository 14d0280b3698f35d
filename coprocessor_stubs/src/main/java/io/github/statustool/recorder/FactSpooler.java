package io.github.statustool.recorder;

import io.github.statustool.state.Health;
import io.github.statustool.state.Spool;
import io.github.statustool.state.StateRow;
import java.io.IOException;
import java.nio.ByteBuffer;
import java.util.List;
import java.util.concurrent.CompletableFuture;
import java.util.concurrent.Executor;
import java.util.function.LongSupplier;
import java.util.stream.Collectors;
import org.apache.hadoop.fs.Path;

/**
 * Copies to the spool what only this server knows, while it cannot write to the state table: loads whose files may be
 * compacted by then, mutations that bypassed the WAL or came from a slave's own clients, and the tenures of its regions.
 * If the server crashes before the table is back, nothing else tells of them. Any tracker puts the copies into the
 * table; they are written to it once more by this server.
 */
final class FactSpooler {
  private final Spool spool;
  private final Health health;
  private final LongSupplier clock;
  private final LongSupplier origin;
  private final Executor files;
  private CompletableFuture<Void> writing = CompletableFuture.completedFuture(null);
  /** What the last copy says, so that an outage in which nothing happens costs nothing. */
  private List<List<ByteBuffer>> copied = List.of();
  private Path file;

  /**
   * @param origin names the files
   * @param files runs what a slow file system may delay
   */
  FactSpooler(Spool spool, Health health, LongSupplier clock, LongSupplier origin, Executor files) {
    this.spool = spool;
    this.health = health;
    this.clock = clock;
    this.origin = origin;
    this.files = files;
  }

  /**
   * Called by the recorder thread after each failure.
   *
   * @param rows all that the table lacks, in the order in which it is to be written
   */
  void copy(List<StateRow> rows) {
    List<List<ByteBuffer>> all = rows.stream().map(StateRow::contents).collect(Collectors.toList());
    // isDone() before `copied`: only a copy that is done makes visible to this thread what it has assigned.
    if (!rows.isEmpty() && writing.isDone() && !all.equals(copied)) {
      writing = CompletableFuture.runAsync(() -> write(rows, all), files);
    }
  }

  private void write(List<StateRow> rows, List<List<ByteBuffer>> all) {
    try {
      Path before = file;
      file = spool.write(origin.getAsLong(), clock.getAsLong(), rows);
      copied = all;
      // Only now: the new file has all that the table lacks. A crash in between leaves both, which does no harm.
      if (before != null) {
        spool.delete(before);
      }
    } catch (IOException | RuntimeException e) {
      health.failedWrite("spooling facts about regions and tables", e);
    }
  }
}
