package io.github.statustool.recorder;

import io.github.statustool.server.ObservedWal;
import io.github.statustool.server.WalSyncer;
import io.github.statustool.state.Change;
import io.github.statustool.state.HBaseStateStore;
import io.github.statustool.state.Health;
import io.github.statustool.state.Spool;
import io.github.statustool.state.StateRow;
import io.github.statustool.state.StateStore;
import io.github.statustool.state.StateTable.CoverageRow;
import io.github.statustool.state.StateTable.ServerRow;
import io.github.statustool.state.StoredRow;
import io.github.statustool.state.TableMark;
import io.github.statustool.streams.ObservedState;
import java.io.IOException;
import java.nio.ByteBuffer;
import java.util.ArrayList;
import java.util.Arrays;
import java.util.Collection;
import java.util.List;
import java.util.Map;
import java.util.Set;
import java.util.function.LongSupplier;
import java.util.stream.Collectors;
import org.slf4j.Logger;
import org.slf4j.LoggerFactory;

/**
 * Writes pending changes to the state table. A server's row is written last, and only if everything else was written: a
 * reader may therefore conclude from the flush time in the row that everything appended before is in the table. Changes
 * that could not be written stay pending.
 *
 * <p>Whatever is written stands between two versions of the servers' rows, each written only if the stored one is the
 * version before. A snapshot of the table that lacks a change therefore has an older version of the row than the next
 * check expects: a table that was restored, cloned or truncated is noticed before anything is echoed. Then all trackers
 * write again what they still know, and coverage starts anew. Changes count as written only after the second version.
 */
final class Flusher {
  private static final Logger LOG = LoggerFactory.getLogger(Flusher.class);

  private final ObservedState observed;
  private final Health health;
  private final LongSupplier clock;
  private final WalSyncer syncer;
  private final ServerRoles roles;
  private final ClockWatch clockWatch;
  private final TableMark mark;
  private Long lastBegan;
  /** The row of the coverage as of the last flush; null before the first. */
  private StoredRow lastCoverage;
  private Barrier.Echo lastEcho;
  /** Replication peers that were in force before the last flush began: what was appended since is in their queues. */
  private Map<String, String> lastPeers = Map.of();
  /** What the last file in the spool has beside rows of servers. It stays pending: the table may not have it yet. */
  private List<Change> onlySpooled = List.of();

