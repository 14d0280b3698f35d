/**
 * The coprocessors that HBase loads.
 *
 * <p>Operators configure {@link io.github.statustool.WriteTimeTracker} and {@link
 * io.github.statustool.ReplicateTimeTracker}. No exception leaves a hook: HBase would abort its server, or the source
 * would ship the batch again.
 */
package io.github.statustool;
