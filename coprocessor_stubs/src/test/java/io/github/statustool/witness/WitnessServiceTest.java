package io.github.statustool.witness;

import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertThrows;
import static org.junit.jupiter.api.Assertions.assertTrue;

import java.io.IOException;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.ArrayList;
import java.util.List;
import java.util.Map;
import java.util.Set;
import java.util.UUID;
import java.util.stream.Collectors;
import org.apache.hadoop.hbase.Cell;
import org.apache.hadoop.hbase.CellUtil;
import org.apache.hadoop.hbase.KeyValue;
import org.apache.hadoop.hbase.ServerName;
import org.apache.hadoop.hbase.TableName;
import org.apache.hadoop.hbase.client.RegionInfo;
import org.apache.hadoop.hbase.client.RegionInfoBuilder;
import org.apache.hadoop.hbase.ipc.HBaseRpcControllerImpl;
import org.apache.hadoop.hbase.shaded.protobuf.ProtobufUtil;
import org.apache.hadoop.hbase.shaded.protobuf.generated.AdminProtos.AdminService;
import org.apache.hadoop.hbase.shaded.protobuf.generated.AdminProtos.GetServerInfoRequest;
import org.apache.hadoop.hbase.shaded.protobuf.generated.AdminProtos.ReplicateWALEntryRequest;
import org.apache.hadoop.hbase.shaded.protobuf.generated.AdminProtos.StopServerRequest;
import org.apache.hadoop.hbase.shaded.protobuf.generated.AdminProtos.WALEntry;
import org.apache.hadoop.hbase.shaded.protobuf.generated.HBaseProtos;
import org.apache.hadoop.hbase.shaded.protobuf.generated.WALProtos;
import org.apache.hadoop.hbase.shaded.protobuf.generated.WALProtos.WALKey;
import org.apache.hadoop.hbase.util.Bytes;
import org.apache.hadoop.hbase.wal.WALEdit;
import org.apache.hbase.thirdparty.com.google.protobuf.ByteString;
import org.apache.hbase.thirdparty.com.google.protobuf.ServiceException;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.io.TempDir;

class WitnessServiceTest {
  private static final ServerName SERVER = ServerName.valueOf("localhost", 12505, 7);
  private static final UUID MASTER = new UUID(5, 6);

  @TempDir Path folder;

  private final List<StorePosition> acknowledged = new ArrayList<>();

  private ArrivalStore open() throws IOException {
    ArrivalStore store = new ArrivalStore(folder, 100);
    store.begin(StorePosition.START);
    return store;
  }

  private static WALEntry entry(long sequenceId, int cells) {
    WALKey.Builder key =
        WALKey.newBuilder()
            .setEncodedRegionName(ByteString.copyFromUtf8("region"))
            .setTableName(ByteString.copyFromUtf8("ns:t"))
            .setLogSequenceNumber(sequenceId)
            .setWriteTime(1000 + sequenceId)
            .addClusterIds(HBaseProtos.UUID.newBuilder().setMostSigBits(5).setLeastSigBits(6));
    return WALEntry.newBuilder().setKey(key).setAssociatedCellCount(cells).build();
  }

  private static Cell cell(String family) {
    return new KeyValue(Bytes.toBytes("row"), Bytes.toBytes(family), Bytes.toBytes("q"), Bytes.toBytes("secret"));
  }

  private static Cell load(boolean isReplicated) {
    WALProtos.BulkLoadDescriptor load = ProtobufUtil.toBulkLoadDescriptor(TableName.valueOf("ns:t"),
        ByteString.copyFromUtf8("region"), Map.of(), Map.of(), 1, null, isReplicated);
    RegionInfo region = RegionInfoBuilder.newBuilder(TableName.valueOf("ns:t")).build();
    return WALEdit.createBulkLoadEvent(region, load).getCells().get(0);
  }

  /** HBase ships the marker of a load whose client does not want it to be replicated, and its sink skips the load. */
  @Test
  void aLoadThatTheSinkSkipsIsToldFromOthers() throws Exception {
    List<WALEntry> entries = List.of(entry(3, 1), entry(4, 1));
    Arrivals found = WitnessService.arrivals(entries, CellUtil.createCellScanner(List.of(load(true), load(false))));
    assertEquals(Set.of(List.of("METAFAMILY"), List.of(WitnessService.LOCAL_LOAD)),
        found.byKey().keySet().stream().map(key -> key.families).collect(Collectors.toSet()));
  }

