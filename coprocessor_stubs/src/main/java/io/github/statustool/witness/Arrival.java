package io.github.statustool.witness;

/** One WAL entry that was sent. */
final class Arrival {
  /** Of the entry's region. */
  final long sequenceId;
  /** In ms, by the clock of the region server that wrote the entry. */
  final long writeTime;

  Arrival(long sequenceId, long writeTime) {
    this.sequenceId = sequenceId;
    this.writeTime = writeTime;
  }
}
