package io.github.statustool.server;

import static org.junit.jupiter.api.Assertions.assertEquals;

import java.util.ArrayList;
import java.util.HashMap;
import java.util.List;
import java.util.Map;
import java.util.concurrent.atomic.AtomicLong;
import java.util.function.Consumer;
import org.junit.jupiter.api.Test;

class PeerWatchTest {
  private static final long ADDED = 70;

  private final AtomicLong clock = new AtomicLong(1_000_000);
  private final FakeSource source = new FakeSource();
  private final PeerWatch watch = new PeerWatch(() -> source, clock::get);

  /** A region server whose peers a test changes; a question is answered when the test says so. */
  private static final class FakeSource implements PeerWatch.Source {
    private final Map<String, Object> inForce = new HashMap<>();
    private final List<Runnable> questions = new ArrayList<>();
    private long incarnation = ADDED;
    private int version;
    private long content = 5;
    private boolean same = true;
    private boolean broken;

    @Override
    public Map<String, Object> inForce() {
      if (broken) {
        throw new NoSuchMethodError("another HBase");
      }
      return new HashMap<>(inForce);
    }

    @Override
    public void readZnode(String peer, Object config, Consumer<PeerWatch.Answer> receiver) {
      questions.add(() -> {
        if (same) {
          receiver.accept(new PeerWatch.Answer(peer, config, incarnation, version, content));
        }
      });
    }

    private void answer() {
      questions.forEach(Runnable::run);
      questions.clear();
    }
  }

  private String lookTwice() {
    watch.check();
    source.answer();
    clock.addAndGet(10_000);
    watch.check();
    return watch.json().toString();
  }

  @Test
  void knowsWhatIsInForceOnceZooKeeperHasSaidTheSame() {
    source.inForce.put("1", new Object());
    watch.check();
    assertEquals("{}", watch.json().toString());
    assertEquals("{\"1\":[70,0,0,1010000,5]}", lookTwice());
  }

  /** An HBase master that starts writes every peer's znode; no region server loads it for that. */
  @Test
  void versionsWithoutAChangeHereAreTheSame() {
    source.inForce.put("1", new Object());
    lookTwice();
    source.version = 3;
    assertEquals("{\"1\":[70,0,3,1010000,5]}", lookTwice());
  }

  @Test
  void aChangeBeginsANewSpan() {
    source.inForce.put("1", new Object());
    lookTwice();
    source.inForce.put("1", new Object());
    source.version = 2;
    source.content = 6;
    watch.check();
    assertEquals("{}", watch.json().toString());
    assertEquals("{\"1\":[70,2,2,1020000,6]}", lookTwice());
  }

  @Test
  void aVersionThatIsNotInForceYetIsNone() {
    source.inForce.put("1", new Object());
    lookTwice();
    source.version = 1;
    source.same = false;
    assertEquals("{\"1\":[70,0,0,1010000,5]}", lookTwice());
  }

  @Test
  void anAnswerAboutWhatIsNoLongerInForceIsNone() {
    source.inForce.put("1", new Object());
    watch.check();
    source.inForce.put("1", new Object());
    source.answer();
    source.same = false;
    watch.check();
    assertEquals("{}", watch.json().toString());
  }

  @Test
  void aPeerThatIsGoneIsForgottenAndAddedAgainIsAnother() {
    source.inForce.put("1", new Object());
    lookTwice();
    source.inForce.clear();
    watch.check();
    assertEquals("{}", watch.json().toString());
    source.inForce.put("1", new Object());
    source.incarnation = ADDED + 9;
    assertEquals("{\"1\":[79,0,0,1020000,5]}", lookTwice());
  }

  @Test
  void anHBaseThatHasNoSuchPeersIsLeftAlone() {
    PeerWatch none = new PeerWatch(() -> {
      throw new NoClassDefFoundError("Replication");
    }, clock::get);
    none.check();
    none.check();
    assertEquals("{}", none.json().toString());
  }

  @Test
  void aRegionServerThatCannotBeWatchedIsLeftAloneForAMinute() {
    source.inForce.put("1", new Object());
    lookTwice();
    source.broken = true;
    watch.check();
    source.broken = false; // it had no memory, perhaps
    assertEquals("{}", lookTwice());
    clock.addAndGet(60_000);
    assertEquals("{\"1\":[70,0,0,1080000,5]}", lookTwice());
  }
}
