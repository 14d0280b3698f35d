package io.github.statustool.content;

import io.github.statustool.state.Change;
import io.github.statustool.state.Ids;
import io.github.statustool.state.StateRow;
import io.github.statustool.state.StateTable.ContentRow;
import java.util.Collection;
import java.util.Map;
import java.util.Set;
import java.util.TreeMap;
import java.util.TreeSet;
import java.util.function.Function;
import java.util.function.LongSupplier;
import org.apache.hadoop.hbase.client.RegionInfo;
import org.apache.hadoop.hbase.util.Bytes;
import org.apache.hbase.thirdparty.com.google.gson.JsonObject;

/** A tenure that this JVM can still extend, and what is needed to write it. Used by the recorder thread only. */
final class OpenTenure {
  private static final int QUALIFIER_LENGTH = 1 + 2 * Long.BYTES;
  /**
   * A region that is empty and opens so long after its creation was in a snapshot: its id is that of the region that the
   * snapshot was taken of, so that no birth tells that its table was made anew. Clocks may differ by as much.
   */
  private static final long CREATED_MS = 30_000;

  final RegionInfo region;
  final byte[] qualifier;
  /** Sequence id of its own opening; the tenure's may be that of a predecessor that it took over. */
  final long openSeq;
  /** Time of its own opening. */
  private final long opened;
  /** Regions from whose split or merge this one comes, as far as its store files show. */
  final Set<String> parents = new TreeSet<>();
  final Tenure tenure = new Tenure();
  /** True if it opened with links to files of its own: of a snapshot, also if its region came of a split or merge. */
  boolean isOfSnapshot;
  /** True while it counts as unseen because the ledger does not have the parents that its references name. */
  boolean isOrphan;
  /** True once the facts about its region have been read. */
  boolean isAsked;
  /** Times to read its row, to join it with the previous tenure. */
  final TenureJoiner.Attempts attempts;
  private final Map<String, StoreFiles> files = new TreeMap<>();
  /** The files of its opening, as long as nobody has looked at them; null afterwards. */
  private Map<String, StoreFiles> opening = new TreeMap<>();
  /** Number of changes so far; compared with the number that the state table has. */
  private long changes = 1;
  /** Timestamp of the newest change. */
  private long timestamp;
  private long stampedChange;
  private long storedChanges;
  private boolean urgent = true;
  /** When the ledger learned of its end, by this server's clock. */
  private long endedAt;
  /** True if the state table may lack a marker after the opening. */
  private boolean marked;

  /**
   * @param opened the marker of the region opening
   * @param isLookedAt true if somebody will look at the open region: until then any of its files may be a bulk-loaded
   *     one. Without looks their names alone tell.
   */
  OpenTenure(Marker opened, long openSeq, Map<String, ? extends Collection<String>> stores, boolean isLookedAt) {
    region = opened.region;
    qualifier = qualifier(opened.origin, opened.writeTime);
    this.openSeq = openSeq;
    this.opened = opened.writeTime;
    tenure.open = openSeq;
    tenure.began = opened.writeTime;
    tenure.seq = Math.max(openSeq, opened.seq);
    tenure.replicated = opened.replicated;
    stores.forEach((family, names) -> {
      files(family).addDoubtful(names);
      StoreFiles held = new StoreFiles();
      held.addDoubtful(names);
      opening.put(family, held);
      names.forEach(this::noteOrigin);
    });
    tenure.after = contents();
    tenure.before = isLookedAt ? contentsInDoubt() : tenure.after;
    boolean isNew = openSeq <= TableEvents.NEWBORN && parents.isEmpty()
        && tenure.began - region.getRegionId() <= CREATED_MS;
    tenure.unseen = isNew || !parents.isEmpty() ? 0 : tenure.began;
    attempts = new TenureJoiner.Attempts(!isNew || tenure.elsewhere != 0);
  }

  private void noteOrigin(String name) {
    if (StoreFileName.isFromElsewhere(name, region)) {
      tenure.elsewhere = tenure.began;
      isOfSnapshot |= StoreFileName.isLinkTo(name, region);
    }
    if (StoreFileName.parent(name) != null) {
      parents.add(StoreFileName.parent(name));
    }
  }

  StoreFiles files(String family) {
    return files.computeIfAbsent(family, absent -> new StoreFiles());
  }

  private Map<String, StoreFiles.Content> contents() {
    return contents(files, StoreFiles::content);
  }

  /** Returns the files of the opening: a load that a crash has hidden must not look like a plain file. */
  private Map<String, StoreFiles.Content> contentsInDoubt() {
    return contents(opening, StoreFiles::contentInDoubt);
  }

  private static Map<String, StoreFiles.Content> contents(Map<String, StoreFiles> files,
      Function<StoreFiles, StoreFiles.Content> content) {
    Map<String, StoreFiles.Content> contents = new TreeMap<>();
    files.forEach((family, held) -> contents.put(family, content.apply(held)));
    return contents;
  }

