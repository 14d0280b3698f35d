package io.github.statustool;

import java.util.zip.CRC32C;

/**
 * The 29 bytes that travel with an entry: version, origin, prev, via and a CRC32C that also covers the entry's own
 * sequence id, so that a stamp holds only for the entry it was made for.
 *
 * <p>Holds its scratch space and the last decoded stamp, so that nothing but a new stamp is ever allocated. For one
 * thread at a time.
 */
final class StampCodec {
  static final String ATTRIBUTE = "status-tool";
  static final int LENGTH = 29;
  private static final byte VERSION = 1;
  private static final int ORIGIN = 1;
  private static final int PREV = 9;
  private static final int VIA = 17;
  private static final int CRC = 25;

  private final CRC32C crc = new CRC32C();
  private final byte[] scratch = new byte[CRC + Long.BYTES];
  private long origin;
  private long prev;
  private long via;

  byte[] encode(long newOrigin, long newPrev, long newVia, long seq) {
    byte[] bytes = new byte[LENGTH];
    bytes[0] = VERSION;
    Bits.putLong(bytes, ORIGIN, newOrigin);
    Bits.putLong(bytes, PREV, newPrev);
    Bits.putLong(bytes, VIA, newVia);
    Bits.putInt(bytes, CRC, crc(bytes, seq));
    return bytes;
  }

  /** Returns false for a foreign stamp: of another length or version, damaged, or made for another entry. */
  boolean decode(byte[] bytes, int length, long seq) {
    if (length != LENGTH || bytes[0] != VERSION || Bits.getInt(bytes, CRC) != crc(bytes, seq)) {
      return false;
    }
    origin = Bits.getLong(bytes, ORIGIN);
    prev = Bits.getLong(bytes, PREV);
    via = Bits.getLong(bytes, VIA);
    return prev >= 0 && prev < seq;
  }

  long origin() {
    return origin;
  }

  long prev() {
    return prev;
  }

  long via() {
    return via;
  }

  private int crc(byte[] stamp, long seq) {
    System.arraycopy(stamp, 0, scratch, 0, CRC);
    Bits.putLong(scratch, CRC, seq);
    crc.reset();
    crc.update(scratch, 0, scratch.length);
    return (int) crc.getValue();
  }
}
