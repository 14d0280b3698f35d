package io.github.statustool.recorder;

import io.github.statustool.content.TableEvents;
import io.github.statustool.server.ObservedServer;
import io.github.statustool.server.ObservedWal;
import io.github.statustool.server.ServerComponent;
import io.github.statustool.state.Alarm;
import io.github.statustool.state.Ids;
import java.util.ArrayList;
import java.util.Collection;
import java.util.List;
import java.util.Map;
import java.util.Objects;
import java.util.Set;
import java.util.TreeMap;
import java.util.concurrent.ConcurrentSkipListMap;
import java.util.concurrent.CopyOnWriteArrayList;
import java.util.function.Function;
import java.util.function.LongSupplier;
import java.util.stream.Collectors;
import java.util.stream.Stream;

/**
 * The roles of this JVM's region servers, created as soon as the server names are known. Components may be added by any
 * thread; where nothing else is said, the rest is for the recorder thread.
 */
public final class ServerRoles {
  private static final long FIRST_PAUSE_MS = 1_000;
  private static final long LAST_PAUSE_MS = 60_000;

  private final List<ObservedWal> wals = new CopyOnWriteArrayList<>();
  /** WALs whose entries are observed without being stamped: they give a server no writer's role. */
  private final List<ObservedWal> observedWals = new CopyOnWriteArrayList<>();
  private final List<ObservedServer> servers = new CopyOnWriteArrayList<>();
  /** Servers whose coprocessors watch their WALs only, so that they have no replicator's role. */
  private final Map<String, ObservedServer> found = new ConcurrentSkipListMap<>();
  private final Map<String, Search> searches = new TreeMap<>();
  private final Map<String, ServerRole> roles = new TreeMap<>();
  private final LongSupplier clock;
  private Function<String, ObservedServer> finder = name -> null;

  ServerRoles(LongSupplier clock) {
    this.clock = clock;
  }

  /** @param by returns the region server of this JVM with a name, or null; set before the recorder runs */
  public void findServers(Function<String, ObservedServer> by) {
    finder = by;
  }

  public void watchWal(ObservedWal wal) {
    wals.add(wal);
  }

  public void observeWal(ObservedWal wal) {
    observedWals.add(wal);
  }

  public void watchServer(ObservedServer server) {
    servers.add(server);
  }

  /** Creates the roles of servers whose names have become known. */
  Collection<ServerRole> refresh() {
    name(wals, ServerRole.WRITER);
    name(servers, ServerRole.REPLICATOR);
    // A replicate-time tracker knows its server; a search would go through all threads of the JVM for it.
    if (servers.isEmpty()) {
      nameServers();
    }
    return roles.values();
  }

  private void nameServers() {
    for (ObservedWal wal : wals) {
      String name = wal.serverName();
      if (name != null && !found.containsKey(name)) {
        searches.computeIfAbsent(name, absent -> new Search()).search(name);
      }
    }
  }

  /** Returns the region servers of this JVM that can be looked at. */
  private Collection<ObservedServer> watched() {
    return servers.isEmpty() ? found.values() : servers;
  }

  private void name(List<? extends ServerComponent> watched, char role) {
    for (ServerComponent each : watched) {
      String server = each.serverName();
      if (server != null) {
        roles.computeIfAbsent(role + server, absent -> new ServerRole(role, server));
      }
    }
  }

  /** Returns true if open regions can be listed, which may be none. */
  boolean canListRegions() {
    return !watched().isEmpty();
  }

  /** Returns the open regions of this JVM's servers. */
  List<TableEvents.OpenRegion> openRegions() {
    List<TableEvents.OpenRegion> open = new ArrayList<>();
    watched().forEach(server -> open.addAll(server.openRegions()));
    return open;
  }

  /** Returns by family and name which store files of an open region were bulk loaded, else nothing. By any thread. */
  Map<String, Map<String, Boolean>> filesOf(String region) {
    return watched().stream().map(server -> server.filesOf(region)).filter(files -> !files.isEmpty()).findFirst()
        .orElse(Map.of());
  }

  void checkPeers() {
    watched().forEach(ObservedServer::checkPeers);
  }

  void checkWals() {
    watched().forEach(ObservedServer::checkWals);
  }

  /** Returns the replication peers in force, by server name; without servers whose peers are not known. */
  Map<String, String> peers() {
    Map<String, String> peers = new TreeMap<>();
    for (ObservedServer server : watched()) {
      String name = server.serverName();
      String known = server.peers();
      if (name != null && known != null) {
        peers.put(name, known);
      }
    }
    return peers;
  }

  Collection<ObservedWal> wals() {
    return wals;
  }

  /** Returns the WALs whose acknowledged entries may not have passed their hooks yet. */
  Collection<ObservedWal> walsToSync() {
    List<ObservedWal> all = new ArrayList<>(wals);
    // One that has ended answers no more, and all its entries have passed. It stays for areWalsOpen().
    observedWals.stream().filter(wal -> !wal.isOver()).forEach(all::add);
    return all;
  }

  /** Returns true if no WAL has begun to close. HBase closes them when their server stops. */
  boolean areWalsOpen() {
    return Stream.of(wals, observedWals).flatMap(Collection::stream).noneMatch(ObservedWal::isClosing);
  }

  /** Returns which roles there are. */
  Set<Character> kinds() {
    return roles.values().stream().map(role -> role.role).collect(Collectors.toSet());
  }

  List<ServerRole> running() {
    List<ServerRole> running = new ArrayList<>();
    for (ServerRole role : roles.values()) {
      if (!isOver(role)) {
        running.add(role);
      }
    }
    return running;
  }

  List<ServerRole> over() {
    List<ServerRole> over = new ArrayList<>(roles.values());
    over.removeAll(running());
    return over;
  }

  /** Returns true if the server has ended. A server with several WALs has ended when all of them have. */
  private boolean isOver(ServerRole role) {
    for (ServerComponent each : role.role == ServerRole.WRITER ? wals : servers) {
      if (role.serverName.equals(each.serverName()) && !each.isOver()) {
        return false;
      }
    }
    return true;
  }

  /** Returns the origin of one of the JVM's region servers; 0 while no name is known. By any thread. */
  long anyOrigin() {
    return Stream.concat(servers.stream(), wals.stream()).map(ServerComponent::serverName).filter(Objects::nonNull)
        .findFirst().map(Ids::origin).orElse(0L);
  }

  /** Returns true if all known region server threads have ended, so that waiting for their WALs is useless. */
  boolean serversAreGone() {
    return !servers.isEmpty() && servers.stream().allMatch(ServerComponent::isOver);
  }

  /**
   * The search for one server. It looks at all threads of the JVM each time, so the pauses grow, to a minute. They are
   * short at first: the server's thread may be about to start.
   */
  private final class Search {
    private final Alarm next = new Alarm(clock);
    private long pause = FIRST_PAUSE_MS;

    private void search(String name) {
      if (!next.isDue()) {
        return;
      }
      ObservedServer server = finder.apply(name);
      if (server == null) {
        next.set(pause);
        pause = Math.min(LAST_PAUSE_MS, 2 * pause);
      } else {
        found.put(name, server);
      }
    }
  }
}
