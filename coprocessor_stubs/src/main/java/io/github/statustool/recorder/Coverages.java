package io.github.statustool.recorder;

import io.github.statustool.state.Settings;
import io.github.statustool.state.StateRow;
import io.github.statustool.state.StateStore;
import io.github.statustool.state.StateTable.CoverageRow;
import io.github.statustool.state.StoredRow;
import java.io.IOException;
import java.util.List;
import java.util.Set;
import java.util.function.LongSupplier;
import java.util.stream.Collectors;
import org.apache.hadoop.hbase.util.Bytes;

/**
 * The coverage's row: since when this state table has been kept, and the {@link Coverage} by the trackers of either
 * role. Used by the recorder thread only.
 */
final class Coverages {
  private final LongSupplier clock;
  private final long started;
  private final List<Coverage> all;
  private boolean wasKept;

  Coverages(Settings settings, LongSupplier clock) {
    this.clock = clock;
    this.started = clock.getAsLong();
    this.all = List.of(new Coverage(ServerRole.WRITER, settings, clock),
        new Coverage(ServerRole.REPLICATOR, settings, clock));
  }

  List<Coverage> all() {
    return all;
  }

  List<Coverage> of(Set<Character> roles) {
    return all.stream().filter(coverage -> roles.contains(coverage.role)).collect(Collectors.toList());
  }

  /** Returns true if this tracker has looked for the start of coverage of each of these roles. */
  boolean areBegun(Set<Character> roles) {
    return of(roles).stream().allMatch(Coverage::isBegun);
  }

  /**
   * Writes what the row lacks. Every tracker does so before it writes anything else there. The first tracker of a table
   * writes all in one mutation, so that no other one sees a part.
   */
  void begin(StateStore store, Set<Character> roles) throws IOException {
    StoredRow row = store.get(CoverageRow.KEY);
    if (row.value(CoverageRow.KEPT_MS) == null) {
      store.putIf(first(row, roles), CoverageRow.KEPT_MS, null);
      row = store.get(CoverageRow.KEY); // another tracker may have been faster
    }
    byte[] kept = row.value(CoverageRow.KEPT_MS);
    if (kept == null) {
      throw new IOException("the state table lost its rows while coverage began");
    }
    wasKept = true;
    for (Coverage coverage : of(roles)) {
      coverage.begin(store, row, start(coverage, Bytes.toLong(kept, 0)));
    }
  }

  private StateRow first(StoredRow row, Set<Character> roles) {
    // If this tracker knows that the table was kept before, it has lost its rows: it is another one from now on.
    long kept = wasKept ? clock.getAsLong() : started;
    StateRow first = new StateRow(CoverageRow.KEY).add(CoverageRow.KEPT_MS, kept, kept);
    of(roles).forEach(coverage -> coverage.addStart(first, row, start(coverage, kept)));
    return first;
  }

  /** Returns the start of a coverage that this tracker has not known before. */
  private long start(Coverage coverage, long kept) {
    // For replicators it is the table's own start, so that the two differ only after an interruption: before the first
    // of them, nobody recorded what arrived.
    return coverage.role == ServerRole.REPLICATOR ? kept : Math.max(started, kept);
  }
}
