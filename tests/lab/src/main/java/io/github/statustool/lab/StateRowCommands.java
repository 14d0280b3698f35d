package io.github.statustool.lab;

import java.io.IOException;
import java.nio.ByteBuffer;
import java.util.Map;
import org.apache.hadoop.hbase.client.BufferedMutator;
import org.apache.hadoop.hbase.client.Connection;
import org.apache.hadoop.hbase.client.Delete;
import org.apache.hadoop.hbase.client.Put;
import org.apache.hadoop.hbase.util.Bytes;

/** What the trackers write into the row of one stream, batch after batch, for measuring what it costs to read. */
final class StateRowCommands {

  private static final byte[] FAMILY = Bytes.toBytes("t");
  private static final byte[] OWN_COLUMN = Bytes.toBytes("c0000001");
  private static final long FIRST_TIMESTAMP = 1_000_000;

  private final Connection connection;

  StateRowCommands(Connection connection) {
    this.connection = connection;
  }

  void register(Map<String, Command> commands) {
    commands.put("state_row_overwritten", args -> each(args, StateRowCommands::overwrite));
    commands.put("state_row_merged", args -> each(args, StateRowCommands::merge));
  }

  /** One batch's mutations. */
  @FunctionalInterface
  private interface Batch {
    void write(BufferedMutator out, byte[] row, long number) throws IOException;
  }

  private Object each(Args args, Batch batch) throws IOException {
    byte[] row = args.bytes("row");
    try (BufferedMutator out = connection.getBufferedMutator(args.table())) {
      for (long number = args.number("start"); number < args.number("end"); number++) {
        batch.write(out, row, number);
      }
    }
    return null;
  }

  /** The form of today: the writer's one column, under the next timestamp. */
  private static void overwrite(BufferedMutator out, byte[] row, long number) throws IOException {
    out.mutate(new Put(row).addColumn(FAMILY, OWN_COLUMN, FIRST_TIMESTAMP + number, new byte[49]));
  }

  /** The form before: the batch's segment, merged with its predecessor, both of which are deleted. */
  private static void merge(BufferedMutator out, byte[] row, long number) throws IOException {
    out.mutate(new Put(row).addColumn(FAMILY, segment(number, number + 1), FIRST_TIMESTAMP + number, new byte[16]));
    if (number == 0) {
      return;
    }
    long merged = FIRST_TIMESTAMP + number;
    out.mutate(new Put(row).addColumn(FAMILY, segment(0, number + 1), merged, new byte[16]));
    Delete parts = new Delete(row).addColumns(FAMILY, segment(number, number + 1), merged);
    out.mutate(number > 1 ? parts.addColumns(FAMILY, segment(0, number), merged) : parts);
  }

  private static byte[] segment(long prev, long seq) {
    return ByteBuffer.allocate(17).put((byte) 'p').putLong(prev).putLong(seq).array();
  }
}
