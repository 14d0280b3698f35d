package io.github.statustool.digests;

import static org.junit.jupiter.api.Assertions.assertArrayEquals;
import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertFalse;
import static org.junit.jupiter.api.Assertions.assertNull;
import static org.junit.jupiter.api.Assertions.assertThrows;
import static org.junit.jupiter.api.Assertions.assertTrue;

import io.github.statustool.digests.DigestTable.AnswerRow;
import io.github.statustool.digests.DigestTable.PageRow;
import io.github.statustool.digests.DigestTable.ProgressRow;
import io.github.statustool.digests.DigestTable.RequestRow;
import java.io.IOException;
import java.io.InputStream;
import java.lang.reflect.Proxy;
import java.nio.charset.StandardCharsets;
import java.util.ArrayList;
import java.util.Arrays;
import java.util.List;
import org.apache.hadoop.hbase.TableName;
import org.apache.hadoop.hbase.client.RegionInfo;
import org.apache.hadoop.hbase.client.RegionInfoBuilder;
import org.apache.hadoop.hbase.regionserver.Region;
import org.apache.hadoop.hbase.util.Bytes;
import org.junit.jupiter.api.Test;

class DigestJobTest {
  private static final byte[] ID = Bytes.fromHex("000102030405060708090a0b0c0d0e0f");
  private static final String HEX = Bytes.toHex(ID);
  private static final String ORIGIN = "00000000000000aa";

  private final FakeRequestTable table = new FakeRequestTable();
  private final DigestServer server = new DigestServer(null, null, null) {
    @Override
    Region region(String encodedName) {
      return encodedName.startsWith("e") ? region : null;
    }

    @Override
    long openSeq(Region opened) {
      return openSeq;
    }
  };
  private long openSeq = 11;
  private final Region region = (Region) Proxy.newProxyInstance(Region.class.getClassLoader(),
      new Class<?>[] {Region.class}, (proxy, method, args) -> info());
  private final DigestJob job = new DigestJob(ID, server, ORIGIN, 0);

  private static RegionInfo info() {
    return RegionInfoBuilder.newBuilder(TableName.valueOf("ns:t")).build();
  }

  static byte[] resource(String name) throws IOException {
    try (InputStream in = DigestJobTest.class.getResourceAsStream("/rows/" + name)) {
      return Bytes.fromHex(new String(in.readAllBytes(), StandardCharsets.UTF_8).trim());
    }
  }

  private void store(String key, byte[] qualifier, byte[] value) {
    table.store(key, qualifier, value);
  }

  private void putRequest() throws IOException {
    store(RequestRow.TYPE + HEX, RequestRow.REQUEST, resource("request.hex"));
    store(RequestRow.TYPE + HEX, RequestRow.HEARTBEAT, Bytes.toBytes(0L));
    store(PageRow.TYPE + ORIGIN + HEX + "00000000", PageRow.RANGES, resource("page.hex"));
  }

  private static DigestScan.Slice slice(String end) {
    RowDigest digest = new RowDigest(RowDigestTest.simpleRequest(), Bytes.toBytes("a"));
    digest.add(RowDigestTest.cell(1, 5, "v"));
    return new DigestScan.Slice(digest.buckets(), end == null ? Bytes.fromHex("ff00") : Bytes.toBytes(end), 77, false);
  }

  private List<String> answers() {
    return table.values(AnswerRow.TYPE + HEX + ORIGIN, AnswerRow.ANSWERS);
  }

  /** Asserts that the range of a request is refused for this reason, where reading it would throw. */
  private void assertRefused(String why, RuntimeException reading) throws IOException {
    putRequest();
    job.refresh(table, 0);
    job.step((opened, request, rate, range) -> {
      throw reading;
    });
    job.step(null);
    job.send(table, 0);
    assertTrue(answers().get(0).contains(Bytes.toHex(Bytes.toBytes(why))));
  }

  /** As the tool writes it (status_tool/digests/wire.py). */
  @Test
  void requestsAndPagesAreUnderstood() throws IOException {
    DigestRequest request = DigestRequest.parse(resource("request.hex"));
    DigestRequest.TableRequest asked = request.table(TableName.valueOf("ns:t"));
    assertEquals(List.of(1234L, 5678L, 0), List.of(asked.cut, request.rate, asked.sampleRows));
    DigestRequest.Family g = asked.families.get(Bytes.toBytes("g"));
    assertEquals(List.of(2, 3, 1, 99L), List.of(asked.families.size(),
        asked.families.get(Bytes.toBytes("f")).versions, g.versions, g.oldest));
    assertEquals(1, request.table(TableName.valueOf("other")).families.size());
    assertNull(request.table(TableName.valueOf("third")));
    assertNull(request.table(TableName.META_TABLE_NAME));
    List<DigestRequest.Range> ranges = DigestRequest.parsePage(resource("page.hex"));
    assertEquals(List.of(2, 7, 11L), List.of(ranges.size(), ranges.get(0).part, ranges.get(0).openSeq));
    assertArrayEquals(Bytes.fromHex("ff00"), ranges.get(0).stop);
  }

