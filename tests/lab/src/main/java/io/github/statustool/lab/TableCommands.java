package io.github.statustool.lab;

import java.io.IOException;
import java.util.Map;
import java.util.concurrent.ExecutionException;
import java.util.concurrent.Future;
import java.util.concurrent.TimeUnit;
import java.util.concurrent.TimeoutException;
import org.apache.hadoop.hbase.KeepDeletedCells;
import org.apache.hadoop.hbase.NamespaceDescriptor;
import org.apache.hadoop.hbase.TableName;
import org.apache.hadoop.hbase.client.Admin;
import org.apache.hadoop.hbase.client.ColumnFamilyDescriptor;
import org.apache.hadoop.hbase.client.ColumnFamilyDescriptorBuilder;
import org.apache.hadoop.hbase.client.TableDescriptor;
import org.apache.hadoop.hbase.client.TableDescriptorBuilder;
import org.apache.hadoop.hbase.util.Bytes;

/** Tables, families and namespaces. */
final class TableCommands {

  private final Admin admin;

  TableCommands(Admin admin) {
    this.admin = admin;
  }

  void register(Map<String, Command> commands) {
    commands.put("create_table", this::create);
    commands.put("create_namespace", this::createNamespace);
    commands.put("table_exists", args -> admin.tableExists(args.table()));
    commands.put("disable_table", args -> done(() -> admin.disableTable(args.table())));
    commands.put("enable_table", args -> done(() -> admin.enableTable(args.table())));
    commands.put("drop_table", args -> done(() -> drop(args.table())));
    commands.put("truncate_table", args -> done(() -> truncate(args)));
    commands.put("add_family", args -> done(() -> admin.addColumnFamily(args.table(), family(args))));
    commands.put("drop_family", args -> done(() -> admin.deleteColumnFamily(args.table(), name(args))));
    commands.put("set_scope", args -> done(() -> setScope(args)));
    commands.put("set_durability", args -> done(() -> setDurability(args)));
    commands.put("set_versions", args -> done(() -> setVersions(args)));
    commands.put("set_ttl", args -> done(() -> alter(args, changed(args).setTimeToLive(args.integer("seconds")))));
  }

  /** A step without a result. */
  @FunctionalInterface
  private interface Step {
    void run() throws IOException;
  }

  private static Object done(Step step) throws IOException {
    step.run();
    return null;
  }

  private Object create(Args args) throws IOException {
    TableDescriptorBuilder table = TableDescriptorBuilder.newBuilder(args.table());
    boolean keepAll = args.flag("keep_all");
    args.integers("families").forEach((name, scope) -> table.setColumnFamily(family(name, scope, keepAll)));
    table.setDurability(args.durability());
    byte[][] splits = args.byteArrays("splits");
    admin.createTable(table.build(), splits.length == 0 ? null : splits);
    return null;
  }

  private Object createNamespace(Args args) throws IOException {
    admin.createNamespace(NamespaceDescriptor.create(args.text("name")).build());
    return null;
  }

  private void disableIfEnabled(TableName table) throws IOException {
    if (admin.isTableEnabled(table)) {
      admin.disableTable(table);
    }
  }

  private void drop(TableName table) throws IOException {
    disableIfEnabled(table);
    admin.deleteTable(table);
  }

  private void truncate(Args args) throws IOException {
    disableIfEnabled(args.table());
    admin.truncateTable(args.table(), args.flag("preserve_splits"));
  }

  private void setScope(Args args) throws IOException {
    alter(args, changed(args).setScope(args.integer("scope")));
  }

  private void alter(Args args, ColumnFamilyDescriptorBuilder family) throws IOException {
    if (args.flag("reopen")) {
      admin.modifyColumnFamily(args.table(), family.build());
      return;
    }
    TableDescriptorBuilder table = TableDescriptorBuilder.newBuilder(admin.getDescriptor(args.table()));
    try {
      // Of HBase 2.6 (HBASE-25549), which 2.5 is compiled without.
      Object changed = Admin.class.getMethod("modifyTableAsync", TableDescriptor.class, boolean.class)
          .invoke(admin, table.modifyColumnFamily(family.build()).build(), false);
      ((Future<?>) changed).get(1, TimeUnit.MINUTES);
    } catch (ReflectiveOperationException | InterruptedException | ExecutionException | TimeoutException e) {
      throw new IOException(e);
    }
  }

  private void setDurability(Args args) throws IOException {
    TableDescriptorBuilder table = TableDescriptorBuilder.newBuilder(admin.getDescriptor(args.table()));
    admin.modifyTable(table.setDurability(args.durability()).build());
  }

  /** Keeps so many versions from now on, and no deleted cell. */
  private void setVersions(Args args) throws IOException {
    ColumnFamilyDescriptorBuilder family = changed(args).setMaxVersions(args.integer("versions"));
    admin.modifyColumnFamily(args.table(), family.setKeepDeletedCells(KeepDeletedCells.FALSE).build());
  }

  private ColumnFamilyDescriptorBuilder changed(Args args) throws IOException {
    TableDescriptor table = admin.getDescriptor(args.table());
    ColumnFamilyDescriptor old = table.getColumnFamily(name(args));
    if (old == null) {
      throw new IllegalArgumentException("no family " + args.text("family"));
    }
    return ColumnFamilyDescriptorBuilder.newBuilder(old);
  }

  private static byte[] name(Args args) {
    return Bytes.toBytes(args.text("family"));
  }

  private static ColumnFamilyDescriptor family(Args args) {
    return family(args.text("family"), args.integer("scope"), args.flag("keep_all"));
  }

  /** To keep all is to keep every version of every cell, deleted ones too. */
  private static ColumnFamilyDescriptor family(String name, int scope, boolean keepAll) {
    ColumnFamilyDescriptorBuilder family =
        ColumnFamilyDescriptorBuilder.newBuilder(Bytes.toBytes(name)).setScope(scope);
    if (keepAll) {
      family.setMaxVersions(Integer.MAX_VALUE).setKeepDeletedCells(KeepDeletedCells.TRUE);
    }
    return family.build();
  }
}
