package io.github.statustool.digests;

import io.github.statustool.state.StateRow;
import io.github.statustool.state.StoredRow;
import java.io.Closeable;
import java.io.IOException;
import java.util.List;

/** The table of digest requests and their answers. Every call is bounded in time. */
interface RequestTable extends Closeable {
  /** Reads a row; empty if it is absent. */
  StoredRow get(byte[] key) throws IOException;

  /** Reads the first row in {@code [start, stop)}; null if there is none. */
  StoredRow first(byte[] start, byte[] stop) throws IOException;

  void put(List<StateRow> rows) throws IOException;
}
