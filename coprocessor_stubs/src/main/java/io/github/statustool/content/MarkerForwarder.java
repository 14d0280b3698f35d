package io.github.statustool.content;

import io.github.statustool.state.Settings;
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
 * writes to their tables and to the facts of their regions. Used by the WAL thread only.
 */
public final class MarkerForwarder {
  private final long origin;
  private final Settings settings;
  private final ContentLedger ledger;
  private final TableWrites.Registry writes;
  private final RegionFacts facts;

  public MarkerForwarder(long origin, Settings settings, ContentLedger ledger, TableWrites.Registry writes,
      RegionFacts facts) {
    this.origin = origin;
    this.settings = settings;
    this.ledger = ledger;
    this.writes = writes;
    this.facts = facts;
  }

  /** Returns the writes to the region's table; null if it is a table of HBase or of the trackers, or another replica. */
  public TableWrites writes(RegionInfo region) {
    TableName table = region.getTable();
    boolean observed =
        !table.isSystemTable() && !table.equals(settings.table) && RegionReplicaUtil.isDefaultReplica(region);
    return observed ? writes.of(table.getNameAsString()) : null;
  }

  /** Notes an entry with cells of a region that has {@link #writes}, once it is appended. */
  public void noteAppended(RegionInfo region, WALKeyImpl key) {
    ledger.noteAppended(region.getEncodedName(), key.getSequenceId());
  }

  /** @param scopes replication scopes of the families before HBase removed them from the marker; or null */
  public void note(RegionInfo region, WALKeyImpl key, WALEdit edit, NavigableMap<byte[], Integer> scopes)
      throws IOException {
    TableWrites ofTable = writes(region);
    if (ofTable == null) {
      return;
    }
    List<String> replicated = replicated(scopes);
    try {
      for (Cell cell : edit.getCells()) {
        noteLoad(region, key, WALEdit.getBulkLoadDescriptor(cell), replicated, ofTable);
      }
    } finally {
      // Also if the clusters of a load are refused: the ledger would lack its files. Last: whoever finds the marker in
      // the ledger also finds the fact that the next opening will no longer show.
      ledger.note(new Marker(origin, region, key.getSequenceId(), key.getWriteTime(), edit.getCells(), replicated));
    }
  }

  private void noteLoad(RegionInfo region, WALKeyImpl key, BulkLoadDescriptor load, List<String> replicated,
      TableWrites ofTable) {
    if (load != null) {
      noteReplicated(region, key, load, replicated);
      ofTable.addLoad(key.getWriteTime(),
          load.getClusterIdsList().stream().map(UUID::fromString).collect(Collectors.toList()));
    }
  }

  /** Records a bulk load of replicated families. */
  private void noteReplicated(RegionInfo region, WALKeyImpl key, BulkLoadDescriptor load, List<String> replicated) {
    // HBase has removed the scopes from the marker if this server does not replicate bulk loads: no other server's
    // setting, and none of later, makes up for that.
    boolean isScoped = key.getReplicationScopes() != null && !key.getReplicationScopes().isEmpty();
    if (load.getStoresList().stream().anyMatch(store -> replicated.contains(store.getFamilyName().toStringUtf8()))) {
      facts.bulkLoad(region.getEncodedName(), region.getTable().getNameAsString(), key.getWriteTime(),
          // HBase may ship a load that it has not noted: hfile-refs is empty then, too.
          isScoped && load.getReplicate() && settings.loadsAreNoted());
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
