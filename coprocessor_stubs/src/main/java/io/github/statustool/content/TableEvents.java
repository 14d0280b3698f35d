package io.github.statustool.content;

import io.github.statustool.state.Change;
import io.github.statustool.state.StateRow;
import io.github.statustool.state.StateTable.TableEventRow;
import java.util.ArrayList;
import java.util.Collection;
import java.util.HashMap;
import java.util.List;
import java.util.Map;
import java.util.concurrent.ConcurrentHashMap;
import java.util.concurrent.atomic.AtomicLong;
import java.util.function.Predicate;
import java.util.function.Supplier;
import org.apache.hadoop.hbase.HConstants;
import org.apache.hadoop.hbase.client.TableDescriptor;
import org.apache.hadoop.hbase.util.Bytes;

/**
 * Events of tables that WALs do not show. For tables that replication writes to: when the first entry was applied, and
 * when a table or family was emptied afterwards, because segments prove that entries were applied, not that their cells
 * still exist. For tables that clients write to: when mutations bypassed the WAL, and since when a family has been
 * replicated that was not before.
 *
 * <p>A region that opens with the lowest possible sequence id has never held anything: its table was created or
 * truncated at the time of its region id. Daughters of splits and merges, and regions that move, continue their
 * sequence ids.
 */
public final class TableEvents {
  /** The open sequence number of a region that has never been written to, not even with a marker. */
  static final long NEWBORN = 2;

  /** A state table cannot be disabled, restored and enabled in less. */
  static final long AGAIN_MS = 500;

  private final Map<String, Event> arrivals = new ConcurrentHashMap<>();
  private final Map<String, Event> emptied = new ConcurrentHashMap<>();
  private final Map<String, OpenRegion> openedRegions = new HashMap<>();
  /** By table and family, the lowest scope of regions that were open since one was opened last. */
  private final Map<String, Map<String, Integer>> scopes = new HashMap<>();

  /**
   * Records an applied entry or bulk load; returns whether the table's arrival, its first one in this JVM, has to be
   * written together with the entry's segments. Called by replication handlers, and for loads by the recorder thread.
   *
   * @param began a time when it had not been applied yet: what happens to the table from then on may have come after it,
   *     so the arrival must not look later. The earliest counts, as requests that began earlier may end later.
   */
  public boolean arrived(String table, long began, long now) {
    Event known = arrivals.get(table);
    if (known == null || began < known.value) {
      known = arrivals.merge(table,
          new Event(table, TableEventRow.ARRIVED_MS, began, TableEventRow.EARLIEST_WINS - began),
          (old, fresh) -> fresh.value < old.value ? fresh : old);
    }
    // Again and again: a state table that goes back must not lose the arrival while a handler writes the segments, of
    // which it remembers all. Without a lock, as two handlers that both find it due cost one more write.
    if (now - known.dueSince >= AGAIN_MS) {
      known.dueSince = now;
      known.touch();
    }
    return !known.isFlushed();
  }

  boolean arrived(String table, long now) {
    return arrived(table, now, now);
  }

  /**
   * Compares the open regions with those of the last call. A region that opens and closes in between is missed. Called
   * by one thread.
   */
  public void regions(Collection<OpenRegion> open) {
    Map<String, OpenRegion> before = new HashMap<>(openedRegions);
    openedRegions.clear();
    // A region keeps the scopes that it was opened with while others open with new ones (HBase 2.6 need not open
    // regions anew): what is written to it until it closes, for a split for example, counts as well.
    before.values().forEach(region -> scopes.merge(region.table, region.scopes, TableEvents::lowest));
    for (OpenRegion region : open) {
      openedRegions.put(region.name, region);
      OpenRegion known = before.get(region.name);
      boolean isNew = known == null || known.openSeq != region.openSeq;
      if (isNew) {
        opened(region);
      }
      // Not only if there are more: fewer than before are new ones since a flush.
      if (region.skipped > 0 && (isNew || region.skipped != known.skipped)) {
        note(new Event(region.table, TableEventRow.SKIPPED_MS, region.now, region.now));
      }
    }
  }

  /**
   * Notes a region that has never held anything. Called by the content ledger, which misses no opening: a table may be
   * truncated and altered between two looks at the open regions.
   */
  void born(String table, long regionId) {
    note(new Event(table, TableEventRow.BORN_MS, regionId, regionId));
    note(new Event(table, TableEventRow.FIRST_BORN_MS, regionId, TableEventRow.EARLIEST_WINS - regionId));
  }

  /** Returns the lower scope of each family. */
  private static Map<String, Integer> lowest(Map<String, Integer> one, Map<String, Integer> other) {
    if (one.equals(other)) {
      return one;
    }
    Map<String, Integer> lowest = new HashMap<>(one);
    other.forEach((family, scope) -> lowest.merge(family, scope, Math::min));
    return lowest;
  }

