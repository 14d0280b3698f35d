package io.github.statustool.content;

import java.util.Arrays;
import java.util.Map;
import org.apache.hadoop.hbase.HConstants;
import org.apache.hadoop.hbase.KeepDeletedCells;
import org.apache.hadoop.hbase.client.ColumnFamilyDescriptor;
import org.apache.hadoop.hbase.client.Durability;
import org.apache.hadoop.hbase.client.TableDescriptor;
import org.apache.hbase.thirdparty.com.google.gson.JsonArray;
import org.apache.hbase.thirdparty.com.google.gson.JsonObject;

/**
 * What a table keeps of the cells that are written to it, by family, as seven numbers: VERSIONS, MIN_VERSIONS, TTL in
 * seconds, KEEP_DELETED_CELLS (0 FALSE, 1 TTL, 2 TRUE), NEW_VERSION_BEHAVIOR (0 or 1), 0 if a crash may lose cells
 * (SKIP_WAL, ASYNC_WAL), and IS_MOB (0 or 1), without which HBase shows references to MOB files in place of values. The
 * region's own descriptor counts, which is the one that it was opened with.
 */
final class Retention {
  private static final Map<KeepDeletedCells, Integer> KEPT_DELETES =
      Map.of(KeepDeletedCells.FALSE, 0, KeepDeletedCells.TTL, 1, KeepDeletedCells.TRUE, 2);

  private Retention() {}

  /** Returns true if each cell stays until it is overwritten or deleted, also after a crash. */
  static boolean isUnlimited(TableDescriptor table) {
    return isDurable(table) && Arrays.stream(table.getColumnFamilies())
        .allMatch(family -> family.getTimeToLive() == HConstants.FOREVER);
  }

  private static boolean isDurable(TableDescriptor table) {
    return table.getDurability() != Durability.SKIP_WAL && table.getDurability() != Durability.ASYNC_WAL;
  }

  static JsonObject of(TableDescriptor table) {
    JsonObject families = new JsonObject();
    for (ColumnFamilyDescriptor family : table.getColumnFamilies()) {
      JsonArray numbers = new JsonArray();
      numbers.add(family.getMaxVersions());
      numbers.add(family.getMinVersions());
      numbers.add(family.getTimeToLive());
      numbers.add(KEPT_DELETES.get(family.getKeepDeletedCells()));
      numbers.add(family.isNewVersionBehavior() ? 1 : 0);
      numbers.add(isDurable(table) ? 1 : 0);
      numbers.add(family.isMobEnabled() ? 1 : 0);
      families.add(family.getNameAsString(), numbers);
    }
    return families;
  }
}
