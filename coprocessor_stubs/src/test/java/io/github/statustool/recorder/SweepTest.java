package io.github.statustool.recorder;

import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertFalse;
import static org.junit.jupiter.api.Assertions.assertNull;
import static org.junit.jupiter.api.Assertions.assertTrue;

import io.github.statustool.state.FakeStore;
import io.github.statustool.state.Settings;
import io.github.statustool.state.StateRow;
import io.github.statustool.state.StateTable.CoverageRow;
import io.github.statustool.state.StateTable.ServerRow;
import io.github.statustool.streams.Fixtures;
import java.io.IOException;
import java.io.UncheckedIOException;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.ArrayList;
import java.util.HashSet;
import java.util.List;
import java.util.Map;
import java.util.Set;
import org.apache.hadoop.conf.Configuration;
import org.apache.hadoop.hbase.ServerName;
import org.apache.hadoop.hbase.util.Bytes;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.io.TempDir;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.ValueSource;

class SweepTest {
  private static final ServerName PASSER_BY = ServerName.valueOf("other.example.org,16020,1700000000009");

  private static final Set<Character> WRITERS = Set.of(ServerRole.WRITER);
  private static final Set<Character> BOTH = Set.of(ServerRole.WRITER, ServerRole.REPLICATOR);

  private final FakeStore store = new FakeStore();
  private final Set<String> innocent = new HashSet<>();
  private long now = 1_700_000_000_000L;
  private double lot = 0.99;
  private final Sweep sweep = new Sweep(new Settings(Fixtures.conf()), () -> now,
      (name, live) -> innocent.contains(name), () -> lot);

  private Long coverage() {
    return coverage(ServerRole.WRITER);
  }

  private Long coverage(char role) {
    return store.number(CoverageRow.KEY, Coverage.column(role));
  }

  private Long kept() {
    return store.number(CoverageRow.KEY, CoverageRow.KEPT_MS);
  }

  private void tracked(String server) throws IOException {
    tracked(server, ServerRole.WRITER);
  }

  private void tracked(String server, char as) throws IOException {
    ServerRole role = new ServerRole(as, server);
    store.put(List.of(new StateRow(role.key()).add(ServerRow.NAME, Bytes.toBytes(server), now)));
  }

  private Sweep another() {
    return new Sweep(new Settings(Fixtures.conf()), () -> now, (name, live) -> innocent.contains(name), () -> lot);
  }

  @ParameterizedTest
  @ValueSource(chars = {ServerRole.WRITER, ServerRole.REPLICATOR})
  void aServerThatCameAndWentWithoutATrackerInterruptsTheCoverage(char role) throws IOException {
    Set<Character> own = Set.of(role);
    store.live.add(ServerName.valueOf(Fixtures.SERVER));
    tracked(Fixtures.SERVER, role);
    sweep.run(store, own);
    assertEquals(1_700_000_000_000L, coverage(role));
    store.live.add(PASSER_BY);
    tracked(PASSER_BY.getServerName(), role == ServerRole.WRITER ? ServerRole.REPLICATOR : ServerRole.WRITER);
    sweep.recordLive(store);
    store.live.remove(PASSER_BY);
    now += 10_000;
    sweep.recordLive(store);
    long gone = now;
    now += 40_000;
    sweep.run(store, own);
    assertEquals(gone, coverage(role));
    assertEquals(1_700_000_000_000L, kept());
    now += 60_000;
    store.put(List.of(new StateRow(CoverageRow.KEY).add(Coverage.column(role), 0, now)));
    sweep.run(store, own);
    assertEquals(0, coverage(role), "once");
  }

  @Test
  void eachCoverageIsInterruptedByWhoLacksItsTracker() throws IOException {
    sweep.run(store, BOTH);
    store.live.add(PASSER_BY);
    tracked(PASSER_BY.getServerName());
    now += 10_000;
    sweep.run(store, BOTH);
    now += 131_000;
    sweep.run(store, BOTH);
    assertEquals(1_700_000_000_000L, coverage(ServerRole.WRITER));
    assertEquals(now, coverage(ServerRole.REPLICATOR));
  }

  @Test
  void theTracesOfAServerWithoutAnyTrackerAreLookedForOnce() throws IOException {
    List<String> looked = new ArrayList<>();
    Sweep counting = new Sweep(new Settings(Fixtures.conf()), () -> now, (name, live) -> !looked.add(name), () -> lot);
    counting.run(store, BOTH);
    store.live.add(PASSER_BY);
    counting.recordLive(store);
    store.live.clear();
    counting.run(store, BOTH);
    assertEquals(List.of(PASSER_BY.getServerName()), looked);
    assertEquals(now, coverage(ServerRole.REPLICATOR));
  }