  private void opened(OpenRegion region) {
    Map<String, Integer> known = scopes.put(region.table, region.scopes);
    if (known != null) {
      known.forEach((family, scope) -> compare(region, family, scope));
    }
  }

  private void compare(OpenRegion region, String family, int scopeBefore) {
    Integer scope = region.scopes.get(family);
    if (scope == null) {
      note(new Event(region.table, Bytes.add(TableEventRow.DROPPED_MS, Bytes.toBytes(family)), region.now, region.now));
    } else if (scopeBefore == HConstants.REPLICATION_SCOPE_LOCAL && scope != HConstants.REPLICATION_SCOPE_LOCAL) {
      note(new Event(region.table, Bytes.add(TableEventRow.RAISED_MS, Bytes.toBytes(family)), region.now, region.now));
    }
  }

  private void note(Event event) {
    emptied.merge(event.table + '/' + Bytes.toHex(event.qualifier), event, (old, fresh) ->
        fresh.timestamp > old.timestamp ? fresh : old);
  }

  public List<Change> dirty() {
    return changes(arrival -> !arrival.isFlushed());
  }

  /** Returns those that the table lacks: not arrivals that segments take along again. */
  public List<Change> urgent() {
    return changes(Event::isLacking);
  }

  /** Returns those to be written and all arrivals, for a copy of segments that may outlive a state table with them. */
  public List<Change> dirtyAndArrivals() {
    return changes(arrival -> true);
  }

  /** Changes of the arrivals that match, and of all other events that are to be written. */
  private List<Change> changes(Predicate<Event> ofArrivals) {
    List<Change> changes = new ArrayList<>();
    collect(arrivals.values(), ofArrivals, changes);
    collect(emptied.values(), event -> !event.isFlushed(), changes);
    return changes;
  }

  private static void collect(Collection<Event> events, Predicate<Event> which, List<Change> changes) {
    for (Event event : events) {
      if (which.test(event)) {
        changes.add(event.toChange());
      }
    }
  }

  public void forgetFlushes() {
    arrivals.values().forEach(Event::forget);
    emptied.values().forEach(Event::forget);
  }

  /** A region that is open on this server. */
  public static final class OpenRegion {
    final String name;
    final String table;
    final long openSeq;
    /** Replication scope of each family. */
    final Map<String, Integer> scopes;
    /** Number of mutations in the memstore that bypassed the WAL; HBase resets it at a flush. */
    final long skipped;
    /** The one that it was opened with. */
    final TableDescriptor descriptor;
    /** Lists its store files by family and name: whether each was bulk loaded. Costly, so for new regions only. */
    final Supplier<Map<String, Map<String, Boolean>>> files;
    final long now;

    public OpenRegion(String name, String table, long openSeq, Map<String, Integer> scopes, long skipped,
        TableDescriptor descriptor, Supplier<Map<String, Map<String, Boolean>>> files, long now) {
      this.name = name;
      this.table = table;
      this.openSeq = openSeq;
      this.scopes = scopes;
      this.skipped = skipped;
      this.descriptor = descriptor;
      this.files = files;
      this.now = now;
    }

    /** Returns true if this is a region of a table that loses cells by its own settings. */
    public boolean loses(String ofTable) {
      return table.equals(ofTable) && !Retention.isUnlimited(descriptor);
    }
  }

  private static final class Event {
    private final String table;
    private final byte[] qualifier;
    private final long value;
    private final long timestamp;
    /** Number of times that it was to be written; compared with the one that was written last. */
    private final AtomicLong due = new AtomicLong(1);
    private final AtomicLong flushed = new AtomicLong();
    /** The number that the table has at least if it has the event. */
    private volatile long lacking = 1;
    /** Time when the arrival was last to be written with segments. */
    private volatile long dueSince;

    private Event(String table, byte[] qualifier, long value, long timestamp) {
      this.table = table;
      this.qualifier = qualifier;
      this.value = value;
      this.timestamp = timestamp;
      dueSince = value;
    }

    /** Marks it as not written. A write of a handler that is under way may be one that the table has lost. */
    private long touch() {
      return due.incrementAndGet();
    }

    private void forget() {
      lacking = touch();
    }

    private boolean isLacking() {
      return flushed.get() < lacking;
    }

    private boolean isFlushed() {
      return flushed.get() == due.get();
    }

    private Change toChange() {
      long written = due.get();
      StateRow row = new StateRow(Bytes.toBytes(TableEventRow.TYPE + table)).add(qualifier, value, timestamp);
      return new Change(row, () -> flushed.accumulateAndGet(written, Math::max));
    }
  }
}
