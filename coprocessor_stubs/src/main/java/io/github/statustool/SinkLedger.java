package io.github.statustool;

import java.util.List;
import java.util.Map;
import java.util.Set;
import java.util.concurrent.ConcurrentHashMap;

/**
 * What was applied here and could not be written through: kept until a flush has written it. Bounded by the number of
 * streams, because the segments of a stream are kept merged.
 */
final class SinkLedger {
  private final ConcurrentHashMap<StreamId, AppliedStream> pending = new ConcurrentHashMap<>();
  private final ConcurrentHashMap<String, Unstamped> unstamped = new ConcurrentHashMap<>();
  private final Map<String, Unstamped> writtenUnstamped = new ConcurrentHashMap<>();
  private final TableEvents tables;
  private final Set<StreamId> touched = ConcurrentHashMap.newKeySet();

  SinkLedger(TableEvents tables) {
    this.tables = tables;
  }

  /** What has to be written with a batch because it has the first entries of a table: almost always nothing. */
  List<Change> arrived(List<AppliedStream> streams, long now) {
    boolean first = false;
    for (AppliedStream stream : streams) {
      first |= tables.arrived(stream.table, now);
    }
    return first ? tables.dirty() : List.of();
  }

  void keep(List<AppliedStream> streams) {
    for (AppliedStream stream : streams) {
      pending.merge(stream.id, stream, AppliedStream::union);
    }
  }

  void keepUnstamped(List<Unstamped> entries) {
    for (Unstamped entry : entries) {
      unstamped.merge(entry.region, entry, Unstamped::plus);
    }
  }

  /** Their rows have got another segment, so a compaction may find something to merge. */
  void written(List<AppliedStream> streams) {
    for (AppliedStream stream : streams) {
      touched.add(stream.id);
    }
  }

  Set<StreamId> touched() {
    return touched;
  }

  boolean hasPending() {
    return !pending.isEmpty();
  }

  int pendingCount() {
    return pending.size();
  }

  /** What is added to a stream while it is being written stays pending, merged with what was: a harmless repetition. */
  void collect(List<Change> changes) {
    for (AppliedStream stream : pending.values()) {
      changes.add(new Change(stream.toRow(), () -> {
        pending.remove(stream.id, stream);
        touched.add(stream.id);
      }));
    }
    for (Unstamped entry : unstamped.values()) {
      if (writtenUnstamped.get(entry.region) != entry) {
        changes.add(new Change(entry.toRow(), () -> writtenUnstamped.put(entry.region, entry)));
      }
    }
  }
}
