package io.github.statustool;

import java.util.zip.CRC32C;

/**
 * What travels with an entry: version, origin, prev, via, the write time of prev, the number of cells by replicated
 * family, and a CRC32C that also covers the entry's own sequence id, so that a stamp holds only for the entry it was
 * made for. Stamps of version 1, which end after via, are read as well.
 *
 * <p>Holds its scratch space and the last decoded stamp, so that nothing but a new stamp is ever allocated. For one
 * thread at a time.
 */
final class StampCodec {
  static final String ATTRIBUTE = "status-tool";
  /** Instead of a write time: a stamp of version 1 does not tell. */
  static final long UNKNOWN_TIME = -1;
  private static final byte FIRST_VERSION = 1;
  private static final byte VERSION = 2;
  private static final int ORIGIN = 1;
  private static final int PREV = 9;
  private static final int VIA = 17;
  private static final int FIRST_VERSION_END = 25;
  private static final int PREV_TIME = 25;
  private static final int FAMILIES = 33;
  private static final int FIRST_FAMILY = 34;
  private static final int FAMILY_LENGTH = 2 * Integer.BYTES;
  private static final int CRC_LENGTH = Integer.BYTES;
  /** No stamp is longer. */
  static final int MAX_LENGTH = FIRST_FAMILY + FamilyCells.MOST * FAMILY_LENGTH + CRC_LENGTH;

  private final CRC32C crc = new CRC32C();
  private final byte[] sequenceId = new byte[Long.BYTES];
  private final FamilyCells cells = new FamilyCells();
  private boolean counted;
  private long origin;
  private long prev;
  private long via;
  private long prevTime;

  byte[] encode(long newOrigin, long newPrev, long newPrevTime, long newVia, FamilyCells newCells, long seq) {
    int end = FIRST_FAMILY + newCells.size() * FAMILY_LENGTH;
    byte[] bytes = new byte[end + CRC_LENGTH];
    bytes[0] = VERSION;
    Bits.putLong(bytes, ORIGIN, newOrigin);
    Bits.putLong(bytes, PREV, newPrev);
    Bits.putLong(bytes, VIA, newVia);
    Bits.putLong(bytes, PREV_TIME, newPrevTime);
    bytes[FAMILIES] = (byte) newCells.size();
    for (int i = 0; i < newCells.size(); i++) {
      Bits.putInt(bytes, FIRST_FAMILY + i * FAMILY_LENGTH, newCells.id(i));
      Bits.putInt(bytes, FIRST_FAMILY + i * FAMILY_LENGTH + Integer.BYTES, newCells.count(i));
    }
    Bits.putInt(bytes, end, crc(bytes, end, seq));
    return bytes;
  }

  /** Returns false for a foreign stamp: of another length or version, damaged, or made for another entry. */
  boolean decode(byte[] bytes, int length, long seq) {
    int end = length - CRC_LENGTH;
    if (!isOfKnownForm(bytes, end) || Bits.getInt(bytes, end) != crc(bytes, end, seq)) {
      return false;
    }
    origin = Bits.getLong(bytes, ORIGIN);
    prev = Bits.getLong(bytes, PREV);
    via = Bits.getLong(bytes, VIA);
    counted = bytes[0] == VERSION;
    prevTime = counted ? Bits.getLong(bytes, PREV_TIME) : UNKNOWN_TIME;
    cells.clear();
    for (int at = FIRST_FAMILY; counted && at < end; at += FAMILY_LENGTH) {
      cells.add(Bits.getInt(bytes, at), Bits.getInt(bytes, at + Integer.BYTES));
    }
    return prev >= 0 && prev < seq;
  }

  private static boolean isOfKnownForm(byte[] bytes, int end) {
    if (end == FIRST_VERSION_END) {
      return bytes[0] == FIRST_VERSION;
    }
    return end >= FIRST_FAMILY && bytes[0] == VERSION
        && end == FIRST_FAMILY + (bytes[FAMILIES] & 0xff) * FAMILY_LENGTH;
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

  /** The highest write time of the stream up to prev; 0 for its first entry, or {@link #UNKNOWN_TIME}. */
  long prevTime() {
    return prevTime;
  }

  /** Whether the stamp tells how many cells the entry has. */
  boolean isCounted() {
    return counted;
  }

  /** The cells that the entry was written with, of families that are replicated. */
  FamilyCells cells() {
    return cells;
  }

  private int crc(byte[] stamp, int end, long seq) {
    Bits.putLong(sequenceId, 0, seq);
    crc.reset();
    crc.update(stamp, 0, end);
    crc.update(sequenceId, 0, sequenceId.length);
    return (int) crc.getValue();
  }
}
