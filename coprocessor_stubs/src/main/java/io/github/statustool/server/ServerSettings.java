package io.github.statustool.server;

import io.github.statustool.state.HBaseCoprocessors;
import io.github.statustool.state.Settings;
import java.util.Collection;
import java.util.HashMap;
import java.util.LinkedHashSet;
import java.util.List;
import java.util.Map;
import java.util.Set;
import java.util.function.Predicate;
import java.util.stream.Collectors;
import org.apache.hadoop.conf.Configuration;
import org.apache.hadoop.hbase.HConstants;
import org.apache.hadoop.hbase.coprocessor.CoprocessorHost;
import org.apache.hadoop.hbase.mob.MobStoreEngine;
import org.apache.hadoop.hbase.regionserver.DefaultStoreEngine;
import org.apache.hadoop.hbase.regionserver.HStore;
import org.apache.hadoop.hbase.regionserver.StoreEngine;
import org.apache.hadoop.hbase.replication.regionserver.HBaseInterClusterReplicationEndpoint;
import org.apache.hadoop.hbase.replication.regionserver.WALEntrySinkFilter;
import org.apache.hadoop.hbase.security.visibility.VisibilityController;
import org.apache.hadoop.hbase.security.visibility.VisibilityReplication;
import org.apache.hadoop.hbase.wal.RegionGroupingProvider;
import org.apache.hadoop.hbase.wal.WALFactory;
import org.apache.hadoop.hbase.wal.WALSplitter;
import org.apache.hbase.thirdparty.com.google.gson.JsonObject;

/**
 * The settings of a region server that allow cells to be dropped or changed without a trace in a WAL: switches that are
 * on, and classes other than those of HBase that do no such thing; where the replication peers are kept, if not where
 * the tool reads them; and the setting of ours that a witness's slave needs. The tool decides what each of them means.
 *
 * <p>HBase's settings may change while the server runs ({@code update_config}), and most take effect without a restart:
 * when a region is opened, a peer is added, or at once. So they are read anew each time, and what was in force earlier
 * counts as well. Only of where the peers are kept nothing but the present counts: that is what the tool reads.
 */
public final class ServerSettings {
  /** {@code ReplicationStorageFactory.REPLICATION_PEER_STORAGE_IMPL}, which HBase has since 2.6. */
  private static final String PEER_STORAGE = "hbase.replication.peer.storage.impl";
  private static final String PEERS_IN_ZOOKEEPER = "zookeeper";
  /** No setting, but a class of HBase's: a delete with a label takes away cells of other labels where it does not run. */
  private static final String LABELS = "labels";
  /**
   * The value where HBase ships a label as its name, and not as its number in this cluster's hbase:labels, which another
   * cluster has given to another label if it got them in another order.
   */
  private static final String LABELS_BY_NAME = "by name";
  private static final String CODEC = HConstants.REPLICATION_CODEC_CONF_KEY;
  /** A literal in HBase's {@code ReplicationSourceFactory}. */
  private static final String SOURCE = "replication.replicationsource.implementation";
  private static final List<String> SWITCHES = List.of(
      HBaseInterClusterReplicationEndpoint.REPLICATION_DROP_ON_DELETED_COLUMN_FAMILY_KEY,
      WALSplitter.SPLIT_SKIP_ERRORS_KEY,
      HConstants.HREGION_EDITS_REPLAY_SKIP_ERRORS,
      "hbase.skip.errors"); // a former name of the one before, which HRegion still reads
  /** A class that HBase's documentation does not name: it has the trackers' hooks, and neither calls them nor logs. */
  private static final String NO_LOG = "org.apache.hadoop.hbase.wal.DisabledWALProvider";
  private static final List<String> LOGS = List.of(WALFactory.WAL_PROVIDER, RegionGroupingProvider.DELEGATE_PROVIDER);
  private static final List<String> COPROCESSORS = List.of(
      CoprocessorHost.WAL_COPROCESSOR_CONF_KEY,
      CoprocessorHost.REGIONSERVER_COPROCESSOR_CONF_KEY,
      CoprocessorHost.REGION_COPROCESSOR_CONF_KEY,
      CoprocessorHost.USER_REGION_COPROCESSOR_CONF_KEY);
  private static final List<String> CLASSES = List.of(
      HConstants.REPLICATION_SOURCE_SERVICE_CLASSNAME,
      HConstants.REPLICATION_SINK_SERVICE_CLASSNAME,
      WALEntrySinkFilter.WAL_ENTRY_FILTER_KEY,
      SOURCE,
      HConstants.REGION_IMPL,
      StoreEngine.STORE_ENGINE_CLASS_KEY,
      DefaultStoreEngine.DEFAULT_COMPACTOR_CLASS_KEY,
      DefaultStoreEngine.DEFAULT_STORE_FLUSHER_CLASS_KEY,
      MobStoreEngine.MOB_COMPACTOR_CLASS_KEY,
      HStore.MEMSTORE_CLASS_NAME);
  private static final String HBASE_PACKAGE = "org.apache.hadoop.hbase.";
  private static final String OWN_PACKAGE = "io.github.statustool.";

