package io.github.statustool.lab;

import java.io.IOException;
import java.util.Map;
import java.util.concurrent.ConcurrentHashMap;
import java.util.concurrent.TimeUnit;
import java.util.concurrent.atomic.AtomicLong;
import java.util.concurrent.locks.LockSupport;
import org.apache.hadoop.hbase.TableName;
import org.apache.hadoop.hbase.client.Connection;
import org.apache.hadoop.hbase.client.Put;
import org.apache.hadoop.hbase.client.Table;
import org.apache.hadoop.hbase.util.Bytes;

/** Background writers. */
final class LoadCommands {

  private final Connection connection;
  private final AtomicLong ids = new AtomicLong();
  private final Map<Long, Writer> writers = new ConcurrentHashMap<>();

  LoadCommands(Connection connection) {
    this.connection = connection;
  }

  void register(Map<String, Command> commands) {
    commands.put("load_start", this::start);
    commands.put("load_count", args -> writers.get(args.number("load")).written.get());
    commands.put("load_stop", this::stop);
  }

  private Object start(Args args) {
    long id = ids.incrementAndGet();
    Writer writer = new Writer(args);
    writers.put(id, writer);
    writer.start();
    return id;
  }

  private Object stop(Args args) throws InterruptedException {
    Writer writer = writers.remove(args.number("load"));
    if (writer == null) {
      throw new IllegalArgumentException("no load " + args.number("load"));
    }
    writer.stopping = true;
    writer.join(TimeUnit.SECONDS.toMillis(90));
    if (writer.isAlive()) {
      // Its last put hangs: give that one up. It counts only what was acknowledged.
      writer.interrupt();
      writer.join();
    }
    return writer.written.get();
  }

  /** Puts rows 0, 1, 2, … one at a time; a row is tried until it is acknowledged, so no number is skipped. */
  private final class Writer extends Thread {

    private final TableName table;
    private final byte[] family;
    private final String prefix;
    private final long nanosPerRow;
    private final AtomicLong written = new AtomicLong();
    private volatile boolean stopping;

    Writer(Args args) {
      super("load");
      setDaemon(true);
      table = args.table();
      family = Bytes.toBytes(args.text("family"));
      prefix = args.text("prefix");
      nanosPerRow = TimeUnit.SECONDS.toNanos(1) / args.number("rate_per_s");
    }

    @Override
    public void run() {
      long next = System.nanoTime();
      while (!stopping && !isInterrupted()) {
        if (tryPut(written.get())) {
          written.incrementAndGet();
        }
        // After an outage go on at the same rate, do not catch up in a burst.
        next = Math.max(next + nanosPerRow, System.nanoTime() - nanosPerRow);
        LockSupport.parkNanos(next - System.nanoTime());
      }
    }

    /** Gives up soon: within one operation HBase's pauses grow up to 20 s, long after the region is back. */
    private Table quick() {
      return connection.getTableBuilder(table, null).setOperationTimeout(3000).build();
    }

    private boolean tryPut(long number) {
      try (Table out = quick()) {
        byte[] value = Bytes.toBytes(number);
        out.put(new Put(RowCommands.row(prefix, number)).addColumn(family, Bytes.toBytes("q"), value));
        return true;
      } catch (IOException e) {
        System.err.println("load: row " + number + " is tried again after " + e);
        return false;
      }
    }
  }
}
