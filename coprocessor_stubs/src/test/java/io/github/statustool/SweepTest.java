package io.github.statustool;

import static org.junit.jupiter.api.Assertions.assertEquals;

import java.io.IOException;
import java.util.List;
import org.apache.hadoop.hbase.ServerName;
import org.junit.jupiter.api.Test;

class SweepTest {
  private static final ServerName PASSER_BY = ServerName.valueOf("other.example.org,16020,1700000000009");

  private final FakeStore store = new FakeStore();
  private long now = 1_700_000_000_000L;
  private final Sweep sweep = new Sweep(new Settings(Fixtures.conf()), () -> now);

  private Long coverage() {
    return store.number(Columns.COVERAGE_ROW, Columns.A);
  }

  private void tracked(String server) throws IOException {
    ServerRole role = new ServerRole(ServerRole.WRITER, server, now);
    store.put(List.of(new StateRow(role.key()).add(Columns.N, Bits.utf8(server), now)));
  }

  @Test
  void aServerThatCameAndWentWithoutATrackerInterruptsTheCoverage() throws IOException {
    store.live.add(ServerName.valueOf(Fixtures.SERVER));
    tracked(Fixtures.SERVER);
    sweep.run(store, true);
    assertEquals(1_700_000_000_000L, coverage());
    store.live.add(PASSER_BY);
    sweep.look(store);
    store.live.remove(PASSER_BY);
    now += 10_000;
    sweep.look(store);
    long gone = now;
    now += 40_000;
    sweep.run(store, true);
    assertEquals(gone, coverage());
    now += 60_000;
    store.put(List.of(new StateRow(Columns.COVERAGE_ROW).add(Columns.A, 0, now)));
    sweep.run(store, true);
    assertEquals(0, coverage(), "once");
  }

  @Test
  void aTrackedServerMayComeAndGo() throws IOException {
    sweep.run(store, true);
    store.live.add(PASSER_BY);
    sweep.look(store);
    tracked(PASSER_BY.getServerName());
    store.live.clear();
    now += 10_000;
    sweep.run(store, true);
    assertEquals(1_700_000_000_000L, coverage());
  }
}
