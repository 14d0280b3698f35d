package io.github.statustool.server;

import java.io.IOException;

/** A write-ahead log of a region server. */
public interface ObservedWal extends ServerComponent {
  /** Returns true if the log has ended or is about to. */
  boolean isClosing();

  /** Waits until everything appended so far is durable. */
  void sync() throws IOException;

  /**
   * Returns true if everything that passed its hooks is known to be durable. Entries appended since the last check may
   * not be included.
   */
  boolean isDurable();
}
