package io.github.statustool;

import java.util.Collection;
import java.util.List;
import java.util.UUID;
import java.util.concurrent.ConcurrentHashMap;
import org.apache.hadoop.hbase.client.RegionInfo;

/** All stream heads of this JVM. A region that is opened again, even in another WAL, continues its stream. */
final class StreamHeads {
  private final ConcurrentHashMap<StreamId, StreamHead> heads = new ConcurrentHashMap<>();

  StreamHead head(RegionInfo region, long origin, List<UUID> clusterIds) {
    StreamId id = new StreamId(region.getEncodedName(), origin, Ids.via(clusterIds));
    return heads.computeIfAbsent(id, key -> new StreamHead(key, region, Ids.sortedBytes(clusterIds)));
  }

  /** Starts another stream of the region, distinguished from earlier ones by its first entry. */
  StreamHead anotherLife(RegionInfo region, long origin, List<UUID> clusterIds, long seq, long writeTime) {
    StreamId id = new StreamId(region.getEncodedName(), origin, Ids.via(clusterIds, seq, writeTime));
    return heads.computeIfAbsent(id, key -> new StreamHead(key, region, Ids.sortedBytes(clusterIds)));
  }

  Collection<StreamHead> all() {
    return heads.values();
  }
}
