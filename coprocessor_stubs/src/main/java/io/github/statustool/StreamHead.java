package io.github.statustool;

import java.lang.invoke.MethodHandles;
import java.lang.invoke.VarHandle;
import org.apache.hadoop.hbase.client.RegionInfo;

/**
 * The newest entry of one stream. Written by the one WAL thread that owns the region, read by the recorder.
 *
 * <p>Published by a sequence lock: the WAL thread never waits and never allocates, and the recorder sees four numbers
 * that belong together. About 300 bytes a stream; never evicted, because a region that comes back to this server must
 * continue its chain from the old head.
 */
final class StreamHead {
  private static final VarHandle VERSION = versionHandle();

  final StreamId id;
  final String table;
  final byte[] startKey;
  final byte[] endKey;
  final byte[] viaIds;

  @SuppressWarnings("unused") // by VERSION
  private int version;
  private long seq;
  private long writeTime;
  private long firstTime;
  private long count;

  /** The sequence id that the state table is known to hold. The recorder's alone. */
  private long flushedSeq;

  StreamHead(StreamId id, RegionInfo region, byte[] viaIds) {
    this.id = id;
    this.table = region.getTable().getNameAsString();
    this.startKey = region.getStartKey();
    this.endKey = region.getEndKey();
    this.viaIds = viaIds;
  }

  private static VarHandle versionHandle() {
    try {
      return MethodHandles.lookup().findVarHandle(StreamHead.class, "version", int.class);
    } catch (ReflectiveOperationException e) {
      throw new ExceptionInInitializerError(e);
    }
  }

  /** The newest sequence id; for the owning WAL thread only. */
  long seq() {
    return seq;
  }

  /** The highest write time so far, 0 before the first entry; for the owning WAL thread only. */
  long writeTime() {
    return writeTime;
  }

  /** Moves the head to a later entry. An entry appended again after a failed sync is not later and changes nothing. */
  void advance(long newSeq, long newWriteTime) {
    if (newSeq <= seq) {
      return;
    }
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
      VarHandle.loadLoadFence();
      if ((before & 1) == 0 && before == (int) VERSION.getOpaque(this)) {
        return seen;
      }
      Thread.onSpinWait();
    }
  }

  long flushedSeq() {
    return flushedSeq;
  }

  void flushed(long uptoSeq) {
    flushedSeq = Math.max(flushedSeq, uptoSeq);
  }

  void forgetFlush() {
    flushedSeq = 0;
  }

  /** Four numbers of one moment. */
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
