package io.github.statustool.digests;

import java.io.ByteArrayInputStream;
import java.io.DataInputStream;
import java.io.IOException;
import java.util.ArrayList;
import java.util.Arrays;
import java.util.HashMap;
import java.util.List;
import java.util.Map;
import java.util.TreeMap;
import org.apache.hadoop.hbase.TableName;
import org.apache.hadoop.hbase.util.Bytes;

/** A request for row digests and its pages of ranges, as the tool writes them (formats.md, "Row digests"). */
final class DigestRequest {
  static final byte VERSION = 3;
  private static final int MAX_TABLES = 1_000;
  private static final int MAX_FAMILIES = 1_000;
  private static final int MAX_RANGES = 500;

  /** Bytes per second; 0 means the server's limit only. */
  final long rate;
  private final Map<TableName, TableRequest> tables;

  DigestRequest(long rate, Map<TableName, TableRequest> tables) {
    this.rate = rate;
    this.tables = tables;
  }

  /** Returns the request for a table; null if the request does not name the table, and for system tables. */
  TableRequest table(TableName name) {
    return name.isSystemTable() ? null : tables.get(name);
  }

  /** @throws IOException if it is damaged or has another version */
  static DigestRequest parse(byte[] bytes) throws IOException {
    try {
      DataInputStream in = open(bytes);
      byte[] key = new byte[SipHash128.KEY_BYTES];
      in.readFully(key);
      long cut = in.readLong();
      long rate = in.readLong();
      int sampleRows = in.readInt();
      int count = in.readInt();
      bounded(count, MAX_TABLES);
      Map<TableName, TableRequest> tables = new HashMap<>();
      for (int i = 0; i < count; i++) {
        TableName name = TableName.valueOf(read(in));
        tables.put(name, new TableRequest(key, cut, sampleRows, families(in)));
      }
      return new DigestRequest(rate, tables);
    } catch (IllegalArgumentException e) {
      throw new IOException("not the name of a table", e);
    }
  }

  private static Map<byte[], Family> families(DataInputStream in) throws IOException {
    int count = in.readInt();
    bounded(count, MAX_FAMILIES);
    Map<byte[], Family> families = new TreeMap<>(Bytes.BYTES_COMPARATOR);
    for (int i = 0; i < count; i++) {
      byte[] name = read(in);
      families.put(name, new Family(name, in.readInt(), in.readLong()));
    }
    return families;
  }

  static List<Range> parsePage(byte[] bytes) throws IOException {
    DataInputStream in = open(bytes);
    int count = in.readInt();
    bounded(count, MAX_RANGES);
    List<Range> ranges = new ArrayList<>(count);
    for (int i = 0; i < count; i++) {
      int part = in.readInt();
      String region = Bytes.toString(read(in));
      ranges.add(new Range(part, region, in.readLong(), read(in), read(in)));
    }
    return ranges;
  }

  private static DataInputStream open(byte[] bytes) throws IOException {
    DataInputStream in = new DataInputStream(new ByteArrayInputStream(bytes));
    if (in.readByte() != VERSION) {
      throw new IOException("a request of another version");
    }
    return in;
  }

  private static byte[] read(DataInputStream in) throws IOException {
    int length = in.readInt();
    bounded(length, in.available());
    byte[] bytes = new byte[length];
    in.readFully(bytes);
    return bytes;
  }

  private static void bounded(int count, int limit) throws IOException {
    if (count < 0 || count > limit) {
      throw new IOException("a damaged request");
    }
  }

  /** Request for one table. */
  static final class TableRequest {
    final byte[] key;
    /** Cells with a later timestamp are summed separately. */
    final long cut;
    /** Number of rows to digest of each range, from a random key on; 0 for all rows. */
    final int sampleRows;
    final Map<byte[], Family> families;
    private Family last;

    TableRequest(byte[] key, long cut, int sampleRows, Map<byte[], Family> families) {
      this.key = key;
      this.cut = cut;
      this.sampleRows = sampleRows;
      this.families = families;
    }

    boolean isSample() {
      return sampleRows > 0;
    }

    /** Returns the family of a cell of a scan for these families, whose name is a part of an array. */
    Family family(byte[] bytes, int offset, int length) {
      if (last == null || !Arrays.equals(bytes, offset, offset + length, last.name, 0, last.name.length)) {
        last = families.get(Arrays.copyOfRange(bytes, offset, offset + length));
      }
      return last;
    }
  }

  /** A family, and which of its cells both clusters should have. */
  static final class Family {
    final byte[] name;
    /** Number of newest versions per column that count. */
    final int versions;
    /** Cells with a lower timestamp are left out. */
    final long oldest;

    Family(byte[] name, int versions, long oldest) {
      this.name = name;
      this.versions = versions;
      this.oldest = oldest;
    }
  }

  /** A part of a region, as hbase:meta knew it. */
  static final class Range {
    final int part;
    final String region;
    final long openSeq;
    final byte[] start;
    final byte[] stop;

    Range(int part, String region, long openSeq, byte[] start, byte[] stop) {
      this.part = part;
      this.region = region;
      this.openSeq = openSeq;
      this.start = start;
      this.stop = stop;
    }

    Range from(byte[] key) {
      return new Range(part, region, openSeq, key, stop);
    }
  }
}
