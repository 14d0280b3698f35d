package io.github.statustool;

import java.util.ArrayList;
import java.util.Arrays;
import java.util.List;
import java.util.Map;
import java.util.NavigableMap;
import java.util.Set;
import java.util.UUID;
import org.apache.hadoop.hbase.Cell;
import org.apache.hadoop.hbase.CellUtil;
import org.apache.hadoop.hbase.HConstants;
import org.apache.hadoop.hbase.client.RegionInfo;
import org.apache.hadoop.hbase.wal.WALEdit;

/**
 * One open region as its WAL thread sees it: which of its families are replicated, and its streams. What is looked up
 * here once is not looked up again for the region's next entry. For the WAL thread only.
 */
final class RegionStreams {
  private final RegionInfo region;
  private final boolean exempt;
  private final long origin;
  private final StreamHeads registry;
  /** Of its table; null for an exempt region. */
  final TableWrites writes;
  private final List<Relayed> relayed = new ArrayList<>(0);
  private StreamHead local;
  private NavigableMap<byte[], Integer> knownScopes;
  private byte[][] globals = new byte[0][];
  private int[] globalIds = new int[0];

  /** Exempt: a region of a system table or of the state table itself, which are never tracked. */
  RegionStreams(RegionInfo region, boolean exempt, long origin, StreamHeads registry, TableWrites.Registry tables) {
    this.writes = exempt ? null : tables.of(region.getTable().getNameAsString());
    this.region = region;
    this.exempt = exempt;
    this.origin = origin;
    this.registry = registry;
  }

  boolean isExempt() {
    return exempt;
  }

  /**
   * Whether replication would ship something of this edit: at least one of its families has the global scope. HBase
   * takes the scopes off a replayed edit right after the hook that asks here, so that one is never shipped.
   *
   * @param into gets the number of the edit's cells by family, of those families
   */
  boolean isReplicable(WALEdit edit, NavigableMap<byte[], Integer> scopes, FamilyCells into) {
    if (exempt || edit.isReplay()) {
      return false;
    }
    if (scopes != knownScopes) {
      learn(scopes);
    }
    into.clear();
    Set<byte[]> families = edit.getFamilies();
    if (families != null && families.size() == 1) {
      return countOnly(edit, families, into);
    }
    return (families == null || hasGlobal(families)) && countEach(edit, into);
  }

  /** Most edits are of one family, and need no look at their cells. */
  private boolean countOnly(WALEdit edit, Set<byte[]> family, FamilyCells into) {
    for (int i = 0; i < globals.length; i++) {
      if (family.contains(globals[i])) {
        into.add(globalIds[i], edit.size());
        return true;
      }
    }
    return false;
  }

  private boolean hasGlobal(Set<byte[]> families) {
    for (byte[] global : globals) {
      if (families.contains(global)) {
        return true;
      }
    }
    return false;
  }

  /** Cells of a family follow one another, so the last cell's family is tried first. */
  private boolean countEach(WALEdit edit, FamilyCells into) {
    List<Cell> cells = edit.getCells();
    int last = 0;
    for (int i = 0; i < cells.size(); i++) {
      int family = familyOf(cells.get(i), last);
      if (family >= 0) {
        into.add(globalIds[family], 1);
        last = family;
      }
    }
    return into.size() > 0;
  }

  private int familyOf(Cell cell, int likely) {
    for (int i = 0; i < globals.length; i++) {
      int tried = (likely + i) % globals.length;
      if (CellUtil.matchingFamily(cell, globals[tried])) {
        return tried;
      }
    }
    return -1;
  }

  StreamHead head(List<UUID> clusterIds) {
    if (clusterIds.isEmpty()) {
      if (local == null) {
        local = registry.head(region, origin, clusterIds);
      }
      return local;
    }
    return relayedHead(clusterIds);
  }

  private StreamHead relayedHead(List<UUID> clusterIds) {
    for (int i = 0; i < relayed.size(); i++) {
      if (relayed.get(i).clusterIds.equals(clusterIds)) {
        return relayed.get(i).head;
      }
    }
    StreamHead head = registry.head(region, origin, clusterIds);
    relayed.add(new Relayed(List.copyOf(clusterIds), head));
    return head;
  }

  /**
   * The stream of a region that lives again: it was truncated, or cloned anew under its name, and counts from a lower
   * sequence id. What has arrived of the stream before must never cover what is written now.
   */
  StreamHead beginAnew(List<UUID> clusterIds, long seq, long writeTime) {
    StreamHead head = registry.anotherLife(region, origin, clusterIds, seq, writeTime);
    if (clusterIds.isEmpty()) {
      local = head;
    } else {
      relayed.removeIf(known -> known.clusterIds.equals(clusterIds));
      relayed.add(new Relayed(List.copyOf(clusterIds), head));
    }
    return head;
  }

  private void learn(NavigableMap<byte[], Integer> scopes) {
    globals = globalFamilies(scopes);
    globalIds = new int[globals.length];
    for (int i = 0; i < globals.length; i++) {
      globalIds[i] = FamilyCells.id(globals[i]);
    }
    knownScopes = scopes;
  }

  private static byte[][] globalFamilies(NavigableMap<byte[], Integer> scopes) {
    List<byte[]> found = new ArrayList<>(scopes.size());
    for (Map.Entry<byte[], Integer> scope : scopes.entrySet()) {
      if (scope.getValue() == HConstants.REPLICATION_SCOPE_GLOBAL
          && !Arrays.equals(scope.getKey(), WALEdit.METAFAMILY)) {
        found.add(scope.getKey());
      }
    }
    return found.toArray(new byte[0][]);
  }

  /** The stream of edits that came through these clusters. */
  private static final class Relayed {
    private final List<UUID> clusterIds;
    private final StreamHead head;

    private Relayed(List<UUID> clusterIds, StreamHead head) {
      this.clusterIds = clusterIds;
      this.head = head;
    }
  }
}
