package io.github.statustool.hdfs;

import static org.junit.jupiter.api.Assertions.assertEquals;

import java.util.concurrent.TimeUnit;
import org.junit.jupiter.api.Test;

class RateLimitTest {
  @Test
  void turnsAreEvenlySpacedWhoeverTakesThem() {
    long now = System.nanoTime() + TimeUnit.SECONDS.toNanos(1);
    RateLimit limit = new RateLimit(100);
    assertEquals(0, limit.turn(now));
    assertEquals(10_000_000, limit.turn(now));
    assertEquals(15_000_000, limit.turn(now + 5_000_000));
    assertEquals(0, limit.turn(now + 1_000_000_000), "what was not used is not caught up with");
    assertEquals(10_000_000, limit.turn(now + 1_000_000_000));
  }

  @Test
  void noLimit() {
    RateLimit limit = new RateLimit(0);
    long now = System.nanoTime() + TimeUnit.SECONDS.toNanos(1);
    for (int i = 0; i < 1000; i++) {
      assertEquals(0, limit.turn(now));
    }
  }
}
