package io.github.statustool.server;

/** A component of a region server that trackers observe until it ends: one of its WALs, or the region server itself. */
public interface ServerComponent {
  /** Returns the server name with start code; null while it is not known. */
  String serverName();

  /** Returns true if the component has ended, so that no hook will be called any more. */
  boolean isOver();
}
