package io.github.statustool.streams;

import io.github.statustool.content.ContentLedger;
import io.github.statustool.content.RegionFacts;
import io.github.statustool.content.TableEvents;
import io.github.statustool.content.TableWrites;
import io.github.statustool.state.Change;
import io.github.statustool.state.Health;
import java.util.List;
import java.util.Set;
import java.util.function.LongSupplier;

/**
 * Everything that this JVM's trackers have observed and keep until it is in the state table: heads, region facts,
 * content ledger, table events and writes, applied segments.
 */
public final class ObservedState {
  final StreamHeads heads = new StreamHeads();
  public final RegionFacts facts = new RegionFacts();
  public final TableWrites.Registry tableWrites = new TableWrites.Registry();
  public final ContentLedger content;
  public final TableEvents tableEvents = new TableEvents();
  public final AppliedSegments applied = new AppliedSegments(tableEvents);

  public ObservedState(Health health, LongSupplier clock) {
    content = new ContentLedger(health, clock, tableEvents);
  }

  /** Heads that the state table does not have yet. */
  public List<Change> headChanges() {
    return heads.dirty(region -> true);
  }

  /** Those of some regions, by their encoded names. */
  public List<Change> headChanges(Set<String> regions) {
    return heads.dirty(regions::contains);
  }

  /**
   * Returns all other changes that the state table does not have yet, but for markers. Unlike heads, they may be written
   * before the WALs are synced: they were true when they were observed.
   */
  public List<Change> otherChanges(long now) {
    List<Change> changes = content.dirty(); // first: it tells of regions that are born
    changes.addAll(facts.dirty());
    changes.addAll(tableWrites.dirty());
    applied.collect(changes, now);
    changes.addAll(tableEvents.dirty()); // last: of a table that has segments by now, its first arrival is known
    return changes;
  }

  /**
   * Changes that would be lost in a crash and that nothing else could reveal afterwards, not even the replication
   * queues. They are written without waiting for the next flush.
   */
  public List<Change> urgentChanges() {
    List<Change> changes = content.urgent(); // first, as above
    changes.addAll(factChanges());
    return changes;
  }

  /** The urgent changes without region openings. */
  public List<Change> factChanges() {
    List<Change> changes = tableEvents.urgent();
    changes.addAll(facts.dirty());
    return changes;
  }

  public List<Change> allChanges(long now) {
    List<Change> changes = headChanges();
    content.marked().values().forEach(changes::addAll);
    changes.addAll(otherChanges(now));
    return changes;
  }

  /** Marks everything as not written, after the state table has lost its rows. */
  public void forgetFlushes() {
    heads.forgetFlushes();
    facts.forgetFlushes();
    tableWrites.forgetFlushes();
    content.forgetFlushes();
    tableEvents.forgetFlushes();
    applied.forgetFlushes();
  }
}
