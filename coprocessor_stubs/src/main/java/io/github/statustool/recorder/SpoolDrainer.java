package io.github.statustool.recorder;

import io.github.statustool.state.Health;
import io.github.statustool.state.Spool;
import io.github.statustool.state.StateStore;
import java.io.IOException;
import java.util.concurrent.Executor;
import java.util.concurrent.atomic.AtomicBoolean;
import org.slf4j.Logger;
import org.slf4j.LoggerFactory;

/**
 * Puts spooled rows into the state table, on a separate thread: a slow file system must not delay the echo of a
 * barrier.
 */
final class SpoolDrainer {
  private static final Logger LOG = LoggerFactory.getLogger(SpoolDrainer.class);

  private final Spool spool;
  private final Health health;
  private final Executor files;
  private final AtomicBoolean running = new AtomicBoolean();

  SpoolDrainer(Spool spool, Health health, Executor files) {
    this.spool = spool;
    this.health = health;
    this.files = files;
  }

  void drainLater(StateStore store) {
    if (running.compareAndSet(false, true)) {
      try {
        files.execute(() -> drain(store));
      } catch (Throwable t) { // no memory for a thread, too: the next flush tries again
        running.set(false);
        health.failedWrite("starting a thread for the spool", t);
      }
    }
  }

  private void drain(StateStore store) {
    try {
      int files = spool.drain(store);
      if (files > 0) {
        LOG.info("status-tool: put the rows of {} spool files into the state table", files);
      }
    } catch (IOException | RuntimeException e) {
      health.failedWrite("reading the spool", e);
    } finally {
      running.set(false);
    }
  }
}
