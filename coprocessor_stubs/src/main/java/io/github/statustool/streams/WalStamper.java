package io.github.statustool.streams;

import io.github.statustool.content.MarkerForwarder;
import io.github.statustool.content.MetaLineage;
import io.github.statustool.content.TableWrites;
import io.github.statustool.state.Health;
import io.github.statustool.state.Settings;
import java.io.IOException;
import java.util.IdentityHashMap;
import java.util.NavigableMap;
import java.util.concurrent.atomic.AtomicLong;
import org.apache.hadoop.hbase.client.RegionInfo;
import org.apache.hadoop.hbase.wal.WALEdit;
import org.apache.hadoop.hbase.wal.WALKeyImpl;

/**
 * Stamps entries before they are appended, and advances the heads of their streams afterwards. One per WAL; the WAL's
 * single consumer thread calls {@code before} and {@code after} of an entry back to back.
 */
public final class WalStamper {
  /** Far more regions than a server has; bounds memory in case markers of region closes are missed. */
  private static final int MAX_REGIONS = 20_000;

  private static final long JITTER_MS = 2_000;

  private final long origin;
  private final Settings settings;
  private final StreamHeads heads;
  private final MetaLineage lineage;
  private final MarkerForwarder markers;
  private final Health health;
  private final StampCodec codec = new StampCodec();
  private final FamilyCells cells = new FamilyCells();
  // By identity, which compares no names: HRegion passes its own RegionInfo with each entry. A region that is opened
  // anew has another object, and finds the same heads in the registry.
  private final IdentityHashMap<RegionInfo, RegionStreams> regions = new IdentityHashMap<>();
  private long latestTime;
  private WALKeyImpl stampedKey;
  private RegionStreams stampedStreams;
  private FamilyHeads stampedHeads;
  /**
   * Number of stamped entries appended, including those appended again after a failed sync. Written by the WAL thread
   * only.
   */
  private final AtomicLong appended = new AtomicLong();
  /** Scopes of the entry that is being appended; HBase removes them from a marker before {@code after}. */
  private NavigableMap<byte[], Integer> scopes;

  public WalStamper(long origin, Settings settings, ObservedState observed, Health health) {
    this.origin = origin;
    this.settings = settings;
    this.health = health;
    this.heads = observed.heads;
    this.lineage = new MetaLineage(observed.facts);
    this.markers =
        new MarkerForwarder(origin, settings, observed.content, observed.tableWrites, observed.facts);
  }

  public long appended() {
    return appended.getAcquire();
  }

  public void before(RegionInfo region, WALKeyImpl key, WALEdit edit) throws IOException {
    stampedKey = null;
    scopes = key.getReplicationScopes();
    if (scopes == null || scopes.isEmpty()) {
      noteWrite(region, key, edit);
      return;
    }
    RegionStreams streams = streams(region);
    if (streams.isOurs) { // whoever alters every table gives the state table a scope, too
      key.clearReplicationScope();
      scopes = null;
    } else if (streams.isReplicable(edit, scopes, cells)) {
      stamp(key, streams);
      streams.writes.add(key.getWriteTime(), edit, key.getClusterIds(), true);
    } else if (!edit.isMetaEdit()) {
      noteWrite(region, key, edit);
    }
  }

  /** Records a write that this cluster does not replicate. */
  private void noteWrite(RegionInfo region, WALKeyImpl key, WALEdit edit) {
    TableWrites writes = writes(region, edit);
    if (writes != null) {
      writes.add(key.getWriteTime(), edit, key.getClusterIds(), false);
    }
  }

  /** Returns the writes to the table of an entry with cells; null for any other entry, and where none are kept. */
  private TableWrites writes(RegionInfo region, WALEdit edit) {
    return edit.isMetaEdit() || edit.isReplay() ? null : streams(region).writes;
  }

  public void after(RegionInfo region, WALKeyImpl key, WALEdit edit) throws IOException {
    if (key == stampedKey) {
      if (key.getSequenceId() > stampedHeads.seq()) { // otherwise HBase appends it again after a failed sync
        noteTime(key.getWriteTime());
      }
      stampedHeads.advance(cells, stampedStreams, key.getSequenceId(), key.getWriteTime());
      // After the head: a WAL's end is clean if all that is counted is durable, and then the heads have to name it all.
      appended.setRelease(appended.getPlain() + 1);
      markers.noteAppended(region, key);
    } else if (region.isMetaRegion()) {
      lineage.read(edit, key.getWriteTime());
    } else if (edit.isMetaEdit()) {
      markers.note(region, key, edit, scopes);
      if (edit.isRegionCloseMarker()) {
        regions.remove(region);
      }
    } else if (writes(region, edit) != null) {
      markers.noteAppended(region, key);
    }
  }

  /** Detects a clock that was set back by the write times of new entries. */
  private void noteTime(long writeTime) {
    if (writeTime >= latestTime) {
      latestTime = writeTime;
    // Handlers take the write time before they append, so entries are slightly out of order.
    } else if (writeTime < latestTime - JITTER_MS) {
      // latestTime stays: until the clock has passed it again, each entry may lower the time to which it was set back.
      health.clockWasSetBack(latestTime, writeTime);
    }
  }

  private void stamp(WALKeyImpl key, RegionStreams streams) {
    long seq = key.getSequenceId();
    stampedHeads = streams.heads(key.getClusterIds());
    stampedStreams = streams;
    stampedKey = key; // last: an entry whose streams cannot be had stays without a stamp
    byte[] present = key.getExtendedAttribute(StampCodec.ATTRIBUTE);
    if (present != null && codec.decode(present, present.length, seq) && codec.origin() == origin) {
      return; // appended again after a failed sync: it is in the chain already
    }
    // Sequence ids rise as long as a region lives: it was truncated, or cloned anew under its name.
    if (seq <= stampedHeads.seq()) {
      stampedHeads = streams.beginAnew(key.getClusterIds(), seq, key.getWriteTime());
    }
    stampedHeads.follow(cells, streams);
    key.addExtendedAttribute(StampCodec.ATTRIBUTE, codec.encode(origin, stampedHeads.via, cells, seq));
  }

  private RegionStreams streams(RegionInfo region) {
    RegionStreams streams = regions.get(region);
    if (streams == null) {
      if (regions.size() >= MAX_REGIONS) {
        // Only a cache: the registry keeps the heads, so every chain goes on.
        regions.clear();
      }
      boolean isOurs = settings.isOurs(region.getTable());
      streams = new RegionStreams(region, markers.writes(region), isOurs, origin, heads);
      regions.put(region, streams);
    }
    return streams;
  }
}
