package io.github.statustool.streams;

import io.github.statustool.state.ClusterLists;
import io.github.statustool.state.Ids;
import java.util.ArrayList;
import java.util.Arrays;
import java.util.HashMap;
import java.util.HashSet;
import java.util.List;
import java.util.Map;
import java.util.Set;
import java.util.UUID;
import org.apache.hadoop.hbase.Cell;
import org.apache.hadoop.hbase.TableName;
import org.apache.hadoop.hbase.client.Mutation;
import org.apache.hadoop.hbase.shaded.protobuf.generated.AdminProtos.WALEntry;
import org.apache.hadoop.hbase.shaded.protobuf.generated.WALProtos.Attribute;
import org.apache.hadoop.hbase.shaded.protobuf.generated.WALProtos.WALKey;
import org.apache.hadoop.hbase.util.Bytes;
import org.apache.hadoop.hbase.util.EnvironmentEdgeManager;
import org.apache.hbase.thirdparty.com.google.protobuf.ByteString;

/**
 * The entries that one replication request has applied, collected on its handler thread. Everything kept is copied,
 * because the request's buffers are released when it ends; {@link #clear} drops the rest.
 */
public final class SinkBatch {
  /** Streams by region, origin and via of the entries. */
  private final Map<StreamId, AppliedStreams> streams = new HashMap<>();
  private final Map<String, UnstampedEntries> unstamped = new HashMap<>();
  private final StampCodec codec = new StampCodec();
  private final byte[] stamp = new byte[StampCodec.MAX_LENGTH];
  /** The mutations of the last entry; those of an entry are adjacent. */
  private final List<Mutation> mutations = new ArrayList<>();
  /** True if entries without a stamp are also added to streams, in which nobody knows what a hole means. */
  private final boolean unstampedEntries;
  /** True if entries with a stamp are added so, too. */
  private final boolean allEntries;
  private boolean isOpen;
  private long began;
  private WALEntry lastEntry;
  private boolean lastIsUnstamped;
  private boolean lastIsStamped;
  private long arrivedCells;
  private ByteString lastRegion;
  private long lastOrigin;
  private long lastVia;
  private AppliedStreams lastStreams;

  public SinkBatch(boolean unstampedEntries, boolean allEntries) {
    this.unstampedEntries = unstampedEntries;
    this.allEntries = allEntries;
  }

  /** Begins a request. */
  public void begin() {
    clear();
    isOpen = true;
    began = EnvironmentEdgeManager.currentTime();
  }

  /** Returns when the last request began: none of its entries had been applied then. */
  long began() {
    return began;
  }

  /** Returns true between {@link #begin} and {@link #clear}. */
  public boolean isOpen() {
    return isOpen;
  }

  /** Called for each mutation. An entry with several mutations counts once. */
  public void add(WALEntry entry, Mutation mutation) {
    // By identity: HBase's ReplicationSink calls the hook for an entry's mutations in a row, with the same object.
    if (entry != lastEntry) {
      endEntry();
      begin(entry);
    }
    if (lastIsStamped || lastIsUnstamped) {
      arrivedCells += mutation.size();
      mutations.add(mutation);
    }
  }

  private void begin(WALEntry entry) {
    lastEntry = entry;
    WALKey key = entry.getKey();
    lastIsStamped = readStamp(key);
    if (!lastIsStamped) {
      addUnstamped(key);
      // ClusterMarkingEntryFilter of HBase's source adds its own cluster last. Without any, the sender is not known.
      lastIsUnstamped = unstampedEntries && key.getClusterIdsCount() > 0;
    }
  }

  private void endEntry() {
    if (lastIsUnstamped) {
      addSingly(lastEntry);
    } else if (lastIsStamped) {
      addFamilies(lastEntry.getKey());
      if (allEntries && lastEntry.getKey().getClusterIdsCount() > 0) {
        addSingly(lastEntry);
      }
    }
    lastIsStamped = false;
    lastIsUnstamped = false;
    arrivedCells = 0;
    mutations.clear();
  }

  /**
   * Adds an entry, whatever its stamp, to a stream for each family that has arrived: of the sender's region, whatever
   * server wrote it. It stands for itself alone, as nothing says which entry was before it. One of which the sink took
   * cells for HBase's own markers and dropped them is left out: nothing says of which family they were. One with a list
   * of clusters that is too long counts as unstamped alone.
   */
  private void addSingly(WALEntry entry) {
    if (arrivedCells != entry.getAssociatedCellCount()) {
      return;
    }
    WALKey key = entry.getKey();
    if (ClusterLists.isTooLong(key.getClusterIdsCount())) {
      addUnstamped(key);
      return;
    }
    List<UUID> clusters = clustersOf(key);
    UUID sender = clusters.get(clusters.size() - 1);
    StreamId entries = new StreamId(key.getEncodedRegionName().toStringUtf8(), Ids.origin(sender.toString()), Ids.via(clusters));
    AppliedStreams found = streams.computeIfAbsent(entries, absent -> new AppliedStreams(absent, tableOf(key)));
    Set<Integer> added = new HashSet<>();
    for (Mutation mutation : mutations) {
      for (byte[] family : mutation.getFamilyCellMap().keySet()) {
        int id = FamilyCells.id(family);
        if (added.add(id)) {
          AppliedEntries.Builder stream = found.of(id);
          if (stream == null) {
            stream = found.add(id, Ids.via(entries.via, id), family.clone(), true);
          }
          stream.add(key.getLogSequenceNumber() - 1, StampCodec.UNKNOWN_TIME, key.getLogSequenceNumber(), key.getWriteTime());
        }
      }
    }
  }

