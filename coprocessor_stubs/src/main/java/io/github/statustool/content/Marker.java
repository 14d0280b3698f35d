package io.github.statustool.content;

import java.util.List;
import java.util.Map;
import org.apache.hadoop.hbase.Cell;
import org.apache.hadoop.hbase.client.RegionInfo;

/**
 * A WAL entry with a marker: HBase's record of a change of a region's store files. Kept unparsed, to be read off the
 * WAL thread.
 */
final class Marker {
  final long origin;
  final RegionInfo region;
  final long seq;
  final long writeTime;
  final List<Cell> cells;
  /** Families with replication scope 1. */
  final List<String> replicated;
  /** For a compaction: {@link FileOrigins#of} its region before the inputs were taken away; empty if nobody looked. */
  Map<String, Map<String, Boolean>> files = Map.of();

  Marker(long origin, RegionInfo region, long seq, long writeTime, List<Cell> cells, List<String> replicated) {
    this.origin = origin;
    this.region = region;
    this.seq = seq;
    this.writeTime = writeTime;
    this.cells = cells;
    this.replicated = replicated;
  }
}
