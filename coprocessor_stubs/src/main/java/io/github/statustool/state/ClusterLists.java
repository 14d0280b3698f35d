package io.github.statustool.state;

/**
 * Bounds the lists of clusters that edits have passed: there are as many as ways through a topology, unless a client
 * makes them up (any may set the attribute {@code _cs.id} of a mutation), and each one costs memory and a row.
 */
public final class ClusterLists {
  /** Number of lists of a region, or of a table, with that of the own clients. */
  public static final int MOST = 64;
  /** Number of clusters in a list, which is a part of a column's name: HBase takes no cell of more than 10 MB. */
  public static final int LONGEST = 64;

  private static final Refused REFUSED = new Refused();

  private ClusterLists() {}

  /**
   * Throws an exception if no further list is recorded; its entries are counted as errors then.
   *
   * @param known number of lists that are
   */
  public static void requireRoom(int known) {
    require(hasRoom(known));
  }

  public static boolean hasRoom(int known) {
    return known < MOST;
  }

  public static boolean isTooLong(int clusters) {
    return clusters > LONGEST;
  }

  /** Throws the same exception if a list is not admitted. */
  public static void require(boolean admitted) {
    if (!admitted) {
      throw REFUSED;
    }
  }

  /** Without a stack trace, which would be filled in for each entry. */
  private static final class Refused extends RuntimeException {
    private static final long serialVersionUID = 1;

    private Refused() {
      super("more than " + MOST + " lists of clusters that edits have passed, or more than " + LONGEST
          + " clusters in one: does a client set _cs.id?", null, false, false);
    }
  }
}
