package io.github.statustool.streams;

import java.util.zip.CRC32C;
import org.apache.hadoop.hbase.util.Bytes;

/**
 * Encodes and decodes the stamp of an entry: version, origin, via, and for each replicated family the number of cells
 * and the previous entry with cells of that family. A CRC32C also covers the entry's own sequence id, so that a stamp
 * is valid only for the entry that it was made for.
 *
 * <p>Reuses its buffers and the last decoded stamp: nothing but a new stamp is allocated. Not thread-safe.
 */
final class StampCodec {
  static final String ATTRIBUTE = "status-tool";
  /** The write time of an entry's previous one where nobody has recorded it: the entry has no stamp. */
  static final long UNKNOWN_TIME = -1;
  private static final byte VERSION = 3;
  private static final int ORIGIN = 1;
  private static final int VIA = 9;
  private static final int FAMILIES = 17;
  private static final int FIRST_FAMILY = 18;
  private static final int CELLS = Integer.BYTES;
  private static final int PREV = 2 * Integer.BYTES;
  private static final int PREV_TIME = PREV + Long.BYTES;
  private static final int FAMILY_LENGTH = PREV_TIME + Long.BYTES;
  private static final int CRC_LENGTH = Integer.BYTES;
  /** Maximum length of a stamp. */
  static final int MAX_LENGTH = FIRST_FAMILY + FamilyCells.MOST * FAMILY_LENGTH + CRC_LENGTH;

  private final CRC32C crc = new CRC32C();
  private final byte[] sequenceId = new byte[Long.BYTES];
  private final FamilyCells cells = new FamilyCells();
  private long origin;
  private long via;

  /** @param newCells with the previous entry of each family */
  byte[] encode(long newOrigin, long newVia, FamilyCells newCells, long seq) {
    int end = FIRST_FAMILY + newCells.size() * FAMILY_LENGTH;
    byte[] bytes = new byte[end + CRC_LENGTH];
    bytes[0] = VERSION;
    Bytes.putLong(bytes, ORIGIN, newOrigin);
    Bytes.putLong(bytes, VIA, newVia);
    bytes[FAMILIES] = (byte) newCells.size();
    for (int i = 0; i < newCells.size(); i++) {
      int at = FIRST_FAMILY + i * FAMILY_LENGTH;
      Bytes.putInt(bytes, at, newCells.id(i));
      Bytes.putInt(bytes, at + CELLS, newCells.count(i));
      Bytes.putLong(bytes, at + PREV, newCells.prev(i));
      Bytes.putLong(bytes, at + PREV_TIME, newCells.prevTime(i));
    }
    Bytes.putInt(bytes, end, crc(bytes, end, seq));
    return bytes;
  }

  /** Returns false for a foreign stamp: one of another length or version, damaged, or made for another entry. */
  boolean decode(byte[] bytes, int length, long seq) {
    int end = length - CRC_LENGTH;
    if (!isOfKnownForm(bytes, end) || Bytes.toInt(bytes, end) != crc(bytes, end, seq)) {
      return false;
    }
    origin = Bytes.toLong(bytes, ORIGIN);
    cells.clear();
    via = Bytes.toLong(bytes, VIA);
    for (int at = FIRST_FAMILY; at < end; at += FAMILY_LENGTH) {
      long before = Bytes.toLong(bytes, at + PREV);
      // A segment (prev, seq] must not be empty or begin below 0; a family that comes twice would add up two counts.
      if (before < 0 || before >= seq || cells.indexOf(Bytes.toInt(bytes, at)) >= 0) {
        return false;
      }
      cells.add(Bytes.toInt(bytes, at), Bytes.toInt(bytes, at + CELLS));
      cells.follow(cells.size() - 1, before, Bytes.toLong(bytes, at + PREV_TIME));
    }
    return true;
  }

  private static boolean isOfKnownForm(byte[] bytes, int end) {
    return end > FIRST_FAMILY && bytes[0] == VERSION
        && end == FIRST_FAMILY + (bytes[FAMILIES] & 0xff) * FAMILY_LENGTH;
  }

  long origin() {
    return origin;
  }

  /** Returns the via of the entry. */
  long via() {
    return via;
  }

  /** Returns the number of cells by replicated family, as the entry was written. */
  FamilyCells cells() {
    return cells;
  }

  private int crc(byte[] stamp, int end, long seq) {
    Bytes.putLong(sequenceId, 0, seq);
    crc.reset();
    crc.update(stamp, 0, end);
    crc.update(sequenceId, 0, sequenceId.length);
    return (int) crc.getValue();
  }
}
