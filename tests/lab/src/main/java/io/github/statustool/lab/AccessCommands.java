package io.github.statustool.lab;

import java.security.PrivilegedExceptionAction;
import java.util.ArrayList;
import java.util.List;
import java.util.Map;
import org.apache.hadoop.conf.Configuration;
import org.apache.hadoop.hbase.client.Connection;
import org.apache.hadoop.hbase.client.ConnectionFactory;
import org.apache.hadoop.hbase.client.Get;
import org.apache.hadoop.hbase.client.Put;
import org.apache.hadoop.hbase.client.Table;
import org.apache.hadoop.hbase.security.User;
import org.apache.hadoop.hbase.security.access.AccessControlClient;
import org.apache.hadoop.hbase.security.access.Permission;
import org.apache.hadoop.hbase.security.access.UserPermission;
import org.apache.hadoop.hbase.util.Bytes;
import org.apache.hadoop.security.UserGroupInformation;

/** Who may do what, and trying it as somebody else. */
final class AccessCommands {

  private final Connection connection;

  AccessCommands(Connection connection) {
    this.connection = connection;
  }

  void register(Map<String, Command> commands) {
    commands.put("grant", this::grant);
    commands.put("permissions", this::permissions);
    commands.put("get_as", args -> as(args, AccessCommands::get));
    commands.put("put_as", args -> as(args, AccessCommands::put));
  }

  /** Gives a user these of HBase's actions (by name) on a table. */
  private Object grant(Args args) throws Exception {
    Permission.Action[] actions =
        args.texts("actions").stream().map(Permission.Action::valueOf).toArray(Permission.Action[]::new);
    try {
      AccessControlClient.grant(connection, args.table(), args.text("user"), null, null, actions);
    } catch (Throwable t) { // as it is declared
      throw new IllegalStateException("grant: " + t, t);
    }
    return null;
  }

  /** Of a table: {@code user: ACTION, …} each. */
  private Object permissions(Args args) throws Exception {
    List<String> all = new ArrayList<>();
    try {
      for (UserPermission one : AccessControlClient.getUserPermissions(connection, args.text("table"))) {
        List<String> actions = new ArrayList<>();
        for (Permission.Action action : one.getPermission().getActions()) {
          actions.add(action.name());
        }
        all.add(one.getUser() + ": " + String.join(", ", actions));
      }
    } catch (Throwable t) { // as it is declared
      throw new IllegalStateException("permissions: " + t, t);
    }
    return all;
  }

  /** What is done to one row with somebody's rights. */
  @FunctionalInterface
  private interface Attempt {
    void on(Table table, Args args) throws Exception;
  }

  /** Fails as it fails for the principal of the keytab. */
  private Object as(Args args, Attempt attempt) throws Exception {
    Configuration conf = new Configuration(connection.getConfiguration());
    UserGroupInformation user =
        UserGroupInformation.loginUserFromKeytabAndReturnUGI(args.text("principal"), args.text("keytab"));
    return user.doAs(
        (PrivilegedExceptionAction<Object>)
            () -> {
              try (Connection own = ConnectionFactory.createConnection(conf, User.getCurrent());
                  Table table = own.getTable(args.table())) {
                attempt.on(table, args);
              }
              return null;
            });
  }

  private static void get(Table table, Args args) throws Exception {
    table.get(new Get(args.bytes("row")));
  }

  private static void put(Table table, Args args) throws Exception {
    byte[] family = Bytes.toBytes(args.text("family"));
    table.put(new Put(args.bytes("row")).addColumn(family, Bytes.toBytes("q"), Bytes.toBytes("v")));
  }
}
