package io.github.statustool.state;

import java.io.Closeable;
import java.io.IOException;
import java.io.InterruptedIOException;
import java.util.ArrayList;
import java.util.Collection;
import java.util.EnumSet;
import java.util.List;
import java.util.Map;
import java.util.TreeMap;
import java.util.concurrent.CompletableFuture;
import java.util.concurrent.ExecutionException;
import java.util.concurrent.TimeUnit;
import java.util.concurrent.TimeoutException;
import org.apache.hadoop.conf.Configuration;
import org.apache.hadoop.hbase.Cell;
import org.apache.hadoop.hbase.CellUtil;
import org.apache.hadoop.hbase.ClusterMetrics;
import org.apache.hadoop.hbase.ClusterMetrics.Option;
import org.apache.hadoop.hbase.HConstants;
import org.apache.hadoop.hbase.ServerName;
import org.apache.hadoop.hbase.client.AdvancedScanResultConsumer;
import org.apache.hadoop.hbase.client.AsyncConnection;
import org.apache.hadoop.hbase.client.AsyncTable;
import org.apache.hadoop.hbase.client.CheckAndMutate;
import org.apache.hadoop.hbase.client.CheckAndMutateResult;
import org.apache.hadoop.hbase.client.ConnectionFactory;
import org.apache.hadoop.hbase.client.Delete;
import org.apache.hadoop.hbase.client.Get;
import org.apache.hadoop.hbase.client.Put;
import org.apache.hadoop.hbase.client.Result;
import org.apache.hadoop.hbase.client.RowMutations;
import org.apache.hadoop.hbase.client.Scan;
import org.apache.hadoop.hbase.client.TableDescriptor;
import org.apache.hadoop.hbase.security.UserProvider;
import org.slf4j.Logger;
import org.slf4j.LoggerFactory;

/**
 * The state table, over an asynchronous connection with short time-outs of its own. Callers wait for results with a
 * time limit and can be interrupted.
 */
public final class HBaseStateStore implements StateStore, Closeable {
  private static final Logger LOG = LoggerFactory.getLogger(HBaseStateStore.class);
  private static final int MAX_ATTEMPTS = 3;
  private static final int CHUNK = 500;
  private static final long CHUNK_BYTES = 4 << 20;
  private static final long RETRY_PAUSE_MS = 100;
  /** Grace period for the client's own time-out, whose exception is more informative than ours. */
  private static final long SLACK_MS = 500;

  private final Settings settings;
  private final AsyncConnection connection;
  private final AsyncTable<AdvancedScanResultConsumer> table;
  private final StateTableMaker maker;

  HBaseStateStore(Settings settings, AsyncConnection connection) {
    this.settings = settings;
    this.connection = connection;
    this.table = connection.getTableBuilder(settings.table)
        .setOperationTimeout(settings.operationTimeout, TimeUnit.MILLISECONDS)
        .setRpcTimeout(settings.operationTimeout, TimeUnit.MILLISECONDS)
        .setScanTimeout(settings.operationTimeout, TimeUnit.MILLISECONDS)
        .setRetryPause(RETRY_PAUSE_MS, TimeUnit.MILLISECONDS)
        .setMaxAttempts(MAX_ATTEMPTS)
        .build();
    this.maker = new StateTableMaker(settings, connection.getAdmin());
  }

  public static HBaseStateStore connect(Configuration conf, Settings settings) throws IOException {
    return new HBaseStateStore(settings, open(conf, settings));
  }

  /** Opens an impatient connection. */
  public static AsyncConnection open(Configuration conf, Settings settings) throws IOException {
    Configuration own = impatient(conf, settings);
    // The region server's own user: it owns the state table, and no second login needs a keytab.
    return inTime(ConnectionFactory.createAsyncConnection(own, UserProvider.instantiate(own).getCurrent()),
        settings.operationTimeout);
  }

  /** Waits for a connection; closes it if it opens after the time-out, when it would not be used any more. */
  static <T extends Closeable> T inTime(CompletableFuture<T> opening, long timeout) throws IOException {
    try {
      return await(opening, timeout);
    } catch (IOException e) {
      opening.thenAccept(HBaseStateStore::closeQuietly);
      throw e;
    }
  }

  private static void closeQuietly(Closeable late) {
    try {
      late.close();
    } catch (IOException e) {
      LOG.debug("status-tool: closing a connection that came too late", e);
    }
  }

