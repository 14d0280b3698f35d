package io.github.statustool;

import java.util.ArrayList;
import java.util.List;
import java.util.stream.Collectors;
import java.util.stream.IntStream;

/**
 * The rows and columns of the state table by name: one class per kind of row, with its row key's first byte
 * ({@code TYPE}) or its whole row key ({@code KEY}), and one constant per qualifier. Of a qualifier that is called a
 * prefix, only the first byte is here. docs/formats.md describes the values; the tool's Python uses the same names.
 */
final class StateTable {
  static final byte[] FAMILY = Bits.ascii("t");

  /** Up to so many region servers, heads and segments have four regions each. */
  private static final int FEW_SERVERS = 16;
  private static final int MOST_DIGITS = 2;

  private StateTable() {}

  /**
   * Where the table of a new cluster is split: every region server writes heads, or segments, so there are more regions
   * of them where there are more servers: 4, 16 or 256 each.
   */
  static byte[][] splitKeys(int servers) {
    List<String> keys = new ArrayList<>();
    for (char type : new char[] {HeadRow.TYPE, SegmentRow.TYPE}) {
      for (String digits : servers <= FEW_SERVERS ? List.of("4", "8", "c") : leadingDigits(servers)) {
        keys.add(type + digits);
      }
      keys.add(String.valueOf((char) (type + 1)));
    }
    return keys.stream().map(Bits::ascii).toArray(byte[][]::new);
  }

  /** All hex numbers of one digit, or of two where there are more servers than regions. */
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
  static final class HeadRow {
    static final char TYPE = 'h';
    static final byte[] SEQ = Bits.ascii("s");
    static final byte[] WRITE_MS = Bits.ascii("w");
    static final byte[] FIRST_MS = Bits.ascii("f");
    static final byte[] ENTRIES = Bits.ascii("n");
    static final byte[] TABLE = Bits.ascii("t");
    static final byte[] START_KEY = Bits.ascii("k");
    static final byte[] END_KEY = Bits.ascii("e");
    static final byte[] VIA_IDS = Bits.ascii("v");
    static final byte[] FAMILY = Bits.ascii("c");

    private HeadRow() {}
  }

  /** The segments of a stream: what has been applied of it. */
  static final class SegmentRow {
    static final char TYPE = 's';
    /** Prefix, followed by 8 random bytes: the segments that one writer knows. */
    static final byte[] WRITER = Bits.ascii("c");
    /** Prefix, followed by a family id. */
    static final byte[] PARTIAL = Bits.ascii("m");
    /** Prefix, followed by prev and seq: one segment, as trackers before version 2 wrote it. */
    static final byte[] SINGLE = Bits.ascii("p");
    static final byte[] REPLICATED_MS = Bits.ascii("r");
    static final byte[] TABLE = Bits.ascii("t");
    static final byte[] FAMILY = Bits.ascii("f");

    private SegmentRow() {}
  }

  /** Entries of a region that arrived without a valid stamp. */
  static final class UnstampedRow {
    static final char TYPE = 'u';
    /** Prefix, followed by cluster ids. */
    static final byte[] WRITE_MS = Bits.ascii("r");
    /** Prefix, followed by cluster ids. */
    static final byte[] ENTRIES = Bits.ascii("n");
    static final byte[] TABLE = Bits.ascii("t");

    private UnstampedRow() {}
  }

  /** Facts about a region: bulk loads, splits, merges. */
  static final class FactRow {
    static final char TYPE = 'g';
    static final byte[] BULK_LOAD_MS = Bits.ascii("b");
    static final byte[] LOCAL_LOAD_MS = Bits.ascii("u");
    static final byte[] LINEAGE = Bits.ascii("l");
    static final byte[] REGION_ID = Bits.ascii("i");
    static final byte[] CHILD_MS = Bits.ascii("c");
    static final byte[] TABLE = Bits.ascii("t");

    private FactRow() {}
  }

  /** The content ledger of a region. */
  static final class ContentRow {
    static final char TYPE = 'f';
    /** Prefix, followed by the origin and the time of the opening. */
    static final byte[] TENURE = Bits.ascii("k");
    static final byte[] REGION_ID = Bits.ascii("i");
    static final byte[] TABLE = Bits.ascii("t");

