/**
 * The state table and its spool: rows by name, a store with bounded calls, and what every package needs to write rows.
 */
package io.github.statustool.state;
