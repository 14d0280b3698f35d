package io.github.statustool.server;

import static org.junit.jupiter.api.Assertions.assertDoesNotThrow;
import static org.junit.jupiter.api.Assertions.assertEquals;

import io.github.statustool.state.Health;
import io.github.statustool.streams.Fixtures;
import org.apache.hadoop.hbase.client.RegionInfo;
import org.apache.hadoop.hbase.wal.WALEdit;
import org.apache.hadoop.hbase.wal.WALKeyImpl;
import org.junit.jupiter.api.Test;

class WalWatchTest {
  private final RegionInfo region = Fixtures.region("t");

  /** FSHLog drops an entry whose hook fails, and its sync acknowledges it. */
  @Test
  void nothingLeavesTheHookThatCountsAFailedAppend() {
    Health health = new Health(Fixtures.failingLog());
    WalWatch watch = new WalWatch(null, () -> { }, 0, health);
    for (long seq = 1; seq <= 3; seq++) {
      WALKeyImpl key = Fixtures.key(region, seq, Fixtures.scopes());
      assertDoesNotThrow(() -> watch.visitLogEntryBeforeWrite(region, key, new WALEdit()));
    }
    assertEquals(2, health.errors(), "of those that were never appended");
  }
}
