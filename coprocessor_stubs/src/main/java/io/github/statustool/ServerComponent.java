package io.github.statustool;

import java.io.IOException;
import java.util.List;

/** Something of a server whose end is also the end of what a tracker can see there. */
interface ServerComponent {
  /** The name with start code, or null while it is not known yet. */
  String serverName();

  /** Whether no hook will be called any more. */
  boolean isOver();

  /** Waits until what was appended before is durable. */
  default void sync() throws IOException {}

  /** Whether all that came through its hooks is known to be durable; what came after the last look may not be counted. */
  default boolean isDurable() {
    return true;
  }

  /** Looks which replication peers are in force there. */
  default void lookAtPeers() {}

  /** The peers that are, as {@link PeerWatch#json}; null where nothing is known of them. */
  default String peers() {
    return null;
  }

  /** The regions that are open there, as far as that can be seen. */
  default List<TableEvents.OpenRegion> openRegions() {
    return List.of();
  }
}
