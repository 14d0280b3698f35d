package io.github.statustool.state;

import java.util.ArrayList;
import java.util.List;
import java.util.stream.Collectors;
import java.util.stream.IntStream;
import org.apache.hadoop.hbase.util.Bytes;

/**
 * The rows and columns of the state table by name: one class per kind of row, with its row key's first byte
 * ({@code TYPE}) or its whole row key ({@code KEY}), and one constant per qualifier. Of a qualifier that is called a
 * prefix, only the first byte is here. docs/formats.md describes the values; the tool's Python uses the same names.
 */
public final class StateTable {
  public static final byte[] FAMILY = Bytes.toBytes("t");
  /**
   * What was written longer ago is in a store file, whatever becomes of a write-ahead log: a server flushes edits that
   * are older than an hour ({@code hbase.regionserver.optionalcacheflushinterval}), some minutes later.
   */
  public static final long LOSABLE_MS = 2 * 3_600_000L;

  /** Maximum number of region servers with which heads and segments have four regions each. */
  private static final int FEW_SERVERS = 16;
  private static final int MOST_DIGITS = 2;

  private StateTable() {}

  /**
   * Returns the keys at which the table of a new cluster is split. Every region server writes heads, or segments, so
   * there are more regions of them where there are more servers: 4, 16 or 256 each.
   */
  static byte[][] splitKeys(int servers) {
    List<String> keys = new ArrayList<>();
    for (char type : new char[] {HeadRow.TYPE, SegmentRow.TYPE}) {
      for (String digits : servers <= FEW_SERVERS ? List.of("4", "8", "c") : leadingDigits(servers)) {
        keys.add(type + digits);
      }
      keys.add(String.valueOf((char) (type + 1)));
    }
    return keys.stream().map(Bytes::toBytes).toArray(byte[][]::new);
  }

  /** Returns all hex numbers of one digit, or of two where there are more servers than regions. */
  private static List<String> leadingDigits(int servers) {
    List<String> numbers = List.of("");
    for (int digits = 0; digits < MOST_DIGITS && numbers.size() * FEW_SERVERS < servers; digits++) {
      numbers = numbers.stream()
          .flatMap(number -> IntStream.range(0, 16).mapToObj(digit -> number + Integer.toHexString(digit)))
          .collect(Collectors.toList());
    }
    return numbers;
  }

  /** The head of a stream: region, origin and via, which stands for the family, too. */
  public static final class HeadRow {
    public static final char TYPE = 'h';
    public static final byte[] SEQ = Bytes.toBytes("s");
    public static final byte[] WRITE_MS = Bytes.toBytes("w");
    public static final byte[] FIRST_MS = Bytes.toBytes("f");
    public static final byte[] ENTRIES = Bytes.toBytes("n");
    public static final byte[] TABLE = Bytes.toBytes("t");
    public static final byte[] START_KEY = Bytes.toBytes("k");
    public static final byte[] END_KEY = Bytes.toBytes("e");
    public static final byte[] VIA_IDS = Bytes.toBytes("v");
    public static final byte[] FAMILY = Bytes.toBytes("c");

    private HeadRow() {}
  }

  /** The segments of a stream: what has been applied of it. */
  public static final class SegmentRow {
    public static final char TYPE = 's';
    /** Prefix, followed by 8 random bytes: the segments that one writer knows. */
    public static final byte[] WRITER = Bytes.toBytes("c");
    public static final byte[] REPLICATED_MS = Bytes.toBytes("r");
    public static final byte[] TABLE = Bytes.toBytes("t");
    public static final byte[] FAMILY = Bytes.toBytes("f");

    private SegmentRow() {}
  }

  /** Entries of a region that arrived without a valid stamp. */
  public static final class UnstampedRow {
    public static final char TYPE = 'u';
    /** Prefix, followed by cluster ids. */
    public static final byte[] WRITE_MS = Bytes.toBytes("r");
    public static final byte[] TABLE = Bytes.toBytes("t");

    private UnstampedRow() {}
  }

  /** Facts about a region: bulk loads, splits, merges. */
  public static final class FactRow {
    public static final char TYPE = 'g';
    public static final byte[] BULK_LOAD_MS = Bytes.toBytes("b");
    public static final byte[] LOCAL_LOAD_MS = Bytes.toBytes("u");
    public static final byte[] LINEAGE = Bytes.toBytes("l");
    public static final byte[] REGION_ID = Bytes.toBytes("i");
    public static final byte[] CHILD_MS = Bytes.toBytes("c");
    public static final byte[] TABLE = Bytes.toBytes("t");

    private FactRow() {}
  }

  /** The content ledger of a region. */
  public static final class ContentRow {
    public static final char TYPE = 'f';
    /** Prefix, followed by the origin and the time of the opening. */
    public static final byte[] TENURE = Bytes.toBytes("k");
    public static final byte[] REGION_ID = Bytes.toBytes("i");
    public static final byte[] TABLE = Bytes.toBytes("t");

    private ContentRow() {}
  }

