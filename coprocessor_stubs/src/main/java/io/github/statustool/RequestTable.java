package io.github.statustool;

import java.io.Closeable;
import java.io.IOException;
import java.util.List;

/** The table of digest requests and their answers. Every call is bounded in time. */
interface RequestTable extends Closeable {
  /** The row, empty if there is none. */
  StoredRow get(byte[] key) throws IOException;

  /** The first row of {@code [start, stop)}, or null. */
  StoredRow first(byte[] start, byte[] stop) throws IOException;

  void put(List<StateRow> rows) throws IOException;
}
