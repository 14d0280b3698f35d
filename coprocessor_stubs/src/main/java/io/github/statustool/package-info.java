/**
 * The coprocessors that HBase loads: their hooks stamp what is appended to a WAL, and note what replication applied.
 *
 * <p>{@link io.github.statustool.WriteTimeTracker} and {@link io.github.statustool.ReplicateTimeTracker} are the
 * classes that operators configure. No exception leaves a hook: it would make HBase abort its server, or make the
 * source ship a batch again.
 */
package io.github.statustool;
