package io.github.statustool.server;

import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertFalse;
import static org.junit.jupiter.api.Assertions.assertNull;
import static org.junit.jupiter.api.Assertions.assertTrue;

import io.github.statustool.state.Health;
import io.github.statustool.state.Settings;
import io.github.statustool.streams.Fixtures;
import org.apache.hadoop.conf.Configuration;
import org.apache.hadoop.hbase.HBaseConfiguration;
import org.apache.hadoop.hbase.HConstants;
import org.apache.hadoop.hbase.coprocessor.ReadOnlyConfiguration;
import org.junit.jupiter.api.Test;

class ServerSettingsTest {
  private final Configuration conf = HBaseConfiguration.create();

  private static final String CODEC =
      "\"hbase.replication.rpc.codec\":\"org.apache.hadoop.hbase.codec.KeyValueCodecWithTags\"}";

  private String json() {
    return new ServerSettings(conf, new Settings(conf)).json();
  }

  @Test
  void hbasesOwnSettingsAndOursAreNotWorthAWord() {
    conf.set("hbase.coprocessor.wal.classes", "io.github.statustool.WriteTimeTracker");
    conf.set("hbase.coprocessor.regionserver.classes", "io.github.statustool.ReplicateTimeTracker");
    conf.set("hbase.coprocessor.region.classes", "org.apache.hadoop.hbase.security.access.AccessController");
    conf.set("hbase.replication.sink.service", "org.apache.hadoop.hbase.replication.ReplicationSinkServiceImpl");
    conf.set("hbase.replication.drop.on.deleted.columnfamily", "false");
    assertEquals("{" + CODEC, json());
    Configuration empty = new Configuration(false);
    assertNull(new ServerSettings(empty, new Settings(empty)).json());
  }

  /** HBase's package has examples that drop cells. */
  @Test
  void onlyCoprocessorsThatAreKnownToKeepCellsAreNotTold() {
    conf.set("hbase.coprocessor.region.classes", "org.apache.hadoop.hbase.security.token.TokenProvider|5,"
        + " org.apache.hadoop.hbase.coprocessor.example.ZooKeeperScanPolicyObserver");
    conf.set("hbase.coprocessor.user.region.classes", "org.apache.hadoop.hbase.tool.WriteSinkCoprocessor|5");
    assertEquals("{\"hbase.coprocessor.region.classes\":"
        + "\"org.apache.hadoop.hbase.coprocessor.example.ZooKeeperScanPolicyObserver\","
        + "\"hbase.coprocessor.user.region.classes\":\"org.apache.hadoop.hbase.tool.WriteSinkCoprocessor\"," + CODEC,
        json());
  }

  @Test
  void whatMayDropOrChangeCellsIsTold() {
    conf.set("hbase.coprocessor.wal.classes", "io.github.statustool.WriteTimeTracker, com.x.Wal|5|hdfs:///a.jar");
    conf.set("hbase.coprocessor.user.region.classes", "com.x.Index,com.x.Audit");
    conf.set("hbase.replication.sink.walentrysinkfilter", "com.x.Filter");
    conf.set("hbase.replication.drop.on.deleted.columnfamily", "true");
    conf.set("hbase.hlog.split.skip.errors", "true");
    conf.set("hbase.skip.errors", "true");
    conf.set("hbase.replicationtable.unstamped.entries", "true");
    assertEquals("{\"hbase.replication.drop.on.deleted.columnfamily\":\"true\",\"hbase.hlog.split.skip.errors\":\"true\","
        + "\"hbase.skip.errors\":\"true\"," + "\"hbase.replicationtable.unstamped.entries\":\"true\","
        + "\"hbase.coprocessor.wal.classes\":\"com.x.Wal\",\"hbase.coprocessor.user.region.classes\":\"com.x.Index, com.x.Audit\","
        + "\"hbase.replication.sink.walentrysinkfilter\":\"com.x.Filter\","
        + CODEC, json());
  }

  @Test
  void whichEntriesAreRecordedOneByOneIsTold() {
    conf.set("hbase.replicationtable.unstamped.entries", " All");
    assertTrue(json().contains("\"hbase.replicationtable.unstamped.entries\":\"all\""));
    conf.set("hbase.replicationtable.unstamped.entries", "some");
    assertEquals("{" + CODEC, json());
  }

