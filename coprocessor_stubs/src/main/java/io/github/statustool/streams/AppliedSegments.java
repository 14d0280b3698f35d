package io.github.statustool.streams;

import io.github.statustool.content.TableEvents;
import io.github.statustool.state.Change;
import io.github.statustool.state.StateRow;
import io.github.statustool.state.StateTable;
import java.util.ArrayList;
import java.util.Iterator;
import java.util.List;
import java.util.Set;
import java.util.concurrent.ConcurrentHashMap;

/**
 * Segments applied on this server, by stream. Those that the state table does not have yet are pending until a
 * write-through or a flush stores them. Bounded by the number of active streams, because the segments of a stream are
 * kept merged.
 */
public final class AppliedSegments {
  private final ConcurrentHashMap<StreamId, StreamSegments> records = new ConcurrentHashMap<>();
  /**
   * Streams that may not be in the table. One is removed only while its record is locked: whoever finds it missing may
   * conclude that all entries added before are in the table.
   */
  private final Set<StreamId> pending;
  private final Set<StreamId> scattered = ConcurrentHashMap.newKeySet();
  private final ConcurrentHashMap<String, UnstampedEntries> unstamped = new ConcurrentHashMap<>();
  private final KnownLists unstampedLists = new KnownLists();
  private final KnownLists singleLists = new KnownLists();
  private final TableEvents tables;
  /** Pending streams that have grown since they were copied to the spool. */
  private final Set<StreamId> uncopied = ConcurrentHashMap.newKeySet();
  /** Those of requests that were answered although they are recorded nowhere. */
  private final Set<StreamId> unrecorded = ConcurrentHashMap.newKeySet();
  private volatile boolean tablesUncopied;

  AppliedSegments(TableEvents tables) {
    this(tables, ConcurrentHashMap.newKeySet());
  }

  /** @param pending empty, for any thread */
  AppliedSegments(TableEvents tables, Set<StreamId> pending) {
    this.tables = tables;
    this.pending = pending;
  }

  /**
   * Returns the changes to write together with a batch because it contains entries of a table; usually none.
   *
   * @param began when the batch began
   */
  List<Change> arrived(List<AppliedEntries> streams, long began, long now) {
    boolean due = false;
    for (AppliedEntries stream : streams) {
      due |= tables.arrived(stream.table, began, now);
    }
    if (due) {
      tablesUncopied = true;
    }
    return due ? tables.dirty() : List.of();
  }

  /**
   * Adds a request's entries before anything is written, so that a failed write loses nothing. Returns the streams to
   * write.
   */
  List<StreamSegments> add(List<AppliedEntries> streams, long now) {
    List<StreamSegments> touched = new ArrayList<>(streams.size());
    for (AppliedEntries stream : streams) {
      if (stream.single && !singleLists.admits(stream.id.region, stream.list)) {
        // Never as applied: what is beyond the bound is in doubt, whether it has a stamp or not.
        keepUnstamped(List.of(stream.asUnstamped()));
        continue;
      }
      // Under the record's lock: forgetIdle() cannot drop the record between the look-up and the addition.
      touched.add(records.compute(stream.id, (id, known) -> {
        StreamSegments record = known == null ? new StreamSegments(id, stream.table, stream.family) : known;
        if (record.add(stream, now)) {
          scattered.add(id);
        }
        return record;
      }));
    }
    return touched;
  }

  /** Keeps streams for the next flush, in case they are not stored before. */
  void keep(List<StreamSegments> unwritten) {
    for (StreamSegments record : unwritten) {
      pending.add(record.id);
      uncopied.add(record.id);
    }
  }

  /** Notes streams that a request could record neither in the spool nor in the table. */
  void notRecorded(List<StreamSegments> streams) {
    streams.forEach(record -> unrecorded.add(record.id));
  }

  /**
   * Drops a stream that is in the table, unless it has grown since. Nobody adds entries between the look and the
   * removal, and a handler that adds some after it keeps the stream again.
   */
  void dropIfStored(StreamId id) {
    records.compute(id, (same, record) -> {
      // Without the lock, a handler may add entries and keep the stream between the look and the removal. The spool's
      // thread would then find nothing pending, and take a request for recorded that a crash would lose.
      if (record == null || record.isStored()) {
        pending.remove(id);
        uncopied.remove(id);
        unrecorded.remove(id);
      }
      return record;
    });
  }

