package io.github.statustool.digests;

import java.lang.invoke.MethodHandles;
import java.lang.invoke.VarHandle;
import java.nio.ByteOrder;

/**
 * SipHash-2-4 with 128 bits (Aumasson and Bernstein), as in its reference implementation. {@link #low} and {@link
 * #high} are the halves of the result as one little-endian number. Not thread-safe.
 */
final class SipHash128 {
  static final int KEY_BYTES = 16;

  private static final VarHandle LONGS =
      MethodHandles.byteArrayViewVarHandle(long[].class, ByteOrder.LITTLE_ENDIAN);

  /** A word is two rounds, and zero changes nothing but by its rounds. */
  private static final byte[] FOUR_ROUNDS = new byte[2 * Long.BYTES];

  private final byte[] last = new byte[Long.BYTES];
  private final long k0;
  private final long k1;
  private long v0;
  private long v1;
  private long v2;
  private long v3;
  long low;
  long high;

  SipHash128(byte[] key) {
    k0 = (long) LONGS.get(key, 0);
    k1 = (long) LONGS.get(key, Long.BYTES);
  }

  void hash(byte[] data, int length) {
    v0 = k0 ^ 0x736f6d6570736575L;
    v1 = k1 ^ 0x646f72616e646f6dL ^ 0xee;
    v2 = k0 ^ 0x6c7967656e657261L;
    v3 = k1 ^ 0x7465646279746573L;
    int whole = length & -Long.BYTES;
    compress(data, whole);
    LONGS.set(last, 0, tail(data, whole, length));
    compress(last, Long.BYTES);
    v2 ^= 0xee;
    compress(FOUR_ROUNDS, FOUR_ROUNDS.length);
    low = v0 ^ v1 ^ v2 ^ v3;
    v1 ^= 0xdd;
    compress(FOUR_ROUNDS, FOUR_ROUNDS.length);
    high = v0 ^ v1 ^ v2 ^ v3;
  }

  private static long tail(byte[] data, int from, int length) {
    long last = (long) length << 56;
    for (int i = length - 1; i >= from; i--) {
      last |= (data[i] & 0xffL) << (Byte.SIZE * (i - from));
    }
    return last;
  }

  /**
   * Compresses words in local variables: fields would be stored for every word, which makes long values take twice as
   * long.
   */
  private void compress(byte[] data, int length) {
    long a = v0;
    long b = v1;
    long c = v2;
    long d = v3;
    for (int i = 0; i < length; i += Long.BYTES) {
      long word = (long) LONGS.get(data, i);
      d ^= word;
      for (int round = 0; round < 2; round++) {
        a += b;
        c += d;
        b = Long.rotateLeft(b, 13) ^ a;
        d = Long.rotateLeft(d, 16) ^ c;
        a = Long.rotateLeft(a, 32);
        c += b;
        a += d;
        b = Long.rotateLeft(b, 17) ^ c;
        d = Long.rotateLeft(d, 21) ^ a;
        c = Long.rotateLeft(c, 32);
      }
      a ^= word;
    }
    v0 = a;
    v1 = b;
    v2 = c;
    v3 = d;
  }
}