  /** Returns the client configuration with short time-outs and few retries. */
  private static Configuration impatient(Configuration conf, Settings settings) {
    int timeout = (int) Math.min(Integer.MAX_VALUE, settings.operationTimeout);
    Configuration own = new Configuration(conf);
    // With the server's own settings one call could retry for minutes, and a server that stops cannot wait for that.
    own.setInt(HConstants.HBASE_CLIENT_RETRIES_NUMBER, MAX_ATTEMPTS);
    own.setInt(HConstants.HBASE_CLIENT_OPERATION_TIMEOUT, timeout);
    own.setInt(HConstants.HBASE_CLIENT_META_OPERATION_TIMEOUT, timeout);
    own.setInt(HConstants.HBASE_RPC_TIMEOUT_KEY, timeout);
    own.setInt("zookeeper.recovery.retry", 1);
    // HBase's servers do the same for their own connections: that quorum serves clients only.
    own.unset(HConstants.CLIENT_ZOOKEEPER_QUORUM);
    return own;
  }

  @Override
  public void ensureTable() throws IOException {
    maker.ensure();
  }

  @Override
  public void put(List<StateRow> rows) throws IOException {
    for (int from = 0, to; from < rows.size(); from = to) {
      to = chunkEnd(rows, from);
      await(putAsync(rows.subList(from, to)));
    }
  }

  /** Returns where a request ends that begins at a row: what is sent has to arrive within one time-out. */
  static int chunkEnd(List<StateRow> rows, int from) {
    int most = Math.min(rows.size(), from + CHUNK);
    int to = from + 1;
    for (long bytes = rows.get(from).size(); to < most; to++) {
      bytes += rows.get(to).size();
      if (bytes > CHUNK_BYTES) {
        break;
      }
    }
    return to;
  }

  @Override
  public CompletableFuture<Void> putAsync(List<StateRow> rows) {
    if (rows.size() == 1) {
      return table.put(toPut(rows.get(0))); // a batch of one would take the client more CPU
    }
    List<Put> puts = new ArrayList<>(rows.size());
    for (StateRow row : rows) {
      puts.add(toPut(row));
    }
    return table.putAll(puts);
  }

  @Override
  public List<StoredRow> get(List<byte[]> keys) throws IOException {
    List<Get> gets = new ArrayList<>(keys.size());
    for (byte[] key : keys) {
      gets.add(new Get(key).addFamily(StateTable.FAMILY));
    }
    List<StoredRow> rows = new ArrayList<>(keys.size());
    List<Result> results = await(table.getAll(gets));
    for (int i = 0; i < results.size(); i++) {
      rows.add(toRow(keys.get(i), results.get(i)));
    }
    return rows;
  }

  @Override
  public CompletableFuture<Void> replaceAsync(StateRow row, StoredRow read, List<byte[]> deletedQualifiers) {
    try {
      return table.mutateRow(replacement(row, read, deletedQualifiers)).thenAccept(done -> { });
    } catch (IOException e) {
      return CompletableFuture.failedFuture(e);
    }
  }

  /** Builds one atomic mutation. */
  static RowMutations replacement(StateRow row, StoredRow read, List<byte[]> deletedQualifiers) throws IOException {
    Delete delete = new Delete(row.key);
    for (byte[] qualifier : deletedQualifiers) {
      long version = read.timestamp(qualifier);
      delete.addColumns(StateTable.FAMILY, qualifier, version == 0 ? HConstants.LATEST_TIMESTAMP : version);
    }
    return RowMutations.of(List.of(toPut(row), delete));
  }

  @Override
  public boolean putIf(StateRow row, byte[] qualifier, byte[] expected) throws IOException {
    return await(table.checkAndMutate(checked(row, qualifier, expected))).isSuccess();
  }

  @Override
  public boolean putAllIf(List<StateRow> rows, byte[] qualifier, List<byte[]> expected) throws IOException {
    List<CheckAndMutate> checks = new ArrayList<>(rows.size());
    for (int i = 0; i < rows.size(); i++) {
      checks.add(checked(rows.get(i), qualifier, expected.get(i)));
    }
    return await(table.checkAndMutateAll(checks)).stream().allMatch(CheckAndMutateResult::isSuccess);
  }

