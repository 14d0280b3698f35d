package io.github.statustool.recorder;

import io.github.statustool.state.Ids;
import io.github.statustool.state.Settings;
import io.github.statustool.state.StateRow;
import io.github.statustool.state.StateStore;
import io.github.statustool.state.StateTable.CoverageRow;
import io.github.statustool.state.StateTable.ServerRow;
import io.github.statustool.state.StoredRow;
import java.io.IOException;
import java.nio.charset.StandardCharsets;
import java.util.ArrayList;
import java.util.Collection;
import java.util.HashMap;
import java.util.HashSet;
import java.util.List;
import java.util.Map;
import java.util.Set;
import java.util.function.DoubleSupplier;
import java.util.function.LongSupplier;
import org.apache.hadoop.hbase.ServerName;
import org.slf4j.Logger;
import org.slf4j.LoggerFactory;

/**
 * Compares the live region servers with the server rows of the state table. A server that has no tracker, or that ended
 * without a final row, must not look like one that has nothing to report.
 */
final class Sweep {
  private static final Logger LOG = LoggerFactory.getLogger(Sweep.class);

  /** Traces that region servers leave behind in the file system. */
  interface Traces {
    /** Returns true if there is proof that this server has never written anything. */
    boolean neverWrote(String server, boolean live);
  }

  /**
   * About so many servers compare all server rows in each period, by lot; up to so many are, each does. If each of a
   * thousand did, they would read thousands of rows each, from one region.
   */
  private static final int DRAWN = 5;
  /** Maximum number of live servers without a known row that a sweep looks up. */
  private static final int MOST_LOOKUPS = 100;

  private final Settings settings;
  private final Traces traces;
  private final DoubleSupplier lot;
  private final LongSupplier clock;
  private final long started;
  private boolean begun;
  private final Map<String, Long> untracked = new HashMap<>();
  /** Servers that live, and those seen alive since the last sweep for the coverage that do not any more, since when. */
  private final Map<String, Long> seen = new HashMap<>();
  /** Servers that have gone since the last sweep. */
  private final Set<String> gone = new HashSet<>();
  /** Servers among them that are known to have a write-time tracker. */
  private final Set<String> tracked = new HashSet<>();

  Sweep(Settings settings, LongSupplier clock, Traces traces) {
    this(settings, clock, traces, Math::random);
  }

  /** @param lot drawn in each sweep, from 0 to 1 */
  Sweep(Settings settings, LongSupplier clock, Traces traces, DoubleSupplier lot) {
    this.traces = traces;
    this.settings = settings;
    this.lot = lot;
    this.clock = clock;
    this.started = clock.getAsLong();
  }

  /** Returns true with a chance that lets a few servers of all do what one is enough for. */
  boolean isDrawn() {
    return isDrawn(seen.size());
  }

  private boolean isDrawn(int servers) {
    return lot.getAsDouble() * servers < DRAWN;
  }

  /** Records the live servers: one without a tracker may start, write and end between two sweeps. */
  void recordLive(StateStore store) throws IOException {
    remember(names(store.liveServers()));
  }

  private void remember(Set<String> live) {
    long now = clock.getAsLong();
    live.forEach(server -> seen.put(server, null));
    for (Map.Entry<String, Long> server : seen.entrySet()) {
      if (server.getValue() == null && !live.contains(server.getKey())) {
        server.setValue(now);
        gone.add(server.getKey());
      }
    }
  }

  /** @param keepsCoverage whether this server has a write-time tracker; others do not maintain coverage */
  void run(StateStore store, boolean keepsCoverage) throws IOException {
    Set<String> live = names(store.liveServers());
    remember(live);
    boolean isDrawn = isDrawn(live.size());
    Set<String> asked = isDrawn ? new HashSet<>(seen.keySet()) : inDoubt(keepsCoverage);
    List<StoredRow> rows = isDrawn ? all(store) : store.get(keys(asked));
    // Looked at again after all rows were read: a server that has started meanwhile may be among them.
    markGone(store, rows, isDrawn ? names(store.liveServers()) : live);
    // Only now: after a failure the next sweep looks at them again.
    gone.clear();
    if (isDrawn) {
      tracked.clear();
    }
    noteTracked(rows);
    if (keepsCoverage) {
      startCoverage(store);
      interruptCoverage(store, asked, live);
    }
    seen.keySet().retainAll(live);
    tracked.retainAll(live);
  }

