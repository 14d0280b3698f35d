package io.github.statustool.streams;

import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertFalse;
import static org.junit.jupiter.api.Assertions.assertTrue;

import java.util.Arrays;
import org.apache.hadoop.hbase.util.Bytes;
import org.junit.jupiter.api.Test;

class StampCodecTest {
  private final StampCodec codec = new StampCodec();

  private boolean decode(byte[] stamp, long seq) {
    return codec.decode(stamp, stamp.length, seq);
  }

  private int count(int family) {
    return codec.cells().count(codec.cells().indexOf(family));
  }

  @Test
  void whatWasEncodedIsDecoded() {
    FamilyCells cells = Fixtures.cells(Fixtures.GLOBAL, Fixtures.LOCAL, Fixtures.GLOBAL);
    cells.follow(0, 41, 77);
    cells.follow(1, 0, 0);
    assertTrue(decode(new StampCodec().encode(Long.MIN_VALUE + 5, -3, cells, 42), 42));
    assertEquals(Long.MIN_VALUE + 5, codec.origin());
    assertEquals(-3, codec.via());
    int global = codec.cells().indexOf(FamilyCells.id(Fixtures.GLOBAL));
    assertEquals(41, codec.cells().prev(global));
    assertEquals(77, codec.cells().prevTime(global));
    assertEquals(0, codec.cells().prev(1 - global));
    assertEquals(2, count(FamilyCells.id(Fixtures.GLOBAL)));
    assertEquals(1, count(FamilyCells.id(Fixtures.LOCAL)));
    assertEquals(3, codec.cells().total());
  }

  /** The CRC was computed apart from this code. */
  @Test
  void theBytesAreThoseOfTheFormat() {
    FamilyCells cells = Fixtures.cells(Bytes.toBytes("f"));
    cells.follow(0, 5, 258);
    byte[] stamp = codec.encode(0x0102030405060708L, 0, cells, 9);
    assertEquals("03" + "0102030405060708" + "0000000000000000" + "01"
        + "151a27db" + "00000001" + "0000000000000005" + "0000000000000102" + "95c24625", Bytes.toHex(stamp));
  }

  @Test
  void moreFamiliesThanAStampHoldsAreCountedTogether() {
    FamilyCells cells = new FamilyCells();
    for (int id = 1; id <= 300; id++) {
      cells.add(id, 2);
    }
    for (int i = 0; i < cells.size(); i++) {
      cells.follow(i, 5, 6);
    }
    byte[] stamp = codec.encode(1, 0, cells, 9);
    assertEquals(StampCodec.MAX_LENGTH, stamp.length);
    assertTrue(decode(stamp, 9));
    assertEquals(600, codec.cells().total());
    assertEquals(2 * 46, count(FamilyCells.UNKNOWN));
  }

  @Test
  void aStampHoldsOnlyForItsOwnEntry() {
    byte[] stamp = Fixtures.stamp(5, 9);
    assertTrue(decode(stamp, 9));
    assertFalse(decode(stamp, 10));
  }

  @Test
  void everyFlippedBitIsSeen() {
    byte[] stamp = Fixtures.stamp(5, 9);
    for (int bit = 0; bit < 8 * stamp.length; bit++) {
      byte[] damaged = stamp.clone();
      damaged[bit / 8] ^= (byte) (1 << bit % 8);
      assertFalse(decode(damaged, 9), "bit " + bit);
    }
  }

  @Test
  void otherLengthsAndVersionsAreForeign() {
    byte[] stamp = Fixtures.stamp(5, 9);
    assertFalse(decode(new byte[0], 9));
    assertFalse(decode(Arrays.copyOf(stamp, stamp.length - 1), 9));
    assertFalse(decode(Arrays.copyOf(stamp, stamp.length + 1), 9));
    assertFalse(decode(Arrays.copyOf(stamp, 29), 9));
    byte[] newer = stamp.clone();
    newer[0] = 4;
    assertFalse(decode(newer, 9));
    assertFalse(decode(Bytes.fromHex("02" + "0102030405060708" + "0000000000000005" + "0000000000000000"
        + "0000000000000102" + "01" + "151a27db" + "00000001" + "1679c4c1"), 9), "of trackers before this version");
    assertFalse(decode(codec.encode(1, 0, new FamilyCells(), 9), 9), "no family");
  }

  @Test
  void aPreviousEntryIsEarlier() {
    assertFalse(decode(Fixtures.stamp(9, 9), 9));
    assertFalse(decode(Fixtures.stamp(10, 9), 9));
    assertFalse(decode(Fixtures.stamp(-1, 9), 9));
  }
}
