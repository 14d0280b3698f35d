package io.github.statustool.state;

import org.apache.hadoop.conf.Configuration;
import org.apache.hadoop.fs.Path;
import org.apache.hadoop.hbase.HConstants;
import org.apache.hadoop.hbase.TableName;

/** The configuration of the trackers; the README explains the keys. Times are in milliseconds. */
public final class Settings {
  private static final String PREFIX = "hbase.replicationtable.";
  /** Key of {@link #unstampedEntries}, and with the value {@link #ALL} of {@link #allEntries}. */
  public static final String UNSTAMPED_ENTRIES = PREFIX + "unstamped.entries";
  public static final String ALL = "all";

  private static final String REQUESTS_SUFFIX = "_rows";
  private static final String STATUS_TABLE = "replicationstatus";
  private static final String SPOOL_FOLDER = ".status-tool-spool";

  public final TableName table;
  public final long updateDelay;
  public final long updatePeriod;
  public final long barrierPoll;
  public final long sweepPeriod;
  public final long newServerGrace;
  public final long writeThroughWait;
  public final long operationTimeout;
  public final long stopCloseWait;
  public final long stopFlushWait;
  /** True if entries without a stamp are recorded one by one, for a witness's master. */
  public final boolean unstampedEntries;
  /** True if those with a stamp are too, for a witness beside the trackers of a master. */
  public final boolean allEntries;
  public final boolean digests;
  /** Bytes per second. */
  public final long digestRate;
  private final String spoolDir;
  private volatile boolean loadsAreNoted;

  public Settings(Configuration conf) {
    table = tableName(conf);
    updateDelay = positive(conf, "updatedelay", 30_000);
    updatePeriod = positive(conf, "updateperiod", 20_000);
    barrierPoll = positive(conf, "barrierpoll", 1_000);
    sweepPeriod = positive(conf, "sweep", 60_000);
    newServerGrace = positive(conf, "newserver.grace", updateDelay + 2 * updatePeriod + 60_000);
    writeThroughWait = positive(conf, "writethrough.wait", 1_000);
    operationTimeout = positive(conf, "operation.timeout", 3_000);
    stopCloseWait = positive(conf, "stop.closewait", 30_000);
    stopFlushWait = positive(conf, "stop.flushwait", 10_000);
    allEntries = ALL.equalsIgnoreCase(conf.getTrimmed(UNSTAMPED_ENTRIES));
    unstampedEntries = allEntries || conf.getBoolean(UNSTAMPED_ENTRIES, false);
    loadsAreNoted = replicatesLoads(conf);
    digests = conf.getBoolean(PREFIX + "digest.enabled", true);
    digestRate = positive(conf, "digest.rate", 50_000_000);
    spoolDir = conf.get(PREFIX + "spool.dir", new Path(root(conf), SPOOL_FOLDER).toString());
    // At the start: this message names the setting, which an exception from the spool would not.
    checkSpoolDir();
  }

  private static boolean replicatesLoads(Configuration conf) {
    return conf.getBoolean(HConstants.REPLICATION_BULKLOAD_ENABLE_KEY, HConstants.REPLICATION_BULKLOAD_ENABLE_DEFAULT);
  }

  /**
   * Returns true if HBase notes each bulk load for its peers (hfile-refs), in all regions that this server opens: if it
   * has replicated bulk loads since the tracker started. Where that is switched on later ({@code update_config}), the WAL
   * takes it up, and a region that was opened before does not.
   */
  public boolean loadsAreNoted() {
    return loadsAreNoted;
  }

  /** @param conf the server's as it is now: loads are not noted any more once it has not replicated them */
  public void watchLoads(Configuration conf) {
    loadsAreNoted &= replicatesLoads(conf);
  }

  /** Returns HBase's root folder. */
  static Path root(Configuration conf) {
    return new Path(conf.get(HConstants.HBASE_DIR, "/hbase"));
  }

  private static TableName tableName(Configuration conf) {
    String namespace = conf.get(PREFIX + "namespace", "default");
    String name = conf.get(PREFIX + "name", "replicationstate");
    try {
      return TableName.valueOf(namespace, name);
    } catch (IllegalArgumentException e) {
      throw new IllegalArgumentException(PREFIX + "namespace = \"" + namespace + "\" and " + PREFIX + "name = \"" + name
          + "\" do not name a table (" + e.getMessage() + ")", e);
    }
  }

  private void checkSpoolDir() {
    try {
      spoolDir();
    } catch (IllegalArgumentException e) {
      throw new IllegalArgumentException(PREFIX + "spool.dir = \"" + spoolDir + "\" is not a path (" + e.getMessage()
          + ")", e);
    }
  }

  /** Returns the table for requests and answers of row digests; the tool creates it. */
  public TableName requestTable() {
    return TableName.valueOf(table.getNamespaceAsString(), table.getQualifierAsString() + REQUESTS_SUFFIX);
  }

  /** Returns the table of published status files; the tool writes it, and replication ships it. */
  TableName statusTable() {
    return TableName.valueOf(table.getNamespaceAsString(), STATUS_TABLE);
  }

  /** Returns true for a table that says what happened on this cluster, and is of use on no other. */
  public boolean isOurs(TableName name) {
    return name.equals(table) || name.equals(requestTable());
  }

  /** Returns the folder in which each cluster has a spool of its own. */
  public Path spoolDir() {
    return new Path(spoolDir);
  }

  /** Returns a positive setting, or the default for an invalid value. */
  private static long positive(Configuration conf, String key, long byDefault) {
    try {
      long value = conf.getLong(PREFIX + key, byDefault);
      return value > 0 ? value : byDefault;
    } catch (NumberFormatException e) {
      // A tracker must not fail its server because of a typo.
      return byDefault;
    }
  }
}
