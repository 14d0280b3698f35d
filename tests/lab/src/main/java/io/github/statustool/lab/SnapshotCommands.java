package io.github.statustool.lab;

import java.io.IOException;
import java.util.Map;
import org.apache.hadoop.hbase.TableName;
import org.apache.hadoop.hbase.client.Admin;
import org.apache.hadoop.hbase.util.Bytes;

/** What brings cells into regions or takes them out beside the WAL. */
final class SnapshotCommands {

  private final Admin admin;

  SnapshotCommands(Admin admin) {
    this.admin = admin;
  }

  void register(Map<String, Command> commands) {
    commands.put("snapshot", this::snapshot);
    commands.put("delete_snapshot", this::delete);
    commands.put("restore_snapshot", this::restore);
    commands.put("clone_snapshot", this::cloneSnapshot);
    commands.put("truncate_region", this::truncateRegion);
  }

  private Object snapshot(Args args) throws IOException {
    admin.snapshot(args.text("name"), args.table());
    return null;
  }

  private Object delete(Args args) throws IOException {
    admin.deleteSnapshot(args.text("name"));
    return null;
  }

  /** An enabled table is disabled for it, and enabled again; a disabled one stays disabled. */
  private Object restore(Args args) throws IOException {
    TableName table = args.table();
    boolean enabled = admin.isTableEnabled(table);
    if (enabled) {
      admin.disableTable(table);
    }
    admin.restoreSnapshot(args.text("name"), false);
    if (enabled) {
      admin.enableTable(table);
    }
    return null;
  }

  private Object cloneSnapshot(Args args) throws IOException {
    admin.cloneSnapshot(args.text("name"), args.table());
    return null;
  }

  /** From HBase 2.6 on; the admin is compiled against that. */
  private Object truncateRegion(Args args) throws IOException {
    admin.truncateRegion(Bytes.toBytes(args.text("name")));
    return null;
  }
}
