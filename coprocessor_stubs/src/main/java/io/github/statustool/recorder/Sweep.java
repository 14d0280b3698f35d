package io.github.statustool.recorder;

import io.github.statustool.state.Ids;
import io.github.statustool.state.Settings;
import io.github.statustool.state.StateRow;
import io.github.statustool.state.StateStore;
import io.github.statustool.state.StateTable.ServerRow;
import io.github.statustool.state.StoredRow;
import java.io.IOException;
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
import org.apache.hadoop.hbase.util.Bytes;

/**
 * Compares the live region servers with the server rows of the state table. A server that has no tracker, or that ended
 * without a final row, must not look like one that has nothing to report.
 */
final class Sweep {
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

  private final Traces traces;
  private final DoubleSupplier lot;
  private final LongSupplier clock;
  private final Coverages coverages;
  /** Servers that live, and those seen alive since the last sweep for the coverage that do not any more, since when. */
  private final Map<String, Long> seen = new HashMap<>();
  /** Servers that have gone since the last sweep. */
  private final Set<String> gone = new HashSet<>();

  Sweep(Settings settings, LongSupplier clock, Traces traces) {
    this(settings, clock, traces, Math::random);
  }

  /** @param lot drawn in each sweep, from 0 to 1 */
  Sweep(Settings settings, LongSupplier clock, Traces traces, DoubleSupplier lot) {
    this.traces = traces;
    this.lot = lot;
    this.clock = clock;
    this.coverages = new Coverages(settings, clock);
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

  /** Begins the coverage of roles that are new. Before the mark of the table is raised, see {@link Coverages#begin}. */
  void begin(StateStore store, Set<Character> roles) throws IOException {
    if (!coverages.areBegun(roles)) {
      coverages.begin(store, roles);
    }
  }

  /** @param roles of this server, which maintains the coverage of each */
  void run(StateStore store, Set<Character> roles) throws IOException {
    Set<String> live = names(store.liveServers());
    remember(live);
    boolean isDrawn = isDrawn(live.size());
    Set<String> asked = isDrawn ? new HashSet<>(seen.keySet()) : inDoubt(coverages.of(roles));
    List<StoredRow> rows = isDrawn ? all(store) : store.get(keys(asked));
    // Looked at again after all rows were read: a server that has started meanwhile may be among them.
    markGone(store, rows, isDrawn ? names(store.liveServers()) : live);
    // Only now: after a failure the next sweep looks at them again.
    gone.clear();
    // All rows were read: a server that is not among them has lost its row, or never had one.
    if (isDrawn) {
      coverages.all().forEach(Coverage::forgetTracked);
    }
    coverages.all().forEach(coverage -> coverage.noteTracked(rows));
    maintain(store, roles, asked);
    // After maintain(): a server that came and went between two sweeps is known from `seen` alone.
    seen.keySet().retainAll(live);
    coverages.all().forEach(coverage -> coverage.retain(live));
  }

  private void maintain(StateStore store, Set<Character> roles, Set<String> asked) throws IOException {
    if (!roles.isEmpty()) {
      coverages.begin(store, roles);
    }
    Traces once = once(traces);
    for (Coverage coverage : coverages.of(roles)) {
      coverage.interrupt(store, asked, seen, once);
    }
  }

  /** Looks for the traces of a server without any tracker once for both coverages. */
  private static Traces once(Traces traces) {
    Map<String, Boolean> known = new HashMap<>();
    return (server, live) -> known.computeIfAbsent(server, absent -> traces.neverWrote(server, live));
  }

  private static List<StoredRow> all(StateStore store) throws IOException {
    return store.scan(ServerRow.TYPE, ServerRow.NAME, ServerRow.FLUSHED_MS, ServerRow.FINAL_MS, ServerRow.GONE_MS);
  }

  /** Returns servers that have gone, and for the coverages some live ones that are not known to have a row. */
  private Set<String> inDoubt(List<Coverage> kept) {
    Set<String> found = new HashSet<>(gone);
    int lookups = MOST_LOOKUPS;
    for (Map.Entry<String, Long> server : kept.isEmpty() ? Set.<Map.Entry<String, Long>>of() : seen.entrySet()) {
      boolean isGone = server.getValue() != null;
      boolean isTracked = kept.stream().allMatch(coverage -> coverage.isTracked(server.getKey()));
      // The limit spares only live servers, which the next sweep finds again; it has forgotten those that are gone.
      if (isGone || (!isTracked && lookups-- > 0)) {
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

  private void markGone(StateStore store, List<StoredRow> rows, Set<String> live) throws IOException {
    for (StoredRow row : rows) {
      byte[] name = row.value(ServerRow.NAME);
      boolean settled = row.value(ServerRow.FINAL_MS) != null || isMarked(row);
      if (name != null && !settled && !live.contains(Bytes.toString(name))) {
        long now = clock.getAsLong();
        // By check-and-put: of two servers that mark the same one, the first is closer to its end.
        store.putIf(new StateRow(row.key).add(ServerRow.GONE_MS, now, now), ServerRow.GONE_MS,
            row.value(ServerRow.GONE_MS));
      }
    }
  }

  /** Returns true if a server has not flushed since it was marked: one that has was alive. */
  private static boolean isMarked(StoredRow row) {
    byte[] gone = row.value(ServerRow.GONE_MS);
    byte[] flushed = row.value(ServerRow.FLUSHED_MS);
    return gone != null && (flushed == null || Bytes.toLong(gone, 0) >= Bytes.toLong(flushed, 0));
  }

  private static Set<String> names(Collection<ServerName> servers) {
    Set<String> names = new HashSet<>();
    servers.forEach(server -> names.add(server.getServerName()));
    return names;
  }
}
