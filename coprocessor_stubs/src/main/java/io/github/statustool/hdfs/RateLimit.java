package io.github.statustool.hdfs;

import java.util.concurrent.TimeUnit;

/** Spaces calls out evenly over all threads. */
final class RateLimit {
  private final long gapNanos;
  private long next = System.nanoTime();

  /** @param perSecond 0: no limit */
  RateLimit(double perSecond) {
    gapNanos = perSecond > 0 ? (long) (TimeUnit.SECONDS.toNanos(1) / perSecond) : 0;
  }

  /** Returns when the next call may be made. */
  void await() throws InterruptedException {
    if (gapNanos > 0) {
      TimeUnit.NANOSECONDS.sleep(turn(System.nanoTime()));
    }
  }

  /** Takes the next turn; returns how long it is until then. */
  synchronized long turn(long now) {
    long mine = now - next > 0 ? now : next;
    next = mine + gapNanos;
    return mine - now;
  }
}
