package io.github.statustool.server;

import io.github.statustool.state.Settings;
import java.util.List;
import org.apache.hadoop.conf.Configuration;
import org.apache.hadoop.hbase.HConstants;
import org.apache.hadoop.hbase.coprocessor.CoprocessorHost;
import org.apache.hadoop.hbase.regionserver.DefaultStoreEngine;
import org.apache.hadoop.hbase.regionserver.HStore;
import org.apache.hadoop.hbase.regionserver.StoreEngine;
import org.apache.hadoop.hbase.replication.regionserver.HBaseInterClusterReplicationEndpoint;
import org.apache.hadoop.hbase.replication.regionserver.WALEntrySinkFilter;
import org.apache.hadoop.hbase.wal.WALFactory;
import org.apache.hadoop.hbase.wal.WALSplitter;
import org.apache.hbase.thirdparty.com.google.gson.JsonObject;

/**
 * The settings of a region server that allow cells to be dropped or changed without a trace in a WAL: switches that are
 * on, and classes from elsewhere than HBase; where the replication peers are kept, if not where the tool reads them; and
 * the setting of ours that a witness's slave needs. The tool decides what each of them means.
 */
public final class ServerSettings {
  /** {@code ReplicationStorageFactory.REPLICATION_PEER_STORAGE_IMPL}, which HBase has since 2.6. */
  private static final String PEER_STORAGE = "hbase.replication.peer.storage.impl";
  private static final String PEERS_IN_ZOOKEEPER = "zookeeper";
  /** A literal in HBase's {@code ReplicationSourceFactory}. */
  private static final String SOURCE = "replication.replicationsource.implementation";
  private static final List<String> SWITCHES = List.of(
      HBaseInterClusterReplicationEndpoint.REPLICATION_DROP_ON_DELETED_COLUMN_FAMILY_KEY,
      WALSplitter.SPLIT_SKIP_ERRORS_KEY,
      HConstants.HREGION_EDITS_REPLAY_SKIP_ERRORS);
  private static final List<String> CLASSES = List.of(
      CoprocessorHost.WAL_COPROCESSOR_CONF_KEY,
      CoprocessorHost.REGIONSERVER_COPROCESSOR_CONF_KEY,
      CoprocessorHost.REGION_COPROCESSOR_CONF_KEY,
      CoprocessorHost.USER_REGION_COPROCESSOR_CONF_KEY,
      HConstants.REPLICATION_SOURCE_SERVICE_CLASSNAME,
      HConstants.REPLICATION_SINK_SERVICE_CLASSNAME,
      WALEntrySinkFilter.WAL_ENTRY_FILTER_KEY,
      SOURCE,
      HConstants.REGION_IMPL,
      StoreEngine.STORE_ENGINE_CLASS_KEY,
      DefaultStoreEngine.DEFAULT_COMPACTOR_CLASS_KEY,
      DefaultStoreEngine.DEFAULT_STORE_FLUSHER_CLASS_KEY,
      HStore.MEMSTORE_CLASS_NAME);
  private static final String HBASE_PACKAGE = "org.apache.hadoop.hbase.";
  private static final String OWN_PACKAGE = "io.github.statustool.";

  private ServerSettings() {}

  /** Returns the settings by key as JSON; null if there are none. Never throws. */
  public static String json(Configuration conf) {
    JsonObject json = new JsonObject();
    try {
      SWITCHES.forEach(key -> addSwitch(json, conf, key));
      addSingleEntries(json, new Settings(conf));
      addWalOff(json, conf);
      addPeerStorage(json, conf);
      CLASSES.forEach(key -> addClasses(json, conf, key));
      addCodec(json, conf);
    } catch (RuntimeException e) {
      // A tracker must not fail its server: the tool reports that the settings are not known.
      json.addProperty("unreadable", String.valueOf(e.getMessage()));
    }
    return json.size() == 0 ? null : json.toString();
  }

  private static void addSwitch(JsonObject json, Configuration conf, String key) {
    if (conf.getBoolean(key, false)) {
      json.addProperty(key, "true");
    }
  }

  private static void addSingleEntries(JsonObject json, Settings settings) {
    if (settings.unstampedEntries) {
      json.addProperty(Settings.UNSTAMPED_ENTRIES, settings.allEntries ? Settings.ALL : "true");
    }
  }

  /** Adds that the server has no write-ahead log, so that a crash loses what it has acknowledged. */
  private static void addWalOff(JsonObject json, Configuration conf) {
    if (!conf.getBoolean(WALFactory.WAL_ENABLED, true)) {
      json.addProperty(WALFactory.WAL_ENABLED, "false");
    }
  }

  /** Adds where replication peers are kept if that is not ZooKeeper, where the znodes of before stay and go stale. */
  private static void addPeerStorage(JsonObject json, Configuration conf) {
    String storage = conf.getTrimmed(PEER_STORAGE, PEERS_IN_ZOOKEEPER);
    if (!storage.equalsIgnoreCase(PEERS_IN_ZOOKEEPER)) {
      json.addProperty(PEER_STORAGE, storage);
    }
  }

  /** Adds the codec, HBase's own too: it determines whether replication keeps tags. */
  private static void addCodec(JsonObject json, Configuration conf) {
    String codec = conf.getTrimmed(HConstants.REPLICATION_CODEC_CONF_KEY, "");
    if (!codec.isEmpty()) {
      json.addProperty(HConstants.REPLICATION_CODEC_CONF_KEY, codec);
    }
  }

  /** Reads classes as HBase does: {@code class|priority|path}, separated by commas. */
  private static void addClasses(JsonObject json, Configuration conf, String key) {
    StringBuilder others = new StringBuilder();
    for (String name : conf.getTrimmedStrings(key)) {
      String type = name.split("\\|", 2)[0].trim();
      if (!type.isEmpty() && !type.startsWith(HBASE_PACKAGE) && !type.startsWith(OWN_PACKAGE)) {
        others.append(others.length() == 0 ? "" : ", ").append(type);
      }
    }
    if (others.length() > 0) {
      json.addProperty(key, others.toString());
    }
  }
}
