package io.github.statustool;

import java.util.zip.CRC32C;

/**
 * Encodes and decodes the stamp of an entry: version, origin, prev, via, write time of prev, number of cells by
 * replicated family, and a CRC32C that also covers the entry's own sequence id, so that a stamp is valid only for the
 * entry that it was made for. Also decodes version 1, which ends after via.
 *
 * <p>Reuses its buffers and the last decoded stamp: nothing but a new stamp is allocated. Not thread-safe.
 */
final class StampCodec {
  static final String ATTRIBUTE = "status-tool";
  /** The write time of prev in a stamp of version 1, which has none. */
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
  /** Maximum length of a stamp. */
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

  /** Returns false for a foreign stamp: one of another length or version, damaged, or made for another entry. */
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

  /** Whether the stamp contains the number of the entry's cells. */
  boolean isCounted() {
    return counted;
  }

  /** Number of cells by replicated family, as the entry was written. */
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
