package io.github.statustool.content;

import io.github.statustool.state.Change;
import io.github.statustool.state.Health;
import io.github.statustool.state.StateTable;
import java.io.IOException;
import java.util.ArrayList;
import java.util.Collection;
import java.util.HashMap;
import java.util.List;
import java.util.Map;
import java.util.Queue;
import java.util.TreeMap;
import java.util.concurrent.ConcurrentHashMap;
import java.util.concurrent.ConcurrentLinkedQueue;
import java.util.concurrent.atomic.AtomicLong;
import java.util.function.Function;
import java.util.function.LongSupplier;
import java.util.function.Predicate;
import java.util.stream.Collectors;
import java.util.stream.Stream;
import org.apache.hadoop.hbase.Cell;
import org.apache.hadoop.hbase.shaded.protobuf.generated.WALProtos.BulkLoadDescriptor;
import org.apache.hadoop.hbase.shaded.protobuf.generated.WALProtos.CompactionDescriptor;
import org.apache.hadoop.hbase.shaded.protobuf.generated.WALProtos.FlushDescriptor;
import org.apache.hadoop.hbase.shaded.protobuf.generated.WALProtos.RegionEventDescriptor;
import org.apache.hadoop.hbase.shaded.protobuf.generated.WALProtos.StoreDescriptor;
import org.apache.hadoop.hbase.wal.WALEdit;

/**
 * Tracks the store files of this server's regions by the markers in its WALs. A region has to open with the store files
 * that it was closed with, on whichever server. If it does not, store files were added or removed without the WAL: by
 * restoring a snapshot, truncating a region, or placing files by hand.
 *
 * <p>WAL threads only queue markers. The recorder thread does everything else.
 */
public final class ContentLedger {
  private final Health health;
  private final LongSupplier clock;
  private final TableEvents events;
  private final Queue<Marker> arrived = new ConcurrentLinkedQueue<>();
  /** By region, the sequence id of the newest entry with cells in the WAL. */
  private final Map<String, AtomicLong> appended = new ConcurrentHashMap<>();
  private final Map<String, OpenTenure> open = new HashMap<>();
  /** Tenures that have ended. They are kept until the state table cannot lose them any more. */
  private final List<OpenTenure> over = new ArrayList<>();
  private volatile Function<String, Map<String, Map<String, Boolean>>> files = region -> Map.of();
  private volatile boolean isOfSlave;
  private long lastTimestamp;
  private boolean isLookedAt;

  /** @param events is told of regions that are born, and of loads that arrive */
  public ContentLedger(Health health, LongSupplier clock, TableEvents events) {
    this.health = health;
    this.clock = clock;
    this.events = events;
  }

  /** @param by returns {@link FileOrigins#of} a region by its encoded name, nothing if it is not open; by any thread */
  public void findFiles(Function<String, Map<String, Map<String, Boolean>>> by) {
    files = by;
  }

  /**
   * Queues a marker. Called by WAL threads.
   *
   * <p>A region that opens after a crash may be compacted at once, and the recorder may come later than HBase takes to
   * archive the inputs: the state table is away then, too. HBase writes the marker before it takes them away.
   */
  void note(Marker marker) {
    try {
      for (Cell cell : marker.cells) {
        if (WALEdit.getCompaction(cell) != null) {
          marker.files = files.apply(marker.region.getEncodedName());
        }
      }
    } catch (IOException | RuntimeException e) {
      marker.files = Map.of(); // the files of the opening stay in doubt
    } finally {
      arrived.add(marker);
    }
  }

  /** Requires of each region from now on that it opens above what had been appended to it: a slave must keep it all. */
  public void followWals() {
    isOfSlave = true;
  }

  /** Notes an entry that has cells, once it is appended. Called by WAL threads; a region's entries are in one WAL. */
  public void noteAppended(String region, long seq) {
    if (isOfSlave) {
      // A look first: computeIfAbsent may lock.
      AtomicLong newest = appended.get(region);
      (newest == null ? appended.computeIfAbsent(region, absent -> new AtomicLong()) : newest).setRelease(seq);
    }
  }

