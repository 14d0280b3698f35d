package io.github.statustool;

import java.util.ArrayList;
import java.util.HashMap;
import java.util.List;
import java.util.Map;
import org.apache.hadoop.hbase.TableName;
import org.apache.hadoop.hbase.shaded.protobuf.generated.AdminProtos.WALEntry;
import org.apache.hadoop.hbase.shaded.protobuf.generated.WALProtos.Attribute;
import org.apache.hadoop.hbase.shaded.protobuf.generated.WALProtos.WALKey;
import org.apache.hbase.thirdparty.com.google.protobuf.ByteString;

/**
 * What one replication request has applied, collected on its handler thread. The request's buffers are given back when
 * it ends, so everything that is kept is copied; {@link #clear} drops the rest.
 */
final class SinkBatch {
  private final Map<StreamId, AppliedStream.Builder> streams = new HashMap<>();
  private final Map<String, Unstamped> unstamped = new HashMap<>();
  private final StampCodec codec = new StampCodec();
  private final byte[] stamp = new byte[StampCodec.LENGTH];
  private WALEntry lastEntry;
  private ByteString lastRegion;
  private long lastOrigin;
  private long lastVia;
  private AppliedStream.Builder lastStream;

  /** Called for each mutation; an entry of several mutations counts once. */
  void add(WALEntry entry) {
    if (entry == lastEntry) {
      return;
    }
    lastEntry = entry;
    WALKey key = entry.getKey();
    if (readStamp(key)) {
      stream(key).add(codec.prev(), key.getLogSequenceNumber(), key.getWriteTime());
    } else {
      addUnstamped(key);
    }
  }

  private boolean readStamp(WALKey key) {
    for (int i = 0; i < key.getExtendedAttributesCount(); i++) {
      Attribute attribute = key.getExtendedAttributes(i);
      if (StampCodec.ATTRIBUTE.equals(attribute.getKey())) {
        return readStamp(attribute.getValue(), key.getLogSequenceNumber());
      }
    }
    return false;
  }

  private boolean readStamp(ByteString value, long seq) {
    if (value.size() != StampCodec.LENGTH) {
      return false;
    }
    value.copyTo(stamp, 0);
    return codec.decode(stamp, stamp.length, seq);
  }

  private AppliedStream.Builder stream(WALKey key) {
    ByteString region = key.getEncodedRegionName();
    if (lastStream == null || lastOrigin != codec.origin() || lastVia != codec.via() || !region.equals(lastRegion)) {
      StreamId id = new StreamId(region.toStringUtf8(), codec.origin(), codec.via());
      lastStream = streams.computeIfAbsent(id, absent -> new AppliedStream.Builder(absent, tableOf(key)));
      lastRegion = region;
      lastOrigin = codec.origin();
      lastVia = codec.via();
    }
    return lastStream;
  }

  private void addUnstamped(WALKey key) {
    unstamped.computeIfAbsent(key.getEncodedRegionName().toStringUtf8(), region -> new Unstamped(region, tableOf(key)))
        .add(key.getWriteTime());
  }

  private static String tableOf(WALKey key) {
    return TableName.valueOf(key.getTableName().toByteArray()).getNameAsString();
  }

  boolean isEmpty() {
    return streams.isEmpty() && unstamped.isEmpty();
  }

  List<AppliedStream> streams() {
    List<AppliedStream> applied = new ArrayList<>(streams.size());
    for (AppliedStream.Builder builder : streams.values()) {
      applied.add(builder.build());
    }
    return applied;
  }

  List<Unstamped> unstamped() {
    return new ArrayList<>(unstamped.values());
  }

  void clear() {
    streams.clear();
    unstamped.clear();
    lastEntry = null;
    lastRegion = null;
    lastStream = null;
  }
}
