package io.github.statustool.streams;

import java.util.Arrays;
import java.util.List;

/** Entries that one request has applied, of the streams that share their region, origin and via. */
final class AppliedStreams {
  private final StreamId entries;
  private final String table;
  private int[] families = new int[1];
  private AppliedEntries.Builder[] streams = new AppliedEntries.Builder[1];
  private int size;

  AppliedStreams(StreamId entries, String table) {
    this.entries = entries;
    this.table = table;
  }

  /** Returns null for a family of which nothing was added. */
  AppliedEntries.Builder of(int family) {
    for (int i = 0; i < size; i++) {
      if (families[i] == family) {
        return streams[i];
      }
    }
    return null;
  }

  /** @param single as {@link AppliedEntries#single} */
  AppliedEntries.Builder add(int family, long via, byte[] name, boolean single) {
    if (size == families.length) {
      families = Arrays.copyOf(families, 2 * size);
      streams = Arrays.copyOf(streams, 2 * size);
    }
    families[size] = family;
    StreamId id = new StreamId(entries.region, entries.origin, via);
    streams[size] = new AppliedEntries.Builder(id, table, name, single, entries.via);
    return streams[size++];
  }

  void build(long now, List<AppliedEntries> into) {
    for (int i = 0; i < size; i++) {
      into.add(streams[i].build(now));
    }
  }
}
