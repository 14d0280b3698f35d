package io.github.statustool.witness;

import java.util.Arrays;
import java.util.Set;
import java.util.UUID;
import java.util.stream.Collectors;

/**
 * What {@code run -m} found settled: the witnesses were sent all entries of some regions that were written by a time,
 * and no sequence id stands for two of them. Such an entry that is sent from then on was sent before.
 */
final class Settled {
  private final long untilMs;
  private final UUID sender;
  private final Set<String> regions;

  private Settled(long untilMs, UUID sender, Set<String> regions) {
    this.untilMs = untilMs;
    this.sender = sender;
    this.regions = regions;
  }

  /**
   * Parses {@code UNTIL_MS SENDER REGION...}.
   *
   * @throws IllegalArgumentException for anything else
   */
  static Settled of(String text) {
    String[] words = text.split(" ");
    if (words.length < 2) {
      throw new IllegalArgumentException(text);
    }
    return new Settled(Long.parseLong(words[0]), UUID.fromString(words[1]),
        Arrays.stream(words).skip(2).collect(Collectors.toSet()));
  }

  boolean has(ArrivalKey key, Run run) {
    return run.high <= untilMs && concerns(key);
  }

  /** Returns true if an entry was written later, and may be settled some day. */
  boolean isTooEarlyFor(Arrivals arrivals) {
    return arrivals.byKey().entrySet().stream()
        .anyMatch(each -> concerns(each.getKey()) && each.getValue().stream().anyMatch(run -> run.high > untilMs));
  }

  private boolean concerns(ArrivalKey key) {
    return regions.contains(key.region)
        && !key.clusters.isEmpty()
        && key.clusters.get(key.clusters.size() - 1).equals(sender);
  }
}
