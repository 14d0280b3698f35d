package io.github.statustool.witness;

import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertFalse;
import static org.junit.jupiter.api.Assertions.assertNotEquals;
import static org.junit.jupiter.api.Assertions.assertThrows;

import java.io.IOException;
import java.nio.charset.StandardCharsets;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.List;
import java.util.stream.Collectors;
import java.util.stream.Stream;
import org.apache.hadoop.conf.Configuration;
import org.apache.hadoop.hbase.HConstants;
import org.apache.hadoop.hbase.ServerName;
import org.apache.hadoop.hbase.zookeeper.ZKUtil;
import org.apache.hadoop.hbase.zookeeper.ZKWatcher;
import org.apache.zookeeper.server.ServerCnxnFactory;
import org.apache.zookeeper.server.ZooKeeperServer;
import org.junit.jupiter.api.AfterEach;
import org.junit.jupiter.api.BeforeEach;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.io.TempDir;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.ValueSource;

class RegistrationTest {
  private static final ServerName ONE = ServerName.valueOf("one", 12505, 7);
  private static final ServerName TWO = ServerName.valueOf("two", 12505, 8);

  @TempDir Path folder;

  private final Configuration configuration = new Configuration(false);
  private ServerCnxnFactory ensemble;

  @BeforeEach
  void start() throws Exception {
    start(0);
  }

  private void start(int port) throws Exception {
    ensemble = ServerCnxnFactory.createFactory(port, 10);
    ensemble.startup(new ZooKeeperServer(folder.resolve("zk").toFile(), folder.resolve("zk").toFile(), 3000));
    configuration.set(HConstants.ZOOKEEPER_QUORUM, "localhost");
    configuration.setInt(HConstants.ZOOKEEPER_CLIENT_PORT, ensemble.getLocalPort());
    configuration.set(HConstants.ZOOKEEPER_ZNODE_PARENT, "/witness");
  }

  @AfterEach
  void stop() {
    ensemble.shutdown();
  }

  private ArrivalStore store(String name) throws IOException {
    return new ArrivalStore(folder.resolve(name), 100);
  }

  private Registration register(ServerName server, ArrivalStore store, Registration before) throws IOException {
    return new Registration(configuration, server, store, before, () -> { });
  }

  private static StorePosition keep(ArrivalStore store, long sequenceId) throws IOException {
    Arrivals arrivals = new Arrivals();
    arrivals.add(new ArrivalKey("t", "r", List.of(), List.of("f")), sequenceId, 1000);
    return store.keep(arrivals);
  }

  private String mark(ArrivalStore store) throws Exception {
    try (ZKWatcher zooKeeper = new ZKWatcher(configuration, "look", null)) {
      byte[] data = ZKUtil.getData(zooKeeper, "/witness/stores/" + store.id());
      return new String(data, StandardCharsets.UTF_8);
    }
  }

  private void copy(String from, String to) throws IOException {
    Files.createDirectories(folder.resolve(to));
    try (Stream<Path> all = Files.list(folder.resolve(from))) {
      for (Path each : all.filter(one -> !one.endsWith("lock")).collect(Collectors.toList())) {
        Files.copy(each, folder.resolve(to).resolve(each.getFileName()));
      }
    }
  }

  @Test
  void ofTwoWitnessesWithCopiesOfOneFolderOneAloneAcknowledges() throws Exception {
    try (ArrivalStore first = store("first")) {
      Registration mine = register(ONE, first, null);
      mine.acknowledge(keep(first, 1));
      copy("first", "second");
      try (ArrivalStore second = store("second")) {
        Registration copied = register(TWO, second, null);
        StorePosition theirs = keep(second, 2);
        copied.acknowledge(theirs);
        StorePosition ours = keep(first, 3);
        assertThrows(Registration.TakenOverException.class, () -> mine.acknowledge(ours));
        assertEquals("two:12505 " + theirs.number + " " + theirs.length, mark(second));
        mine.close();
        assertThrows(Registration.TakenOverException.class, () -> register(ONE, first, mine));
        copied.close();
      }
    }
  }

