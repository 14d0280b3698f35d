package io.github.statustool;

import java.util.function.LongSupplier;

/** Something that is due after a while. A clock that was set back must not put it off for as long. */
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
