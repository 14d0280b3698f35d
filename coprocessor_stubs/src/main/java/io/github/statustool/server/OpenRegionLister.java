package io.github.statustool.server;

import io.github.statustool.content.FileOrigins;
import io.github.statustool.content.TableEvents;
import java.util.ArrayList;
import java.util.Collection;
import java.util.Collections;
import java.util.HashMap;
import java.util.IdentityHashMap;
import java.util.List;
import java.util.Map;
import java.util.Set;
import java.util.function.ToLongFunction;
import org.apache.hadoop.hbase.client.ColumnFamilyDescriptor;
import org.apache.hadoop.hbase.client.RegionInfo;
import org.apache.hadoop.hbase.client.RegionReplicaUtil;
import org.apache.hadoop.hbase.regionserver.Region;

/**
 * Lists a server's open regions: default replicas of user tables. A region that was closed since the last call is
 * listed once more, first.
 */
final class OpenRegionLister {
  private final ToLongFunction<Region> openSeq;
  private Set<Region> open = Set.of();

  OpenRegionLister(ToLongFunction<Region> openSeq) {
    this.openSeq = openSeq;
  }

  List<TableEvents.OpenRegion> list(Collection<? extends Region> regions, long now) {
    Set<Region> before = open;
    // By identity, as HRegion compares by name: a region that was closed and opened again since is listed as both.
    open = Collections.newSetFromMap(new IdentityHashMap<>());
    for (Region region : regions) {
      RegionInfo info = region.getRegionInfo();
      if (!info.getTable().isSystemTable() && RegionReplicaUtil.isDefaultReplica(info)) {
        open.add(region);
      }
    }
    List<TableEvents.OpenRegion> listed = new ArrayList<>(open.size());
    // A close flushes the mutations that bypassed the WAL, but HBase's counter of them remains. First, so that of two
    // with one name the table events remember the one that is open.
    for (Region region : before) {
      if (!open.contains(region)) {
        listed.add(describe(region, now));
      }
    }
    open.forEach(region -> listed.add(describe(region, now)));
    return listed;
  }

  private TableEvents.OpenRegion describe(Region region, long now) {
    RegionInfo info = region.getRegionInfo();
    Map<String, Integer> scopes = new HashMap<>();
    for (ColumnFamilyDescriptor family : region.getTableDescriptor().getColumnFamilies()) {
      scopes.put(family.getNameAsString(), family.getScope());
    }
    return new TableEvents.OpenRegion(info.getEncodedName(), info.getTable().getNameAsString(),
        openSeq.applyAsLong(region), scopes, region.getNumMutationsWithoutWAL(), region.getTableDescriptor(),
        () -> FileOrigins.of(region), now);
  }
}