  @Test
  void aNewTableIsKeptSinceCoverageBegan() throws IOException {
    long started = now;
    now += 5_000;
    sweep.run(store, BOTH);
    assertEquals(List.of(started, started, started), List.of(kept(), coverage('w'), coverage('r')));
    now += 5_000;
    another().run(store, BOTH);
    assertEquals(List.of(started, started, started), List.of(kept(), coverage('w'), coverage('r')));
  }

  /** Between the mark and the first look of a second tracker: the row of a new table is never like one from before. */
  @Test
  void theFirstTrackerWritesAllAtOnce() throws IOException {
    store.written = new ArrayList<>();
    sweep.begin(store, BOTH);
    assertEquals(3, store.written.get(0).columns().size());
    assertEquals(1, store.written.size());
    int gets = store.gets;
    sweep.begin(store, BOTH);
    assertEquals(gets, store.gets, "it looks once");
  }

  /** So that the two differ only after a server without the tracker was there. */
  @Test
  void theCoverageOfReplicatorsBeginsWithTheTable() throws IOException {
    sweep.run(store, WRITERS);
    long first = now;
    now += 3_600_000;
    another().run(store, BOTH);
    assertEquals(List.of(first, first, first), List.of(kept(), coverage('w'), coverage('r')));
  }

  /** Its clock is behind, or the table was made anew since it started. */
  @Test
  void noCoverageIsOlderThanTheTable() throws IOException {
    Sweep later = another();
    now += 5_000;
    another().run(store, WRITERS);
    later.run(store, BOTH);
    assertEquals(List.of(now, now), List.of(kept(), coverage('r')));
  }

  @Test
  void aTableThatIsMadeAnewIsKeptFromThenOn() throws IOException {
    sweep.run(store, WRITERS);
    now += 60_000;
    store.rows.clear();
    store.put(List.of(new StateRow(CoverageRow.KEY).add(CoverageRow.MARK, now, now)));
    sweep.run(store, BOTH);
    assertEquals(List.of(now, now, now), List.of(kept(), coverage('w'), coverage('r')));
  }

  /** So many live servers that this one is not drawn. */
  private void manyLive() throws IOException {
    manyLive(ServerRole.WRITER);
  }

  private void manyLive(char role) throws IOException {
    for (int i = 0; i < 250; i++) {
      ServerName server = ServerName.valueOf("host" + i + ".example.org,16020,1700000000000");
      store.live.add(server);
      tracked(server.getServerName(), role);
    }
  }

  private Long goneMs(String server) {
    return store.number(new ServerRole(ServerRole.WRITER, server).key(), ServerRow.GONE_MS);
  }

  @Test
  void amongManyServersOnlySomeCompareAllRows() throws IOException {
    manyLive();
    tracked(PASSER_BY.getServerName());
    sweep.run(store, WRITERS);
    assertEquals(0, store.scans);
    assertNull(goneMs(PASSER_BY.getServerName()), "it went before this server looked");
    lot = 0.01;
    sweep.run(store, WRITERS);
    assertEquals(1, store.scans);
    assertEquals(now, goneMs(PASSER_BY.getServerName()));
  }

  @Test
  void amongManyServersEachMarksThoseThatItSawGo() throws IOException {
    manyLive();
    store.live.add(PASSER_BY);
    tracked(PASSER_BY.getServerName());
    sweep.run(store, Set.of());
    store.live.remove(PASSER_BY);
    now += 10_000;
    sweep.run(store, Set.of());
    assertEquals(now, goneMs(PASSER_BY.getServerName()));
    assertEquals(0, store.scans);
    Map<String, Integer> lookups = store.lookups();
    now += 60_000;
    sweep.run(store, Set.of());
    assertEquals(lookups, store.lookups(), "once");
  }

  @ParameterizedTest
  @ValueSource(chars = {ServerRole.WRITER, ServerRole.REPLICATOR})
  void amongManyServersOneWithoutATrackerInterruptsTheCoverage(char role) throws IOException {
    manyLive(role);
    for (int i = 0; i < 5; i++) {
      sweep.run(store, Set.of(role));
    }
    long looked = store.lookups().entrySet().stream()
        .filter(row -> row.getKey().charAt(0) == ServerRow.TYPE && row.getValue() > 1).count();
    assertEquals(0, looked, "who has a row is looked up once");
    store.live.add(PASSER_BY);
    sweep.run(store, Set.of(role));
    assertEquals(1_700_000_000_000L, coverage(role));
    now += 131_000;
    sweep.run(store, Set.of(role));
    assertEquals(now, coverage(role), "it is not new any more");
    store.live.remove(PASSER_BY);
    now += 10_000;
    long gone = now;
    sweep.recordLive(store);
    now += 40_000;
    sweep.run(store, Set.of(role));
    assertEquals(gone, coverage(role));
    assertEquals(0, store.scans);
  }