  boolean hasUnseenFiles() {
    return opening != null;
  }

  /**
   * Records which files were bulk loaded. One of the opening that the region does not have any more stays in doubt.
   *
   * @param loaded by family and name, whether the file was
   */
  void sees(Map<String, Map<String, Boolean>> loaded) {
    files.forEach((family, held) -> held.resolve(loaded.getOrDefault(family, Map.of())));
    opening.forEach((family, held) -> held.resolve(loaded.getOrDefault(family, Map.of())));
    if (tenure.open == openSeq) { // else it begins with the files of its predecessor
      tenure.before = contentsInDoubt();
    }
    tenure.after = contents();
    opening = null;
    // Written at once, as what its table keeps.
    urgent = true;
    touch();
  }

  /** Records that the store files changed, or that the region was closed. */
  void changed(Marker by, boolean closed) {
    tenure.seq = by.seq;
    tenure.after = contents();
    if (closed) {
      tenure.closed = by.writeTime;
    }
    marked = true;
    touch();
  }

  /** Records that the WAL has entries up to a sequence id, for good. */
  void holds(long seq) {
    if (seq > Math.max(tenure.durable, openSeq)) { // else it is of a tenure before
      tenure.durable = seq;
      marked = true; // like a marker: its row comes after the heads of its entries
      touch();
    }
  }

  /** Records that it cannot be extended any more; its row alone is needed. */
  void end(long now) {
    endedAt = now;
    files.clear();
    opening = null;
  }

  long endedAt() {
    return endedAt;
  }

  /** Records what the region's table keeps. */
  void keeps(JsonObject retention) {
    tenure.kept = retention.toString().intern(); // one text for all regions of a table
    // Written at once: a crash before the next flush must not lose it.
    urgent = true;
    touch();
  }

  /** Records whether the ledger has the parents that its references name; a snapshot of another cluster has others. */
  void hasParents(boolean known) {
    if (known == isOrphan && tenure.open == openSeq) { // else it continues one that was judged
      isOrphan = !known;
      tenure.unseen = known ? 0 : tenure.began;
      urgent = true;
      touch();
    }
  }

  /** Returns true once it is known whether the ledger has the parents that its references name. */
  boolean isJudged() {
    return parents.isEmpty() || isOrphan;
  }

  /** Extends the tenure back to the beginning of its predecessor. */
  void takeOver(Tenure earlier) {
    // An orphan stays one, whatever its predecessor knew of it.
    long unseen = isOrphan ? tenure.unseen : 0;
    tenure.takeOver(earlier);
    tenure.unseen = tenure.unseen == 0 ? unseen : tenure.unseen;
    touch();
  }

  /** Records that the region had been split or merged before it opened. */
  void livesAgain() {
    tenure.again = opened;
    urgent = true;
    touch();
  }

  /** Marks it to be written again. */
  void touch() {
    changes++;
  }

  boolean isStored() {
    return storedChanges == changes;
  }

  /** Returns true if a crash before the next flush would lose an opening. */
  boolean isUrgent() {
    return urgent && !marked && !isStored();
  }

  /** Returns true if a crash before the next flush would lose a marker: its sequence id is replayed like an entry's. */
  boolean isMarked() {
    return marked && !isStored();
  }

  void forgetStored() {
    storedChanges = 0;
    marked = true; // the table lacks its region's heads, too
  }

  byte[] key() {
    return rowKey(region.getEncodedName());
  }

  private StateRow row() {
    return new StateRow(key())
        .add(qualifier, Bytes.toBytes(tenure.toJson()), timestamp)
        .add(ContentRow.TABLE, Bytes.toBytes(region.getTable().getNameAsString()), timestamp)
        .add(ContentRow.REGION_ID, region.getRegionId(), timestamp);
  }

  /** Returns the change to write. */
  Change change(LongSupplier timestamps) {
    long as = changes;
    // A write that is repeated because its outcome is unknown has the same timestamp: meanwhile another server may have
    // taken the tenure over and deleted the column, and it must not come back.
    if (stampedChange != as) {
      timestamp = timestamps.getAsLong();
      stampedChange = as;
    }
    return new Change(row(), () -> {
      storedChanges = as;
      // A marker that has been read since the row was made is not in it, and is still to be written after its heads.
      urgent &= as != changes;
      marked &= as != changes;
    });
  }

  static byte[] rowKey(String region) {
    return Bytes.toBytes(ContentRow.TYPE + region);
  }

  private static byte[] qualifier(long origin, long opened) {
    return Bytes.add(ContentRow.TENURE, Ids.ofLongs(origin, opened));
  }

  static boolean isQualifier(byte[] qualifier) {
    return qualifier.length == QUALIFIER_LENGTH && qualifier[0] == ContentRow.TENURE[0];
  }
}