  /** Events of a table outside the WAL, and the clusters that wrote to it. */
  public static final class TableEventRow {
    public static final char TYPE = 'n';
    /**
     * The earlier of two arrivals, or births, has to win, but HBase keeps the cell with the higher timestamp:
     * subtracting from this constant reverses the order.
     */
    public static final long EARLIEST_WINS = 1L << 62;
    public static final byte[] ARRIVED_MS = Bytes.toBytes("a");
    public static final byte[] BORN_MS = Bytes.toBytes("b");
    public static final byte[] FIRST_BORN_MS = Bytes.toBytes("c");
    /** Prefix, followed by the family's name. */
    public static final byte[] DROPPED_MS = Bytes.toBytes("f");
    /** Prefix, followed by the family's name. */
    public static final byte[] RAISED_MS = Bytes.toBytes("g");
    public static final byte[] SKIPPED_MS = Bytes.toBytes("w");
    /** Prefix, followed by cluster ids. */
    public static final byte[] WRITTEN_MS = Bytes.toBytes("l");
    /** Prefix, followed by cluster ids. */
    public static final byte[] FIRST_WRITTEN_MS = Bytes.toBytes("e");
    /** Prefix, followed by cluster ids. */
    public static final byte[] DELETED_MS = Bytes.toBytes("d");
    public static final byte[] TAGGED_MS = Bytes.toBytes("k");

    private TableEventRow() {}
  }

  /** A region server in one {@code ServerRole}. */
  public static final class ServerRow {
    public static final char TYPE = 'o';
    public static final byte[] NAME = Bytes.toBytes("n");
    public static final byte[] FLUSHED_MS = Bytes.toBytes("f");
    /** Prefix, followed by a peer id. Written by the tool. */
    public static final byte[] SETTLED = Bytes.toBytes("d");
    public static final byte[] ECHO = Bytes.toBytes("e");
    public static final byte[] READ_MS = Bytes.toBytes("m");
    public static final byte[] FINAL_MS = Bytes.toBytes("z");
    public static final byte[] GONE_MS = Bytes.toBytes("x");
    public static final byte[] VERSION = Bytes.toBytes("v");
    public static final byte[] HEALTH = Bytes.toBytes("q");
    /** Number of this version of the row; only rises. */
    public static final byte[] LAST = Bytes.toBytes("k");

    private ServerRow() {}
  }

  /** A table's descriptor, as of a barrier. */
  public static final class TableRow {
    public static final char TYPE = 't';
    public static final byte[] DESCRIPTOR = Bytes.toBytes("d");
    public static final byte[] ECHO = Bytes.toBytes("e");

    private TableRow() {}
  }

  /** Remains of a table's pruned heads. Written by the tool. */
  public static final class PrunedRow {
    public static final char TYPE = 'p';
    /** Prefix, followed by cluster ids. */
    public static final byte[] WRITTEN_MS = Bytes.toBytes("w");

    private PrunedRow() {}
  }

  /** Proofs kept of a table's past, by its rows or the operator's word. Written by the tool, on the slave. */
  public static final class ProvenRow {
    public static final char TYPE = 'v';
    /** Prefix, followed by the cluster id of a master. */
    public static final byte[] PROVEN = Bytes.toBytes("p");

    private ProvenRow() {}
  }

  /** The barrier. Written by the tool, but for the claim. */
  public static final class BarrierRow {
    public static final byte[] KEY = Bytes.toBytes("b");
    public static final byte[] TOKEN = Bytes.toBytes("k");
    public static final byte[] ISSUED_MS = Bytes.toBytes("m");
    /** Another value if a region of the state table was opened since the last barrier. */
    public static final byte[] OPENINGS = Bytes.toBytes("o");
    public static final byte[] DOORBELL = Bytes.toBytes("d");
    public static final byte[] PRUNING = Bytes.toBytes("p");
    public static final byte[] TABLE_ID = Bytes.toBytes("i");
    public static final byte[] CLAIM = Bytes.toBytes("c");

    private BarrierRow() {}
  }

  /** Times since which every region server of the cluster has had a tracker. */
  public static final class CoverageRow {
    public static final byte[] KEY = Bytes.toBytes("c");
    /** Since when each has had a write-time tracker. */
    public static final byte[] START_MS = Bytes.toBytes("a");
    /** Since when each has had a replicate-time tracker. */
    public static final byte[] SLAVE_START_MS = Bytes.toBytes("s");
    /** Since when this table has been kept, by whatever tracker. Never moved. */
    public static final byte[] KEPT_MS = Bytes.toBytes("k");
    /** Time when the table was last found to have lost rows, or to have gone back to an earlier state. */
    public static final byte[] BACK_MS = Bytes.toBytes("b");
    /** A number that only rises; a file beside the table has it as well, see {@link TableMark}. */
    public static final byte[] MARK = Bytes.toBytes("m");
    /** The number that each region of the table has at least, and in which rows. */
    public static final byte[] REGIONS = Bytes.toBytes("r");

    private CoverageRow() {}
  }

  /** Facts that the tool keeps for itself. */
  public static final class ToolRow {
    public static final byte[] KEY = Bytes.toBytes("d");
    public static final byte[] SHUTDOWN_MS = Bytes.toBytes("s");
    /** Prefix, followed by the cluster id of a master. */
    public static final byte[] PRUNED_BY = Bytes.toBytes("p");

    private ToolRow() {}
  }
}
