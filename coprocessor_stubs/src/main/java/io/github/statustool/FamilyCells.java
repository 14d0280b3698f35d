package io.github.statustool;

import java.util.Arrays;
import java.util.zip.CRC32C;

/**
 * How many cells of each family something has, families by their id. Reused, so that counting allocates nothing. For
 * one thread at a time.
 */
final class FamilyCells {
  /** One byte of a stamp says how many families follow. */
  static final int MOST = 255;
  /** Instead of a family: which one is not known. */
  static final int UNKNOWN = 0;

  private int[] ids = new int[4];
  private int[] counts = new int[4];
  private int size;

  /** The CRC32C of the name; the tool computes the same of the families that it asks for. Never {@link #UNKNOWN}. */
  static int id(byte[] family) {
    CRC32C crc = new CRC32C();
    crc.update(family, 0, family.length);
    int id = (int) crc.getValue();
    return id == UNKNOWN ? 1 : id;
  }

  void clear() {
    size = 0;
  }

  /** Families beyond the number that a stamp can hold are counted together, as unknown. */
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
