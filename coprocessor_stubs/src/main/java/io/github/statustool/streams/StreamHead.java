package io.github.statustool.streams;

import java.lang.invoke.MethodHandles;
import java.lang.invoke.VarHandle;
import org.apache.hadoop.hbase.client.RegionInfo;

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
public final class StreamHead {
  private static final VarHandle VERSION = versionHandle();

  public final StreamId id;
  public final String table;
  public final byte[] startKey;
  public final byte[] endKey;
  public final byte[] viaIds;
  /** The name of its family; empty where several families share the stream. */
  public final byte[] family;

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

  /** Newest sequence id; for the owning WAL thread only. */
  long seq() {
    return seq;
  }

  /** Highest write time so far, 0 before the first entry; for the owning WAL thread only. */
  long writeTime() {
    return writeTime;
  }

  /** Advances the head to a later entry. Ignores an entry that HBase appends again after a failed sync. */
  public void advance(long newSeq, long newWriteTime) {
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

  public Snapshot snapshot() {
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

  public long flushedSeq() {
    return flushedSeq;
  }

  public void flushed(long uptoSeq) {
    flushedSeq = Math.max(flushedSeq, uptoSeq);
  }

  public void forgetFlush() {
    flushedSeq = 0;
  }

  /** A consistent view of the head. */
  public static final class Snapshot {
    public final long seq;
    public final long writeTime;
    public final long firstTime;
    public final long count;

    private Snapshot(long seq, long writeTime, long firstTime, long count) {
      this.seq = seq;
      this.writeTime = writeTime;
      this.firstTime = firstTime;
      this.count = count;
    }
  }
}
