package io.github.statustool;

import io.github.statustool.StateTable.TableEventRow;
import java.util.ArrayList;
import java.util.Collection;
import java.util.HashMap;
import java.util.List;
import java.util.Map;
import java.util.concurrent.ConcurrentHashMap;
import org.apache.hadoop.hbase.HConstants;

/**
 * What happens to tables that WALs do not tell. Where replication writes to them: when their first entry arrived, and
 * when a table or family was emptied after that, for segments say that an entry was applied, not that its cells are still
 * there. Where clients do: when mutations bypassed the WAL, and since when a family is replicated that was not.
 *
 * <p>A region that opens with the first sequence id there is has never held anything: its table was created, or
 * truncated, at the time of its region id. Daughters of splits and merges, and regions that move, go on counting.
 */
final class TableEvents {
  /** HBase opens a region that was never written to, not even a marker, with this. */
  static final long NEWBORN = 2;

  /** Of two arrivals the earlier one has to win, and in a table the cell with the higher timestamp does. */
  static final long EARLIEST_WINS = 1L << 62;

  private final Map<String, Event> arrivals = new ConcurrentHashMap<>();
  private final Map<String, Event> emptied = new ConcurrentHashMap<>();
  private final Map<String, OpenRegion> openedRegions = new HashMap<>();
  private final Map<String, Map<String, Integer>> scopes = new HashMap<>();

  /** Called by the threads of the sink. Returns whether this is the first entry for the table that this JVM applies. */
  boolean arrived(String table, long now) {
    if (arrivals.containsKey(table)) {
      return false;
    }
    return arrivals.putIfAbsent(table, new Event(table, TableEventRow.ARRIVED_MS, now, EARLIEST_WINS - now)) == null;
  }

  /** The regions that are open now; by one thread. Two looks may miss what begins and ends between them. */
  void regions(Collection<OpenRegion> open) {
    Map<String, OpenRegion> before = new HashMap<>(openedRegions);
    openedRegions.clear();
    for (OpenRegion region : open) {
      openedRegions.put(region.name, region);
      OpenRegion known = before.get(region.name);
      boolean isNew = known == null || known.openSeq != region.openSeq;
      if (isNew) {
        opened(region);
      }
      if (region.skipped > 0 && (isNew || region.skipped != known.skipped)) { // fewer: others since a flush
        note(new Event(region.table, TableEventRow.SKIPPED_MS, region.now, region.now));
      }
    }
  }

  private void opened(OpenRegion region) {
    if (region.openSeq <= NEWBORN) {
      note(new Event(region.table, TableEventRow.BORN_MS, region.id, region.id));
    }
    Map<String, Integer> known = scopes.put(region.table, region.scopes);
    if (known != null) {
      known.forEach((family, scope) -> compare(region, family, scope));
    }
  }

  private void compare(OpenRegion region, String family, int scopeBefore) {
    Integer scope = region.scopes.get(family);
    if (scope == null) {
      note(new Event(region.table, Bits.concat(TableEventRow.DROPPED_MS, Bits.utf8(family)), region.now, region.now));
    } else if (scopeBefore == HConstants.REPLICATION_SCOPE_LOCAL && scope != HConstants.REPLICATION_SCOPE_LOCAL) {
      note(new Event(region.table, Bits.concat(TableEventRow.RAISED_MS, Bits.utf8(family)), region.now, region.now));
    }
  }

  private void note(Event event) {
    emptied.merge(event.table + '/' + Bits.hex(event.qualifier), event, (old, fresh) ->
        fresh.value > old.value ? fresh : old);
  }

  List<Change> dirty() {
    List<Change> changes = new ArrayList<>();
    collect(arrivals.values(), changes);
    collect(emptied.values(), changes);
    return changes;
  }

  private static void collect(Collection<Event> events, List<Change> changes) {
    for (Event event : events) {
      if (!event.flushed) {
        changes.add(new Change(event.toRow(), () -> event.flushed = true));
      }
    }
  }

  void forgetFlushes() {
    arrivals.values().forEach(event -> event.flushed = false);
    emptied.values().forEach(event -> event.flushed = false);
  }

  /** One region that is open on this server. */
  static final class OpenRegion {
    final String name;
    final String table;
    final long id;
    final long openSeq;
    /** Replication scope of each family. */
    final Map<String, Integer> scopes;
    /** How many mutations that bypassed the WAL are in its memstore; HBase counts from zero again after a flush. */
    final long skipped;
    final long now;

    OpenRegion(String name, String table, long id, long openSeq, Map<String, Integer> scopes, long skipped,
        long now) {
      this.name = name;
      this.table = table;
      this.id = id;
      this.openSeq = openSeq;
      this.scopes = scopes;
      this.skipped = skipped;
      this.now = now;
    }
  }

  private static final class Event {
    private final String table;
    private final byte[] qualifier;
    private final long value;
    private final long timestamp;
    private volatile boolean flushed;

    private Event(String table, byte[] qualifier, long value, long timestamp) {
      this.table = table;
      this.qualifier = qualifier;
      this.value = value;
      this.timestamp = timestamp;
    }

    private StateRow toRow() {
      return new StateRow(Bits.utf8(TableEventRow.TYPE + table)).add(qualifier, value, timestamp);
    }
  }
}
