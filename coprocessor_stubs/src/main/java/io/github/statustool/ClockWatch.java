package io.github.statustool;

import java.util.concurrent.TimeUnit;
import java.util.function.LongSupplier;

/**
 * Notices that the clock which gives entries their write times is set back. The highest write time of a stream then tells
 * no more which entries were appended late. By the recorder's thread alone.
 */
final class ClockWatch {
  /** Adjustments that are as small as this are not noticed; the tool allows for as much. */
  private static final long STEP_MS = 50;

  private final LongSupplier clock;
  private final LongSupplier nanos;
  private final Health health;
  private boolean begun;
  /** By how much the clock has been ahead of the steady one, at least. */
  private long ahead;

  /** @param nanos a clock that is never set, as System.nanoTime */
  ClockWatch(LongSupplier clock, LongSupplier nanos, Health health) {
    this.clock = clock;
    this.nanos = nanos;
    this.health = health;
  }

  /** The two clocks are not read at the same moment, so what lies between is the clock's to explain. */
  void look() {
    long before = steady();
    long time = clock.getAsLong();
    long after = steady();
    if (begun && time - before < ahead - STEP_MS) {
      health.clockWasSetBack(ahead + after);
      begun = false;
    }
    ahead = begun ? Math.max(ahead, time - after) : time - after;
    begun = true;
  }

  private long steady() {
    return TimeUnit.NANOSECONDS.toMillis(nanos.getAsLong());
  }
}
