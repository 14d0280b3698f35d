package io.github.statustool.lab;

import java.io.IOException;
import java.nio.ByteBuffer;
import java.nio.charset.StandardCharsets;
import java.security.MessageDigest;
import java.security.NoSuchAlgorithmException;
import java.util.LinkedHashMap;
import java.util.List;
import java.util.Map;
import org.apache.hadoop.hbase.Cell;
import org.apache.hadoop.hbase.CellUtil;
import org.apache.hadoop.hbase.HConstants;
import org.apache.hadoop.hbase.ServerName;
import org.apache.hadoop.hbase.TableName;
import org.apache.hadoop.hbase.client.BufferedMutator;
import org.apache.hadoop.hbase.client.Connection;
import org.apache.hadoop.hbase.client.Durability;
import org.apache.hadoop.hbase.client.Put;
import org.apache.hadoop.hbase.client.RegionInfo;
import org.apache.hadoop.hbase.client.RegionInfoBuilder;
import org.apache.hadoop.hbase.client.Result;
import org.apache.hadoop.hbase.client.ResultScanner;
import org.apache.hadoop.hbase.client.Scan;
import org.apache.hadoop.hbase.client.Table;
import org.apache.hadoop.hbase.util.Bytes;

/**
 * Many regions that never were, for measuring what it costs to read them: their rows in hbase:meta as HBase writes them
 * (MetaTableAccessor), and in the state table as the trackers do (docs/formats.md). Only for a cluster that is thrown
 * away.
 */
final class StateTableCommands {

  private static final byte[] FAMILY = Bytes.toBytes("t");
  /** The regions' creation time; they are told apart by their start keys. */
  private static final long CREATED = 1_700_000_000_000L;
  private static final long WRITTEN = CREATED + 1_000_000;
  /** Of each stream: sequence id of the opening, of the head. */
  private static final long OPENED_SEQ = 2;
  private static final long HEAD_SEQ = 402;

  private final Connection connection;

  StateTableCommands(Connection connection) {
    this.connection = connection;
  }

  void register(Map<String, Command> commands) {
    commands.put("many_regions", this::write);
    commands.put("scan", this::scan);
  }

  /** Regions "start" to "end" of "count", spread over "tables" tables and the "servers" by turns. */
  private Object write(Args args) throws IOException, NoSuchAlgorithmException {
    List<String> servers = args.texts("servers");
    try (BufferedMutator states = connection.getBufferedMutator(args.table());
        BufferedMutator meta = connection.getBufferedMutator(TableName.META_TABLE_NAME)) {
      for (long number = args.number("start"); number < args.number("end"); number++) {
        RegionInfo region = region(number, args.number("tables"), args.number("count"));
        ServerName server = ServerName.valueOf(servers.get((int) (number % servers.size())));
        meta.mutate(hosted(region, server));
        byte[] origin = origin(server);
        states.mutate(List.of(head(region, origin), tenure(region, origin), segments(region, origin, number)));
      }
    }
    return null;
  }

  private static RegionInfo region(long number, long tables, long count) {
    byte[] end = number + tables < count ? key(number + tables) : HConstants.EMPTY_END_ROW;
    return RegionInfoBuilder.newBuilder(TableName.valueOf("many" + number % tables))
        .setStartKey(number < tables ? HConstants.EMPTY_START_ROW : key(number)).setEndKey(end)
        .setRegionId(CREATED).build();
  }

  private static byte[] key(long number) {
    return RowCommands.row("customer-", number);
  }

  private static Put hosted(RegionInfo region, ServerName server) {
    byte[] family = HConstants.CATALOG_FAMILY;
    return unlogged(region.getRegionName())
        .addColumn(family, HConstants.REGIONINFO_QUALIFIER, RegionInfo.toByteArray(region))
        .addColumn(family, HConstants.STATE_QUALIFIER, Bytes.toBytes("OPEN"))
        .addColumn(family, HConstants.SERVERNAME_QUALIFIER, Bytes.toBytes(server.getServerName()))
        .addColumn(family, HConstants.SERVER_QUALIFIER, Bytes.toBytes(server.getAddress().toString()))
        .addColumn(family, HConstants.STARTCODE_QUALIFIER, Bytes.toBytes(server.getStartCode()))
        .addColumn(family, HConstants.SEQNUM_QUALIFIER, Bytes.toBytes(OPENED_SEQ));
  }

