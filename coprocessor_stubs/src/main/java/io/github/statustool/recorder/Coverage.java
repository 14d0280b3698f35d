package io.github.statustool.recorder;

import io.github.statustool.state.Settings;
import io.github.statustool.state.StateRow;
import io.github.statustool.state.StateStore;
import io.github.statustool.state.StateTable.CoverageRow;
import io.github.statustool.state.StateTable.ServerRow;
import io.github.statustool.state.StoredRow;
import java.io.IOException;
import java.util.Collection;
import java.util.HashMap;
import java.util.HashSet;
import java.util.List;
import java.util.Map;
import java.util.Set;
import java.util.function.LongSupplier;
import org.apache.hadoop.hbase.ServerName;
import org.apache.hadoop.hbase.util.Bytes;
import org.slf4j.Logger;
import org.slf4j.LoggerFactory;

/**
 * Since when every region server has had the tracker of one role: a cell of the coverage's row, which every server with
 * that role keeps. Used by the recorder thread only.
 */
final class Coverage {
  private static final Logger LOG = LoggerFactory.getLogger(Coverage.class);

  final char role;
  private final Settings settings;
  private final LongSupplier clock;
  private boolean begun;
  /** Live servers without a row of this role, since when this server has missed it. */
  private final Map<String, Long> untracked = new HashMap<>();
  /** Servers that are known to have a row of this role. */
  private final Set<String> tracked = new HashSet<>();

  Coverage(char role, Settings settings, LongSupplier clock) {
    this.role = role;
    this.settings = settings;
    this.clock = clock;
  }

  /** Returns the column with the start of a role's coverage. */
  static byte[] column(char role) {
    return role == ServerRole.WRITER ? CoverageRow.START_MS : CoverageRow.SLAVE_START_MS;
  }

  boolean isBegun() {
    return begun;
  }

  boolean isTracked(String server) {
    return tracked.contains(server);
  }

  void forgetTracked() {
    tracked.clear();
  }

  void noteTracked(List<StoredRow> rows) {
    for (StoredRow row : rows) {
      byte[] name = row.value(ServerRow.NAME);
      if (name != null && row.key[row.key.length - 1] == role) {
        tracked.add(Bytes.toString(name));
      }
    }
  }

  /** Adds the start of coverage to a row that lacks it. */
  void addStart(StateRow to, StoredRow row, long since) {
    if (row.value(column(role)) == null) {
      to.add(column(role), since, since);
    }
  }

  /** Writes the start of coverage if it is missing. */
  void begin(StateStore store, StoredRow row, long first) throws IOException {
    StateRow missing = new StateRow(CoverageRow.KEY);
    // If it was there before, the table has lost its rows: no tracker can vouch for what was before.
    addStart(missing, row, begun ? clock.getAsLong() : first);
    if (!missing.columns().isEmpty()) {
      store.putIf(missing, column(role), null);
    }
    begun = true;
  }

  /**
   * Moves the start of coverage to the time at which a server without a tracker was last seen.
   *
   * @param asked servers whose rows were read, or whose row is known
   * @param seen since when a server is gone; null for one that lives
   */
  void interrupt(StateStore store, Collection<String> asked, Map<String, Long> seen, Sweep.Traces traces)
      throws IOException {
    untracked.keySet().removeIf(server -> !seen.containsKey(server) || seen.get(server) != null || isTracked(server));
    long now = clock.getAsLong();
    for (String server : asked) {
      Long goneSince = seen.get(server);
      boolean isGone = goneSince != null;
      if (!isTracked(server) && (isGone || isOverdue(server, now)) && !traces.neverWrote(server, !isGone)) {
        LOG.warn(role == ServerRole.WRITER
            ? "status-tool: region server {} has no write-time tracker; coverage starts anew"
            : "status-tool: region server {} has no replicate-time tracker; coverage starts anew", server);
        long since = isGone ? goneSince : now;
        // The time is also the cell's timestamp: of several servers' starts the latest stays, however they are written.
        store.put(List.of(new StateRow(CoverageRow.KEY).add(column(role), since, since)));
      }
    }
  }

  /** Returns true if a server has been without a row for too long. */
  private boolean isOverdue(String server, long now) {
    long missingSince = untracked.computeIfAbsent(server, absent -> now);
    // A server that has just started may not have written its row yet, nor may an old one if nobody could reach the
    // state table until now.
    return Math.max(missingSince, ServerName.valueOf(server).getStartCode()) <= now - settings.newServerGrace;
  }

  void retain(Set<String> live) {
    tracked.retainAll(live);
  }
}
