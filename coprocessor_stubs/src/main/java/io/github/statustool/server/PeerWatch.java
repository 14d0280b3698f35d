package io.github.statustool.server;

import io.github.statustool.state.Alarm;
import java.util.HashMap;
import java.util.Map;
import java.util.Queue;
import java.util.concurrent.ConcurrentLinkedQueue;
import java.util.function.Consumer;
import java.util.function.LongSupplier;
import java.util.function.Supplier;
import org.apache.hbase.thirdparty.com.google.gson.JsonArray;
import org.apache.hbase.thirdparty.com.google.gson.JsonObject;
import org.slf4j.Logger;
import org.slf4j.LoggerFactory;

/**
 * Tracks which versions of its peers' znodes were in force on a region server. A peer's znode is written when the peer
 * is added or changed, and by every HBase master that starts: the znode alone does not show which. The region server
 * does, because HBase makes it reload a peer only after a change. And it knows, without relying on any clock, that
 * everything appended from now on is in the peer's queue.
 *
 * <p>Used by the recorder thread, except for ZooKeeper's responses, which arrive on any thread.
 */
final class PeerWatch {
  private static final Logger LOG = LoggerFactory.getLogger(PeerWatch.class);
  private static final long READ_MS = 10_000;
  /** After an error, which may last for as long as the server runs, as on an HBase version without some method. */
  private static final long PAUSE_MS = 60_000;
  // Rounds in which a peer is read until it is confirmed: before that, queues settle no crash of this server.
  private static final int EAGER = 20;

  /** The region server's peers, and their znodes. */
  interface Source {
    /** Returns the configuration of each peer on this server; a new object after each change. */
    Map<String, Object> inForce();

    /** Reads a peer's znode asynchronously. The receiver is called on any thread, or never. */
    void readZnode(String peer, Object config, Consumer<Answer> receiver);
  }

  /**
   * A peer's znode that matches the configuration in force here, at a time when the peer's queue contained all current
   * WALs.
   */
  static final class Answer {
    private final String peer;
    private final Object config;
    private final long incarnation;
    private final int version;
    private final long content;

    /**
     * @param config the configuration that was compared with the znode
     * @param incarnation the transaction that created the znode
     * @param version how often it has been written since
     * @param content a hash of what the znode says
     */
    Answer(String peer, Object config, long incarnation, int version, long content) {
      this.peer = peer;
      this.config = config;
      this.incarnation = incarnation;
      this.version = version;
      this.content = content;
    }
  }

  /** A configuration in force, and the span of znode versions that were equal to it. */
  private static final class Known {
    private final Object config;
    private int reads;
    private boolean confirmed;
    private long incarnation;
    private long content;
    private int from;
    private int to;
    private long since;

    private Known(Object config) {
      this.config = config;
    }
  }

  private final Supplier<Source> connector;
  private Source source;
  private final LongSupplier clock;
  private final Alarm nextRead;
  private final Map<String, Known> known = new HashMap<>();
  private final Queue<Answer> answers = new ConcurrentLinkedQueue<>();
  private final Alarm nextTry;

  /** @param connector called at the first look; fails on an HBase version without the classes that it links to */
  PeerWatch(Supplier<Source> connector, LongSupplier clock) {
    this.connector = connector;
    this.clock = clock;
    this.nextRead = new Alarm(clock);
    this.nextTry = new Alarm(clock);
  }

  /** Compares the peers in force with what is known. Never throws. */
  void check() {
    if (!nextTry.isDue()) {
      return;
    }
    try {
      source = source == null ? connector.get() : source;
      compare(source.inForce());
      for (Answer answer = answers.poll(); answer != null; answer = answers.poll()) {
        accept(answer);
      }
      readZnodes();
    } catch (Throwable t) {
      // Without peers the tool knows less, and reports that.
      LOG.warn("status-tool: cannot watch the replication peers of this server", t);
      nextTry.set(PAUSE_MS);
      known.clear();
    }
  }

  private void compare(Map<String, Object> inForce) {
    known.keySet().retainAll(inForce.keySet());
    inForce.forEach((peer, config) -> known.compute(peer,
        (key, before) -> before != null && before.config == config ? before : new Known(config)));
  }

  /** Accepts a response only if the configuration that was compared has been in force since the request. */
  private void accept(Answer answer) {
    Known peer = known.get(answer.peer);
    if (peer == null || peer.config != answer.config) {
      return;
    }
    if (!peer.confirmed) {
      peer.confirmed = true;
      peer.incarnation = answer.incarnation;
      peer.content = answer.content;
      peer.from = answer.version;
      peer.to = answer.version;
      peer.since = clock.getAsLong();
    } else if (peer.incarnation == answer.incarnation) {
      peer.to = Math.max(peer.to, answer.version);
    }
  }

  private void readZnodes() {
    boolean due = nextRead.isDue();
    if (due) {
      nextRead.set(READ_MS);
    }
    known.forEach((name, peer) -> {
      if (due || (!peer.confirmed && peer.reads < EAGER)) {
        peer.reads++;
        source.readZnode(name, peer.config, answers::add);
      }
    });
  }

  /**
   * Returns by peer the incarnation, the first and last version, since when on this server's clock, and the hash of the
   * content (formats.md).
   */
  JsonObject json() {
    JsonObject json = new JsonObject();
    known.forEach((name, peer) -> {
      if (peer.confirmed) {
        JsonArray span = new JsonArray();
        span.add(peer.incarnation);
        span.add(peer.from);
        span.add(peer.to);
        span.add(peer.since);
        span.add(peer.content);
        json.add(name, span);
      }
    });
    return json;
  }
}