  @Test
  void whatIsDamagedIsRefused() throws IOException {
    byte[] whole = resource("request.hex");
    for (int length = 0; length < whole.length; length++) {
      byte[] part = Arrays.copyOf(whole, length);
      assertThrows(IOException.class, () -> DigestRequest.parse(part));
    }
    store(RequestRow.TYPE + HEX, RequestRow.REQUEST, new byte[] {9});
    job.refresh(table, 0);
    assertTrue(job.isOver());
  }

  @Test
  void slicesAreAnsweredUntilTheRangeIsDoneAndOtherRegionsAreRefused() throws IOException {
    putRequest();
    job.refresh(table, 0);
    assertEquals(1, table.values(ProgressRow.TYPE + HEX + ORIGIN, ProgressRow.VERSION).size(), "it says that it works");
    List<String> starts = new ArrayList<>();
    for (int i = 0; i < 3; i++) {
      job.step((opened, request, rate, range) -> {
        starts.add(Bytes.toString(range.start));
        return slice(starts.size() == 1 ? "k" : null);
      });
    }
    assertEquals(List.of("a", "k"), starts);
    job.send(table, 0);
    assertFalse(job.hasWork());
    // One cell: a slice up to k, the refusal of the region that is not here, the rest of the range.
    assertEquals(List.of(Bytes.toHex(resource("answer.hex"))), answers());
  }

  @Test
  void ofASampleNothingMoreIsRead() throws IOException {
    putRequest();
    job.refresh(table, 0);
    job.step((opened, request, rate, range) -> {
      DigestScan.Slice some = slice("k");
      return new DigestScan.Slice(some.buckets, some.end, some.readPoint, true);
    });
    job.step(null);
    job.send(table, 0);
    assertFalse(job.hasWork());
    assertEquals(1, answers().size());
  }

  @Test
  void aRegionThatWasOpenedAnewIsRefused() throws IOException {
    openSeq = 12;
    assertRefused("the region has been opened anew", new IllegalStateException("is not read"));
  }

  /** The tool may have read what the table took: it looks only behind that, and waits as long as the server works. */
  @Test
  void answersOfWhichNobodyKnowsWhetherTheTableTookThemAreWrittenBehindThese() throws IOException {
    putRequest();
    job.refresh(table, 0);
    job.step((opened, request, rate, range) -> slice("k"));
    job.step(null);
    table.losesAnswers = true;
    assertThrows(IOException.class, () -> job.send(table, 1_000));
    table.losesAnswers = false;
    job.step((opened, request, rate, range) -> slice(null));
    job.send(table, 0);
    assertEquals(Bytes.toHex(resource("answer.hex")), answers().get(1));
    assertEquals(2, answers().size());
  }

  @Test
  void aRangeThatCannotBeReadIsRefused() throws IOException {
    assertRefused("Invalid currKeyLen", new IllegalStateException("Invalid currKeyLen"));
  }

  @Test
  void withdrawnOrAbandonedItEnds() throws IOException {
    putRequest();
    job.refresh(table, 0);
    store(RequestRow.TYPE + HEX, RequestRow.HEARTBEAT, Bytes.toBytes(1L));
    job.refresh(table, 29_000);
    job.refresh(table, 58_000);
    assertFalse(job.isOver());
    job.refresh(table, 60_000);
    assertTrue(job.isOver());
    DigestJob other = new DigestJob(ID, server, ORIGIN, 0);
    store(RequestRow.TYPE + HEX, RequestRow.WITHDRAWN, new byte[] {1});
    other.refresh(table, 0);
    assertTrue(other.isOver());
  }

  /** A server digests a slice of each of four requests in turn, for ten seconds each where the rate is low. */
  @Test
  void aRequestWhoseHeartbeatWasNotLookedAtForLongIsNotAbandoned() throws IOException {
    putRequest();
    job.refresh(table, 0);
    store(RequestRow.TYPE + HEX, RequestRow.HEARTBEAT, Bytes.toBytes(10L));
    job.refresh(table, 40_000);
    assertFalse(job.isOver());
    job.refresh(table, 80_000);
    assertTrue(job.isOver());
  }

  @Test
  void laterPagesAreReadOneAfterAnother() throws IOException {
    putRequest();
    store(PageRow.TYPE + ORIGIN + HEX + "00000003", PageRow.RANGES, resource("page.hex"));
    int[] scans = {0};
    for (int i = 0; i < 10; i++) {
      job.refresh(table, 3_000L * i);
      store(RequestRow.TYPE + HEX, RequestRow.HEARTBEAT, Bytes.toBytes((long) i));
      job.step((opened, request, rate, range) -> {
        scans[0]++;
        return slice(null);
      });
      job.send(table, 3_000L * i);
    }
    assertEquals(2, scans[0]);
  }
}
