package io.github.statustool.witness;

import java.util.ArrayList;
import java.util.Comparator;
import java.util.LinkedHashMap;
import java.util.List;
import java.util.Map;

/** Entries by what they are kept under: those of a request, or of a file. */
final class Arrivals {
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

  /** Sorts the entries by sequence id and drops those that were sent again. */
  Arrivals asSets() {
    Arrivals sets = new Arrivals();
    byKey.forEach((key, all) -> {
      all.sort(Comparator.comparingLong(each -> each.sequenceId));
      Arrival last = null;
      for (Arrival each : all) {
        if (last == null || each.sequenceId != last.sequenceId) {
          sets.add(key, each.sequenceId, each.writeTime);
        }
        last = each;
      }
    });
    return sets;
  }
}
