/**
 * The recorder's thread: answers barriers, and writes what the hooks have observed, in the order that lets a reader
 * trust a server's row.
 *
 * <p>{@link io.github.statustool.recorder.Recorder} is the only class that hooks use.
 */
package io.github.statustool.recorder;
