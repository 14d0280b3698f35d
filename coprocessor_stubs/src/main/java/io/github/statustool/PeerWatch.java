package io.github.statustool;

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
 * Which versions of its peers' znodes a region server has had in force. A peer's znode is written when the peer is
 * added or changed, and by every HBase master that starts: afterwards the two cannot be told apart. The region server
 * can, for HBase has it load the peer only when something has changed; and it knows, free of all clocks, that what is
 * appended from now on is in the peer's queue.
 *
 * <p>By the recorder's thread alone, but for the answers of ZooKeeper.
 */
final class PeerWatch {
  private static final Logger LOG = LoggerFactory.getLogger(PeerWatch.class);
  private static final long ASK_MS = 10_000;
  private static final int EAGER = 20;

  /** The region server's own knowledge, and ZooKeeper's. */
  interface Source {
    /** By peer that this server knows: its configuration, another object after each change. */
    Map<String, Object> inForce();

    /** Asks ZooKeeper about a peer without waiting. Answers come on any thread, or never. */
    void ask(String peer, Object config, Consumer<Answer> receiver);
  }

  /** A peer's znode, which holds what is in force here, while the peer's queue here has all current WALs. */
  static final class Answer {
    private final String peer;
    private final Object config;
    private final long incarnation;
    private final int version;

    /**
     * @param config the configuration that was compared with the znode's
     * @param incarnation the transaction that created the znode
     * @param version how often it was written since
     */
    Answer(String peer, Object config, long incarnation, int version) {
      this.peer = peer;
      this.config = config;
      this.incarnation = incarnation;
      this.version = version;
    }
  }

  /** A configuration that is in force, and the span of versions that were the same. */
  private static final class Known {
    private final Object config;
    private int asked;
    private boolean confirmed;
    private long incarnation;
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
  private final Alarm nextAsk;
  private final Map<String, Known> known = new HashMap<>();
  private final Queue<Answer> answers = new ConcurrentLinkedQueue<>();
  private boolean broken;

  /** @param connector called at the first look: another HBase may not have what it links to */
  PeerWatch(Supplier<Source> connector, LongSupplier clock) {
    this.connector = connector;
    this.clock = clock;
    this.nextAsk = new Alarm(clock);
  }

  /** Looks what is in force now. Never throws: without this the tool knows less, and says so. */
  void look() {
    if (broken) {
      return;
    }
    try {
      source = source == null ? connector.get() : source;
      compare(source.inForce());
      for (Answer answer = answers.poll(); answer != null; answer = answers.poll()) {
        accept(answer);
      }
      ask();
    } catch (Throwable t) {
      LOG.warn("status-tool: this server's replication peers cannot be watched", t);
      broken = true;
      known.clear();
    }
  }

  private void compare(Map<String, Object> inForce) {
    known.keySet().retainAll(inForce.keySet());
    inForce.forEach((peer, config) -> known.compute(peer,
        (key, before) -> before != null && before.config == config ? before : new Known(config)));
  }

  /** An answer counts only if what it was compared with has been in force from the question until now. */
  private void accept(Answer answer) {
    Known peer = known.get(answer.peer);
    if (peer == null || peer.config != answer.config) {
      return;
    }
    if (!peer.confirmed) {
      peer.confirmed = true;
      peer.incarnation = answer.incarnation;
      peer.from = answer.version;
      peer.to = answer.version;
      peer.since = clock.getAsLong();
    } else if (peer.incarnation == answer.incarnation) {
      peer.to = Math.max(peer.to, answer.version);
    }
  }

  private void ask() {
    boolean due = nextAsk.isDue();
    if (due) {
      nextAsk.set(ASK_MS);
    }
    known.forEach((name, peer) -> {
      if (due || (!peer.confirmed && peer.asked < EAGER)) {
        peer.asked++;
        source.ask(name, peer.config, answers::add);
      }
    });
  }

  /** By peer: incarnation, first and last version, and since when on this server's clock; as formats.md has it. */
  JsonObject json() {
    JsonObject json = new JsonObject();
    known.forEach((name, peer) -> {
      if (peer.confirmed) {
        JsonArray span = new JsonArray();
        span.add(peer.incarnation);
        span.add(peer.from);
        span.add(peer.to);
        span.add(peer.since);
        json.add(name, span);
      }
    });
    return json;
  }
}
