package io.github.statustool.content;

import java.util.ArrayList;
import java.util.List;
import java.util.concurrent.ConcurrentHashMap;

/**
 * Facts about regions in the WALs besides streams: bulk loads, splits, merges. They are rare, so updates simply lock.
 */
public final class RegionFacts {
  private final ConcurrentHashMap<String, Fact> facts = new ConcurrentHashMap<>();

  /** @param replicate false if the loader disabled replication, so that the sink skips the load */
  public void bulkLoad(String region, String table, long writeTime, boolean replicate) {
    facts.compute(region, (key, old) -> new Fact(key, table, old).withBulkLoad(writeTime, replicate));
  }

  public void parent(String region, String table, String lineage, long regionId, long writeTime) {
    facts.compute(region, (key, old) -> new Fact(key, table, old).withLineage(lineage, regionId, writeTime));
  }

  /** Records that a region was created by a split or merge: its first store files are its parents'. */
  public void child(String region, String table, long writeTime) {
    facts.compute(region, (key, old) -> new Fact(key, table, old).withBirth(writeTime));
  }

  public List<Fact> dirty() {
    List<Fact> dirty = new ArrayList<>();
    for (Fact fact : facts.values()) {
      if (!fact.flushed) {
        dirty.add(fact);
      }
    }
    return dirty;
  }

  public void forgetFlushes() {
    facts.values().forEach(fact -> fact.flushed = false);
  }

  /** Facts about one region. Replaced rather than modified, so that a flush knows which state it has written. */
  public static final class Fact {
    public final String region;
    public final String table;
    public long bulkLoadTime;
    /** Write time of the newest load with replication disabled. */
    public long localLoadTime;
    public String lineage;
    public long regionId;
    public long lineageTime;
    public long bornTime;
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

    public void flushed() {
      flushed = true;
    }
  }
}
