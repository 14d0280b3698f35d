package io.github.statustool;

import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertFalse;
import static org.junit.jupiter.api.Assertions.assertTrue;

import java.util.Arrays;
import org.junit.jupiter.api.Test;

class StampCodecTest {
  private final StampCodec codec = new StampCodec();

  private boolean decode(byte[] stamp, long seq) {
    return codec.decode(stamp, stamp.length, seq);
  }

  @Test
  void whatWasEncodedIsDecoded() {
    assertTrue(decode(new StampCodec().encode(Long.MIN_VALUE + 5, 41, -3, 42), 42));
    assertEquals(Long.MIN_VALUE + 5, codec.origin());
    assertEquals(41, codec.prev());
    assertEquals(-3, codec.via());
  }

  /** The same bytes that the Python side expects; the CRC was computed apart from this code. */
  @Test
  void theBytesAreThoseOfTheFormat() {
    byte[] stamp = codec.encode(0x0102030405060708L, 5, 0, 9);
    assertEquals("01010203040506070800000000000000050000000000000000ebc3f486", Bits.hex(stamp));
  }

  @Test
  void aStampHoldsOnlyForItsOwnEntry() {
    byte[] stamp = codec.encode(1, 5, 0, 9);
    assertTrue(decode(stamp, 9));
    assertFalse(decode(stamp, 10));
  }

  @Test
  void everyFlippedBitIsSeen() {
    byte[] stamp = codec.encode(1, 5, 7, 9);
    for (int bit = 0; bit < 8 * stamp.length; bit++) {
      byte[] damaged = stamp.clone();
      damaged[bit / 8] ^= (byte) (1 << bit % 8);
      assertFalse(decode(damaged, 9), "bit " + bit);
    }
  }

  @Test
  void otherLengthsAndVersionsAreForeign() {
    byte[] stamp = codec.encode(1, 5, 7, 9);
    assertFalse(decode(new byte[0], 9));
    assertFalse(decode(Arrays.copyOf(stamp, 28), 9));
    assertFalse(decode(Arrays.copyOf(stamp, 30), 9));
    byte[] newer = stamp.clone();
    newer[0] = 2;
    assertFalse(decode(newer, 9));
  }

  @Test
  void aPreviousEntryIsEarlier() {
    assertFalse(decode(codec.encode(1, 9, 0, 9), 9));
    assertFalse(decode(codec.encode(1, 10, 0, 9), 9));
    assertFalse(decode(codec.encode(1, -1, 0, 9), 9));
  }
}
