package io.github.statustool.streams;

import io.github.statustool.state.Ids;
import java.util.HashMap;
import java.util.Map;

/** The vias of the families' streams, kept so that a digest is computed once for each. Not thread-safe. */
final class StreamVias {
  /** Far more than replication meets at a time: few vias, each with the families of the tables. */
  private static final int MOST = 10_000;

  private final Map<Long, Map<Integer, Long>> known = new HashMap<>();
  private int size;

  long of(long via, int family) {
    if (size >= MOST) {
      known.clear();
      size = 0;
    }
    return known.computeIfAbsent(via, absent -> new HashMap<>()).computeIfAbsent(family, absent -> {
      size++;
      return Ids.via(via, family);
    });
  }
}
