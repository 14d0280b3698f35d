package io.github.statustool;

import io.github.statustool.StateTable.BarrierRow;
import io.github.statustool.StateTable.TableRow;
import java.io.IOException;
import java.util.ArrayList;
import java.util.Arrays;
import java.util.List;
import java.util.Map;
import java.util.function.LongSupplier;

/**
 * The tool's way to ask for a flush without trusting clocks: it puts a token, and whoever echoes the token has flushed
 * everything from before. One tracker also writes down the cluster's tables for it.
 */
final class Barrier {
  private final LongSupplier clock;
  private byte[] claimed;
  private byte[] doorbell;

  Barrier(LongSupplier clock) {
    this.clock = clock;
  }

  /** Returns the echo that a flush beginning now may write, or null if there is no token but the one echoed last. */
  Echo read(StateStore store, Echo last) throws IOException {
    StoredRow row = store.get(List.of(BarrierRow.KEY)).get(0);
    doorbell = row.value(BarrierRow.DOORBELL);
    byte[] token = row.value(BarrierRow.TOKEN);
    if (token == null || (last != null && Arrays.equals(token, last.token))) {
      return null;
    }
    Echo seen = new Echo(token, clock.getAsLong());
    if (claim(store, row, token)) {
      store.put(tableRows(store.tables(), token));
    }
    return seen;
  }

  /** Whose requests for row digests were news when the row was read last; null if nobody has asked. */
  byte[] doorbell() {
    return doorbell;
  }

  /**
   * A claim that was won before its table rows could be written is still ours at the next try; so is one that failed,
   * for it may have been won all the same, and then nobody else would write the rows.
   */
  private boolean claim(StateStore store, StoredRow row, byte[] token) throws IOException {
    if (Arrays.equals(token, claimed)) {
      return true;
    }
    byte[] claimant = row.value(BarrierRow.CLAIM);
    if (Arrays.equals(token, claimant)) {
      return false;
    }
    StateRow claim = new StateRow(BarrierRow.KEY).add(BarrierRow.CLAIM, token, StateRow.SERVER_TIME);
    claimed = token;
    if (!store.putIf(claim, BarrierRow.CLAIM, claimant)) {
      claimed = null;
    }
    return claimed != null;
  }

  private static List<StateRow> tableRows(Map<String, String> tables, byte[] token) {
    List<StateRow> rows = new ArrayList<>(tables.size());
    for (Map.Entry<String, String> table : tables.entrySet()) {
      rows.add(new StateRow(Bits.utf8(TableRow.TYPE + table.getKey()))
          .add(TableRow.DESCRIPTOR, Bits.utf8(table.getValue()), StateRow.SERVER_TIME)
          .add(TableRow.ECHO, token, StateRow.SERVER_TIME));
    }
    return rows;
  }

  /** A token and this server's clock when it was read. */
  static final class Echo {
    final byte[] token;
    final long readAt;

    Echo(byte[] token, long readAt) {
      this.token = token;
      this.readAt = readAt;
    }
  }
}
