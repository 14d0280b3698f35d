package io.github.statustool;

import java.util.concurrent.TimeUnit;

/** Keeps digests to a rate of bytes and to half of their thread's time. */
final class DigestPace {
  private static final long SHORTEST_PAUSE = TimeUnit.MILLISECONDS.toNanos(2);

  /** Waits; may return early. */
  interface Sleeper {
    void sleep(long nanos);
  }

  private final Sleeper sleeper;
  private final double nanosPerByte;
  private long owed;

  DigestPace(long bytesPerSecond, Sleeper sleeper) {
    this.sleeper = sleeper;
    this.nanosPerByte = (double) TimeUnit.SECONDS.toNanos(1) / bytesPerSecond;
  }

  /** After so much work: a pause that is as long as the work was, or longer where the rate asks for it. */
  void worked(long nanos, long bytes) {
    owed += Math.max(nanos, (long) (bytes * nanosPerByte) - nanos);
    if (owed >= SHORTEST_PAUSE) {
      long pause = owed;
      owed = 0;
      sleeper.sleep(pause);
    }
  }
}
