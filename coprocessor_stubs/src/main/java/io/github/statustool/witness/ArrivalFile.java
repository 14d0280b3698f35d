package io.github.statustool.witness;

import java.io.Closeable;
import java.io.IOException;
import java.nio.ByteBuffer;
import java.nio.channels.FileChannel;
import java.nio.file.Files;
import java.nio.file.Path;
import java.nio.file.StandardOpenOption;
import java.util.zip.CRC32C;

/**
 * A file of records, each preceded by its length and CRC32C (4 bytes each, big endian). Many threads append and then
 * wait for their bytes to be on disk; one {@code fsync} serves all that wait.
 */
final class ArrivalFile implements Closeable {
  private static final int HEAD = 8;

  /** Brings what was written to the disk. */
  interface Disk {
    void force(FileChannel written) throws IOException;
  }

  private final FileChannel channel;
  private final Disk disk;
  private final ArrivalCodec codec = new ArrivalCodec();
  private final Object forcing = new Object();
  private volatile long written;
  private long forced;
  private IOException failed;

  /** Creates the file, which must not exist. */
  ArrivalFile(Path file) throws IOException {
    this(file, written -> written.force(false));
  }

  ArrivalFile(Path file, Disk disk) throws IOException {
    this.disk = disk;
    channel = FileChannel.open(file, StandardOpenOption.CREATE_NEW, StandardOpenOption.WRITE);
  }

  /** Returns the position up to which {@link #force} must be called. One thread at a time. */
  long append(Arrivals arrivals) throws IOException {
    return append(codec.encode(arrivals));
  }

  /** Appends runs of any length. */
  long appendRuns(Arrivals arrivals) throws IOException {
    return append(codec.encodeRuns(arrivals));
  }

  private long append(byte[] body) throws IOException {
    ByteBuffer record = ByteBuffer.allocate(HEAD + body.length);
    record.putInt(body.length).putInt(crc(body, 0, body.length)).put(body).flip();
    while (record.hasRemaining()) {
      channel.write(record);
    }
    written += HEAD + body.length;
    return written;
  }

  /** Returns how many bytes were appended. */
  long written() {
    return written;
  }

  /** Returns once all bytes before that position are on disk. */
  void force(long position) throws IOException {
    synchronized (forcing) {
      if (forced < position) {
        // The kernel tells of a loss once: the next fsync would succeed, and acknowledge it for the threads that wait.
        if (failed != null) {
          throw failed;
        }
        long reached = written;
        try {
          disk.force(channel);
        } catch (IOException error) {
          failed = error;
          throw error;
        }
        forced = reached;
      }
    }
  }

  /** Closes the file, whose content is on disk elsewhere by now. */
  void supersede() throws IOException {
    synchronized (forcing) {
      forced = written;
      channel.close();
    }
  }

  @Override
  public void close() throws IOException {
    force(written);
    channel.close();
  }

  /**
   * Reads a log. A record at the end that was not written whole was never acknowledged, and is left out.
   *
   * @throws IOException also if a damaged record is followed by a whole one, as that one may have been acknowledged
   */
  static Arrivals read(Path file) throws IOException {
    return read(file, false, false);
  }

  /**
   * Reads a set.
   *
   * @throws IOException also if it is not whole, which it was when it got its name
   */
  static Arrivals readSet(Path file) throws IOException {
    return read(file, true, false);
  }

  /** Reads a file of {@link #appendRuns} as {@link #readSet} reads a set. */
  static Arrivals readRuns(Path file) throws IOException {
    return read(file, true, true);
  }

  private static Arrivals read(Path file, boolean isSealed, boolean areRuns) throws IOException {
    Arrivals arrivals = new Arrivals();
    ArrivalCodec codec = new ArrivalCodec();
    byte[] bytes = Files.readAllBytes(file);
    int at = 0;
    while (isWhole(bytes, at)) {
      byte[] body = new byte[length(bytes, at)];
      System.arraycopy(bytes, at + HEAD, body, 0, body.length);
      if (areRuns) {
        codec.decodeRuns(body, arrivals);
      } else {
        codec.decode(body, arrivals);
      }
      at += HEAD + body.length;
    }
    boolean isCut = isSealed && (at == 0 || at < bytes.length);
    if (isCut || at + HEAD < bytes.length && isWhole(bytes, at + HEAD + Math.max(0, length(bytes, at)))) {
      throw new IOException(file + " is damaged at byte " + at + ": entries that were acknowledged are lost");
    }
    return arrivals;
  }

  /** Returns where the last whole record ends. */
  static long end(Path file) throws IOException {
    byte[] bytes = Files.readAllBytes(file);
    int at = 0;
    while (isWhole(bytes, at)) {
      at += HEAD + length(bytes, at);
    }
    return at;
  }

  private static boolean isWhole(byte[] bytes, long at) {
    if (at < 0 || at + HEAD > bytes.length) {
      return false;
    }
    int start = (int) at;
    int length = length(bytes, start);
    // A file system may leave zeros where a write was cut short.
    return length > 0
        && length <= bytes.length - start - HEAD
        && ByteBuffer.wrap(bytes).getInt(start + 4) == crc(bytes, start + HEAD, length);
  }

  private static int length(byte[] bytes, int at) {
    return ByteBuffer.wrap(bytes).getInt(at);
  }

  private static int crc(byte[] bytes, int offset, int length) {
    CRC32C crc = new CRC32C();
    crc.update(bytes, offset, length);
    return (int) crc.getValue();
  }
}
