package io.github.statustool.lab;

import com.google.protobuf.ServiceException;
import java.io.IOException;
import java.util.ArrayList;
import java.util.Collections;
import java.util.LinkedHashMap;
import java.util.List;
import java.util.Map;
import java.util.Random;
import java.util.concurrent.ConcurrentHashMap;
import java.util.concurrent.TimeUnit;
import java.util.concurrent.atomic.AtomicLong;
import java.util.concurrent.locks.LockSupport;
import org.apache.hadoop.hbase.Cell;
import org.apache.hadoop.hbase.CellUtil;
import org.apache.hadoop.hbase.TableName;
import org.apache.hadoop.hbase.client.Append;
import org.apache.hadoop.hbase.client.Connection;
import org.apache.hadoop.hbase.client.Delete;
import org.apache.hadoop.hbase.client.Increment;
import org.apache.hadoop.hbase.client.Mutation;
import org.apache.hadoop.hbase.client.Put;
import org.apache.hadoop.hbase.client.Result;
import org.apache.hadoop.hbase.client.ResultScanner;
import org.apache.hadoop.hbase.client.RowMutations;
import org.apache.hadoop.hbase.client.Scan;
import org.apache.hadoop.hbase.client.Table;
import org.apache.hadoop.hbase.protobuf.ProtobufUtil;
import org.apache.hadoop.hbase.protobuf.generated.ClientProtos.MutationProto.MutationType;
import org.apache.hadoop.hbase.protobuf.generated.MultiRowMutationProtos.MultiRowMutationService;
import org.apache.hadoop.hbase.protobuf.generated.MultiRowMutationProtos.MutateRowsRequest;
import org.apache.hadoop.hbase.util.Bytes;

/**
 * Writers of every kind of edit that keep a journal of what was acknowledged, and the cells that a table really holds.
 *
 * <p>A cell is identified by {@code row, family, qualifier, type, value}, separated by tabs: every written cell differs
 * from every other one in these, so comparing two clusters does not involve times and clocks.
 */
final class MixCommands {

  private final Connection connection;
  private final AtomicLong ids = new AtomicLong();
  private final Map<Long, Mix> mixes = new ConcurrentHashMap<>();

  MixCommands(Connection connection) {
    this.connection = connection;
  }

  void register(Map<String, Command> commands) {
    commands.put("mix_start", this::start);
    commands.put("mix_journal", args -> mixes.get(args.number("mix")).since(args.integer("from")));
    commands.put("mix_stop", this::stop);
    commands.put("cells", this::cells);
  }

  private Object start(Args args) {
    long id = ids.incrementAndGet();
    Mix mix = new Mix(args);
    mixes.put(id, mix);
    mix.start();
    return id;
  }

  /** Ends when the writer has: nothing of it comes after. */
  private Object stop(Args args) throws InterruptedException {
    Mix mix = mixes.get(args.number("mix"));
    mix.stopping = true;
    mix.join(TimeUnit.SECONDS.toMillis(args.integer("patience_s")));
    if (mix.isAlive()) {
      mix.interrupt();
      mix.join();
    }
    return null;
  }

  private Object cells(Args args) throws IOException {
    List<String> all = new ArrayList<>();
    boolean raw = !args.flag("visible");
    Scan scan = new Scan().readAllVersions().setRaw(raw).setCaching(1000).setCacheBlocks(false);
    try (Table table = connection.getTable(args.table());
        ResultScanner results = table.getScanner(scan)) {
      for (Result result : results) {
        for (Cell cell : result.rawCells()) {
          all.add(describe(cell));
        }
      }
    }
    return all;
  }

  private static String describe(Cell cell) {
    return describe(
        CellUtil.cloneRow(cell),
        CellUtil.cloneFamily(cell),
        CellUtil.cloneQualifier(cell),
        cell.getType().name(),
        CellUtil.cloneValue(cell));
  }

  private static String describe(byte[] row, byte[] family, byte[] qualifier, String type, byte[] value) {
    return String.join(
        "\t",
        Bytes.toStringBinary(row),
        Bytes.toString(family),
        Bytes.toString(qualifier),
        type,
        Bytes.toStringBinary(value));
  }

