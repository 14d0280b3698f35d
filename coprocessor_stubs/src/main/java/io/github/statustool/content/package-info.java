/**
 * The content ledger: with which families and store files a region opened and closed, and what else happens to tables
 * without showing in their streams.
 */
package io.github.statustool.content;
