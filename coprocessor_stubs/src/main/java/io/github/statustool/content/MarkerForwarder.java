package io.github.statustool.content;

import java.io.IOException;
import java.util.ArrayList;
import java.util.List;
import java.util.Map;
import java.util.NavigableMap;
import java.util.UUID;
import java.util.stream.Collectors;
import org.apache.hadoop.hbase.Cell;
import org.apache.hadoop.hbase.HConstants;
import org.apache.hadoop.hbase.TableName;
import org.apache.hadoop.hbase.client.RegionInfo;
import org.apache.hadoop.hbase.client.RegionReplicaUtil;
import org.apache.hadoop.hbase.shaded.protobuf.generated.WALProtos.BulkLoadDescriptor;
import org.apache.hadoop.hbase.util.Bytes;
import org.apache.hadoop.hbase.wal.WALEdit;
import org.apache.hadoop.hbase.wal.WALKeyImpl;

/**
 * Forwards the markers of one WAL to the content ledger, for default replicas of user tables, and bulk loads also to the
 * writes to their tables. Used by the WAL thread only.
 */
public final class MarkerForwarder {
  private final long origin;
  private final TableName stateTable;
  private final ContentLedger ledger;
  private final TableWrites.Registry writes;

  public MarkerForwarder(long origin, TableName stateTable, ContentLedger ledger, TableWrites.Registry writes) {
    this.origin = origin;
    this.stateTable = stateTable;
    this.ledger = ledger;
    this.writes = writes;
  }

  /** Returns true for a default replica of a user's table. */
  public boolean observes(RegionInfo region) {
    TableName table = region.getTable();
    return !table.isSystemTable() && !table.equals(stateTable) && RegionReplicaUtil.isDefaultReplica(region);
  }

  /** @param scopes replication scopes of the families before HBase removed them from the marker; or null */
  public void note(RegionInfo region, WALKeyImpl key, WALEdit edit, NavigableMap<byte[], Integer> scopes)
      throws IOException {
    if (observes(region)) {
      ledger.note(new Marker(origin, region, key.getSequenceId(), key.getWriteTime(), edit.getCells(),
          replicated(scopes)));
      noteLoads(region, key.getWriteTime(), edit.getCells());
    }
  }

  private void noteLoads(RegionInfo region, long writeTime, List<Cell> cells) throws IOException {
    for (Cell cell : cells) {
      BulkLoadDescriptor load = WALEdit.getBulkLoadDescriptor(cell);
      if (load != null) {
        List<UUID> clusterIds = load.getClusterIdsList().stream().map(UUID::fromString).collect(Collectors.toList());
        writes.of(region.getTable().getNameAsString()).addLoad(writeTime, clusterIds);
      }
    }
  }

  private static List<String> replicated(NavigableMap<byte[], Integer> scopes) {
    List<String> families = new ArrayList<>(0);
    if (scopes != null) {
      for (Map.Entry<byte[], Integer> scope : scopes.entrySet()) {
        if (scope.getValue() == HConstants.REPLICATION_SCOPE_GLOBAL) {
          families.add(Bytes.toString(scope.getKey()));
        }
      }
    }
    return families;
  }
}
