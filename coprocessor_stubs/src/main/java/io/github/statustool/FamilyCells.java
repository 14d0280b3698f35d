package io.github.statustool;

import java.util.Arrays;
import java.util.zip.CRC32C;

/** Number of cells per family, by family id. Reused, so that counting allocates nothing. Not thread-safe. */
final class FamilyCells {
  /** The stamp stores the number of families in one byte. */
  static final int MOST = 255;
  /** Family id of cells whose family is not known. */
  static final int UNKNOWN = 0;

  private int[] ids = new int[4];
  private int[] counts = new int[4];
  private int size;

  /**
   * The family id: CRC32C of the name, never {@link #UNKNOWN}. The tool computes the same for the families in scope.
   */
  static int id(byte[] family) {
    CRC32C crc = new CRC32C();
    crc.update(family, 0, family.length);
    int id = (int) crc.getValue();
    return id == UNKNOWN ? 1 : id;
  }

  void clear() {
    size = 0;
  }

  /** Adds cells of a family. Families beyond what a stamp can hold are counted together, as {@link #UNKNOWN}. */
  void add(int id, int count) {
    for (int i = 0; i < size; i++) {
      if (ids[i] == id) {
        counts[i] += count;
        return;
      }
    }
    if (size >= MOST - 1 && id != UNKNOWN) {
      add(UNKNOWN, count);
      return;
    }
    if (size == ids.length) {
      ids = Arrays.copyOf(ids, 2 * size);
      counts = Arrays.copyOf(counts, 2 * size);
    }
    ids[size] = id;
    counts[size++] = count;
  }

  int size() {
    return size;
  }

  int id(int index) {
    return ids[index];
  }

  int count(int index) {
    return counts[index];
  }

  int of(int id) {
    for (int i = 0; i < size; i++) {
      if (ids[i] == id) {
        return counts[i];
      }
    }
    return 0;
  }

  long total() {
    long total = 0;
    for (int i = 0; i < size; i++) {
      total += counts[i];
    }
    return total;
  }
}
