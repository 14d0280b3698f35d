package io.github.statustool.witness;

import java.io.ByteArrayOutputStream;
import java.io.IOException;
import java.util.ArrayList;
import java.util.HashMap;
import java.util.List;
import java.util.Map;
import java.util.UUID;
import org.apache.hbase.thirdparty.com.google.protobuf.CodedInputStream;
import org.apache.hbase.thirdparty.com.google.protobuf.CodedOutputStream;

/**
 * The records of one file. A record names each key in full the first time, by its number in the file from then on.
 * Sequence ids and write times are differences to the entry before, as zigzag varints: two bytes for most entries.
 */
final class ArrivalCodec {
  private final Map<ArrivalKey, Integer> numbers = new HashMap<>();
  private final List<ArrivalKey> keys = new ArrayList<>();

  byte[] encode(Arrivals arrivals) throws IOException {
    ByteArrayOutputStream bytes = new ByteArrayOutputStream();
    CodedOutputStream out = CodedOutputStream.newInstance(bytes);
    for (Map.Entry<ArrivalKey, List<Arrival>> each : arrivals.byKey().entrySet()) {
      writeKey(out, each.getKey());
      out.writeUInt32NoTag(each.getValue().size());
      long sequenceId = 0;
      long writeTime = 0;
      for (Arrival arrival : each.getValue()) {
        out.writeSInt64NoTag(arrival.sequenceId - sequenceId);
        out.writeSInt64NoTag(arrival.writeTime - writeTime);
        sequenceId = arrival.sequenceId;
        writeTime = arrival.writeTime;
      }
    }
    out.flush();
    return bytes.toByteArray();
  }

  /** Adds a record of the file, of which all earlier ones have been decoded. */
  void decode(byte[] record, Arrivals into) throws IOException {
    CodedInputStream in = CodedInputStream.newInstance(record);
    while (!in.isAtEnd()) {
      ArrivalKey key = readKey(in);
      long sequenceId = 0;
      long writeTime = 0;
      for (int left = in.readUInt32(); left > 0; left--) {
        sequenceId += in.readSInt64();
        writeTime += in.readSInt64();
        into.add(key, sequenceId, writeTime);
      }
    }
  }

  private void writeKey(CodedOutputStream out, ArrivalKey key) throws IOException {
    Integer number = numbers.putIfAbsent(key, numbers.size());
    if (number != null) {
      out.writeUInt32NoTag(number + 1);
      return;
    }
    out.writeUInt32NoTag(0);
    out.writeStringNoTag(key.table);
    out.writeStringNoTag(key.region);
    out.writeUInt32NoTag(key.clusters.size());
    for (UUID cluster : key.clusters) {
      out.writeFixed64NoTag(cluster.getMostSignificantBits());
      out.writeFixed64NoTag(cluster.getLeastSignificantBits());
    }
    out.writeUInt32NoTag(key.families.size());
    for (String family : key.families) {
      out.writeStringNoTag(family);
    }
  }

  private ArrivalKey readKey(CodedInputStream in) throws IOException {
    int number = in.readUInt32();
    if (number > keys.size()) {
      throw new IOException("it names key " + number + " of " + keys.size());
    }
    if (number > 0) {
      return keys.get(number - 1);
    }
    String table = in.readString();
    String region = in.readString();
    List<UUID> clusters = new ArrayList<>();
    for (int left = in.readUInt32(); left > 0; left--) {
      clusters.add(new UUID(in.readFixed64(), in.readFixed64()));
    }
    List<String> families = new ArrayList<>();
    for (int left = in.readUInt32(); left > 0; left--) {
      families.add(in.readString());
    }
    ArrivalKey key = new ArrivalKey(table, region, clusters, families);
    keys.add(key);
    return key;
  }
}
