package io.github.statustool.lab;

import java.io.IOException;
import java.util.Map;
import org.apache.hadoop.conf.Configuration;
import org.apache.hadoop.fs.FileSystem;
import org.apache.hadoop.hbase.HBaseConfiguration;
import org.apache.hadoop.hbase.client.Admin;
import org.apache.hadoop.hbase.client.Connection;
import org.apache.hadoop.hbase.client.ConnectionFactory;
import org.apache.hadoop.security.UserGroupInformation;

/** One cluster's administrator: a {@link CommandServer}. */
public final class LabAdmin {

  private LabAdmin() {}

  /** The cluster is the one of the configuration files on the class path; the argument "hdfs": it has no HBase. */
  public static void main(String[] args) throws IOException {
    CommandServer server = CommandServer.onStandardOutput();
    Configuration conf = HBaseConfiguration.create();
    logIn(conf);
    if (args.length > 0 && args[0].equals("hdfs")) {
      try (FileSystem files = FileSystem.get(conf)) {
        new ClusterCommands(null, files).register(server.commands);
        new FileCommands(files).register(server.commands);
        server.serve();
      }
      System.exit(0);
    }
    try (Connection connection = ConnectionFactory.createConnection(conf);
        Admin admin = connection.getAdmin();
        FileSystem files = FileSystem.get(conf)) {
      register(server.commands, connection, admin, files);
      server.serve();
    }
    // Client threads and background writers would keep the process alive.
    System.exit(0);
  }

  /** From a keytab, if there is one: {@code lab.admin.principal}, {@code lab.admin.keytab}. */
  private static void logIn(Configuration conf) throws IOException {
    if (conf.get("lab.admin.keytab") != null) {
      UserGroupInformation.setConfiguration(conf);
      UserGroupInformation.loginUserFromKeytab(conf.get("lab.admin.principal"), conf.get("lab.admin.keytab"));
    }
  }

  private static void register(
      Map<String, Command> commands, Connection connection, Admin admin, FileSystem files) {
    new ClusterCommands(admin, files).register(commands);
    new TableCommands(admin).register(commands);
    new PeerCommands(admin).register(commands);
    new SnapshotCommands(admin).register(commands);
    new RegionCommands(connection, admin).register(commands);
    new RowCommands(connection, files).register(commands);
    new LoadCommands(connection).register(commands);
    new StateTableCommands(connection).register(commands);
    new TimedCommands(connection.getConfiguration()).register(commands);
    new MixCommands(connection).register(commands);
    new VerifyCommands(connection.getConfiguration(), files).register(commands);
    new FileCommands(files).register(commands);
    new AccessCommands(connection).register(commands);
  }
}
