package io.github.statustool.witness;

import java.util.List;
import java.util.Objects;
import java.util.UUID;

/** Entries of one region that passed the same clusters and have cells of the same families: what a set is kept of. */
final class ArrivalKey {
  final String table;
  /** The sender's encoded name. */
  final String region;
  /** Clusters in the order in which the entries passed them: their origin first, the sender last. */
  final List<UUID> clusters;
  /** Sorted. */
  final List<String> families;

  ArrivalKey(String table, String region, List<UUID> clusters, List<String> families) {
    this.table = table;
    this.region = region;
    this.clusters = clusters;
    this.families = families;
  }

  @Override
  public boolean equals(Object other) {
    if (!(other instanceof ArrivalKey)) {
      return false;
    }
    ArrivalKey that = (ArrivalKey) other;
    return region.equals(that.region)
        && table.equals(that.table)
        && clusters.equals(that.clusters)
        && families.equals(that.families);
  }

  @Override
  public int hashCode() {
    return Objects.hash(region, clusters, families);
  }
}