  /** Marks everything that is still known as not written. */
  void forgetFlushes() {
    for (StreamId id : records.keySet()) {
      records.computeIfPresent(id, (same, record) -> {
        // In one step with the mark: a handler's dropIfStored() that had looked before would take the mark away again.
        record.forgetStored();
        pending.add(id);
        return record;
      });
    }
    unstamped.values().forEach(UnstampedEntries::forgetStored);
  }

  /** Keeps entries for the next flush: those of lists of clusters beyond the bound as one, so that a row is bounded. */
  void keepUnstamped(List<UnstampedEntries> entries) {
    for (UnstampedEntries entry : entries) {
      boolean isAdmitted = !entry.haveClusters() || unstampedLists.admits(entry.region, entry.list());
      UnstampedEntries kept = isAdmitted ? entry : entry.withoutClusters();
      unstamped.merge(kept.key(), kept, UnstampedEntries::plus);
    }
  }

  /**
   * Drops streams that have been idle since they were written, and that the state table cannot lose any more. A stream
   * that becomes active again starts a new column. Of entries without a stamp, the newest that the table has ever got
   * stays there.
   */
  public void forgetIdle(long now) {
    for (StreamId id : records.keySet()) {
      records.computeIfPresent(id, (same, record) -> record.isIdleSince(now - StateTable.LOSABLE_MS) ? null : record);
    }
    // Not one that replaced it meanwhile.
    unstamped.values().removeIf(entry -> entry.isIdleSince(now - StateTable.LOSABLE_MS));
  }

  /** Streams whose missing entries may be recorded in the columns of other servers. */
  Set<StreamId> scattered() {
    return scattered;
  }

  /** Returns the stream's segments, or null if this server knows none. */
  StreamSegments record(StreamId id) {
    return records.get(id);
  }

  public boolean hasPending() {
    return pending.iterator().hasNext(); // isEmpty() sums counters, and may miss one of two that change meanwhile
  }

  /** Lets the next copy have all that is pending, after one that failed. */
  public void copyAgain() {
    uncopied.addAll(pending);
  }

  /** Returns true if a crash would lose segments. Those of requests that are under way would be sent again. */
  public boolean hasUncopied() {
    // A stream stays in `unrecorded` until the table has it; a copy takes it out of `uncopied`, which ends the hurry.
    return unrecorded.stream().anyMatch(id -> uncopied.contains(id) && pending.contains(id));
  }

  public int pendingCount() {
    return pending.size();
  }

  /** Returns the rows of what was kept since the last call, which stays pending. By one thread. */
  public List<StateRow> uncopiedRows(long now) {
    List<StateRow> rows = new ArrayList<>();
    if (tablesUncopied) {
      tablesUncopied = false; // before the tables are read, as below
      rows.addAll(Change.rows(tables.dirty()));
    }
    for (Iterator<StreamId> ids = uncopied.iterator(); ids.hasNext();) {
      StreamId id = ids.next();
      ids.remove(); // before it is read: what is added meanwhile is copied again
      addStream(id, now, rows);
    }
    return rows;
  }

  /** Returns the rows of pending streams, which stay pending, and of all tables with arrivals. By any thread. */
  public List<StateRow> pendingRows(long now) {
    List<StateRow> rows = new ArrayList<>(Change.rows(tables.dirtyAndArrivals()));
    pending.forEach(id -> addStream(id, now, rows));
    return rows;
  }

  private void addStream(StreamId id, long now, List<StateRow> rows) {
    StreamSegments record = records.get(id);
    if (record != null) {
      // The row alone: a copy in the spool is not a write, and the stream stays pending until the table has it.
      rows.add(record.toChange(now).row);
    }
  }

  /** Collects what is still to be written. */
  void collect(List<Change> changes, long now) {
    for (StreamId id : pending) {
      StreamSegments record = records.get(id);
      // A stored stream is still pending in the moment between a write-through and its dropIfStored(), or if one
      // request's write took entries along that another had added and kept only afterwards. dropIfStored() looks again,
      // since a handler may add entries between the two looks: they stay pending for the next flush.
      if (record == null || record.isStored()) {
        dropIfStored(id);
        continue;
      }
      Change change = record.toChange(now);
      changes.add(new Change(change.row, () -> {
        // A handler may have added entries since the row was made. The record then has a newer version than the one
        // that is stored, so dropIfStored() finds it unwritten, and the stream stays pending.
        change.stored();
        dropIfStored(id);
      }));
    }
    for (UnstampedEntries entry : unstamped.values()) {
      if (!entry.isStored()) {
        changes.add(new Change(entry.toRow(), () -> entry.stored(now)));
      }
    }
  }
}