  private final Configuration conf;
  private final Settings own;
  /** By key, the values that it has had since the tracker started. */
  private final Map<String, Set<String>> seen = new HashMap<>();

  /**
   * @param conf of the server itself, which a copy would not follow
   * @param own what the trackers were started with
   */
  public ServerSettings(Configuration conf, Settings own) {
    this.conf = conf;
    this.own = own;
  }

  /** Returns the settings by key as JSON; null if there are none. Never throws. */
  public synchronized String json() {
    JsonObject json = new JsonObject();
    try {
      own.watchLoads(conf);
      SWITCHES.forEach(key -> add(json, key, conf.getBoolean(key, false) ? List.of("true") : List.of()));
      addSingleEntries(json);
      // Without a write-ahead log a crash loses what the server has acknowledged.
      add(json, WALFactory.WAL_ENABLED, conf.getBoolean(WALFactory.WAL_ENABLED, true) ? List.of() : List.of("false"));
      LOGS.forEach(key -> add(json, key, otherLogs(key)));
      addPeerStorage(json);
      COPROCESSORS.forEach(key -> add(json, key, others(key, HBaseCoprocessors::isHarmless)));
      CLASSES.forEach(key -> add(json, key, others(key, type -> type.startsWith(HBASE_PACKAGE))));
      add(json, LABELS, labels());
      // HBase's own too: it determines whether replication keeps tags.
      add(json, CODEC, conf.getTrimmedStringCollection(CODEC));
    } catch (RuntimeException e) {
      // A tracker must not fail its server: the tool reports that the settings are not known.
      json.addProperty("unreadable", String.valueOf(e.getMessage()));
    }
    return json.size() == 0 ? null : json.toString();
  }

  /** Adds what a setting is, and what it was before. */
  private void add(JsonObject json, String key, Collection<String> now) {
    Set<String> values = seen.computeIfAbsent(key, absent -> new LinkedHashSet<>());
    values.addAll(now);
    if (!values.isEmpty()) {
      json.addProperty(key, String.join(", ", values));
    }
  }

  private void addSingleEntries(JsonObject json) {
    if (own.unstampedEntries) {
      json.addProperty(Settings.UNSTAMPED_ENTRIES, own.allEntries ? Settings.ALL : "true");
    }
  }

  /** Adds where replication peers are kept if that is not ZooKeeper, where the znodes of before stay and go stale. */
  private void addPeerStorage(JsonObject json) {
    String storage = conf.getTrimmed(PEER_STORAGE, PEERS_IN_ZOOKEEPER);
    if (!storage.equalsIgnoreCase(PEERS_IN_ZOOKEEPER)) {
      json.addProperty(PEER_STORAGE, storage);
    }
  }

  private List<String> labels() {
    if (!has(CoprocessorHost.REGION_COPROCESSOR_CONF_KEY, VisibilityController.class)) {
      return List.of();
    }
    boolean isByName = has(CoprocessorHost.REGIONSERVER_COPROCESSOR_CONF_KEY, VisibilityReplication.class);
    return List.of(isByName ? LABELS_BY_NAME : "true");
  }

  private boolean has(String key, Class<?> coprocessor) {
    return conf.getTrimmedStringCollection(key).stream().anyMatch(name -> name.startsWith(coprocessor.getName()));
  }

  /** Returns a provider of write-ahead logs if it is none of HBase's, which have names without a dot, too. */
  private List<String> otherLogs(String key) {
    String provider = conf.getTrimmed(key, "");
    boolean isKnown = !provider.contains(".") || (provider.startsWith(HBASE_PACKAGE) && !provider.equals(NO_LOG));
    return isKnown ? List.of() : List.of(provider);
  }

  /** Returns classes that are neither known nor ours. HBase reads {@code class|priority|path}, between commas. */
  private List<String> others(String key, Predicate<String> isKnown) {
    return conf.getTrimmedStringCollection(key).stream().map(name -> name.split("\\|", 2)[0].trim())
        .filter(type -> !type.isEmpty() && !isKnown.test(type) && !type.startsWith(OWN_PACKAGE))
        .collect(Collectors.toList());
  }
}
