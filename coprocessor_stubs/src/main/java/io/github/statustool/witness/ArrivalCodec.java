package io.github.statustool.witness;

import java.io.ByteArrayInputStream;
import java.io.ByteArrayOutputStream;
import java.io.IOException;
import java.util.ArrayList;
import java.util.HashMap;
import java.util.List;
import java.util.Map;
import java.util.UUID;
import java.util.zip.DeflaterOutputStream;
import java.util.zip.InflaterInputStream;
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
    for (Map.Entry<ArrivalKey, List<Run>> each : arrivals.byKey().entrySet()) {
      writeKey(out, each.getKey());
      out.writeUInt32NoTag(each.getValue().size());
      long sequenceId = 0;
      long writeTime = 0;
      for (Run entry : each.getValue()) {
        out.writeSInt64NoTag(entry.first - sequenceId);
        out.writeSInt64NoTag(entry.low - writeTime);
        sequenceId = entry.first;
        writeTime = entry.low;
      }
    }
    out.flush();
    return bytes.toByteArray();
  }

  /** Encodes runs of any length: differences to the end of the run before, deflated. */
  byte[] encodeRuns(Arrivals arrivals) throws IOException {
    ByteArrayOutputStream bytes = new ByteArrayOutputStream();
    try (DeflaterOutputStream deflated = new DeflaterOutputStream(bytes)) {
      CodedOutputStream out = CodedOutputStream.newInstance(deflated);
      for (Map.Entry<ArrivalKey, List<Run>> each : arrivals.byKey().entrySet()) {
        writeKey(out, each.getKey());
        out.writeUInt32NoTag(each.getValue().size());
        long sequenceId = 0;
        long writeTime = 0;
        for (Run run : each.getValue()) {
          out.writeSInt64NoTag(run.first - sequenceId);
          out.writeUInt64NoTag(run.last - run.first);
          out.writeSInt64NoTag(run.low - writeTime);
          out.writeUInt64NoTag(run.high - run.low);
          sequenceId = run.last;
          writeTime = run.high;
        }
      }
      out.flush();
    }
    return bytes.toByteArray();
  }

  /** Adds a record of runs. */
  void decodeRuns(byte[] record, Arrivals into) throws IOException {
    CodedInputStream in = CodedInputStream.newInstance(new InflaterInputStream(new ByteArrayInputStream(record)));
    in.setSizeLimit(Integer.MAX_VALUE);
    while (!in.isAtEnd()) {
      ArrivalKey key = readKey(in);
      long sequenceId = 0;
      long writeTime = 0;
      for (int left = in.readUInt32(); left > 0; left--) {
        long first = sequenceId + in.readSInt64();
        sequenceId = first + in.readUInt64();
        long low = writeTime + in.readSInt64();
        writeTime = low + in.readUInt64();
        into.add(key, new Run(first, sequenceId, low, writeTime));
      }
    }
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
