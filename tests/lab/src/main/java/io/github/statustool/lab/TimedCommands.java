package io.github.statustool.lab;

import java.io.IOException;
import java.util.ArrayList;
import java.util.Arrays;
import java.util.HashMap;
import java.util.List;
import java.util.Locale;
import java.util.Map;
import java.util.concurrent.Callable;
import java.util.concurrent.ExecutionException;
import java.util.concurrent.ExecutorService;
import java.util.concurrent.Executors;
import java.util.concurrent.Future;
import java.util.concurrent.TimeUnit;
import java.util.concurrent.atomic.AtomicLong;
import java.util.concurrent.locks.LockSupport;
import org.apache.hadoop.conf.Configuration;
import org.apache.hadoop.hbase.HBaseConfiguration;
import org.apache.hadoop.hbase.TableName;
import org.apache.hadoop.hbase.client.Connection;
import org.apache.hadoop.hbase.client.ConnectionFactory;
import org.apache.hadoop.hbase.client.Get;
import org.apache.hadoop.hbase.client.Put;
import org.apache.hadoop.hbase.client.Table;
import org.apache.hadoop.hbase.util.Bytes;

/**
 * Writes whose every call is timed, and how long edits take to be replicated. {@code cluster} is a cluster key: one
 * client measures several clusters, so that what it costs itself is the same for all of them.
 */
final class TimedCommands {
  private static final byte[] FAMILY = Bytes.toBytes("f");
  private static final byte[] QUALIFIER = Bytes.toBytes("q");
  private static final long POLL_NANOS = TimeUnit.MILLISECONDS.toNanos(2);
  /** Seldom, as a look costs the slave something, too. */
  private static final long LOOK_NANOS = TimeUnit.MILLISECONDS.toNanos(20);
  private static final long PROBE_NANOS = TimeUnit.MILLISECONDS.toNanos(100);

  private final Configuration conf;
  private final Map<String, Connection> connections = new HashMap<>();

  TimedCommands(Configuration conf) {
    this.conf = conf;
  }

  void register(Map<String, Command> commands) {
    commands.put("timed_puts", this::puts);
    commands.put("await_row", args -> await(connection(args.text("cluster")), args.table(), row(args, "row")));
    commands.put("timed_replication", this::replication);
  }

  private Connection connection(String cluster) throws IOException {
    Connection known = connections.get(cluster);
    if (known == null) {
      known = ConnectionFactory.createConnection(HBaseConfiguration.createClusterConf(conf, cluster));
      connections.put(cluster, known);
    }
    return known;
  }

  /** The first digit names the region, of ten: neighbours are in different ones. */
  private static byte[] row(long number) {
    return Bytes.toBytes(String.format(Locale.ROOT, "%d%010d", number % 10, number));
  }

  private static byte[] row(Args args, String name) {
    return row(args.number(name));
  }

  /** Rows from {@code start} on, {@code calls} calls of {@code batch} rows each, by so many threads at once. */
  private Object puts(Args args) throws IOException, InterruptedException, ExecutionException {
    Connection connection = connection(args.text("cluster"));
    int calls = args.integer("calls");
    int batch = args.integer("batch");
    byte[] value = new byte[args.integer("value_bytes")];
    AtomicLong next = new AtomicLong();
    long[] nanos = new long[calls];
    long began = System.nanoTime();
    inParallel(args.integer("threads"), () -> {
      try (Table table = connection.getTable(args.table())) {
        for (long call = next.getAndIncrement(); call < calls; call = next.getAndIncrement()) {
          List<Put> puts = new ArrayList<>(batch);
          for (int i = 0; i < batch; i++) {
            puts.add(put(args.number("start") + call * batch + i, value));
          }
          nanos[(int) call] = timed(table, puts);
        }
      }
      return null;
    });
    double seconds = (System.nanoTime() - began) / 1e9;
    return Map.of("seconds", seconds, "p50_ms", percentile(nanos, 50), "p99_ms", percentile(nanos, 99));
  }

  private static Put put(long number, byte[] value) {
    return new Put(row(number)).addColumn(FAMILY, QUALIFIER, value);
  }

  private static long timed(Table table, List<Put> puts) throws IOException {
    long began = System.nanoTime();
    if (puts.size() == 1) {
      table.put(puts.get(0));
    } else {
      table.put(puts);
    }
    return System.nanoTime() - began;
  }

