package io.github.statustool.digests;

import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertTrue;

import java.lang.reflect.Proxy;
import java.util.List;
import java.util.Optional;
import java.util.Random;
import java.util.TreeMap;
import org.apache.hadoop.hbase.KeyValue;
import org.apache.hadoop.hbase.regionserver.Region;
import org.apache.hadoop.hbase.regionserver.Store;
import org.apache.hadoop.hbase.regionserver.StoreFile;
import org.apache.hadoop.hbase.util.Bytes;
import org.junit.jupiter.api.Test;

class RandomRowTest {
  private static final long LARGE = 10L << 20;
  private final Random random = new Random(7);

  /** A region with one store file, or none without a first key. */
  private static Region region(long size, String first, String last) {
    StoreFile file = proxy(StoreFile.class, new TreeMap<>(java.util.Map.of(
        "getFirstKey", cell(first), "getLastKey", cell(last))));
    Store store = proxy(Store.class, new TreeMap<>(java.util.Map.of(
        "getStorefilesSize", size, "getStorefiles", first == null ? List.of() : List.of(file))));
    return proxy(Region.class, new TreeMap<>(java.util.Map.of(
        "getMemStoreDataSize", 0L, "getStores", List.of(store))));
  }

  private static Optional<KeyValue> cell(String row) {
    return Optional.ofNullable(row).map(key -> new KeyValue(Bytes.toBytes(key), 1L));
  }

  private static <T> T proxy(Class<T> type, TreeMap<String, Object> values) {
    return type.cast(Proxy.newProxyInstance(type.getClassLoader(), new Class<?>[] {type},
        (self, method, args) -> values.get(method.getName())));
  }

  private static DigestRequest.Range range(String start, String stop) {
    return new DigestRequest.Range(1, "e", 1, Bytes.toBytes(start), Bytes.toBytes(stop));
  }

  @Test
  void decimalKeysAreMetAboutEquallyOften() {
    Region region = region(LARGE, "row00000000", "row00499999");
    int[] first = new int[10];
    int[] second = new int[10];
    for (int i = 0; i < 5_000; i++) {
      String key = Bytes.toString(RandomRow.in(region, range("", ""), random));
      assertTrue(key.matches("row00[0-4][0-9]{7}"), key);
      first[key.charAt(5) - '0']++;
      second[key.charAt(6) - '0']++;
    }
    for (int digit = 0; digit < 10; digit++) {
      assertEquals(digit < 5 ? 1_000 : 0, first[digit], 200);
      assertEquals(500, second[digit], 150);
    }
  }

  @Test
  void keysOfAnyBytes() {
    byte[] low = {1, (byte) 0x80};
    byte[] high = {1, (byte) 0x90, 3};
    boolean[] seen = new boolean[256];
    for (int i = 0; i < 5_000; i++) {
      byte[] key = RandomRow.between(low, high, random);
      assertEquals(1, key[0]);
      assertTrue((key[1] & 0xff) >= 0x80 && (key[1] & 0xff) <= 0x90);
      seen[key[2] & 0xff] = true;
    }
    for (boolean one : seen) {
      assertTrue(one);
    }
  }

  @Test
  void whatFitsIntoOneSampleIsReadFromItsStart() {
    assertEquals("", start(region(100, "a", "z"), range("", "")));
    assertEquals("b", start(region(LARGE, null, null), range("b", "")));
    assertEquals("", start(region(LARGE, null, null), range("", "")));
  }

  @Test
  void itStaysWithinTheRange() {
    for (int i = 0; i < 1_000; i++) {
      String key = start(region(LARGE, "a", "zzz"), range("f", "h"));
      assertTrue(key.compareTo("f") >= 0 && key.compareTo("h") < 0, key);
    }
  }

  private String start(Region region, DigestRequest.Range range) {
    return Bytes.toString(RandomRow.in(region, range, random));
  }
}
