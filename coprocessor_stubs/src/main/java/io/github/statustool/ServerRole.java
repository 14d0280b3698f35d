package io.github.statustool;

import io.github.statustool.StateTable.ServerRow;

/** One role ({@code w} or {@code r}) of one server: its row, and whether it has come to its end. */
final class ServerRole {
  static final char WRITER = 'w';
  static final char REPLICATOR = 'r';

  /** How a server has ended, as far as its row is concerned. */
  enum End {
    /** It goes on, or nothing is known. */
    NONE,
    /** All that it appended is in the table. */
    CLEAN,
    /** Nothing will come any more, and the last entries of its WAL are in doubt: no more than a crash leaves behind. */
    TORN
  }

  final char role;
  final String serverName;
  final long origin;
  private final long started;
  /** Of the row's cells: a clock that is set back must not leave older ones in place, of which some would stay. */
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
    return Bits.ascii(ServerRow.TYPE + Bits.hex(origin) + role);
  }

  /** Whether the state table has had this row. If it is gone later, so is everything else that was flushed. */
  boolean isWritten() {
    return written;
  }

  /** Whether the row is the last one of this server. */
  boolean isEnded() {
    return ended;
  }

  /** @param flushed when the flush that this row concludes began; null if none has succeeded yet */
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
