package io.github.statustool.streams;

import io.github.statustool.state.Ids;
import org.apache.hadoop.hbase.util.Bytes;


/**
 * Identifies a stream: encoded region name, origin, and via, which stands for the clusters that its edits have passed
 * and for its family.
 */
final class StreamId {
  final String region;
  final long origin;
  final long via;

  StreamId(String region, long origin, long via) {
    this.region = region;
    this.origin = origin;
    this.via = via;
  }

  /** Returns the stream's row key in the state table, for a row type. */
  byte[] rowKey(char type) {
    return Bytes.toBytes(type + region + Ids.hex(origin) + Ids.hex(via));
  }

  @Override
  public boolean equals(Object other) {
    if (!(other instanceof StreamId)) {
      return false;
    }
    StreamId that = (StreamId) other;
    return origin == that.origin && via == that.via && region.equals(that.region);
  }

  @Override
  public int hashCode() {
    return region.hashCode() * 31 + Long.hashCode(origin ^ via);
  }

  @Override
  public String toString() {
    return region + "/" + Ids.hex(origin) + "/" + Ids.hex(via);
  }
}
