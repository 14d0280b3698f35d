package io.github.statustool.streams;

import io.github.statustool.content.TableWrites;
import io.github.statustool.state.ClusterLists;
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
 * One open region as its WAL thread sees it: its replicated families and its streams. Caches what the region's next
 * entry needs. Used by the WAL thread only.
 */
final class RegionStreams implements FamilyHeads.Names {
  private static final byte[] NO_NAME = new byte[0];

  private final RegionInfo region;
  private final long origin;
  private final StreamHeads registry;
  /** The writes to its table; null for a region of HBase or of the trackers, which has no streams. */
  final TableWrites writes;
  /** True if its table is one that the trackers keep for their own cluster, and no peer may ship. */
  final boolean isOurs;
  private final List<Relayed> relayed = new ArrayList<>(0);
  private FamilyHeads local;
  private NavigableMap<byte[], Integer> knownScopes;
  private byte[][] globals = new byte[0][];
  private int[] globalIds = new int[0];

  RegionStreams(RegionInfo region, TableWrites writes, boolean isOurs, long origin, StreamHeads registry) {
    this.writes = writes;
    this.isOurs = isOurs;
    this.region = region;
    this.origin = origin;
    this.registry = registry;
  }

  /**
   * Returns true if replication would ship a part of this edit: at least one of its families has the global scope. A
   * replayed edit does not count.
   *
   * @param into receives the number of cells of each such family
   */
  boolean isReplicable(WALEdit edit, NavigableMap<byte[], Integer> scopes, FamilyCells into) {
    // HBase removes the scopes of a replayed edit right after this hook, but keeps them where bulk loads are replicated
    // (ReplicationSourceWALActionListener.scopeWALEdits). No WAL gets one in HBase 2.5 and 2.6: only the replay to
    // secondary replicas is left, which skips the WAL.
    if (writes == null || edit.isReplay()) {
      return false;
    }
    // By identity: HRegion fills one map of scopes when it opens, and passes it with each of its entries.
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

  /** Counts the cells of an edit with one family, as most have: its cells need not be visited. */
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

  /** Cells of the same family are adjacent, so the family of the previous cell is tried first. */
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

  FamilyHeads heads(List<UUID> clusterIds) {
    if (clusterIds.isEmpty()) {
      if (local == null) {
        local = registry.heads(region, origin, clusterIds);
      }
      return local;
    }
    return relayedHeads(clusterIds);
  }

  private FamilyHeads relayedHeads(List<UUID> clusterIds) {
    for (int i = 0; i < relayed.size(); i++) {
      if (relayed.get(i).clusterIds.equals(clusterIds)) {
        return relayed.get(i).heads;
      }
    }
    ClusterLists.require(!ClusterLists.isTooLong(clusterIds.size()));
    ClusterLists.requireRoom(1 + relayed.size()); // first: it costs no hash
    FamilyHeads heads = registry.heads(region, origin, clusterIds);
    relayed.add(new Relayed(List.copyOf(clusterIds), heads));
    return heads;
  }

  /**
   * Starts other streams for a region whose sequence ids start over, because it was truncated, or cloned again under
   * the same name. What arrived of the old streams must never cover entries of the new ones.
   */
  FamilyHeads beginAnew(List<UUID> clusterIds, long seq, long writeTime) {
    FamilyHeads heads = registry.anotherLife(region, origin, clusterIds, seq, writeTime);
    if (clusterIds.isEmpty()) {
      local = heads;
    } else {
      relayed.removeIf(known -> known.clusterIds.equals(clusterIds));
      relayed.add(new Relayed(List.copyOf(clusterIds), heads));
    }
    return heads;
  }

  /** Returns the name of a family whose scope is global, by its id. Empty where the id stands for several. */
  @Override
  public byte[] nameOf(int family) {
    byte[] name = NO_NAME;
    for (int i = 0; i < globals.length; i++) {
      if (globalIds[i] == family) {
        // A peer that ships one of these families does not say that it ships them all.
        if (name != NO_NAME) {
          return NO_NAME;
        }
        name = globals[i];
      }
    }
    return name;
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

  /** The streams of edits that passed these clusters. */
  private static final class Relayed {
    private final List<UUID> clusterIds;
    private final FamilyHeads heads;

    private Relayed(List<UUID> clusterIds, FamilyHeads heads) {
      this.clusterIds = clusterIds;
      this.heads = heads;
    }
  }
}
