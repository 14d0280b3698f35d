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
  /** A file of the opening that nobody has looked at: it is plain or loaded. */
  private static final byte DOUBTFUL = 3;

  private final Map<Long, Byte> files = new HashMap<>();
  /**
   * Files that were compacted before the marker of their flush or load. HBase appends that marker only once compactions
   * see the file ({@code HRegion.internalFlushCacheAndCommit} and {@code bulkLoadHFiles}), and names no file twice.
   */
  private final Set<Long> goneBefore = new HashSet<>(0);

  void add(Collection<String> names) {
    add(names, PLAIN);
  }

  /** Adds bulk-loaded files. With the store file tracker FILE their names do not tell. */
  void addLoaded(Collection<String> names) {
    add(names, LOADED);
  }

  /** Adds files of an opening. Those that the region has from bulk loads are known once {@link #resolve} is called. */
  void addDoubtful(Collection<String> names) {
    add(names, DOUBTFUL);
  }

  /** @param otherwise the kind of a file whose name does not tell one */
  private void add(Collection<String> names, byte otherwise) {
    for (String name : names) {
      if (!goneBefore.remove(hash(name))) {
        files.put(hash(name), kind(name, otherwise));
      }
    }
  }

  /**
   * Removes the doubt about files that HBase knows.
   *
   * @param loaded by name, whether the file was bulk loaded
   */
  void resolve(Map<String, Boolean> loaded) {
    loaded.forEach((name, isLoaded) -> files.replace(hash(name), DOUBTFUL, isLoaded ? LOADED : PLAIN));
  }

  private static byte kind(String name, byte otherwise) {
    if (StoreFileName.isLink(name)) {
      return LINK;
    }
    return StoreFileName.isLoaded(name) ? LOADED : otherwise;
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

  /** Returns the content, in which files of a doubtful kind count as plain ones. */
  Content content() {
    return content(false);
  }

  /** Returns the content of an opening, in which files of a doubtful kind count as loaded. */
  Content contentInDoubt() {
    return content(true);
  }

  private Content content(boolean doubtfulAreLoaded) {
    long sum = 0;
    int links = 0;
    long loaded = 0;
    for (Map.Entry<Long, Byte> file : files.entrySet()) {
      // A sum depends on no order. It may overflow, because it is only compared.
      sum += file.getKey();
      links += file.getValue() == LINK ? 1 : 0;
      boolean isLoaded = file.getValue() == LOADED || (doubtfulAreLoaded && file.getValue() == DOUBTFUL);
      loaded += isLoaded ? file.getKey() : 0;
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
      // `links` and `loaded` follow from the files themselves.
      return other instanceof Content && count == ((Content) other).count && sum == ((Content) other).sum;
    }

    @Override
    public int hashCode() {
      return Long.hashCode(sum);
    }
  }
}
