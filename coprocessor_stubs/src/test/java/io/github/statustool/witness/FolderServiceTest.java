package io.github.statustool.witness;

import static org.junit.jupiter.api.Assertions.assertArrayEquals;
import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertThrows;
import static org.junit.jupiter.api.Assertions.assertTrue;

import java.io.ByteArrayOutputStream;
import java.io.FileNotFoundException;
import java.io.IOException;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.List;
import java.util.Map;
import java.util.Random;
import java.util.TreeMap;
import java.util.UUID;
import org.apache.hadoop.hbase.shaded.protobuf.generated.ClientProtos.ClientService;
import org.apache.hadoop.hbase.shaded.protobuf.generated.ClientProtos.CoprocessorServiceCall;
import org.apache.hadoop.hbase.shaded.protobuf.generated.ClientProtos.CoprocessorServiceRequest;
import org.apache.hadoop.hbase.shaded.protobuf.generated.ClientProtos.GetRequest;
import org.apache.hadoop.hbase.shaded.protobuf.generated.HBaseProtos.RegionSpecifier;
import org.apache.hadoop.hbase.shaded.protobuf.generated.HBaseProtos.RegionSpecifier.RegionSpecifierType;
import org.apache.hbase.thirdparty.com.google.protobuf.ByteString;
import org.apache.hbase.thirdparty.com.google.protobuf.ServiceException;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.io.TempDir;

class FolderServiceTest {
  @TempDir Path folder;

  private ArrivalStore open(int logEntries) throws IOException {
    ArrivalStore store = new ArrivalStore(folder, logEntries);
    store.id();
    store.clusterId(new UUID(1, 2));
    store.begin(StorePosition.START);
    return store;
  }

  private static Arrivals one(long sequenceId) {
    Arrivals arrivals = new Arrivals();
    arrivals.add(new ArrivalKey("ns:t", "r", List.of(new UUID(3, 4)), List.of("f")), sequenceId, 1000 + sequenceId);
    return arrivals;
  }

  private static byte[] call(ArrivalStore store, String method, String request) throws ServiceException {
    ClientService.BlockingInterface service = new FolderService(store, Access.open()).asService();
    CoprocessorServiceCall.Builder call =
        CoprocessorServiceCall.newBuilder()
            .setRow(ByteString.EMPTY)
            .setServiceName(method.substring(0, method.indexOf('.')))
            .setMethodName(method.substring(method.indexOf('.') + 1))
            .setRequest(ByteString.copyFromUtf8(request));
    RegionSpecifier none =
        RegionSpecifier.newBuilder().setType(RegionSpecifierType.REGION_NAME).setValue(ByteString.EMPTY).build();
    return service
        .execRegionServerService(null, CoprocessorServiceRequest.newBuilder().setRegion(none).setCall(call).build())
        .getValue()
        .getValue()
        .toByteArray();
  }

  private static Map<String, Long> list(ArrivalStore store) throws ServiceException {
    Map<String, Long> found = new TreeMap<>();
    for (String line : new String(call(store, "Witness.list", "")).split("\n")) {
      found.put(line.split(" ")[0], Long.parseLong(line.split(" ")[1]));
    }
    return found;
  }

  @Test
  void allThatWasKeptIsListedAndReadInParts() throws Exception {
    byte[] big = new byte[ArrivalStore.PART_BYTES + 7];
    new Random(1).nextBytes(big);
    try (ArrivalStore store = open(1)) {
      store.keep(one(5));
      store.keep(one(6)); // the log that is full becomes a set
      Files.write(folder.resolve("9.set"), big);
      Map<String, Long> listed = list(store);
      assertEquals(List.of("1.set", "2.log", "9.set", "cluster.id", "store.id"), List.copyOf(listed.keySet()));
      for (Map.Entry<String, Long> file : listed.entrySet()) {
        ByteArrayOutputStream copy = new ByteArrayOutputStream();
        while (copy.size() < file.getValue()) {
          copy.write(call(store, "Witness.read", file.getKey() + " " + copy.size()));
        }
        assertArrayEquals(Files.readAllBytes(folder.resolve(file.getKey())), copy.toByteArray());
      }
      assertEquals(0, call(store, "Witness.read", "2.log " + listed.get("2.log")).length);
    }
  }

  @Test
  void aLogThatHasBecomeASetIsSaidToBeGone() throws Exception {
    try (ArrivalStore store = open(1)) {
      store.keep(one(5));
      assertTrue(list(store).containsKey("1.log"));
      store.keep(one(6));
      ServiceException gone = assertThrows(ServiceException.class, () -> call(store, "Witness.read", "1.log 0"));
      assertEquals(FileNotFoundException.class, gone.getCause().getClass());
    }
  }

  @Test
  void whatIsSettledIsPruned() throws Exception {
    UUID sender = new UUID(3, 4);
    try (ArrivalStore store = open(1)) {
      store.keep(one(5));
      store.keep(one(6));
      String id = store.id() + " ";
      String settled = "1006 " + sender + " q r";
      for (String request : List.of("", "x", "1", "x " + sender, "1 x", "1006 ../1.set r")) {
        assertThrows(ServiceException.class, () -> call(store, "Witness.prune", id + request));
      }
      for (String request : List.of(settled, sender + " " + settled, store.id().toString())) {
        assertThrows(ServiceException.class, () -> call(store, "Witness.prune", request));
      }
      assertEquals(List.of("1.set", "2.log", "cluster.id", "store.id"), List.copyOf(list(store).keySet()));
      assertEquals(0, call(store, "Witness.prune", id + settled).length);
      assertEquals(List.of("1-2.runs", "3.log", "cluster.id", "store.id"), List.copyOf(list(store).keySet()));
      assertArrayEquals(Files.readAllBytes(folder.resolve("1-2.runs")), call(store, "Witness.read", "1-2.runs 0"));
      assertEquals(1, ArrivalFile.readRuns(folder.resolve("1-2.runs")).size());
    }
  }

  @Test
  void nothingElseIsRead() throws Exception {
    Files.writeString(folder.resolveSibling("secret.set"), "secret");
    try (ArrivalStore store = open(1)) {
      for (String request : List.of("../secret.set 0", "lock 0", "1.log", "1.log x", "")) {
        assertThrows(ServiceException.class, () -> call(store, "Witness.read", request));
      }
      assertThrows(ServiceException.class, () -> call(store, "Witness.delete", "1.log"));
      assertThrows(ServiceException.class, () -> call(store, "Other.list", ""));
      ClientService.BlockingInterface service = new FolderService(store, Access.open()).asService();
      GetRequest get = GetRequest.getDefaultInstance();
      assertTrue(
          assertThrows(ServiceException.class, () -> service.get(null, get)).getMessage().contains("this is a witness"));
    } finally {
      Files.delete(folder.resolveSibling("secret.set"));
    }
  }
}
