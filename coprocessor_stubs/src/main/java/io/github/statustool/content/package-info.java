/**
 * The content ledger: with which families and store files each region opened and closed, and what else happens to
 * regions and tables without showing in their streams.
 *
 * <p>{@link io.github.statustool.content.MarkerForwarder} feeds {@link io.github.statustool.content.ContentLedger} from
 * the WALs, and {@link io.github.statustool.content.TenureJoiner} keeps its rows short.
 */
package io.github.statustool.content;
