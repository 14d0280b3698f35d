package io.github.statustool.state;

import java.util.function.LongSupplier;

/** A deadline on the server's clock. */
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
    // Due as well if the clock was set back: otherwise the deadline would be delayed by as much.
    return now >= dueAt || now < setAt;
  }
}
