package io.github.statustool.witness;

import java.util.ArrayList;
import java.util.Comparator;
import java.util.LinkedHashMap;
import java.util.List;
import java.util.Map;

/** Entries by what they are kept under: those of a request, or of files. */
final class Arrivals {
  private static final Comparator<Run> ORDER =
      Comparator.<Run>comparingLong(each -> each.first)
          .thenComparingLong(each -> -each.last)
          .thenComparingLong(each -> each.low)
          .thenComparingLong(each -> each.high);

  private final Map<ArrivalKey, List<Run>> byKey = new LinkedHashMap<>();
  private int size;

  void add(ArrivalKey key, long sequenceId, long writeTime) {
    add(key, Run.of(sequenceId, writeTime));
  }

  void add(ArrivalKey key, Run run) {
    byKey.computeIfAbsent(key, absent -> new ArrayList<>()).add(run);
    size++;
  }

  void addAll(Arrivals others) {
    others.byKey.forEach((key, all) -> all.forEach(each -> add(key, each)));
  }

  /** Returns the number of runs, each of one entry as they come; those that were sent twice count twice. */
  int size() {
    return size;
  }

  Map<ArrivalKey, List<Run>> byKey() {
    return byKey;
  }

  /**
   * Sorts the entries by sequence id and drops those that were sent again. An entry of a region that lives again may
   * have the sequence id of one of its earlier life, and stays beside it.
   */
  Arrivals asSets() {
    Arrivals sets = new Arrivals();
    byKey.forEach((key, all) -> {
      all.sort(ORDER);
      Run last = null;
      for (Run each : all) {
        if (last == null || ORDER.compare(each, last) != 0) {
          sets.add(key, each);
        }
        last = each;
      }
    });
    return sets;
  }

  /** Joins settled entries whose sequence ids follow each other. Their own write times go; no sequence id does. */
  Arrivals pruned(Settled settled) {
    Arrivals joined = new Arrivals();
    asSets().byKey.forEach((key, all) -> {
      Run run = null;
      for (Run each : all) {
        if (!settled.has(key, each)) {
          joined.add(key, each);
        } else if (run != null && run.touches(each)) {
          run = run.union(each);
        } else {
          if (run != null) {
            joined.add(key, run);
          }
          run = each;
        }
      }
      if (run != null) {
        joined.add(key, run);
      }
    });
    return joined.asSets();
  }
}
