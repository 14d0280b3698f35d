package io.github.statustool.recorder;

import io.github.statustool.state.Health;
import java.util.concurrent.TimeUnit;
import java.util.function.LongSupplier;

/**
 * Detects that the clock from which entries take their write times was set back. From then on, the highest write time
 * of a stream no longer tells which entries were appended last. Used by the recorder thread only.
 */
final class ClockWatch {
  /** Smaller adjustments go undetected; the tool allows for them. */
  private static final long STEP_MS = 50;

  private final LongSupplier clock;
  private final LongSupplier nanos;
  private final Health health;
  private boolean begun;
  /** Lower bound of the difference between the wall clock and the monotonic clock. */
  private long ahead;

  /** @param nanos a monotonic clock, such as System.nanoTime */
  ClockWatch(LongSupplier clock, LongSupplier nanos, Health health) {
    this.clock = clock;
    this.nanos = nanos;
    this.health = health;
  }

  /** Compares the two clocks. */
  void check() {
    // Before and after the wall clock: a pause between two reads must not look like a clock that was set back.
    long before = steady();
    long time = clock.getAsLong();
    long after = steady();
    if (begun && time - before < ahead - STEP_MS) {
      health.clockWasSetBack(ahead + after, time);
      // Measured anew: against the difference of before, each later check would report the same step.
      begun = false;
    }
    ahead = begun ? Math.max(ahead, time - after) : time - after;
    begun = true;
  }

  private long steady() {
    return TimeUnit.NANOSECONDS.toMillis(nanos.getAsLong());
  }
}
