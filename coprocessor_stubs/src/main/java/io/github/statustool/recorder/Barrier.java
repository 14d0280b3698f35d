package io.github.statustool.recorder;

import io.github.statustool.state.StateRow;
import io.github.statustool.state.StateStore;
import io.github.statustool.state.StateTable.BarrierRow;
import io.github.statustool.state.StateTable.TableRow;
import io.github.statustool.state.StoredRow;
import java.io.IOException;
import java.security.SecureRandom;
import java.util.ArrayList;
import java.util.Arrays;
import java.util.List;
import java.util.Map;
import java.util.function.LongSupplier;
import org.apache.hadoop.hbase.util.Bytes;

/**
 * Lets the tool request a flush without relying on synchronized clocks. The tool puts a new token; a tracker reads the
 * token, flushes, and only then echoes it. Why that order on both sides: everything acknowledged before the token was
 * put is appended or in a ring buffer when the tracker reads the token, so the flush that begins afterwards covers it,
 * and an echo proves that it is in the state table. The tracker also takes its clock's time after it has read the
 * token, so that the flush covers everything up to that time.
 *
 * <p>With the token the tool tells which openings of the table's regions {@code hbase:meta} knows. A region that was
 * opened since the last token may have lost edits, with its server's WAL, that a tracker takes for written.
 *
 * <p>One tracker, the one that claims the token, also writes the descriptors of the cluster's tables.
 */
final class Barrier {
  private final LongSupplier clock;
  /** Tells this tracker's claim of a token from that of another one. */
  private final byte[] id;
  private byte[] claimed;
  private long claimedAt;
  /** The last token for which the tables were described. */
  private byte[] described;
  private byte[] doorbell;
  private byte[] openings;
  private boolean hasRead;
  private boolean reopened;

  Barrier(LongSupplier clock) {
    this(clock, new SecureRandom().nextLong());
  }

  Barrier(LongSupplier clock, long id) {
    this.clock = clock;
    this.id = Bytes.toBytes(id);
  }

  /** Returns the echo to be written by a flush that starts now, or null if the token has been echoed already. */
  Echo read(StateStore store, Echo last) throws IOException {
    StoredRow row = store.get(BarrierRow.KEY);
    doorbell = row.value(BarrierRow.DOORBELL);
    byte[] now = row.value(BarrierRow.OPENINGS);
    reopened |= hasRead && !Arrays.equals(openings, now); // also by the first token of all: nobody knows before
    openings = now;
    hasRead = true;
    byte[] token = row.value(BarrierRow.TOKEN);
    if (!Arrays.equals(token, claimed)) {
      claimed = null; // rows that come late for it would replace those for the token of now
    }
    if (token == null || (last != null && Arrays.equals(token, last.token))) {
      return null;
    }
    Echo seen = new Echo(token, clock.getAsLong());
    claim(store, row, token);
    return seen;
  }

  /**
   * Writes the descriptors of the tables for a token that this tracker has claimed, unless it has. May fail while no
   * HBase master is active; heads are written and echoed all the same, and the descriptors follow later.
   */
  void describeTables(StateStore store) throws IOException {
    if (claimed != null && !Arrays.equals(claimed, described)) {
      byte[] token = claimed;
      store.put(tableRows(store.tables(), token, claimedAt));
      described = token;
    }
  }

  /**
   * Returns true if a region of the table was opened between two tokens, and nobody has been told yet: a {@link #read}
   * may fail after it has seen that.
   */
  boolean takeReopened() {
    boolean taken = reopened;
    reopened = false;
    return taken;
  }

  /** Returns the doorbell of row digests as of the last {@link #read}; null if it has never rung. */
  byte[] doorbell() {
    return doorbell;
  }

  /**
   * Claims the token by check-and-put, so that one tracker only writes the table rows. Until there is another token, a
   * claim stays ours if writing the rows fails afterwards: the next attempt writes them.
   */
  private void claim(StateStore store, StoredRow row, byte[] token) throws IOException {
    byte[] claimant = row.value(BarrierRow.CLAIM);
    if (Arrays.equals(token, claimed) || Bytes.startsWith(claimant, token)) {
      return;
    }
    byte[] mine = Bytes.add(token, id);
    StateRow claim = new StateRow(BarrierRow.KEY).add(BarrierRow.CLAIM, mine, StateRow.SERVER_TIME);
    // Before the call: a claim whose outcome is unknown may have succeeded, and no other tracker writes the rows then.
    claimed = token;
    claimedAt = row.timestamp(BarrierRow.TOKEN);
    // HBase's client repeats a claim whose answer was lost; the repetition fails, although the claim is ours.
    if (!store.putIf(claim, BarrierRow.CLAIM, claimant)
        && !Arrays.equals(mine, store.get(BarrierRow.KEY).value(BarrierRow.CLAIM))) {
      claimed = null;
    }
  }

  /** @param issued the timestamp of the token's cell, which only rises: a server's clock may have been ahead before */
  private static List<StateRow> tableRows(Map<String, String> tables, byte[] token, long issued) {
    List<StateRow> rows = new ArrayList<>(tables.size());
    for (Map.Entry<String, String> table : tables.entrySet()) {
      rows.add(new StateRow(Bytes.toBytes(TableRow.TYPE + table.getKey()))
          .add(TableRow.DESCRIPTOR, Bytes.toBytes(table.getValue()), issued)
          .add(TableRow.ECHO, token, issued));
    }
    return rows;
  }

  /** A barrier token, and the server's clock after it was read. */
  static final class Echo {
    final byte[] token;
    final long readAt;

    Echo(byte[] token, long readAt) {
      this.token = token;
      this.readAt = readAt;
    }
  }
}
