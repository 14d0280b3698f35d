package io.github.statustool.recorder;

import io.github.statustool.content.ContentLedger;
import io.github.statustool.content.RegionFacts;
import io.github.statustool.content.TableEvents;
import io.github.statustool.content.TableWrites;
import io.github.statustool.state.Bits;
import io.github.statustool.state.Change;
import io.github.statustool.state.Health;
import io.github.statustool.state.StateRow;
import io.github.statustool.state.StateTable.FactRow;
import io.github.statustool.state.StateTable.HeadRow;
import io.github.statustool.streams.AppliedSegments;
import io.github.statustool.streams.StreamHead;
import io.github.statustool.streams.StreamHeads;
import java.util.ArrayList;
import java.util.List;
import java.util.function.LongSupplier;

/**
 * Everything that this JVM's trackers have observed and keep until it is in the state table: heads, region facts,
 * content ledger, table events and writes, applied segments.
 */
public final class ObservedState {
  public final StreamHeads heads = new StreamHeads();
  public final RegionFacts facts = new RegionFacts();
  public final TableWrites.Registry tableWrites = new TableWrites.Registry();
  public final ContentLedger content;
  public final TableEvents tableEvents = new TableEvents();
  public final AppliedSegments applied = new AppliedSegments(tableEvents);

  public ObservedState(Health health, LongSupplier clock) {
    content = new ContentLedger(health, clock);
  }

  /** Heads that the state table does not have yet. */
  public List<Change> headChanges() {
    List<Change> changes = new ArrayList<>();
    for (StreamHead head : heads.all()) {
      collect(head, changes);
    }
    return changes;
  }

  /**
   * All other changes that the state table does not have yet. Unlike heads, they may be written before the WALs are
   * synced: they were true when they were observed.
   */
  public List<Change> otherChanges(long now) {
    List<Change> changes = tableEvents.dirty();
    for (RegionFacts.Fact fact : facts.dirty()) {
      changes.add(new Change(row(fact), fact::flushed));
    }
    changes.addAll(tableWrites.dirty());
    changes.addAll(content.dirty());
    applied.collect(changes, now);
    return changes;
  }

  /**
   * Changes that would be lost in a crash and that nothing else could reveal afterwards, not even the replication
   * queues. They are written without waiting for the next flush.
   */
  public List<Change> urgentChanges() {
    List<Change> changes = tableEvents.dirty();
    for (RegionFacts.Fact fact : facts.dirty()) {
      changes.add(new Change(row(fact), fact::flushed));
    }
    changes.addAll(content.urgent());
    return changes;
  }

  public List<Change> allChanges(long now) {
    List<Change> changes = headChanges();
    changes.addAll(otherChanges(now));
    return changes;
  }

  /** Marks everything as not written, after the state table has lost its rows. */
  public void forgetFlushes() {
    heads.all().forEach(StreamHead::forgetFlush);
    facts.forgetFlushes();
    tableWrites.forgetFlushes();
    content.forgetFlushes();
    tableEvents.forgetFlushes();
    applied.forgetFlushes();
  }

  private static void collect(StreamHead head, List<Change> changes) {
    StreamHead.Snapshot seen = head.snapshot();
    if (seen.seq != head.flushedSeq()) {
      changes.add(new Change(row(head, seen), () -> head.flushed(seen.seq)));
    }
  }

  private static StateRow row(StreamHead head, StreamHead.Snapshot seen) {
    StateRow row = new StateRow(head.id.rowKey(HeadRow.TYPE))
        .add(HeadRow.SEQ, seen.seq, seen.seq)
        .add(HeadRow.WRITE_MS, seen.writeTime, seen.seq)
        .add(HeadRow.FIRST_MS, seen.firstTime, seen.seq)
        .add(HeadRow.ENTRIES, seen.count, seen.seq)
        .add(HeadRow.TABLE, Bits.utf8(head.table), seen.seq)
        .add(HeadRow.START_KEY, head.startKey, seen.seq)
        .add(HeadRow.END_KEY, head.endKey, seen.seq)
        .add(HeadRow.FAMILY, head.family, seen.seq);
    if (head.viaIds.length > 0) {
      row.add(HeadRow.VIA_IDS, head.viaIds, seen.seq);
    }
    return row;
  }

  private static StateRow row(RegionFacts.Fact fact) {
    StateRow row = new StateRow(Bits.ascii(FactRow.TYPE + fact.region));
    if (fact.bulkLoadTime > 0) {
      row.add(FactRow.BULK_LOAD_MS, fact.bulkLoadTime, fact.bulkLoadTime);
    }
    if (fact.localLoadTime > 0) {
      row.add(FactRow.LOCAL_LOAD_MS, fact.localLoadTime, fact.localLoadTime);
    }
    if (fact.lineage != null) {
      row.add(FactRow.LINEAGE, Bits.utf8(fact.lineage), fact.lineageTime)
          .add(FactRow.REGION_ID, fact.regionId, fact.lineageTime);
    }
    if (fact.bornTime > 0) {
      row.add(FactRow.CHILD_MS, fact.bornTime, fact.bornTime);
    }
    long newest = Math.max(fact.bornTime, Math.max(Math.max(fact.bulkLoadTime, fact.localLoadTime), fact.lineageTime));
    return row.add(FactRow.TABLE, Bits.utf8(fact.table), newest);
  }
}
