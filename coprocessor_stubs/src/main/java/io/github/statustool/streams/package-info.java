/**
 * Streams of WAL entries by region, origin, via and family: their stamps and heads on the cluster that writes them,
 * their segments on the cluster that applies them.
 */
package io.github.statustool.streams;
