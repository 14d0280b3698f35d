/**
 * The region server as the trackers see it: its WALs, open regions, replication peers and settings.
 *
 * <p>Each {@link io.github.statustool.server.ServerComponent} is watched until it ends.
 */
package io.github.statustool.server;
