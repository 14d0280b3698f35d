package io.github.statustool;

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
    for (int i = 0; i < whole; i += Long.BYTES) {
      compress((long) LONGS.get(data, i));
    }
    compress(tail(data, whole, length));
    v2 ^= 0xee;
    rounds(4);
    low = v0 ^ v1 ^ v2 ^ v3;
    v1 ^= 0xdd;
    rounds(4);
    high = v0 ^ v1 ^ v2 ^ v3;
  }

  private static long tail(byte[] data, int from, int length) {
    long last = (long) length << 56;
    for (int i = length - 1; i >= from; i--) {
      last |= (data[i] & 0xffL) << (Byte.SIZE * (i - from));
    }
    return last;
  }

  private void compress(long word) {
    v3 ^= word;
    rounds(2);
    v0 ^= word;
  }

  private void rounds(int count) {
    long a = v0;
    long b = v1;
    long c = v2;
    long d = v3;
    for (int i = 0; i < count; i++) {
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
    v0 = a;
    v1 = b;
    v2 = c;
    v3 = d;
  }
}
