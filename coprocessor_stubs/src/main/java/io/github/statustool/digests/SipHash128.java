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

  private final long k0;
  private final long k1;
  long low;
  long high;

  SipHash128(byte[] key) {
    k0 = (long) LONGS.get(key, 0);
    k1 = (long) LONGS.get(key, Long.BYTES);
  }

  /**
   * Hashes in local variables: fields would be stored for every word. A word is two rounds, and zero changes nothing
   * but by its rounds, so that each four rounds at the end are two words.
   */
  void hash(byte[] data, int length) {
    long a = k0 ^ 0x736f6d6570736575L;
    long b = k1 ^ 0x646f72616e646f6dL ^ 0xee;
    long c = k0 ^ 0x6c7967656e657261L;
    long d = k1 ^ 0x7465646279746573L;
    int words = length / Long.BYTES;
    for (int i = 0; i <= words + 4; i++) {
      long word = 0;
      if (i < words) {
        word = (long) LONGS.get(data, i * Long.BYTES);
      } else if (i == words) {
        word = tail(data, words * Long.BYTES, length);
      } else if (i == words + 1) {
        c ^= 0xee;
      } else if (i == words + 3) {
        low = a ^ b ^ c ^ d;
        b ^= 0xdd;
      }
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
    high = a ^ b ^ c ^ d;
  }

  private static long tail(byte[] data, int from, int length) {
    long last = (long) length << 56;
    for (int i = length - 1; i >= from; i--) {
      last |= (data[i] & 0xffL) << (Byte.SIZE * (i - from));
    }
    return last;
  }
}
