package io.github.statustool.digests;

import java.util.Arrays;
import java.util.Random;
import org.apache.hadoop.hbase.CellUtil;
import org.apache.hadoop.hbase.regionserver.Region;
import org.apache.hadoop.hbase.regionserver.Store;
import org.apache.hadoop.hbase.regionserver.StoreFile;
import org.apache.hadoop.hbase.util.Bytes;

/**
 * Start of a region's sample: a random key between the first and the last one that its store files name. The bytes
 * after what these two share are drawn from the digits or letters that they use, so that keys of decimal digits, say,
 * are met about equally often.
 */
final class RandomRow {
  private static final int RANDOM_BYTES = 8;
  private static final byte[][] ALPHABETS = {
    Bytes.toBytes("0123456789"),
    Bytes.toBytes("0123456789abcdef"),
    Bytes.toBytes("0123456789ABCDEF"),
    Bytes.toBytes("abcdefghijklmnopqrstuvwxyz"),
    Bytes.toBytes("ABCDEFGHIJKLMNOPQRSTUVWXYZ"),
    Bytes.toBytes("0123456789ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz"),
  };

  private RandomRow() {}

  /** Returns a random row; the start of the range if the region fits into one sample, or if no two keys are known. */
  static byte[] in(Region region, DigestRequest.Range range, Random random) {
    long size = region.getMemStoreDataSize();
    byte[] low = range.start.length > 0 ? range.start : null;
    byte[] high = range.stop.length > 0 ? range.stop : null;
    for (Store store : region.getStores()) {
      size += store.getStorefilesSize();
      for (StoreFile file : store.getStorefiles()) {
        byte[] first = file.getFirstKey().map(CellUtil::cloneRow).orElse(null);
        byte[] last = file.getLastKey().map(CellUtil::cloneRow).orElse(null);
        low = range.start.length == 0 && (low == null || isBefore(first, low)) ? first : low;
        high = range.stop.length == 0 && (high == null || isBefore(high, last)) ? last : high;
      }
    }
    if (size <= DigestScan.SAMPLE_BYTES || low == null || high == null) {
      return range.start;
    }
    byte[] drawn = between(low, high, random);
    boolean isInside = Bytes.compareTo(drawn, range.start) >= 0
        && (range.stop.length == 0 || Bytes.compareTo(drawn, range.stop) < 0);
    return isInside ? drawn : range.start;
  }

  private static boolean isBefore(byte[] one, byte[] other) {
    return one != null && other != null && Bytes.compareTo(one, other) < 0;
  }

  /** Returns a key of the common prefix and some random bytes; it may lie outside the two. */
  static byte[] between(byte[] low, byte[] high, Random random) {
    int shared = 0;
    while (shared < low.length && shared < high.length && low[shared] == high[shared]) {
      shared++;
    }
    byte[] alphabet = alphabet(low, high, shared);
    byte[] key = Arrays.copyOf(low, shared + RANDOM_BYTES);
    for (int i = shared; i < key.length; i++) {
      key[i] = alphabet == null ? (byte) random.nextInt(256) : alphabet[random.nextInt(alphabet.length)];
    }
    if (shared < high.length) {
      // The first byte that differs: evenly between the two, as far as the alphabet has such.
      int from = shared < low.length ? low[shared] & 0xff : 0;
      int to = high[shared] & 0xff;
      key[shared] = drawn(alphabet, from, to, random);
    }
    return key;
  }

  private static byte drawn(byte[] alphabet, int from, int to, Random random) {
    byte[] usable = new byte[256];
    int count = 0;
    for (int value = from; value <= to; value++) {
      if (alphabet == null || contains(alphabet, (byte) value)) {
        usable[count++] = (byte) value;
      }
    }
    return count == 0 ? (byte) from : usable[random.nextInt(count)];
  }

  /** Returns the smallest alphabet that has all bytes of both keys from a position on; null if none has. */
  private static byte[] alphabet(byte[] low, byte[] high, int from) {
    for (byte[] alphabet : ALPHABETS) {
      if (isOf(alphabet, low, from) && isOf(alphabet, high, from)) {
        return alphabet;
      }
    }
    return null;
  }

  private static boolean isOf(byte[] alphabet, byte[] key, int from) {
    for (int i = from; i < key.length; i++) {
      if (!contains(alphabet, key[i])) {
        return false;
      }
    }
    return true;
  }

  private static boolean contains(byte[] alphabet, byte value) {
    return Bytes.indexOf(alphabet, value) >= 0;
  }
}