  /** One column that was written and may be deleted later. */
  private record Column(TableName table, byte[] row, byte[] family, byte[] qualifier) {}

  /** A writer: one operation at a time, drawn from a seed; an operation that failed may or may not be there. */
  private final class Mix extends Thread {

    private static final int ROWS = 400;
    private static final int COUNTERS = 12;

    private final List<Map.Entry<TableName, List<String>>> tables = new ArrayList<>();
    private final List<String> journal = Collections.synchronizedList(new ArrayList<>());
    private final List<Column> columns = new ArrayList<>();
    private final Random random;
    private final String mark;
    private final long nanosPerOperation;
    private long number;
    private volatile boolean stopping;

    Mix(Args args) {
      super("mix");
      setDaemon(true);
      args.textLists("tables").forEach((name, families) -> tables.add(Map.entry(TableName.valueOf(name), families)));
      random = new Random(args.number("seed"));
      mark = args.text("mark");
      nanosPerOperation = TimeUnit.SECONDS.toNanos(1) / args.number("rate_per_s");
    }

    Map<String, Object> since(int from) {
      Map<String, Object> answer = new LinkedHashMap<>();
      synchronized (journal) {
        answer.put("cells", List.copyOf(journal.subList(from, journal.size())));
      }
      return answer;
    }

    @Override
    public void run() {
      long next = System.nanoTime();
      while (!stopping && !isInterrupted()) {
        try {
          operate();
        } catch (IOException | RuntimeException e) {
          System.err.println("mix: given up " + e);
        }
        next = Math.max(next + nanosPerOperation, System.nanoTime() - nanosPerOperation);
        LockSupport.parkNanos(next - System.nanoTime());
      }
    }

    private void operate() throws IOException {
      Map.Entry<TableName, List<String>> chosen = tables.get(random.nextInt(tables.size()));
      List<String> families = chosen.getValue();
      byte[] family = Bytes.toBytes(families.get(random.nextInt(families.size())));
      TableName name = chosen.getKey();
      // Gives up soon: within one operation HBase's pauses grow up to 20 s, long after the region is back.
      try (Table table = connection.getTableBuilder(name, null).setOperationTimeout(2500).build()) {
        switch (random.nextInt(9)) {
          case 0, 1 -> put(table, List.of(fresh(name, family, row())));
          case 2 -> twice(table, family);
          case 3 -> delete(table);
          case 4 -> increment(table, family);
          case 5 -> append(table, family);
          case 6 -> batch(table, families);
          case 7 -> multiRows(table, families);
          default -> rowMutations(table, family);
        }
      }
    }

    /** Spread over the whole key space, so that every region gets some. */
    private byte[] row() {
      return Bytes.toBytes(String.format("%03d", random.nextInt(1000)) + "-" + mark + random.nextInt(ROWS));
    }

    private Column fresh(TableName table, byte[] family, byte[] row) {
      return new Column(table, row, family, Bytes.toBytes("q" + mark + number++));
    }

    private void put(Table table, List<Column> written) throws IOException {
      List<Put> puts = new ArrayList<>();
      for (Column one : written) {
        puts.add(new Put(one.row).addColumn(one.family, one.qualifier, one.qualifier));
      }
      if (puts.size() == 1) {
        table.put(puts.get(0));
      } else {
        table.put(puts);
      }
      written.forEach(this::wasPut);
    }

    private void wasPut(Column one) {
      columns.add(one);
      acknowledged(one.table, describe(one.row, one.family, one.qualifier, "Put", one.qualifier));
    }

    private void acknowledged(TableName table, String cell) {
      journal.add(table.getNameAsString() + "\t" + cell);
    }

    /** Two entries of one row, mostly within a millisecond. */
    private void twice(Table table, byte[] family) throws IOException {
      byte[] row = row();
      put(table, List.of(fresh(table.getName(), family, row)));
      put(table, List.of(fresh(table.getName(), family, row)));
    }

