package io.github.statustool.digests;

import static org.junit.jupiter.api.Assertions.assertArrayEquals;
import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertTrue;

import io.github.statustool.state.Ids;
import java.io.ByteArrayOutputStream;
import java.io.DataOutputStream;
import java.io.IOException;
import java.io.InputStream;
import java.nio.ByteBuffer;
import java.nio.charset.StandardCharsets;
import java.util.ArrayList;
import java.util.Arrays;
import java.util.Collections;
import java.util.List;
import java.util.Map;
import java.util.Random;
import java.util.TreeMap;
import org.apache.hadoop.hbase.ArrayBackedTag;
import org.apache.hadoop.hbase.ByteBufferKeyValue;
import org.apache.hadoop.hbase.Cell;
import org.apache.hadoop.hbase.CellBuilderType;
import org.apache.hadoop.hbase.CellUtil;
import org.apache.hadoop.hbase.ExtendedCellBuilderFactory;
import org.apache.hadoop.hbase.KeyValue;
import org.apache.hadoop.hbase.KeyValueUtil;
import org.apache.hadoop.hbase.Tag;
import org.apache.hadoop.hbase.TagType;
import org.apache.hadoop.hbase.util.Bytes;
import org.apache.hbase.thirdparty.com.google.gson.JsonArray;
import org.apache.hbase.thirdparty.com.google.gson.JsonElement;
import org.apache.hbase.thirdparty.com.google.gson.JsonObject;
import org.apache.hbase.thirdparty.com.google.gson.JsonParser;
import org.junit.jupiter.api.Test;

class RowDigestTest {
  private static String resource(String name) throws IOException {
    try (InputStream in = RowDigestTest.class.getResourceAsStream("/rows/" + name)) {
      return new String(in.readAllBytes(), StandardCharsets.UTF_8);
    }
  }

  static byte[] bytes(RowSums sums) {
    ByteArrayOutputStream out = new ByteArrayOutputStream();
    try {
      sums.write(new DataOutputStream(out));
    } catch (IOException e) {
      throw new AssertionError(e);
    }
    return out.toByteArray();
  }

  static byte[] total(List<RowDigest.Bucket> buckets) {
    RowSums all = new RowSums();
    buckets.forEach(bucket -> all.add(bucket.sums));
    return bytes(all);
  }

  static DigestRequest.TableRequest request(byte[] key, long cut, Map<byte[], DigestRequest.Family> families) {
    return new DigestRequest.TableRequest(key, cut, 0, families);
  }

  static DigestRequest.TableRequest simpleRequest() {
    return request(new byte[16], 100, families(new DigestRequest.Family(Bytes.toBytes("f"), 10, Long.MIN_VALUE)));
  }

  private static Map<byte[], DigestRequest.Family> families(DigestRequest.Family... each) {
    Map<byte[], DigestRequest.Family> families = new TreeMap<>(Bytes.BYTES_COMPARATOR);
    for (DigestRequest.Family family : each) {
      families.put(family.name, family);
    }
    return families;
  }

  static Cell cell(int row, long timestamp, String value) {
    return new KeyValue(Bytes.toBytes(String.format("row%06d", row)), Bytes.toBytes("f"), Bytes.toBytes("q"),
        timestamp, Bytes.toBytes(value));
  }

  static byte[] digest(List<Cell> cells) {
    RowDigest digest = new RowDigest(simpleRequest(), new byte[0]);
    cells.forEach(digest::add);
    return total(digest.buckets());
  }

  /** The vectors of the reference implementation: key and messages are 00 01 02 … */
  @Test
  void sipHashAsItsAuthorsComputeIt() throws IOException {
    byte[] key = new byte[16];
    byte[] message = new byte[64];
    for (int i = 0; i < 64; i++) {
      key[i % 16] = (byte) (i % 16);
      message[i] = (byte) i;
    }
    SipHash128 hash = new SipHash128(key);
    String[] lines = resource("siphash128.txt").split("\n");
    assertEquals(64, lines.length);
    for (int length = 0; length < lines.length; length++) {
      hash.hash(message, length);
      String found = Bytes.toHex(Ids.ofLongs(Long.reverseBytes(hash.low), Long.reverseBytes(hash.high)));
      assertEquals(lines[length], found, "of " + length + " bytes");
    }
  }

