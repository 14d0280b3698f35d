package io.github.statustool;

import io.github.statustool.StateTable.CoverageRow;
import io.github.statustool.StateTable.ServerRow;
import java.io.IOException;
import java.util.ArrayList;
import java.util.Arrays;
import java.util.Collection;
import java.util.List;
import java.util.Map;
import java.util.function.LongSupplier;
import org.slf4j.Logger;
import org.slf4j.LoggerFactory;

/**
 * Writes what the table does not have yet. A server's row is written last, and only if all else was: that order is what
 * gives the row its meaning. What could not be written stays to be written.
 */
final class Flusher {
  private static final Logger LOG = LoggerFactory.getLogger(Flusher.class);

  private final ObservedState observed;
  private final Health health;
  private final LongSupplier clock;
  private final WalSyncer syncer;
  private final ServerRoles roles;
  private final ClockWatch clockWatch;
  private Long lastBegan;
  /** Since when every server is tracked, as the table said at the last flush. */
  private byte[] lastCoverage;
  private Barrier.Echo lastEcho;
  /** Only with a flush, and from before it: what was appended later is in the queues of these peers. */
  private Map<String, String> lastPeers = Map.of();

  Flusher(ObservedState observed, Health health, LongSupplier clock, WalSyncer syncer, ServerRoles roles,
      ClockWatch clockWatch) {
    this.clockWatch = clockWatch;
    this.syncer = syncer;
    this.roles = roles;
    this.observed = observed;
    this.health = health;
    this.clock = clock;
  }

  Barrier.Echo lastEcho() {
    return lastEcho;
  }

  Map<String, String> lastPeers() {
    return lastPeers;
  }

  boolean hasChanges() {
    return !(isTailLost() ? observed.otherChanges(clock.getAsLong()) : observed.allChanges(clock.getAsLong())).isEmpty();
  }

  /**
   * Whether a WAL has come to its end without its last entries being known to be durable. Heads that are not in the
   * table yet may then name entries that exist nowhere, and there may be others that no head names: such an end is like
   * a crash, and what is left is the queues' to tell.
   */
  private boolean isTailLost() {
    for (ServerComponent wal : roles.wals()) {
      if (wal.isOver() && !wal.isDurable()) {
        return true;
      }
    }
    return false;
  }

  /** A live server without a row looks like one without a tracker, so its row does not wait for the first flush. */
  void announce(StateStore store, Collection<ServerRole> roles) throws IOException {
    List<ServerRole> unknown = new ArrayList<>();
    for (ServerRole role : roles) {
      if (!role.isWritten()) {
        unknown.add(role);
      }
    }
    write(store, rows(unknown, lastBegan, lastEcho, ServerRole.End.NONE, lastPeers));
  }

  /** @param token the barrier token that was read before, or null */
  void flush(StateStore store, Collection<ServerRole> roles, Barrier.Echo token) throws IOException {
    flush(store, roles, token, ServerRole.End.NONE);
  }

  /** The last flush of servers that have come to their end. */
  void end(StateStore store, Collection<ServerRole> roles) throws IOException {
    if (isTailLost()) {
      LOG.warn("status-tool: {}: not all that was appended last is known to be durable, so this is no clean end", roles);
      checkNothingWasLost(store, roles);
      write(store, observed.otherChanges(clock.getAsLong()));
      write(store, rowsWithoutFlush(roles));
    } else {
      flush(store, roles, null, ServerRole.End.CLEAN);
    }
  }

  private void flush(StateStore store, Collection<ServerRole> roles, Barrier.Echo token, ServerRole.End end)
      throws IOException {
    Map<String, String> peers = this.roles.peers();
    long began = clock.getAsLong();
    Barrier.Echo echo = token == null ? lastEcho : token;
    checkNothingWasLost(store, roles);
    write(store, observed.otherChanges(began));
    write(store, durableHeads());
    write(store, observed.otherChanges(clock.getAsLong())); // what the sync has brought through the hooks
    write(store, rows(roles, began, echo, end, peers));
    lastBegan = began;
    lastPeers = peers;
    lastEcho = echo;
  }

  /** What does not wait for the next flush, and says nothing of the server. */
  void writeUrgent(StateStore store) throws IOException {
    write(store, observed.urgentChanges());
  }

  /**
   * Heads that no crash can undo, with everything that was acknowledged before: ASYNC_WAL is acknowledged while the
   * entry is still in the ring buffer, so the first sync has to come even if no head seems to have changed.
   */
  private List<Change> durableHeads() throws IOException {
    syncer.sync(roles.wals());
    List<Change> heads = observed.headChanges();
    if (!heads.isEmpty()) {
      syncer.sync(roles.wals());
    }
    return heads;
  }

