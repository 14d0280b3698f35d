/**
 * Row digests: reads the tool's requests, sums up cells of this server's regions, and writes the answers.
 *
 * <p>{@link io.github.statustool.digests.DigestWorker} runs on a thread of its own; nothing waits for it.
 */
package io.github.statustool.digests;
