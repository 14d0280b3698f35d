package io.github.statustool.state;

import java.io.IOException;
import org.apache.hadoop.hbase.HConstants;
import org.apache.hadoop.hbase.NamespaceDescriptor;
import org.apache.hadoop.hbase.NamespaceExistException;
import org.apache.hadoop.hbase.TableExistsException;
import org.apache.hadoop.hbase.client.AsyncAdmin;
import org.apache.hadoop.hbase.client.ColumnFamilyDescriptorBuilder;
import org.apache.hadoop.hbase.client.TableDescriptor;
import org.apache.hadoop.hbase.client.TableDescriptorBuilder;

/** Creates the state table if it is missing. Several servers may try at the same time; one of them succeeds. */
final class StateTableMaker {
  private static final long CREATE_TIMEOUT_MS = 60_000;

  private final Settings settings;
  private final AsyncAdmin admin;

  StateTableMaker(Settings settings, AsyncAdmin admin) {
    this.settings = settings;
    this.admin = admin;
  }

  boolean ensure() throws IOException {
    if (HBaseStateStore.await(admin.tableExists(settings.table), settings.operationTimeout)) {
      return false;
    }
    createNamespace(settings.table.getNamespaceAsString());
    return createTable();
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

  private boolean createTable() throws IOException {
    TableDescriptor descriptor = TableDescriptorBuilder.newBuilder(settings.table)
        .setColumnFamily(ColumnFamilyDescriptorBuilder.newBuilder(StateTable.FAMILY)
            .setMaxVersions(1)
            .setScope(HConstants.REPLICATION_SCOPE_LOCAL)
            .build())
        .build();
    int servers = HBaseStateStore.await(admin.getRegionServers(), settings.operationTimeout).size();
    try {
      HBaseStateStore.await(admin.createTable(descriptor, StateTable.splitKeys(servers)), CREATE_TIMEOUT_MS);
      return true;
    } catch (TableExistsException e) {
      return false;
    }
  }
}