  /** Returns the sequence id of the newest entry of each region; nothing unless {@link #followWals} was called. */
  public Map<String, Long> appended() {
    Map<String, Long> newest = new HashMap<>();
    appended.forEach((region, seq) -> newest.put(region, seq.getAcquire()));
    return newest;
  }

  /** Records that these entries, which {@link #appended} has returned, are durable; {@link #marked} has them then. */
  public void noteDurable(Map<String, Long> entries) {
    readMarkers();
    entries.forEach((region, seq) -> {
      OpenTenure tenure = open.get(region);
      if (tenure != null) {
        tenure.holds(seq);
      }
    });
  }

  /** Tenures of regions that are open. */
  Collection<OpenTenure> open() {
    readMarkers();
    return open.values();
  }

  /**
   * Records what the tables of regions keep that opened since the last look, and which of their store files were bulk
   * loaded. Called in each round on a server whose regions can be listed.
   */
  public void look(Collection<TableEvents.OpenRegion> regions) {
    isLookedAt = true;
    for (TableEvents.OpenRegion region : regions) {
      OpenTenure tenure = open.get(region.name);
      // A region that was closed since the last look is listed as it was; the one that is open now may keep more.
      if (tenure != null && region.openSeq == tenure.openSeq) {
        look(tenure, region);
      }
    }
  }

  private static void look(OpenTenure tenure, TableEvents.OpenRegion region) {
    if (tenure.tenure.kept == null) {
      tenure.keeps(Retention.of(region.descriptor));
    }
    if (tenure.hasUnseenFiles()) {
      tenure.sees(region.files.get());
    }
  }

  /** Returns true if a tenure can be joined with an earlier one: it is known what its table keeps, or never will be. */
  boolean isDescribed(OpenTenure tenure) {
    return !isLookedAt || tenure.tenure.kept != null;
  }

  /** Returns the tenures that are not in the state table as they are now, without those that {@link #marked} returns. */
  public List<Change> dirty() {
    return changes(tenure -> !tenure.isStored() && !tenure.isMarked());
  }

  /** Returns region openings; they do not wait for the next flush. */
  public List<Change> urgent() {
    return changes(OpenTenure::isUrgent);
  }

  /**
   * Returns the tenures of which the state table lacks a marker after the opening, by the region's encoded name. They
   * are written after the heads of the region: a head that is older than a marker in the table would look complete.
   */
  public Map<String, List<Change>> marked() {
    return tenures(OpenTenure::isMarked).collect(Collectors.groupingBy(tenure -> tenure.region.getEncodedName(),
        Collectors.mapping(tenure -> tenure.change(this::timestamp), Collectors.toList())));
  }

  private List<Change> changes(Predicate<OpenTenure> which) {
    return tenures(which).map(tenure -> tenure.change(this::timestamp)).collect(Collectors.toList());
  }

  private Stream<OpenTenure> tenures(Predicate<OpenTenure> which) {
    readMarkers();
    long safe = clock.getAsLong() - StateTable.LOSABLE_MS;
    over.removeIf(tenure -> tenure.isStored() && tenure.endedAt() < safe);
    return Stream.of(over, open.values()).flatMap(Collection::stream).filter(which);
  }

  /** Marks all tenures as not written. */
  public void forgetFlushes() {
    open.values().forEach(OpenTenure::forgetStored);
    over.forEach(OpenTenure::forgetStored);
  }

  /** Returns strictly increasing timestamps, whatever the clock does, so that the later version of a cell wins. */
  long timestamp() {
    lastTimestamp = Math.max(clock.getAsLong(), lastTimestamp + 1);
    return lastTimestamp;
  }

  /**
   * Applies the queued markers. Called in each round, also while the state table is unavailable: WAL threads go on
   * queueing markers then, whose cells would fill the memory.
   */
  public void readMarkers() {
    for (Marker marker = arrived.poll(); marker != null; marker = arrived.poll()) {
      for (Cell cell : marker.cells) {
        try {
          fold(marker, cell);
        } catch (IOException | RuntimeException e) {
          health.error("reading a marker of region " + marker.region.getEncodedName(), e);
        }
      }
    }
  }

