package io.github.statustool.streams;

import static org.junit.jupiter.api.Assertions.assertEquals;

import java.util.List;
import org.junit.jupiter.api.Test;

class StreamHeadTest {
  private final StreamHead head = Fixtures.head(
      new StreamHeads().heads(Fixtures.region("t"), Fixtures.ORIGIN, List.of()), Fixtures.GLOBAL);

  @Test
  void keepsFirstAndHighestWriteTime() {
    head.advance(3, 50);
    head.advance(4, 40);
    StreamHead.Snapshot seen = head.snapshot();
    assertEquals(4, seen.seq);
    assertEquals(50, seen.writeTime);
    assertEquals(50, seen.firstTime);
    assertEquals(2, seen.count);
  }

  @Test
  void anEntryAppendedAgainCountsOnce() {
    head.advance(3, 50);
    head.advance(4, 51);
    head.advance(3, 50);
    head.advance(4, 51);
    assertEquals(4, head.snapshot().seq);
    assertEquals(2, head.snapshot().count);
  }

  @Test
  void aSnapshotIsOfOneMoment() throws InterruptedException {
    Thread writer = new Thread(() -> {
      for (long seq = 1; seq <= 3_000_000; seq++) {
        head.advance(seq, 10 * seq);
      }
    });
    writer.start();
    while (writer.isAlive()) {
      StreamHead.Snapshot seen = head.snapshot();
      assertEquals(seen.seq, seen.count);
      assertEquals(10 * seen.seq, seen.writeTime);
    }
    writer.join();
    assertEquals(3_000_000, head.snapshot().count);
  }
}
