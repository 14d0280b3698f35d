package io.github.statustool.content;

import io.github.statustool.state.Change;
import io.github.statustool.state.HBaseStateStore;
import io.github.statustool.state.StateStore;
import io.github.statustool.state.StateTable.ContentRow;
import io.github.statustool.state.StateTable.FactRow;
import io.github.statustool.state.StoredRow;
import java.io.IOException;
import java.util.ArrayList;
import java.util.Arrays;
import java.util.Collection;
import java.util.List;
import java.util.Map;
import java.util.TreeMap;
import java.util.function.LongSupplier;
import java.util.stream.Collectors;
import org.apache.hadoop.hbase.util.Bytes;
import org.apache.hbase.thirdparty.com.google.common.collect.Lists;

/**
 * Keeps the rows of the content ledger small: the tenure of an open region takes over its predecessor, which the
 * previous server of the region has written. A tenure that has no matching predecessor stays, for the tool to judge.
 *
 * <p>The previous server may write late, so a row is read a few times with growing pauses, and never again: the cost
 * does not grow.
 */
public final class TenureJoiner {
  private static final int ROWS_A_STEP = 200;
  private static final int ATTEMPTS = 6;
  private static final long FIRST_PAUSE_MS = 1_000;

  private final ContentLedger ledger;
  private final RegionFacts facts;
  private final LongSupplier clock;
  private final long timeout;

  public TenureJoiner(ContentLedger ledger, RegionFacts facts, LongSupplier clock, long timeout) {
    this.ledger = ledger;
    this.facts = facts;
    this.clock = clock;
    this.timeout = timeout;
  }

  /** Joins a limited number of tenures, so that the recorder can poll the barrier in between. */
  public void step(StateStore store) throws IOException {
    List<OpenTenure> due = due();
    List<byte[]> keys = new ArrayList<>();
    for (OpenTenure tenure : due) {
      keys.addAll(keys(tenure));
    }
    if (keys.isEmpty()) {
      return;
    }
    List<StoredRow> rows = store.get(keys);
    int at = 0;
    for (OpenTenure tenure : due) {
      // Before the join, which may drop the parents.
      int count = keys(tenure).size();
      joinPredecessor(store, tenure, rows.subList(at, at + count));
      at += count;
    }
  }

  private List<OpenTenure> due() {
    List<OpenTenure> due = new ArrayList<>();
    long now = clock.getAsLong();
    for (OpenTenure tenure : ledger.open()) {
      // A join writes the whole tenure: a marker that is not stored yet would come before the heads of its region.
      if (due.size() < ROWS_A_STEP && tenure.isStored() && ledger.isDescribed(tenure)
          && tenure.attempts.isDue(now)) {
        tenure.attempts.next(now);
        due.add(tenure);
      }
    }
    return due;
  }

  /** Returns the row keys of the tenure itself, of the facts about its region, and of its parents. */
  private static List<byte[]> keys(OpenTenure tenure) {
    List<byte[]> keys = new ArrayList<>(List.of(tenure.key(), factKey(tenure)));
    tenure.parents.forEach(parent -> keys.add(OpenTenure.rowKey(parent)));
    return keys;
  }

  private void joinPredecessor(StateStore store, OpenTenure tenure, List<StoredRow> rows) throws IOException {
    // Once more: who saw the region split or merged may have recorded that later than this one's opening was asked for.
    if (rows.get(1).value(FactRow.LINEAGE) != null) {
      noteReturn(tenure, rows.get(0), rows.get(1).timestamp(FactRow.LINEAGE));
    }
    noteParents(tenure, rows.subList(2, rows.size()));
    if (!tenure.isJudged()) {
      return; // its predecessor may have been closed before anybody looked for the parents of its references
    }
    boolean isUnexplained = tenure.tenure.elsewhere != 0 || tenure.tenure.unseen != 0;
    boolean isInherited = !tenure.isOfSnapshot && !tenure.isOrphan;
    if (isUnexplained && isInherited && rows.get(1).value(FactRow.CHILD_MS) != null) {
      tenure.tenure.elsewhere = 0; // it inherited these links from its parent
      tenure.tenure.unseen = 0;
      tenure.touch();
    }
    Map<byte[], Tenure> others = others(tenure, rows.get(0));
    byte[] next = others.entrySet().stream().filter(other -> tenure.tenure.hasTheBeginningOf(other.getValue()))
        .map(Map.Entry::getKey).findFirst().orElse(null);
    if (next == null) {
      next = others.entrySet().stream().filter(other -> isNext(other.getValue(), tenure.tenure, others.values()))
          .map(Map.Entry::getKey).findFirst().orElse(null);
    }
    // A look at the ledger in between may have read a marker, which belongs after the heads of the region.
    if (next != null && !tenure.isMarked()) {
      join(store, tenure, rows.get(0), next, others.get(next));
    }
  }

