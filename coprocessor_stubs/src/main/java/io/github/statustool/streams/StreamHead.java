package io.github.statustool.streams;

import io.github.statustool.state.Change;
import io.github.statustool.state.StateRow;
import io.github.statustool.state.StateTable.HeadRow;
import java.lang.invoke.MethodHandles;
import java.lang.invoke.VarHandle;
import org.apache.hadoop.hbase.client.RegionInfo;
import org.apache.hadoop.hbase.util.Bytes;

/**
 * The newest entry of a stream. Written by the one WAL thread that owns the region, read by the recorder thread.
 *
 * <p>Published with a sequence lock. Why not a plain lock: the WAL thread must never wait or allocate. It makes the
 * version odd before it writes and even afterwards; the recorder reads again if it has seen an odd version, or another
 * one after reading than before, so the four numbers that it gets belong together. The fences keep the accesses in that
 * order.
 *
 * <p>About 200 bytes per stream, never evicted: a region that returns to this server must continue its chain from the
 * old head.
 */
final class StreamHead {
  private static final VarHandle VERSION = versionHandle();

  final StreamId id;
  final String table;
  final byte[] startKey;
  final byte[] endKey;
  final byte[] viaIds;
  /** The name of its family; empty where several families share the stream. */
  final byte[] family;

  @SuppressWarnings("unused") // accessed through VERSION
  private int version;
  private long seq;
  private long writeTime;
  private long firstTime;
  private long count;

  /** Sequence id that the state table is known to hold. Used by the recorder thread only. */
  private long flushedSeq;

  StreamHead(StreamId id, RegionInfo region, byte[] viaIds, byte[] family) {
    this.id = id;
    this.table = region.getTable().getNameAsString();
    this.startKey = region.getStartKey();
    this.endKey = region.getEndKey();
    this.viaIds = viaIds;
    this.family = family;
  }

  private static VarHandle versionHandle() {
    try {
      return MethodHandles.lookup().findVarHandle(StreamHead.class, "version", int.class);
    } catch (ReflectiveOperationException e) {
      throw new ExceptionInInitializerError(e);
    }
  }

  /** Returns the newest sequence id; for the owning WAL thread only. */
  long seq() {
    return seq;
  }

  /** Returns the highest write time so far, 0 before the first entry; for the owning WAL thread only. */
  long writeTime() {
    return writeTime;
  }

  /** Advances the head to a later entry. Ignores an entry that HBase appends again after a failed sync. */
  void advance(long newSeq, long newWriteTime) {
    if (newSeq <= seq) {
      return;
    }
    // An odd version tells readers that the fields are changing. The fence keeps the fields' writes behind it.
    int before = version;
    VERSION.setOpaque(this, before + 1);
    VarHandle.storeStoreFence();
    if (count == 0) {
      firstTime = newWriteTime;
    }
    seq = newSeq;
    writeTime = Math.max(writeTime, newWriteTime);
    count++;
    VERSION.setRelease(this, before + 2);
  }

  Snapshot snapshot() {
    while (true) {
      int before = (int) VERSION.getAcquire(this);
      Snapshot seen = new Snapshot(seq, writeTime, firstTime, count);
      // The same even version before and after: the WAL thread changed nothing in between.
      VarHandle.loadLoadFence();
      if ((before & 1) == 0 && before == (int) VERSION.getOpaque(this)) {
        return seen;
      }
      Thread.onSpinWait();
    }
  }

  /** Returns the row as of now; null if the state table has it already. */
  Change change() {
    Snapshot seen = snapshot();
    // If an entry is stamped and never appended, its new head stays at 0, as flushedSeq does, and is not written.
    return seen.seq == flushedSeq ? null : new Change(row(seen), () -> flushedSeq = Math.max(flushedSeq, seen.seq));
  }

  private StateRow row(Snapshot seen) {
    StateRow row = new StateRow(id.rowKey(HeadRow.TYPE))
        .add(HeadRow.SEQ, seen.seq, seen.seq)
        .add(HeadRow.WRITE_MS, seen.writeTime, seen.seq)
        .add(HeadRow.FIRST_MS, seen.firstTime, seen.seq)
        .add(HeadRow.ENTRIES, seen.count, seen.seq)
        .add(HeadRow.TABLE, Bytes.toBytes(table), seen.seq)
        .add(HeadRow.START_KEY, startKey, seen.seq)
        .add(HeadRow.END_KEY, endKey, seen.seq)
        .add(HeadRow.FAMILY, family, seen.seq);
    if (viaIds.length > 0) {
      row.add(HeadRow.VIA_IDS, viaIds, seen.seq);
    }
    return row;
  }

  void forgetFlush() {
    flushedSeq = 0;
  }

  /** A consistent view of the head. */
  static final class Snapshot {
    final long seq;
    final long writeTime;
    final long firstTime;
    final long count;

    private Snapshot(long seq, long writeTime, long firstTime, long count) {
      this.seq = seq;
      this.writeTime = writeTime;
      this.firstTime = firstTime;
      this.count = count;
    }
  }
}
