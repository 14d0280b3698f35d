package io.github.statustool.streams;

import java.util.Arrays;
import java.util.zip.CRC32C;

/**
 * Number of cells per family, by family id, and the entry of that family's stream before this one. Reused, so that counting
 * allocates nothing. Not thread-safe.
 */
final class FamilyCells {
  /** The stamp stores the number of families in one byte. */
  static final int MOST = 255;
  /** Family id of cells whose family is not known. */
  static final int UNKNOWN = 0;

  private int[] ids = new int[4];
  private int[] counts = new int[4];
  private long[] prevs = new long[4];
  private long[] prevTimes = new long[4];
  private int size;

  /**
   * Returns the family id: CRC32C of the name, never {@link #UNKNOWN}. The tool computes the same for the families in
   * scope.
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
    // The last place is for the joint count.
    if (size >= MOST - 1 && id != UNKNOWN) {
      add(UNKNOWN, count);
      return;
    }
    if (size == ids.length) {
      ids = Arrays.copyOf(ids, 2 * size);
      counts = Arrays.copyOf(counts, 2 * size);
      prevs = Arrays.copyOf(prevs, 2 * size);
      prevTimes = Arrays.copyOf(prevTimes, 2 * size);
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

  /** Sets the sequence id of the family's previous entry, and the highest write time up to it. */
  void follow(int index, long prev, long prevTime) {
    prevs[index] = prev;
    prevTimes[index] = prevTime;
  }

  long prev(int index) {
    return prevs[index];
  }

  long prevTime(int index) {
    return prevTimes[index];
  }

  /** Returns a negative number for a family that is not counted. */
  int indexOf(int id) {
    for (int i = 0; i < size; i++) {
      if (ids[i] == id) {
        return i;
      }
    }
    return -1;
  }

  long total() {
    long total = 0;
    for (int i = 0; i < size; i++) {
      total += counts[i];
    }
    return total;
  }
}