  @Test
  void classesInPlaceOfHBasesOwnAreTold() {
    conf.set("replication.replicationsource.implementation", "com.x.Source");
    conf.set("hbase.hregion.impl", "com.x.Region");
    conf.set("hbase.hstore.engine.class", "com.x.Engine");
    conf.set("hbase.hstore.defaultengine.compactor.class", "com.x.Compactor");
    conf.set("hbase.hstore.defaultengine.storeflusher.class", "com.x.Flusher");
    conf.set("hbase.hstore.mobengine.compactor.class", "com.x.MobCompactor");
    conf.set("hbase.regionserver.memstore.class", "com.x.MemStore");
    assertEquals("{\"replication.replicationsource.implementation\":\"com.x.Source\","
        + "\"hbase.hregion.impl\":\"com.x.Region\",\"hbase.hstore.engine.class\":\"com.x.Engine\","
        + "\"hbase.hstore.defaultengine.compactor.class\":\"com.x.Compactor\","
        + "\"hbase.hstore.defaultengine.storeflusher.class\":\"com.x.Flusher\","
        + "\"hbase.hstore.mobengine.compactor.class\":\"com.x.MobCompactor\","
        + "\"hbase.regionserver.memstore.class\":\"com.x.MemStore\"," + CODEC,
        json());
    conf.set("replication.replicationsource.implementation",
        "org.apache.hadoop.hbase.replication.regionserver.ReplicationSource");
    conf.set("hbase.hregion.impl", "org.apache.hadoop.hbase.regionserver.HRegion");
    conf.set("hbase.hstore.engine.class", "org.apache.hadoop.hbase.regionserver.StripeStoreEngine");
    conf.set("hbase.hstore.defaultengine.compactor.class",
        "org.apache.hadoop.hbase.regionserver.compactions.DefaultCompactor");
    conf.set("hbase.hstore.defaultengine.storeflusher.class",
        "org.apache.hadoop.hbase.regionserver.DefaultStoreFlusher");
    conf.set("hbase.hstore.mobengine.compactor.class", "org.apache.hadoop.hbase.mob.DefaultMobStoreCompactor");
    conf.set("hbase.regionserver.memstore.class", "org.apache.hadoop.hbase.regionserver.CompactingMemStore");
    assertEquals("{" + CODEC, json());
  }

  @Test
  void peersThatAreNotKeptInZooKeeperAreTold() {
    conf.set("hbase.replication.peer.storage.impl", "filesystem");
    assertEquals("{\"hbase.replication.peer.storage.impl\":\"filesystem\"," + CODEC, json());
    conf.set("hbase.replication.peer.storage.impl", "ZooKeeper");
    assertEquals("{" + CODEC, json());
  }

  /** HBase 2.6 takes a copy of the peers into use by {@code update_config} (HBASE-27806); ZooKeeper's go stale then. */
  @Test
  void peersThatMoveWhileTheServerRunsAreTold() {
    ServerSettings settings = new ServerSettings(new ReadOnlyConfiguration(conf), new Settings(conf));
    assertEquals("{" + CODEC, settings.json());
    conf.set("hbase.replication.peer.storage.impl", "filesystem");
    assertEquals("{\"hbase.replication.peer.storage.impl\":\"filesystem\"," + CODEC, settings.json());
    conf.unset("hbase.replication.peer.storage.impl");
    assertEquals("{" + CODEC, settings.json());
  }

  @Test
  void whatIsSetWhileTheServerRunsIsToldAndStays() {
    ServerSettings settings = new ServerSettings(new ReadOnlyConfiguration(conf), new Settings(conf));
    assertEquals("{" + CODEC, settings.json());
    conf.set("hbase.replication.drop.on.deleted.columnfamily", "true");
    conf.set("hbase.coprocessor.region.classes", "com.x.Index");
    settings.json();
    conf.unset("hbase.replication.drop.on.deleted.columnfamily");
    conf.set("hbase.coprocessor.region.classes", "com.x.Audit,com.x.Index");
    conf.set("hbase.replication.rpc.codec", "com.x.Codec");
    conf.set("hbase.replicationtable.unstamped.entries", "true");
    assertEquals("{\"hbase.replication.drop.on.deleted.columnfamily\":\"true\","
        + "\"hbase.coprocessor.region.classes\":\"com.x.Index, com.x.Audit\",\"hbase.replication.rpc.codec\":"
        + "\"org.apache.hadoop.hbase.codec.KeyValueCodecWithTags, com.x.Codec\"}", settings.json());
  }