  /** The vectors that plain Python has computed (tests/unit/test_rows_digest.py). */
  @Test
  void digestsAsTheToolComputesThem() throws IOException {
    JsonArray cases = JsonParser.parseString(resource("digests.json")).getAsJsonArray();
    assertTrue(cases.size() > 5);
    for (JsonElement each : cases) {
      JsonObject one = each.getAsJsonObject();
      Map<byte[], DigestRequest.Family> families = new TreeMap<>(Bytes.BYTES_COMPARATOR);
      one.getAsJsonObject("families").entrySet().forEach(entry -> {
        byte[] name = Bytes.fromHex(entry.getKey());
        JsonArray rule = entry.getValue().getAsJsonArray();
        families.put(name, new DigestRequest.Family(name, rule.get(0).getAsInt(), rule.get(1).getAsLong()));
      });
      DigestRequest.TableRequest request =
          request(Bytes.fromHex(one.get("key").getAsString()), one.get("cut").getAsLong(), families);
      RowDigest digest = new RowDigest(request, new byte[0]);
      for (JsonElement cell : one.getAsJsonArray("cells")) {
        digest.add(parsed(cell.getAsJsonArray()));
      }
      assertEquals(one.get("sums").getAsString(), Bytes.toHex(total(digest.buckets())), one.get("name").getAsString());
    }
  }

  private static Cell parsed(JsonArray cell) {
    return new KeyValue(Bytes.fromHex(cell.get(0).getAsString()), Bytes.fromHex(cell.get(1).getAsString()),
        Bytes.fromHex(cell.get(2).getAsString()), cell.get(3).getAsLong(), Bytes.fromHex(cell.get(4).getAsString()));
  }

  @Test
  void sumsOfPartsAreTheSumOfTheWholeInAnyOrder() {
    Random random = new Random(17);
    for (int round = 0; round < 50; round++) {
      List<Cell> cells = new ArrayList<>();
      int rows = random.nextInt(300);
      for (int row = 0; row < rows; row++) {
        cells.add(cell(row, random.nextInt(200), "v" + random.nextInt(5)));
      }
      List<RowSums> parts = new ArrayList<>();
      for (int at = 0; at < cells.size(); ) {
        int end = Math.min(cells.size(), at + 1 + random.nextInt(50));
        RowDigest part = new RowDigest(simpleRequest(), new byte[0]);
        cells.subList(at, end).forEach(part::add);
        part.buckets().forEach(bucket -> parts.add(bucket.sums));
        at = end;
      }
      Collections.shuffle(parts, random);
      RowSums all = new RowSums();
      parts.forEach(all::add);
      assertArrayEquals(digest(cells), bytes(all));
    }
  }

  @Test
  void everyFieldCounts() {
    byte[] row = Bytes.toBytes("r");
    byte[] f = Bytes.toBytes("f");
    byte[] base = digest(List.of(new KeyValue(row, f, f, 5, f)));
    assertTrue(Arrays.equals(base, digest(List.of(new KeyValue(row, f, f, 5, f)))));
    for (Cell other : List.of(new KeyValue(f, f, f, 5, f), new KeyValue(row, f, row, 5, f),
        new KeyValue(row, f, f, 6, f), new KeyValue(row, f, f, 5, row), new KeyValue(row, f, f, 5, new byte[0]))) {
      assertTrue(!Arrays.equals(base, digest(List.of(other))), other.toString());
    }
  }

