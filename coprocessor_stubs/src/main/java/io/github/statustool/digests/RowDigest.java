package io.github.statustool.digests;

import io.github.statustool.state.Bits;
import java.util.ArrayList;
import java.util.Arrays;
import java.util.List;
import org.apache.hadoop.hbase.Cell;
import org.apache.hadoop.hbase.CellUtil;
import org.apache.hadoop.hbase.PrivateCellUtil;
import org.apache.hadoop.hbase.TagType;

/**
 * Digests cells in HBase's order, in at most {@value #MAX_BUCKETS} buckets of consecutive rows, so that the tool can
 * narrow a difference down without another full read. Every field is hashed together with its length. A cell's type
 * (only Puts are visible) and its tags are not hashed.
 */
final class RowDigest {
  static final int MAX_BUCKETS = 64;
  private static final int FIRST_BUCKET_ROWS = 64;
  private static final int SPARE_BUFFER = 4 << 20;

  private final DigestRequest.TableRequest request;
  private final SipHash128 hash;
  private final List<Bucket> buckets = new ArrayList<>();
  private long bucketRows = FIRST_BUCKET_ROWS;
  private byte[] message = new byte[1024];
  private byte[] column = new byte[256];
  private int columnLength;
  private int rowLength = -1;
  private int version;
  private long bytes;
  private long rows;

  RowDigest(DigestRequest.TableRequest request, byte[] start) {
    this.request = request;
    this.hash = new SipHash128(request.key);
    buckets.add(new Bucket(start));
  }

  /** Returns true if the cell belongs to another row than the previous one. */
  boolean startsRow(Cell cell) {
    return rowLength != cell.getRowLength() || !PrivateCellUtil.matchingRows(cell, column, Integer.BYTES, rowLength);
  }

  boolean hasRow() {
    return rowLength >= 0;
  }

  void add(Cell cell) {
    boolean newRow = startsRow(cell);
    int prefix = frameColumn(cell);
    boolean sameColumn = Arrays.equals(message, 0, prefix, column, 0, columnLength);
    version = sameColumn ? version + 1 : 1;
    if (!sameColumn) {
      remember(prefix, cell.getRowLength());
    }
    DigestRequest.Family family = request.family(cell);
    if (newRow) {
      beginRow();
    }
    if (version > family.versions || cell.getTimestamp() < family.oldest) {
      return;
    }
    int length = frameRest(cell, prefix);
    hash.hash(message, length);
    current().count(hash, cell.getTimestamp() <= request.cut, length, expires(cell));
    bytes += length;
    if (message.length > SPARE_BUFFER) {
      message = new byte[SPARE_BUFFER];
    }
  }

  private static boolean expires(Cell cell) {
    return PrivateCellUtil.getTag(cell, TagType.TTL_TAG_TYPE).isPresent();
  }

  private int frameColumn(Cell cell) {
    int row = cell.getRowLength();
    int family = cell.getFamilyLength();
    int qualifier = cell.getQualifierLength();
    int end = 3 * Integer.BYTES + row + family + qualifier;
    reserve(end, 0);
    Bits.putInt(message, 0, row);
    int at = CellUtil.copyRowTo(cell, message, Integer.BYTES);
    Bits.putInt(message, at, family);
    at = CellUtil.copyFamilyTo(cell, message, at + Integer.BYTES);
    Bits.putInt(message, at, qualifier);
    CellUtil.copyQualifierTo(cell, message, at + Integer.BYTES);
    return end;
  }

  private int frameRest(Cell cell, int prefix) {
    int value = cell.getValueLength();
    int end = prefix + Long.BYTES + Integer.BYTES + value;
    reserve(end, prefix);
    Bits.putLong(message, prefix, cell.getTimestamp());
    Bits.putInt(message, prefix + Long.BYTES, value);
    CellUtil.copyValueTo(cell, message, prefix + Long.BYTES + Integer.BYTES);
    return end;
  }

  private void reserve(int size, int kept) {
    if (message.length < size) {
      byte[] larger = new byte[Math.max(size, 2 * Math.min(message.length, SPARE_BUFFER))];
      System.arraycopy(message, 0, larger, 0, kept);
      message = larger;
    }
  }

  private void remember(int prefix, int row) {
    if (column.length < prefix) {
      column = new byte[2 * prefix];
    }
    System.arraycopy(message, 0, column, 0, prefix);
    columnLength = prefix;
    rowLength = row;
  }

  /**
   * Begins a row. A row whose cells are all left out (older than the oldest compared) moves the bucket's end, but does
   * not count as a row.
   */
  private void beginRow() {
    rows++;
    if (current().sums.rows() >= bucketRows) {
      buckets.add(new Bucket(Arrays.copyOfRange(column, Integer.BYTES, Integer.BYTES + rowLength)));
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

    private void count(SipHash128 hash, boolean upTo, long size, boolean expires) {
      if (rowIsNew) {
        sums.row();
        rowIsNew = false;
      }
      sums.cell(hash, upTo, size, expires);
    }
  }
}
