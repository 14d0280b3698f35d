package io.github.statustool;

import io.github.statustool.StateTable.TableEventRow;
import java.util.ArrayList;
import java.util.Collection;
import java.util.List;
import java.util.concurrent.ConcurrentHashMap;
import org.apache.hadoop.hbase.Cell;
import org.apache.hadoop.hbase.CellUtil;
import org.apache.hadoop.hbase.wal.WALEdit;

/**
 * What a table's WAL entries tell beside its streams: when somebody other than replication last wrote to it here, when
 * last a delete was among that, and when cells with tags (a TTL, ACL or label of their own) were last written, which
 * replication leaves out if its codec is not HBase's default one. For people, so a moment may be seconds old; bulk loads
 * are not seen.
 */
final class TableWrites {
  /** Once a delete or tag was seen, nobody looks at cells again for so long: the moment is told to about this. */
  private static final long LOOK_AGAIN_MS = 10_000;

  private final String table;
  private volatile long local;
  private volatile long deleted;
  private volatile long tagged;
  private volatile long flushed;

  TableWrites(String table) {
    this.table = table;
  }

  /** By the thread of a WAL; several WALs may come at once, and then the moment of either may stay. */
  void add(long writeTime, WALEdit edit, boolean isLocal, boolean isReplicable) {
    if (isLocal && writeTime > local) {
      local = writeTime;
    }
    boolean seeksDelete = isLocal && writeTime > deleted + LOOK_AGAIN_MS;
    boolean seeksTags = isReplicable && writeTime > tagged + LOOK_AGAIN_MS;
    if (seeksDelete || seeksTags) {
      look(writeTime, edit.getCells(), seeksDelete, seeksTags);
    }
  }

  @SuppressWarnings("deprecation") // whether there are tags: Cell has no other way, and copying them would cost more
  private void look(long writeTime, List<Cell> cells, boolean seeksDelete, boolean seeksTags) {
    boolean delete = !seeksDelete;
    boolean tags = !seeksTags;
    for (int i = 0; i < cells.size() && !(delete && tags); i++) {
      Cell cell = cells.get(i);
      if (!delete && CellUtil.isDelete(cell)) {
        delete = true;
        deleted = writeTime;
      }
      if (!tags && cell.getTagsLength() > 0) {
        tags = true;
        tagged = writeTime;
      }
    }
  }

  private Change change() {
    long newest = sum();
    StateRow row = new StateRow(Bits.utf8(TableEventRow.TYPE + table));
    add(row, TableEventRow.WRITTEN_MS, local);
    add(row, TableEventRow.DELETED_MS, deleted);
    add(row, TableEventRow.TAGGED_MS, tagged);
    return new Change(row, () -> flushed = newest);
  }

  private static void add(StateRow row, byte[] qualifier, long moment) {
    if (moment > 0) {
      row.add(qualifier, moment, moment);
    }
  }

  /** Changes whenever one of the moments does, which only grow. */
  private long sum() {
    return local + deleted + tagged;
  }

  /** Those of all tables. */
  static final class Registry {
    private final ConcurrentHashMap<String, TableWrites> tables = new ConcurrentHashMap<>();

    TableWrites of(String table) {
      return tables.computeIfAbsent(table, TableWrites::new);
    }

    List<Change> dirty() {
      List<Change> changes = new ArrayList<>();
      for (TableWrites writes : all()) {
        if (writes.sum() != writes.flushed) {
          changes.add(writes.change());
        }
      }
      return changes;
    }

    void forgetFlushes() {
      all().forEach(writes -> writes.flushed = 0);
    }

    private Collection<TableWrites> all() {
      return tables.values();
    }
  }
}