  @Test
  void aTagIsNotHashedButATimeToLiveIsCounted() {
    byte[] f = Bytes.toBytes("f");
    Tag tag = new ArrayBackedTag(TagType.TTL_TAG_TYPE, Bytes.toBytes(5000L));
    byte[] plain = digest(List.of(new KeyValue(f, f, f, 5, f)));
    byte[] tagged = digest(List.of(new KeyValue(f, f, f, 5, f, List.of(tag))));
    int expiring = plain.length - Long.BYTES;
    assertArrayEquals(Arrays.copyOf(plain, expiring), Arrays.copyOf(tagged, expiring));
    assertEquals(List.of(0L, 1L), List.of(Bytes.toLong(plain, expiring), Bytes.toLong(tagged, expiring)));
  }

  /** In an array, in a buffer outside of the heap, and in pieces, as encoded blocks have it. */
  @Test
  void aCellIsHashedAlikeWhereverItLies() {
    for (int size : new int[] {0, 3, 900, 5_000_000, 7}) {
      List<Cell> kinds = new ArrayList<>();
      for (int row = 0; row < 3; row++) {
        KeyValue plain = (KeyValue) cell(row, 5, "x".repeat(size));
        ByteBuffer direct = ByteBuffer.allocateDirect(plain.getLength() + 9).position(9).put(plain.getBuffer());
        kinds.add(List.of(plain, new ByteBufferKeyValue(direct, 9, plain.getLength()), pieces(plain)).get(row));
      }
      List<Cell> plain = new ArrayList<>();
      kinds.forEach(each -> plain.add(KeyValueUtil.copyToNewKeyValue(each)));
      assertArrayEquals(digest(plain), digest(kinds), size + " bytes");
    }
  }

  /** The array of a cell ends with it, as the last one of a block may. */
  @Test
  void rowsOfAnyLengthFollowEachOther() {
    byte[] f = Bytes.toBytes("f");
    List<Cell> cells = new ArrayList<>();
    List<Cell> buffers = new ArrayList<>();
    for (int length : new int[] {1, 3_000, 2, 30_000, 3}) {
      KeyValue cell = new KeyValue(Bytes.toBytes("r".repeat(length)), f, f, 5, f);
      cells.add(cell);
      buffers.add(new ByteBufferKeyValue(ByteBuffer.wrap(cell.getBuffer()), 0, cell.getLength()));
    }
    assertArrayEquals(digest(cells), digest(buffers));
    RowDigest digest = new RowDigest(simpleRequest(), new byte[0]);
    cells.forEach(digest::add);
    assertEquals(5, digest.rows());
  }

  private static Cell pieces(KeyValue of) {
    return ExtendedCellBuilderFactory.create(CellBuilderType.SHALLOW_COPY).setRow(CellUtil.cloneRow(of))
        .setFamily(CellUtil.cloneFamily(of)).setQualifier(CellUtil.cloneQualifier(of)).setTimestamp(of.getTimestamp())
        .setType(Cell.Type.Put).setValue(CellUtil.cloneValue(of)).build();
  }

  @Test
  void bucketsTileTheSliceAndStayFew() {
    RowDigest digest = new RowDigest(simpleRequest(), new byte[0]);
    List<Cell> cells = new ArrayList<>();
    for (int row = 0; row < 30_000; row++) {
      cells.add(cell(row, 5, "v"));
    }
    cells.forEach(digest::add);
    List<RowDigest.Bucket> buckets = digest.buckets();
    assertTrue(buckets.size() > RowDigest.MAX_BUCKETS / 4 && buckets.size() <= RowDigest.MAX_BUCKETS);
    for (int i = 1; i < buckets.size(); i++) {
      assertTrue(Bytes.compareTo(buckets.get(i - 1).start, buckets.get(i).start) < 0);
    }
    int second = Integer.parseInt(Bytes.toString(buckets.get(1).start).substring(3));
    assertArrayEquals(digest(cells.subList(0, second)), bytes(buckets.get(0).sums));
  }
}
