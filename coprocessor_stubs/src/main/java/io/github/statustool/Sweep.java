package io.github.statustool;

import io.github.statustool.StateTable.CoverageRow;
import io.github.statustool.StateTable.ServerRow;
import java.io.IOException;
import java.nio.charset.StandardCharsets;
import java.util.Collection;
import java.util.HashMap;
import java.util.HashSet;
import java.util.List;
import java.util.Map;
import java.util.Set;
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

  /** What region servers leave behind in the file system. */
  interface Traces {
    /** Whether there is proof that this server has never written anything. */
    boolean neverWrote(String server, boolean live);
  }

  private final Settings settings;
  private final Traces traces;
  private final LongSupplier clock;
  private final long started;
  private boolean begun;
  private final Map<String, Long> untracked = new HashMap<>();
  /** Servers seen alive since the last sweep; if they are not alive any more, since when. */
  private final Map<String, Long> seen = new HashMap<>();

  Sweep(Settings settings, LongSupplier clock, Traces traces) {
    this.traces = traces;
    this.settings = settings;
    this.clock = clock;
    this.started = clock.getAsLong();
  }

  /** Records the live servers: one without a tracker may start, write and end between two sweeps. */
  void recordLive(StateStore store) throws IOException {
    remember(names(store.liveServers()));
  }

  private void remember(Set<String> live) {
    long now = clock.getAsLong();
    live.forEach(server -> seen.put(server, null));
    seen.replaceAll((server, goneSince) -> live.contains(server) || goneSince != null ? goneSince : Long.valueOf(now));
  }

  /** @param keepsCoverage whether this server has a write-time tracker; others do not maintain coverage */
  void run(StateStore store, boolean keepsCoverage) throws IOException {
    Set<String> live = names(store.liveServers());
    remember(live);
    List<StoredRow> rows = store.scan(ServerRow.TYPE);
    markGone(store, rows, live);
    if (keepsCoverage) {
      startCoverage(store);
      interruptCoverage(store, rows, live);
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

  private void interruptCoverage(StateStore store, List<StoredRow> rows, Set<String> live) throws IOException {
    Set<String> tracked = new HashSet<>();
    for (StoredRow row : rows) {
      if (row.key[row.key.length - 1] == ServerRole.WRITER && row.value(ServerRow.NAME) != null) {
        tracked.add(text(row.value(ServerRow.NAME)));
      }
    }
    untracked.keySet().retainAll(live);
    untracked.keySet().removeAll(tracked);
    seen.keySet().removeAll(tracked);
    long now = clock.getAsLong();
    for (Map.Entry<String, Long> server : seen.entrySet()) {
      boolean isGone = server.getValue() != null;
      if ((isGone || isOverdue(server.getKey(), now)) && !traces.neverWrote(server.getKey(), !isGone)) {
        LOG.warn("status-tool: region server {} has no write-time tracker; coverage starts anew", server.getKey());
        long since = server.getValue() == null ? now : server.getValue();
        store.put(List.of(new StateRow(CoverageRow.KEY).add(CoverageRow.START_MS, since, since)));
      }
    }
    seen.keySet().retainAll(live);
  }

  /**
   * Whether a server has been without a row for too long. A server that has just started may not have written its row
   * yet, nor may an old one if nobody could reach the state table until now.
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
