package io.github.statustool;

import io.github.statustool.StateTable.ServerRow;

/**
 * One role of a region server, {@code w} (writer) or {@code r} (replicator), with its row in the state table and
 * whether that row is final.
 */
final class ServerRole {
  static final char WRITER = 'w';
  static final char REPLICATOR = 'r';

  /** How a server ended, as its row shows it. */
  enum End {
    /** It is running, or its state is not known. */
    NONE,
    /** It ended, and everything that it appended is in the table. */
    CLEAN,
    /** It ended, but the last entries of its WAL may be lost, as after a crash. */
    TORN
  }

  final char role;
  final String serverName;
  final long origin;
  private final long started;
  /**
   * Timestamp of the cells in the last row. Strictly increasing even if the clock is set back, so that no older cell
   * hides a newer one.
   */
  private long lastTimestamp;
  private boolean written;
  private boolean ended;

  ServerRole(char role, String serverName, long started) {
    this.role = role;
    this.serverName = serverName;
    this.origin = Ids.origin(serverName);
    this.started = started;
  }

  byte[] key() {
    return key(origin, role);
  }

  static byte[] key(long origin, char role) {
    return Bits.ascii(ServerRow.TYPE + Bits.hex(origin) + role);
  }

  /**
   * Whether this row has been written. If it is missing later, the table has lost everything else that was flushed,
   * too.
   */
  boolean isWritten() {
    return written;
  }

  /** Whether the row that was written is the final one. */
  boolean isEnded() {
    return ended;
  }

  /** @param flushed when the flush that this row concludes began; null before the first successful flush */
  Change row(Long flushed, Barrier.Echo echo, End end, String health, long time) {
    lastTimestamp = Math.max(time, lastTimestamp + 1);
    long now = lastTimestamp;
    StateRow row = new StateRow(key())
        .add(ServerRow.NAME, Bits.utf8(serverName), now)
        .add(ServerRow.STARTED_MS, started, now)
        .add(ServerRow.VERSION, Bits.utf8(TrackerVersion.get()), now)
        .add(ServerRow.HEALTH, Bits.utf8(health), now);
    if (flushed != null) {
      row.add(ServerRow.FLUSHED_MS, flushed, now);
    }
    if (echo != null) {
      row.add(ServerRow.ECHO, echo.token, now).add(ServerRow.READ_MS, echo.readAt, now);
    }
    if (end == End.CLEAN) {
      row.add(ServerRow.FINAL_MS, flushed, now);
    }
    return new Change(row, () -> {
      written = true;
      ended = end != End.NONE;
    });
  }

  @Override
  public String toString() {
    return serverName + "/" + role;
  }
}
