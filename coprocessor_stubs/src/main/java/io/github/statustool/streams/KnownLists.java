package io.github.statustool.streams;

import io.github.statustool.state.ClusterLists;
import java.util.HashSet;
import java.util.Set;
import java.util.concurrent.ConcurrentHashMap;

/**
 * The lists of clusters of each region that this JVM has recorded. None is forgotten, since the state table forgets
 * none either: neither a region that opens again nor an idle hour makes room for more. Used by any thread.
 */
final class KnownLists {
  private final ConcurrentHashMap<String, Set<Long>> regions = new ConcurrentHashMap<>();

  /**
   * Returns true if a region's list is known, or if there is room for one more.
   *
   * @param list a hash of it
   */
  boolean admits(String region, long list) {
    Set<Long> known = regions.computeIfAbsent(region, absent -> new HashSet<>(2));
    synchronized (known) {
      return known.contains(list) || (ClusterLists.hasRoom(1 + known.size()) && known.add(list));
    }
  }
}