    private ContentRow() {}
  }

  /** What happened to a table beside the WAL, and who wrote to it. */
  static final class TableEventRow {
    static final char TYPE = 'n';
    static final byte[] ARRIVED_MS = Bits.ascii("a");
    static final byte[] BORN_MS = Bits.ascii("b");
    static final byte[] FIRST_BORN_MS = Bits.ascii("c");
    /** Prefix, followed by the family's name. */
    static final byte[] DROPPED_MS = Bits.ascii("f");
    /** Prefix, followed by the family's name. */
    static final byte[] RAISED_MS = Bits.ascii("g");
    static final byte[] SKIPPED_MS = Bits.ascii("w");
    static final byte[] WRITTEN_MS = Bits.ascii("l");
    static final byte[] DELETED_MS = Bits.ascii("d");
    static final byte[] TAGGED_MS = Bits.ascii("k");

    private TableEventRow() {}
  }

  /** A region server in one {@link ServerRole}. */
  static final class ServerRow {
    static final char TYPE = 'o';
    static final byte[] NAME = Bits.ascii("n");
    static final byte[] STARTED_MS = Bits.ascii("a");
    static final byte[] FLUSHED_MS = Bits.ascii("f");
    /** Prefix, followed by a peer id. Written by the tool. */
    static final byte[] SETTLED = Bits.ascii("d");
    static final byte[] ECHO = Bits.ascii("e");
    static final byte[] READ_MS = Bits.ascii("m");
    static final byte[] FINAL_MS = Bits.ascii("z");
    static final byte[] GONE_MS = Bits.ascii("x");
    static final byte[] VERSION = Bits.ascii("v");
    static final byte[] HEALTH = Bits.ascii("q");
    /** Number of this version of the row; only rises. */
    static final byte[] LAST = Bits.ascii("k");

    private ServerRow() {}
  }

  /** A table's descriptor, as of a barrier. */
  static final class TableRow {
    static final char TYPE = 't';
    static final byte[] DESCRIPTOR = Bits.ascii("d");
    static final byte[] ECHO = Bits.ascii("e");

    private TableRow() {}
  }

  /** What remains of a table's pruned heads. Written by the tool. */
  static final class PrunedRow {
    static final char TYPE = 'p';
    /** Prefix, followed by cluster ids. */
    static final byte[] WRITTEN_MS = Bits.ascii("w");

    private PrunedRow() {}
  }

  /** What digests of a table's rows have proven. Written by the tool, on the slave. */
  static final class ProvenRow {
    static final char TYPE = 'v';
    /** Prefix, followed by the cluster id of a master. */
    static final byte[] PROVEN = Bits.ascii("p");

    private ProvenRow() {}
  }

  /** The barrier. Written by the tool, but for the claim. */
  static final class BarrierRow {
    static final byte[] KEY = Bits.ascii("b");
    static final byte[] TOKEN = Bits.ascii("k");
    static final byte[] ISSUED_MS = Bits.ascii("m");
    static final byte[] DOORBELL = Bits.ascii("d");
    static final byte[] PRUNING = Bits.ascii("p");
    static final byte[] TABLE_ID = Bits.ascii("i");
    static final byte[] CLAIM = Bits.ascii("c");

    private BarrierRow() {}
  }

  /** Since when every region server of the cluster has had a tracker. */
  static final class CoverageRow {
    static final byte[] KEY = Bits.ascii("c");
    static final byte[] START_MS = Bits.ascii("a");
    /** When the table was last found to have lost rows, or to have gone back to an earlier state. */
    static final byte[] BACK_MS = Bits.ascii("b");
    /** A number that only rises; a file beside the table has it as well, see {@link TableMark}. */
    static final byte[] MARK = Bits.ascii("m");

    private CoverageRow() {}
  }

  /** What the tool keeps for itself. */
  static final class ToolRow {
    static final byte[] KEY = Bits.ascii("d");
    static final byte[] SHUTDOWN_MS = Bits.ascii("s");
    /** Prefix, followed by the cluster id of a master. */
    static final byte[] PRUNED_BY = Bits.ascii("p");

    private ToolRow() {}
  }
}
