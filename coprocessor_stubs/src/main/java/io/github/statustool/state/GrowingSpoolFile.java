package io.github.statustool.state;

import java.io.IOException;
import java.nio.charset.StandardCharsets;
import java.util.List;
import org.apache.hadoop.fs.FSDataOutputStream;
import org.apache.hadoop.fs.Path;

/**
 * A spool file that is appended to. What has been appended survives this server: it has reached the DataNodes, without
 * asking the NameNode each time. Not thread-safe.
 */
public final class GrowingSpoolFile {
  /** {@code StreamCapabilities.HFLUSH}, which older versions of Hadoop name differently. */
  private static final String HFLUSH = "hflush";
  private static final long SMALL = 1 << 20;
  /** A file in which the same rows are repeated so often is replaced by one that has each of them once. */
  private static final int REPETITIONS = 4;

  public final Path path;
  private final FSDataOutputStream out;
  private final boolean flushes;
  private long first;
  private long size;

  GrowingSpoolFile(Path path, FSDataOutputStream out) {
    this.path = path;
    this.out = out;
    this.flushes = out.hasCapability(HFLUSH);
  }

  public void append(List<StateRow> rows) throws IOException {
    long bytes = 0;
    for (StateRow row : rows) { // one by one: after a long outage all of them are much
      byte[] line = SpoolLine.terminated(row).getBytes(StandardCharsets.UTF_8);
      out.write(line);
      bytes += line.length;
    }
    if (flushes) {
      out.hflush();
    } else {
      out.close(); // a local or an erasure-coded file
    }
    // After the flush: a file whose every append failed counts as empty, whatever has reached a DataNode.
    size += bytes;
    first = first == 0 ? size : first;
  }

  /** Returns true if what is appended survives this server without another file each time. */
  public boolean flushes() {
    return flushes;
  }

  /** Returns true if no append to it has succeeded. */
  public boolean isEmpty() {
    return size == 0;
  }

  /** Returns true if another file is to be begun. */
  public boolean isFull() {
    // Without hflush() the stream is closed already, and takes nothing more.
    return !flushes || size > Math.max(SMALL, REPETITIONS * first);
  }

  public void close() throws IOException {
    out.close();
  }
}
