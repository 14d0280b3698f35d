package io.github.statustool;

import static org.junit.jupiter.api.Assertions.assertEquals;

import java.io.IOException;
import java.util.List;
import java.util.stream.Collectors;
import org.apache.hadoop.hbase.client.RowMutations;
import org.junit.jupiter.api.Test;

class HBaseStateStoreTest {
  private static List<String> kinds(StateRow row) throws IOException {
    Segment part = new Segment(3, 5, 0, 0);
    RowMutations mutations = HBaseStateStore.replacement(row, List.of(part.qualifier()));
    return mutations.getMutations().stream().map(m -> m.getClass().getSimpleName()).collect(Collectors.toList());
  }

  @Test
  void theUnionIsPutAndThePartsAreDeleted() throws IOException {
    Segment union = new Segment(0, 9, 0, 0);
    StateRow row = new StateRow(Bits.ascii("s")).add(union.qualifier(), union.value(), StateRow.SERVER_TIME);
    assertEquals(List.of("Put", "Delete"), kinds(row));
  }

  @Test
  void aUnionThatIsThereAlreadyIsNotPut() throws IOException {
    assertEquals(List.of("Delete"), kinds(new StateRow(Bits.ascii("s"))));
  }
}
