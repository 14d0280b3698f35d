package io.github.statustool.state;

import static org.junit.jupiter.api.Assertions.assertDoesNotThrow;
import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertTrue;

import io.github.statustool.streams.Fixtures;
import org.apache.hadoop.hbase.util.EnvironmentEdgeManager;
import org.apache.hadoop.hbase.util.ManualEnvironmentEdge;
import org.junit.jupiter.api.AfterEach;
import org.junit.jupiter.api.Test;

class HealthTest {
  @AfterEach
  void resetClock() {
    EnvironmentEdgeManager.reset();
  }

  /** Hooks call it inside of their last catch: whatever leaves it would leave the hook. */
  @Test
  void aLogThatFailsLetsNothingOutAndTheErrorIsCounted() {
    ManualEnvironmentEdge clock = new ManualEnvironmentEdge();
    clock.setValue(7);
    EnvironmentEdgeManager.injectEdge(clock);
    Health health = new Health(Fixtures.failingLog());
    assertDoesNotThrow(() -> health.error("a hook", new StackOverflowError("thrown by a test")));
    assertEquals(1, health.errors());
    assertTrue(health.json(0, null).contains("\"last_error_ms\":7"));
  }
}
