package io.github.statustool.witness;

import java.util.ArrayList;
import java.util.Comparator;
import java.util.LinkedHashMap;
import java.util.List;
import java.util.Map;

/** Entries by what they are kept under: those of a request, or of a file. */
final class Arrivals {
  private static final Comparator<Arrival> ORDER =
      Comparator.<Arrival>comparingLong(each -> each.sequenceId).thenComparingLong(each -> each.writeTime);

  private final Map<ArrivalKey, List<Arrival>> byKey = new LinkedHashMap<>();
  private int size;

  void add(ArrivalKey key, long sequenceId, long writeTime) {
    byKey.computeIfAbsent(key, absent -> new ArrayList<>()).add(new Arrival(sequenceId, writeTime));
    size++;
  }

  /** Returns the number of entries; those that were sent twice count twice. */
  int size() {
    return size;
  }

  Map<ArrivalKey, List<Arrival>> byKey() {
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
      Arrival last = null;
      for (Arrival each : all) {
        if (last == null || ORDER.compare(each, last) != 0) {
          sets.add(key, each.sequenceId, each.writeTime);
        }
        last = each;
      }
    });
    return sets;
  }
}
