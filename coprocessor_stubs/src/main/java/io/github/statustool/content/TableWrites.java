package io.github.statustool.content;

import io.github.statustool.state.Change;
import io.github.statustool.state.ClusterLists;
import io.github.statustool.state.Ids;
import io.github.statustool.state.StateRow;
import io.github.statustool.state.StateTable.TableEventRow;
import java.util.ArrayList;
import java.util.List;
import java.util.UUID;
import java.util.concurrent.ConcurrentHashMap;
import org.apache.hadoop.hbase.Cell;
import org.apache.hadoop.hbase.CellUtil;
import org.apache.hadoop.hbase.util.Bytes;
import org.apache.hadoop.hbase.wal.WALEdit;

/**
 * The newest writes to a table, from its WAL entries: by the clusters that they have passed, of any write and of any
 * delete, with the first one that this JVM saw; and of any cell with tags (a TTL, ACL or label of its own), which
 * replication drops unless its codec keeps tags. The newest write is exact, the others may be a few seconds old. A bulk
 * load is a write without a delete.
 */
public final class TableWrites {
  /** Minimum time between two examinations of cells for deletes or tags; the accuracy of their times. */
  private static final long EXAMINE_AGAIN_MS = 10_000;

  private final String table;
  private final ConcurrentHashMap<List<UUID>, ByClusters> byClusters = new ConcurrentHashMap<>();
  private volatile long tagged;
  private volatile long flushed;

  TableWrites(String table) {
    this.table = table;
  }

  /**
   * Called by WAL threads. Two of them may race; then the time of either one may stay.
   *
   * @param clusterIds the clusters that the edit has passed; none for a write of a client of this cluster
   */
  public void add(long writeTime, WALEdit edit, List<UUID> clusterIds, boolean isReplicable) {
    ByClusters writes = written(writeTime, clusterIds);
    boolean seeksDelete = writeTime > writes.deleted + EXAMINE_AGAIN_MS;
    boolean seeksTags = isReplicable && writeTime > tagged + EXAMINE_AGAIN_MS;
    if (seeksDelete || seeksTags) {
      examine(writeTime, edit.getCells(), seeksDelete ? writes : null, seeksTags);
    }
  }

  /** @param clusterIds the clusters that the load has passed, this one among them */
  void addLoad(long writeTime, List<UUID> clusterIds) {
    written(writeTime, clusterIds);
  }

  private ByClusters written(long writeTime, List<UUID> clusterIds) {
    // A look first, so that the WAL thread copies no list for clusters that are known.
    ByClusters writes = byClusters.get(clusterIds);
    if (writes == null) {
      if (!clusterIds.isEmpty()) {
        ClusterLists.require(!ClusterLists.isTooLong(clusterIds.size()));
        ClusterLists.requireRoom(byClusters.size());
      }
      writes = byClusters.computeIfAbsent(List.copyOf(clusterIds), ids -> new ByClusters(ids, writeTime));
    }
    if (writeTime > writes.written) {
      writes.written = writeTime;
    }
    return writes;
  }

  @SuppressWarnings("deprecation") // getTagsLength: Cell offers no other way but to copy the tags
  private void examine(long writeTime, List<Cell> cells, ByClusters seeksDelete, boolean seeksTags) {
    boolean delete = seeksDelete == null;
    boolean tags = !seeksTags;
    for (int i = 0; i < cells.size() && !(delete && tags); i++) {
      Cell cell = cells.get(i);
      if (!delete && CellUtil.isDelete(cell)) {
        delete = true;
        seeksDelete.deleted = writeTime;
      }
      if (!tags && cell.getTagsLength() > 0) {
        tags = true;
        tagged = writeTime;
      }
    }
  }

  private Change change() {
    long newest = sum(); // before the times are read: a write in between makes the sums differ again
    StateRow row = new StateRow(Bytes.toBytes(TableEventRow.TYPE + table));
    for (ByClusters writes : byClusters.values()) {
      add(row, Bytes.add(TableEventRow.WRITTEN_MS, writes.clusters), writes.written);
      add(row, Bytes.add(TableEventRow.DELETED_MS, writes.clusters), writes.deleted);
      row.add(Bytes.add(TableEventRow.FIRST_WRITTEN_MS, writes.clusters), writes.first,
          TableEventRow.EARLIEST_WINS - writes.first);
    }
    add(row, TableEventRow.TAGGED_MS, tagged);
    return new Change(row, () -> flushed = newest);
  }

  private static void add(StateRow row, byte[] qualifier, long moment) {
    if (moment > 0) {
      row.add(qualifier, moment, moment);
    }
  }

  /** Changes whenever one of the times does: they only grow. */
  private long sum() {
    long sum = tagged;
    for (ByClusters writes : byClusters.values()) {
      sum += writes.written + writes.deleted;
    }
    return sum;
  }

  /** The writes that have passed the same clusters. */
  private static final class ByClusters {
    private final byte[] clusters;
    /** Write time of the first one in this JVM. */
    private final long first;
    private volatile long written;
    private volatile long deleted;

    private ByClusters(List<UUID> clusterIds, long writeTime) {
      clusters = Ids.sortedBytes(clusterIds);
      first = writeTime;
    }
  }

  /** The writes to all tables. */
  public static final class Registry {
    private final ConcurrentHashMap<String, TableWrites> tables = new ConcurrentHashMap<>();

    public TableWrites of(String table) {
      return tables.computeIfAbsent(table, TableWrites::new);
    }

    public List<Change> dirty() {
      List<Change> changes = new ArrayList<>();
      for (TableWrites writes : tables.values()) {
        if (writes.sum() != writes.flushed) {
          changes.add(writes.change());
        }
      }
      return changes;
    }

    public void forgetFlushes() {
      tables.values().forEach(writes -> writes.flushed = 0);
    }
  }
}
