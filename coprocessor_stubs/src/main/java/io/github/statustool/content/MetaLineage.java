package io.github.statustool.content;

import java.io.IOException;
import org.apache.hadoop.hbase.Cell;
import org.apache.hadoop.hbase.CellUtil;
import org.apache.hadoop.hbase.HConstants;
import org.apache.hadoop.hbase.client.RegionInfo;
import org.apache.hadoop.hbase.util.Bytes;
import org.apache.hadoop.hbase.wal.WALEdit;

/**
 * Reads splits and merges from the WAL of hbase:meta. The streams of the parents end there; without this fact they
 * would look like those of a dropped or truncated table.
 */
public final class MetaLineage {
  private static final String SPLIT = "split";
  private static final String MERGE = "merge";
  private static final byte[] MERGE_PREFIX = Bytes.toBytes("merge");

  private final RegionFacts facts;

  public MetaLineage(RegionFacts facts) {
    this.facts = facts;
  }

  public void read(WALEdit edit, long writeTime) throws IOException {
    for (Cell cell : edit.getCells()) {
      if (CellUtil.matchingFamily(cell, HConstants.CATALOG_FAMILY) && CellUtil.isPut(cell)) {
        read(edit, cell, writeTime);
      }
    }
  }

  private void read(WALEdit edit, Cell cell, long writeTime) throws IOException {
    if (isSplit(cell)) {
      RegionInfo daughter =
          RegionInfo.parseFromOrNull(cell.getValueArray(), cell.getValueOffset(), cell.getValueLength());
      if (daughter != null && isWritten(edit, daughter)) {
        splitParent(CellUtil.cloneRow(cell), writeTime);
        facts.child(daughter.getEncodedName(), daughter.getTable().getNameAsString(), writeTime);
      }
    } else if (isMerge(cell)) {
      mergeParent(cell, writeTime);
    }
  }

  /** Returns true if the edit writes the daughter's row as well, as that of a split does. */
  private static boolean isWritten(WALEdit edit, RegionInfo daughter) {
    // HBase also writes the row of a parent alone, when it restores a snapshot from right after a split: then the
    // daughters' files are the snapshot's.
    return edit.getCells().stream()
        .anyMatch(cell -> CellUtil.isPut(cell) && CellUtil.matchingRows(cell, daughter.getRegionName()));
  }

  private static boolean isSplit(Cell cell) {
    return CellUtil.matchingQualifier(cell, HConstants.SPLITA_QUALIFIER)
        || CellUtil.matchingQualifier(cell, HConstants.SPLITB_QUALIFIER);
  }

  private static boolean isMerge(Cell cell) {
    return cell.getQualifierLength() >= MERGE_PREFIX.length
        && Bytes.equals(cell.getQualifierArray(), cell.getQualifierOffset(), MERGE_PREFIX.length,
            MERGE_PREFIX, 0, MERGE_PREFIX.length);
  }

  /** Records a split. */
  private void splitParent(byte[] regionName, long writeTime) throws IOException {
    // A split stands in the parent's row of hbase:meta, so the row key is the parent's name.
    long id = Long.parseLong(Bytes.toString(RegionInfo.parseRegionName(regionName)[2]));
    String table = RegionInfo.getTable(regionName).getNameAsString();
    facts.parent(RegionInfo.encodeRegionName(regionName), table, SPLIT, id, writeTime);
  }

  /** Records a parent of a merge. Merges stand in the child's row of hbase:meta, each value a parent. */
  private void mergeParent(Cell cell, long writeTime) {
    RegionInfo parent =
        RegionInfo.parseFromOrNull(cell.getValueArray(), cell.getValueOffset(), cell.getValueLength());
    if (parent != null) {
      facts.parent(parent.getEncodedName(), parent.getTable().getNameAsString(), MERGE, parent.getRegionId(),
          writeTime);
      byte[] child = CellUtil.cloneRow(cell);
      facts.child(RegionInfo.encodeRegionName(child), RegionInfo.getTable(child).getNameAsString(), writeTime);
    }
  }
}
