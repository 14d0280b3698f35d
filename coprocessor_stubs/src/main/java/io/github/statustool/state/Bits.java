package io.github.statustool.state;

import java.lang.invoke.MethodHandles;
import java.lang.invoke.VarHandle;
import java.nio.ByteOrder;
import java.nio.charset.StandardCharsets;
import java.util.Arrays;

/** Encodings of the state table: big-endian longs, lower-case hex, ASCII and UTF-8. */
public final class Bits {
  private static final VarHandle LONGS =
      MethodHandles.byteArrayViewVarHandle(long[].class, ByteOrder.BIG_ENDIAN);
  private static final VarHandle INTS =
      MethodHandles.byteArrayViewVarHandle(int[].class, ByteOrder.BIG_ENDIAN);
  private static final VarHandle SHORTS =
      MethodHandles.byteArrayViewVarHandle(short[].class, ByteOrder.BIG_ENDIAN);
  private static final char[] DIGITS = "0123456789abcdef".toCharArray();

  private Bits() {}

  public static void putLong(byte[] bytes, int offset, long value) {
    LONGS.set(bytes, offset, value);
  }

  public static long getLong(byte[] bytes, int offset) {
    return (long) LONGS.get(bytes, offset);
  }

  public static void putInt(byte[] bytes, int offset, int value) {
    INTS.set(bytes, offset, value);
  }

  public static int getInt(byte[] bytes, int offset) {
    return (int) INTS.get(bytes, offset);
  }

  public static short getShort(byte[] bytes, int offset) {
    return (short) SHORTS.get(bytes, offset);
  }

  public static byte[] ofLong(long value) {
    byte[] bytes = new byte[Long.BYTES];
    putLong(bytes, 0, value);
    return bytes;
  }

  public static byte[] ofLongs(long first, long second) {
    byte[] bytes = new byte[2 * Long.BYTES];
    putLong(bytes, 0, first);
    putLong(bytes, Long.BYTES, second);
    return bytes;
  }

  public static byte[] concat(byte[] first, byte[] second) {
    byte[] bytes = Arrays.copyOf(first, first.length + second.length);
    System.arraycopy(second, 0, bytes, first.length, second.length);
    return bytes;
  }

  public static byte[] ascii(String text) {
    return text.getBytes(StandardCharsets.US_ASCII);
  }

  public static byte[] utf8(String text) {
    return text.getBytes(StandardCharsets.UTF_8);
  }

  public static String hex(long value) {
    return hex(ofLong(value));
  }

  public static String hex(byte[] bytes) {
    char[] chars = new char[2 * bytes.length];
    for (int i = 0; i < bytes.length; i++) {
      chars[2 * i] = DIGITS[(bytes[i] >> 4) & 0xf];
      chars[2 * i + 1] = DIGITS[bytes[i] & 0xf];
    }
    return new String(chars);
  }

  public static byte[] unhex(String text) {
    if (text.length() % 2 != 0) {
      throw new IllegalArgumentException("odd number of hex digits");
    }
    byte[] bytes = new byte[text.length() / 2];
    for (int i = 0; i < bytes.length; i++) {
      bytes[i] = (byte) (digit(text.charAt(2 * i)) << 4 | digit(text.charAt(2 * i + 1)));
    }
    return bytes;
  }

  private static int digit(char c) {
    int value = Character.digit(c, 16);
    if (value < 0) {
      throw new IllegalArgumentException("not a hex digit: " + c);
    }
    return value;
  }
}