  private static double percentile(long[] nanos, int percent) {
    Arrays.sort(nanos);
    return nanos[Math.min(nanos.length - 1, nanos.length * percent / 100)] / 1e6;
  }

  private static void inParallel(int threads, Callable<Void> work) throws InterruptedException, ExecutionException {
    ExecutorService pool = Executors.newFixedThreadPool(threads);
    try {
      List<Future<Void>> running = new ArrayList<>();
      for (int i = 0; i < threads; i++) {
        running.add(pool.submit(work));
      }
      for (Future<Void> one : running) {
        one.get();
      }
    } finally {
      pool.shutdownNow();
    }
  }

  private static Object await(Connection connection, TableName name, byte[] row) throws IOException {
    try (Table table = connection.getTable(name)) {
      while (!table.exists(new Get(row))) {
        LockSupport.parkNanos(POLL_NANOS);
      }
    }
    return null;
  }

  /**
   * Single puts at a steady rate for a while, and how long some of them take to be on each of the {@code slaves}. Rows
   * from {@code start} on; answers with how many there are.
   */
  private Object replication(Args args) throws IOException, InterruptedException, ExecutionException {
    Connection master = connection(args.text("cluster"));
    long end = System.nanoTime() + TimeUnit.MILLISECONDS.toNanos(args.number("millis"));
    int threads = args.integer("threads");
    AtomicLong next = new AtomicLong(args.number("start"));
    List<Slave> slaves = new ArrayList<>();
    for (String slave : args.texts("slaves")) {
      slaves.add(new Slave(connection(slave).getTable(args.table())));
    }
    ExecutorService prober = Executors.newSingleThreadExecutor();
    try {
      Future<?> probing = prober.submit(() -> probe(args.table(), master, slaves, next, end));
      long pause = TimeUnit.SECONDS.toNanos(1) * threads / args.number("rate");
      inParallel(threads, () -> write(args.table(), master, next, end, pause, args.integer("value_bytes")));
      probing.get();
    } finally {
      prober.shutdownNow();
    }
    List<List<Double>> lags = slaves.stream().map(slave -> slave.lags).toList();
    return Map.of("rows", next.get() - args.number("start"), "lags_ms", lags);
  }

  private static Void write(TableName name, Connection master, AtomicLong next, long end, long pause, int bytes)
      throws IOException {
    byte[] value = new byte[bytes];
    try (Table table = master.getTable(name)) {
      for (long due = System.nanoTime(); System.nanoTime() < end; due += pause) {
        LockSupport.parkNanos(due - System.nanoTime());
        table.put(put(next.getAndIncrement(), value));
      }
    }
    return null;
  }

  /** Writes a row that is looked for every now and then, until all of them are on all slaves. */
  private static Void probe(TableName name, Connection master, List<Slave> slaves, AtomicLong next, long end)
      throws IOException {
    List<Probe> probes = new ArrayList<>();
    try (Table table = master.getTable(name)) {
      for (long due = System.nanoTime(); System.nanoTime() < end || anyWaits(slaves, probes);) {
        if (due <= System.nanoTime() && System.nanoTime() < end) {
          long number = next.getAndIncrement();
          table.put(put(number, new byte[1]));
          probes.add(new Probe(row(number), System.nanoTime()));
          due += PROBE_NANOS;
        }
        for (Slave slave : slaves) {
          slave.look(probes);
        }
        LockSupport.parkNanos(LOOK_NANOS);
      }
    }
    return null;
  }

  private static boolean anyWaits(List<Slave> slaves, List<Probe> probes) {
    return slaves.stream().anyMatch(slave -> slave.lags.size() < probes.size());
  }

  /** A row and when it had been written. */
  private record Probe(byte[] row, long written) {}

  /** Which of the probes have arrived. They do so in order, so only the next one is asked for. */
  private static final class Slave {
    private final Table table;
    private final List<Double> lags = new ArrayList<>();

    private Slave(Table table) {
      this.table = table;
    }

    private void look(List<Probe> probes) throws IOException {
      while (lags.size() < probes.size() && table.exists(new Get(probes.get(lags.size()).row()))) {
        lags.add((System.nanoTime() - probes.get(lags.size()).written()) / 1e6);
      }
    }
  }
}
