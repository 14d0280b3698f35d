package io.github.statustool;

import java.io.IOException;
import java.util.IdentityHashMap;
import java.util.NavigableMap;
import java.util.concurrent.atomic.AtomicLong;
import org.apache.hadoop.hbase.Cell;
import org.apache.hadoop.hbase.HConstants;
import org.apache.hadoop.hbase.TableName;
import org.apache.hadoop.hbase.client.RegionInfo;
import org.apache.hadoop.hbase.shaded.protobuf.generated.WALProtos.BulkLoadDescriptor;
import org.apache.hadoop.hbase.shaded.protobuf.generated.WALProtos.StoreDescriptor;
import org.apache.hadoop.hbase.wal.WALEdit;
import org.apache.hadoop.hbase.wal.WALKeyImpl;

/**
 * Stamps entries before they are appended and advances their streams' heads afterwards. One for each WAL; both calls
 * come from that WAL's one consumer thread, {@code before} and {@code after} of an entry back to back.
 */
final class WalStamper {
  /** Far more regions than a server has; a bound in case region close markers are not seen. */
  private static final int MAX_REGIONS = 20_000;

  private static final long JITTER_MS = 2_000;

  private final long origin;
  private final TableName stateTable;
  private final StreamHeads heads;
  private final RegionFacts facts;
  private final TableWrites.Registry tableWrites;
  private final MetaLineage lineage;
  private final MarkerForwarder markers;
  private final Health health;
  private final StampCodec codec = new StampCodec();
  private final FamilyCells cells = new FamilyCells();
  private final IdentityHashMap<RegionInfo, RegionStreams> regions = new IdentityHashMap<>();
  private long latestTime;
  private RegionInfo lastRegion;
  private RegionStreams lastStreams;
  private WALKeyImpl stampedKey;
  private StreamHead stampedHead;
  /** Stamped entries that have been appended, each time anew after a failed sync. Written by the WAL's thread alone. */
  private final AtomicLong appended = new AtomicLong();
  /** Of the entry that is being appended; HBase takes them off a marker before {@code after}. */
  private NavigableMap<byte[], Integer> scopes;

  WalStamper(long origin, TableName stateTable, ObservedState observed, Health health) {
    this.origin = origin;
    this.health = health;
    this.stateTable = stateTable;
    this.heads = observed.heads;
    this.facts = observed.facts;
    this.tableWrites = observed.tableWrites;
    this.lineage = new MetaLineage(facts);
    this.markers = new MarkerForwarder(origin, stateTable, observed.content);
  }

  long appended() {
    return appended.getAcquire();
  }

  void before(RegionInfo region, WALKeyImpl key, WALEdit edit) throws IOException {
    stampedKey = null;
    scopes = key.getReplicationScopes();
    if (scopes == null || scopes.isEmpty()) {
      noteWrite(region, key, edit);
      return;
    }
    RegionStreams streams = streams(region);
    if (streams.isReplicable(edit, scopes, cells)) {
      stamp(key, streams);
      streams.writes.add(key.getWriteTime(), edit, key.getClusterIds().isEmpty(), true);
    } else if (!edit.isMetaEdit()) {
      noteWrite(region, key, edit);
    } else if (!streams.isExempt()) {
      noteBulkLoad(region, key, edit, scopes);
    }
  }

  /**
   * Of an edit that is not replicated from here. What replication brings names the clusters that it came through;
   * Import names this one, and passes for that.
   */
  private void noteWrite(RegionInfo region, WALKeyImpl key, WALEdit edit) {
    if (key.getClusterIds().isEmpty() && !edit.isMetaEdit() && !edit.isReplay()) {
      TableWrites writes = streams(region).writes;
      if (writes != null) {
        writes.add(key.getWriteTime(), edit, true, false);
      }
    }
  }

  void after(RegionInfo region, WALKeyImpl key, WALEdit edit) throws IOException {
    if (key == stampedKey) {
      if (key.getSequenceId() > stampedHead.seq()) { // else it is appended again after a failed sync
        noteTime(key.getWriteTime());
      }
      stampedHead.advance(key.getSequenceId(), key.getWriteTime());
      appended.setRelease(appended.getPlain() + 1);
    } else if (region.isMetaRegion()) {
      lineage.read(edit, key.getWriteTime());
    } else if (edit.isMetaEdit()) {
      markers.note(region, key, edit, scopes);
      if (edit.isRegionCloseMarker()) {
        forget(region);
      }
    }
  }

  /** A handler gets its write time before it appends, so they come out of order by what handlers wait for each other. */
  private void noteTime(long writeTime) {
    if (writeTime >= latestTime) {
      latestTime = writeTime;
    } else if (writeTime < latestTime - JITTER_MS) {
      health.clockWasSetBack(latestTime);
    }
  }

  private void stamp(WALKeyImpl key, RegionStreams streams) {
    long seq = key.getSequenceId();
    StreamHead head = streams.head(key.getClusterIds());
    stampedKey = key;
    stampedHead = head;
    byte[] present = key.getExtendedAttribute(StampCodec.ATTRIBUTE);
    if (present != null && codec.decode(present, present.length, seq) && codec.origin() == origin) {
      return; // appended again after a failed sync: the chain was made when it came first
    }
    if (seq <= head.seq()) {
      head = streams.beginAnew(key.getClusterIds(), seq, key.getWriteTime());
      stampedHead = head;
    }
    key.addExtendedAttribute(StampCodec.ATTRIBUTE,
        codec.encode(origin, head.seq(), head.writeTime(), head.id.via, cells, seq));
  }

  private boolean isExempt(TableName table) {
    return table.isSystemTable() || table.equals(stateTable);
  }

  private RegionStreams streams(RegionInfo region) {
    if (region == lastRegion) {
      return lastStreams;
    }
    RegionStreams streams = regions.get(region);
    if (streams == null) {
      if (regions.size() >= MAX_REGIONS) {
        regions.clear();
      }
      streams = new RegionStreams(region, isExempt(region.getTable()), origin, heads, tableWrites);
      regions.put(region, streams);
    }
    lastRegion = region;
    lastStreams = streams;
    return streams;
  }

  private void forget(RegionInfo region) {
    regions.remove(region);
    lastRegion = null;
    lastStreams = null;
  }

  private void noteBulkLoad(RegionInfo region, WALKeyImpl key, WALEdit edit, NavigableMap<byte[], Integer> scopes)
      throws IOException {
    for (Cell cell : edit.getCells()) {
      BulkLoadDescriptor load = WALEdit.getBulkLoadDescriptor(cell);
      if (load != null && isReplicated(load, scopes)) {
        facts.bulkLoad(region.getEncodedName(), region.getTable().getNameAsString(), key.getWriteTime(),
            load.getReplicate());
      }
    }
  }

  private static boolean isReplicated(BulkLoadDescriptor load, NavigableMap<byte[], Integer> scopes) {
    for (StoreDescriptor store : load.getStoresList()) {
      Integer scope = scopes.get(store.getFamilyName().toByteArray());
      if (scope != null && scope == HConstants.REPLICATION_SCOPE_GLOBAL) {
        return true;
      }
    }
    return false;
  }
}