  /** The same rows, to a file; without heads if they may not be durable. */
  void spool(Spool spool, Collection<ServerRole> roles, boolean end) throws IOException {
    Map<String, String> peers = this.roles.peers();
    long began = clock.getAsLong();
    List<Change> changes = new ArrayList<>(observed.otherChanges(began));
    try {
      List<Change> heads = isTailLost() ? null : durableHeads();
      changes.addAll(heads == null ? List.of() : heads);
      changes.addAll(heads == null ? rowsWithoutFlush(roles)
          : rows(roles, began, lastEcho, end ? ServerRole.End.CLEAN : ServerRole.End.NONE, peers));
    } catch (IOException e) {
      changes.addAll(rowsWithoutFlush(roles));
    }
    if (!changes.isEmpty() && !roles.isEmpty()) {
      spool.write(roles.iterator().next().origin, began, rowsOf(changes));
      changes.forEach(Change::stored);
    }
  }

  /** Rows that speak of no flush but the last one, of servers that have ended without a clean end. */
  private List<Change> rowsWithoutFlush(Collection<ServerRole> roles) {
    return rows(roles, lastBegan, lastEcho, ServerRole.End.TORN, lastPeers);
  }

  /** The mark of a clean end must not stay in the row of a server that went on after all. */
  void reopen(StateStore store, ServerRole role, long timeout) throws IOException {
    Change row = role.row(lastBegan, lastEcho, ServerRole.End.NONE, health(role, lastPeers), clock.getAsLong());
    HBaseStateStore.await(store.replaceAsync(row.row, List.of(ServerRow.FINAL_MS)), timeout);
    row.stored();
  }

  /**
   * A table that was dropped or truncated has lost what servers that are gone had written, so coverage starts anew, and
   * everybody writes again what is still known. A server's own row alone does not tell: it may have been written right
   * after the loss by a flush that began before it. Whoever sees the loss first moves coverage, and all others see that.
   */
  private void checkNothingWasLost(StateStore store, Collection<ServerRole> roles) throws IOException {
    List<byte[]> keys = new ArrayList<>(List.of(CoverageRow.KEY));
    for (ServerRole role : roles) {
      if (role.isWritten()) {
        keys.add(role.key());
      }
    }
    List<StoredRow> rows = store.get(keys);
    byte[] coverage = rows.get(0).value(CoverageRow.START_MS);
    boolean rowLost = rows.subList(1, rows.size()).stream().anyMatch(StoredRow::isEmpty);
    boolean coverageLost = coverage == null && lastCoverage != null;
    if (rowLost || coverageLost || (lastCoverage != null && !Arrays.equals(coverage, lastCoverage))) {
      LOG.warn("status-tool: the state table has lost rows or coverage started anew; writing again what is known here");
      observed.forgetFlushes();
    }
    if ((rowLost || coverageLost) && roles.stream().anyMatch(role -> role.role == ServerRole.WRITER)) {
      coverage = Bits.ofLong(clock.getAsLong());
      store.put(List.of(new StateRow(CoverageRow.KEY).add(CoverageRow.START_MS, coverage, Bits.getLong(coverage, 0))));
    }
    lastCoverage = coverage;
  }

  private List<Change> rows(Collection<ServerRole> roles, Long began, Barrier.Echo echo,
      ServerRole.End end, Map<String, String> peers) {
    clockWatch.look(); // after a token was read: what this row says of it is not said by a clock that was set back since
    long now = clock.getAsLong();
    List<Change> rows = new ArrayList<>(roles.size());
    for (ServerRole role : roles) {
      rows.add(role.row(began, echo, end, health(role, peers), now));
    }
    return rows;
  }

  private String health(ServerRole role, Map<String, String> peers) {
    String shipping = role.role == ServerRole.WRITER ? peers.get(role.serverName) : null;
    return health.json(observed.applied.pendingCount(), shipping);
  }

  private static void write(StateStore store, List<Change> changes) throws IOException {
    if (!changes.isEmpty()) {
      store.put(rowsOf(changes));
      changes.forEach(Change::stored);
    }
  }

  private static List<StateRow> rowsOf(List<Change> changes) {
    List<StateRow> rows = new ArrayList<>(changes.size());
    for (Change change : changes) {
      rows.add(change.row);
    }
    return rows;
  }
}
