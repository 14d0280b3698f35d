package io.github.statustool.digests;

import java.util.ArrayList;
import java.util.Arrays;
import java.util.List;
import org.apache.hadoop.hbase.Cell;
import org.apache.hadoop.hbase.KeyValue;
import org.apache.hadoop.hbase.PrivateCellUtil;
import org.apache.hadoop.hbase.TagType;
import org.apache.hadoop.hbase.util.Bytes;

/**
 * Digests cells in HBase's order, in at most {@value #MAX_BUCKETS} buckets of consecutive rows, so that the tool can
 * narrow a difference down without another full read. A cell's KeyValue is hashed, in which the lengths of its fields
 * are; its tags are not.
 */
final class RowDigest {
  static final int MAX_BUCKETS = 64;
  private static final int FIRST_BUCKET_ROWS = 64;
  /** Where the key begins in a KeyValue: after the lengths of key and value. */
  private static final int KEY = KeyValue.ROW_OFFSET;
  private static final int TIMESTAMP_AND_TYPE = KeyValue.TIMESTAMP_TYPE_SIZE;

  private final DigestRequest.TableRequest request;
  private final CellHash hash;
  private final List<Bucket> buckets = new ArrayList<>();
  private long bucketRows = FIRST_BUCKET_ROWS;
  private final CellBytes message = new CellBytes();
  /** The last cell's key, up to its qualifier. */
  private byte[] column = new byte[256];
  private int columnEnd;
  /** Where the row ends in it; 0 before the first cell. */
  private int rowEnd;
  private DigestRequest.Family family;
  private int version;
  private long bytes;
  private long rows;

  RowDigest(DigestRequest.TableRequest request, byte[] start) {
    this.request = request;
    this.hash = new CellHash(request.key);
    buckets.add(new Bucket(start));
  }

  /** Returns true if the cell belongs to another row than the previous one; there must have been one. */
  boolean startsRow(Cell cell) {
    return !PrivateCellUtil.matchingRows(cell, column, Short.BYTES, rowEnd - Short.BYTES);
  }

  boolean hasRow() {
    return rowEnd > 0;
  }

  void add(Cell cell) {
    message.set(cell);
    int key = message.offset + KEY;
    int keyEnd = key + Bytes.toInt(message.bytes, message.offset) - TIMESTAMP_AND_TYPE;
    int row = Short.BYTES + Bytes.toShort(message.bytes, key);
    boolean sameRow = row == rowEnd && Arrays.equals(message.bytes, key, key + row, column, 0, row);
    boolean sameColumn = sameRow && Arrays.equals(message.bytes, key, keyEnd, column, 0, columnEnd);
    version = sameColumn ? version + 1 : 1;
    if (!sameColumn) {
      remember(key, keyEnd - key, row);
    }
    if (!sameRow) {
      beginRow();
    }
    long timestamp = Bytes.toLong(message.bytes, keyEnd);
    if (version > family.versions || timestamp < family.oldest) {
      return;
    }
    hash.hash(message.bytes, message.offset, message.length);
    current().count(hash, timestamp <= request.cut, message.length, expires(cell));
    bytes += message.length;
  }

  private static boolean expires(Cell cell) {
    return PrivateCellUtil.getTag(cell, TagType.TTL_TAG_TYPE).isPresent();
  }

  private void remember(int from, int length, int row) {
    if (column.length < length) {
      column = new byte[2 * length];
    }
    System.arraycopy(message.bytes, from, column, 0, length);
    columnEnd = length;
    rowEnd = row;
    family = request.family(column, row + 1, column[row]);
  }

  /**
   * Begins a row. A row whose cells are all left out (older than the oldest compared) moves the bucket's end, but does
   * not count as a row.
   */
  private void beginRow() {
    rows++;
    if (current().sums.rows() >= bucketRows) {
      buckets.add(new Bucket(Arrays.copyOfRange(column, Short.BYTES, rowEnd)));
      if (buckets.size() > MAX_BUCKETS) {
        joinPairs();
      }
    }
    current().rowIsNew = true;
  }

  /** Joins pairs of buckets. The last one stays alone: it has only just been begun. */
  private void joinPairs() {
    List<Bucket> joined = new ArrayList<>();
    for (int i = 0; i + 1 < buckets.size(); i += 2) {
      buckets.get(i).sums.add(buckets.get(i + 1).sums);
      joined.add(buckets.get(i));
    }
    if (buckets.size() % 2 == 1) {
      joined.add(current());
    }
    buckets.clear();
    buckets.addAll(joined);
    bucketRows *= 2;
  }

  private Bucket current() {
    return buckets.get(buckets.size() - 1);
  }

  /** Returns the buckets in key order. The first starts where the digest does, each other one at its first row. */
  List<Bucket> buckets() {
    return buckets;
  }

  /** Returns the number of rows that have been read, also of those whose cells are all left out. */
  long rows() {
    return rows;
  }

  /** Returns the number of bytes hashed, including lengths. */
  long bytes() {
    return bytes;
  }

  /** The rows from a key to the start of the next bucket. */
  static final class Bucket {
    final byte[] start;
    final RowSums sums = new RowSums();
    private boolean rowIsNew;

    Bucket(byte[] start) {
      this.start = start;
    }

    private void count(CellHash hash, boolean upTo, long size, boolean expires) {
      if (rowIsNew) {
        sums.row();
        rowIsNew = false;
      }
      sums.cell(hash, upTo, size, expires);
    }
  }
}
