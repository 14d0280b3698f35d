package io.github.statustool.content;

import org.apache.hadoop.hbase.client.RegionInfo;
import org.apache.hadoop.hbase.io.HFileLink;
import org.apache.hadoop.hbase.regionserver.StoreFileInfo;

/** Reads the origin of a store file from its name. {@link FileOrigins} knows bulk loads that the name does not tell. */
final class StoreFileName {
  private static final String LOADED = "_SeqId_";

  private StoreFileName() {}

  /** Returns true if the data is in a file of another region: HFileLinks and references. */
  static boolean isLink(String name) {
    return HFileLink.isHFileLink(name) || StoreFileInfo.isReference(name);
  }

  static boolean isLoaded(String name) {
    return !isLink(name) && name.contains(LOADED);
  }

  /** Returns the region whose split or merge created this reference; null for other files. */
  static String parent(String name) {
    return StoreFileInfo.isReference(name) ? name.substring(name.lastIndexOf('.') + 1) : null;
  }

  /** Returns true for a link to a file of this very region, which restoring or cloning it leaves. */
  static boolean isLinkTo(String name, RegionInfo region) {
    return HFileLink.isHFileLink(name) && region.getEncodedName().equals(HFileLink.getReferencedRegionName(name));
  }

  /**
   * Returns true if the file is a link that no split or merge of this region's table creates: into another table, to a
   * file of this very region, or, where a reference names its parent twice, to one of that. Restoring and cloning
   * snapshots creates such links; a region that has some of its own may be split later.
   */
  static boolean isFromElsewhere(String name, RegionInfo region) {
    String parent = parent(name);
    String link = parent == null ? name : name.substring(0, name.lastIndexOf('.'));
    if (!HFileLink.isHFileLink(link)) {
      return false;
    }
    String linked = HFileLink.getReferencedRegionName(link);
    return !region.getTable().equals(HFileLink.getReferencedTableName(link))
        || linked.equals(region.getEncodedName()) || linked.equals(parent);
  }
}
