/** A process that poses as a replication peer and keeps which WAL entries it was sent. No region server loads it. */
package io.github.statustool.witness;
