package io.github.statustool.streams;

import io.github.statustool.state.Change;
import io.github.statustool.state.ClusterLists;
import io.github.statustool.state.Ids;
import java.util.ArrayList;
import java.util.Collection;
import java.util.List;
import java.util.UUID;
import java.util.concurrent.ConcurrentHashMap;
import java.util.function.Predicate;
import org.apache.hadoop.hbase.client.RegionInfo;

/** Stream heads of this JVM. A region that is opened again, even in another WAL, continues its streams. */
final class StreamHeads {
  private final ConcurrentHashMap<StreamId, StreamHead> heads = new ConcurrentHashMap<>();
  /** Heads by region, origin and via of the entries. */
  private final ConcurrentHashMap<StreamId, FamilyHeads> regions = new ConcurrentHashMap<>();
  private final KnownLists lists = new KnownLists();

  /** Throws an exception if the region has too many lists of clusters. */
  FamilyHeads heads(RegionInfo region, long origin, List<UUID> clusterIds) {
    long via = Ids.via(clusterIds);
    ClusterLists.require(clusterIds.isEmpty() || lists.admits(region.getEncodedName(), via));
    return heads(region, origin, via, clusterIds);
  }

  /** Starts other streams of the region, distinguished from earlier ones by their first entry. */
  FamilyHeads anotherLife(RegionInfo region, long origin, List<UUID> clusterIds, long seq, long writeTime) {
    return heads(region, origin, Ids.via(clusterIds, seq, writeTime), clusterIds);
  }

  private FamilyHeads heads(RegionInfo region, long origin, long via, List<UUID> clusterIds) {
    String name = region.getEncodedName();
    return regions.computeIfAbsent(new StreamId(name, origin, via), id -> {
      byte[] viaIds = Ids.sortedBytes(clusterIds);
      return new FamilyHeads(via, (streamVia, family) -> heads.computeIfAbsent(new StreamId(name, origin, streamVia),
          key -> new StreamHead(key, region, viaIds, family)));
    });
  }

  /** Returns the heads that the state table does not have yet, of the regions that match. */
  List<Change> dirty(Predicate<String> regions) {
    List<Change> changes = new ArrayList<>();
    for (StreamHead head : heads.values()) {
      Change change = regions.test(head.id.region) ? head.change() : null;
      if (change != null) {
        changes.add(change);
      }
    }
    return changes;
  }

  void forgetFlushes() {
    heads.values().forEach(StreamHead::forgetFlush);
  }

  Collection<StreamHead> all() {
    return heads.values();
  }

  /** Makes the head of a family's stream. */
  interface Maker {
    StreamHead make(long streamVia, byte[] family);
  }
}
