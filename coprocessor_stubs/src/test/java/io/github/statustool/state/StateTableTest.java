package io.github.statustool.state;

import static org.junit.jupiter.api.Assertions.assertArrayEquals;
import static org.junit.jupiter.api.Assertions.assertEquals;

import java.nio.charset.StandardCharsets;
import java.util.Arrays;
import java.util.stream.Stream;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.CsvSource;

class StateTableTest {
  private static String[] splits(int servers) {
    return Stream.of(StateTable.splitKeys(servers)).map(key -> new String(key, StandardCharsets.US_ASCII))
        .toArray(String[]::new);
  }

  @Test
  void aSmallClusterHasFewRegionsOfTheStateTable() {
    assertArrayEquals(new String[] {"h4", "h8", "hc", "i", "s4", "s8", "sc", "t"}, splits(16));
  }

  @ParameterizedTest
  @CsvSource({"17,16", "256,16", "257,256", "5000,256"})
  void moreServersHaveMore(int servers, int each) {
    String[] splits = splits(servers);
    assertEquals(each, Stream.of(splits).filter(key -> key.startsWith("h")).count());
    assertEquals(each, Stream.of(splits).filter(key -> key.startsWith("s")).count());
    assertEquals(2 * each + 2, splits.length);
    String[] sorted = splits.clone();
    Arrays.sort(sorted);
    assertArrayEquals(sorted, splits);
  }
}
