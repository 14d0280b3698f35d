package io.github.statustool;

import org.apache.hadoop.hbase.client.ColumnFamilyDescriptor;
import org.apache.hadoop.hbase.client.TableDescriptor;
import org.apache.hbase.thirdparty.com.google.gson.JsonObject;

/** What the tool wants to know of a table, as the JSON of formats.md. */
final class TableJson {
  private TableJson() {}

  static String of(TableDescriptor table, boolean enabled) {
    JsonObject families = new JsonObject();
    for (ColumnFamilyDescriptor family : table.getColumnFamilies()) {
      JsonObject properties = new JsonObject();
      properties.addProperty("scope", family.getScope());
      families.add(family.getNameAsString(), properties);
    }
    JsonObject json = new JsonObject();
    json.add("families", families);
    json.addProperty("durability", table.getDurability().name());
    json.addProperty("enabled", enabled);
    return json.toString();
  }
}
