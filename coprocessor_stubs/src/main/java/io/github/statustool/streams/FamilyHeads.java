package io.github.statustool.streams;

import io.github.statustool.state.Ids;
import java.util.Arrays;

/**
 * The heads of the streams that the entries of one region, origin and via form: one for each family. An entry moves the
 * heads of the families that it has cells of. Used by the WAL thread that owns the region.
 */
final class FamilyHeads {
  /** The via of the entries; each family's stream has one of its own ({@link Ids#via(long, int)}). */
  final long via;
  private final StreamHeads.Maker maker;
  private int[] ids = new int[1];
  private StreamHead[] heads = new StreamHead[1];
  private int size;
  private long seq;

  FamilyHeads(long via, StreamHeads.Maker maker) {
    this.via = via;
    this.maker = maker;
  }

  /** Returns the newest sequence id of any family. */
  long seq() {
    return seq;
  }

  /** Tells the previous entry of each family in an entry. */
  void follow(FamilyCells cells, Names names) {
    for (int i = 0; i < cells.size(); i++) {
      StreamHead head = head(cells.id(i), names);
      cells.follow(i, head.seq(), head.writeTime());
    }
  }

  /** Advances the heads of an entry's families. */
  void advance(FamilyCells cells, Names names, long newSeq, long writeTime) {
    for (int i = 0; i < cells.size(); i++) {
      head(cells.id(i), names).advance(newSeq, writeTime);
    }
    seq = Math.max(seq, newSeq);
  }

  StreamHead head(int family, Names names) {
    for (int i = 0; i < size; i++) {
      if (ids[i] == family) {
        return heads[i];
      }
    }
    if (size == ids.length) {
      ids = Arrays.copyOf(ids, 2 * size);
      heads = Arrays.copyOf(heads, 2 * size);
    }
    ids[size] = family;
    heads[size] = maker.make(Ids.via(via, family), names.nameOf(family));
    return heads[size++];
  }

  /** The names of families by their ids; empty for an id that stands for several. */
  interface Names {
    byte[] nameOf(int family);
  }
}
