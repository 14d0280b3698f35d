package io.github.statustool.state;

import java.util.function.LongSupplier;

/**
 * A deadline on the server's clock. If the clock is set back, the deadline has passed: otherwise it would be delayed by
 * as much.
 */
public final class Alarm {
  private final LongSupplier clock;
  private long setAt;
  private long dueAt;

  public Alarm(LongSupplier clock) {
    this.clock = clock;
  }

  public void set(long after) {
    setAt = clock.getAsLong();
    dueAt = setAt + after;
  }

  public boolean isDue() {
    long now = clock.getAsLong();
    return now >= dueAt || now < setAt;
  }
}
