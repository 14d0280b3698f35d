package io.github.statustool.digests;

import java.util.concurrent.TimeUnit;

/** Limits digests to a rate of bytes, and to half of their thread's time. */
final class DigestPace {
  private static final long SHORTEST_PAUSE = TimeUnit.MILLISECONDS.toNanos(2);

  /** Sleeps; may return early. */
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

  /** Pauses after work: as long as the work took, or longer if the rate requires it. */
  void worked(long nanos, long bytes) {
    owed += Math.max(nanos, (long) (bytes * nanosPerByte) - nanos);
    if (owed >= SHORTEST_PAUSE) {
      long pause = owed;
      owed = 0;
      sleeper.sleep(pause);
    }
  }
}
