/**
 * The recorder thread: answers barriers, and writes in the order that lets a reader trust a server's row, what the hooks
 * have observed.
 */
package io.github.statustool.recorder;