  private static CheckAndMutate checked(StateRow row, byte[] qualifier, byte[] expected) {
    CheckAndMutate.Builder check = CheckAndMutate.newBuilder(row.key);
    check = expected == null
        ? check.ifNotExists(StateTable.FAMILY, qualifier)
        : check.ifEquals(StateTable.FAMILY, qualifier, expected);
    return check.build(toPut(row));
  }

  @Override
  public List<StoredRow> scan(char rowType, byte[]... columns) throws IOException {
    Scan scan = new Scan().setStartStopRowForPrefixScan(new byte[] {(byte) rowType});
    for (byte[] column : columns) {
      scan.addColumn(StateTable.FAMILY, column);
    }
    List<StoredRow> rows = new ArrayList<>();
    for (Result result : await(table.scanAll(scan))) {
      rows.add(toRow(result.getRow(), result));
    }
    return rows;
  }

  @Override
  public List<byte[]> regionStarts() throws IOException {
    return await(connection.getRegionLocator(settings.table).getStartKeys());
  }

  @Override
  public Map<String, String> tables() throws IOException {
    List<TableDescriptor> described = new ArrayList<>(await(connection.getAdmin().listTableDescriptors(false)));
    described.removeIf(descriptor -> settings.isOurs(descriptor.getTableName()));
    Map<String, String> tables = new TreeMap<>();
    for (int from = 0; from < described.size(); from += CHUNK) {
      addTables(described.subList(from, Math.min(described.size(), from + CHUNK)), tables);
    }
    return tables;
  }

  /** Adds the tables with their states. */
  private void addTables(List<TableDescriptor> described, Map<String, String> tables) throws IOException {
    // All at once: one after another would take a round trip each.
    List<CompletableFuture<Boolean>> enabled = new ArrayList<>(described.size());
    for (TableDescriptor descriptor : described) {
      enabled.add(connection.getAdmin().isTableEnabled(descriptor.getTableName()));
    }
    for (int i = 0; i < enabled.size(); i++) {
      TableDescriptor descriptor = described.get(i);
      tables.put(descriptor.getTableName().getNameAsString(), TableJson.of(descriptor, await(enabled.get(i))));
    }
  }

  @Override
  public Collection<ServerName> liveServers() throws IOException {
    // In one call: HBase's master reads its balancer's switch before its servers.
    return known(await(connection.getAdmin().getClusterMetrics(EnumSet.of(Option.BALANCER_ON, Option.SERVERS_NAME))));
  }

  /**
   * Returns the region servers that HBase's master knows.
   *
   * @throws IOException if the master is starting: whoever is missing would be recorded as gone
   */
  static Collection<ServerName> known(ClusterMetrics metrics) throws IOException {
    // A master that starts knows none or some of them, and has a switch for its balancer only once it knows them all.
    if (metrics.getBalancerOn() == null) {
      throw new IOException("the HBase master is starting and does not know its region servers yet");
    }
    return metrics.getServersName();
  }

  @Override
  public void close() throws IOException {
    connection.close();
  }

  public static Put toPut(StateRow row) {
    Put put = new Put(row.key);
    for (StateRow.Column column : row.columns()) {
      put.addColumn(StateTable.FAMILY, column.qualifier, column.timestamp, column.value);
    }
    return put;
  }

  public static StoredRow toRow(byte[] key, Result result) {
    StoredRow row = new StoredRow(key);
    Cell[] cells = result.rawCells();
    for (Cell cell : cells == null ? new Cell[0] : cells) {
      row.put(CellUtil.cloneQualifier(cell), CellUtil.cloneValue(cell), cell.getTimestamp());
    }
    return row;
  }

  private <T> T await(CompletableFuture<T> future) throws IOException {
    return await(future, settings.operationTimeout);
  }

  public static <T> T await(CompletableFuture<T> future, long timeout) throws IOException {
    try {
      return future.get(timeout + SLACK_MS, TimeUnit.MILLISECONDS);
    } catch (InterruptedException e) {
      Thread.currentThread().interrupt();
      throw (IOException) new InterruptedIOException("interrupted").initCause(e);
    } catch (TimeoutException e) {
      // The call goes on and may still land: callers take a write that failed for one that may be stored.
      throw new IOException("no answer within " + timeout + " ms", e);
    } catch (ExecutionException e) {
      throw e.getCause() instanceof IOException ? (IOException) e.getCause() : new IOException(e.getCause());
    }
  }
}
