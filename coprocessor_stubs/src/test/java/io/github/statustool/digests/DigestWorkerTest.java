package io.github.statustool.digests;

import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertTrue;

import io.github.statustool.digests.DigestTable.AnswerRow;
import io.github.statustool.digests.DigestTable.PageRow;
import io.github.statustool.digests.DigestTable.RequestRow;
import io.github.statustool.state.Ids;
import io.github.statustool.state.Settings;
import java.io.IOException;
import java.util.Arrays;
import java.util.function.BooleanSupplier;
import org.apache.hadoop.conf.Configuration;
import org.apache.hadoop.hbase.regionserver.Region;
import org.apache.hadoop.hbase.util.Bytes;
import org.junit.jupiter.api.AfterEach;
import org.junit.jupiter.api.Test;

class DigestWorkerTest {
  private static final byte[] ID = Bytes.fromHex("000102030405060708090a0b0c0d0e0f");
  private static final String HEX = Bytes.toHex(ID);
  private static final String SERVER = "host,1,2";
  private static final String ORIGIN = Ids.hex(Ids.origin(SERVER));

  private final Configuration conf = new Configuration(false);
  private final FakeRequestTable table = new FakeRequestTable();
  private DigestWorker digests;
  private volatile int connected;

  private DigestWorker started() {
    digests = new DigestWorker(new Settings(conf));
    digests.start(new DigestServer(null, null, null) {
      @Override
      String name() {
        return SERVER;
      }

      @Override
      Region region(String encodedName) {
        return null;
      }

      @Override
      RequestTable connect(Settings settings) throws IOException {
        if (++connected == 1) {
          throw new IOException("not yet");
        }
        return table;
      }
    });
    return digests;
  }

  @AfterEach
  void stop() {
    digests.stop();
  }

  private static void waitFor(BooleanSupplier condition) throws InterruptedException {
    long end = System.nanoTime() + 30_000_000_000L;
    while (!condition.getAsBoolean() && System.nanoTime() < end) {
      Thread.sleep(10);
    }
    assertTrue(condition.getAsBoolean());
  }

  private static byte[] bell(int ring) {
    byte[] bell = Arrays.copyOf(ID, 24);
    bell[23] = (byte) ring;
    return bell;
  }

  private void putRequest() throws IOException {
    table.store(RequestRow.TYPE + HEX, RequestRow.REQUEST, DigestJobTest.resource("request.hex"));
    table.store(RequestRow.TYPE + HEX, RequestRow.HEARTBEAT, Bytes.toBytes(0L));
    table.store(PageRow.TYPE + ORIGIN + HEX + "00000000", PageRow.RANGES, DigestJobTest.resource("page.hex"));
  }

  @Test
  void whoRingsIsAnsweredAlthoughTheTableWasNotThereAtFirstAndNothingStaysOpen() throws Exception {
    putRequest();
    started().ring(bell(1));
    waitFor(() -> !table.values(AnswerRow.TYPE + HEX + ORIGIN, AnswerRow.ANSWERS).isEmpty());
    table.store(RequestRow.TYPE + HEX, RequestRow.WITHDRAWN, new byte[] {1});
    digests.ring(bell(2));
    waitFor(() -> table.closed() > 0);
  }

  @Test
  void nobodyConnectsBeforeSomebodyRings() throws Exception {
    putRequest();
    started().ring(null);
    Thread.sleep(50);
    assertEquals(0, connected);
  }

  @Test
  void switchedOffItDoesNothing() throws Exception {
    conf.setBoolean("hbase.replicationtable.digest.enabled", false);
    putRequest();
    started().ring(bell(1));
    Thread.sleep(50);
    assertEquals(0, connected);
  }
}
