package io.github.statustool.content;

import io.github.statustool.state.Ids;
import java.util.Collection;
import java.util.HashMap;
import java.util.HashSet;
import java.util.Map;
import java.util.Set;
import org.apache.hadoop.hbase.util.Bytes;

/** The store files of one family of an open region, as hashes of their names. */
final class StoreFiles {
  private static final byte PLAIN = 0;
  private static final byte LINK = 1;
  private static final byte LOADED = 2;

  private final Map<Long, Byte> files = new HashMap<>();
  /**
   * Files that were compacted before the marker of their flush or load. HBase appends that marker only once compactions
   * see the file ({@code HRegion.internalFlushCacheAndCommit} and {@code bulkLoadHFiles}), and names no file twice.
   */
  private final Set<Long> goneBefore = new HashSet<>(0);

  void add(Collection<String> names) {
    for (String name : names) {
      if (!goneBefore.remove(hash(name))) {
        files.put(hash(name),
            StoreFileName.isLink(name) ? LINK : StoreFileName.isLoaded(name) ? LOADED : PLAIN);
      }
    }
  }

  void remove(Collection<String> names) {
    for (String name : names) {
      if (files.remove(hash(name)) == null) {
        goneBefore.add(hash(name));
      }
    }
  }

  private static long hash(String name) {
    return Ids.first8OfSha256(Bytes.toBytes(name));
  }

  Content content() {
    long sum = 0;
    int links = 0;
    long loaded = 0;
    for (Map.Entry<Long, Byte> file : files.entrySet()) {
      // A sum depends on no order. It may overflow, because it is only compared.
      sum += file.getKey();
      links += file.getValue() == LINK ? 1 : 0;
      loaded += file.getValue() == LOADED ? file.getKey() : 0;
    }
    return new Content(files.size(), sum, links, loaded);
  }

  /**
   * A set of store files as four numbers: count, sum of name hashes, number of links, sum of the name hashes of
   * bulk-loaded files.
   */
  static final class Content {
    final long count;
    final long sum;
    final long links;
    final long loaded;

    Content(long count, long sum, long links, long loaded) {
      this.count = count;
      this.sum = sum;
      this.links = links;
      this.loaded = loaded;
    }

    @Override
    public boolean equals(Object other) {
      // `links` and `loaded` follow from the names.
      return other instanceof Content && count == ((Content) other).count && sum == ((Content) other).sum;
    }

    @Override
    public int hashCode() {
      return Long.hashCode(sum);
    }
  }
}
