package io.github.statustool.digests;

import io.github.statustool.state.HBaseStateStore;
import io.github.statustool.state.Settings;
import io.github.statustool.state.StateRow;
import io.github.statustool.state.StateTable;
import io.github.statustool.state.StoredRow;
import java.io.IOException;
import java.util.List;
import java.util.concurrent.TimeUnit;
import java.util.stream.Collectors;
import org.apache.hadoop.conf.Configuration;
import org.apache.hadoop.hbase.client.AdvancedScanResultConsumer;
import org.apache.hadoop.hbase.client.AsyncConnection;
import org.apache.hadoop.hbase.client.AsyncTable;
import org.apache.hadoop.hbase.client.Get;
import org.apache.hadoop.hbase.client.Put;
import org.apache.hadoop.hbase.client.Result;
import org.apache.hadoop.hbase.client.Scan;

/**
 * The request table, over a connection that is closed when no request is left. The recorder's connection is not used.
 */
final class HBaseRequestTable implements RequestTable {
  private final long timeout;
  private final AsyncConnection connection;
  private final AsyncTable<AdvancedScanResultConsumer> table;

  private HBaseRequestTable(Settings settings, AsyncConnection connection) {
    this.timeout = settings.operationTimeout;
    this.connection = connection;
    this.table = connection.getTableBuilder(settings.requestTable())
        .setOperationTimeout(timeout, TimeUnit.MILLISECONDS)
        .setRpcTimeout(timeout, TimeUnit.MILLISECONDS)
        .setScanTimeout(timeout, TimeUnit.MILLISECONDS)
        .build();
  }

  static HBaseRequestTable connect(Configuration conf, Settings settings) throws IOException {
    return new HBaseRequestTable(settings, HBaseStateStore.open(conf, settings));
  }

  @Override
  public StoredRow get(byte[] key) throws IOException {
    Get get = new Get(key).addFamily(StateTable.FAMILY);
    return HBaseStateStore.toRow(key, HBaseStateStore.await(table.get(get), timeout));
  }

  @Override
  public StoredRow first(byte[] start, byte[] stop) throws IOException {
    Scan scan = new Scan().withStartRow(start).withStopRow(stop).addFamily(StateTable.FAMILY).setLimit(1);
    List<Result> results = HBaseStateStore.await(table.scanAll(scan), timeout);
    return results.isEmpty() ? null : HBaseStateStore.toRow(results.get(0).getRow(), results.get(0));
  }

  @Override
  public void put(List<StateRow> rows) throws IOException {
    List<Put> puts = rows.stream().map(HBaseStateStore::toPut).collect(Collectors.toList());
    HBaseStateStore.await(table.putAll(puts), timeout);
  }

  @Override
  public void close() throws IOException {
    connection.close();
  }
}