  /**
   * Adds the entry to the streams of the families of which all cells have arrived; the others have a hole there. Cells
   * are missing if the peer ships only some families, if a filter removed cells, or if the sink took some for HBase's
   * own markers and dropped them.
   */
  private void addFamilies(WALKey key) {
    FamilyCells written = codec.cells();
    // HBase's own filters only take cells away, so equal totals mean equal counts. A filter of others may also add
    // some, but the tool never calls a run with one complete.
    long[] counts = arrivedCells == written.total() ? null : countArrived();
    for (int i = 0; i < written.size(); i++) {
      if (counts == null || counts[i] == written.count(i)) {
        AppliedStreams found = streams(key);
        AppliedEntries.Builder stream = found.of(written.id(i));
        if (stream == null) {
          stream = found.add(written.id(i), Ids.via(codec.via(), written.id(i)), nameOf(written.id(i)), false);
        }
        stream.add(written.prev(i), written.prevTime(i), key.getLogSequenceNumber(), key.getWriteTime());
      }
    }
  }

  /**
   * Counts the cells that have arrived by the families of the stamp; those that it does not name are of its joint one.
   * If there is none, somebody added cells on the way, so that nothing is known of the entry: no count is right.
   */
  private long[] countArrived() {
    FamilyCells written = codec.cells();
    long[] counts = new long[written.size()];
    int joint = written.indexOf(FamilyCells.UNKNOWN);
    for (Mutation mutation : mutations) {
      for (Map.Entry<byte[], List<Cell>> family : mutation.getFamilyCellMap().entrySet()) {
        int index = written.indexOf(FamilyCells.id(family.getKey()));
        if (index < 0 && joint < 0) {
          Arrays.fill(counts, -1);
          return counts;
        }
        counts[index < 0 ? joint : index] += family.getValue().size();
      }
    }
    return counts;
  }

  /** Returns the name of a family that has arrived; empty for the joint one. */
  private byte[] nameOf(int id) {
    for (Mutation mutation : mutations) {
      for (byte[] family : mutation.getFamilyCellMap().keySet()) {
        if (FamilyCells.id(family) == id) {
          return family.clone();
        }
      }
    }
    return new byte[0];
  }

  private boolean readStamp(WALKey key) {
    for (int i = 0; i < key.getExtendedAttributesCount(); i++) {
      Attribute attribute = key.getExtendedAttributes(i);
      if (StampCodec.ATTRIBUTE.equals(attribute.getKey())) {
        return readStamp(attribute.getValue(), key.getLogSequenceNumber());
      }
    }
    return false;
  }

  private boolean readStamp(ByteString value, long seq) {
    if (value.size() > stamp.length) {
      return false;
    }
    value.copyTo(stamp, 0);
    return codec.decode(stamp, value.size(), seq);
  }

  private AppliedStreams streams(WALKey key) {
    ByteString region = key.getEncodedRegionName();
    if (lastStreams == null || lastOrigin != codec.origin() || lastVia != codec.via() || !region.equals(lastRegion)) {
      StreamId id = new StreamId(region.toStringUtf8(), codec.origin(), codec.via());
      lastStreams = streams.computeIfAbsent(id, absent -> new AppliedStreams(absent, tableOf(key)));
      lastRegion = region;
      lastOrigin = codec.origin();
      lastVia = codec.via();
    }
    return lastStreams;
  }

  private void addUnstamped(WALKey key) {
    String region = key.getEncodedRegionName().toStringUtf8();
    boolean isTooLong = ClusterLists.isTooLong(key.getClusterIdsCount()); // it would be a column that HBase refuses
    byte[] clusters = isTooLong ? UnstampedEntries.UNKNOWN : Ids.sortedBytes(clustersOf(key));
    unstamped
        .computeIfAbsent(region + Bytes.toHex(clusters), absent -> new UnstampedEntries(region, tableOf(key), clusters))
        .add(key.getWriteTime());
  }

  /** Returns the clusters that the entry has passed, the sender last. */
  private static List<UUID> clustersOf(WALKey key) {
    List<UUID> clusters = new ArrayList<>(key.getClusterIdsCount());
    key.getClusterIdsList().forEach(id -> clusters.add(new UUID(id.getMostSigBits(), id.getLeastSigBits())));
    return clusters;
  }

  private static String tableOf(WALKey key) {
    return TableName.valueOf(key.getTableName().toByteArray()).getNameAsString();
  }

  boolean isEmpty() {
    // No further mutation comes that would end the last entry.
    endEntry();
    return streams.isEmpty() && unstamped.isEmpty();
  }

  /** @param now when the entries had been applied */
  List<AppliedEntries> streams(long now) {
    endEntry();
    List<AppliedEntries> applied = new ArrayList<>(streams.size());
    streams.values().forEach(each -> each.build(now, applied));
    return applied;
  }

  List<UnstampedEntries> unstamped() {
    return new ArrayList<>(unstamped.values());
  }

  public void clear() {
    isOpen = false;
    streams.clear();
    unstamped.clear();
    mutations.clear();
    lastIsStamped = false;
    lastIsUnstamped = false;
    arrivedCells = 0;
    lastEntry = null;
    lastRegion = null;
    lastStreams = null;
  }
}
