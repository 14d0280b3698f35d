/** Row digests: reads requests of the tool, sums up cells of this server's regions, and writes the answers. */
package io.github.statustool.digests;
