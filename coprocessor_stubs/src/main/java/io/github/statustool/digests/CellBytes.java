package io.github.statustool.digests;

import java.io.IOException;
import java.io.OutputStream;
import java.io.UncheckedIOException;
import java.nio.ByteBuffer;
import java.util.Arrays;
import org.apache.hadoop.hbase.Cell;
import org.apache.hadoop.hbase.PrivateCellUtil;
import org.apache.hadoop.hbase.io.ByteBufferWriter;
import org.apache.hadoop.hbase.util.Bytes;

/**
 * A cell's KeyValue without tags, to be read as one array. Nearly every cell is one already, in a block, and writes
 * itself at once: out of an array it is not copied.
 */
final class CellBytes extends OutputStream implements ByteBufferWriter {
  private static final int SPARE = 4 << 20;

  private byte[] own = new byte[1024];
  byte[] bytes = own;
  int offset;
  int length;

  /** Valid until the next cell is set, and as long as the cell's block has not been shipped. */
  void set(Cell cell) {
    bytes = own;
    offset = 0;
    length = 0;
    try {
      PrivateCellUtil.writeCell(cell, this, false);
    } catch (IOException e) {
      throw new UncheckedIOException(e); // never: nothing here throws one
    }
  }

  @Override
  public void write(byte[] from, int at, int count) {
    if (length == 0) {
      bytes = from;
      offset = at;
      length = count;
    } else {
      int to = reserve(count);
      System.arraycopy(from, at, bytes, to, count);
    }
  }

  @Override
  public void write(ByteBuffer from, int at, int count) {
    int to = reserve(count);
    from.duplicate().position(at).get(bytes, to, count);
  }

  @Override
  public void writeInt(int value) {
    int to = reserve(Integer.BYTES);
    Bytes.putInt(bytes, to, value);
  }

  @Override
  public void write(int value) {
    int to = reserve(1);
    bytes[to] = (byte) value;
  }

  /** Returns where so many more bytes go, in the array of our own. */
  private int reserve(int count) {
    int at = length;
    length += count;
    if (bytes != own || own.length < length || own.length > Math.max(SPARE, length)) {
      own = Arrays.copyOfRange(bytes, offset, offset + Math.max(length, Math.min(2 * length, SPARE)));
      bytes = own;
      offset = 0;
    }
    return at;
  }
}