  Flusher(ObservedState observed, Health health, LongSupplier clock, WalSyncer syncer, ServerRoles roles,
      ClockWatch clockWatch, TableMark mark) {
    this.clockWatch = clockWatch;
    this.mark = mark;
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

  /** Returns true if there are changes that neither the table nor the spool has. */
  boolean hasChanges() {
    long now = clock.getAsLong();
    return !without(isTailLost() ? observed.otherChanges(now) : observed.allChanges(now), onlySpooled).isEmpty();
  }

  /**
   * Returns true if a WAL has ended and its last entries are not known to be durable. Heads that are not in the table
   * yet may then name entries that were lost, and entries may exist that no head names. Such an end is treated like a
   * crash: only the replication queues can settle it.
   */
  private boolean isTailLost() {
    for (ObservedWal wal : roles.wals()) {
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
    vouch(store, unknown, rows(unknown, lastBegan, lastEcho, ServerRole.End.NONE, lastPeers));
  }

  /** @param token the barrier token to echo, read before this flush; null to repeat the last echo */
  void flush(StateStore store, Collection<ServerRole> roles, Barrier.Echo token) throws IOException {
    flush(store, roles, token, ServerRole.End.NONE);
  }

  /** Writes the final rows of servers that have stopped. */
  void end(StateStore store, Collection<ServerRole> roles) throws IOException {
    if (isTailLost()) {
      LOG.warn("status-tool: {} stopped, but its last WAL entries may not be durable: recorded like a crash", roles);
      begin(store, roles);
      // No heads and no markers: they may name entries that are in no file, which replication can never bring.
      List<Change> changes = observed.otherChanges(clock.getAsLong());
      put(store, changes);
      vouch(store, roles, rowsWithoutFlush(roles));
      changes.forEach(Change::stored);
    } else {
      flush(store, roles, null, ServerRole.End.CLEAN);
    }
  }

  private void flush(StateStore store, Collection<ServerRole> roles, Barrier.Echo token, ServerRole.End end)
      throws IOException {
    // Both before anything is collected: the server's row must not vouch for what comes later.
    Map<String, String> peers = this.roles.peers();
    long began = clock.getAsLong();
    Barrier.Echo echo = token == null ? lastEcho : token;
    begin(store, roles);
    List<Change> changes = new ArrayList<>(observed.otherChanges(began));
    put(store, changes);
    List<Change> durable = durable();
    List<Change> late = observed.otherChanges(clock.getAsLong()); // of entries that the syncs made WAL threads append
    put(store, without(late, changes)); // first: a marker may be of a bulk load that is noted there
    put(store, durable);
    vouch(store, roles, rows(roles, began, echo, end, peers));
    changes.addAll(durable);
    changes.addAll(late);
    changes.forEach(Change::stored);
    // Only now: after a failure, the rows of servers go on vouching for the flush before.
    lastBegan = began;
    lastPeers = peers;
    lastEcho = echo;
  }

  /** Writes urgent changes and markers without a flush: the server rows repeat the last one. */
  void writeUrgent(StateStore store, Collection<ServerRole> roles) throws IOException {
    Map<String, List<Change>> markers = observed.content.marked();
    List<Change> changes = observed.urgentChanges(); // after the markers: a bulk load is noted before its marker
    if (changes.isEmpty() && markers.isEmpty()) {
      return;
    }
    begin(store, roles);
    put(store, changes);
    // One sync is enough here: the rows repeat the last flush, and vouch for no entry that is still in a ring buffer.
    List<Change> durable = durable(observed.headChanges(markers.keySet()), markers);
    put(store, durable);
    vouch(store, roles, rows(roles, lastBegan, lastEcho, ServerRole.End.NONE, lastPeers));
    changes.forEach(Change::stored);
    durable.forEach(Change::stored);
  }

  /**
   * Returns the rows that the table lacks and that would be lost in a crash, in the order in which they are to be
   * written; without markers while their entries are not known to be durable. Everything stays pending.
   */
  List<StateRow> losable() {
    Map<String, List<Change>> markers = observed.content.marked();
    List<Change> changes = observed.urgentChanges(); // after the markers, as above
    changes.addAll(observed.tableWrites.dirty());
    if (!isTailLost()) {
      try {
        changes.addAll(durable(observed.headChanges(markers.keySet()), markers));
      } catch (IOException e) {
        LOG.warn("status-tool: the WALs do not answer: their markers are not spooled", e);
      }
    }
    return Change.rows(changes);
  }

  /** Returns heads and markers that are durable, and cover everything acknowledged so far. */
  private List<Change> durable() throws IOException {
    Map<String, Long> appended = observed.content.appended(); // before the sync, which need not cover what comes later
    // ASYNC_WAL acknowledges an entry that is still in the ring buffer, where no hook has seen it. Even if no head
    // seems to have changed, this brings all acknowledged ones through the hooks, also the slave's own clients'.
    syncer.sync(roles.walsToSync());
    // A WAL that closes may not have been synced: its server may have been fenced. After a clean stop markers tell.
    if (roles.areWalsOpen()) {
      observed.content.noteDurable(appended); // before the heads are collected, as with markers
    }
    Map<String, List<Change>> markers = observed.content.marked();
    return durable(observed.headChanges(), markers);
  }

  /** @param markers of the content ledger, collected before the heads, so that every entry before one is in a head */
  private List<Change> durable(List<Change> heads, Map<String, List<Change>> markers) throws IOException {
    List<Change> changes = new ArrayList<>(heads);
    markers.values().forEach(changes::addAll);
    // The heads may name entries that no sync has covered yet, such as those that were appended during the first one. A
    // head in the table must never name an entry that a crash can undo.
    if (!changes.isEmpty()) {
      syncer.sync(roles.walsToSync());
    }
    return changes;
  }

  /** Spools the rows of a final flush; without heads and markers if the last entries may not be durable. */
  void spool(Spool spool, Collection<ServerRole> roles, boolean end) throws IOException {
    Map<String, String> peers = this.roles.peers();
    long began = clock.getAsLong();
    List<Change> durable = durableOrNull();
    List<Change> changes = new ArrayList<>(observed.otherChanges(began)); // after the markers, as in a flush
    List<Change> rows;
    if (durable == null) {
      rows = spooled(roles, rowsWithoutFlush(roles));
    } else {
      changes.addAll(durable);
      ServerRole.End how = end ? ServerRole.End.CLEAN : ServerRole.End.NONE;
      rows = spooled(roles, rows(roles, began, lastEcho, how, peers));
    }
    if (!roles.isEmpty()) {
      List<Change> all = new ArrayList<>(changes);
      all.addAll(rows);
      spool.write(roles.iterator().next().origin, began, Change.rows(all));
      // The servers' rows alone. All else stays pending, for the next file and flush: a row that says that its server
      // ended must not come without the heads of an earlier file, which may not be in the table yet.
      rows.forEach(Change::stored);
      onlySpooled = changes;
    }
  }

  private List<Change> durableOrNull() {
    try {
      return isTailLost() ? null : durable();
    } catch (IOException e) {
      LOG.warn("status-tool: the WALs do not answer: spooled like a crash", e);
      return null;
    }
  }

  /** Rows that any tracker may put into the table, at any time. */
  private static List<Change> spooled(Collection<ServerRole> roles, List<Change> rows) {
    int at = 0;
    for (ServerRole role : roles) {
      role.mayBeStored(rows.get(at++).row);
    }
    return rows;
  }

  /** Rows of servers that ended without a clean end; they repeat the last flush. */
  private List<Change> rowsWithoutFlush(Collection<ServerRole> roles) {
    return rows(roles, lastBegan, lastEcho, ServerRole.End.TORN, lastPeers);
  }

  /** Removes the mark of a clean end from the row of a server that turned out to be running. */
  void reopen(StateStore store, ServerRole role, long timeout) throws IOException {
    Change row = role.row(lastBegan, lastEcho, ServerRole.End.NONE, health(role, lastPeers), clock.getAsLong());
    // Before the write, whose answer may be lost: such a row must not pass for a sign that the table went back.
    role.mayBeStored(row.row);
    HBaseStateStore.await(store.replaceAsync(row.row, new StoredRow(row.row.key), List.of(ServerRow.FINAL_MS)), timeout);
    row.stored();
  }

  /**
   * Writes the rows of servers before anything else is written. If the table went back, all that is known is pending
   * again afterwards, and coverage starts anew. The first tracker that detects this moves the start of coverage; the
   * others detect it by that as well.
   */
  private void begin(StateStore store, Collection<ServerRole> roles) throws IOException {
    StoredRow coverage = store.get(CoverageRow.KEY);
    // Before the first flush this tracker remembers no coverage: only the mark can tell that the table went back.
    boolean lost = lastCoverage != null && coverage.isEmpty() && !lastCoverage.isEmpty()
        || mark.isAbove(coverage);
    if (lastCoverage != null && !isSame(coverage)) {
      LOG.warn("status-tool: coverage started anew; writing all known state again");
      observed.forgetFlushes();
    }
    lastCoverage = coverage;
    if (lost || !vouched(store, roles, rows(roles, lastBegan, lastEcho, ServerRole.End.NONE, lastPeers))) {
      wentBack(store, roles);
    }
  }

  /** Returns true if coverage has not started anew and the table has not gone back since the last flush. */
  private boolean isSame(StoredRow coverage) {
    for (char role : ServerRole.BOTH.toCharArray()) {
      byte[] start = lastCoverage.value(Coverage.column(role));
      // A start that was missing is no sign: the coverage of a role begins with its first tracker.
      if (start != null && !Arrays.equals(start, coverage.value(Coverage.column(role)))) {
        return false;
      }
    }
    return Arrays.equals(lastCoverage.value(CoverageRow.BACK_MS), coverage.value(CoverageRow.BACK_MS));
  }

  /**
   * Records that the table lost rows or went back. It may have lost the rows of servers that are gone, so coverage
   * starts anew; all trackers write again what they still know.
   */
  void wentBack(StateStore store, Collection<ServerRole> roles) throws IOException {
    LOG.warn("status-tool: the state table lost rows or went back to an earlier state; writing all known state again");
    observed.forgetFlushes();
    StoredRow coverage = store.get(CoverageRow.KEY);
    // Another value than before, also by a clock that is behind that of whoever noticed the last time.
    long now = Math.max(clock.getAsLong(), StoredRow.number(coverage.value(CoverageRow.BACK_MS)) + 1);
    long above = mark.above(now);
    StateRow row = new StateRow(CoverageRow.KEY).add(CoverageRow.BACK_MS, now, now)
        .add(CoverageRow.MARK, above, above);
    addStarts(row, coverage, roles, now);
    // First: a tracker that does not find it writes its own start, which may be before this table's.
    store.putIf(new StateRow(CoverageRow.KEY).add(CoverageRow.KEPT_MS, now, now), CoverageRow.KEPT_MS, null);
    // Before the servers' rows are accepted: if this fails, they still differ from those expected, and the next flush
    // notices again.
    store.put(List.of(row));
    mark.markRegions(store, above);
    lastCoverage = store.get(CoverageRow.KEY);
    for (ServerRole role : roles) {
      role.accept(store.get(role.key()));
    }
  }

  /** Adds the start of each coverage that is kept, here or by others: a server that begins may not know all its roles. */
  private static void addStarts(StateRow to, StoredRow coverage, Collection<ServerRole> roles, long now) {
    for (char role : ServerRole.BOTH.toCharArray()) {
      byte[] start = Coverage.column(role);
      if (coverage.value(start) != null || roles.stream().anyMatch(each -> each.role == role)) {
        to.add(start, now, now);
      }
    }
  }

  /** Writes the rows of servers; throws if the table went back since the last time. */
  private void vouch(StateStore store, Collection<ServerRole> roles, List<Change> rows) throws IOException {
    if (!vouched(store, roles, rows)) {
      wentBack(store, roles);
      throw new IOException("the state table went back while it was written to");
    }
  }

  private static boolean vouched(StateStore store, Collection<ServerRole> roles, List<Change> rows)
      throws IOException {
    int at = 0;
    for (ServerRole role : roles) {
      if (!role.write(store, rows.get(at++))) {
        return false;
      }
    }
    return true;
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

  /** Returns the changes that say something else than those that have been put, which are still pending as well. */
  private static List<Change> without(List<Change> changes, List<Change> put) {
    Set<List<ByteBuffer>> known = put.stream().map(change -> change.row.contents()).collect(Collectors.toSet());
    return changes.stream().filter(change -> !known.contains(change.row.contents())).collect(Collectors.toList());
  }

  /** Writes the changes, which stay pending: whether the table kept them shows when the servers' rows are written. */
  private static void put(StateStore store, Collection<Change> changes) throws IOException {
    store.putInOrder(Change.rows(changes));
  }
}
