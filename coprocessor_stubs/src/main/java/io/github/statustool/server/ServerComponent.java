package io.github.statustool.server;

import io.github.statustool.content.TableEvents;
import java.io.IOException;
import java.util.List;
import java.util.Map;

/** A component of a region server that trackers observe until it ends: one of its WALs, or the region server itself. */
public interface ServerComponent {
  /** Returns the server name with start code; null while it is not known. */
  String serverName();

  /** Returns true if the component has ended, so that no hook will be called any more. */
  boolean isOver();

  /** Returns true if the component has ended or is about to. */
  default boolean isClosing() {
    return isOver();
  }

  /** Waits until everything appended so far is durable. */
  default void sync() throws IOException {}

  /**
   * Returns true if everything that passed its hooks is known to be durable. Entries appended since the last check may
   * not be included.
   */
  default boolean isDurable() {
    return true;
  }

  /** Checks which replication peers are in force. */
  default void checkPeers() {}

  /** Reports a write-ahead log of the server that runs without the tracker. */
  default void checkWals() {}

  /** Returns the peers in force as {@link PeerWatch#json}; null if they are not known. */
  default String peers() {
    return null;
  }

  /** Returns the open regions, as far as they can be listed. */
  default List<TableEvents.OpenRegion> openRegions() {
    return List.of();
  }

  /** Returns by family and name which store files of an open region were bulk loaded, else nothing. By any thread. */
  default Map<String, Map<String, Boolean>> filesOf(String region) {
    return Map.of();
  }
}