    private void delete(Table table) throws IOException {
      if (columns.isEmpty()) {
        return;
      }
      Column one = columns.remove(random.nextInt(columns.size()));
      if (one.table.equals(table.getName())) {
        table.delete(new Delete(one.row).addColumns(one.family, one.qualifier));
        wasDeleted(one);
      }
    }

    private void wasDeleted(Column one) {
      acknowledged(one.table, describe(one.row, one.family, one.qualifier, "DeleteColumn", new byte[0]));
    }

    private void increment(Table table, byte[] family) throws IOException {
      byte[] row = Bytes.toBytes(String.format("%03d", random.nextInt(COUNTERS) * 83) + "-counter" + mark);
      byte[] qualifier = Bytes.toBytes("n");
      Result result = table.increment(new Increment(row).addColumn(family, qualifier, 1 + random.nextInt(1 << 20)));
      acknowledged(table.getName(), describe(row, family, qualifier, "Put", result.getValue(family, qualifier)));
      anotherMillisecond();
    }

    private void append(Table table, byte[] family) throws IOException {
      // Not much is appended to one row, for its value goes into the journal whole every time.
      byte[] row = Bytes.toBytes(String.format("%03d", random.nextInt(1000)) + "-append" + mark + number++ / 50);
      byte[] qualifier = Bytes.toBytes("a");
      Result result = table.append(new Append(row).addColumn(family, qualifier, Bytes.toBytes("+" + number++)));
      acknowledged(table.getName(), describe(row, family, qualifier, "Put", result.getValue(family, qualifier)));
      anotherMillisecond();
    }

    /** Two versions of a column in one millisecond are one cell: the later would hide the earlier. */
    private void anotherMillisecond() {
      LockSupport.parkNanos(TimeUnit.MILLISECONDS.toNanos(3));
    }

    private void batch(Table table, List<String> families) throws IOException {
      List<Column> written = new ArrayList<>();
      int count = 3 + random.nextInt(12);
      for (int i = 0; i < count; i++) {
        byte[] family = Bytes.toBytes(families.get(random.nextInt(families.size())));
        written.add(fresh(table.getName(), family, row()));
      }
      put(table, written);
    }

    private void rowMutations(Table table, byte[] family) throws IOException {
      byte[] row = row();
      Column first = fresh(table.getName(), family, row);
      Column second = fresh(table.getName(), family, row);
      Put put = new Put(row).addColumn(family, first.qualifier, first.qualifier);
      Delete delete = new Delete(row).addColumns(family, second.qualifier);
      table.mutateRow(RowMutations.of(List.of(put, delete)));
      wasPut(first);
      wasDeleted(second);
    }

    /** Several rows of one region in one entry of the WAL, by HBase's MultiRowMutationEndpoint. */
    private void multiRows(Table table, List<String> families) throws IOException {
      // Regions end at three digits: rows that begin with the same three are in one.
      String digits = String.format("%03d", random.nextInt(1000));
      List<Column> written = new ArrayList<>();
      for (int i = 0; i < 3; i++) {
        byte[] family = Bytes.toBytes(families.get(random.nextInt(families.size())));
        written.add(fresh(table.getName(), family, Bytes.toBytes(digits + "-multi" + mark + i)));
      }
      Column gone = fresh(table.getName(), written.get(0).family, Bytes.toBytes(digits + "-multi" + mark + 3));
      MutateRowsRequest.Builder request = MutateRowsRequest.newBuilder();
      for (Column one : written) {
        Mutation put = new Put(one.row).addColumn(one.family, one.qualifier, one.qualifier);
        request.addMutationRequest(ProtobufUtil.toMutation(MutationType.PUT, put));
      }
      Delete delete = new Delete(gone.row).addColumns(gone.family, gone.qualifier);
      request.addMutationRequest(ProtobufUtil.toMutation(MutationType.DELETE, delete));
      try {
        MultiRowMutationService.newBlockingStub(table.coprocessorService(gone.row))
            .mutateRows(null, request.build());
      } catch (ServiceException e) {
        throw new IOException(e);
      }
      written.forEach(this::wasPut);
      wasDeleted(gone);
    }
  }
}