  private void fold(Marker marker, Cell cell) throws IOException {
    RegionEventDescriptor event = WALEdit.getRegionEventDescriptor(cell);
    noteArrival(marker, WALEdit.getBulkLoadDescriptor(cell));
    OpenTenure tenure = open.get(marker.region.getEncodedName());
    if (event != null && event.getEventType() == RegionEventDescriptor.EventType.REGION_OPEN) {
      opened(marker, event, tenure);
    // HBase appends a marker again after a failed sync, with the same sequence id.
    } else if (tenure != null && marker.seq > tenure.tenure.seq) {
      if (tenure.hasUnseenFiles() && !marker.files.isEmpty()) {
        tenure.sees(marker.files);
      }
      if (event != null) {
        closed(marker, tenure);
      } else if (fold(cell, tenure)) {
        tenure.changed(marker, false);
      }
    }
  }

  /** A bulk load that has passed another cluster before this one was replicated: the table has held something since. */
  private void noteArrival(Marker marker, BulkLoadDescriptor load) {
    if (load != null && load.getClusterIdsCount() > 1) {
      events.arrived(marker.region.getTable().getNameAsString(), marker.writeTime);
    }
  }

  /** Begins a tenure. */
  private void opened(Marker marker, RegionEventDescriptor event, OpenTenure before) {
    long openSeq = event.getLogSequenceNumber();
    // The ledger has read this marker: HBase appends an entry again after a failed sync.
    if (before != null && before.tenure.seq >= marker.seq && openSeq <= before.tenure.seq) {
      return;
    }
    if (before != null) {
      end(before);
    }
    if (openSeq <= TableEvents.NEWBORN) {
      events.born(marker.region.getTable().getNameAsString(), marker.region.getRegionId());
    }
    Map<String, Collection<String>> stores = new TreeMap<>();
    for (StoreDescriptor store : event.getStoresList()) {
      stores.put(store.getFamilyName().toStringUtf8(), store.getStoreFileList());
    }
    open.put(marker.region.getEncodedName(), new OpenTenure(marker, openSeq, stores, isLookedAt));
  }

  private void closed(Marker marker, OpenTenure tenure) {
    tenure.changed(marker, true);
    open.remove(marker.region.getEncodedName());
    // The region may have opened here again since, and have newer entries.
    appended.computeIfPresent(marker.region.getEncodedName(), (key, seq) -> seq.getAcquire() > marker.seq ? seq : null);
    end(tenure);
  }

  private void end(OpenTenure tenure) {
    tenure.end(clock.getAsLong());
    over.add(tenure);
  }

  /** Applies a marker's cell; returns whether the set of store files changed. */
  private static boolean fold(Cell cell, OpenTenure tenure) throws IOException {
    FlushDescriptor flush = WALEdit.getFlushDescriptor(cell);
    if (flush != null) {
      return flush.getAction() == FlushDescriptor.FlushAction.COMMIT_FLUSH && flushed(flush, tenure);
    }
    CompactionDescriptor compaction = WALEdit.getCompaction(cell);
    if (compaction != null) {
      StoreFiles files = tenure.files(compaction.getFamilyName().toStringUtf8());
      files.remove(compaction.getCompactionInputList());
      files.add(compaction.getCompactionOutputList());
      return true;
    }
    BulkLoadDescriptor load = WALEdit.getBulkLoadDescriptor(cell);
    if (load != null) {
      for (StoreDescriptor store : load.getStoresList()) {
        tenure.files(store.getFamilyName().toStringUtf8()).addLoaded(store.getStoreFileList());
      }
    }
    return load != null;
  }

  private static boolean flushed(FlushDescriptor flush, OpenTenure tenure) {
    for (FlushDescriptor.StoreFlushDescriptor store : flush.getStoreFlushesList()) {
      tenure.files(store.getFamilyName().toStringUtf8()).add(store.getFlushOutputList());
    }
    tenure.tenure.durable = Math.max(tenure.tenure.durable, flush.getFlushSequenceNumber());
    return true;
  }
}
