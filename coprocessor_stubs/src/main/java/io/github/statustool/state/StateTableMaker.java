package io.github.statustool.state;

import java.io.IOException;
import java.util.concurrent.CompletableFuture;
import org.apache.hadoop.hbase.HConstants;
import org.apache.hadoop.hbase.NamespaceDescriptor;
import org.apache.hadoop.hbase.NamespaceExistException;
import org.apache.hadoop.hbase.TableExistsException;
import org.apache.hadoop.hbase.TableName;
import org.apache.hadoop.hbase.client.AsyncAdmin;
import org.apache.hadoop.hbase.client.ColumnFamilyDescriptorBuilder;
import org.apache.hadoop.hbase.client.TableDescriptor;
import org.apache.hadoop.hbase.client.TableDescriptorBuilder;
import org.apache.hadoop.hbase.util.Bytes;
import org.slf4j.Logger;
import org.slf4j.LoggerFactory;

/**
 * Creates the state table, and the table of published status files, if they are missing. Several servers may try at the
 * same time; one of them succeeds.
 */
final class StateTableMaker {
  private static final Logger LOG = LoggerFactory.getLogger(StateTableMaker.class);
  private static final long CREATE_TIMEOUT_MS = 60_000;

  private static final byte[] PUBLISHED_FAMILY = Bytes.toBytes("published");
  private static final int PUBLISHED_TTL_S = 86_400;

  private final Settings settings;
  private final AsyncAdmin admin;

  StateTableMaker(Settings settings, AsyncAdmin admin) {
    this.settings = settings;
    this.admin = admin;
  }

  void ensure() throws IOException {
    if (!exists(settings.table)) {
      createNamespace(settings.table.getNamespaceAsString());
      createStateTable();
    }
    ensureStatusTable();
  }

  private boolean exists(TableName table) throws IOException {
    return HBaseStateStore.await(admin.tableExists(table), settings.operationTimeout);
  }

  /** Creates the table of published status files. */
  private void ensureStatusTable() {
    TableName table = settings.statusTable();
    try {
      if (!exists(table)) {
        await(admin.createTable(TableDescriptorBuilder.newBuilder(table)
            .setColumnFamily(ColumnFamilyDescriptorBuilder.newBuilder(PUBLISHED_FAMILY)
                .setMaxVersions(1)
                .setTimeToLive(PUBLISHED_TTL_S)
                .setScope(HConstants.REPLICATION_SCOPE_GLOBAL)
                .build())
            .build()));
      }
    } catch (IOException e) {
      // Trackers do not use it, so they record whether or not it can be created.
      LOG.warn("status-tool: cannot create {}, which `status-tool publish` needs", table, e);
    }
  }

  private void createNamespace(String name) throws IOException {
    if (name.equals(NamespaceDescriptor.DEFAULT_NAMESPACE_NAME_STR)) {
      return;
    }
    try {
      HBaseStateStore.await(admin.createNamespace(NamespaceDescriptor.create(name).build()), CREATE_TIMEOUT_MS);
    } catch (NamespaceExistException e) {
      // Another server was faster.
    }
  }

  private void createStateTable() throws IOException {
    TableDescriptor descriptor = TableDescriptorBuilder.newBuilder(settings.table)
        .setColumnFamily(ColumnFamilyDescriptorBuilder.newBuilder(StateTable.FAMILY)
            .setMaxVersions(1)
            .setScope(HConstants.REPLICATION_SCOPE_LOCAL)
            .build())
        .build();
    int servers = HBaseStateStore.await(admin.getRegionServers(), settings.operationTimeout).size();
    await(admin.createTable(descriptor, StateTable.splitKeys(servers)));
  }

  /** Waits for a table that this server, or a faster one, creates. */
  private static void await(CompletableFuture<Void> creating) throws IOException {
    try {
      HBaseStateStore.await(creating, CREATE_TIMEOUT_MS);
    } catch (TableExistsException e) {
      // Another server was faster.
    }
  }
}