  @Test
  void whatIsAnsweredIsKeptWithTheFamiliesOfItsCells() throws Exception {
    try (ArrivalStore store = open()) {
      AdminService.BlockingInterface service =
          new WitnessService(store, SERVER, Access.open(), acknowledged::add, broken -> {}).asService();
      List<Cell> cells = List.of(cell("g"), cell("f"), cell("f"), cell("f"));
      ReplicateWALEntryRequest request =
          ReplicateWALEntryRequest.newBuilder().addEntry(entry(3, 3)).addEntry(entry(4, 1)).build();
      service.replicateWALEntry(new HBaseRpcControllerImpl(CellUtil.createCellScanner(cells)), request);
      Arrivals kept = ArrivalFile.read(folder.resolve("1.log"));
      assertEquals(2, kept.size());
      ArrivalKey both = new ArrivalKey("ns:t", "region", List.of(MASTER), List.of("f", "g"));
      assertEquals(3, kept.byKey().get(both).get(0).first);
      assertEquals(1003, kept.byKey().get(both).get(0).low);
      ArrivalKey one = new ArrivalKey("ns:t", "region", List.of(MASTER), List.of("f"));
      assertEquals(4, kept.byKey().get(one).get(0).first);
      assertEquals(List.of(store.reach()), acknowledged);
      String bytes = Bytes.toString(Files.readAllBytes(folder.resolve("1.log")));
      assertTrue(!bytes.contains("secret") && !bytes.contains("row"), "nothing of a row is kept");
    }
  }

  @Test
  void aRequestThatWasCutShortIsRefused() throws Exception {
    try (ArrivalStore store = open()) {
      AdminService.BlockingInterface service =
          new WitnessService(store, SERVER, Access.open(), acknowledged::add, broken -> {}).asService();
      ReplicateWALEntryRequest request = ReplicateWALEntryRequest.newBuilder().addEntry(entry(3, 2)).build();
      HBaseRpcControllerImpl cut = new HBaseRpcControllerImpl(CellUtil.createCellScanner(List.of(cell("f"))));
      assertThrows(ServiceException.class, () -> service.replicateWALEntry(cut, request));
      assertThrows(ServiceException.class, () -> service.replicateWALEntry(new HBaseRpcControllerImpl(), request));
      assertEquals(0, ArrivalFile.read(folder.resolve("1.log")).size());
    }
  }

  @Test
  void aStoreThatFailsEndsTheWitnessAndAcknowledgesNothing() throws Exception {
    ArrivalStore store = open();
    store.close();
    List<IOException> ends = new ArrayList<>();
    AdminService.BlockingInterface service =
          new WitnessService(store, SERVER, Access.open(), acknowledged::add, ends::add).asService();
    ReplicateWALEntryRequest request = ReplicateWALEntryRequest.newBuilder().addEntry(entry(3, 0)).build();
    assertThrows(ServiceException.class, () -> service.replicateWALEntry(new HBaseRpcControllerImpl(), request));
    assertEquals(1, ends.size());
  }

  @Test
  void whatIsNotRecordedElsewhereIsNotAcknowledgedAndEndsNothing() throws Exception {
    List<IOException> ends = new ArrayList<>();
    ReplicateWALEntryRequest request = ReplicateWALEntryRequest.newBuilder().addEntry(entry(3, 0)).build();
    try (ArrivalStore store = new ArrivalStore(folder, 100)) {
      WitnessService.Acknowledged nobody =
          position -> {
            throw new IOException("ZooKeeper is away");
          };
      AdminService.BlockingInterface service =
          new WitnessService(store, SERVER, Access.open(), nobody, ends::add).asService();
      assertThrows(ServiceException.class, () -> service.replicateWALEntry(new HBaseRpcControllerImpl(), request));
      store.begin(StorePosition.START);
      assertThrows(ServiceException.class, () -> service.replicateWALEntry(new HBaseRpcControllerImpl(), request));
    }
    assertEquals(List.of(), ends);
  }

  @Test
  void probesAreAnsweredAndOtherCallsRefused() throws Exception {
    try (ArrivalStore store = open()) {
      AdminService.BlockingInterface service =
          new WitnessService(store, SERVER, Access.open(), acknowledged::add, broken -> {}).asService();
      assertEquals(
          12505,
          service
              .getServerInfo(null, GetServerInfoRequest.getDefaultInstance())
              .getServerInfo()
              .getServerName()
              .getPort());
      StopServerRequest stop = StopServerRequest.newBuilder().setReason("none").build();
      ServiceException error = assertThrows(ServiceException.class, () -> service.stopServer(null, stop));
      assertTrue(error.getMessage().contains("stopServer: this is a witness"), error.getMessage());
    }
  }
}
