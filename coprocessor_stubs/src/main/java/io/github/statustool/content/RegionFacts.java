package io.github.statustool.content;

import io.github.statustool.state.Change;
import io.github.statustool.state.StateRow;
import io.github.statustool.state.StateTable.FactRow;
import java.util.ArrayList;
import java.util.Collection;
import java.util.List;
import java.util.concurrent.ConcurrentHashMap;
import org.apache.hadoop.hbase.util.Bytes;

/**
 * Facts about regions in the WALs besides streams: bulk loads, splits, merges. They are rare, so updates simply lock.
 */
public final class RegionFacts {
  private final ConcurrentHashMap<String, Fact> facts = new ConcurrentHashMap<>();

  /** @param replicate false if the loader disabled replication, so that the sink skips the load */
  public void bulkLoad(String region, String table, long writeTime, boolean replicate) {
    facts.compute(region, (key, old) -> new Fact(key, table, old).withBulkLoad(writeTime, replicate));
  }

  void parent(String region, String table, String lineage, long regionId, long writeTime) {
    facts.compute(region, (key, old) -> new Fact(key, table, old).withLineage(lineage, regionId, writeTime));
  }

  /** Records that a region was created by a split or merge: its first store files are its parents'. */
  void child(String region, String table, long writeTime) {
    facts.compute(region, (key, old) -> new Fact(key, table, old).withBirth(writeTime));
  }

  /** Returns the facts that the state table does not have yet. */
  public List<Change> dirty() {
    List<Change> dirty = new ArrayList<>();
    for (Fact fact : all()) {
      if (!fact.flushed) {
        dirty.add(new Change(fact.toRow(), () -> fact.flushed = true));
      }
    }
    return dirty;
  }

  Collection<Fact> all() {
    return facts.values();
  }

  public void forgetFlushes() {
    facts.values().forEach(fact -> fact.flushed = false);
  }

  /** Facts about one region. Replaced rather than modified, so that a flush knows which state it has written. */
  static final class Fact {
    final String region;
    final String table;
    long bulkLoadTime;
    /** Write time of the newest load with replication disabled. */
    long localLoadTime;
    String lineage;
    long regionId;
    long lineageTime;
    long bornTime;
    private volatile boolean flushed;

    private Fact(String region, String table, Fact old) {
      this.region = region;
      this.table = table;
      if (old != null) {
        bulkLoadTime = old.bulkLoadTime;
        localLoadTime = old.localLoadTime;
        lineage = old.lineage;
        regionId = old.regionId;
        lineageTime = old.lineageTime;
        bornTime = old.bornTime;
      }
    }

    private Fact withBulkLoad(long writeTime, boolean replicate) {
      if (replicate) {
        bulkLoadTime = Math.max(bulkLoadTime, writeTime);
      } else {
        localLoadTime = Math.max(localLoadTime, writeTime);
      }
      return this;
    }

    private Fact withBirth(long writeTime) {
      bornTime = writeTime;
      return this;
    }

    private Fact withLineage(String newLineage, long id, long writeTime) {
      lineage = newLineage;
      regionId = id;
      lineageTime = writeTime;
      return this;
    }

    private StateRow toRow() {
      StateRow row = new StateRow(Bytes.toBytes(FactRow.TYPE + region));
      if (bulkLoadTime > 0) {
        row.add(FactRow.BULK_LOAD_MS, bulkLoadTime, bulkLoadTime);
      }
      if (localLoadTime > 0) {
        row.add(FactRow.LOCAL_LOAD_MS, localLoadTime, localLoadTime);
      }
      if (lineage != null) {
        row.add(FactRow.LINEAGE, Bytes.toBytes(lineage), lineageTime).add(FactRow.REGION_ID, regionId, lineageTime);
      }
      if (bornTime > 0) {
        row.add(FactRow.CHILD_MS, bornTime, bornTime);
      }
      long newest = Math.max(bornTime, Math.max(Math.max(bulkLoadTime, localLoadTime), lineageTime));
      return row.add(FactRow.TABLE, Bytes.toBytes(table), newest);
    }
  }
}
