package io.github.statustool.state;

import static org.junit.jupiter.api.Assertions.assertEquals;

import java.io.IOException;
import org.apache.hadoop.hbase.KeepDeletedCells;
import org.apache.hadoop.hbase.TableName;
import org.apache.hadoop.hbase.client.ColumnFamilyDescriptorBuilder;
import org.apache.hadoop.hbase.client.Durability;
import org.apache.hadoop.hbase.client.TableDescriptorBuilder;
import org.apache.hadoop.hbase.util.Bytes;
import org.junit.jupiter.api.Test;

class TableJsonTest {
  @Test
  void tellsWhatDecidesWhichCellsStayVisible() throws IOException {
    TableDescriptorBuilder table = TableDescriptorBuilder.newBuilder(TableName.valueOf("ns", "t"))
        .setDurability(Durability.ASYNC_WAL)
        .setColumnFamily(ColumnFamilyDescriptorBuilder.of("f"))
        .setColumnFamily(ColumnFamilyDescriptorBuilder.newBuilder(Bytes.toBytes("g"))
            .setScope(1)
            .setMaxVersions(5)
            .setMinVersions(2)
            .setTimeToLive(60)
            .setKeepDeletedCells(KeepDeletedCells.TTL)
            .setNewVersionBehavior(true)
            .setMobEnabled(true)
            .build())
        .setCoprocessor("org.Own")
        .setCoprocessor("org.Another")
        .setCoprocessor("org.apache.hadoop.hbase.coprocessor.AggregateImplementation")
        .setCoprocessor("org.apache.hadoop.hbase.coprocessor.example.ZooKeeperScanPolicyObserver");
    assertEquals("{\"families\":{"
        + "\"f\":{\"scope\":0,\"versions\":1,\"min_versions\":0,\"ttl\":2147483647,\"keep_deleted\":\"FALSE\","
        + "\"new_version_behavior\":false,\"mob\":false},"
        + "\"g\":{\"scope\":1,\"versions\":5,\"min_versions\":2,\"ttl\":60,\"keep_deleted\":\"TTL\","
        + "\"new_version_behavior\":true,\"mob\":true}},"
        + "\"durability\":\"ASYNC_WAL\",\"enabled\":true,\"coprocessors\":[\"org.Another\",\"org.Own\","
        + "\"org.apache.hadoop.hbase.coprocessor.example.ZooKeeperScanPolicyObserver\"]}",
        TableJson.of(table.build(), true));
  }
}
