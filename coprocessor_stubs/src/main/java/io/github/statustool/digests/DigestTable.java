package io.github.statustool.digests;

import org.apache.hadoop.hbase.util.Bytes;


/**
 * The rows and columns of the request table of row digests by name, as {@code StateTable} has those of the state table.
 * It has the same column family.
 */
final class DigestTable {
  private DigestTable() {}

  /** A request. Written by the tool. */
  static final class RequestRow {
    static final char TYPE = 'q';
    static final byte[] REQUEST = Bytes.toBytes("d");
    static final byte[] HEARTBEAT = Bytes.toBytes("h");
    static final byte[] WITHDRAWN = Bytes.toBytes("x");

    private RequestRow() {}
  }

  /** A page of ranges for one region server. Written by the tool. */
  static final class PageRow {
    static final char TYPE = 'p';
    static final byte[] RANGES = Bytes.toBytes("r");

    private PageRow() {}
  }

  /** Sign that a region server works on a request. */
  static final class ProgressRow {
    static final char TYPE = 's';
    static final byte[] VERSION = Bytes.toBytes("v");

    private ProgressRow() {}
  }

  /** Answers of a region server. */
  static final class AnswerRow {
    static final char TYPE = 'a';
    static final byte[] ANSWERS = Bytes.toBytes("a");

    private AnswerRow() {}
  }
}
