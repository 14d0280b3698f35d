package io.github.statustool.state;

import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertNotEquals;

import java.util.List;
import java.util.UUID;
import org.apache.hadoop.hbase.util.Bytes;
import org.junit.jupiter.api.Test;

class IdsTest {
  /** CRC32C of "f", which is the id of a family of that name. */
  private static final int CRC_OF_F = 354035675;

  private static final UUID LOW = UUID.fromString("00000000-0000-0000-0000-000000000001");
  private static final UUID HIGH = UUID.fromString("ffffffff-0000-0000-0000-000000000002");

  @Test
  void originIsTheBeginningOfTheHashOfTheServerName() {
    assertEquals("838cf5e2791a3490", Ids.hex(Ids.origin("localhost,16020,1700000000000")));
  }

  @Test
  void aLocalWriteHasNoVia() {
    assertEquals(0, Ids.via(List.of()));
  }

  /** Computed apart from this code: {@code hashlib.sha256(bytes(8) + bytes.fromhex("151a27db"))}. */
  @Test
  void eachFamilyHasAViaOfItsOwn() {
    assertEquals("8d2ae5d2be593233", Ids.hex(Ids.via(Ids.LOCAL, CRC_OF_F)));
    assertEquals("51790a5c2636a0ea", Ids.hex(Ids.via(-2, 0)));
  }

  @Test
  void viaDoesNotDependOnTheOrderOfTheClusters() {
    assertEquals("26708f1678aac474", Ids.hex(Ids.via(List.of(HIGH, LOW))));
    assertEquals(Ids.via(List.of(LOW, HIGH)), Ids.via(List.of(HIGH, LOW)));
    assertNotEquals(Ids.via(List.of(LOW)), Ids.via(List.of(HIGH)));
  }

  @Test
  void clusterIdsAreSortedAsUnsignedBytes() {
    assertEquals("00000000000000000000000000000001ffffffff000000000000000000000002",
        Bytes.toHex(Ids.sortedBytes(List.of(HIGH, LOW))));
  }
}
