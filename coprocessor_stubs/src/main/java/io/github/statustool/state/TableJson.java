package io.github.statustool.state;

import java.util.TreeSet;
import org.apache.hadoop.hbase.client.ColumnFamilyDescriptor;
import org.apache.hadoop.hbase.client.CoprocessorDescriptor;
import org.apache.hadoop.hbase.client.TableDescriptor;
import org.apache.hbase.thirdparty.com.google.gson.JsonArray;
import org.apache.hbase.thirdparty.com.google.gson.JsonObject;

/**
 * The JSON form of a table descriptor (formats.md): what is replicated, and what determines which applied cells stay
 * visible, which may differ between clusters.
 */
final class TableJson {
  private TableJson() {}

  static String of(TableDescriptor table, boolean enabled) {
    JsonObject families = new JsonObject();
    for (ColumnFamilyDescriptor family : table.getColumnFamilies()) {
      families.add(family.getNameAsString(), of(family));
    }
    JsonObject json = new JsonObject();
    json.add("families", families);
    json.addProperty("durability", table.getDurability().name());
    json.addProperty("enabled", enabled);
    json.add("coprocessors", coprocessors(table));
    return json.toString();
  }

  private static JsonObject of(ColumnFamilyDescriptor family) {
    JsonObject json = new JsonObject();
    json.addProperty("scope", family.getScope());
    json.addProperty("versions", family.getMaxVersions());
    json.addProperty("min_versions", family.getMinVersions());
    json.addProperty("ttl", family.getTimeToLive());
    json.addProperty("keep_deleted", family.getKeepDeletedCells().name());
    json.addProperty("new_version_behavior", family.isNewVersionBehavior());
    json.addProperty("mob", family.isMobEnabled());
    return json;
  }

  /** Class names, sorted, without duplicates and without those that neither drop nor change cells. */
  private static JsonArray coprocessors(TableDescriptor table) {
    TreeSet<String> names = new TreeSet<>();
    for (CoprocessorDescriptor coprocessor : table.getCoprocessorDescriptors()) {
      if (!HBaseCoprocessors.isHarmless(coprocessor.getClassName())) {
        names.add(coprocessor.getClassName());
      }
    }
    JsonArray json = new JsonArray();
    names.forEach(json::add);
    return json;
  }
}