  private static Put head(RegionInfo region, byte[] origin) {
    Put put = unlogged(streamKey('h', region, origin));
    add(put, "s", Bytes.toBytes(HEAD_SEQ), HEAD_SEQ);
    add(put, "w", Bytes.toBytes(WRITTEN), HEAD_SEQ);
    add(put, "f", Bytes.toBytes(CREATED), HEAD_SEQ);
    add(put, "n", Bytes.toBytes(HEAD_SEQ - OPENED_SEQ), HEAD_SEQ);
    add(put, "t", region.getTable().getName(), HEAD_SEQ);
    add(put, "k", region.getStartKey(), HEAD_SEQ);
    return add(put, "e", region.getEndKey(), HEAD_SEQ);
  }

  /** Open, with one store file in one family. */
  private static Put tenure(RegionInfo region, byte[] origin) {
    String json = "{\"o\":" + OPENED_SEQ + ",\"t\":" + CREATED + ",\"s\":" + HEAD_SEQ + ",\"m\":" + HEAD_SEQ
        + ",\"r\":[\"f\"],\"a\":{\"f\":[0,0,0,0]},\"b\":{\"f\":[1," + Bytes.toLong(origin) + ",0,0]}}";
    Put put = unlogged(Bytes.toBytes("f" + region.getEncodedName()));
    byte[] qualifier = Bytes.add(Bytes.toBytes("k"), origin, Bytes.toBytes(CREATED));
    put.addColumn(FAMILY, qualifier, WRITTEN, Bytes.toBytes(json));
    add(put, "t", region.getTable().getName(), WRITTEN);
    return add(put, "i", Bytes.toBytes(region.getRegionId()), WRITTEN);
  }

  /** All entries in one segment, in the column of one writer. */
  private static Put segments(RegionInfo region, byte[] origin, long writer) {
    ByteBuffer value = ByteBuffer.allocate(1 + 6 * Long.BYTES).put((byte) 1)
        .putLong(0).putLong(HEAD_SEQ).putLong(CREATED).putLong(WRITTEN).putLong(0).putLong(WRITTEN);
    Put put = unlogged(streamKey('s', region, origin));
    put.addColumn(FAMILY, Bytes.add(Bytes.toBytes("c"), Bytes.toBytes(writer)), WRITTEN, value.array());
    add(put, "r", Bytes.toBytes(WRITTEN), WRITTEN);
    return add(put, "t", region.getTable().getName(), WRITTEN);
  }

  private static Put unlogged(byte[] key) {
    return new Put(key).setDurability(Durability.SKIP_WAL);
  }

  private static Put add(Put put, String qualifier, byte[] value, long timestamp) {
    return put.addColumn(FAMILY, Bytes.toBytes(qualifier), timestamp, value);
  }

  /** A stream of local writes. */
  private static byte[] streamKey(char type, RegionInfo region, byte[] origin) {
    return Bytes.toBytes(type + region.getEncodedName() + Bytes.toHex(origin) + "0".repeat(2 * Long.BYTES));
  }

  private static byte[] origin(ServerName server) throws NoSuchAlgorithmException {
    MessageDigest digest = MessageDigest.getInstance("SHA-256");
    return Bytes.head(digest.digest(server.getServerName().getBytes(StandardCharsets.UTF_8)), Long.BYTES);
  }

  /** One scanner of HBase's own client over a whole table; every cell is taken out as bytes. */
  private Object scan(Args args) throws IOException {
    long began = System.nanoTime();
    long rows = 0;
    long bytes = 0;
    try (Table table = connection.getTable(args.table());
        ResultScanner results = table.getScanner(new Scan().setCaching(args.integer("caching")))) {
      for (Result result : results) {
        rows++;
        for (Cell cell : result.rawCells()) {
          bytes += CellUtil.cloneQualifier(cell).length + CellUtil.cloneValue(cell).length;
        }
      }
    }
    Map<String, Object> answer = new LinkedHashMap<>();
    answer.put("rows", rows);
    answer.put("bytes", bytes);
    answer.put("seconds", (System.nanoTime() - began) / 1e9);
    return answer;
  }
}
