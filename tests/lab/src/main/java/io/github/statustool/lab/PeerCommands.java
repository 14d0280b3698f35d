package io.github.statustool.lab;

import java.io.IOException;
import java.util.HashMap;
import java.util.LinkedHashMap;
import java.util.List;
import java.util.Map;
import java.util.Set;
import java.util.stream.Collectors;
import org.apache.hadoop.hbase.TableName;
import org.apache.hadoop.hbase.client.Admin;
import org.apache.hadoop.hbase.replication.ReplicationPeerConfig;
import org.apache.hadoop.hbase.replication.ReplicationPeerConfigBuilder;
import org.apache.hadoop.hbase.replication.ReplicationPeerDescription;

/** Replication peers. */
final class PeerCommands {

  private static final String FILTERS_KEY = "hbase.replication.source.custom.walentryfilters";

  private final Admin admin;

  PeerCommands(Admin admin) {
    this.admin = admin;
  }

  void register(Map<String, Command> commands) {
    commands.put("add_peer", this::add);
    commands.put("set_peer_tables", this::setTables);
    commands.put("set_peer_filters", this::setFilters);
    commands.put("list_peers", args -> list());
    commands.put("set_peer_bandwidth", this::setBandwidth);
    commands.put(
        "remove_peer",
        args -> {
          admin.removeReplicationPeer(args.text("peer"));
          return null;
        });
    commands.put(
        "enable_peer",
        args -> {
          admin.enableReplicationPeer(args.text("peer"));
          return null;
        });
    commands.put(
        "disable_peer",
        args -> {
          admin.disableReplicationPeer(args.text("peer"));
          return null;
        });
  }

  private Object add(Args args) throws IOException {
    ReplicationPeerConfigBuilder peer =
        ReplicationPeerConfig.newBuilder()
            .setClusterKey(args.text("cluster_key"))
            .setSerial(args.flag("serial"));
    args.textMap("config").forEach(peer::putConfiguration);
    if (args.has("table_cfs") || args.has("namespaces")) {
      peer.setReplicateAllUserTables(false);
    }
    if (args.has("table_cfs")) {
      peer.setTableCFsMap(tableFamilies(args));
    }
    if (args.has("namespaces")) {
      peer.setNamespaces(Set.copyOf(args.texts("namespaces")));
    }
    admin.addReplicationPeer(args.text("peer"), peer.build(), args.flag("enabled"));
    return null;
  }

  /** HBase means "every family" by null. */
  private static Map<TableName, List<String>> tableFamilies(Args args) {
    Map<TableName, List<String>> families = new HashMap<>();
    args.textLists("table_cfs")
        .forEach((table, names) -> families.put(TableName.valueOf(table), names.isEmpty() ? null : names));
    return families;
  }

  /** Without table_cfs the peer replicates everything again. */
  private Object setTables(Args args) throws IOException {
    String id = args.text("peer");
    boolean all = !args.has("table_cfs");
    ReplicationPeerConfigBuilder peer =
        ReplicationPeerConfig.newBuilder(admin.getReplicationPeerConfig(id))
            .setReplicateAllUserTables(all)
            .setTableCFsMap(all ? Map.of() : tableFamilies(args));
    admin.updateReplicationPeerConfig(id, peer.build());
    return null;
  }

  /** Another configuration without another choice of what is replicated; bytes a second, 0: no limit. */
  private Object setBandwidth(Args args) throws IOException {
    String id = args.text("peer");
    ReplicationPeerConfigBuilder peer =
        ReplicationPeerConfig.newBuilder(admin.getReplicationPeerConfig(id)).setBandwidth(args.number("bandwidth"));
    admin.updateReplicationPeerConfig(id, peer.build());
    return null;
  }

  /** WAL entry filters of the user's own, by class name; none without filters. */
  private Object setFilters(Args args) throws IOException {
    String id = args.text("peer");
    ReplicationPeerConfigBuilder peer = ReplicationPeerConfig.newBuilder(admin.getReplicationPeerConfig(id));
    if (args.has("filters")) {
      peer.putConfiguration(FILTERS_KEY, args.text("filters"));
    } else {
      // HBase merges the new configuration into the old one, so that a key can be emptied but not removed
      // (ReplicationPeerManager.updatePeerConfig).
      peer.putConfiguration(FILTERS_KEY, "");
    }
    admin.updateReplicationPeerConfig(id, peer.build());
    return null;
  }

  private List<Map<String, Object>> list() throws IOException {
    return admin.listReplicationPeers().stream().map(PeerCommands::describe).collect(Collectors.toList());
  }

  private static Map<String, Object> describe(ReplicationPeerDescription peer) {
    Map<String, Object> answer = new LinkedHashMap<>();
    answer.put("id", peer.getPeerId());
    answer.put("enabled", peer.isEnabled());
    answer.put("cluster_key", peer.getPeerConfig().getClusterKey());
    answer.put("serial", peer.getPeerConfig().isSerial());
    return answer;
  }
}
