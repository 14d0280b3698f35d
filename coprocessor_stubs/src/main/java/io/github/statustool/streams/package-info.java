/**
 * Streams of WAL entries by region, origin, via and family: stamps and heads on the cluster that writes them, segments
 * on the cluster that applies them.
 *
 * <p>{@link io.github.statustool.streams.WalStamper} works for the WAL's hooks, {@link
 * io.github.statustool.streams.SinkBatch} and {@link io.github.statustool.streams.WriteThrough} for those of
 * replication; {@link io.github.statustool.streams.ObservedState} has everything that the recorder writes.
 */
package io.github.statustool.streams;
