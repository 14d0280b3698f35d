package io.github.statustool.lab;

import java.io.ByteArrayOutputStream;
import java.io.EOFException;
import java.io.IOException;
import java.io.PrintStream;
import java.nio.charset.StandardCharsets;
import java.security.PrivilegedExceptionAction;
import java.util.ArrayList;
import java.util.EnumSet;
import java.util.LinkedHashMap;
import java.util.List;
import java.util.Map;
import java.util.Set;
import java.util.stream.Collectors;
import javax.security.sasl.Sasl;
import org.apache.hadoop.fs.FileSystem;
import org.apache.hadoop.fs.LocatedFileStatus;
import org.apache.hadoop.fs.Path;
import org.apache.hadoop.fs.RemoteIterator;
import org.apache.hadoop.hbase.ClusterMetrics;
import org.apache.hadoop.hbase.ClusterMetrics.Option;
import org.apache.hadoop.hbase.ServerName;
import org.apache.hadoop.hbase.client.Admin;
import org.apache.hadoop.hbase.replication.ReplicationLoadSource;
import org.apache.hadoop.hbase.thrift.generated.Hbase;
import org.apache.hadoop.hbase.wal.WALPrettyPrinter;
import org.apache.hadoop.hdfs.DistributedFileSystem;
import org.apache.hadoop.security.UserGroupInformation;
import org.apache.thrift.protocol.TBinaryProtocol;
import org.apache.thrift.transport.TSaslClientTransport;
import org.apache.thrift.transport.TSocket;
import org.apache.thrift.transport.TTransport;

/** Servers as a whole: which are alive, how far replication is, rolling WALs, the balancer. */
final class ClusterCommands {

  private final Admin admin;
  private final FileSystem files;

  ClusterCommands(Admin admin, FileSystem files) {
    this.admin = admin;
    this.files = files;
  }

  void register(Map<String, Command> commands) {
    commands.put("live_servers", args -> names(liveServers()));
    commands.put("live_datanodes", args -> ((DistributedFileSystem) files).getDataNodeStats().length);
    commands.put("cluster_id", args -> admin.getClusterMetrics(EnumSet.of(Option.CLUSTER_ID)).getClusterId());
    commands.put("balancer", args -> admin.balancerSwitch(args.flag("on"), true));
    commands.put("roll_wal", this::rollWal);
    commands.put("printed_wals", args -> printedWals(args.text("table")));
    commands.put("replication_lag", args -> replicationLag());
    commands.put("thrift_tables", args -> thriftTables(args.integer("port")));
    // Unlike a list of tables, this is not answered before the master has initialised.
    commands.put("ready", args -> admin.listNamespaceDescriptors().length > 0);
  }

  private List<ServerName> liveServers() throws IOException {
    ClusterMetrics metrics = admin.getClusterMetrics(EnumSet.of(Option.LIVE_SERVERS));
    return metrics.getLiveServerMetrics().keySet().stream().sorted().collect(Collectors.toList());
  }

  private static List<String> names(List<ServerName> servers) {
    return servers.stream().map(ServerName::getServerName).collect(Collectors.toList());
  }

  /** Later: returns at once, and rolls them in the background, which may wait for a slow DataNode. */
  private Object rollWal(Args args) throws IOException {
    List<ServerName> servers =
        args.has("server") ? List.of(ServerName.valueOf(args.text("server"))) : liveServers();
    if (args.flag("later")) {
      Thread rolling = new Thread(() -> rollQuietly(servers), "roll");
      rolling.setDaemon(true);
      rolling.start();
    } else {
      roll(servers);
    }
    return names(servers);
  }

  private void roll(List<ServerName> servers) throws IOException {
    for (ServerName server : servers) {
      admin.rollWALWriter(server);
    }
  }

  private void rollQuietly(List<ServerName> servers) {
    try {
      roll(servers);
    } catch (IOException e) {
      System.err.println("roll: " + e);
    }
  }

  /** What HBase's own printer finds of a table in each WAL, up to the end of one that was not closed. */
  private List<String> printedWals(String table) throws IOException {
    List<String> all = new ArrayList<>();
    for (String folder : List.of("WALs", "oldWALs")) {
      Path root = new Path(admin.getConfiguration().get("hbase.rootdir"), folder);
      RemoteIterator<LocatedFileStatus> wals = files.listFiles(root, true);
      while (wals.hasNext()) {
        all.add(printed(wals.next().getPath(), table));
      }
    }
    return all;
  }

  private String printed(Path wal, String table) throws IOException {
    ByteArrayOutputStream text = new ByteArrayOutputStream();
    try (PrintStream out = new PrintStream(text, false, StandardCharsets.UTF_8)) {
      new WALPrettyPrinter(false, true, -1, Set.of(table), null, null, null, false, false, out)
          .processFile(admin.getConfiguration(), wal);
    } catch (EOFException e) {
      // It is being written, or was when its server was killed.
    }
    return text.toString(StandardCharsets.UTF_8);
  }

  private List<Map<String, Object>> replicationLag() throws IOException {
    List<Map<String, Object>> all = new ArrayList<>();
    admin
        .getClusterMetrics(EnumSet.of(Option.LIVE_SERVERS))
        .getLiveServerMetrics()
        .forEach(
            (server, metrics) ->
                metrics
                    .getReplicationLoadSourceList()
                    .forEach(source -> all.add(lag(server, source))));
    return all;
  }

  private static Map<String, Object> lag(ServerName server, ReplicationLoadSource source) {
    Map<String, Object> lag = new LinkedHashMap<>();
    lag.put("server", server.getServerName());
    lag.put("peer", source.getPeerID());
    lag.put("age_of_last_shipped_ms", source.getAgeOfLastShippedOp());
    lag.put("size_of_log_queue", source.getSizeOfLogQueue());
    lag.put("replication_lag_ms", source.getReplicationLag());
    lag.put("timestamp_of_last_shipped_ms", source.getTimestampOfLastShippedOp());
    return lag;
  }

  private int thriftTables(int port) throws Exception {
    try (TSocket socket = new TSocket("127.0.0.1", port)) {
      socket.setTimeout(20_000);
      String qop = admin.getConfiguration().get("hbase.thrift.security.qop");
      if (qop == null) {
        return tableNames(socket);
      }
      return UserGroupInformation.getLoginUser()
          .doAs((PrivilegedExceptionAction<Integer>) () -> tableNames(saslOver(socket, qop)));
    }
  }

  private static TTransport saslOver(TTransport socket, String qop) throws Exception {
    return new TSaslClientTransport("GSSAPI", null, "hbase", "localhost", Map.of(Sasl.QOP, qop), null, socket);
  }

  private static int tableNames(TTransport transport) throws Exception {
    transport.open();
    return new Hbase.Client(new TBinaryProtocol(transport)).getTableNames().size();
  }
}
