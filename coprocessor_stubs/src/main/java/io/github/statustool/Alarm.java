package io.github.statustool;

import java.util.function.LongSupplier;

/**
 * A deadline on the server's clock. If the clock is set back, the deadline has passed: otherwise it would be delayed by
 * as much.
 */
final class Alarm {
  private final LongSupplier clock;
  private long setAt;
  private long dueAt;

  Alarm(LongSupplier clock) {
    this.clock = clock;
  }

  void set(long after) {
    setAt = clock.getAsLong();
    dueAt = setAt + after;
  }

  boolean isDue() {
    long now = clock.getAsLong();
    return now >= dueAt || now < setAt;
  }
}