  private static List<StoredRow> all(StateStore store) throws IOException {
    return store.scan(ServerRow.TYPE, ServerRow.NAME, ServerRow.FINAL_MS, ServerRow.GONE_MS);
  }

  /** Returns servers that have gone, and for the coverage some live ones that are not known to have a row. */
  private Set<String> inDoubt(boolean keepsCoverage) {
    Set<String> found = new HashSet<>(gone);
    int lookups = MOST_LOOKUPS;
    for (Map.Entry<String, Long> server : keepsCoverage ? seen.entrySet() : Set.<Map.Entry<String, Long>>of()) {
      boolean isGone = server.getValue() != null;
      if (isGone || (!tracked.contains(server.getKey()) && lookups-- > 0)) {
        found.add(server.getKey());
      }
    }
    return found;
  }

  private static List<byte[]> keys(Set<String> servers) {
    List<byte[]> keys = new ArrayList<>();
    for (String server : servers) {
      keys.add(ServerRole.key(Ids.origin(server), ServerRole.WRITER));
      keys.add(ServerRole.key(Ids.origin(server), ServerRole.REPLICATOR));
    }
    return keys;
  }

  private void noteTracked(List<StoredRow> rows) {
    for (StoredRow row : rows) {
      if (row.key[row.key.length - 1] == ServerRole.WRITER && row.value(ServerRow.NAME) != null) {
        tracked.add(text(row.value(ServerRow.NAME)));
      }
    }
  }

  private void markGone(StateStore store, List<StoredRow> rows, Set<String> live) throws IOException {
    for (StoredRow row : rows) {
      byte[] name = row.value(ServerRow.NAME);
      boolean settled = row.value(ServerRow.FINAL_MS) != null || row.value(ServerRow.GONE_MS) != null;
      if (name != null && !settled && !live.contains(text(name))) {
        long now = clock.getAsLong();
        store.putIf(new StateRow(row.key).add(ServerRow.GONE_MS, now, now), ServerRow.GONE_MS, null);
      }
    }
  }

  /**
   * Writes the start of coverage if it is missing. If it was there before, the table has lost its rows, so coverage
   * starts now: no tracker can vouch for what was before.
   */
  private void startCoverage(StateStore store) throws IOException {
    long since = begun ? clock.getAsLong() : started;
    store.putIf(new StateRow(CoverageRow.KEY).add(CoverageRow.START_MS, since, since), CoverageRow.START_MS, null);
    begun = true;
  }

  private void interruptCoverage(StateStore store, Set<String> asked, Set<String> live) throws IOException {
    untracked.keySet().retainAll(live);
    untracked.keySet().removeAll(tracked);
    asked.removeAll(tracked);
    long now = clock.getAsLong();
    for (String server : asked) {
      Long goneSince = seen.get(server);
      boolean isGone = goneSince != null;
      if ((isGone || isOverdue(server, now)) && !traces.neverWrote(server, !isGone)) {
        LOG.warn("status-tool: region server {} has no write-time tracker; coverage starts anew", server);
        long since = isGone ? goneSince : now;
        store.put(List.of(new StateRow(CoverageRow.KEY).add(CoverageRow.START_MS, since, since)));
      }
    }
  }

  /**
   * Returns true if a server has been without a row for too long. A server that has just started may not have written
   * its row yet, nor may an old one if nobody could reach the state table until now.
   */
  private boolean isOverdue(String server, long now) {
    long missingSince = untracked.computeIfAbsent(server, absent -> now);
    return Math.max(missingSince, ServerName.valueOf(server).getStartCode()) <= now - settings.newServerGrace;
  }

  private static Set<String> names(Collection<ServerName> servers) {
    Set<String> names = new HashSet<>();
    servers.forEach(server -> names.add(server.getServerName()));
    return names;
  }

  private static String text(byte[] bytes) {
    return new String(bytes, StandardCharsets.UTF_8);
  }
}
