/** The region server as the trackers see it: its WALs, open regions, replication peers and settings. */
package io.github.statustool.server;
