package io.github.statustool;

import java.util.ArrayList;
import java.util.List;
import java.util.concurrent.ConcurrentHashMap;

/** What the WALs tell about regions beyond their streams: bulk loads, splits, merges. Rare, so plain and locked. */
final class RegionFacts {
  private final ConcurrentHashMap<String, Fact> facts = new ConcurrentHashMap<>();

  /** @param replicate whether the loader left replication on: otherwise the sink skips the load */
  void bulkLoad(String region, String table, long writeTime, boolean replicate) {
    facts.compute(region, (key, old) -> new Fact(key, table, old).withBulkLoad(writeTime, replicate));
  }

  void parent(String region, String table, String lineage, long regionId, long writeTime) {
    facts.compute(region, (key, old) -> new Fact(key, table, old).withLineage(lineage, regionId, writeTime));
  }

  /** A region that came of a split or merge, so that its first files are those of its parents. */
  void child(String region, String table, long writeTime) {
    facts.compute(region, (key, old) -> new Fact(key, table, old).withBirth(writeTime));
  }

  List<Fact> dirty() {
    List<Fact> dirty = new ArrayList<>();
    for (Fact fact : facts.values()) {
      if (!fact.flushed) {
        dirty.add(fact);
      }
    }
    return dirty;
  }

  void forgetFlushes() {
    facts.values().forEach(fact -> fact.flushed = false);
  }

  /** One region's facts; replaced, never changed, so that a flush knows which state it has written. */
  static final class Fact {
    final String region;
    final String table;
    long bulkLoadTime;
    /** Of loads with replication switched off. */
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

    void flushed() {
      flushed = true;
    }
  }
}