  /** Between the look at the live servers and the rows, as after a pause of the server that sweeps. */
  @Test
  void aServerThatStartsDuringASweepIsNotGone() throws IOException {
    Sweep paused = new Sweep(new Settings(Fixtures.conf()), () -> now, (name, live) -> false, () -> {
      store.live.add(PASSER_BY);
      try {
        tracked(PASSER_BY.getServerName());
      } catch (IOException e) {
        throw new UncheckedIOException(e);
      }
      return 0;
    });
    paused.run(store, Set.of());
    assertEquals(1, store.scans);
    assertNull(goneMs(PASSER_BY.getServerName()));
  }

  /** As trackers of before marked it while the HBase master started. */
  @Test
  void aServerThatHasFlushedSinceItWasMarkedIsMarkedAnewWhenItIsGone() throws IOException {
    tracked(PASSER_BY.getServerName());
    sweep.run(store, WRITERS);
    long marked = now;
    byte[] key = new ServerRole(ServerRole.WRITER, PASSER_BY.getServerName()).key();
    store.live.add(PASSER_BY);
    now += 60_000;
    store.put(List.of(new StateRow(key).add(ServerRow.FLUSHED_MS, now, now)));
    sweep.run(store, WRITERS);
    assertEquals(marked, goneMs(PASSER_BY.getServerName()));
    store.live.clear();
    long gone = now += 60_000;
    for (int sweeps = 0; sweeps < 2; sweeps++, now += 60_000) {
      sweep.run(store, WRITERS);
      assertEquals(gone, goneMs(PASSER_BY.getServerName()));
    }
  }

  @Test
  void aTrackedServerMayComeAndGo() throws IOException {
    sweep.run(store, WRITERS);
    store.live.add(PASSER_BY);
    sweep.recordLive(store);
    tracked(PASSER_BY.getServerName());
    store.live.clear();
    now += 10_000;
    sweep.run(store, WRITERS);
    assertEquals(1_700_000_000_000L, coverage());
  }

  @Test
  void aServerThatNeverWroteInterruptsNothing() throws IOException {
    innocent.add(PASSER_BY.getServerName());
    sweep.run(store, WRITERS);
    store.live.add(PASSER_BY);
    sweep.recordLive(store);
    now += 200_000;
    sweep.run(store, WRITERS);
    now += 200_000;
    sweep.run(store, WRITERS);
    assertEquals(1_700_000_000_000L, coverage(), "it lives, without a region");
    store.live.clear();
    sweep.recordLive(store);
    now += 10_000;
    sweep.run(store, WRITERS);
    assertEquals(1_700_000_000_000L, coverage(), "it has gone without ever having had one");
  }

  @Test
  void anythingThatAServerHasLeftShowsThatItMayHaveWritten(@TempDir Path root) throws IOException {
    Configuration conf = new Configuration(false);
    conf.set("hbase.rootdir", root.toUri().toString());
    String server = PASSER_BY.getServerName();
    WalTraces traces = new WalTraces(conf, () -> now, 30_000);
    assertTrue(traces.neverWrote(server, false), "it failed before it had a folder");
    assertFalse(traces.neverWrote(server, true), "nothing is known of a server that lives and has no folder");
    Path folder = Files.createDirectories(root.resolve("WALs").resolve(server));
    assertTrue(traces.neverWrote(server, true), "it has no region");
    assertFalse(traces.neverWrote(server, false), "it has not been split yet");
    String name = "other.example.org%2C16020%2C1700000000009.1700000000010";
    Path wal = Files.createFile(folder.resolve(name));
    assertFalse(traces.neverWrote(server, true));
    Files.delete(wal);
    Path splitting = Files.move(folder, root.resolve("WALs").resolve(server + "-splitting"));
    assertFalse(traces.neverWrote(server, false));
    Files.delete(splitting);
    assertTrue(traces.neverWrote(server, false));
    for (String archive : new String[] {"oldWALs", "corrupt", "oldWALs/" + server}) {
      Path archived = Files.createFile(Files.createDirectories(root.resolve(archive)).resolve(name));
      assertFalse(traces.neverWrote(server, false), archive);
      Files.delete(archived);
      if (archive.contains("/")) {
        Files.delete(root.resolve(archive));
      }
    }
    assertTrue(traces.neverWrote(server, false));
    now += 600_000;
    assertFalse(traces.neverWrote(server, false), "what it wrote may have been cleaned up");
  }
}
