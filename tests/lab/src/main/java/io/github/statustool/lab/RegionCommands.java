package io.github.statustool.lab;

import java.io.IOException;
import java.util.ArrayList;
import java.util.LinkedHashMap;
import java.util.List;
import java.util.Map;
import java.util.concurrent.Future;
import java.util.concurrent.TimeUnit;
import org.apache.hadoop.hbase.HRegionLocation;
import org.apache.hadoop.hbase.ServerName;
import org.apache.hadoop.hbase.TableName;
import org.apache.hadoop.hbase.client.Admin;
import org.apache.hadoop.hbase.client.CompactionState;
import org.apache.hadoop.hbase.client.Connection;
import org.apache.hadoop.hbase.client.RegionInfo;
import org.apache.hadoop.hbase.client.RegionLocator;
import org.apache.hadoop.hbase.util.Bytes;

/** Where regions are, moving, splitting, merging, flushing and compacting them. */
final class RegionCommands {

  private static final long PATIENCE_S = 120;

  private final Connection connection;
  private final Admin admin;

  RegionCommands(Connection connection, Admin admin) {
    this.connection = connection;
    this.admin = admin;
  }

  void register(Map<String, Command> commands) {
    commands.put("regions", args -> regions(args.table()));
    commands.put("move", this::move);
    commands.put("split", this::split);
    commands.put("merge", this::merge);
    commands.put("flush", this::flush);
    commands.put("major_compact", this::majorCompact);
  }

  private List<Map<String, Object>> regions(TableName table) throws IOException {
    List<Map<String, Object>> all = new ArrayList<>();
    try (RegionLocator locator = connection.getRegionLocator(table)) {
      locator.clearRegionLocationCache();
      for (HRegionLocation location : locator.getAllRegionLocations()) {
        all.add(describe(location.getRegion(), location.getServerName()));
      }
    }
    return all;
  }

  private static Map<String, Object> describe(RegionInfo region, ServerName server) {
    Map<String, Object> answer = new LinkedHashMap<>();
    answer.put("encoded", region.getEncodedName());
    answer.put("name", region.getRegionNameAsString());
    answer.put("start_key", Args.base64(region.getStartKey()));
    answer.put("end_key", Args.base64(region.getEndKey()));
    answer.put("server", server == null ? null : server.getServerName());
    return answer;
  }

  private Object move(Args args) throws IOException {
    admin.move(Bytes.toBytes(args.text("encoded")), ServerName.valueOf(args.text("server")));
    return null;
  }

  private Object split(Args args) throws Exception {
    byte[] key = args.bytes("split_key");
    String what = args.text("table_or_encoded");
    byte[] region = Bytes.toBytes(what);
    if (!what.matches("[0-9a-f]{32}")) {
      try (RegionLocator locator = connection.getRegionLocator(TableName.valueOf(what))) {
        region = locator.getRegionLocation(key, true).getRegion().getEncodedNameAsBytes();
      }
    }
    return replaced(admin.splitRegionAsync(region, key));
  }

  private Object merge(Args args) throws Exception {
    byte[][] both = {Bytes.toBytes(args.text("encoded_a")), Bytes.toBytes(args.text("encoded_b"))};
    return replaced(admin.mergeRegionsAsync(both, true));
  }

  /**
   * Waits until regions are replaced, and forgets where they were. Of a region that moved there and back, each server
   * answers for two minutes that the other one has it, and the client believes both.
   */
  private Object replaced(Future<Void> regions) throws Exception {
    regions.get(PATIENCE_S, TimeUnit.SECONDS);
    connection.clearRegionLocationCache();
    return null;
  }

  private Object flush(Args args) throws IOException {
    admin.flush(args.table());
    return null;
  }

  private Object majorCompact(Args args) throws Exception {
    admin.majorCompact(args.table());
    long end = System.nanoTime() + TimeUnit.SECONDS.toNanos(PATIENCE_S);
    // The request is asynchronous: give it the moment it needs to be seen as running.
    do {
      Thread.sleep(500);
    } while (admin.getCompactionState(args.table()) != CompactionState.NONE && System.nanoTime() < end);
    return null;
  }
}
