package io.github.statustool.lab;

import java.io.IOException;
import java.nio.ByteBuffer;
import java.nio.charset.StandardCharsets;
import java.security.MessageDigest;
import java.security.NoSuchAlgorithmException;
import java.util.ArrayList;
import java.util.LinkedHashMap;
import java.util.List;
import java.util.Locale;
import java.util.Map;
import java.util.function.Function;
import org.apache.hadoop.fs.FileSystem;
import org.apache.hadoop.fs.Path;
import org.apache.hadoop.hbase.Cell;
import org.apache.hadoop.hbase.CellUtil;
import org.apache.hadoop.hbase.HConstants;
import org.apache.hadoop.hbase.KeyValue;
import org.apache.hadoop.hbase.TableName;
import org.apache.hadoop.hbase.client.BufferedMutator;
import org.apache.hadoop.hbase.client.Connection;
import org.apache.hadoop.hbase.client.Delete;
import org.apache.hadoop.hbase.client.Durability;
import org.apache.hadoop.hbase.client.Mutation;
import org.apache.hadoop.hbase.client.Put;
import org.apache.hadoop.hbase.client.Result;
import org.apache.hadoop.hbase.client.ResultScanner;
import org.apache.hadoop.hbase.client.RowMutations;
import org.apache.hadoop.hbase.client.Scan;
import org.apache.hadoop.hbase.client.Table;
import org.apache.hadoop.hbase.filter.FirstKeyOnlyFilter;
import org.apache.hadoop.hbase.io.hfile.CacheConfig;
import org.apache.hadoop.hbase.io.hfile.HFile;
import org.apache.hadoop.hbase.io.hfile.HFileContextBuilder;
import org.apache.hadoop.hbase.tool.BulkLoadHFilesTool;
import org.apache.hadoop.hbase.util.Bytes;

/** Writing rows in bulk, and comparing what is there. */
final class RowCommands {

  private static final int SCAN_CACHING = 1000;

  private final Connection connection;
  private final FileSystem files;

  RowCommands(Connection connection, FileSystem files) {
    this.connection = connection;
    this.files = files;
  }

  void register(Map<String, Command> commands) {
    commands.put("put_rows", this::putRows);
    commands.put("delete_rows", args -> write(args, row -> new Delete(row)));
    commands.put("mutate_row", this::mutateRow);
    commands.put("digest", this::digest);
    commands.put("rows", this::rows);
    commands.put("bulk_load", this::bulkLoad);
  }

  /** The one form of row keys, so that every command means the same rows by the same numbers. */
  static byte[] row(String prefix, long number) {
    return Bytes.toBytes(String.format(Locale.ROOT, "%s%08d", prefix, number));
  }

  private Object putRows(Args args) throws IOException {
    byte[] family = Bytes.toBytes(args.text("family"));
    byte[] qualifier = Bytes.toBytes(args.text("qualifier"));
    byte[] value = Bytes.toBytes(args.text("value"));
    Durability durability = args.durability();
    long ttl = args.has("ttl_ms") ? args.number("ttl_ms") : 0;
    long timestamp = args.has("timestamp_ms") ? args.number("timestamp_ms") : HConstants.LATEST_TIMESTAMP;
    return write(args, row -> {
      Put put = new Put(row).addColumn(family, qualifier, timestamp, value).setDurability(durability);
      return ttl > 0 ? put.setTTL(ttl) : put;
    });
  }

  private long write(Args args, Function<byte[], Mutation> mutation) throws IOException {
    long start = args.number("start");
    long count = args.number("count");
    try (BufferedMutator out = connection.getBufferedMutator(args.table())) {
      for (long i = start; i < start + count; i++) {
        out.mutate(mutation.apply(row(args.text("prefix"), i)));
      }
    }
    return count;
  }

  private Object mutateRow(Args args) throws IOException {
    Put put = new Put(args.bytes("row"));
    args.textLists("values").forEach((column, values) -> add(put, column, values.get(0)));
    try (Table table = connection.getTable(args.table())) {
      table.mutateRow(RowMutations.of(List.of(put)));
    }
    return null;
  }

  private static void add(Put put, String column, String value) {
    byte[][] parts = CellUtil.parseColumn(Bytes.toBytes(column));
    put.addColumn(parts[0], parts[1], Bytes.toBytes(value));
  }

  private Object rows(Args args) throws IOException {
    List<String> keys = new ArrayList<>();
    Scan scan = new Scan().setFilter(new FirstKeyOnlyFilter()).setCaching(SCAN_CACHING);
    try (Table table = connection.getTable(args.table());
        ResultScanner results = table.getScanner(scan)) {
      for (Result result : results) {
        keys.add(Args.base64(result.getRow()));
      }
    }
    return keys;
  }

  private Object digest(Args args) throws IOException, NoSuchAlgorithmException {
    Scan scan = new Scan().readAllVersions().setCaching(SCAN_CACHING).setCacheBlocks(false);
    scan.setRaw(args.flag("raw"));
    args.texts("families").forEach(family -> scan.addFamily(Bytes.toBytes(family)));
    MessageDigest digest = MessageDigest.getInstance("SHA-256");
    long rows = 0;
    long cells = 0;
    try (Table table = connection.getTable(args.table());
        ResultScanner results = table.getScanner(scan)) {
      for (Result result : results) {
        rows++;
        for (Cell cell : result.rawCells()) {
          cells++;
          update(digest, cell);
        }
      }
    }
    Map<String, Object> answer = new LinkedHashMap<>();
    answer.put("rows", rows);
    answer.put("cells", cells);
    answer.put("digest", Bytes.toHex(digest.digest()));
    return answer;
  }

  /** Every field goes in with its length: otherwise "ab","c" and "a","bc" would be the same. */
  private static void update(MessageDigest digest, Cell cell) {
    byte[][] fields = {
      CellUtil.cloneRow(cell),
      CellUtil.cloneFamily(cell),
      CellUtil.cloneQualifier(cell),
      Bytes.toBytes(cell.getTimestamp()),
      cell.getType().name().getBytes(StandardCharsets.UTF_8),
      CellUtil.cloneValue(cell)
    };
    for (byte[] field : fields) {
      digest.update(ByteBuffer.allocate(Integer.BYTES).putInt(0, field.length));
      digest.update(field);
    }
  }

  private Object bulkLoad(Args args) throws IOException {
    TableName table = args.table();
    Path folder = new Path("/bulk-load-" + System.nanoTime());
    writeHFile(new Path(new Path(folder, args.text("family")), "hfile"), args);
    BulkLoadHFilesTool loader = new BulkLoadHFilesTool(connection.getConfiguration());
    if (args.flag("not_replicated")) {
      loader.disableReplication();
    }
    loader.bulkLoad(table, folder);
    files.delete(folder, true);
    return args.number("count");
  }

  private void writeHFile(Path path, Args args) throws IOException {
    byte[] family = Bytes.toBytes(args.text("family"));
    byte[] qualifier = Bytes.toBytes("q");
    long now = System.currentTimeMillis();
    var context = new HFileContextBuilder().withBlockSize(64 * 1024).withIncludesTags(true).build();
    var factory = HFile.getWriterFactory(connection.getConfiguration(), CacheConfig.DISABLED);
    try (HFile.Writer out = factory.withPath(files, path).withFileContext(context).create()) {
      for (long i = 0; i < args.number("count"); i++) {
        byte[] row = row(args.text("prefix"), i);
        out.append(new KeyValue(row, family, qualifier, now, Bytes.toBytes("bulk")));
      }
    }
  }
}
