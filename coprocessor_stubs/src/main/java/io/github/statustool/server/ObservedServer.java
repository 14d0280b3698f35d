package io.github.statustool.server;

import io.github.statustool.content.TableEvents;
import java.util.List;
import java.util.Map;

/** A region server of this JVM. */
public interface ObservedServer extends ServerComponent {
  /** Checks which replication peers are in force. */
  void checkPeers();

  /** Reports a write-ahead log of the server that runs without the tracker. */
  void checkWals();

  /** Returns the peers in force as {@link PeerWatch#json}; null if they are not known. */
  String peers();

  /** Returns the open regions, as far as they can be listed. */
  List<TableEvents.OpenRegion> openRegions();

  /** Returns by family and name which store files of an open region were bulk loaded, else nothing. By any thread. */
  Map<String, Map<String, Boolean>> filesOf(String region);
}
