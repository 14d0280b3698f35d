package io.github.statustool.digests;

import java.lang.invoke.MethodHandles;
import java.lang.invoke.VarHandle;
import java.nio.ByteOrder;

/**
 * A keyed hash of 128 bits. NH, as of UMAC (Black et al.), compresses each KiB to 16 bytes, and SipHash-2-4 hashes
 * these: NH takes a multiplication of words where SipHash takes four rounds. NH's product is a signed one here, and its
 * halves are summed apart, which saves the carry. Two messages that were chosen without the key agree with a chance of
 * at most 2^-60. Not thread-safe.
 */
final class CellHash {
  private static final int BLOCK = 1024;
  private static final int PAIR = 2 * Long.BYTES;

  private static final VarHandle LONGS =
      MethodHandles.byteArrayViewVarHandle(long[].class, ByteOrder.LITTLE_ENDIAN);

  private final SipHash128 sip;
  private final long[] keys = new long[BLOCK / Long.BYTES];
  private byte[] compressed = new byte[PAIR];

  CellHash(byte[] key) {
    sip = new SipHash128(key);
    byte[] number = new byte[Long.BYTES];
    for (int i = 0; i < keys.length; i += 2) {
      LONGS.set(number, 0, (long) i);
      sip.hash(number, number.length);
      keys[i] = sip.low;
      keys[i + 1] = sip.high;
    }
  }

  long low() {
    return sip.low;
  }

  long high() {
    return sip.high;
  }

  /** Hashes a message of at least 16 bytes that contains its own length. */
  void hash(byte[] message, int offset, int length) {
    int size = PAIR * ((length + BLOCK - 1) / BLOCK);
    if (compressed.length < size) {
      compressed = new byte[size];
    }
    int end = offset + length;
    for (int from = offset, to = 0; from < end; from += BLOCK, to += PAIR) {
      compress(message, from, end, to);
    }
    sip.hash(compressed, size);
  }

  /** Compresses a block. The last pair of a message is its last 16 bytes, some of which may be in another one, too. */
  private void compress(byte[] message, int from, int end, int to) {
    long low = 0;
    long high = 0;
    int key = 0;
    int whole = Math.min(from + BLOCK, end - PAIR);
    for (int at = from; at < whole; at += PAIR, key += 2) {
      long a = (long) LONGS.get(message, at) + keys[key];
      long b = (long) LONGS.get(message, at + Long.BYTES) + keys[key + 1];
      low += a * b;
      high += Math.multiplyHigh(a, b);
    }
    if (from + BLOCK >= end) {
      long a = (long) LONGS.get(message, end - PAIR) + keys[key];
      long b = (long) LONGS.get(message, end - Long.BYTES) + keys[key + 1];
      low += a * b;
      high += Math.multiplyHigh(a, b);
    }
    LONGS.set(compressed, to, low);
    LONGS.set(compressed, to + Long.BYTES, high);
  }
}
