package io.github.statustool;

import io.github.statustool.server.ObservedWal;
import io.github.statustool.streams.Fixtures;

/** A write-ahead log that stays open, and is durable. */
final class OpenWal implements ObservedWal {
  @Override
  public String serverName() {
    return Fixtures.SERVER;
  }

  @Override
  public boolean isOver() {
    return false;
  }

  @Override
  public boolean isClosing() {
    return false;
  }

  @Override
  public void sync() {}

  @Override
  public boolean isDurable() {
    return true;
  }
}