  @Test
  void aWitnessGoesOnAfterItsSessionAndAfterItsRestart() throws Exception {
    StorePosition end;
    try (ArrivalStore store = store("one")) {
      Registration before = register(ONE, store, null);
      before.acknowledge(keep(store, 1));
      before.close();
      Registration now = register(ONE, store, before);
      now.acknowledge(keep(store, 2));
      now.close();
    }
    try (ArrivalStore store = store("one")) {
      Registration now = register(TWO, store, null);
      end = keep(store, 3);
      now.acknowledge(end);
      assertEquals("two:12505 " + end.number + " " + end.length, mark(store));
      now.close();
    }
  }

  @ParameterizedTest
  @ValueSource(booleans = {true, false})
  void aWriteWhoseAnswerWasLostIsItsOwn(boolean isWritten) throws Exception {
    configuration.setInt("zookeeper.recovery.retry", 0);
    try (ArrivalStore store = store("one")) {
      Registration mine = register(ONE, store, null);
      int port = ensemble.getLocalPort();
      ensemble.shutdown();
      StorePosition lost = keep(store, 1);
      assertThrows(IOException.class, () -> mine.acknowledge(lost));
      start(port);
      if (isWritten) {
        try (ZKWatcher zooKeeper = new ZKWatcher(configuration, "late", null)) {
          ZKUtil.setData(zooKeeper, "/witness/stores/" + store.id(), lost.toZnode("one:12505"));
        }
      }
      StorePosition end = keep(store, 2);
      acknowledged(mine, end);
      assertEquals("one:12505 " + end.number + " " + end.length, mark(store));
      mine.close();
    }
  }

  @ParameterizedTest
  @ValueSource(strings = {"master", "backup-masters"})
  void theZnodeOfAClusterIsNoneOfAWitness(String own) throws Exception {
    try (ZKWatcher zooKeeper = new ZKWatcher(configuration, "cluster", null);
        ArrivalStore store = store("one")) {
      ZKUtil.createWithParents(zooKeeper, "/witness/" + own);
      IOException error = assertThrows(IOException.class, () -> register(ONE, store, null));
      assertEquals("/witness is the znode of an HBase cluster: give the witness one of its own", error.getMessage());
      assertEquals(List.of(own), ZKUtil.listChildrenNoWatch(zooKeeper, "/witness"));
      assertFalse(store.hasBegun());
    }
  }

  @Test
  void aFolderThatWasFilledForOneZnodeIsRefusedAtAnother() throws Exception {
    try (ArrivalStore mine = store("mine")) {
      register(ONE, mine, null).close();
    }
    configuration.set(HConstants.ZOOKEEPER_ZNODE_PARENT, "/other");
    try (ArrivalStore first = store("first");
        Registration registered = register(TWO, first, null);
        ZKWatcher zooKeeper = new ZKWatcher(configuration, "look", null);
        ArrivalStore mine = store("mine")) {
      registered.acknowledge(keep(first, 1));
      IOException error = assertThrows(IOException.class, () -> register(ONE, mine, null));
      assertEquals(
          "/other has the id " + first.clusterId() + ", and the folder was filled as " + mine.clusterId()
              + ": give the witness another znode, or another folder",
          error.getMessage());
      assertNotEquals(first.clusterId(), mine.clusterId());
      assertEquals(List.of(TWO.toString()), ZKUtil.listChildrenNoWatch(zooKeeper, "/other/rs"));
      assertEquals(List.of(first.id().toString()), ZKUtil.listChildrenNoWatch(zooKeeper, "/other/stores"));
      assertFalse(mine.hasBegun());
    }
  }

  @Test
  void aZooKeeperThatDoesNotAnswerIsNamed() throws Exception {
    configuration.setInt("zookeeper.recovery.retry", 0);
    int port = ensemble.getLocalPort();
    ensemble.shutdown();
    try (ArrivalStore store = store("one")) {
      IOException error = assertThrows(IOException.class, () -> register(ONE, store, null));
      assertEquals(
          "cannot register at ZooKeeper localhost:" + port + ": KeeperErrorCode = ConnectionLoss for /witness/master",
          error.getMessage());
      assertFalse(store.hasBegun());
    }
  }

  /** Its client may still be connecting. */
  private static void acknowledged(Registration mine, StorePosition position) throws Exception {
    for (int left = 100; ; left--) {
      try {
        mine.acknowledge(position);
        return;
      } catch (IOException error) {
        if (left == 0 || error instanceof Registration.TakenOverException) {
          throw error;
        }
        Thread.sleep(100);
      }
    }
  }
}