  /**
   * Notes regions that opened since the last call although they have been split or merged: a snapshot of before was
   * restored, and what their children held is gone. Called before each flush, so that an echo vouches for it.
   */
  public void noteReturns(StateStore store) throws IOException {
    List<OpenTenure> unasked = ledger.open().stream().filter(tenure -> !tenure.isAsked).collect(Collectors.toList());
    for (List<OpenTenure> some : Lists.partition(unasked, ROWS_A_STEP)) {
      List<StoredRow> facts = store.get(some.stream().map(TenureJoiner::factKey).collect(Collectors.toList()));
      for (int i = 0; i < some.size(); i++) {
        if (facts.get(i).value(FactRow.LINEAGE) != null) {
          noteReturn(some.get(i), store.get(some.get(i).key()), facts.get(i).timestamp(FactRow.LINEAGE));
        }
        some.get(i).isAsked = true;
      }
    }
  }

  /** Notes that a region lives again, unless that is known. The files may not tell: they may be those of its close. */
  private void noteReturn(OpenTenure tenure, StoredRow row, long ended) {
    // An earlier tenure of the same life may have noted it, and the split may be one that has closed the region since.
    if (tenure.tenure.again <= ended && others(tenure, row).values().stream().noneMatch(other -> other.again > ended)
        && ledger.open().contains(tenure)) {
      tenure.livesAgain();
    }
  }

  private static byte[] factKey(OpenTenure tenure) {
    return Bytes.toBytes(FactRow.TYPE + tenure.region.getEncodedName());
  }

  /** Returns true if there is no other tenure in between. */
  private static boolean isNext(Tenure earlier, Tenure later, Collection<Tenure> others) {
    // A server that crashed right after the opening leaves one, even though the next tenure opens with the same
    // sequence id.
    return earlier.isFollowedBy(later)
        && others.stream().noneMatch(other -> other.open > earlier.open && other.open <= later.open);
  }

  private static Map<byte[], Tenure> others(OpenTenure tenure, StoredRow row) {
    Map<byte[], Tenure> others = new TreeMap<>(Bytes.BYTES_COMPARATOR);
    for (Map.Entry<byte[], byte[]> column : row.values.entrySet()) {
      Tenure other = OpenTenure.isQualifier(column.getKey()) ? Tenure.parse(column.getValue()) : null;
      if (other != null && !Arrays.equals(column.getKey(), tenure.qualifier)) {
        others.put(column.getKey(), other);
      }
    }
    return others;
  }

  /** Takes over one predecessor. */
  private void join(StateStore store, OpenTenure tenure, StoredRow read, byte[] qualifier, Tenure earlier)
      throws IOException {
    // Before it is written: if writing fails, two tenures have the same beginning, and the tool ignores the earlier
    // one. Therefore a column with the same beginning is deleted before the next predecessor is taken over.
    if (!tenure.tenure.hasTheBeginningOf(earlier)) {
      tenure.takeOver(earlier);
    }
    Change change = tenure.change(ledger::timestamp);
    HBaseStateStore.await(store.replaceAsync(change.row, read, List.of(qualifier)), timeout);
    change.stored();
    tenure.attempts.again();
  }

  /** Records the parents as split or merged if this region has references to them. */
  private void noteParents(OpenTenure tenure, List<StoredRow> rows) {
    String lineage = rows.size() > 1 ? "merge" : "split";
    int at = 0;
    for (String parent : tenure.parents) {
      byte[] id = rows.get(at++).value(ContentRow.REGION_ID);
      if (id != null && id.length == Long.BYTES) {
        // The server of hbase:meta may have crashed before it could record that.
        facts.parent(parent, tenure.region.getTable().getNameAsString(), lineage, Bytes.toLong(id, 0),
            tenure.tenure.began);
      }
    }
    boolean known = rows.stream().noneMatch(StoredRow::isEmpty);
    if (!rows.isEmpty() && (known || tenure.attempts.made > 1)) {
      tenure.hasParents(known);
    }
    if (known) {
      tenure.parents.clear();
    }
  }

  /** Times to read a tenure's row again. */
  static final class Attempts {
    private int left;
    private int made;
    private long at;
    private long pause = FIRST_PAUSE_MS;

    /** @param any whether a predecessor can exist */
    Attempts(boolean any) {
      left = any ? ATTEMPTS : 0;
    }

    private boolean isDue(long now) {
      return left > 0 && now >= at;
    }

    private void next(long now) {
      left--;
      made++;
      at = now + pause;
      pause *= 4;
    }

    /** Tries at once again: the predecessor may have a predecessor. */
    private void again() {
      left++;
      at = 0;
    }
  }
}
