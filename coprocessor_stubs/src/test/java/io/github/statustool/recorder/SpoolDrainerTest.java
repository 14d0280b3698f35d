package io.github.statustool.recorder;

import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertTrue;

import io.github.statustool.state.FakeStore;
import io.github.statustool.state.Spool;
import io.github.statustool.state.StateRow;
import io.github.statustool.state.StateTable.HeadRow;
import io.github.statustool.streams.Fixtures;
import java.io.IOException;
import java.nio.file.Path;
import java.util.List;
import org.apache.hadoop.hbase.util.Bytes;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.io.TempDir;

class SpoolDrainerTest {
  @TempDir
  private Path folder;

  private final FakeStore store = new FakeStore();
  private boolean hasMemory;

  private void start(Runnable work) {
    if (!hasMemory) {
      throw new OutOfMemoryError("unable to create native thread");
    }
    work.run();
  }

  @Test
  void aThreadThatCannotBeStartedIsStartedAfterTheNextFlush() throws IOException {
    Spool spool = new Spool(Fixtures.conf(), new org.apache.hadoop.fs.Path(folder.toUri()));
    SpoolDrainer drainer = new SpoolDrainer(spool, Fixtures.health(), this::start);
    spool.write(1, 2, List.of(new StateRow(Bytes.toBytes("hrow")).add(HeadRow.SEQ, 77, 77)));
    drainer.drainLater(store);
    assertTrue(store.rows.isEmpty());
    hasMemory = true;
    drainer.drainLater(store);
    assertEquals(77, store.number(Bytes.toBytes("hrow"), HeadRow.SEQ));
  }
}
