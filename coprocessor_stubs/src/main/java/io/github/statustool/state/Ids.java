package io.github.statustool.state;

import java.security.MessageDigest;
import java.security.NoSuchAlgorithmException;
import java.util.Arrays;
import java.util.List;
import java.util.UUID;
import org.apache.hadoop.hbase.util.Bytes;

/**
 * The 64-bit ids of formats.md: origin (a region server's incarnation) and via (the clusters that an edit has passed).
 */
public final class Ids {
  /** The via of a local write. */
  public static final long LOCAL = 0L;

  private Ids() {}

  /** Returns an id as 16 hex digits. */
  public static String hex(long id) {
    return Bytes.toHex(Bytes.toBytes(id));
  }

  public static byte[] ofLongs(long first, long second) {
    return Bytes.add(Bytes.toBytes(first), Bytes.toBytes(second));
  }

  public static long origin(String serverName) {
    return first8OfSha256(Bytes.toBytes(serverName));
  }

  public static long via(List<UUID> clusterIds) {
    return clusterIds.isEmpty() ? LOCAL : first8OfSha256(sortedBytes(clusterIds));
  }

  /**
   * Returns the via of a region that starts over with lower sequence ids: its first entry's id and write time make it
   * differ.
   */
  public static long via(List<UUID> clusterIds, long firstSeq, long firstWriteTime) {
    return first8OfSha256(Bytes.add(sortedBytes(clusterIds), ofLongs(firstSeq, firstWriteTime)));
  }

  /** Returns the via of a family's stream: the via of the entry, and the family's id. */
  public static long via(long base, int family) {
    return first8OfSha256(Bytes.add(Bytes.toBytes(base), Bytes.toBytes(family)));
  }

  /** Returns the cluster ids, sorted. */
  public static byte[] sortedBytes(List<UUID> clusterIds) {
    byte[][] ids = new byte[clusterIds.size()][];
    for (int i = 0; i < ids.length; i++) {
      UUID id = clusterIds.get(i);
      ids[i] = ofLongs(id.getMostSignificantBits(), id.getLeastSignificantBits());
    }
    // The order of the clusters must not make a difference.
    Arrays.sort(ids, Arrays::compareUnsigned);
    return Bytes.add(ids);
  }

  /** Returns the first 8 bytes of the SHA-256 of some bytes. */
  public static long first8OfSha256(byte[] bytes) {
    try {
      return Bytes.toLong(MessageDigest.getInstance("SHA-256").digest(bytes), 0);
    } catch (NoSuchAlgorithmException e) {
      throw new IllegalStateException("every Java platform has SHA-256", e);
    }
  }
}
