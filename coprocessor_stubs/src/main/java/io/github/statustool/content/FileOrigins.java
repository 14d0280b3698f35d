package io.github.statustool.content;

import java.util.Collection;
import java.util.HashMap;
import java.util.Map;
import org.apache.hadoop.hbase.regionserver.HStoreFile;
import org.apache.hadoop.hbase.regionserver.Region;
import org.apache.hadoop.hbase.regionserver.Store;
import org.apache.hadoop.hbase.regionserver.StoreFile;

/**
 * Reads from an open region which of its store files were bulk loaded. HBase leaves {@code _SeqId_} out of the name
 * with the store file tracker FILE and with {@code hbase.mapreduce.bulkload.assign.sequenceNumbers} false.
 */
public final class FileOrigins {
  private FileOrigins() {}

  /** Returns by family and name whether each file was bulk loaded; nothing of a region that has been closed. */
  public static Map<String, Map<String, Boolean>> of(Region region) {
    Map<String, Map<String, Boolean>> families = new HashMap<>();
    for (Store store : region.getStores()) {
      Map<String, Boolean> files = families.computeIfAbsent(store.getColumnFamilyName(), absent -> new HashMap<>());
      add(store.getStorefiles(), files);
      // Afterwards, since a compaction moves files there. HBase keeps them for two minutes; a look comes each second.
      add(store.getCompactedFiles(), files);
    }
    return families;
  }

  private static void add(Collection<? extends StoreFile> files, Map<String, Boolean> into) {
    if (files != null) {
      files.forEach(file -> into.put(file.getPath().getName(), isLoaded(file)));
    }
  }

  /** A compaction's output does not count: HBase copies none of its inputs' marks. */
  private static boolean isLoaded(StoreFile file) {
    return file.isBulkLoadResult() || (file instanceof HStoreFile && !hasHighestId((HStoreFile) file));
  }

  /**
   * Returns true if a region server wrote the file: each flush and compaction records the highest sequence id. A loader
   * that writes HFiles by itself records neither that nor the time of the load.
   */
  private static boolean hasHighestId(HStoreFile file) {
    return file.getMetadataValue(HStoreFile.MAX_SEQ_ID_KEY) != null;
  }
}
