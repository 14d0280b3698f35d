package io.github.statustool.state;

import java.security.MessageDigest;
import java.security.NoSuchAlgorithmException;
import java.util.Arrays;
import java.util.List;
import java.util.UUID;

/**
 * The 64-bit ids of formats.md: origin (a region server's incarnation) and via (the clusters that an edit has passed).
 */
public final class Ids {
  /** The via of a local write. */
  public static final long LOCAL = 0L;

  private Ids() {}

  public static long origin(String serverName) {
    return first8OfSha256(Bits.utf8(serverName));
  }

  public static long hash(String name) {
    return first8OfSha256(Bits.utf8(name));
  }

  public static long via(List<UUID> clusterIds) {
    return clusterIds.isEmpty() ? LOCAL : first8OfSha256(sortedBytes(clusterIds));
  }

  /**
   * Returns the via of a region that starts over with lower sequence ids: its first entry's id and write time make it
   * differ.
   */
  public static long via(List<UUID> clusterIds, long firstSeq, long firstWriteTime) {
    byte[] ids = sortedBytes(clusterIds);
    byte[] all = Arrays.copyOf(ids, ids.length + 2 * Long.BYTES);
    Bits.putLong(all, ids.length, firstSeq);
    Bits.putLong(all, ids.length + Long.BYTES, firstWriteTime);
    return first8OfSha256(all);
  }

  /** Returns the via of a family's stream: the via of the entry, and the family's id. */
  public static long via(long base, int family) {
    byte[] both = new byte[Long.BYTES + Integer.BYTES];
    Bits.putLong(both, 0, base);
    Bits.putInt(both, Long.BYTES, family);
    return first8OfSha256(both);
  }

  /** Returns the cluster ids, sorted, because the order of the clusters must not make a difference. */
  public static byte[] sortedBytes(List<UUID> clusterIds) {
    byte[][] ids = new byte[clusterIds.size()][];
    for (int i = 0; i < ids.length; i++) {
      UUID id = clusterIds.get(i);
      ids[i] = Bits.ofLongs(id.getMostSignificantBits(), id.getLeastSignificantBits());
    }
    Arrays.sort(ids, Arrays::compareUnsigned);
    byte[] all = new byte[2 * Long.BYTES * ids.length];
    for (int i = 0; i < ids.length; i++) {
      System.arraycopy(ids[i], 0, all, 2 * Long.BYTES * i, 2 * Long.BYTES);
    }
    return all;
  }

  /** Returns the first 8 bytes of the SHA-256 of some bytes. */
  public static long first8OfSha256(byte[] bytes) {
    try {
      return Bits.getLong(MessageDigest.getInstance("SHA-256").digest(bytes), 0);
    } catch (NoSuchAlgorithmException e) {
      throw new IllegalStateException("every Java platform has SHA-256", e);
    }
  }
}
