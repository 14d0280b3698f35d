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
 * Writes pending changes to the state table. A server's row is written last, and only if everything else was written: a
 * reader may therefore conclude from the flush time in the row that everything appended before is in the table. Changes
 * that could not be written stay pending.
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
  /** The start of coverage as of the last flush. */
  private byte[] lastCoverage;
  private Barrier.Echo lastEcho;
  /** Replication peers that were in force before the last flush began: what was appended since is in their queues. */
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
    long now = clock.getAsLong();
    return !(isTailLost() ? observed.otherChanges(now) : observed.allChanges(now)).isEmpty();
  }

  /**
   * Whether a WAL has ended and its last entries are not known to be durable. Heads that are not in the table yet may
   * then name entries that were lost, and entries may exist that no head names. Such an end is treated like a crash:
   * only the replication queues can settle it.
   */
  private boolean isTailLost() {
    for (ServerComponent wal : roles.wals()) {
      if (wal.isOver() && !wal.isDurable()) {
        return true;
      }
    }
    return false;
  }

  /**
   * Writes the rows of servers that have none yet, before the first flush: a live server without a row looks like one
   * without a tracker.
   */
  void announce(StateStore store, Collection<ServerRole> roles) throws IOException {
    List<ServerRole> unknown = new ArrayList<>();
    for (ServerRole role : roles) {
      if (!role.isWritten()) {
        unknown.add(role);
      }
    }
    write(store, rows(unknown, lastBegan, lastEcho, ServerRole.End.NONE, lastPeers));
  }

  /** @param token the barrier token to echo, read before this flush; null to repeat the last echo */
  void flush(StateStore store, Collection<ServerRole> roles, Barrier.Echo token) throws IOException {
    flush(store, roles, token, ServerRole.End.NONE);
  }

  /** Writes the final rows of servers that have stopped. */
  void end(StateStore store, Collection<ServerRole> roles) throws IOException {
    if (isTailLost()) {
      LOG.warn("status-tool: {} stopped, but its last WAL entries may not be durable: recorded like a crash", roles);
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
    write(store, observed.otherChanges(clock.getAsLong())); // entries that the syncs have made WAL threads append
    write(store, rows(roles, began, echo, end, peers));
    lastBegan = began;
    lastPeers = peers;
    lastEcho = echo;
  }

  /** Writes urgent changes without a flush: the server rows stay as they are. */
  void writeUrgent(StateStore store) throws IOException {
    write(store, observed.urgentChanges());
  }

  /**
   * Returns heads that are durable and cover everything acknowledged so far. Why two syncs: ASYNC_WAL acknowledges an
   * entry while it is still in the ring buffer, where no hook has seen it, so the first sync makes every acknowledged
   * entry pass the hooks, even if no head seems to have changed. The heads collected then may name entries that were
   * appended during that sync, so the second sync makes those durable: a head in the table never names an entry that a
   * crash can undo.
   */
  private List<Change> durableHeads() throws IOException {
    syncer.sync(roles.wals());
    List<Change> heads = observed.headChanges();
    if (!heads.isEmpty()) {
      syncer.sync(roles.wals());
    }
    return heads;
  }

  /** Spools the rows of a final flush; without heads if the last entries may not be durable. */
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

  /** Rows of servers that ended without a clean end; they repeat the last flush. */
  private List<Change> rowsWithoutFlush(Collection<ServerRole> roles) {
    return rows(roles, lastBegan, lastEcho, ServerRole.End.TORN, lastPeers);
  }

  /** Removes the mark of a clean end from the row of a server that turned out to be running. */
  void reopen(StateStore store, ServerRole role, long timeout) throws IOException {
    Change row = role.row(lastBegan, lastEcho, ServerRole.End.NONE, health(role, lastPeers), clock.getAsLong());
    HBaseStateStore.await(store.replaceAsync(row.row, List.of(ServerRow.FINAL_MS)), timeout);
    row.stored();
  }

  /**
   * Detects that the state table was dropped or truncated. It has then lost the rows of servers that are gone, so
   * coverage starts anew, and all trackers write again what they still know. The server's own row is not enough to
   * detect this: a flush that began before the loss may have written it right after. The first tracker that detects the
   * loss moves the start of coverage, and the others detect it by that.
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
      LOG.warn("status-tool: the state table lost rows or coverage started anew; writing all known state again");
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
    clockWatch.check(); // after reading the token: the row must say if its clock was set back since
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
