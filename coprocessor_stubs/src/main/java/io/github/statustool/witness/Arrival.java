package io.github.statustool.witness;

/** One WAL entry that was sent. */
final class Arrival {
  /** Sequence id of the entry in its region. */
  final long sequenceId;
  /** Write time in ms, by the clock of the region server that wrote the entry. */
  final long writeTime;

  Arrival(long sequenceId, long writeTime) {
    this.sequenceId = sequenceId;
    this.writeTime = writeTime;
  }
}
