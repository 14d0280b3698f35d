package io.github.statustool;

import java.util.ArrayList;
import java.util.Iterator;
import java.util.List;
import java.util.Map;
import java.util.Set;
import java.util.concurrent.ConcurrentHashMap;

/**
 * What was applied here, by stream, and which of it could not be written through: that is kept until a flush has
 * written it. Bounded by the number of streams in use, because the segments of a stream are kept merged.
 */
final class AppliedSegments {
  private static final long IDLE_MS = 3_600_000;

  private final ConcurrentHashMap<StreamId, StreamSegments> records = new ConcurrentHashMap<>();
  private final Set<StreamId> pending = ConcurrentHashMap.newKeySet();
  private final Set<StreamId> scattered = ConcurrentHashMap.newKeySet();
  private final ConcurrentHashMap<String, UnstampedEntries> unstamped = new ConcurrentHashMap<>();
  private final Map<String, UnstampedEntries> writtenUnstamped = new ConcurrentHashMap<>();
  private final TableEvents tables;

  AppliedSegments(TableEvents tables) {
    this.tables = tables;
  }

  /** What has to be written with a batch because it has the first entries of a table: almost always nothing. */
  List<Change> arrived(List<AppliedEntries> streams, long now) {
    boolean first = false;
    for (AppliedEntries stream : streams) {
      first |= tables.arrived(stream.table, now);
    }
    return first ? tables.dirty() : List.of();
  }

  /** From here on it is known, whatever becomes of writing it. Returns the records to be written. */
  List<StreamSegments> add(List<AppliedEntries> streams, long now) {
    List<StreamSegments> touched = new ArrayList<>(streams.size());
    for (AppliedEntries stream : streams) {
      touched.add(records.compute(stream.id, (id, known) -> {
        StreamSegments record = known == null ? new StreamSegments(id, stream.table) : known;
        if (record.add(stream, now)) {
          scattered.add(id);
        }
        return record;
      }));
    }
    return touched;
  }

  /** They could not be written now. */
  void keep(List<StreamSegments> unwritten) {
    unwritten.forEach(record -> pending.add(record.id));
  }

  void keepUnstamped(List<UnstampedEntries> entries) {
    for (UnstampedEntries entry : entries) {
      unstamped.merge(entry.key(), entry, UnstampedEntries::plus);
    }
  }

  /** Drops what has long been written and is not added to any more; a stream that comes back begins a new column. */
  void forgetIdle(long now) {
    for (StreamId id : records.keySet()) {
      records.computeIfPresent(id, (same, record) -> record.isIdleSince(now - IDLE_MS) ? null : record);
    }
  }

  /** Streams of which other columns may hold what is missing here. */
  Set<StreamId> scattered() {
    return scattered;
  }

  /** Null if nothing of the stream is known here. */
  StreamSegments record(StreamId id) {
    return records.get(id);
  }

  boolean hasPending() {
    return !pending.isEmpty();
  }

  int pendingCount() {
    return pending.size();
  }

  /** What is added to a stream while it is being written stays pending: a harmless repetition. */
  void collect(List<Change> changes, long now) {
    Iterator<StreamId> ids = pending.iterator();
    while (ids.hasNext()) {
      StreamSegments record = records.get(ids.next());
      if (record == null || record.isStored()) {
        ids.remove(); // written meanwhile, with what came later
        if (record != null && !record.isStored()) {
          pending.add(record.id);
        }
        continue;
      }
      Change change = record.toChange(now);
      changes.add(new Change(change.row, () -> {
        change.stored();
        if (record.isStored()) {
          pending.remove(record.id);
        }
        if (!record.isStored()) {
          pending.add(record.id); // added to in between, and perhaps not written through
        }
      }));
    }
    for (UnstampedEntries entry : unstamped.values()) {
      if (writtenUnstamped.get(entry.key()) != entry) {
        changes.add(new Change(entry.toRow(), () -> writtenUnstamped.put(entry.key(), entry)));
      }
    }
  }
}
