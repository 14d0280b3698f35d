package io.github.statustool.server;

import static org.junit.jupiter.api.Assertions.assertEquals;

import io.github.statustool.content.TableEvents;
import io.github.statustool.state.Change;
import java.lang.reflect.Proxy;
import java.util.HashSet;
import java.util.List;
import java.util.Set;
import java.util.concurrent.atomic.AtomicLong;
import org.apache.hadoop.hbase.TableName;
import org.apache.hadoop.hbase.client.ColumnFamilyDescriptorBuilder;
import org.apache.hadoop.hbase.client.RegionInfo;
import org.apache.hadoop.hbase.client.RegionInfoBuilder;
import org.apache.hadoop.hbase.client.TableDescriptorBuilder;
import org.apache.hadoop.hbase.regionserver.Region;
import org.junit.jupiter.api.Test;

class OpenRegionListerTest {
  private static final Region META = region("hbase:meta", 0, new AtomicLong());

  private final TableEvents events = new TableEvents();
  private final OpenRegionLister lister = new OpenRegionLister(region -> 5);
  private final AtomicLong skipped = new AtomicLong();
  private final Region user = region("t", 0, skipped);

  private static Region region(String table, int replica, AtomicLong skipped) {
    TableName name = TableName.valueOf(table);
    RegionInfo info = RegionInfoBuilder.newBuilder(name).setRegionId(7).setReplicaId(replica).build();
    return (Region) Proxy.newProxyInstance(Region.class.getClassLoader(), new Class<?>[] {Region.class},
        (proxy, method, args) -> {
          switch (method.getName()) {
            case "getRegionInfo":
              return info;
            case "getTableDescriptor":
              return TableDescriptorBuilder.newBuilder(name)
                  .setColumnFamily(ColumnFamilyDescriptorBuilder.of("f")).build();
            case "getNumMutationsWithoutWAL":
              return skipped.get();
            default:
              throw new UnsupportedOperationException(method.getName());
          }
        });
  }

  private Set<String> seen(long now, Region... open) {
    events.regions(lister.list(List.of(open), now));
    Set<String> written = new HashSet<>();
    for (Change change : events.dirty()) {
      change.row.columns().forEach(column -> written.add(new String(column.qualifier) + "@" + column.timestamp));
      change.stored();
    }
    return written;
  }

  @Test
  void whatBypassedTheWalRightBeforeACloseIsSeenOnceMore() {
    assertEquals(Set.of(), seen(1, META, user));
    skipped.set(3);
    assertEquals(Set.of("w@2"), seen(2, META));
    assertEquals(Set.of(), seen(3, META));
  }

  @Test
  void theSameWhereItIsOpenedAgainAtOnce() {
    assertEquals(Set.of(), seen(1, user));
    skipped.set(3);
    assertEquals(Set.of("w@2"), seen(2, region("t", 0, new AtomicLong())));
  }

  @Test
  void systemTablesAndSecondaryReplicasAreLeftOut() {
    assertEquals(List.of(), lister.list(List.of(META, region("t", 1, new AtomicLong(3))), 1));
  }
}