  @Test
  void aServerWithoutAWriteAheadLogIsTold() {
    conf.set("hbase.regionserver.hlog.enabled", "false");
    assertEquals("{\"hbase.regionserver.hlog.enabled\":\"false\"," + CODEC, json());
  }

  /** HBase's class that keeps no log can be named as well, and a crash loses as much. */
  @Test
  void aProviderOfWriteAheadLogsThatIsNoneOfHBasesIsTold() {
    String none = "org.apache.hadoop.hbase.wal.DisabledWALProvider";
    conf.set("hbase.wal.provider", none);
    assertEquals("{\"hbase.wal.provider\":\"" + none + "\"," + CODEC, json());
    conf.set("hbase.wal.provider", "multiwal");
    assertEquals("{" + CODEC, json());
    conf.set("hbase.wal.regiongrouping.delegate.provider", none);
    assertEquals("{\"hbase.wal.regiongrouping.delegate.provider\":\"" + none + "\"," + CODEC, json());
    conf.set("hbase.wal.regiongrouping.delegate.provider", "org.apache.hadoop.hbase.wal.FSHLogProvider");
    assertEquals("{" + CODEC, json());
    conf.set("hbase.wal.provider", "com.x.LogProvider");
    assertEquals("{\"hbase.wal.provider\":\"com.x.LogProvider\"," + CODEC, json());
  }

  /** A region that was opened meanwhile goes on without HBase's observer that notes them in hfile-refs. */
  @Test
  void bulkLoadsAreNotNotedAnyMoreOnceTheirReplicationWasSwitchedOff() {
    conf.setBoolean(HConstants.REPLICATION_BULKLOAD_ENABLE_KEY, true);
    Settings own = new Settings(conf);
    ServerSettings settings = new ServerSettings(new ReadOnlyConfiguration(conf), own);
    settings.json();
    assertTrue(own.loadsAreNoted());
    conf.setBoolean(HConstants.REPLICATION_BULKLOAD_ENABLE_KEY, false);
    settings.json();
    conf.setBoolean(HConstants.REPLICATION_BULKLOAD_ENABLE_KEY, true);
    settings.json();
    assertFalse(own.loadsAreNoted());
  }

  @Test
  void visibilityLabelsAreTold() {
    conf.set("hbase.coprocessor.region.classes", "org.apache.hadoop.hbase.security.access.AccessController,"
        + " org.apache.hadoop.hbase.security.visibility.VisibilityController|5");
    assertEquals("{\"labels\":\"true\"," + CODEC, json());
  }

  @Test
  void labelsThatAreShippedByNameAreTold() {
    conf.set("hbase.coprocessor.region.classes",
        "org.apache.hadoop.hbase.security.visibility.VisibilityController");
    conf.set("hbase.coprocessor.regionserver.classes",
        "org.apache.hadoop.hbase.security.visibility.VisibilityReplication");
    assertEquals("{\"labels\":\"by name\"," + CODEC, json());
  }

  @Test
  void aConfigurationThatCannotBeReadIsToldAndFailsNothing() {
    conf.set("hbase.replication.rpc.codec", "${hbase.a}");
    conf.set("hbase.a", "${hbase.b}x");
    conf.set("hbase.b", "${hbase.a}");
    assertTrue(json().contains("unreadable"), json());
  }

  @Test
  void theServersRowTellsThem() {
    Health health = Fixtures.health();
    health.serverSettings(() -> "{\"a\":\"b\"}");
    assertEquals("{\"failed_writes\":0,\"pending\":2,\"errors\":0,\"peers\":{},\"settings\":{\"a\":\"b\"}}",
        health.json(2, "{}"));
  }
}
