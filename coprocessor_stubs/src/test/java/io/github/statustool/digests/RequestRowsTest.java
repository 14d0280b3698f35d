package io.github.statustool.digests;

import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertFalse;
import static org.junit.jupiter.api.Assertions.assertTrue;

import io.github.statustool.state.GoldenRows;
import io.github.statustool.state.Ids;
import io.github.statustool.state.StateRow;
import java.io.IOException;
import java.util.Arrays;
import java.util.List;
import org.junit.jupiter.api.Test;

class RequestRowsTest {
  @Test
  void aRequestForRowDigestsIsTakenUpUntilItIsWithdrawn() throws IOException {
    byte[] doorbell = GoldenRows.read("tool-doorbell").get(0).columns().get(0).value;
    assertEquals(SipHash128.KEY_BYTES + Long.BYTES, doorbell.length);
    byte[] request = Arrays.copyOf(doorbell, SipHash128.KEY_BYTES);
    FakeRequestTable table = new FakeRequestTable();
    List<StateRow> rows = GoldenRows.read("tool-requests");
    table.put(rows.subList(0, 2));
    DigestJob job = new DigestJob(request, null, Ids.hex(Ids.origin("master.example.org,16020,1700000000000")), 0);
    job.refresh(table, 0);
    assertTrue(job.hasWork(), "the page is this server's");
    assertFalse(job.isOver());
    table.put(List.of(rows.get(2)));
    job.refreshNow(1);
    job.refresh(table, 1);
    assertTrue(job.isOver());
  }
}
