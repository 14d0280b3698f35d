package io.github.statustool.recorder;

import java.util.concurrent.CountDownLatch;
import java.util.concurrent.TimeUnit;
import java.util.concurrent.TimeoutException;
import java.util.concurrent.locks.LockSupport;

/** The daemon thread that drives a {@link Recorder}, and what the JVM's shutdown hook waits for. */
public final class RecorderThread extends Thread {
  private static final long STOPPING_POLL_MS = 50;

  private final Recorder recorder;
  private final CountDownLatch done = new CountDownLatch(1);
  private volatile boolean stopping;

  public RecorderThread(Recorder recorder) {
    super("status-tool-recorder");
    this.recorder = recorder;
    setDaemon(true);
  }

  public void wake() {
    LockSupport.unpark(this);
  }

  @Override
  public void run() {
    long deadline = Long.MAX_VALUE;
    boolean stopSeen = false;
    while (true) {
      // Looked at before the tick: a whole tick has to follow the request to stop before the end is judged.
      if (stopping && !stopSeen) {
        stopSeen = true;
        deadline = System.currentTimeMillis() + recorder.settings().stopCloseWait;
      }
      guard(recorder::tick);
      if (stopSeen && isAtEnd(deadline)) {
        done.countDown();
        return;
      }
      pause();
    }
  }

  /**
   * Returns true if the work is done after a stop was requested. Until then the thread goes on ticking: on SIGTERM, the
   * JVM runs the hook that requests the stop while HBase is still closing the regions, whose last entries are yet to be
   * appended.
   */
  private boolean isAtEnd(long deadline) {
    if (recorder.isEnded()) {
      return true;
    }
    if (recorder.cannotEndCleanly() || System.currentTimeMillis() >= deadline) {
      guard(recorder::saveUnfinished);
      return true;
    }
    return false;
  }

  /** Runs the work and survives any error. */
  private void guard(Runnable work) {
    try {
      work.run();
    } catch (Throwable t) {
      // An error must not end the thread: nothing would be flushed any more, and no barrier echoed.
      try {
        recorder.health().error("the recorder", t);
      } catch (Throwable again) {
        // Without memory even the log may fail. It has been counted by then.
      }
    }
  }

  private void pause() {
    long millis = stopping ? STOPPING_POLL_MS : recorder.pause();
    LockSupport.parkNanos(TimeUnit.MILLISECONDS.toNanos(millis));
  }

  /**
   * Called by a JVM shutdown hook, concurrently with HBase's hook that joins the region server's thread. It first waits
   * for the WALs to be closed, then for the last flush or the spool. Both waits are bounded.
   */
  public void finish() {
    stopping = true;
    wake();
    try {
      long wait = recorder.settings().stopCloseWait + recorder.settings().stopFlushWait;
      if (!done.await(wait, TimeUnit.MILLISECONDS)) {
        recorder.health().failedWrite("the final flush", new TimeoutException("not done within " + wait + " ms"));
      }
    } catch (InterruptedException e) {
      Thread.currentThread().interrupt();
    }
  }
}
