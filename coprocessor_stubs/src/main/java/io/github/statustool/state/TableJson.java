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
  /** HBase's own coprocessors neither drop nor change replicated cells, so they are left out. */
  private static final String HBASE_PACKAGE = "org.apache.hadoop.hbase.";

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

  /** Class names, sorted, without duplicates. */
  private static JsonArray coprocessors(TableDescriptor table) {
    TreeSet<String> names = new TreeSet<>();
    for (CoprocessorDescriptor coprocessor : table.getCoprocessorDescriptors()) {
      if (!coprocessor.getClassName().startsWith(HBASE_PACKAGE)) {
        names.add(coprocessor.getClassName());
      }
    }
    JsonArray json = new JsonArray();
    names.forEach(json::add);
    return json;
  }
}
