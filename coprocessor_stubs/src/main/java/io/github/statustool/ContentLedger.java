package io.github.statustool;

import java.io.IOException;
import java.util.ArrayList;
import java.util.Collection;
import java.util.HashMap;
import java.util.List;
import java.util.Map;
import java.util.Queue;
import java.util.TreeMap;
import java.util.concurrent.ConcurrentLinkedQueue;
import java.util.function.LongSupplier;
import java.util.function.Predicate;
import org.apache.hadoop.hbase.Cell;
import org.apache.hadoop.hbase.shaded.protobuf.generated.WALProtos.BulkLoadDescriptor;
import org.apache.hadoop.hbase.shaded.protobuf.generated.WALProtos.CompactionDescriptor;
import org.apache.hadoop.hbase.shaded.protobuf.generated.WALProtos.FlushDescriptor;
import org.apache.hadoop.hbase.shaded.protobuf.generated.WALProtos.RegionEventDescriptor;
import org.apache.hadoop.hbase.shaded.protobuf.generated.WALProtos.StoreDescriptor;
import org.apache.hadoop.hbase.wal.WALEdit;
import org.apache.hbase.thirdparty.com.google.protobuf.ByteString;

/**
 * The store files of this server's regions, by the markers in its WALs: what a region opens with has to be what it was
 * closed with, on whatever server. Anything else came in or went beside the WAL: a snapshot that was restored, a region
 * that was truncated, files that were placed by hand.
 *
 * <p>The WAL's thread only queues a marker. All else is for the recorder's thread.
 */
final class ContentLedger {
  private final Health health;
  private final LongSupplier clock;
  private final Queue<Marker> arrived = new ConcurrentLinkedQueue<>();
  private final Map<String, OpenTenure> open = new HashMap<>();
  /** Tenures that are over and not written yet. */
  private final List<OpenTenure> over = new ArrayList<>();
  private long lastTimestamp;

  ContentLedger(Health health, LongSupplier clock) {
    this.health = health;
    this.clock = clock;
  }

  /** Called by WAL threads. */
  void note(Marker marker) {
    arrived.add(marker);
  }

  /** Those that are open now. */
  Collection<OpenTenure> open() {
    fold();
    return open.values();
  }

  List<Change> dirty() {
    return changes(tenure -> !tenure.isStored());
  }

  /** Openings and closes, which do not wait for the next flush. */
  List<Change> urgent() {
    return changes(OpenTenure::isUrgent);
  }

  /** Of what is over and not written yet, and of the open ones that are asked for. */
  private List<Change> changes(Predicate<OpenTenure> ofOpen) {
    fold();
    List<Change> changes = new ArrayList<>();
    over.removeIf(OpenTenure::isStored);
    over.forEach(tenure -> changes.add(tenure.change(this::timestamp)));
    for (OpenTenure tenure : open.values()) {
      if (ofOpen.test(tenure)) {
        changes.add(tenure.change(this::timestamp));
      }
    }
    return changes;
  }

  /** What is over need not be written again: whoever has the region now says what it holds. */
  void forgetFlushes() {
    open.values().forEach(OpenTenure::forgetStored);
  }

  /** Grows, so that of two versions of a cell the later one wins, whatever the clock does. */
  long timestamp() {
    lastTimestamp = Math.max(clock.getAsLong(), lastTimestamp + 1);
    return lastTimestamp;
  }

  private void fold() {
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
    OpenTenure tenure = open.get(marker.region.getEncodedName());
    if (event != null && event.getEventType() == RegionEventDescriptor.EventType.REGION_OPEN) {
      opened(marker, event, tenure);
    } else if (tenure != null && marker.seq > tenure.tenure.seq) {
      if (event != null) {
        closed(marker, tenure);
      } else if (fold(cell, tenure)) {
        tenure.changed(marker, false);
      }
    }
  }

  /** An entry that is appended again after a failed sync comes twice. */
  private void opened(Marker marker, RegionEventDescriptor event, OpenTenure before) {
    long openSeq = event.getLogSequenceNumber();
    if (before != null && before.tenure.seq >= marker.seq && openSeq <= before.tenure.seq) {
      return;
    }
    if (before != null) {
      over.add(before);
    }
    Map<String, Collection<String>> stores = new TreeMap<>();
    for (StoreDescriptor store : event.getStoresList()) {
      stores.put(text(store.getFamilyName()), store.getStoreFileList());
    }
    open.put(marker.region.getEncodedName(), new OpenTenure(marker, openSeq, stores));
  }

  private void closed(Marker marker, OpenTenure tenure) {
    tenure.changed(marker, true);
    open.remove(marker.region.getEncodedName());
    over.add(tenure);
  }

  /** Whether the cell changed the set of files. */
  private static boolean fold(Cell cell, OpenTenure tenure) throws IOException {
    FlushDescriptor flush = WALEdit.getFlushDescriptor(cell);
    if (flush != null) {
      return flush.getAction() == FlushDescriptor.FlushAction.COMMIT_FLUSH && flushed(flush, tenure);
    }
    CompactionDescriptor compaction = WALEdit.getCompaction(cell);
    if (compaction != null) {
      StoreFiles files = tenure.files(text(compaction.getFamilyName()));
      files.remove(compaction.getCompactionInputList());
      files.add(compaction.getCompactionOutputList());
      return true;
    }
    BulkLoadDescriptor load = WALEdit.getBulkLoadDescriptor(cell);
    if (load != null) {
      for (StoreDescriptor store : load.getStoresList()) {
        tenure.files(text(store.getFamilyName())).add(store.getStoreFileList());
      }
    }
    return load != null;
  }

  private static boolean flushed(FlushDescriptor flush, OpenTenure tenure) {
    for (FlushDescriptor.StoreFlushDescriptor store : flush.getStoreFlushesList()) {
      tenure.files(text(store.getFamilyName())).add(store.getFlushOutputList());
    }
    tenure.tenure.flushed = Math.max(tenure.tenure.flushed, flush.getFlushSequenceNumber());
    return true;
  }

  private static String text(ByteString family) {
    return family.toStringUtf8();
  }
}
